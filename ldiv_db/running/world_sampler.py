"""Worlds that a release leaves open to an attacker who has the program and the policy, and the method to try them.

All worlds are tried where they are few, else those of some classes, drawn by coins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from ldiv_db.attacking.covering import LabelAxis, known_axes
from ldiv_db.attacking.matching import matched
from ldiv_db.attacking.replay import Cell, SampledWorlds, World, WorldSet, arrange, consistent_worlds
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.recode import SpanColumn

#: The number of a row, which goes along with it wherever its values go.
ROW_NO = Renamed(Identifier("row_no"), Identifier("row_no"))


@dataclass(frozen=True)
class ComparedTable:
    """A table of a release, and the columns in which it is compared with the same table of another."""

    table: Relation | FileRelation
    columns: Sequence[Identifier]


@dataclass(frozen=True)
class MadeRelease:
    """The release that the method made of a world: rows (row_id, row_no, ...), their classes, and the tables.

    `assigned` is (row_id, `class_id`), `blanked` (class_id, code) are values of the first sensitive attribute that are
    published as NULL. Rows of classes with labels (class_id, label_rank, the columns `shown`) fit all
    classes whose labels cover them.
    """

    rows: Relation
    assigned: Relation
    class_id: Identifier
    tables: Sequence[ComparedTable]
    labels: Relation | None = None
    shown: Sequence[SpanColumn] = ()
    blanked: Relation | None = None


@dataclass(frozen=True)
class NumberedPeople:
    """The source's rows: `relation` has their working columns, row_no and payload_no, `donors` a row a payload.

    `known` are the columns that the attacker knows of everybody, `told` those that a world gives out anew.
    """

    engine: Engine
    relation: Relation
    donors: Relation
    known: Sequence[Identifier]
    told: Sequence[Identifier]

    def world(self, moves: Relation, number: int) -> Relation:
        """The source's copy as it would be in a world; `moves` (world_no, row_no, payload_no) say what is otherwise."""
        return self.engine.materialise(
            "world",
            "running/replaying/list_world",
            people=self.relation,
            donors=self.donors,
            moves=moves,
            known=self.known,
            told=self.told,
            world=number,
        )


def number_people(engine: Engine, snapshot: Relation, told: str, key: Renamed | None) -> NumberedPeople:
    """The rows of a source's copy; columns whose names begin with a letter of `told` are given out by worlds."""
    columns = [Identifier(column.name) for column in columns_of(engine, snapshot)]
    parts = {
        "known": [column for column in columns if column.name[0] not in told],
        "told": [column for column in columns if column.name[0] in told],
    }
    people = engine.materialise("people", "running/replaying/number_people", snapshot=snapshot, key=key, **parts)
    donors = engine.group("donors", people, "payload_no", row_no=("min", "row_no"))
    return NumberedPeople(engine, people, donors, **parts)


@dataclass
class Method(ABC):
    """A policy and its source, read once; it makes the release of any world, by any seed.

    `release` are the tables that were published, `axes` the labels in it, if it has some.
    """

    engine: Engine
    resolved: Resolved
    people: NumberedPeople
    release: Sequence[ComparedTable]
    axes: Sequence[LabelAxis]

    @abstractmethod
    def make(self, world: Relation, seed: int) -> MadeRelease:
        """The release that the program makes of a world; raises InfeasibleError if there is none."""

    def gives_release(self, world: Relation, seed: int) -> bool:
        """True if the program makes of a world what was published."""
        try:
            made = self.make(world, seed)
        except InfeasibleError:
            return False
        return self.is_release(made)

    def is_release(self, made: MadeRelease) -> bool:
        """True if that is what was published."""
        if len(made.tables) != len(self.release):
            return False
        return not any(
            self.engine.scalar("publishing/count_unlike", one=one.table, other=other.table, columns=other.columns)
            for one, other in zip(made.tables, self.release, strict=True)
        )


#: From so many rows on nobody asks whether all worlds can be tried.
_FEW_ROWS = 500
#: The most worlds of a class that are tried, and the most rows and worlds that are written down for it.
_MOST_WORLDS, _MOST_MOVES = 64, 200_000
#: Draws classes and worlds: figures are the same whenever they are worked out again.
_COINS = 0
#: Working names of what an anatomised release shows of people begin so.
_SHOWN = "qk"
#: The codes of the first sensitive attribute.
_FIRST = Identifier("s1")


def sample_worlds(method: Method, made: MadeRelease, most: int) -> SampledWorlds:
    """Worlds to try of the release that was `made` of the source, about `most` of them."""
    engine = method.engine
    placed = engine.materialise(
        "placed",
        "running/replaying/place_rows",
        people=method.people.relation,
        rows=made.rows,
        assigned=made.assigned,
        labels=made.labels,
        class_id=made.class_id,
        blanked=made.blanked,
        blank=_FIRST,
    )
    return _all_worlds(method, made, placed, most) or _draw_worlds(engine, placed, most)


# -- all worlds ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _UndecidedRows:
    """Rows whose payload the release leaves open, what each fits, and the cells left; of others it is sure."""

    rows: dict[int, set[int]]
    cells: Mapping[Cell, int]
    sure: Sequence[int]


