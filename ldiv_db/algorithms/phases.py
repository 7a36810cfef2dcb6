"""The three phases of TP on a histogram of QI-groups by sensitive values (Xiao, Yi, Tao, EDBT 2010, Section 5).

Groups and the residue R of removed rows must be l-eligible: no value in more than 1/l of their rows. Phase one
keeps of every group its l-eligible core, which is unique. Phase two moves further rows to R of values that are no
pillar of R (none is more frequent there), while groups stay eligible, until R is eligible or every group is dead.
Phase three removes a row of each pillar of some dead groups, chosen so that they share no pillar of R all together,
and goes on as phase two does; round by round.

Phase two takes the alive value least frequent in R next. A statement takes many rows: all values of the lowest
level that fat groups hold rise together, one row each in turns, up to the next level; of thin groups it takes the
pillars of as many as fill a part of the gap. More than a row of a value from thin groups may leave it no longer the
least frequent; that changes no guarantee, which asks only that h(R) does not rise and that groups stay eligible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ldiv_db.engine import Engine
from ldiv_db.templates import Relation, Value

#: Thin groups give up rows in parts of the gap, so that the values taken stay near the least frequent.
_PARTS = 4


@dataclass(frozen=True)
class Residue:
    """The rows that are removed after a phase: how many, and how many of the most frequent value."""

    rows: int
    height: int

    def gap(self, l: int) -> int:  # noqa: E741 - the field's name for it
        """How many rows it lacks to be l-eligible; nothing if it is."""
        return max(0, l * self.height - self.rows)


@dataclass
class Histogram:
    """The groups' cells, how many rows of each are kept, and the residue; `state` is (group_no, code, rows, kept)."""

    engine: Engine
    l: int  # noqa: E741
    state: Relation
    residue: Relation
    removed: Residue

    @classmethod
    def of_cores(cls, engine: Engine, cells: Relation, l: int) -> Histogram:  # noqa: E741
        """Phase one: the core of every group is kept; `cells` is (group_no, code, rows)."""
        state = engine.materialise("state", "tp/keep_cores", cells=cells, l=Value(l))
        residue = engine.materialise("residue", "tp/count_residue", state=state)
        return cls(engine, l, state, residue, Residue(**engine.record("tp/sum_residue", residue=residue)))

    @property
    def gap(self) -> int:
        return self.removed.gap(self.l)

    def remove(self, taken: Relation) -> None:
        """Move rows of cells to the residue; `taken` is (group_no, code, taken) and is dropped."""
        engine = self.engine
        state = engine.materialise("state", "tp/remove_rows", state=self.state, taken=taken)
        engine.drop(self.state, self.residue, taken)
        self.state = state
        self.residue = engine.materialise("residue", "tp/count_residue", state=state)
        self.removed = Residue(**engine.record("tp/sum_residue", residue=self.residue))

    def drop(self) -> None:
        self.engine.drop(self.state, self.residue)


@dataclass(frozen=True)
class Phases:
    """What the phases did: the residue after each that ran, and how many batches and rounds that took."""

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
        _cover(histogram)
        batches += 1 + drain(histogram, on_gap)
        rounds += 1
    if rounds:
        residues.append(histogram.removed)
    return Phases(tuple(residues), batches, rounds)


# -- phase two ---------------------------------------------------------------------------------------


def drain(histogram: Histogram, on_gap: Callable[[int], None]) -> int:
    """Remove rows of alive groups until the residue is eligible or all groups are dead; the number of batches."""
    engine, batches = histogram.engine, 0
    while histogram.gap:
        on_gap(histogram.gap)
        alive = engine.materialise(
            "alive",
            "tp/list_alive",
            state=histogram.state,
            residue=histogram.residue,
            l=Value(histogram.l),
            height=Value(histogram.removed.height),
        )
        levels = engine.records("tp/list_levels", alive=alive)
        if levels:
            take = _take_fat if levels[0]["fat_codes"] else _take_thin
            histogram.remove(take(histogram, alive, levels))
            batches += 1
        engine.drop(alive)
        if not levels:
            break
    return batches


def _take_fat(histogram: Histogram, alive: Relation, levels: list[dict[str, Any]]) -> Relation:
    """Rows of the lowest level's values, one of each in turns, up to the next level, the height or the gap."""
    engine, lowest = histogram.engine, levels[0]
    offers = engine.materialise("offers", "tp/offer_rows", alive=alive, level=Value(lowest["level"]))
    offered = engine.record("tp/sum_offers", offers=offers)
    values = int(offered["offered_codes"])
    if values < lowest["codes"]:  # the others are at this level too, and next
        turns = 1
    else:
        above = levels[1]["level"] if len(levels) > 1 else histogram.removed.height
        turns = min(int(offered["fewest"]), min(above, histogram.removed.height) - lowest["level"])
    whole, extra = divmod(histogram.gap, values)
    if whole >= turns:
        whole, extra = turns, 0
    taken = engine.materialise("taken", "tp/take_offers", offers=offers, turns=Value(whole), extra=Value(extra))
    engine.drop(offers)
    return taken


def _take_thin(histogram: Histogram, alive: Relation, levels: list[dict[str, Any]]) -> Relation:
    """A row of each pillar of thin groups that hold the first value of the lowest level."""
    gap = histogram.gap
    return histogram.engine.materialise(
        "taken",
        "tp/take_pillars",
        alive=alive,
        code=Value(levels[0]["first_code"]),
        height=Value(histogram.removed.height),
        gap=Value(gap),
        most=Value(max(1, gap // (_PARTS * histogram.l))),
    )


# -- phase three -------------------------------------------------------------------------------------


def _cover(histogram: Histogram) -> None:
    """Remove a row of each pillar of the groups that cover the residue's pillars: each is no pillar of one of them."""
    engine = histogram.engine
    pillars = engine.materialise("pillars", "tp/list_pillars", state=histogram.state)
    uncovered = engine.materialise(
        "uncovered", "tp/list_crowded", residue=histogram.residue, height=Value(histogram.removed.height)
    )
    chosen: list[tuple[int]] = []
    while engine.scalar("input/count_rows", rows=uncovered):
        group_no = int(engine.scalar("tp/choose_group", pillars=pillars, uncovered=uncovered))
        if (group_no,) in chosen:
            raise AssertionError("some group covers a pillar as long as the table is eligible")
        chosen.append((group_no,))
        left = engine.materialise(
            "uncovered", "tp/keep_uncovered", pillars=pillars, uncovered=uncovered, group_no=Value(group_no)
        )
        engine.drop(uncovered)
        uncovered = left
    groups = engine.load("chosen", {"group_no": "BIGINT"}, chosen)
    taken = engine.materialise("taken", "tp/take_cover", pillars=pillars, chosen=groups)
    engine.drop(pillars, uncovered, groups)
    histogram.remove(taken)
