"""Attacks by the classes that an audit counts: on sensitive values, and by people whose quasi-identifiers are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from ldiv_db.attacking.gains import UNIT, Attack, Bounds, Gain, Prior, gain_of, mean_of, share_in
from ldiv_db.attacking.matching import Prefixes, pairs_of
from ldiv_db.auditing.refusals import require_listed
from ldiv_db.database.engine import Engine
from ldiv_db.database.queries import Where
from ldiv_db.database.templates import Relation, Value
from ldiv_db.measuring.population_uniqueness import estimate_uniqueness, refuse_population
from ldiv_db.requirements import Attribute, Categories, Classes
from ldiv_db.requirements.guarantees import ONE, Guarantee
from ldiv_db.requirements.values import Named

#: So many of the people that are told most surely are listed on request.
SHOWN = 20
#: What is said of attacks that take one value a row.
OF_SETS = "similarity, skewness and background knowledge take one value a row, and are not tried"
_POPULATIONS = dict.fromkeys(("class_rows", "found", "population"), "BIGINT")
_MEASURES = dict.fromkeys(("cell_no", "people", "classes", "class_rows", "values", "largest"), "BIGINT")


@dataclass(frozen=True)
class AttackedAttribute:
    """One sensitive attribute: its classes, its categories if any, its values' `priors`, what is promised of it.

    Nothing is promised of `harmless` values, and of any other at most the share `others`. Rows may have several values
    if they are `of_sets`.
    """

    engine: Engine
    sensitive: str
    classes: Classes
    categories: Categories | None
    priors: Relation
    bounds: Bounds
    harmless: tuple[Named, ...] = ()
    others: Fraction = ONE
    of_sets: bool = False

    @property
    def histogram(self) -> Relation:
        return self.classes.histogram

    @cached_property
    def rows(self) -> int:
        """The rows, those of sets as often as they have values."""
        return self.engine.total(self.classes.totals, "rows")

    def share(self, rows: int) -> Fraction | None:
        """The share of the table that so many rows are."""
        return Fraction(rows, self.rows) if self.rows else None


def make_target(
    engine: Engine, attribute: Attribute, classes: Classes, promise: Guarantee, of_sets: bool = False
) -> AttackedAttribute:
    """The target that is attacked; raises PolicyError if a value of the table is of no category."""
    if attribute.categories:
        require_listed(engine, attribute.name, attribute.categories, classes.totals)
    priors = place_values(engine, classes.totals, promise, attribute.categories)
    bounds = Bounds(promise, list_priors(engine, priors))
    others = max([promise.share, *(share for v, share in promise.shares if v not in attribute.harmless)])
    told = (attribute.harmless, others, of_sets)
    return AttackedAttribute(engine, attribute.name, classes, attribute.categories, priors, bounds, *told)


def list_priors(engine: Engine, priors: Relation) -> list[Prior]:
    """The values of a table that are alike, in order; `priors` are those of `place_values`."""
    kinds = sorted(engine.tally(priors, "rows", "numerator", "denominator", "category"))
    return [
        Prior(values, rows, Fraction(int(numerator), int(denominator)), category)
        for rows, numerator, denominator, category, values in kinds
    ]


def place_values(engine: Engine, totals: Relation, promise: Guarantee, categories: Categories | None) -> Relation:
    """Every value with its category, 1 without any, and the share promised."""
    listed = categories.members() if categories else []
    members = engine.load("members", {"value": "VARCHAR", "category": "INTEGER"}, listed)
    columns = {"value": "VARCHAR", "numerator": "HUGEINT", "denominator": "HUGEINT"}
    limits = [(value, share.numerator, share.denominator) for value, share in promise.shares]
    shares = engine.load("shares", columns, limits)
    priors = engine.materialise(
        "priors",
        "attacking/place_values",
        totals=totals,
        members=members,
        shares=shares,
        null_category=categories.null_category if categories else 1,
        numerator=promise.share.numerator,
        denominator=promise.share.denominator,
    )
    engine.drop(members, shares)
    return priors


def disclosures(target: AttackedAttribute, excluded: int) -> list[Attack]:
    """All attacks on one sensitive attribute; similarity if there are categories."""
    if target.of_sets:
        return [_of_everybody(target), _posterior(target)]
    attacks = [_homogeneity(target)]
    attacks += [_similarity(target, target.categories)] if target.categories else []
    return [*attacks, _skewness(target), _background(target, excluded), _posterior(target)]


def _few_values(target: AttackedAttribute, classes: Classes, most: int) -> dict[str, Any]:
    """(classes, rows) of those with at most so many values."""
    engine, few = target.engine, Where("values", most, "<=")
    return {"classes": engine.count(classes.summary, few), "rows": engine.total(classes.summary, "rows", few)}


def _homogeneity(target: AttackedAttribute) -> Attack:
    """Rows of classes that have one value: it is told for certain."""
    few = _few_values(target, target.classes, 1)
    gains = [gain_of("share of rows in classes of one value", target.share(few["rows"]), target.bounds.one_value)]
    if target.harmless:
        certain, _ = _told_of_others(target)
        bound = Fraction(0) if target.others < 1 else None
        gains.append(
            gain_of("share of rows in classes of one value that is not harmless", target.share(certain), bound)
        )
    return Attack("homogeneity", target.sensitive, tuple(gains), few)


def _of_everybody(target: AttackedAttribute) -> Attack:
    """Rows of classes in which everybody has one of the values, among others perhaps: it is told for certain."""
    engine, bound = target.engine, Fraction(0) if target.others < 1 else target.bounds.one_value
    sizes = engine.tally(target.classes.exempting(target.harmless).summary, "rows", "largest")
    certain = [(rows, classes) for rows, largest, classes in sizes if rows == largest]
    rows, classes = sum(rows * classes for rows, classes in certain), sum(classes for _, classes in certain)
    whole = sum(rows * classes for rows, _, classes in sizes)
    share = Fraction(rows, whole) if whole else None
    gain = gain_of("share of rows in classes that have a value in common", share, bound)
    return Attack("homogeneity", target.sensitive, (gain,), {"classes": classes, "rows": rows})


def _count_shares(engine: Engine, histogram: Relation) -> Relation:
    """(held, class_rows, rows): how often each share `held / class_rows` of a value in a class occurs."""
    return engine.count_groups("shares", histogram, ("rows", "held"), "class_rows")


def _told_of_others(target: AttackedAttribute) -> tuple[int, Fraction | None]:
    """Of the values that are not harmless: the rows of those told for certain, and the largest posterior."""
    engine, others = target.engine, target.classes.exempting(target.harmless)
    shares = _count_shares(engine, others.histogram)
    summary = engine.records("attacking/summarise_shares", shares=shares, unit=UNIT)
    engine.drop(shares)
    return (int(summary[0]["certain"]), share_in(summary[0])) if summary else (0, None)


def _similarity(target: AttackedAttribute, categories: Categories) -> Attack:
    """Rows of classes whose values are all of one category: that is told for certain ((l,alpha)-diversity)."""
    similar = _few_values(target, target.classes.by_category(categories), 1)
    gain = gain_of(
        "share of rows in classes of one category", target.share(similar["rows"]), target.bounds.one_category
    )
    return Attack("similarity", target.sensitive, (gain,), similar)


def _skewness(target: AttackedAttribute) -> Attack:
    """The value whose share of a class is furthest from its share of the table, as a ratio and as a difference."""
    ratio = next((posterior / prior for posterior, prior in _largest_odds(target, by_difference=False)), None)
    difference = next((posterior - prior for posterior, prior in _largest_odds(target, by_difference=True)), None)
    gains = (
        gain_of("posterior / prior", ratio, target.bounds.ratio),
        gain_of("posterior - prior", difference, target.bounds.difference),
    )
    return Attack("skewness", target.sensitive, gains)


def _largest_odds(target: AttackedAttribute, by_difference: bool) -> list[tuple[Fraction, Fraction]]:
    """(posterior, prior) of the value with the largest ratio of both, or difference; empty without classes."""
    params: dict[str, Any] = {"histogram": target.histogram, "priors": target.priors, "total": Value(target.rows)}
    rows = target.engine.records("attacking/find_largest_gain", by_difference=by_difference, **params)
    return [(Fraction(row["rows"], row["class_rows"]), Fraction(row["value_rows"], target.rows)) for row in rows]


def _background(target: AttackedAttribute, excluded: int) -> Attack:
    """The attack of those who exclude so many values of somebody: the worst choice of values, class and person."""
    engine, bounds = target.engine, target.bounds
    few = _few_values(target, target.classes, excluded + 1)
    params = {"histogram": target.histogram, "most": Value(excluded)}
    posterior = next(map(share_in, engine.records("attacking/find_surest_class", **params)), None)
    gains = (
        gain_of("posterior", posterior, bounds.excluded(excluded)),
        gain_of("share of rows known for certain", target.share(few["rows"]), bounds.few_values(excluded + 1)),
    )
    return Attack("background knowledge", target.sensitive, gains, {"excluded": excluded, **few})


def _posterior(target: AttackedAttribute) -> Attack:
    """The posterior of every row's true value, given its class."""
    engine = target.engine
    shares = _count_shares(engine, target.histogram)
    summary = engine.records("attacking/summarise_shares", shares=shares, unit=UNIT)
    deciles = engine.load("deciles", {"decile": "INTEGER"}, [(i,) for i in range(1, 11)])
    posteriors = engine.rows("attacking/list_deciles", shares=shares, deciles=deciles, total=target.rows)
    over = engine.record("attacking/count_excesses", histogram=target.histogram, priors=target.priors)
    engine.drop(shares, deciles)
    gain = gain_of("posterior", next(map(share_in, summary), None), target.bounds.posterior, kept=not over["rows"])
    gains = [gain]
    if target.harmless:
        _, largest = _told_of_others(target)
        bound = target.others if target.others < 1 else None
        gains.append(gain_of("posterior, of values that are not harmless", largest, bound))
    figures = {
        "mean": mean_of(summary[0]["mean_units"], target.rows) if summary else None,
        "deciles": [posterior for _, posterior in posteriors],
        "rows_above_promise": over["rows"],
    }
    return Attack("posterior", target.sensitive, tuple(gains), figures)


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
            self, people_bound=Fraction(1, fewest) if fewest > 1 else None, presence_bound=most if most < 1 else None
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """(classes, rows): the number of classes, and of the rows in them."""
        return self.engine.count(self.classes), self.engine.total(self.classes, "class_rows")


