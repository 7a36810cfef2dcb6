"""Attacks by known people: those whose quasi-identifiers an attacker has, and those that a population holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.disclosure import UNIT, Attack, AttackedAttribute, Gain, gain_of, mean_of, share_in
from ldiv_db.attacking.matching import Prefixes, pairs_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.measuring.population_uniqueness import estimate_uniqueness, refuse_population
from ldiv_db.requirements.guarantees import Guarantee

#: So many of the people that are told most surely are listed on request.
SHOWN = 20
_POPULATIONS = dict.fromkeys(("class_rows", "found", "population"), "BIGINT")
_MEASURES = dict.fromkeys(("cell_no", "people", "classes", "class_rows", "values", "largest"), "BIGINT")


@dataclass(frozen=True)
class Exposure:
    """The classes of a table as rows to be recognised: (class_no, class_rows), and the risk that counts as high."""

    engine: Engine
    classes: Relation
    threshold: Decimal
    bound: Fraction | None
    #: The largest risk among the people of a population, and the largest share of them who are in the table.
    people_bound: Fraction | None = None
    presence_bound: Fraction | None = None

    def promised_of(self, promise: Guarantee, population: str) -> Exposure:
        """The same with what is promised of that population."""
        fewest, most = promise.fewest_people(population), promise.most_present(population)
        return replace(
            self,
            people_bound=Fraction(1, fewest) if fewest > 1 else None,
            presence_bound=most if most < 1 else None,
        )

    @property
    def journalist_bound(self) -> Fraction | None:
        """The largest risk of re-identification among people of a population, who are at least those of the table."""
        return min((bound for bound in (self.bound, self.people_bound) if bound is not None), default=None)

    @property
    def limit(self) -> Value:
        return Value(self.threshold)


def prosecutor(exposure: Exposure) -> list[Attack]:
    """Who knows that somebody is in the table guesses their row among those of the class: `1 / |G|`."""
    sizes = exposure.engine.record("attacking/summarise_sizes", classes=exposure.classes, threshold=exposure.limit)
    rows = sizes["rows"]
    figures = {
        "mean": sizes["classes"] / rows if rows else None,
        "threshold": float(exposure.threshold),
        "rows_above_threshold": sizes["rows_above"],
    }
    return [Attack("prosecutor", None, (_risk(sizes["least"], exposure.bound),), figures)]


def marketer(exposure: Exposure) -> Attack:
    """Who matches all rows at once, to people who are all in the table, is right about one row a class."""
    sizes = exposure.engine.record("attacking/summarise_sizes", classes=exposure.classes, threshold=exposure.limit)
    mean = Fraction(sizes["classes"], sizes["rows"]) if sizes["rows"] else None
    return Attack("marketer", None, (gain_of("share of rows recognised", mean, exposure.bound),))


def population_attacks(exposure: Exposure, people: Prefixes, budget: int) -> list[Attack]:
    """Journalist and marketer risk, and who is in the table, by how many people of a population each class covers."""
    engine = exposure.engine
    populations = engine.load("populations", _POPULATIONS, [])
    for drawn in people.drawn(budget, by_classes=True):
        classes = engine.select_among("kept", exposure.classes, drawn.part, "class_no")
        engine.insert(populations, "attacking/count_population", classes=classes, **drawn.alike())
    tried = engine.count(populations), engine.count(exposure.classes)
    summary = engine.record(
        "attacking/summarise_population", populations=populations, threshold=exposure.limit, unit=Value(UNIT)
    )
    engine.drop(populations)
    mean = Fraction(int(summary["mean_units"]), UNIT * summary["rows"]) if summary["rows"] else None
    figures = {
        "threshold": float(exposure.threshold),
        "rows_above_threshold": summary["rows_above"],
        "rows_beyond_population": summary["rows_unlisted"],
    }
    bound, largest = exposure.journalist_bound, share_in(summary)
    attacks = [
        Attack("journalist", None, (_risk(summary["least"], bound),), figures),
        Attack("marketer", None, (gain_of("share of rows recognised", mean, bound),)),
        Attack("presence", None, (gain_of("share of people alike", largest, exposure.presence_bound),)),
    ]
    return [attack.with_untried("classes", *tried) for attack in attacks]


def population_uniqueness(exposure: Exposure, rows: int, population: int) -> Attack:
    """Who knows of how many people the rows are a sample: the share that is of people like whom there is no other.

    It is 0 where no class has one row, which any bound on a row's risk promises. Raises PolicyError for a population
    smaller than the table.
    """
    refuse_population(population, rows)
    found = estimate_uniqueness(exposure.engine, exposure.classes, "class_rows", population)
    share = Fraction(0) if found is None else None if found.share is None else Fraction(found.share)
    bound = Fraction(0) if exposure.bound is not None and exposure.bound < 1 else None
    figures: dict[str, Any] = {"population": population}
    if found is not None:
        figures |= {"sampling_fraction": found.rows / population, "model": found.chosen}
        for name, estimate in found.estimates.items():
            figures[f"unique_people_by_{name}"] = estimate.reason if estimate.uniques is None else estimate.uniques
    gain = gain_of("share of rows, estimated", share, bound, kept=bound is None or share == 0)
    return Attack("population uniqueness", None, (gain,), figures)


def _risk(least: int | None, bound: Fraction | None) -> Gain:
    return gain_of("1 / people alike", Fraction(1, least) if least else None, bound)


def linking(target: AttackedAttribute, known: Prefixes, budget: int, show_values: bool) -> Attack:
    """What the table tells of known people: the values in all classes that their quasi-identifiers fit."""
    engine, histogram = target.engine, target.histogram
    measures = engine.load("measures", _MEASURES, [])
    for drawn in known.drawn(budget):
        engine.insert(measures, "attacking/measure_people", histogram=histogram, **drawn.alike())
    summary = engine.record("attacking/summarise_people", measures=measures, unit=Value(UNIT))
    shown = _surest(target, known, measures) if show_values else None
    engine.drop(measures)
    people, matched = summary["people"], summary["people"] - summary["no_class"]
    counts = {name: summary[name] for name in ("people", "no_class", "one_class", "one_value")}
    figures = {**counts, "mean": mean_of(summary["mean_units"], matched)}
    found = Attack("linking", target.sensitive, _known_gains(target, summary), figures, shown)
    return found.with_untried("people", people, engine.total(known.cells, "people"))


def _surest(target: AttackedAttribute, known: Prefixes, measures: Relation) -> list[dict[str, Any]]:
    """The people that are told most surely, with their values."""
    engine = target.engine
    with engine.scope():
        params: dict[str, Any] = {"axis": known.last, "most": Value(SHOWN)}
        codes = engine.materialise(
            "surest", "attacking/list_surest_people", measures=measures, codes=known.codes, **params
        )
        found, _ = replace(known, codes=codes).paired()
        people = engine.records(
            "attacking/list_people",
            measures=codes,
            cells=known.cells,
            matches=pairs_of(found),
            histogram=target.histogram,
            axes=known.axes,
        )
    return [{name: _plain(value) for name, value in row.items()} for row in people]


def _plain(value: Any) -> Any:
    """A known value as JSON has it: a number, or text."""
    return value if value is None or isinstance(value, int | float) else str(value)


def _known_gains(target: AttackedAttribute, summary: dict[str, Any]) -> tuple[Gain, ...]:
    told = Fraction(summary["one_value"], summary["people"]) if summary["people"] else None
    return (
        gain_of("posterior", share_in(summary), target.bounds.posterior),
        gain_of("share of known rows with one value", told, target.bounds.one_value),
    )
