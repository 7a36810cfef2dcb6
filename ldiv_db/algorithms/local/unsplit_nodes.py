"""Unsplit nodes: those of which no split was found are tried once more, part by part, with rows given back.

If good classes of some parts can leave a node so that what stays is good, the class of one part can: the others, good
as they are, make what stays no worse. So each part of an unsplit node is tried by itself. A retention says how many of
its rows of each combination of sensitive values stay in the node. Where more rows are never worse (`k`, `distinct`)
bad parts have no good class, and the fewest rows of a good one have been tried before, so that only the retention of
nothing is left; otherwise all are tried, as far as there are no more than `MOST` for a part and `BUDGET` for all of a
round, beyond that again the retention of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.local.candidate_classes import ClassChecker
from ldiv_db.database.templates import Identifier, Relation, Value

#: The most retentions that are tried for one part, and for all parts of a round.
MOST, BUDGET = 1024, 2**20


@dataclass(frozen=True)
class PartSplits:
    """The splits found: (node, split, part, retention) of the nodes, and all `retentions` with what they give back."""

    splits: Relation
    retentions: Relation


def find_splits(
    task: Task, checker: ClassChecker, children: Value, counts: Relation, measured: Relation, chosen: Relation
) -> PartSplits:
    """How the unsplit nodes can be split, as far as they can."""
    engine, sensitive = task.engine, task.encoded.sensitive
    only = checker.more_is_better
    with engine.scope() as scope:
        unsplit = engine.materialise(
            "unsplit", "local/topdown/list_unsplit", measured=measured, chosen=chosen, good_only=only
        )
        tried = max(1, min(MOST, BUDGET // max(1, engine.count(unsplit))))
        most = Value(1 if only else tried)
        numbers = engine.load("numbers", {"number": "BIGINT"}, [(number,) for number in range(most.value)])
        holes = {"sensitive": sensitive, "most": most}
        combinations = engine.materialise(
            "combinations", "local/topdown/list_combinations", counts=counts, unsplit=unsplit, **holes
        )
        retentions = engine.materialise(
            "retentions", "local/topdown/list_retentions", combinations=combinations, numbers=numbers, **holes
        )
        holes = {"retentions": retentions, "counts": counts, "sensitive": sensitive, "children": children}
        margins = checker.margins(engine.materialise("trials", "local/topdown/count_retentions", **holes))
        splits = engine.materialise(
            "part_splits", "local/topdown/choose_retentions", retentions=retentions, unsplit=unsplit, margins=margins
        )
        return PartSplits(scope.keep(splits), scope.keep(retentions))


def add_splits(
    task: Task, part_splits: PartSplits, parts: Relation, measured: Relation, chosen: Relation, taken: Relation
) -> Relation:
    """The parts as measured, the splits found being added to those `chosen` and their rows to those `taken`."""
    engine, splits = task.engine, part_splits.splits
    kept = engine.materialise("measured", "local/topdown/keep_parts", measured=measured, part_splits=splits)
    engine.delete_listed(taken, Identifier("split"), splits)
    holes = {"parts": parts, "part_splits": splits, "retentions": part_splits.retentions, "measured": measured}
    engine.insert(taken, "local/topdown/list_given", **holes, sensitive=task.encoded.sensitive)
    engine.extend(chosen, splits, "split", "node")
    return kept
