"""Stuck nodes: those of which no split was found, part by part and by all ways to give rows back.

If good classes of some parts can leave a node so that what stays is good, the class of one part can: the others, good
as they are, make what stays no worse. So each part of a stuck node is tried by itself. A way says how many of its
rows of each combination of sensitive values stay in the node. Where more rows are never worse (`k`, `distinct`) bad
parts have no good class, and the fewest rows of a good one have been tried before, so that only the way that gives
nothing is left; otherwise all ways are tried, as far as there are no more than `MOST` for a part and `BUDGET` for all
of a round, beyond that again the one that gives nothing.
"""

from __future__ import annotations

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.local.candidate_classes import Judge
from ldiv_db.database.templates import Identifier, Relation, Value

#: The most ways that are tried for one part, and for all parts of a round.
MOST, BUDGET = 1024, 2**20


def find_splits(
    task: Task, judge: Judge, children: Value, counts: Relation, measured: Relation, chosen: Relation
) -> tuple[Relation, Relation]:
    """(node, split, part, way) of the stuck nodes that can be split, and the ways with what they give back."""
    engine, sensitive = task.engine, task.encoded.sensitive
    only = judge.more_is_better
    stuck = engine.materialise("stuck", "local/topdown/list_stuck", measured=measured, chosen=chosen, good_only=only)
    tried = max(1, min(MOST, BUDGET // max(1, engine.count(stuck))))
    most = Value(1 if only else tried)
    numbers = engine.load("numbers", {"number": "BIGINT"}, [(number,) for number in range(most.value)])
    piles = engine.materialise(
        "piles", "local/topdown/list_piles", counts=counts, stuck=stuck, sensitive=sensitive, most=most
    )
    ways = engine.materialise(
        "ways", "local/topdown/list_ways", piles=piles, numbers=numbers, sensitive=sensitive, most=most
    )
    trials = engine.materialise(
        "trials", "local/topdown/count_ways", ways=ways, counts=counts, sensitive=sensitive, children=children
    )
    margins = judge.margins(trials)
    found = engine.materialise("found", "local/topdown/choose_ways", ways=ways, stuck=stuck, margins=margins)
    engine.drop(stuck, numbers, piles, trials, margins)
    return found, ways


def add_splits(
    task: Task, found: Relation, ways: Relation, parts: Relation, measured: Relation, chosen: Relation, taken: Relation
) -> Relation:
    """The parts as measured, the splits found being added to those `chosen` and their rows to those `taken`."""
    engine = task.engine
    kept = engine.materialise("measured", "local/topdown/keep_parts", measured=measured, found=found)
    engine.delete_listed(taken, Identifier("split"), found)
    holes = {"parts": parts, "found": found, "ways": ways, "measured": measured}
    engine.insert(taken, "local/topdown/list_given", **holes, sensitive=task.encoded.sensitive)
    engine.extend(chosen, found, "split", "node")
    engine.drop(found, ways, measured)
    return kept