def prosecutor(exposure: Exposure) -> list[Attack]:
    """The attack of those who know that somebody is in the table: they guess a row of the class, risk `1 / |G|`."""
    engine, (classes, rows) = exposure.engine, exposure.sizes
    units = int(exposure.threshold * UNIT)  # it has at most nine digits
    risky = Where("class_rows", (UNIT - 1) // units if units else None, "<=" if units else "<>")
    figures = {
        "mean": classes / rows if rows else None,
        "threshold": float(exposure.threshold),
        "rows_above_threshold": engine.total(exposure.classes, "class_rows", risky),
    }
    least = engine.least(exposure.classes, "class_rows")
    return [Attack("prosecutor", None, (_risk(least, exposure.bound),), figures)]


def marketer(exposure: Exposure) -> Attack:
    """The attack of those who match all rows at once to people in the table: they are right about one row a class."""
    classes, rows = exposure.sizes
    mean = Fraction(classes, rows) if rows else None
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
        "attacking/summarise_population", populations=populations, threshold=exposure.threshold, unit=UNIT
    )
    engine.drop(populations)
    mean = Fraction(int(summary["mean_units"]), UNIT * summary["rows"]) if summary["rows"] else None
    figures = {
        "threshold": float(exposure.threshold),
        "rows_above_threshold": summary["rows_above"],
        "rows_beyond_population": summary["rows_unlisted"],
    }
    bounds, largest = (exposure.bound, exposure.people_bound), share_in(summary)
    bound = min((one for one in bounds if one is not None), default=None)  # a population has the people of the table
    attacks = [
        Attack("journalist", None, (_risk(summary["least"], bound),), figures),
        Attack("marketer", None, (gain_of("share of rows recognised", mean, bound),)),
        Attack(
            "presence", None, (gain_of("share of people alike who are in the table", largest, exposure.presence_bound),)
        ),
    ]
    return [attack.with_untried("classes", *tried) for attack in attacks]


