"""Hierarchies: the ways to generalise one quasi-identifier, from its values up to everything, each with its mean cost.

A vector names a level of each hierarchy; rows that agree on all of them are a candidate class. Vectors come in
rising order of cost.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import Measure
from ldiv_db.database.names import Identifier, NamedAfter

#: The most levels on a line of numbers besides its values and everything.
WIDTHS = 6
#: Keys of candidate classes, with the number of their vector, fit into so many bits.
KEY_BITS = 61
#: The most vectors that are tried; beyond them only those of one way up.
MOST_VECTORS = 4096

Vector = tuple[int, ...]


@dataclass(frozen=True)
class HierarchyLevel:
    """One way to generalise: places `0..places-1`, a row's mean cost, and where the place comes from.

    That is the column `node` of the paths, or the code over `width` (`last` is NULL's).
    """

    column: Identifier
    places: int
    cost: int
    node: Identifier | None = None
    width: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class ValueHierarchy:
    """The levels of a quasi-identifier, the finest first; above the last of them is everything, at `full` cost."""

    measure: Measure
    levels: tuple[HierarchyLevel, ...]
    full: int

    @property
    def costs(self) -> list[int]:
        return [*(level.cost for level in self.levels), self.full]

    @property
    def numbered(self) -> list[tuple[int, HierarchyLevel]]:
        """The levels with their numbers."""
        return list(enumerate(self.levels))

    #: The column of a table of vectors that says which level is meant.
    choice = NamedAfter("{0.measure.axis.code.name}_level")

    @property
    def places(self) -> int:
        """One more than any place: 0 is kept for everything."""
        return 1 + max([0, *(level.places for level in self.levels)])

    @property
    def bits(self) -> int:
        """How many bits of a key tell its places: none where everything is the only one."""
        return self.places.bit_length() if self.levels else 0


def hierarchies_of(task: Task, measures: Sequence[Measure]) -> tuple[ValueHierarchy, ...]:
    """The hierarchies of all quasi-identifiers, their finest levels taken off where keys would not fit."""
    gains = task.engine.record("local/sum_gains", rows=task.encoded.rows, measures=measures)
    hierarchies = [_hierarchy(measure, gains) for measure in measures]
    room = KEY_BITS - MOST_VECTORS.bit_length() - 1
    while sum(hierarchy.bits for hierarchy in hierarchies) > room:
        widest = max(range(len(hierarchies)), key=lambda axis: hierarchies[axis].places)
        old = hierarchies[widest]
        hierarchies[widest] = ValueHierarchy(old.measure, old.levels[1:], old.full)
    return tuple(hierarchies)


def vectors_of(hierarchies: Sequence[ValueHierarchy], most: int = MOST_VECTORS) -> list[Vector]:
    """The cheapest vectors in rising order of cost, then one way up from the last of them to everything."""
    vectors, costs = [], [hierarchy.costs for hierarchy in hierarchies]
    for vector in _rising(costs):
        vectors.append(vector)
        if len(vectors) == most:
            break
    last = list(vectors[-1])
    while steps := [
        (cost[level + 1] - cost[level], axis)
        for axis, (level, cost) in enumerate(zip(last, costs, strict=True))
        if level < len(cost) - 1
    ]:
        last[min(steps)[1]] += 1
        vectors.append(tuple(last))
    return vectors


def _rising(costs: Sequence[Sequence[int]]) -> Iterator[Vector]:
    """All vectors by cost, then by their levels; each is reached from the one without its last step."""
    start = (0,) * len(costs)
    heap = [(sum(cost[0] for cost in costs), start, 0)]
    while heap:
        total, vector, first = heapq.heappop(heap)
        yield vector
        for axis in range(first, len(costs)):
            level = vector[axis] + 1
            if level < len(costs[axis]):
                step = costs[axis][level] - costs[axis][level - 1]
                heapq.heappush(heap, (total + step, (*vector[:axis], level, *vector[axis + 1 :]), axis))


def _hierarchy(measure: Measure, gains: dict[str, int]) -> ValueHierarchy:
    if measure.axis.scale == 0 and measure.axis.null_apart is None:
        return ValueHierarchy(measure, (), 0)
    levels = _taxonomy_levels(measure, gains) if measure.paths else _interval_levels(measure)
    return ValueHierarchy(measure, tuple(levels), measure.full)


def _taxonomy_levels(measure: Measure, gains: dict[str, int]) -> Iterator[HierarchyLevel]:
    """The leaves, then the levels from there up; a level's cost is that of the root less what all from it up save."""
    taxonomy, name = measure.axis.tree, measure.axis.code.name
    nodes = len(taxonomy.nodes) if taxonomy else 0
    yield HierarchyLevel(Identifier(f"{name}_0"), measure.axis.leaves, 0)
    saved, upper = 0, []
    for level in measure.levels[:-1]:
        saved += gains[level.gain.name]
        upper.append((level, saved))
    for number, (level, total) in enumerate(reversed(upper), 1):
        cost = measure.full - total // gains["rows"]
        yield HierarchyLevel(Identifier(f"{name}_{number}"), nodes, cost, node=level.node)


def _interval_levels(measure: Measure) -> Iterator[HierarchyLevel]:
    """The values, then intervals that part the domain into a power of two, down to two."""
    axis = measure.axis
    widths = [-(-(axis.scale + 1) // 2**power) for power in range(0 if axis.sets else WIDTHS, 0, -1)]
    for number, width in enumerate([1, *(width for width in dict.fromkeys(widths) if width > 1)]):
        last = axis.scale // width + 1
        cost = (width - 1) * measure.full // max(axis.scale, 1)
        column = Identifier(f"{axis.code.name}_{number}")
        yield HierarchyLevel(column, last + 1, cost, width=width, last=last)
