"""The three phases of TP on a histogram of QI-groups by sensitive values (Xiao, Yi, Tao, EDBT 2010, Section 5).

Groups and the residue R of removed rows must be l-eligible: no value in more than 1/l of their rows. Phase one
keeps of every group its l-eligible core, which is unique. Phase two moves further rows to R of values that are no
pillar of R (none is more frequent there), while groups stay eligible, until R is eligible or every group is dead.
Phase three removes a row of each pillar of some dead groups, chosen so that they share no pillar of R all together,
and goes on as phase two does; round by round, or for many rounds at once where the choice would stay right: groups
of the same pillars stand for each other, and what counts is that the pillars of R rise by less than a row a group.

Phase two takes the alive value least frequent in R next. A statement takes many rows: the least frequent values rise
together, so that the lowest reach the next level or a part of the gap. So a value may be taken that is not the least
frequent, but by that part. No guarantee changes: they ask only that h(R) does not rise, that groups stay eligible,
and that it goes on until R is eligible or every group is dead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where

#: Values rise by such a part of the gap, shared between them; rounds close such a part of it.
_PARTS = 2


@dataclass(frozen=True)
class Residue:
    """The rows that are removed after a phase: how many, and how many of the most frequent value."""

    rows: int
    height: int

    def gap(self, l: int) -> int:
        """The rows that it lacks to be l-eligible, 0 if it is."""
        return max(0, l * self.height - self.rows)


@dataclass
class Histogram:
    """The groups' cells, how many rows of each are kept, and the residue; `state` is (group_no, code, rows, kept)."""

    engine: Engine
    l: int
    state: Relation
    residue: Relation
    removed: Residue

    @classmethod
    def of_cores(cls, engine: Engine, cells: Relation, l: int) -> Histogram:
        """Phase one: the core of every group is kept; `cells` is (group_no, code, rows)."""
        state = engine.materialise("state", "tp/keep_cores", cells=cells, l=l)
        residue = engine.materialise("residue", "tp/count_residue", state=state)
        return cls(engine, l, state, residue, _measured(engine, residue))

    @property
    def gap(self) -> int:
        return self.removed.gap(self.l)

    @property
    def flow(self) -> EngineFlow:
        """Steps on the histogram as it stands."""
        known = {"state": self.state, "residue": self.residue, "l": self.l}
        return EngineFlow(self.engine, "tp", height=self.removed.height, gap=self.gap, **known)

    def remove(self, taken: Relation) -> None:
        """Move rows of cells to the residue; `taken` is (group_no, code, taken) and is dropped."""
        engine = self.engine
        state = engine.materialise("state", "tp/remove_rows", state=self.state, taken=taken)
        engine.drop(self.state, self.residue, taken)
        self.state = state
        self.residue = engine.materialise("residue", "tp/count_residue", state=state)
        self.removed = _measured(engine, self.residue)


def _measured(engine: Engine, residue: Relation) -> Residue:
    rows = engine.column(residue, "rows")
    return Residue(sum(rows), max(rows, default=0))


@dataclass(frozen=True)
class Phases:
    """The residue after each phase that ran, and the batches and rounds that this took."""

    residues: tuple[Residue, ...]
    batches: int = 0
    rounds: int = 0

    @property
    def last(self) -> int:
        """The phase that ended it."""
        return len(self.residues)


def run_phases(histogram: Histogram, on_gap: Callable[[int], None] = lambda gap: None) -> Phases:
    """Move rows to the residue until it is eligible, the table being so; the cores are kept already."""
    residues, batches, rounds = [histogram.removed], 0, 0
    if histogram.gap:
        batches += drain(histogram, on_gap)
        residues.append(histogram.removed)
    while histogram.gap:
        rounds += _cover_pillars(histogram)
        batches += 1 + drain(histogram, on_gap)
    if rounds:
        residues.append(histogram.removed)
    return Phases(tuple(residues), batches, rounds)


# -- phase two ---------------------------------------------------------------------------------------


def drain(histogram: Histogram, on_gap: Callable[[int], None]) -> int:
    """Remove rows of alive groups until the residue is eligible or all groups are dead; the number of batches."""
    engine, batches = histogram.engine, 0
    while histogram.gap:
        on_gap(histogram.gap)
        with engine.scope() as scope:
            alive = histogram.flow.step("alive", "list_alive")
            values = _values(engine, alive, "slack")
            if not values:
                break
            taken = scope.keep(_take(histogram, alive, values))
        histogram.remove(taken)
        batches += 1
    return batches


@dataclass(frozen=True)
class _Value:
    """An alive sensitive value: its rows in the residue, and how many there are to be taken, or whether there are."""

    code: int
    level: int
    offered: int


