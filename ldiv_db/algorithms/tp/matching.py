"""Matching: the fewest stars where they can be had in polynomial time: two sensitive values and l = 2.

Xiao, Yi, Tao (EDBT 2010), Section 4. Half of the rows have either value, and any release is as good as one of pairs
with a row of each: a perfect matching whose weight is the stars. Equal rows pair off first, as weights keep the
triangle inequality; the rest is a flow between the QI-groups that have too many rows of one value and those of the
other, of least cost as networkx's network simplex finds it on their counts. Only these counts are read from the
database, never rows.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.base import Feasibility, Task, Traits
from ldiv_db.algorithms.tp.tp import Tp, count_groups, kept_rows
from ldiv_db.database.errors import InfeasibleError, refused
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation

#: The most pairs of groups that a flow may run between: about this many edges are held in memory.
MOST_PAIRS = 250_000


@dataclass(frozen=True)
class Surplus:
    """A QI-group, its codes, and how many rows more of its more frequent value it has."""

    group_no: int
    code: int
    rows: int
    point: tuple[int, ...]

    def stars(self, other: Surplus) -> int:
        """The quasi-identifiers on which two groups differ."""
        return sum(a != b for a, b in zip(self.point, other.point, strict=True))


class Matching(Tp):
    """The fewest stars, for two sensitive values and l = 2."""

    name = "matching"
    traits = Traits()

    def check(self, task: Task) -> Feasibility:
        """Raises PolicyError without networkx, and unless there are two sensitive values and l is 2."""
        feasible = super().check(task)
        _networkx()
        distinct = task.encoded.sensitive[0].distribution.distinct
        if feasible.l != 2 or distinct != 2:
            what = f"matching takes l = 2 and two sensitive values, these are l = {feasible.l} and {distinct} values"
            raise refused("algorithm.name", what, "tp_plus takes any")
        return feasible

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:
        engine, encoded = task.engine, task.encoded
        flow = EngineFlow(engine, "tp", rows=encoded.rows, axes=encoded.axes, sensitive=encoded.sensitive[0])
        with engine.scope() as scope:
            flow.know(cells=count_groups(task), seed=task.seed, l=l)
            flow.step("state", "keep_cores")
            surplus = [Surplus(no, code, rows, tuple(point)) for no, code, rows, *point in flow.rows("list_surplus")]
            flows = number_pairs(match(surplus), engine.most(flow["cells"], "group_no") or 0)
            kept = scope.keep(kept_rows(engine, flow.step("assigned", "assign_rows")))
            columns = dict.fromkeys(("group_no", "first", "last", "class_id"), "BIGINT")
            flow.insert(kept, "pair_rows", flows=engine.load("flows", columns, flows))
        return kept, {"optimal": True, "matched_groups": len(surplus)}


def match(surplus: Sequence[Surplus]) -> list[tuple[int, int, int]]:
    """(group, group, rows): how many rows of either are paired, so that the stars are fewest.

    Raises InfeasibleError if there are more than `MOST_PAIRS` pairs of groups.
    """
    sides: dict[int, list[Surplus]] = defaultdict(list)
    for group in surplus:
        sides[group.code].append(group)
    if not sides:
        return []
    (_, ours), (_, theirs) = sorted(sides.items())
    if len(ours) * len(theirs) > MOST_PAIRS:
        raise InfeasibleError(
            f"matching takes at most {MOST_PAIRS:,} pairs of groups to be matched, these are"
            f" {len(ours) * len(theirs):,}: coarsen, or take tp_plus, which is not an exact optimum"
        )
    networkx = _networkx()
    graph = networkx.DiGraph()
    graph.add_nodes_from((group.group_no, {"demand": -group.rows}) for group in ours)
    graph.add_nodes_from((-group.group_no, {"demand": group.rows}) for group in theirs)
    graph.add_weighted_edges_from((one.group_no, -other.group_no, one.stars(other)) for one in ours for other in theirs)
    _, flow = networkx.network_simplex(graph)
    return [(one, -other, rows) for one, flows in sorted(flow.items()) for other, rows in sorted(flows.items()) if rows]


def number_pairs(flows: Sequence[tuple[int, int, int]], last_class: int) -> list[tuple[int, int, int, int]]:
    """(group, first, last, class): the rows of a group, numbered from 0, that are in classes from this one on."""
    taken: dict[int, int] = defaultdict(int)
    numbered = []
    for one, other, rows in flows:
        for group_no in (one, other):
            numbered.append((group_no, taken[group_no], taken[group_no] + rows - 1, last_class + 1))
            taken[group_no] += rows
        last_class += rows
    return numbered


def _networkx() -> Any:
    """The library; raises PolicyError if it is not installed."""
    try:
        return importlib.import_module("networkx")
    except ModuleNotFoundError:
        raise refused(
            "algorithm.name", "matching needs networkx", "pip install 'ldiv-db[matching]', or take tp_plus"
        ) from None
