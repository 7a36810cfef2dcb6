"""Attacks on a sensitive attribute: what the classes of a published table tell of their people's values.

All of them read one histogram `(class_no, value, rows, class_rows)`. A gain is compared with its bound in whole
numbers and fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ldiv_db.categorise import Groups
from ldiv_db.engine import Engine
from ldiv_db.errors import PolicyError, Problem
from ldiv_db.promises import Bounds, Prior, Promise
from ldiv_db.templates import Relation, Value

#: Means are sums of whole units, so that they do not depend on the order of rows.
UNIT = 10**9


@dataclass(frozen=True)
class Gain:
    """What an attacker gains at best, and the most that is promised; None where nothing is.

    `measure` says what the gain is: a share of rows or people, a probability, or a ratio of two. `holds` says
    that the promise is kept.
    """

    measure: str
    gain: float | None
    bound: float | None
    holds: bool

    def as_dict(self) -> dict[str, Any]:
        return {"measure": self.measure, "gain": self.gain, "bound": self.bound, "holds": self.holds}


def gain_of(measure: str, gain: Fraction | None, bound: Fraction | None, kept: bool = True) -> Gain:
    """The gain as a report has it; the promise is kept unless the gain exceeds its bound, or `kept` says so."""
    holds = kept and (gain is None or bound is None or gain <= bound)
    return Gain(measure, None if gain is None else float(gain), None if bound is None else float(bound), holds)


@dataclass(frozen=True)
class Attack:
    """One attack: its gains, and counts that go with them. `sensitive` is None if it is about rows alone.

    `shown` holds rows of the data, for those who may see them.
    """

    name: str
    sensitive: str | None
    gains: tuple[Gain, ...]
    figures: dict[str, Any] = field(default_factory=dict)
    shown: list[dict[str, Any]] | None = None

    @property
    def holds(self) -> bool:
        return all(gain.holds for gain in self.gains)

    def as_dict(self) -> dict[str, Any]:
        found = {
            "attack": self.name,
            "sensitive": self.sensitive,
            "holds": self.holds,
            "gains": [gain.as_dict() for gain in self.gains],
            "figures": self.figures,
        }
        return found if self.shown is None else found | {"shown": self.shown}


@dataclass(frozen=True)
class Target:
    """One sensitive attribute of a table: its histogram, its values' `priors`, and what is promised of it."""

    engine: Engine
    sensitive: str
    histogram: Relation
    priors: Relation
    bounds: Bounds

    @property
    def rows(self) -> int:
        return self.bounds.rows

    def share(self, rows: int) -> Fraction | None:
        """The share of the table that so many rows are."""
        return Fraction(rows, self.rows) if self.rows else None


def make_target(engine: Engine, sensitive: str, histogram: Relation, promise: Promise, groups: Groups | None) -> Target:
    """The target that is attacked; raises PolicyError if a value of the table is of no category."""
    members = _members(engine, groups)
    totals = engine.materialise("totals", "attack/total_values", histogram=histogram)
    if groups:
        unlisted = engine.scalar("attack/count_unlisted", totals=totals, members=members)
        if unlisted:
            what = f"do not list {unlisted:,} of the values of {sensitive}"
            raise PolicyError([Problem("categories", what)])
    priors = _place(engine, totals, members, promise, groups)
    kinds = engine.records("attack/count_priors", priors=priors)
    engine.drop(totals, members)
    return Target(engine, sensitive, histogram, priors, Bounds(promise, [_prior(kind) for kind in kinds]))


def _prior(kind: dict[str, Any]) -> Prior:
    share = Fraction(int(kind["numerator"]), int(kind["denominator"]))
    return Prior(kind["values"], kind["rows"], share, kind["category"])


def _members(engine: Engine, groups: Groups | None) -> Relation:
    """(value, category from 1) of every value that is listed."""
    listed = [(v, i) for i, group in enumerate(groups or (), 1) for v in group if v is not None]
    return engine.load("members", {"value": "VARCHAR", "category": "INTEGER"}, listed)


def _place(engine: Engine, totals: Relation, members: Relation, promise: Promise, groups: Groups | None) -> Relation:
    """Every value with its category and the share promised."""
    columns = {"value": "VARCHAR", "numerator": "HUGEINT", "denominator": "HUGEINT"}
    listed = [(value, share.numerator, share.denominator) for value, share in promise.shares]
    shares = engine.load("shares", columns, listed)
    null_category = next((i for i, group in enumerate(groups or (), 1) if None in group), 1)
    priors = engine.materialise(
        "priors",
        "attack/place_values",
        totals=totals,
        members=members,
        shares=shares,
        null_category=Value(null_category),
        numerator=Value(promise.share.numerator),
        denominator=Value(promise.share.denominator),
    )
    engine.drop(shares)
    return priors


