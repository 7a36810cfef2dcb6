"""Units: whom requirements protect. People in place of rows, each with the values that they have as one bag.

`together` a person is one unit, whose quasi-identifiers span the codes of all their rows; `apart` the rows of a person
that agree on all codes are one, and its bag has a value as often as rows have it. Algorithms see a unit as they see a
row: a code of each quasi-identifier, and one of each sensitive attribute, which stands for a bag of values where
somebody has several. A quasi-identifier that varies within a unit is two to them, its lowest and its highest code, each
of half its weight: classes that keep both narrow keep narrow what covers all rows. `aligned` the people who publish
equally many rows are a table of their own (`shapes.py`), in which it is one for each position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, NamedTuple

from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.axes import counted_among
from ldiv_db.recoding.bags import Bags, person_units
from ldiv_db.recoding.encoded import Axis, Encoded, Renamed, SensitiveAxis
from ldiv_db.recoding.levels import HIGHEST, Level, Positions, name_at
from ldiv_db.requirements import Distribution, RequirementSpec

#: The columns of pseudonyms of encoded rows, and of their positions among those of the person.
PERSON_NO, POSITION = Identifier("person_no"), Identifier("position_no")


class GivenUp(NamedTuple):
    """How many rows people give up as one value is too frequent where it is, and how many people must, by counts."""

    rows: int
    people: int


@dataclass(frozen=True)
class Units:
    """The units of an encoded table: `encoded` has them in place of rows, `members` is (row_id, unit_id) of all `rows`.

    `together`: all rows of a person are one unit. Where these are aligned `members` are those that are published, each
    with its position, and `levels` has the people by how many they publish, most first; `left_out` rows are not.
    """

    rows: Encoded
    encoded: Encoded
    members: Relation
    together: bool
    levels: tuple[Level, ...] = ()
    left_out: int = 0
    #: What is among these for another reason than numbers of rows.
    given_up: GivenUp = GivenUp(0, 0)  # noqa: RUF009 - frozen

    @property
    def width(self) -> int:
        """How far the numbers of people's classes are apart as those of rows, which have one for each position."""
        return 1 + max(level.last for level in self.levels)

    def assign_rows(self, engine: Engine, assigned: Relation) -> Relation:
        """(row_id, class_id) of all rows, each with the class of its unit in (row_id, class_id) of units.

        Where rows are aligned it is that of its position in the unit's class.
        """
        if self.levels:
            params = {"members": self.members, "assigned": assigned, "position": POSITION, "width": self.width}
            return engine.materialise("assigned", "recoding/input/part_positions", **params)
        keys = ("unit_id", "row_id")
        return engine.join(
            "assigned", self.members, assigned, keys, left_columns=["row_id"], right_columns=["class_id"]
        )


@dataclass(frozen=True)
class Link:
    """A column of encoded `rows` that links them to people (`space` 0) or to rows of a table, `shown` by new numbers.

    `assigned` has those that are published.
    """

    number: int
    rows: Relation
    assigned: Relation
    column: Identifier
    space: int
    shown: Renamed


def with_numbers(
    engine: Engine, tables: Sequence[tuple[Encoded, Sequence[Link]]], secret: str, last: int = 0
) -> list[Encoded]:
    """The encoded tables with what their links are published as: numbers of what is published, drawn by a secret.

    They follow the `last` number that was published before.
    """
    every = [link for _, links in tables for link in links]
    numbers = engine.materialise("numbers", "recoding/input/number_links", links=every, secret=secret, last=last)
    return [_with_numbers(engine, encoded, links, numbers) for encoded, links in tables]


def _with_numbers(engine: Engine, encoded: Encoded, links: Sequence[Link], numbers: Relation) -> Encoded:
    rows, kept = encoded.rows, list(encoded.kept)
    for link in links:
        own = engine.select("own", numbers, "row_id", "number", where=[Where("link", link.number)])
        rows = engine.join("rows", rows, own, "row_id", right_columns=[("number", link.shown.alias.name)])
        place = next((n for n, one in enumerate(kept) if one.alias in (link.column, POSITION)), len(kept))
        replaced = [one for one in kept[place : place + 1] if one.alias == link.column]
        kept[place : place + len(replaced)] = [link.shown]
    return replace(encoded, rows=rows, kept=tuple(kept))


def asking_each(rows: Encoded, specs: Iterable[RequirementSpec]) -> Encoded:
    """The encoded table whose sensitive attributes say whether something is asked of them at each position."""
    each = [spec for spec in specs if spec.each]
    asked = (any(spec.concerns(axis.column.name) for spec in each) for axis in rows.sensitive)
    sensitive = (replace(axis, each=told and axis.is_said) for axis, told in zip(rows.sensitive, asked, strict=True))
    return replace(rows, sensitive=tuple(sensitive))


