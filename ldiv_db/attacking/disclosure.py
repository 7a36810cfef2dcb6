"""Attacks on sensitive values: by the classes that an audit counts, and by people whose quasi-identifiers are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

from ldiv_db.attacking.base import AttackedAttribute, AttackedTable, Attacker
from ldiv_db.attacking.gains import UNIT, Attack, Gain, gain_of, mean_of, share_in
from ldiv_db.attacking.matching import Prefixes
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.requirements import Classes

#: So many of the people that are told most surely are listed on request.
SHOWN = 20
#: What is said of attacks that take one value a row.
OF_SETS = "similarity, skewness and background knowledge take one value a row, and are not tried"
_MEASURES = dict.fromkeys(("cell_no", "people", "classes", "class_rows", "values", "largest"), "BIGINT")


def _few_values(target: AttackedAttribute, classes: Classes, most: int) -> dict[str, Any]:
    """(classes, rows) of those with at most so many values."""
    engine, few = target.engine, Where("values", most, "<=")
    return {"classes": engine.count(classes.summary, few), "rows": engine.total(classes.summary, "rows", few)}


class Homogeneity(Attacker):
    """Rows of classes that have one value: it is told for certain. Of sets, of those that have a value in common."""

    names = ("homogeneity",)
    on_people = True

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        if target.of_sets:
            yield _of_everybody(target)
            return
        few = _few_values(target, target.classes, 1)
        gains = [gain_of("share of rows in classes of one value", target.share(few["rows"]), target.bounds.one_value)]
        if target.harmless:
            certain, _ = _told_of_others(target)
            bound = Fraction(0) if target.others < 1 else None
            gains.append(
                gain_of("share of rows in classes of one value that is not harmless", target.share(certain), bound)
            )
        yield Attack("homogeneity", target.sensitive, tuple(gains), few)


def _of_everybody(target: AttackedAttribute) -> Attack:
    """Rows of classes in which everybody has one of the values, among others perhaps: it is told for certain."""
    engine, bound = target.engine, Fraction(0) if target.others < 1 else None
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


class Similarity(Attacker):
    """Rows of classes whose values are all of one category: that is told for certain ((l,alpha)-diversity)."""

    names = ("similarity",)

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        if target.of_sets or not target.categories:
            return
        similar = _few_values(target, target.classes.by_category(target.categories), 1)
        share, bound = target.share(similar["rows"]), target.bounds.one_category
        gain = gain_of("share of rows in classes of one category", share, bound)
        yield Attack("similarity", target.sensitive, (gain,), similar)


class Skewness(Attacker):
    """The value whose share of a class is furthest from its share of the table, as a ratio and as a difference."""

    names = ("skewness",)

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        if target.of_sets:
            return
        ratio = next((posterior / prior for posterior, prior in _largest_odds(target, by_difference=False)), None)
        difference = next((posterior - prior for posterior, prior in _largest_odds(target, by_difference=True)), None)
        gains = (
            gain_of("posterior / prior", ratio, target.bounds.ratio),
            gain_of("posterior - prior", difference, target.bounds.difference),
        )
        yield Attack("skewness", target.sensitive, gains)


def _largest_odds(target: AttackedAttribute, by_difference: bool) -> list[tuple[Fraction, Fraction]]:
    """(posterior, prior) of the value with the largest ratio of both, or difference; empty without classes."""
    params: dict[str, Any] = {"histogram": target.histogram, "priors": target.priors, "total": target.rows}
    rows = target.engine.records("attacking/find_largest_gain", by_difference=by_difference, **params)
    return [(Fraction(row["rows"], row["class_rows"]), Fraction(row["value_rows"], target.rows)) for row in rows]


class BackgroundKnowledge(Attacker):
    """The attack of those who exclude m values of somebody: the worst choice of values, class and person."""

    names = ("background knowledge",)

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        if target.of_sets:
            return
        engine, bounds, excluded = target.engine, target.bounds, self.table.known.asked.m
        few = _few_values(target, target.classes, excluded + 1)
        surest = engine.records("attacking/find_surest_class", histogram=target.histogram, most=excluded)
        gains = (
            gain_of("posterior", next(map(share_in, surest), None), bounds.excluded(excluded)),
            gain_of("share of rows known for certain", target.share(few["rows"]), bounds.few_values(excluded + 1)),
        )
        yield Attack("background knowledge", target.sensitive, gains, {"excluded": excluded, **few})


class Posterior(Attacker):
    """The posterior of every row's true value, given its class."""

    names = ("posterior",)
    on_people = True
    words: ClassVar = {"deciles": "posterior at each tenth of the rows"}

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        engine = target.engine
        shares = _count_shares(engine, target.histogram)
        summary = engine.records("attacking/summarise_shares", shares=shares, unit=UNIT)
        deciles = engine.load("deciles", {"decile": "INTEGER"}, [(i,) for i in range(1, 11)])
        posteriors = engine.rows("attacking/list_deciles", shares=shares, deciles=deciles, total=target.rows)
        over = engine.record("attacking/count_excesses", histogram=target.histogram, priors=target.priors)
        engine.drop(shares, deciles)
        largest = next(map(share_in, summary), None)
        gains = [gain_of("posterior", largest, target.bounds.posterior, kept=not over["rows"])]
        if target.harmless:
            _, largest = _told_of_others(target)
            bound = target.others if target.others < 1 else None
            gains.append(gain_of("posterior, of values that are not harmless", largest, bound))
        figures = {
            "mean": mean_of(summary[0]["mean_units"], target.rows) if summary else None,
            "deciles": [posterior for _, posterior in posteriors],
            "rows_above_promise": over["rows"],
        }
        yield Attack("posterior", target.sensitive, tuple(gains), figures)