def disclosures(target: Target, groups: Groups | None, excluded: int) -> list[Attack]:
    """All attacks on one sensitive attribute; similarity if there are categories."""
    engine = target.engine
    measures = engine.materialise(
        "measures", "attack/measure_classes", histogram=target.histogram, most=Value(excluded)
    )
    found = [_homogeneity(target, measures)]
    if groups:
        found.append(_similarity(target))
    found += [_skewness(target), _background(target, measures, excluded), _posterior(target)]
    engine.drop(measures)
    return found


def _homogeneity(target: Target, measures: Relation) -> Attack:
    """Rows of classes that have one value: it is told for certain."""
    few = target.engine.record("attack/count_few_values", measures=measures, most=Value(1))
    gain = gain_of("share of rows", target.share(few["rows"]), target.bounds.one_value)
    return Attack("homogeneity", target.sensitive, (gain,), few)


def _similarity(target: Target) -> Attack:
    """Rows of classes whose values are all of one category: that is told for certain ((l,alpha)-diversity)."""
    similar = target.engine.record("attack/count_similar", histogram=target.histogram, priors=target.priors)
    gain = gain_of("share of rows", target.share(similar["rows"]), target.bounds.one_category)
    return Attack("similarity", target.sensitive, (gain,), similar)


def _skewness(target: Target) -> Attack:
    """The value whose share of a class is furthest from its share of the table, as a ratio and as a difference."""
    holes = {"histogram": target.histogram, "priors": target.priors}
    ratios = target.engine.records("attack/find_largest_ratio", **holes)
    differences = target.engine.records("attack/find_largest_difference", total=Value(target.rows), **holes)
    ratio = next((posterior / prior for posterior, prior in map(target_odds(target), ratios)), None)
    difference = next((posterior - prior for posterior, prior in map(target_odds(target), differences)), None)
    gains = (
        gain_of("posterior / prior", ratio, target.bounds.ratio),
        gain_of("posterior - prior", difference, target.bounds.difference),
    )
    return Attack("skewness", target.sensitive, gains)


def target_odds(target: Target) -> Any:
    """Reads (posterior, prior) off a row of counts."""
    return lambda row: (Fraction(row["rows"], row["class_rows"]), Fraction(row["value_rows"], target.rows))


def _background(target: Target, measures: Relation, excluded: int) -> Attack:
    """Who knows `excluded` values that somebody does not have: the worst choice of values, class and person."""
    engine, bounds = target.engine, target.bounds
    few = engine.record("attack/count_few_values", measures=measures, most=Value(excluded + 1))
    posterior = _largest(engine.records("attack/find_surest_class", measures=measures))
    gains = (
        gain_of("posterior", posterior, bounds.excluded(excluded)),
        gain_of("share of rows told for certain", target.share(few["rows"]), bounds.few_values(excluded + 1)),
    )
    return Attack("background knowledge", target.sensitive, gains, {"excluded": excluded, **few})


def _posterior(target: Target) -> Attack:
    """The posterior of every row's true value, given its class."""
    engine = target.engine
    shares = engine.materialise("shares", "attack/list_shares", histogram=target.histogram)
    summary = engine.records("attack/summarise_shares", shares=shares, unit=Value(UNIT))
    deciles = engine.load("deciles", {"decile": "INTEGER"}, [(i,) for i in range(1, 11)])
    found = engine.rows("attack/list_deciles", shares=shares, deciles=deciles, total=Value(target.rows))
    over = engine.record("attack/count_excesses", histogram=target.histogram, priors=target.priors)
    engine.drop(shares, deciles)
    gain = gain_of("posterior", _largest(summary), target.bounds.posterior, kept=not over["rows"])
    figures = {
        "mean": mean_of(summary[0]["mean_units"], target.rows) if summary else None,
        "deciles": [posterior for _, posterior in found],
        "rows_above_promise": over["rows"],
    }
    return Attack("posterior", target.sensitive, (gain,), figures)


def _largest(rows: Sequence[dict[str, Any]]) -> Fraction | None:
    """The fraction that the only row holds, None if there is no row."""
    return next((Fraction(int(row["numerator"]), int(row["denominator"])) for row in rows), None)


def mean_of(units: Any, rows: int) -> float | None:
    """The mean of what was summed in units."""
    return float(Fraction(int(units), UNIT * rows)) if rows else None
