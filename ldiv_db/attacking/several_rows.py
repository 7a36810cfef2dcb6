"""The attack of those who know several rows of one person, where a policy says whose each row of its source is.

They know the quasi-identifiers of two rows of a person, of three, or of all, hence the classes that cover these, and
that they are one person's. The posterior is that of "has the value v in any of these rows". What is open to them is
which rows of the release, the seats, are the person's: every way to seat the known rows is as likely. They use neither
what was required nor how classes were made. Two or three rows of somebody who has more are those that tell most.

`apart` the pool of a row is all classes that cover it. Rows of one pool take different seats of it: none of k has v
with probability C(n - n_v, k) / C(n, k), in a pool of n rows of which n_v have v. Rows of different pools are drawn
independently. That is exact where the pools of somebody's rows are equal or have no class in common, as where each row
fits one class. Where pools overlap, it also counts ways that put two rows on one seat: it is wrong by at most their
share of all ways, at most one over the size of the larger pool for each such pair of rows.

`together` one class covers all rows of a person: the known ones are different seats of it, and a class is as likely as
there are ways to seat them in it. A pseudonym leaves the ways alone in which all seats are one person's; whoever knows
all rows then looks for somebody with just as many.

Where rows are apart, every class is good by its rows: none of m rows is surer to have v than the share that is
promised, so that "in any of them" is at most m times as sure. Where they are together nothing is promised: what is
required bounds what all rows tell, for those who use what was required, or a pseudonym, and do not know how many rows
the person has; these attackers know that, and without a pseudonym hold ways for possible that the requirement rules
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from ldiv_db.attacking.disclosure import AttackedAttribute, place_values
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, mean_of
from ldiv_db.attacking.matching import Matches
from ldiv_db.auditing.counts import Counted
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.settings import Individual
from ldiv_db.requirements.guarantees import Guarantee

Table = Relation | FileRelation
#: How many rows are known, as templates have it (0: all), in words.
_KNOWN = {2: "two", 3: "three", 0: "all"}
#: Ways to seat rows are counted in so many parts of those of the largest class: a sum that no order changes.
_WAYS = 10**15


@dataclass(frozen=True)
class OwnedRows:
    """The rows of a source, and the column that says whose each is; `pseudonym` is that of the policy's release."""

    source: Table
    person: Identifier
    together: bool
    pseudonym: str | None = None


def owned_rows(
    engine: Engine, open_table: Callable[[], Table], whose: Individual, pseudonym: str | None
) -> OwnedRows | None:
    """The rows of a policy's source; None if these, or whose they are, cannot be read."""
    try:
        table = open_table()
        columns = {column.name.lower(): column.name for column in columns_of(engine, table)}
    except PolicyError:
        return None
    person = columns.get(whose.column.lower())
    return None if person is None else OwnedRows(table, Identifier(person), whose.rows == "together", pseudonym)


@dataclass(frozen=True)
class PlacedPeople:
    """People with several rows, by the classes that cover these.

    `kinds` are those whose rows are placed alike; `pools` (cell_no, pool_no, classes) are there if rows are apart.
    Of so many `people` those `tried` had all their rows matched within the budget.
    """

    matches: Matches
    kinds: Relation
    pools: Relation | None
    counts: Counted
    pseudonym: Identifier | None
    people: int
    tried: int


