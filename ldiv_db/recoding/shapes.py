"""People by how many rows they publish in each of several tables: whoever has equally many has one shape.

The rows of a person are a tree, of those of each table and of the rows that belong to each of these. Its places are
paths of tables and turns. People of one shape have a row in each of its places, and are a level of their own; those of
a shape that too few have publish fewer rows, the first ones of each table, as others do. What is left out depends on
numbers of rows and on their order, never on a sensitive value.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.recoding.levels import Level
from ldiv_db.recoding.stacked import Stack
from ldiv_db.recoding.units import POSITION, Units, units_of

#: What the people of a level publish, and of which shapes they are.
LevelKey = tuple[int, tuple[int, ...]]
#: A row that is left out loses what its quasi-identifiers weigh, and 1 a sensitive value, in these units; or 1.
ROW_UNIT = 10**6
#: (position, member) of the rows of each level's people; those that stand together have one position.
Places = Mapping[int, Sequence[tuple[int, int]]]


class Option(NamedTuple):
    """What is left of a shape: how many rows, what it is then, the caps that leave it, and what its rows could lose."""

    rows: int
    kept: int
    cap: int
    weight: int


#: What the people of each shape publish.
Chosen = Mapping[int, Option]


@dataclass(frozen=True)
class Need:
    """The column of the turn of a member that leads to a row, and of the next lower number of rows that may be kept."""

    number: int

    column = NamedAfter("need_{0.number}")
    before = NamedAfter("before_{0.number}")


@dataclass(frozen=True)
class Below:
    """A member whose rows belong to those of the member `above`, and what their counts are called."""

    number: int
    above: int

    alias = NamedAfter("below_{0.number}")


@dataclass(frozen=True)
class Standing:
    """Where the rows of people stand: the rows in their places (`placed`), and the shape of each person.

    `spots` are the rows of one person of each shape, `paths` is (path, place), `left` (kept, places).
    """

    placed: Relation
    of_people: Relation
    spots: Relation
    paths: Relation
    left: Relation

    @property
    def relations(self) -> list[Relation]:
        """The tables that it refers to."""
        return [self.placed, self.of_people, self.spots, self.paths, self.left]


@dataclass(frozen=True)
class Shapes:
    """Where the rows of people stand (`at`), and what people may keep of theirs.

    `people` counts those of each shape, `options` are what is left of it with labels, most rows first; `caps` are rows
    of turns, by number. `kept` shapes have one number whatever they are left of. `seen` has the options of shapes that
    people had before they gave up rows as well.
    """

    at: Standing
    needs: Sequence[Need]
    caps: Sequence[tuple[int, ...]]
    people: Mapping[int, int]
    options: Mapping[int, Sequence[Option]]
    seen: Mapping[int, Sequence[Option]]
    #: What no level may be: its people cannot meet what is required.
    banned: frozenset[int] = frozenset()
    #: The shapes to which people came who gave up rows last.
    moved: frozenset[int] = frozenset()
    #: By what ties are broken, how many rows of a table people publish at most, and the members of whose rows come
    #: first to which most rows belong.
    secret: str = ""
    most: int | None = None
    busiest: frozenset[int] = frozenset()

    @property
    def whole(self) -> Chosen:
        """All rows that people may publish."""
        return {shape: options[0] for shape, options in self.options.items()}

    def rows_of(self, kept: int) -> int:
        """How many rows people have who are left with that."""
        return next(one.rows for options in self.options.values() for one in options if one.kept == kept)

    def count(self, chosen: Chosen) -> int:
        """How many rows all people publish."""
        return sum(self.people[shape] * option.rows for shape, option in chosen.items())

    def weight(self, chosen: Chosen) -> int:
        """What these rows would lose if they were left out."""
        return sum(self.people[shape] * option.weight for shape, option in chosen.items())

    def cap_of(self, shape: int, kept: int) -> Sequence[int]:
        """How many rows of each member people of a shape keep at most who are left with that."""
        return self.caps[next(one.cap for one in self.options[shape] if one.kept == kept)]

    def without(self, kept: Collection[int]) -> Shapes:
        """The same where no people publish one of these."""
        return replace(self, banned=self.banned | set(kept))

    def alone(self, stack: Stack) -> set[int]:
        """The members of people of which nobody has two rows."""
        if self.most is not None:
            return set()
        most = [max(cap) for cap in zip(*self.caps, strict=True)]
        return {one.number for one, rows in zip(stack.members, most, strict=True) if not one.above and rows <= 1}


def levels_of(chosen: Chosen) -> list[LevelKey]:
    """What people publish, with their shapes: most rows first."""
    found: dict[tuple[int, int], list[int]] = {}
    for shape, option in sorted(chosen.items()):
        found.setdefault((-option.rows, option.kept), []).append(shape)
    return [(kept, tuple(found[rows, kept])) for rows, kept in sorted(found)]


def levels_made(engine: Engine, stack: Stack, published: Relation, places: Places, bagged: bool = False) -> list[Level]:
    """The people of each level that has published rows as units, whose codes are those of bags if they are `bagged`."""
    with engine.scope() as scope:
        levels = [_level(engine, stack, published, level, sorted(places[level]), bagged) for level in sorted(places)]
        for relation in (relation for level in levels for relation in level.tables):
            scope.keep(relation)
    return levels


def shaped_units(engine: Engine, stack: Stack, published: Relation, levels: Sequence[Level]) -> Units:
    """The units of all people, each of whom is in one of these levels."""
    of_rows = ("row_id", ("p1", "unit_id"), POSITION.name, "own_id", "member", "turn")
    members = engine.select("members", published, *of_rows)
    largest = max(levels, key=lambda level: level.encoded.row_count)
    left_out = stack.encoded.row_count - engine.count(members)
    return Units(stack.encoded, largest.encoded, members, True, tuple(levels), left_out)


def published_rows(engine: Engine, stack: Stack, shapes: Shapes, keys: Sequence[LevelKey]) -> tuple[Relation, Places]:
    """The rows that people publish in each level, by its place among these, and (position, member) of those of each.

    Whoever is in several levels has rows in all of them.
    """
    columns = {"shape_no": "BIGINT", "level": "BIGINT"} | {n.column.name: "BIGINT" for n in shapes.needs}
    listed = [(s, level, *shapes.cap_of(s, kept)) for level, (kept, own) in enumerate(keys) for s in own]
    codes = [*stack.encoded.codes, *(axis.code.name for axis in stack.encoded.sensitive), "own_id"]
    at = shapes.at
    params = {"placed": at.placed, "needs": shapes.needs, "shapes": at.of_people, "spots": at.spots}
    params |= {"rows": stack.encoded.rows, "codes": [Identifier(code) for code in codes], "position": POSITION}
    with engine.scope() as scope:
        chosen = engine.load("chosen", columns, listed)
        published = scope.keep(engine.materialise("published", "recoding/tables/keep_rows", chosen=chosen, **params))
    people, places = [sum(shapes.people[shape] for shape in own) for _, own in keys], dict[int, list[tuple[int, int]]]()
    for level, position, member, rows in engine.tally(published, "level", POSITION.name, "member"):
        places.setdefault(level, []).extend([(position, member)] * (rows // people[level]))
    return published, places


def _sensitive(stack: Stack, members: Collection[int]) -> tuple[SensitiveAxis, ...]:
    """The sensitive columns of the members, by number; what all rows have alike if there are none."""
    every = stack.encoded.sensitive
    return tuple(a for a in every if (own := stack.own(a)) and own.number in members) or every[-1:]


def _level(
    engine: Engine, stack: Stack, published: Relation, level: int, places: Sequence[tuple[int, int]], bagged: bool
) -> Level:
    """The people of a level, who have a row of each member in its positions (position, member)."""
    rows = engine.select("level", published, where=[Where("level", level)])
    positions = {
        code: [position for position, member in places if member == owner.number]
        for code, owner in stack.owners.items()
    }
    whole = stack.encoded
    axes = tuple(axis for axis in whole.axes if positions[axis.code])
    sensitive = _sensitive(stack, {member for _, member in places})
    units = units_of(engine, replace(whole, rows=rows, axes=axes, sensitive=sensitive), True, positions, bagged)
    own, keys = units.encoded.rows, ("first_id", "row_id")
    numbers = engine.join("numbers", own, rows, keys, left_columns=["row_id"], right_columns=[("p1", "whole_id")])
    return Level(len(places), units.encoded, numbers, positions)


def compared(own: Encoded, whole: Encoded) -> Encoded:
    """The people of a level, whose classes are compared with all people who have a value of an attribute."""
    among = {axis.code: axis for axis in whole.sensitive}  # those of positions are not compared
    found = (_compared(axis, among[axis.code]) if axis.code in among else axis for axis in own.sensitive)
    return replace(own, sensitive=tuple(found))


def _compared(own: SensitiveAxis, whole: SensitiveAxis) -> SensitiveAxis:
    if own.bags is None or whole.bags is None:
        return replace(own, whole=whole.reference)
    scale = own.bags.scale if whole.bags.scale else 0
    return replace(own, bags=replace(own.bags, scale=scale, whole=whole.bags.whole, shares=whole.bags.shares))
