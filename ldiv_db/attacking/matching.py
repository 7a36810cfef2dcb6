"""Known people matched with the classes of a published table whose labels cover them, within a budget.

Classes and people are matched one quasi-identifier after the other, for all combinations that begin alike at once:
first those that rule out most pairs, by counts. People whom the same labels cover are one, and labels are joined with
what they cover on equal nodes of trees.

Where labels overlap, pairs are many more than people: of 300,000 people and 48,000 classes 43 million. So they are made
in parts, of people (or classes) that are drawn, until a budget of pairs is spent. Pairs are counted, not seconds: the
same are made on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.attacking.covering import NONE, KnownAxis, ReadAxis, list_cells, read_axes
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where

#: So many pairs of people alike and classes an attack makes, unless it is said.
BUDGET = 200_000_000
#: A pair that is kept, for an attack that looks at all of them together, costs as many that are made and forgotten.
KEPT = 20
#: So many pairs of a class and a cell cost as much as a pair of classes and cells that are alike.
_CELL_PAIRS = 4
#: So many pairs are made at once, about: they are what is held in memory.
_AT_ONCE = 4_000_000
#: Pairs one quasi-identifier longer that are so few for each pair are looked at one by one.
_FEW = 8
#: So many pairs of those alike, or `_AT_ONCE` of all, are kept for all who ask for them, if that takes a tenth of the
#: budget.
_SETTLED, _TENTH = 1_000_000, 10
#: What is said of people whom no class covers.
NO_CLASS = "stand in no class"
#: At first so many are drawn, and then at most so many times as many as before.
_FIRST, _GROWTH = 16, 8


@dataclass(frozen=True)
class Prefixes:
    """Combinations of labels and of known values, by number, and which of the former cover which of the latter.

    `classes` is (class_no, the labels' columns), `cells` (cell_no, people, the known values). `boxes` is (class_no) and
    `codes` (cell_no), each with the numbers of its labels or values and of their prefixes, axis by axis, of values by
    their kinds. Once settled `pairs` is (cell, box) of the last of these prefixes, `matches` (class_no, cell_no), and
    `made` how many pairs that took.
    """

    engine: Engine
    axes: tuple[ReadAxis, ...]
    classes: Relation
    cells: Relation
    boxes: Relation
    codes: Relation
    pairs: Relation = NONE
    matches: Relation = NONE
    made: int = 0

    @property
    def last(self) -> ReadAxis:
        """The axis whose prefixes are whole combinations."""
        return self.axes[-1]

    @property
    def relations(self) -> set[Relation]:
        """All relations behind it, but for the classes."""
        of_axes = (relation for axis in self.axes for relation in axis.made)
        return {self.cells, self.boxes, self.codes, self.pairs, self.matches, *of_axes} - {NONE}

    def flow(self, folder: str = "attacking/covering", **known: Any) -> EngineFlow:
        """Steps that read these combinations."""
        own = {"cells": self.cells, "codes": self.codes, "boxes": self.boxes, "pairs": self.pairs}
        return EngineFlow(self.engine, folder, axis=self.last, axes=self.axes, **own, **known)

    def paired(self) -> tuple[Prefixes, int]:
        """With all pairs of its boxes and codes, and how many were made on the way."""
        engine, flow, made = self.engine, self.flow(), 0
        flow.know(pairs=engine.load("pairs", {"cell": "INTEGER", "box": "INTEGER"}, [(1, 1)]))
        flow.know(all_codes=engine.count(self.codes) == engine.count(self.cells))
        flow.know(all_boxes=engine.count(self.boxes) == engine.count(self.classes))
        for axis in self.axes:
            flow.know(axis=axis)
            pairs = flow["pairs"]
            few = axis.by_range and int(flow.scalar("count_candidates")) <= _FEW * engine.count(pairs)
            made += engine.count(flow.step("pairs", "extend_pairs", one_by_one=few))
            engine.drop(pairs)
        return replace(self, pairs=flow["pairs"]), made

    def covered(self, alike: bool = False) -> Relation:
        """The classes and cells (class_no, cell_no) behind its pairs; of cells `alike` one stands for all."""
        return self.flow().step("matches", "list_pairs", alike=alike)

    def alike(self) -> dict[str, Relation]:
        """The people (cell_no, people), those being one whom the same labels cover, and their `matches`."""
        return {"cells": self.flow().step("alike", "list_alike"), "matches": self.covered(alike=True)}

    def drawn(
        self, budget: int, by_classes: bool = False, keep: Callable[[Prefixes], int] | None = None
    ) -> Iterator[tuple[Prefixes, Relation, int]]:
        """Parts of the people, or of the classes, drawn, each with all its pairs, until the budget is spent.

        Of each its prefixes, its codes (or boxes), and how many pairs were made. What `keep` keeps of a part, so many
        pairs of a class and a cell, counts too.
        """
        engine = self.engine
        side, other = (self.boxes, self.codes) if by_classes else (self.codes, self.boxes)
        if self.pairs != NONE and keep is None:
            with engine.scope():
                yield self, side, 0
            return
        lots = self.flow().step("lots", "draw_lots", rows=side)
        done, spent, total = 0, 0, engine.count(lots)
        step = min(total, max(_FIRST, _AT_ONCE // max(engine.count(other), 1)))
        while step > 0:
            with engine.scope():
                drawn = engine.select("drawn", lots, where=(Where("lot", done, ">"), Where("lot", done + step, "<=")))
                part = engine.select_among("part", side, drawn, (self.last.prefix.name, "number"))
                found, made = (replace(self, boxes=part) if by_classes else replace(self, codes=part)).paired()
                made += keep(found) // _CELL_PAIRS if keep else 0
                yield found, part, made
            done, spent = done + step, spent + made
            affordable = [(pairs * done) // max(spent, 1) for pairs in (_AT_ONCE, budget - spent)]
            step = min(total - done, _GROWTH * step, max(affordable[0], 1), affordable[1])
        engine.drop(lots)

    def settled(self, budget: int) -> Prefixes:
        """With all pairs if they are few: made once for all who ask. What it makes is the caller's."""
        engine, total, done, made = self.engine, self.engine.count(self.codes), 0, 0
        pairs, matches = engine.load("pairs", {"cell": "INTEGER", "box": "INTEGER"}, []), _no_matches(engine)
        for found, part, spent in self.drawn(budget // _TENTH, keep=_keeping(matches)):
            engine.extend(pairs, found.pairs)
            done, made = done + engine.count(part), made + spent
            bounded = (engine.count(pairs), _SETTLED), (engine.count(matches), _AT_ONCE), (made, budget // _TENTH)
            if any(count * total > most * done for count, most in bounded):
                break
        return replace(self, pairs=pairs, matches=matches, made=made) if done == total else self

    def match(self, budget: int | None = None, by_classes: bool = False) -> Matches:
        """The classes that cover the people; by a budget a drawn part of either.

        The caller's scope drops what is made.
        """
        engine, key = self.engine, "class_no" if by_classes else "cell_no"
        if budget is None:
            return Matches(self.classes, self.cells, self.paired()[0].covered(), self)
        if self.matches != NONE and self.made <= budget // KEPT:
            return Matches(self.classes, self.cells, self.matches, self)
        pairs, tried = _no_matches(engine), engine.load("tried", {key: "BIGINT"}, [])
        for _, part, _ in self.drawn(budget // KEPT, by_classes, keep=_keeping(pairs)):
            engine.extend(tried, part, key)
        whole = self.classes if by_classes else self.cells
        if engine.count(tried) == engine.count(whole):
            return Matches(self.classes, self.cells, pairs, self)
        kept = engine.select_among("kept", whole, tried, key)
        return Matches(kept if by_classes else self.classes, self.cells if by_classes else kept, pairs, self, False)

    @contextmanager
    def matched(self, budget: int | None = None, by_classes: bool = False) -> Iterator[Matches]:
        """As `match`; what is made is dropped at the end."""
        with self.engine.scope() as scope:
            found = self.match(budget, by_classes)
            made = {found.classes, found.cells, found.pairs} - {self.classes, self.cells, self.matches}
            scope.kept |= made
        yield found
        self.engine.drop(*made)


def _no_matches(engine: Engine) -> Relation:
    return engine.load("matches", {"class_no": "INTEGER", "cell_no": "INTEGER"}, [])


def _keeping(matches: Relation) -> Callable[[Prefixes], int]:
    """Appends the pairs (class_no, cell_no) of a part to a table, and says how many they are."""

    def keep(found: Prefixes) -> int:
        before = found.engine.count(matches)
        found.flow().insert(matches, "list_pairs", alike=False)
        return found.engine.count(matches) - before

    return keep


@dataclass(frozen=True)
class Lost:
    """The people of a table who stand in no class as no label covers a value of theirs: so many `lost` of the `people`.

    `columns` are (quasi-identifier, how many people have such a value there).
    """

    people: int
    lost: int
    columns: tuple[tuple[str, int], ...]

    @classmethod
    def among(cls, found: Prefixes) -> Lost:
        """Those of the people who are to be matched."""
        counts = found.flow().record("count_lost")
        columns = [(axis.name, int(counts[axis.code.name])) for axis in found.axes if counts[axis.code.name]]
        return cls(int(counts["people"]), int(counts["lost"]), tuple(sorted(columns)))

    @property
    def everybody(self) -> bool:
        """True if nobody is matched, though there are people."""
        return 0 < self.people == self.lost

    def line(self, key: str, no_class: int = 0) -> str:
        """A warning of them, and of others who stand in no class; `key` names their table."""
        what = f"{key}: {max(self.lost, no_class):,} of {self.people:,} people {NO_CLASS}"
        listed = ", ".join(f"{name} ({count:,})" for name, count in self.columns)
        return f"{what}; no label covers their {listed}" if listed else what


@dataclass(frozen=True)
class Matches:
    """`pairs` is (class_no, cell_no): which `classes` cover which `cells` (cell_no, people, the known values).

    These are all classes and people, or those that a budget was enough for (not `finished`). `prefixes` is how they
    were found, its axes in an order of their own.
    """

    classes: Relation
    cells: Relation
    pairs: Relation
    prefixes: Prefixes
    finished: bool = True


@contextmanager
def matched(
    engine: Engine,
    classes: Relation,
    axes: Sequence[KnownAxis],
    people: Table,
    budget: int | None = None,
) -> Iterator[Matches]:
    """The classes (class_no, the labels' columns) that cover the people of a table, or by a budget some that are drawn.

    Raises PolicyError for labels that are no range, or that a taxonomy does not have.
    """
    with prefixes_of(engine, classes, axes, people) as found, found.matched(budget) as matches:
        yield matches


@contextmanager
def prefixes_of(
    engine: Engine,
    classes: Relation,
    axes: Sequence[KnownAxis],
    people: Table,
    budget: int | None = None,
    person: Identifier | None = None,
) -> Iterator[Prefixes]:
    """The people of a table and the labels of classes, to be matched, by a `budget` more than once; as `matched`."""
    with engine.scope() as scope:
        found = number_prefixes(engine, classes, axes, list_cells(engine, axes, people, person))
        found = found if budget is None else found.settled(budget)
        scope.kept |= found.relations
    yield found
    engine.drop(*found.relations)


def cover(engine: Engine, classes: Relation, axes: Sequence[KnownAxis], cells: Relation) -> Relation:
    """The classes that cover each cell: (class_no, cell_no). Raises PolicyError for labels that cannot be read."""
    with engine.scope() as scope:
        return scope.keep(number_prefixes(engine, classes, axes, cells).match().pairs)


def number_prefixes(engine: Engine, classes: Relation, axes: Sequence[KnownAxis], cells: Relation) -> Prefixes:
    """The combinations of labels and values by number, to be matched in the order of the axes.

    The caller's scope drops what is made. Raises PolicyError for labels that cannot be read.
    """
    ready = _in_order(read_axes(engine, classes, cells, axes), engine.count(classes), engine.count(cells))
    flow = EngineFlow(engine, "attacking/covering", classes=classes, cells=cells, axes=ready)
    boxes, codes = flow.step("boxes", "number_boxes"), flow.step("numbered_cells", "number_cells")
    return Prefixes(engine, tuple(ready), classes, cells, boxes, codes)


def _in_order(axes: Sequence[ReadAxis], classes: int, cells: int) -> list[ReadAxis]:
    """The axes numbered, each that which leaves fewest pairs of those that begin alike after the ones before it."""
    ordered: list[ReadAxis] = []
    labels, kinds, share, left = 1, 1, 1.0, list(axes)

    def pairs(axis: ReadAxis) -> float:
        return min(labels * axis.size[0], classes) * min(kinds * axis.size[1], cells) * share * axis.share

    while left:
        best = min(left, key=pairs)
        labels, kinds, share = labels * best.size[0], kinds * best.size[1], share * best.share
        left.remove(best)
        ordered.append(replace(best, number=len(ordered) + 1))
    return ordered