def units_of(
    engine: Engine, rows: Encoded, together: bool, positions: Positions | None = None, bagged: bool = False
) -> Units:
    """The units of an encoded table whose rows say whose they are.

    Where everybody has a row in each of some `positions`, a quasi-identifier that varies is one for each of its own. So
    is, beside all values as a bag, a sensitive attribute of which something is asked at each. If `bagged` codes are
    those of bags even where nobody has several values.
    """
    positions = positions or {}
    assert rows.individual is not None  # noqa: S101 - the caller has looked
    held = [_Bagged(axis, axis.code, always=bagged) for axis in rows.sensitive]
    for axis in (axis for axis in rows.sensitive if axis.each):
        every = enumerate(positions.get(axis.code, ()), 1)
        held += [_Bagged(axis.at(turn), axis.code, position=position) for turn, position in every]
    known = {"rows": rows.rows, "axes": rows.axes, "person": rows.individual.code, "together": together}
    places = [place for axis in rows.axes for place, _ in _places(axis, positions.get(axis.code, ()))]
    flow = EngineFlow(engine, "recoding/input", places=places, position=POSITION if positions else None, **known)
    with engine.scope() as scope:
        flow.step("units", "list_bags", bags=held)
        coded = list(_coded_axes(flow, rows.axes, positions) if together else ((a.low, a) for a in rows.axes))
        bags = [found.numbered_by(flow) for found in held]
        codes = [{"column": column, "code": axis.code} for column, axis in coded]
        table = flow.step("numbered", "number_units", codes=codes, sensitive=bags)
        members = flow.step("members", "place_units")
        sensitive = tuple(found.axis(flow) for found in bags)
        for relation in [table, members, *(relation for axis in sensitive for relation in axis.tables)]:
            scope.keep(relation)
    encoded = replace(
        rows,
        rows=table,
        axes=tuple(axis for _, axis in coded),
        sensitive=sensitive,
        kept=(),
        rows_in=engine.count(table),
        left_out=0,
        individual=None,
        of_people=together,
    )
    return Units(rows, encoded, members, together)


@dataclass(frozen=True)
class _Place:
    """A quasi-identifier at a position of the rows of a person, and the column of units that has its code.

    That is the lowest (`min`) or the highest (`max`) of rows that stand together there; `turn` counts positions.
    """

    axis: Axis
    number: int
    turn: int
    end: Literal["min", "max"] = "min"

    column = NamedAfter("{0.axis.code.name}_{0.end}_{0.number}")

    @property
    def name(self) -> str:
        """What it is called among the axes of a level."""
        return name_at(self.axis.name, self.turn) + (HIGHEST if self.end == "max" else "")


def _places(axis: Axis, positions: Sequence[int]) -> Iterator[tuple[_Place, float]]:
    """A quasi-identifier at each of the positions that it has, and how many rows count by its code there."""
    for turn, (position, rows) in enumerate(Counter(positions).items(), 1):
        yield _Place(axis, position, turn), rows if rows == 1 else rows / 2
        if rows > 1:
            yield _Place(axis, position, turn, "max"), rows / 2


def _coded_axes(flow: EngineFlow, axes: Sequence[Axis], positions: Positions) -> Iterable[tuple[Identifier, Axis]]:
    """The axes of units that are people, each with the column of its codes; first those that are called as of rows.

    A quasi-identifier that varies within some unit is the axes of the lowest and of the highest codes, or one for each
    of its `positions`.
    """
    if not axes:
        return
    vary = flow.record("count_wide")
    unused = count(1 + max(int(axis.code.name.removeprefix("q")) for axis in axes))  # some columns may be left out
    more = list[tuple[Identifier, Axis]]()
    for axis in axes:
        own = positions.get(axis.code, ())
        if not vary[axis.code.name]:
            cells = max(1, len(own))
            yield axis.low, replace(axis, weight=axis.weight * cells, cells=cells)
        elif own:
            equal = 1 - vary[axis.code.name] / flow.engine.count(flow["units"])
            alike = 1 + (len(own) - 1) * equal
            (first, rows), *others = _places(axis, own)
            yield first.column, replace(axis, weight=axis.weight * rows, alike=alike)
            for place, rows in others:
                known = {"weight": axis.weight * rows, "alike": alike, "code": Identifier(f"q{next(unused)}")}
                found = replace(axis, column=Identifier(place.name), **known)
                more.append((place.column, found if place.end == "min" else _highest(found)))
        else:
            half, named = axis.weight / 2, Identifier(axis.name + HIGHEST)
            yield axis.low, replace(axis, weight=half)
            last = replace(axis, column=named, code=Identifier(f"q{next(unused)}"), weight=half)
            more.append((axis.high, _highest(last)))
    yield from more


