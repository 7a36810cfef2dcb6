"""Stuck nodes: those of which no split was found, part by part and by all ways to give rows back.

If good classes of some parts can leave a node so that what stays is good, the class of one part can: the others, good
as they are, make what stays no worse. So each part of a stuck node is tried by itself. A way says how many of its
rows of each combination of sensitive values stay in the node. Where more rows are never worse (`k`, `distinct`) bad
parts have no good class, and the fewest rows of a good one have been tried before, so that only the way that gives
nothing is left; otherwise all ways are tried, as far as there are no more than `MOST` for a part and `BUDGET` for all
of a round, beyond that again the one that gives nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.local.candidate_classes import ClassChecker
from ldiv_db.database.templates import Identifier, Relation, Value

#: The most ways that are tried for one part, and for all parts of a round.
MOST, BUDGET = 1024, 2**20


@dataclass(frozen=True)
class PartSplits:
    """The splits found: (node, split, part, way) of the nodes, and all `ways` with what they give back."""

    found: Relation
    ways: Relation


def find_splits(
    task: Task, checker: ClassChecker, children: Value, counts: Relation, measured: Relation, chosen: Relation
) -> PartSplits:
    """How the stuck nodes can be split, as far as they can."""
    engine, sensitive = task.engine, task.encoded.sensitive
    only = checker.more_is_better
    with engine.scope() as scope:
        stuck = engine.materialise(
            "stuck", "local/topdown/list_stuck", measured=measured, chosen=chosen, good_only=only
        )
        tried = max(1, min(MOST, BUDGET // max(1, engine.count(stuck))))
        most = Value(1 if only else tried)
        numbers = engine.load("numbers", {"number": "BIGINT"}, [(number,) for number in range(most.value)])
        holes = {"sensitive": sensitive, "most": most}
        piles = engine.materialise("piles", "local/topdown/list_piles", counts=counts, stuck=stuck, **holes)
        ways = engine.materialise("ways", "local/topdown/list_ways", piles=piles, numbers=numbers, **holes)
        holes = {"ways": ways, "counts": counts, "sensitive": sensitive, "children": children}
        margins = checker.margins(engine.materialise("trials", "local/topdown/count_ways", **holes))
        found = engine.materialise("found", "local/topdown/choose_ways", ways=ways, stuck=stuck, margins=margins)
        return PartSplits(scope.keep(found), scope.keep(ways))


def add_splits(
    task: Task, splits: PartSplits, parts: Relation, measured: Relation, chosen: Relation, taken: Relation
) -> Relation:
    """The parts as measured, the splits found being added to those `chosen` and their rows to those `taken`."""
    engine, found = task.engine, splits.found
    kept = engine.materialise("measured", "local/topdown/keep_parts", measured=measured, found=found)
    engine.delete_listed(taken, Identifier("split"), found)
    holes = {"parts": parts, "found": found, "ways": splits.ways, "measured": measured}
    engine.insert(taken, "local/topdown/list_given", **holes, sensitive=task.encoded.sensitive)
    engine.extend(chosen, found, "split", "node")
    return kept
