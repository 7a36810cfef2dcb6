"""Coarsening: quasi-identifiers are raised to a level of their taxonomies, and treated as if they had no more to say.

Level 0 is the leaves; at level k a value stands for its ancestor k levels above the deepest leaves, or for itself
if that is a leaf nearer to the root. Fewer values make larger QI-groups, and fewer stars (Xiao, Yi, Tao, EDBT 2010,
Section 5.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import Axis
from ldiv_db.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True)
class Coarse:
    """A quasi-identifier with its cut: `cut` is (code, low, high), the span of codes that each is published as."""

    axis: Axis
    cut: Relation | None

    @property
    def code(self) -> Identifier:
        return self.axis.code

    @property
    def low(self) -> Identifier:
        return self.axis.low

    @property
    def high(self) -> Identifier:
        return self.axis.high

    @property
    def table(self) -> Identifier:
        return self.axis.table

    @property
    def upper(self) -> Identifier:
        """The cut once more, for the other end of a span."""
        return Identifier(f"{self.axis.table.name}_upper")

    @property
    def last(self) -> Value:
        """The last code, NULL's included."""
        return Value(max(self.axis.scale, self.axis.null_code or 0))


def check_levels(axes: Sequence[Axis], levels: Mapping[str, int]) -> None:
    """Raise PolicyError for columns that are no quasi-identifiers with a taxonomy, and levels that it lacks."""
    known, problems = {axis.name: axis.taxonomy for axis in axes}, []
    for name, level in levels.items():
        key = f"algorithm.coarsen.{name}"
        if name not in known:
            problems.append(Problem(key, "is not a quasi-identifier", nearest(name, known)))
            continue
        taxonomy = known[name]
        if taxonomy is None:
            problems.append(Problem(key, "has no taxonomy to coarsen by"))
        elif level > taxonomy.height:
            problems.append(Problem(key, f"the taxonomy has no level {level}", f"the highest is {taxonomy.height}"))
    if problems:
        raise PolicyError(problems)


def spans_at(taxonomy: Taxonomy, level: int) -> list[tuple[int, int]]:
    """The spans of leaf numbers of the nodes at a level, in order: together they are all leaves."""
    depth = max(0, taxonomy.height - level)
    return [(node.low, node.high) for node in taxonomy.nodes if node.depth == depth] + [
        (leaf.low, leaf.high) for leaf in taxonomy.leaves if leaf.depth < depth
    ]


def coarsen(task: Task, levels: Mapping[str, int]) -> tuple[Task, list[Coarse]]:
    """The task on coarse codes, the first of what each stands for, and the quasi-identifiers with their cuts."""
    engine, encoded = task.engine, task.encoded
    coarse = [Coarse(axis, _cut(engine, axis, levels.get(axis.name, 0))) for axis in encoded.axes]
    if all(axis.cut is None for axis in coarse):
        return task, coarse
    rows = engine.materialise(
        "coarse", "tp/coarsen_rows", rows=encoded.rows, axes=coarse, sensitive=encoded.sensitive[0]
    )
    return replace(task, encoded=replace(encoded, rows=rows, kept=(), cells=None)), coarse


def _cut(engine: Engine, axis: Axis, level: int) -> Relation | None:
    if not level or axis.taxonomy is None:
        return None
    rows = [(code, low, high) for low, high in spans_at(axis.taxonomy, level) for code in range(low, high + 1)]
    return engine.load(f"cut_{axis.code.name}", {"code": "BIGINT", "low": "BIGINT", "high": "BIGINT"}, rows)


def publish_bounds(engine: Engine, bounds: Relation, coarse: Sequence[Coarse], stars: bool) -> Relation:
    """The bounds of classes as they are published: as wide as the domain where there is a star, else as their cuts."""
    return engine.materialise("widened", "tp/widen_bounds", bounds=bounds, axes=coarse, stars=stars)


# -- which level -------------------------------------------------------------------------------------


def try_levels(task: Task, plan_at: Callable[[Mapping[str, int]], Plan]) -> Plan:
    """The plan of least KL divergence among those tried.

    From the leaves on every quasi-identifier is raised by a level in turn, and the one stays raised that lowers the
    divergence most, until none does.
    """
    heights = {axis.name: axis.taxonomy.height for axis in task.encoded.axes if axis.taxonomy}
    best, levels, tried = plan_at({}), dict.fromkeys(heights, 0), 1
    least = _divergence(task, best)
    while raised := [{**levels, name: level + 1} for name, level in levels.items() if level < heights[name]]:
        before = least
        for candidate in raised:
            plan = plan_at(candidate)
            divergence, tried = _divergence(task, plan), tried + 1
            worse = plan
            if divergence < least:
                worse, best, least, levels = best, plan, divergence, candidate
            task.engine.drop(*(table for table in (worse.assigned, worse.classes) if table))
        if least == before:
            break
    return replace(best, search={**best.search, "tried": tried, "kl": least})


def _divergence(task: Task, plan: Plan) -> float:
    divergence = task.divergence(plan)
    return math.inf if divergence is None else divergence