def _all_worlds(method: Method, made: MadeRelease, placed: Relation, most: int) -> SampledWorlds | None:
    """One set of every world that the release leaves open; None if they are more than `most`."""
    engine = method.engine
    if engine.count(placed) > _FEW_ROWS:
        return None
    counted = engine.materialise("cells", "running/replaying/count_cells", placed=placed)
    listed = engine.columns(counted, "place_no", "payload_no", "rows")
    cells = {(place, payload): rows for place, payload, rows in listed}
    fits: dict[int, set[int]] = defaultdict(set)
    found = _possible_places(method, made, placed)
    if made.blanked is not None:
        found = engine.materialise("fits", "running/replaying/list_hidden_fits", fits=found, placed=placed)
    for row, place in engine.columns(found, "row_no", "place_no"):
        fits[row].add(place)
    left = _open_rows_and_cells(fits, cells)
    worlds = consistent_worlds(list(left.rows.values()), left.cells, most)
    if worlds is None:
        return None
    true = dict(engine.columns(placed, "row_no", "payload_no"))
    sets = [_world_set(rows, worlds, true) for rows, worlds in ((left.rows, worlds), (left.sure, None)) if rows]
    return SampledWorlds(sets, True)


def _world_set(rows: Iterable[int], worlds: list[World] | None, true: Mapping[int, int]) -> WorldSet:
    """Rows with their worlds, all alike; with the true one alone if there are no others."""
    payloads = tuple(true[row] for row in rows)
    tried = worlds or [payloads]
    return WorldSet(list(rows), payloads, tried, [1] * len(tried))


def _open_rows_and_cells(fits: Mapping[int, set[int]], cells: Mapping[Cell, int]) -> _UndecidedRows:
    """The rows and cells that the release leaves open: a row that fits one place, all of one payload, has that."""
    payloads: dict[int, list[int]] = defaultdict(list)
    for place, payload in cells:
        payloads[place].append(payload)
    sure: dict[int, Cell] = {}
    for row, places in sorted(fits.items()):
        (place, *others) = places
        if not others and len(payloads[place]) == 1:
            sure[row] = (place, payloads[place][0])
    left = Counter(cells) - Counter(sure.values())
    rows = {row: places for row, places in sorted(fits.items()) if row not in sure}
    return _UndecidedRows(rows, left, list(sure))


def _possible_places(method: Method, made: MadeRelease, placed: Relation) -> Relation:
    """(row_no, place_no): where the attacker, who knows what people are known by, may look for them."""
    engine, people = method.engine, method.people
    if made.labels is None:
        shown = [column for column in people.known if column.name[0] in _SHOWN]
        template = "running/replaying/list_fits_of_people"
        return engine.materialise("fits", template, people=people.relation, placed=placed, shown=shown)
    places = engine.select(
        "places", made.labels, *(one.alias.name for one in made.shown), ("label_rank", "class_no"), distinct=True
    )
    aliases = iter(made.shown)
    axes = [
        replace(axis, name=f"q{number}", columns=tuple(next(aliases).alias for _ in axis.columns))
        for number, axis in enumerate(method.axes, 1)
    ]
    known = known_axes(axes, columns_of(engine, people.relation), "source")
    with matched(engine, places, known, people.relation) as found:
        return engine.materialise(
            "fits",
            "running/replaying/list_fits_of_labels",
            people=people.relation,
            cells=found.cells,
            matches=found.pairs,
            axes=known,
            placed=placed,
        )


# -- drawn classes -------------------------------------------------------------------------------------


def _draw_worlds(engine: Engine, placed: Relation, most: int) -> SampledWorlds:
    """Classes drawn by coins, each a set of worlds: its rows may have any of their payloads, all else is known."""
    coins = Random(_COINS)  # noqa: S311 - draws what is tried, and hides nothing
    sets: list[WorldSet] = []
    left = most
    for rows, payloads in _classes(engine, placed, most, coins):
        found = arrange(payloads, max(min(_MOST_WORLDS, most, _MOST_MOVES // len(rows)), 2), coins)
        if len(found.worlds) > max(left, 2):
            break
        left -= len(found.worlds) - 1
        sets.append(WorldSet(rows, payloads, found.worlds, found.weights))
    return SampledWorlds(sets, False)


def _classes(
    engine: Engine, placed: Relation, most: int, coins: Random
) -> Iterator[tuple[Sequence[int], tuple[int, ...]]]:
    """(rows, payloads) of up to `most` classes, drawn by coins; the rows that are not published are one too."""
    numbers = range(int(engine.least(placed, "class_no")), int(engine.most(placed, "class_no")) + 1)
    drawn = coins.sample(numbers, min(most, len(numbers)))
    loaded = engine.load("drawn", {"class_no": "BIGINT"}, [(number,) for number in drawn])
    members = engine.select_among("members", placed, loaded, "class_no")
    classes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, row, payload in engine.columns(members, "class_no", "row_no", "payload_no"):
        classes[number].append((row, payload))
    engine.drop(loaded, members)
    for number in drawn:
        if number in classes:
            rows, payloads = zip(*sorted(classes[number]), strict=True)
            yield rows, payloads
