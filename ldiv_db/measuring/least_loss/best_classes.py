"""The best class of each label at given prices: what it gains, and the rows that it takes.

A row gains its price less the label's cost. All rows that gain are in the best class; where rows or values lack, those
that lose least are as well. Where a class must meet several needs, the best by each of them gains no less: the least is
taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldiv_db.measuring.least_loss.bounds import Need
from ldiv_db.measuring.least_loss.cells import Cells, Flags, Ints
from ldiv_db.measuring.least_loss.labels import Labels, most_gained, runs, starts


@dataclass(frozen=True)
class Priced:
    """Pairs of label and cell, by label, those that gain most first; `start` is the first pair of each label.

    `before` is how many rows of the same label and value gain more than a pair's; `never` what a row costs that a class
    lacks and no cell has.
    """

    start: Ints
    label: Ints
    cell: Ints
    rows: Ints
    gain: Ints
    before: Ints
    never: int

    def by_label(self, of_pair: Ints) -> Ints:
        """The sum over the pairs of each label."""
        return np.add.reduceat(of_pair, self.start)

    @cached_property
    def gaining(self) -> Ints:
        """The rows of each pair that gains."""
        return np.where(self.gain > 0, self.rows, 0)

    def having(self, kept: Flags) -> Priced:
        """Those of some labels, numbered anew."""
        pairs = kept[self.label]
        sizes = np.diff(np.append(self.start, len(self.label)))[kept]
        cell, rows, gain, before = (of_pair[pairs] for of_pair in (self.cell, self.rows, self.gain, self.before))
        label: Ints = np.repeat(np.arange(len(sizes)), sizes)
        return Priced(starts(sizes), label, cell, rows, gain, before, self.never)


@dataclass(frozen=True)
class Taken:
    """By label what its best class gains, by pair how many rows it takes."""

    gained: Ints
    rows: Ints


def best_classes(cells: Cells, labels: Labels, price: Ints, need: Need) -> tuple[int, Ints]:
    """What the best classes of all labels gain together where they gain anything, and the rows of each cell in them."""
    could = most_gained(cells, labels, price, need) > 0
    covered = np.zeros(len(cells.rows), np.int64)
    if not could.any():
        return 0, covered
    priced = _priced(cells, labels.having(could), price)
    found = _by_shares(priced, need) if need.parts > 1 else _by_rows(priced, need.rows)
    if need.values > need.parts:
        found = _worse(priced, found, _by_values(priced, need.values))
    gains = found.gained > 0
    np.add.at(covered, priced.cell, np.where(gains[priced.label], found.rows, 0))
    return int(found.gained[gains].sum()), covered


def _priced(cells: Cells, labels: Labels, price: Ints) -> Priced:
    """Within a label those that gain most have the highest prices; all keys differ, so that any way to sort will do."""
    label, falling = labels.label, np.argsort(-price, kind="stable")
    place = np.empty_like(falling)
    place[falling] = np.arange(len(falling))
    base = label * len(price)
    cell = falling[np.sort(base + place[labels.cell]) - base]
    rows = cells.rows[cell]
    values = int(cells.value[-1]) + 1
    group = (label * values + cells.value[cell]) * len(cell)
    grouped = np.argsort(group + np.arange(len(cell))) if values > 1 else slice(None)
    so_far = np.cumsum(rows[grouped]) - rows[grouped]
    before = np.empty_like(rows)
    before[grouped] = so_far - so_far[runs(group[grouped])]
    return Priced(labels.start, label, cell, rows, price[cell] - labels.cost[label], before, cells.never)


def _worse(priced: Priced, one: Taken, other: Taken) -> Taken:
    """For each label the class that gains less."""
    less = other.gained < one.gained
    return Taken(np.minimum(other.gained, one.gained), np.where(less[priced.label], other.rows, one.rows))


def _filled(priced: Priced, taken: Ints, left: Ints, lacking: Ints) -> Taken:
    """What is taken with so many more by label, of what is left by pair: those that lose least."""
    so_far = np.cumsum(left) - left
    more = np.clip(lacking[priced.label] - so_far + so_far[priced.start][priced.label], 0, left)
    absent = np.maximum(lacking - priced.by_label(more), 0)
    rows = taken + more
    return Taken(priced.by_label(rows * priced.gain) - absent * priced.never, rows)


def _by_rows(priced: Priced, least: int) -> Taken:
    """Classes of so many rows at least."""
    taken = priced.gaining
    return _filled(priced, taken, priced.rows - taken, least - priced.by_label(taken))


def _by_values(priced: Priced, least: int) -> Taken:
    """Classes of so many different values at least: of values of which no row gains one row, that loses least."""
    first = priced.before == 0
    lacking = least - priced.by_label((first & (priced.gain > 0)).astype(np.int64))
    return _filled(priced, priced.gaining, (first & (priced.gain <= 0)).astype(np.int64), lacking)


def _by_shares(priced: Priced, need: Need) -> Taken:
    """Classes in which no value has more than one row in `parts`: the best over the most rows that a value may have.

    With that number whole, the rows to choose are a linear program of a laminar family with whole bounds: what they
    gain is concave in the number, and the best is where one more does not gain more.
    """
    low = np.ones(len(priced.start), np.int64)
    high = np.maximum.reduceat(priced.before + priced.rows, priced.start)
    high = np.clip(priced.by_label(priced.rows) // need.parts, 1, high)
    while (open_ := low < high).any():
        some, least, most = priced.having(open_), low[open_], high[open_]
        middle = np.minimum(least * 2, (least + most) // 2)  # most are small
        rising = _capped(some, need, middle + 1).gained > _capped(some, need, middle).gained
        low[open_], high[open_] = np.where(rising, middle + 1, least), np.where(rising, most, middle)
    return _capped(priced, need, low)


def _capped(priced: Priced, need: Need, most: Ints) -> Taken:
    """Classes in which no value has more rows than that, by label, and all have `parts` times as many."""
    room = np.clip(most[priced.label] - priced.before, 0, priced.rows)
    taken = np.minimum(room, priced.gaining)
    lacking = np.maximum(most * need.parts, need.rows) - priced.by_label(taken)
    return _filled(priced, taken, room - taken, lacking)