@contextmanager
def placed_people(engine: Engine, owned: OwnedRows, matches: Matches, counts: Counted) -> Iterator[PlacedPeople]:
    """The people of a source, as they were matched with the classes of a release."""
    with engine.scope() as scope:
        every, matched = matches.prefixes.cells, matches.cells
        with read_exactly(engine, owned.source) as people:
            params = {"people": people, "cells": every, "axes": matches.prefixes.axes, "person": owned.person}
            placed = engine.materialise("placed", "attacking/several_rows/place_rows", **params)
        totals = engine.record("attacking/several_rows/count_people", placed=placed, cells=matched)
        pools = None
        if owned.together:
            known = {"placed": placed, "cells": matched, "matches": matches.pairs}
            kinds = engine.materialise("kinds", "attacking/several_rows/list_kinds_together", **known)
        else:
            pools = scope.keep(engine.materialise("pools", "attacking/several_rows/list_pools", matches=matches.pairs))
            known = {"placed": placed, "cells": matched, "pools": pools}
            kinds = engine.materialise("kinds", "attacking/several_rows/list_kinds_apart", **known)
        scope.keep(kinds)
    yield PlacedPeople(matches, kinds, pools, counts, _published(engine, owned, counts.read.table), **totals)
    engine.drop(kinds, *([pools] if pools else []))


def _published(engine: Engine, owned: OwnedRows, table: Table) -> Identifier | None:
    """The column of the pseudonym, if the release has it."""
    name = (owned.pseudonym or "").lower()
    return next((Identifier(c.name) for c in columns_of(engine, table) if c.name.lower() == name), None)


def several_rows(target: AttackedAttribute, found: PlacedPeople, promise: Guarantee) -> Attack:
    """The attack on one sensitive attribute, beside what is promised of a row or, of people, of all theirs."""
    engine = target.engine
    with engine.scope():
        judged = _judged(target, found)
        priors = place_values(engine, target.classes.totals, promise, None)
        params = {"judged": judged, "priors": priors, "unit": Value(UNIT)}
        told = {row["known"]: row for row in engine.records("attacking/several_rows/summarise", **params)}
    promised = max([promise.share, *(s for v, s in promise.shares if v not in target.harmless)])
    bounds_rows = found.pools is not None and promised < 1 and not target.harmless
    gains, figures = [], {}
    for known, words in _KNOWN.items():
        row = told.get(known)
        share = Fraction(int(row["largest"]), UNIT) if row else None
        bound = promised * (known or engine.most(found.kinds, "rows") or 1) if bounds_rows else Fraction(1)
        if share is not None and bound < share < bound + Fraction(1, UNIT):  # it is rounded to units
            share = bound
        measure = f"posterior, {words} rows of a person known"
        gains.append(gain_of(measure, share, bound if bound < 1 else None))
        if row:
            figures[f"{words}_rows_people"] = row["people"]
            figures[f"{words}_rows_one_class"] = row["one_class"]
            figures[f"{words}_rows_mean"] = mean_of(row["total"], row["people"])
            figures |= {f"{words}_rows_above": row["above"]} if promised < 1 else {}
    if promised < 1:
        figures["share_promised"] = float(promised)
    attack = Attack("several rows", target.sensitive, tuple(gains), figures)
    return attack.with_untried("people", found.tried, found.people)


def _judged(target: AttackedAttribute, found: PlacedPeople) -> Relation:
    """(kind_no, people, classes, known, value, posterior): every value that somebody of a kind may have."""
    engine, histogram, kinds = target.engine, target.histogram, found.kinds
    if found.pools is not None:
        params = {"pools": found.pools, "matches": found.matches.pairs, "histogram": histogram}
        seats = engine.materialise("seats", "attacking/several_rows/list_seats", **params)
        return engine.materialise("judged", "attacking/several_rows/judge_apart", kinds=kinds, seats=seats)
    if found.pseudonym is None:
        groups = engine.select("groups", histogram, "class_no", ("class_no", "group_no"), "value", "rows")
    else:
        groups = engine.materialise(
            "groups",
            "attacking/several_rows/list_groups",
            published=found.counts.read.table,
            class_columns=found.counts.columns,
            sensitive=target.sensitive,
            person=found.pseudonym,
        )
    return engine.materialise(
        "judged",
        "attacking/several_rows/judge_together",
        kinds=kinds,
        groups=groups,
        unit=_WAYS,
        linked=found.pseudonym is not None,
    )
