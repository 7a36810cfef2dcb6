"""Classes made by prices: a label each, and how many rows of each cell; what they can give, take, and be made of."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ldiv_db.measuring.least_loss.bounds import Need
from ldiv_db.measuring.least_loss.cells import Cells
from ldiv_db.measuring.least_loss.labels import Labels


@dataclass(eq=False)
class Class:
    """A class: its label by number, what that costs a row, and its rows by cell and by sensitive value."""

    label: int
    cost: int
    rows: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    size: int = 0

    def __lt__(self, other: Class) -> bool:
        return (self.cost, self.label) < (other.cost, other.label)


class Offer(NamedTuple):
    """Rows of a cell that a class would take, what each saves by that, and the class that has them."""

    saves: int
    cell: int
    rows: int
    held: Class | None = None


#: How many rows of which offers.
Taken = list[tuple[Offer, int]]


@dataclass
class Given:
    """What a class gives away: rows, also by value, and how many values it loses by that."""

    rows: int = 0
    values: dict[int, int] = field(default_factory=dict)
    lost: int = 0


class Classes:
    """The open classes of some labels: `around` has those that cover each cell, the cheapest first.

    The last label covers all cells.
    """

    def __init__(self, cells: Cells, labels: Labels, need: Need):
        self.need = need
        self.values: Sequence[int] = cells.value.tolist()
        self.counts: Sequence[int] = cells.rows.tolist()
        self.costs: Sequence[int] = labels.cost.tolist()
        self.labels = labels
        self.open: dict[int, Class] = {}
        self.around: list[list[Class]] = [[] for _ in self.counts]
        self._ends: Sequence[int] = [*labels.start.tolist(), len(labels.cell)]
        self._holders: list[dict[Class, None]] = [{} for _ in self.counts]

    @property
    def cost(self) -> int:
        """What all rows lose."""
        return sum(one.cost * one.size for one in self.open.values())

    def cells_of(self, label: int) -> list[int]:
        """The cells that a label covers."""
        found: list[int] = self.labels.cell[self._ends[label] : self._ends[label + 1]].tolist()
        return found

    def offers(self, label: int) -> list[Offer]:
        """What a label could take of all open classes, in falling order of what it saves."""
        cost = self.costs[label]
        found = [
            Offer(one.cost - cost, cell, one.rows[cell], one)
            for cell in self.cells_of(label)
            for one in self._holders[cell]
        ]
        return sorted(found, key=lambda offer: -offer.saves)

    # -- changes --------------------------------------------------------------------------------------

    def put(self, into: Class, cell: int, rows: int) -> None:
        """Give a class rows of a cell."""
        value = self.values[cell]
        self._holders[cell][into] = None
        into.rows[cell] = into.rows.get(cell, 0) + rows
        into.values[value] = into.values.get(value, 0) + rows
        into.size += rows

    def take(self, out: Class, cell: int, rows: int) -> None:
        """Take rows of a cell from a class."""
        value = self.values[cell]
        out.size -= rows
        out.rows[cell] -= rows
        out.values[value] -= rows
        if not out.values[value]:
            del out.values[value]
        if not out.rows[cell]:
            del out.rows[cell], self._holders[cell][out]

    def move(self, out: Class, into: Class, cell: int, rows: int) -> int:
        """Rows of a cell go from a class to another one; what that saves."""
        self.take(out, cell, rows)
        self.put(into, cell, rows)
        return rows * (out.cost - into.cost)

    def make(self, label: int, taken: Taken) -> Class:
        """Open a label with what it takes."""
        made = self.open[label] = Class(label, self.costs[label])
        for cell in self.cells_of(label):
            insort(self.around[cell], made)
        for offer, rows in taken:
            if offer.held is not None:
                self.take(offer.held, offer.cell, rows)
            self.put(made, offer.cell, rows)
        return made

    def close(self, gone: Class) -> None:
        """Close the label of a class without rows."""
        for cell in self.cells_of(gone.label):
            self.around[cell].remove(gone)
        del self.open[gone.label]

    # -- what stays good ------------------------------------------------------------------------------

    def is_good(self, one: Class) -> bool:
        """True if a class has what is needed."""
        return one.size >= self.need.rows and len(one.values) >= self.need.values

    def leaving(self, out: Class, value: int, rows: int, given: Given) -> int:
        """How many of so many rows of a value a good class can give besides what it gives already."""
        most = min(rows, out.size - given.rows - self.need.rows)
        if self.need.values > 1 and most > 0:
            left = out.values[value] - given.values.get(value, 0)
            if most >= left and len(out.values) - given.lost <= self.need.values:
                most = left - 1
        return max(most, 0)

    # -- the best class of a label --------------------------------------------------------------------

    def best(self, offers: Iterable[Offer], closing: Collection[Class] = ()) -> tuple[int, Taken]:
        """What a good class of these offers saves, which are in falling order of that, and what it takes; or nothing.

        All others stay good, but for those that are `closing`. Of rows that lose so many are taken as lack, and of a
        value that lacks one.
        """
        taken, values, given = Taken(), dict[int, int](), dict[Class, Given]()
        need, size, saved = self.need, 0, 0
        for offer in offers:
            value, rows = self.values[offer.cell], offer.rows
            lacking = max(need.values - len(values), 0)
            if offer.saves <= 0:
                if size >= need.rows and not lacking:
                    break
                rows = min(rows, max(need.rows - size - lacking, 0) + (lacking > 0 and value not in values))
            if rows > 0 and offer.held is not None and offer.held not in closing:
                rows = self._given(offer.held, value, rows, given.setdefault(offer.held, Given()))
            if rows > 0:
                taken.append((offer, rows))
                values[value] = values.get(value, 0) + rows
                size, saved = size + rows, saved + offer.saves * rows
        return (saved, taken) if size >= need.rows and len(values) >= need.values else (0, [])

    def _given(self, out: Class, value: int, rows: int, given: Given) -> int:
        """How many of so many rows of a value a class gives, which are entered."""
        rows = self.leaving(out, value, rows, given)
        given.rows += rows
        given.values[value] = given.values.get(value, 0) + rows
        given.lost += rows > 0 and given.values[value] == out.values[value]
        return rows
