"""Prices of cells that prove a bound, raised by subgradient steps (Held, Wolfe and Crowder 1974).

Whatever the prices are, the rows at their prices, less what the best class of every label gains, cost no more than any
local recoding. Steps are taken in rounds, within ceilings: of every cell a little above its price at the best bound so
far. Labels that gain nothing at the ceilings gain nothing below them, so that a round looks at all others alone, and
what every step proves holds for all labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldiv_db.measuring.least_loss.best_classes import best_classes
from ldiv_db.measuring.least_loss.bounds import Need
from ldiv_db.measuring.least_loss.cells import Cells, Flags, Ints
from ldiv_db.measuring.least_loss.labels import Labels, list_labels

#: The pairs of label and cell that are looked at, summed over steps, and those that are held at a time.
MOST_WORK, MOST_PAIRS = 600_000_000, 8_000_000
#: The work for a pair where the best class of a label is searched by the most rows of a value.
_OF_SHARES = 2
#: Steps of a round, and those in a row without a gain after which they become shorter, by how much.
_STEPS, _PATIENCE, _SHORTER = 30, 8, 0.7
#: The gain of a step, in parts of the bound, that counts; the length below which steps end.
_COUNTS, _SHORTEST = 1e-5, 1e-3
#: Part of its price, and of the loss of a whole row, by which a cell's ceiling may be above it.
_SLACK, _LEAST_SLACK = 0.3, 0.02
#: A step aims at so much more than the best bound, and at so much of the whole loss at first.
_AIM, _FIRST_AIM = 1.1, 0.001


@dataclass
class Ascent:
    """A search for prices, which may be interrupted at any time: what was proved by then stands."""

    cells: Cells
    need: Need
    most_work: int = MOST_WORK
    heard: Callable[[int], None] = lambda bound: None

    def __post_init__(self) -> None:
        self._best = 0, np.zeros(len(self.cells.rows), np.int64)
        self._slack, self._length, self._stalled, self._work = 1.0, 1.0, 0, 0

    @property
    def bound(self) -> int:
        """The most that was proved, in the units of losses."""
        return self._best[0]

    @property
    def kept(self) -> Ints:
        """The prices that prove it."""
        return self._best[1]

    def run(self) -> Ascent:
        """Raise the prices until the work is done, or nothing more is gained."""
        while self._work < self.most_work and self._slack > _COUNTS and self._length > _SHORTEST:
            ceiling = self.ceiling(self._slack)
            labels = list_labels(self.cells, ceiling, self.need, MOST_PAIRS)
            if labels is None:
                self._slack /= 2
            elif not self._round(labels, ceiling):
                break
            else:
                self._widen(ceiling)
                self.heard(self.bound)
        return self

    def ceiling(self, slack: float) -> Ints:
        """Prices above those of the best bound, by so many times the usual."""
        above = np.maximum(_SLACK * self.kept, _LEAST_SLACK * self.cells.full) * slack
        ceiling: Ints = np.minimum(self.kept + above.astype(np.int64), self.cells.most)
        return ceiling

    def _pressed(self, ceiling: Ints) -> Flags:
        """The cells whose prices are at ceilings that could be higher."""
        return (ceiling < self.cells.most) & (self.kept >= ceiling)

    def _widen(self, ceiling: Ints) -> None:
        """More room above the prices where many are at the ceilings, less where few are."""
        rows = self.cells.rows
        share = float(rows[self._pressed(ceiling)].sum() / rows.sum())
        self._slack *= 1.3 if share > 0.05 else 0.7 if share < 0.01 else 1.0

    def _round(self, labels: Labels, ceiling: Ints) -> bool:
        """Take the steps of a round; False if the best prices within the ceilings are found."""
        price, rows = self.kept, self.cells.rows
        for _ in range(_STEPS):
            gained, covered = best_classes(self.cells, labels, price, self.need)
            self._work += len(labels.cell) * (_OF_SHARES if self.need.parts > 1 else 1) + 1
            proved = int((price * rows).sum()) - gained
            self._judge(proved, price)
            if self._stalled >= _PATIENCE:
                self._length, self._stalled, price = self._length * _SHORTER, 0, self.kept
                continue
            lacking = (rows - covered) / rows
            lacking[((price >= ceiling) & (lacking > 0)) | ((price <= 0) & (lacking < 0))] = 0
            norm = float((lacking * lacking * rows).sum())
            if norm == 0:
                return bool(self._pressed(ceiling).any())
            aim = _AIM * self.bound + _FIRST_AIM * self.cells.full * float(rows.sum())
            far = self._length * (aim - proved) / norm
            price = np.clip(price + np.rint(far * lacking).astype(np.int64), 0, ceiling)
        return True

    def _judge(self, proved: int, price: Ints) -> None:
        self._stalled = 0 if proved > self.bound * (1 + _COUNTS) else self._stalled + 1
        if proved > self.bound:
            self._best = proved, price  # both at once, whenever Ctrl-C comes
