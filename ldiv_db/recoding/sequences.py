"""People whose rows are published in their order: a table for each number of rows, in which a person is one unit.

A person publishes a number of rows that may be less than what they have. Which ones, and which of equal rows comes
first, a secret draws: a sequence in the order of its values would tell whose it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import Encoded, Renamed, SensitiveAxis
from ldiv_db.recoding.units import POSITION, Level, Units, units_of

#: How many rows people publish, by how many they have.
Lengths = Mapping[int, int]
#: The column of encoded rows by which those of a person are put into their order.
_ORDER = Identifier("o1")


def first_lengths(rows: Encoded, most: int | None) -> tuple[Lengths, Counter[int]]:
    """All rows of everybody, or `most` of those who have more, and how many people publish each number of rows."""
    assert rows.individual is not None  # noqa: S101 - the caller has looked
    people = Counter[int]()
    for number in rows.individual.distribution.counts:
        people[min(number, most or number)] += 1
    return {number: min(number, most or number) for number in set(rows.individual.distribution.counts)}, people


def aligned_units(
    engine: Engine,
    rows: Encoded,
    lengths: Lengths,
    secret: str,
    position: str,
    compares: bool,
    only: Collection[int] | None = None,
) -> Units:
    """The units of an encoded table, whose people publish so many rows, each with its number under that name.

    `compares`: classes are compared with all people, so that their values are counted alike whatever people publish.
    With `only` there are no other levels.
    """
    assert rows.individual is not None  # noqa: S101 - the caller has looked
    with engine.scope() as scope:
        listed = engine.load("lengths", {"rows": "BIGINT", "published": "BIGINT"}, list(lengths.items()))
        known = {"rows": rows.rows, "axes": rows.axes, "person": rows.individual.code}
        params = {**known, "lengths": listed, "order": _ORDER, "secret": secret}
        placed = engine.materialise("placed", "recoding/input/align_rows", **params)
        shown = (("level", "level"), ("position", POSITION.name))
        numbered = engine.join("rows", rows.rows, placed, "row_id", right_columns=shown)
        kept = (*rows.kept, Renamed(Identifier(position), POSITION))
        rows = replace(rows, rows=numbered, kept=kept)
        published = engine.select("published", numbered, where=[Where(POSITION.name, None, "<>")])
        whole = units_of(engine, replace(rows, rows=published), together=True)
        where_placed = {"left_columns": ["row_id", "unit_id"], "right_columns": [POSITION.name]}
        members = engine.join("members", whole.members, published, "row_id", **where_placed)
        levels = []
        for length in sorted({n for n in lengths.values() if only is None or n in only}, reverse=True):
            own = replace(rows, rows=engine.select("level", published, where=[Where("level", length)]))
            levels.append(_level(engine, own, length, whole, compares))
        left_out = rows.row_count - engine.count(published)
        encoded = replace(whole.encoded, spans=True)  # whoever publishes several rows has several labels
        units = Units(rows, encoded, members, True, tuple(levels), left_out)
        for relation in relations_of(units):
            scope.keep(relation)
        return units


def _level(engine: Engine, rows: Encoded, length: int, whole: Units, compares: bool) -> Level:
    """The people of these rows, who publish so many each, with their numbers among all."""
    bagged = compares and any(axis.bags for axis in whole.encoded.sensitive)
    codes = [*(axis.code for axis in rows.axes), *(axis.code for axis in rows.sensitive)]
    every = dict.fromkeys(codes, range(1, length + 1))
    units = units_of(engine, rows, together=True, positions=every, bagged=bagged)
    both = {"left_columns": [("unit_id", "row_id")], "right_columns": [("unit_id", "whole_id")]}
    pairs = engine.join("pairs", units.members, whole.members, "row_id", **both)
    numbers = engine.select("numbers", pairs, "row_id", "whole_id", distinct=True)
    encoded = units.encoded
    if compares:
        of_people = len(whole.encoded.sensitive)  # what follows is of positions
        pairs_of = zip(encoded.sensitive, whole.encoded.sensitive, strict=False)
        compared = [_compared(own, among) for own, among in pairs_of]
        encoded = replace(encoded, sensitive=(*compared, *encoded.sensitive[of_people:]))
    return Level(length, encoded, numbers)


def _compared(own: SensitiveAxis, whole: SensitiveAxis) -> SensitiveAxis:
    """The attribute of a level, its classes compared with all people."""
    if own.bags is None or whole.bags is None:
        return replace(own, whole=whole.reference)
    scale = own.bags.scale if whole.bags.scale else 0
    return replace(own, bags=replace(own.bags, scale=scale, whole=whole.bags.whole, shares=whole.bags.shares))


def lowered(lengths: Lengths, level: int) -> Lengths:
    """The same where people who publish so many rows publish one fewer."""
    return {rows: length - (length == level) for rows, length in lengths.items()}


def relations_of(units: Units) -> list[Relation]:
    """The tables that aligned units are made of."""
    found = [units.rows.rows, units.members]
    for encoded in (units.encoded, *(level.encoded for level in units.levels)):
        found += encoded.tables
    return list(dict.fromkeys([*found, *(level.numbers for level in units.levels)]))
