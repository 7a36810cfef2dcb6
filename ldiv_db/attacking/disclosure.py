"""Attacks on a sensitive attribute: what the classes of a published table tell of their people's values.

All of them read the classes that an audit counts. A gain is compared with its bound in whole
numbers and fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from ldiv_db.attacking.bounds import Bounds, Prior
from ldiv_db.auditing.audit import require_listed
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements import Attribute, Categories, Classes
from ldiv_db.requirements.guarantees import ONE, Guarantee
from ldiv_db.requirements.values import Named

#: Means are sums of whole units, so that they do not depend on the order of rows.
UNIT = 10**9


@dataclass(frozen=True)
class Gain:
    """What an attacker gains at best, and the most that is promised; None where nothing is.

    `measure` says what the gain is: a share of rows or people, a probability, or a ratio of two. `holds` says
    whether the promise is kept, None where there is none.
    """

    measure: str
    gain: float | None
    bound: float | None
    holds: bool | None

    def as_dict(self) -> dict[str, Any]:
        return {"measure": self.measure, "gain": self.gain, "bound": self.bound, "holds": self.holds}


def gain_of(measure: str, gain: Fraction | None, bound: Fraction | None, kept: bool = True) -> Gain:
    """The gain as a report has it; a promise is kept unless the gain exceeds its bound, or is not `kept` otherwise."""
    holds = None if bound is None and kept else kept and (gain is None or bound is None or gain <= bound)
    return Gain(measure, None if gain is None else float(gain), None if bound is None else float(bound), holds)


def all_hold(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all promises hold, those that there are; None if there are none."""
    found = [verdict for verdict in verdicts if verdict is not None]
    return all(found) if found else None


@dataclass(frozen=True)
class Untried:
    """What an attack did not get to: it `tried` so many of the `whole`, people, classes or the like."""

    what: str
    tried: int
    whole: int

    def as_dict(self) -> dict[str, Any]:
        return {"what": self.what, "tried": self.tried, "of": self.whole}

    def __str__(self) -> str:
        return f"tried on {self.tried:,} of {self.whole:,} {self.what}"


@dataclass(frozen=True)
class Attack:
    """One attack: its gains, and counts that go with them. `sensitive` is None if it is about rows alone.

    `shown` holds rows of the data, for those who may see them. What is `untried` was beyond the budget: gains and
    figures are then of what was tried, and a promise that it does not break is not known to hold.
    """

    name: str
    sensitive: str | None
    gains: tuple[Gain, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    shown: list[dict[str, Any]] | None = None
    untried: Untried | None = None

    @property
    def holds(self) -> bool | None:
        """Whether every promise is kept, None where nothing is promised, or where it is not known."""
        return all_hold(gain.holds for gain in self.gains)

    def with_untried(self, what: str, tried: int, whole: int) -> Attack:
        """The same, tried on so many of the `whole`: what it has not found may be among the others."""
        if tried >= whole:
            return self
        gains = tuple(replace(gain, holds=gain.holds and None) for gain in self.gains)
        untried = Untried(what, tried, whole)
        return replace(self, gains=gains, untried=untried, figures=self.figures | {"not_finished": str(untried)})

    def as_dict(self) -> dict[str, Any]:
        attack = {
            "attack": self.name,
            "sensitive": self.sensitive,
            "holds": self.holds,
            "finished": self.untried is None,
            "untried": self.untried and self.untried.as_dict(),
            "gains": [gain.as_dict() for gain in self.gains],
            "figures": self.figures,
        }
        return attack if self.shown is None else attack | {"shown": self.shown}


@dataclass(frozen=True)
class AttackedAttribute:
    """One sensitive attribute: its classes, its categories if any, its values' `priors`, what is promised of it.

    Nothing is promised of `harmless` values, and of any other at most the share `others`.
    """

    engine: Engine
    sensitive: str
    classes: Classes
    categories: Categories | None
    priors: Relation
    bounds: Bounds
    harmless: tuple[Named, ...] = ()
    others: Fraction = ONE

    @property
    def histogram(self) -> Relation:
        return self.classes.histogram

    @cached_property
    def rows(self) -> int:
        return self.engine.total(self.classes.totals, "rows")

    def share(self, rows: int) -> Fraction | None:
        """The share of the table that so many rows are."""
        return Fraction(rows, self.rows) if self.rows else None


def make_target(engine: Engine, attribute: Attribute, classes: Classes, promise: Guarantee) -> AttackedAttribute:
    """The target that is attacked; raises PolicyError if a value of the table is of no category."""
    if attribute.categories:
        require_listed(engine, attribute.name, attribute.categories, classes.totals)
    priors = place_values(engine, classes.totals, promise, attribute.categories)
    kinds = engine.records("attacking/count_priors", priors=priors)
    bounds = Bounds(promise, [prior_of(kind) for kind in kinds])
    others = max([promise.share, *(share for v, share in promise.shares if v not in attribute.harmless)])
    told = (attribute.harmless, others)
    return AttackedAttribute(engine, attribute.name, classes, attribute.categories, priors, bounds, *told)


def prior_of(kind: dict[str, Any]) -> Prior:
    """The values that a row of counts is about."""
    share = Fraction(int(kind["numerator"]), int(kind["denominator"]))
    return Prior(kind["values"], kind["rows"], share, kind["category"])


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
        null_category=Value(categories.null_category if categories else 1),
        numerator=Value(promise.share.numerator),
        denominator=Value(promise.share.denominator),
    )
    engine.drop(members, shares)
    return priors


