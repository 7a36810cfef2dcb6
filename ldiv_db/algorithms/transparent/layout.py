"""Layouts: which values the columns have, worked out from the counts of the values alone.

A column is what a class will be: `size` rows of as many different values, or one row more in some. Columns of the same
values make a bucket. Loss falls with the room that a bucket has, so the widest buckets come first: of the values with
the most rows left, as many columns as leave the others room.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bucket:
    """So many columns of the same values: of each value (its place among the counts) the rows from `first` on."""

    columns: int
    values: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """The rows of a column."""
        return len(self.values)


def lay_out(counts: Sequence[int], columns: int) -> list[Bucket]:
    """The buckets of so many columns that hold all rows, each value at most once in a column.

    Columns have `sum(counts) // columns` rows or one more. Raises ValueError if a count exceeds the columns. With c
    columns left, w of them with a row more, the counts left sum to c * size + w and none exceeds c. Columns of the
    values with the most rows left keep that so, as long as no other value then has more rows than there are columns:
    so there is a bucket as long as there are columns.
    """
    if max(counts, default=0) > columns:
        raise ValueError("a value has more rows than there are columns")
    size, wide = divmod(sum(counts), max(columns, 1))
    free = [(-count, place) for place, count in enumerate(counts) if count]
    heapq.heapify(free)
    taken, buckets, left = [0] * len(counts), [], columns
    while left:
        one_more = left <= wide
        top = [heapq.heappop(free) for _ in range(size + one_more)]
        others = -free[0][0] if free else 0
        width = min(-top[-1][0], left - others, left - wide * (not one_more))
        buckets.append(Bucket(width, tuple((place, taken[place]) for _, place in top)))
        for count, place in top:
            taken[place] += width
            if -count > width:
                heapq.heappush(free, (count + width, place))
        left -= width
    return buckets