def population_uniqueness(exposure: Exposure, rows: int, population: int) -> Attack:
    """The attack of those who know the population's size: the share of rows of people who are unique in it.

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
    gain = gain_of("share of rows unique in the population, estimated", share, bound, kept=bound is None or share == 0)
    return Attack("population uniqueness", None, (gain,), figures)


def _risk(least: int | None, bound: Fraction | None) -> Gain:
    return gain_of("1 / people alike", Fraction(1, least) if least else None, bound)


def linking(target: AttackedAttribute, known: Prefixes, budget: int, show_values: bool) -> Attack:
    """The attack on known people: the values in all classes that their quasi-identifiers fit."""
    engine, histogram = target.engine, target.histogram
    measures = engine.load("measures", _MEASURES, [])
    for drawn in known.drawn(budget):
        engine.insert(measures, "attacking/measure_people", histogram=histogram, **drawn.alike())
    summary = engine.record("attacking/summarise_people", measures=measures, unit=UNIT)
    shown = _surest(target, known, measures) if show_values else None
    engine.drop(measures)
    people, matched = summary["people"], summary["people"] - summary["no_class"]
    counts = {name: summary[name] for name in ("people", "no_class", "one_class", "one_value")}
    figures = {**counts, "mean": mean_of(summary["mean_units"], matched)}
    found = Attack("linking", target.sensitive, _known_gains(target, summary), figures, shown)
    if people and not matched:
        return found.without_people(people)
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