def disclosures(target: AttackedAttribute, excluded: int) -> list[Attack]:
    """All attacks on one sensitive attribute; similarity if there are categories."""
    attacks = [_homogeneity(target)]
    attacks += [_similarity(target, target.categories)] if target.categories else []
    return [*attacks, _skewness(target), _background(target, excluded), _posterior(target)]


def _few_values(target: AttackedAttribute, classes: Classes, most: int) -> dict[str, Any]:
    """(classes, rows) of those with at most so many values."""
    return target.engine.record("attacking/count_few_values", summary=classes.summary, most=Value(most))


def _homogeneity(target: AttackedAttribute) -> Attack:
    """Rows of classes that have one value: it is told for certain."""
    few = _few_values(target, target.classes, 1)
    gains = [gain_of("share of rows", target.share(few["rows"]), target.bounds.one_value)]
    if target.harmless:
        certain, _ = _told_of_others(target)
        bound = Fraction(0) if target.others < 1 else None
        gains.append(gain_of("share of rows, harmless ones aside", target.share(certain), bound))
    return Attack("homogeneity", target.sensitive, tuple(gains), few)


def _told_of_others(target: AttackedAttribute) -> tuple[int, Fraction | None]:
    """Of the values that are not harmless: the rows of those told for certain, and the largest posterior."""
    engine, others = target.engine, target.classes.sparing(target.harmless)
    shares = engine.materialise("shares", "attacking/list_shares", histogram=others.histogram)
    summary = engine.records("attacking/summarise_shares", shares=shares, unit=Value(UNIT))
    engine.drop(shares)
    return (int(summary[0]["certain"]), share_in(summary[0])) if summary else (0, None)


def _similarity(target: AttackedAttribute, categories: Categories) -> Attack:
    """Rows of classes whose values are all of one category: that is told for certain ((l,alpha)-diversity)."""
    similar = _few_values(target, target.classes.by_category(categories), 1)
    gain = gain_of("share of rows", target.share(similar["rows"]), target.bounds.one_category)
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
    """Who knows `excluded` values that somebody does not have: the worst choice of values, class and person."""
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
    shares = engine.materialise("shares", "attacking/list_shares", histogram=target.histogram)
    summary = engine.records("attacking/summarise_shares", shares=shares, unit=Value(UNIT))
    deciles = engine.load("deciles", {"decile": "INTEGER"}, [(i,) for i in range(1, 11)])
    posteriors = engine.rows("attacking/list_deciles", shares=shares, deciles=deciles, total=Value(target.rows))
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


def share_in(row: Mapping[str, Any]) -> Fraction | None:
    """The fraction that a row holds, None if it holds none."""
    return None if row["numerator"] is None else Fraction(int(row["numerator"]), int(row["denominator"]))


def mean_of(units: Any, rows: int) -> float | None:
    """The mean of what was summed in units."""
    return float(Fraction(int(units), UNIT * rows)) if rows else None