def _values(engine: Engine, cells: Relation, offered: str) -> list[_Value]:
    """The values of alive cells, the least frequent in the residue first; `offered` is the column that is summed."""
    found = [_Value(*row) for row in engine.grouped(cells, "code", "level", offered=("sum", offered))]
    return sorted(found, key=lambda value: (value.level, value.code))


def _take(histogram: Histogram, alive: Relation, values: Sequence[_Value]) -> Relation:
    """The rows to be removed next, of the values that are below a common level: in the way that removes more."""
    levels = sorted({value.level for value in values})
    part = histogram.gap // (_PARTS * len(values))
    height = histogram.removed.height
    level = min(max(levels[0] + max(1, part), [*levels, height][1]), height)
    if not any(value.offered for value in values if value.level < level):
        return _take_pillars(histogram, alive, level, max(1, part))
    taken, count = _take_offers(histogram, alive, level)
    if count >= part:
        return taken
    pillars = _take_pillars(histogram, alive, level, part)
    return pillars if histogram.engine.total(pillars, "taken") > count else taken


def _take_offers(histogram: Histogram, alive: Relation, level: int) -> tuple[Relation, int]:
    """Rows of fat groups, and how many: values rise to the level, or as far as rows are offered and the gap goes."""
    with histogram.engine.scope() as scope:
        flow = histogram.flow
        offers = flow.step("offers", "offer_rows", alive=alive, level=level)
        quotas = share_out(_values(flow.engine, offers, "offered"), level, histogram.gap)
        loaded = flow.engine.load("quotas", {"code": "BIGINT", "quota": "BIGINT"}, quotas)
        taken = scope.keep(flow.step("taken", "take_offers", quotas=loaded))
    return taken, sum(count for _, count in quotas)


def share_out(values: Sequence[_Value], level: int, gap: int) -> list[tuple[int, int]]:
    """(code, rows) to be taken of each value: all rise to a common height, `level` at most, `gap` rows in total."""

    def taken(height: int) -> list[int]:
        return [max(0, min(value.offered, height - value.level)) for value in values]

    low, high = min(value.level for value in values), level
    while low < high:
        height = (low + high + 1) // 2
        if sum(taken(height)) <= gap:
            low = height
        else:
            high = height - 1
    rows, left = taken(low), gap - sum(taken(low))
    for place, more in enumerate(taken(min(low + 1, level))):
        if left and more > rows[place]:
            rows[place], left = more, left - 1
    return [(value.code, count) for value, count in zip(values, rows, strict=True) if count]


def _take_pillars(histogram: Histogram, alive: Relation, level: int, most: int) -> Relation:
    """Rows of the pillars of thin groups that hold a value below the level, and of fat ones whose pillars all are."""
    return histogram.flow.step("taken", "take_pillars", alive=alive, level=level, most=most)


# -- phase three -------------------------------------------------------------------------------------


def _cover_pillars(histogram: Histogram) -> int:
    """Remove rows of the pillars of groups that cover the residue's pillars; for how many rounds at once."""
    engine = histogram.engine
    with engine.scope() as scope:
        flow = histogram.flow
        pillars = flow.step("pillars", "list_pillars")
        groups = [(group_no,) for group_no in _choose(histogram, pillars)]
        flow.know(chosen=engine.load("chosen", {"group_no": "BIGINT"}, groups))
        flow.step("alike", "find_alike")
        rounds = _count_rounds(histogram, flow)
        taken = scope.keep(flow.step("taken", "take_cover", rounds=rounds))
    histogram.remove(taken)
    return rounds


def _choose(histogram: Histogram, pillars: Relation) -> list[int]:
    """The groups of a greedy cover of the residue's pillars: each of these is no pillar of one of them."""
    engine, chosen = histogram.engine, list[int]()
    uncovered = engine.select("uncovered", histogram.residue, "code", where=[Where("rows", histogram.removed.height)])
    while engine.count(uncovered):
        group_no = int(engine.scalar("tp/choose_group", pillars=pillars, uncovered=uncovered))
        if group_no in chosen:
            raise AssertionError("some group covers a pillar as long as the table is eligible")
        chosen.append(group_no)
        shared = engine.select("shared", pillars, "code", where=[Where("group_no", group_no)])
        uncovered = engine.select_among("uncovered", uncovered, shared, "code")
    return chosen


def _count_rounds(histogram: Histogram, flow: EngineFlow) -> int:
    """For how many rounds the cover stays one: until a group or R gets another pillar, or R may be eligible.

    A round, with the rows that the chosen groups lose after it, brings R nearer to that by l rows a group at most.
    """
    bounds = flow.record("bound_rounds")
    limits = [bounds["room"], histogram.gap // (_PARTS * histogram.l * bounds["groups"])]
    return int(max(1, min(limits if bounds["margin"] is None else [*limits, bounds["margin"]])))