def _highest(axis: Axis) -> Axis:
    """The axis of the highest codes, whose labels nobody sees."""
    return replace(axis, domain=None)


@dataclass(frozen=True)
class _Bagged:
    """A sensitive attribute as units have it, with the columns of a unit for its bag and the first of its values.

    Rows have its codes in the column `told`; with a `position` it is that of the rows there.
    `held` is how many codes a bag has. `numbered` are the bags; `is_single`: every bag is one value, whose code it then
    has, unless bags are asked for `always`, or rows have sets.
    """

    attribute: SensitiveAxis
    told: Identifier
    position: int | None = None
    numbered: Relation | None = None
    is_single: bool = False
    always: bool = False

    first = NamedAfter("{0.code.name}_first")
    held = NamedAfter("{0.code.name}_held")

    def numbered_by(self, flow: EngineFlow) -> _Bagged:
        """The same with its bags numbered."""
        numbered = flow.step("bags", "number_bags", bag=self)
        is_single = not (self.always or self.attribute.bags) and (flow.engine.most(numbered, "held") or 1) == 1
        return replace(self, numbered=numbered, is_single=is_single)

    @property
    def code(self) -> Identifier:
        return self.attribute.code

    @property
    def table(self) -> Identifier:
        return self.attribute.table

    @property
    def number(self) -> Identifier:
        """The column of the bags' codes."""
        return Identifier("first" if self.is_single else "code")

    def axis(self, flow: EngineFlow) -> SensitiveAxis:
        """The attribute by the codes of values, or of bags."""
        engine, attribute, numbered = flow.engine, self.attribute, self.numbered
        assert numbered is not None  # noqa: S101 - bags are numbered first
        if self.is_single:
            return counted_among(engine, flow["numbered"], attribute)
        there = [Where(POSITION.name, self.position)] if self.position else []
        rows = engine.select("own", flow["rows"], where=there) if there else flow["rows"]
        together, sets = flow["together"], attribute.bags
        known = {"rows": rows, "key": self.told, "dictionary": attribute.coded}
        weighed = sets.scale if sets and not together else None
        listed = flow.step("listed", "list_bag_values", bags=numbered, scale=weighed or None, **known)
        scale = person_units([size for size, _ in engine.tally(listed, "size")])
        whole = flow.step("counted", "count_people_values", scale=scale, **known)
        dictionary = engine.select("dictionary", numbered, "value", "rows", "code")
        bags = Bags.of(engine, listed, scale, whole)
        found = by_bags(engine, attribute, dictionary, bags, engine.count(flow["numbered"]))
        assert found.bags is not None  # noqa: S101 - they were made
        if not together:
            shares = sets.shares if sets and weighed else None
            found = replace(found, bags=replace(found.bags, rows=attribute.values, row_shares=shares))
        return replace(found, own=None)


def counted_by_members(engine: Engine, attribute: SensitiveAxis) -> SensitiveAxis:
    """The attribute of sets, whose codes are those of the members of each: rows have them as people have a bag."""
    listed = engine.materialise("listed", "recoding/input/list_members", dictionary=attribute.dictionary)
    scale = person_units([size for size, _ in engine.tally(listed, "size")])
    whole = engine.materialise("counted", "recoding/input/count_members", listed=listed, scale=scale)
    codes = engine.select("codes", attribute.dictionary, ("code", "value"), "rows", "code")
    bags = Bags.of(engine, listed, scale, whole)
    found = by_bags(engine, attribute, codes, bags, engine.total(codes, "rows"))
    return replace(found, dictionary=attribute.dictionary, whole=codes)


def by_bags(engine: Engine, attribute: SensitiveAxis, dictionary: Relation, bags: Bags, people: int) -> SensitiveAxis:
    """The attribute by the codes of bags of so many people."""
    counts = sorted(engine.column(bags.whole, "rows"), reverse=True)
    # Who has several values is counted as often, which is taken back: the rows of a distribution are the people.
    distribution = Distribution(counts, people - sum(counts))
    counted = replace(attribute, dictionary=dictionary, distribution=distribution, bags=bags)
    return replace(counted, judged=None, spared=None, whole=None)
