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


class Histogram(EngineFlow):
    """Steps on the cells of groups: `state` (group_no, code, rows, kept), and the `residue`, as `removed` counts it."""

    def __init__(self, engine: Engine, cells: Relation, l: int):
        """Phase one: the core of every group is kept; `cells` is (group_no, code, rows)."""
        super().__init__(engine, "tp", cells=cells, l=l)
        self.l = l
        self.step("state", "keep_cores")
        self._count()

    @property
    def gap(self) -> int:
        return self.removed.gap(self.l)

    def remove(self, taken: Relation) -> None:
        """Move rows of cells to the residue; `taken` is (group_no, code, taken) and is dropped."""
        self.replace("state", "remove_rows", taken=taken)
        self.engine.drop(self["residue"], taken)
        self._count()

    def _count(self) -> None:
        rows = self.engine.column(self.step("residue", "count_residue"), "rows")
        self.removed = Residue(sum(rows), max(rows, default=0))
        self.know(height=self.removed.height, gap=self.gap)


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
            values = _values(engine, histogram.step("alive", "list_alive"), "slack")
            if not values:
                break
            taken = scope.keep(_take(histogram, values))
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


def _take(histogram: Histogram, values: Sequence[_Value]) -> Relation:
    """The rows to be removed next, of the values that are below a common level: in the way that removes more."""
    levels = sorted({value.level for value in values})
    part = histogram.gap // (_PARTS * len(values))
    height = histogram.removed.height
    level = min(max(levels[0] + max(1, part), [*levels, height][1]), height)
    histogram.know(level=level)
    if not any(value.offered for value in values if value.level < level):
        return histogram.step("taken", "take_pillars", most=max(1, part))
    taken, count = _take_offers(histogram, level)
    if count >= part:
        return taken
    pillars = histogram.step("taken", "take_pillars", most=part)
    return pillars if histogram.engine.total(pillars, "taken") > count else taken


def _take_offers(histogram: Histogram, level: int) -> tuple[Relation, int]:
    """Rows of fat groups, and how many: values rise to the level, or as far as rows are offered and the gap goes."""
    engine = histogram.engine
    with histogram.scope("taken"):
        offers = histogram.step("offers", "offer_rows")
        quotas = share_out(_values(engine, offers, "offered"), level, histogram.gap)
        loaded = engine.load("quotas", {"code": "BIGINT", "quota": "BIGINT"}, quotas)
        taken = histogram.step("taken", "take_offers", quotas=loaded)
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


# -- phase three -------------------------------------------------------------------------------------


def _cover_pillars(histogram: Histogram) -> int:
    """Remove rows of the pillars of groups that cover the residue's pillars; for how many rounds at once."""
    with histogram.scope("taken"):
        histogram.step("pillars", "list_pillars")
        groups = [(group_no,) for group_no in _choose(histogram)]
        histogram.know(chosen=histogram.engine.load("chosen", {"group_no": "BIGINT"}, groups))
        histogram.step("alike", "find_alike")
        rounds = _count_rounds(histogram)
        histogram.step("taken", "take_cover", rounds=rounds)
    histogram.remove(histogram["taken"])
    return rounds


def _choose(histogram: Histogram) -> list[int]:
    """The groups of a greedy cover of the residue's pillars: each of these is no pillar of one of them."""
    engine, chosen = histogram.engine, list[int]()
    highest = [Where("rows", histogram.removed.height)]
    uncovered = engine.select("uncovered", histogram["residue"], "code", where=highest)
    while engine.count(uncovered):
        group_no = int(histogram.scalar("choose_group", uncovered=uncovered))
        if group_no in chosen:
            raise AssertionError("some group covers a pillar as long as the table is eligible")
        chosen.append(group_no)
        shared = engine.select("shared", histogram["pillars"], "code", where=[Where("group_no", group_no)])
        uncovered = engine.select_among("uncovered", uncovered, shared, "code")
    return chosen


def _count_rounds(histogram: Histogram) -> int:
    """For how many rounds the cover stays one: until a group or R gets another pillar, or R may be eligible.

    A round, with the rows that the chosen groups lose after it, brings R nearer to that by l rows a group at most.
    """
    bounds = histogram.record("bound_rounds")
    limits = [bounds["room"], histogram.gap // (_PARTS * histogram.l * bounds["groups"])]
    return int(max(1, min(limits if bounds["margin"] is None else [*limits, bounds["margin"]])))