class Linking(Attacker):
    """The attack on known people: the values in all classes that their quasi-identifiers fit."""

    names = ("linking",)
    key = people = "known"
    reads_labels = True
    place = 5

    def __init__(self, table: AttackedTable) -> None:
        super().__init__(table)
        self.prefixes = table.prefixes("known")

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        engine, known = target.engine, self.prefixes
        measures = engine.load("measures", _MEASURES, [])
        for found, _, _ in known.drawn(self.table.budget // len(self.table.targets)):
            engine.insert(measures, "attacking/measure_people", histogram=target.histogram, **found.alike())
        summary = engine.record("attacking/summarise_people", measures=measures, unit=UNIT)
        shown = _surest(target, known, measures) if self.table.known.asked.show_values else None
        engine.drop(measures)
        people, matched = summary["people"], summary["people"] - summary["no_class"]
        counts = {name: summary[name] for name in ("people", "no_class", "one_class", "one_value")}
        figures = {**counts, "mean": mean_of(summary["mean_units"], matched)}
        gains = (
            gain_of("posterior", share_in(summary), target.bounds.posterior),
            one_value_gain(summary, target.bounds.one_value),
        )
        attack = Attack("linking", target.sensitive, gains, figures, shown)
        if people and not matched:
            yield attack.without_people(people)
        else:
            yield attack.with_untried("people", people, engine.total(known.cells, "people"))


def one_value_gain(summary: Mapping[str, Any], bound: Fraction | None) -> Gain:
    """The share of known people who have one value left."""
    share = Fraction(summary["one_value"], summary["people"]) if summary["people"] else None
    return gain_of("share of known rows with one value", share, bound)


def _surest(target: AttackedAttribute, known: Prefixes, measures: Relation) -> list[dict[str, Any]]:
    flow = known.flow("attacking", measures=measures, histogram=target.histogram)
    with flow.scope():
        codes = flow.step("surest", "list_surest_people", most=SHOWN)
        found, _ = replace(known, codes=codes).paired()
        rows = flow.records("list_people", measures=codes, matches=found.covered())
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float) else str(value)
