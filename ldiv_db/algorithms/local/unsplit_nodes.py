"""Unsplit nodes: those of which no split was found are tried once more, part by part, with rows given back.

If good classes of some parts can leave a node so that what stays is good, the class of one part can: the others, good
as they are, make what stays no worse. So each part of an unsplit node is tried by itself. A retention says how many of
its rows of each combination of sensitive values stay in the node. Where more rows are never worse (`k`, `distinct`)
bad parts have no good class, and the fewest rows of a good one have been tried before, so that only the retention of
nothing is left, of parts beside which others are good too; otherwise all are tried, as far as there are no more than
`MOST` for a part and `BUDGET` for all of a round, beyond that again the retention of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import CostLevel, Measure
from ldiv_db.algorithms.local.candidate_classes import ClassChecker
from ldiv_db.database.one_statement import OneStatement
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import SensitiveAxis

#: The most retentions that are tried for one part, and for all parts of a round.
MOST, BUDGET = 1024, 2**20


@dataclass(frozen=True)
class Way:
    """A way in which a node parts, with its number: by the nodes of a level, or into halves of a range."""

    number: Value
    level: CostLevel | None = None


@dataclass(frozen=True)
class Branch:
    """A quasi-identifier with its number and the ways it has; its cost counts a little even if its weight is 0."""

    measure: Measure
    number: Value
    full: Value
    ways: Sequence[Way]


@dataclass(frozen=True)
class Nodes:
    """The nodes of a round: their rows, and the ways in which those with enough of them can be split."""

    active: Relation
    ways: Relation
    branches: Sequence[Branch]
    sensitive: Sequence[SensitiveAxis]
    children: Value

    @property
    def holes(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class PartSplits:
    """The splits found: (node, split, part, retention) of the nodes, and all `retentions` with what they give back."""

    splits: Relation
    retentions: Relation


def find_splits(
    task: Task, checker: ClassChecker, children: Value, counts: Relation, measured: Relation, chosen: Relation
) -> PartSplits | None:
    """How the unsplit nodes can be split, as far as they can; None if none of them can."""
    engine, only = task.engine, checker.more_is_better
    with engine.scope() as scope:
        unsplit = engine.materialise(
            "unsplit", "local/topdown/list_unsplit", measured=measured, chosen=chosen, good_only=only
        )
        parts = engine.count(unsplit)
        if not parts:
            return None
        retentions = _retain(task, counts, unsplit, 1 if only else max(1, min(MOST, BUDGET // parts)))
        steps, sensitive = OneStatement(engine), task.encoded.sensitive
        holes = {"retentions": retentions, "counts": counts, "sensitive": sensitive, "children": children}
        margins = checker.measured(steps, steps.materialise("trials", "local/topdown/count_retentions", **holes))
        holes = {"retentions": retentions, "unsplit": unsplit, "margins": margins}
        splits = steps.keep("part_splits", "local/topdown/choose_retentions", **holes)
        return PartSplits(scope.keep(splits), scope.keep(retentions)) if engine.count(splits) else None


def _retain(task: Task, counts: Relation, unsplit: Relation, tried: int) -> Relation:
    """The retentions that are tried, at most so many of a part."""
    steps, most = OneStatement(task.engine), Value(tried)
    holes = {"sensitive": task.encoded.sensitive, "most": most}
    numbers = steps.materialise("numbers", "local/topdown/list_numbers", most=most)
    combinations = steps.materialise(
        "combinations", "local/topdown/list_combinations", counts=counts, unsplit=unsplit, **holes
    )
    return steps.keep(
        "retentions", "local/topdown/list_retentions", combinations=combinations, numbers=numbers, **holes
    )


def add_splits(
    task: Task, part_splits: PartSplits, nodes: Nodes, measured: Relation, chosen: Relation, taken: Relation
) -> Relation:
    """The parts as measured, the splits found being added to those `chosen` and their rows to those `taken`."""
    engine, splits = task.engine, part_splits.splits
    kept = engine.materialise("measured", "local/topdown/keep_parts", measured=measured, part_splits=splits)
    engine.delete_listed(taken, Identifier("split"), splits)
    with engine.scope():
        placed = engine.materialise("placed", "local/topdown/place_rows", splits=splits, **nodes.holes)
        holes = {"placed": placed, "part_splits": splits, "retentions": part_splits.retentions, "measured": measured}
        engine.insert(taken, "local/topdown/list_given", **holes, sensitive=task.encoded.sensitive)
    engine.extend(chosen, splits, "split", "node")
    return kept
