"""Refinement: what a class that was published coarse tells, as its publisher went from fine labels to coarse ones.

Chhillar, Righi, Sutter and Kornaropoulos, "Exposing Privacy Risks in Anonymizing Clinical Data: Combinatorial
Refinement Attacks on k-Anonymity Without Auxiliary Information" (2025). The attacker has the release, the taxonomies
and k, and knows nobody. The publisher recoded locally as ARX does: tried combinations of levels, those of less loss
first, and by each published the classes that k of the rows then left fall into. So of a published class

- fewer than k rows lie in a box of finer nodes: k would have been published there,
- none lies in such a box that is itself published: who was there has gone.

Linear programs tell how many rows of the class have each value of its labels, at least and at most, over all ways to
spread its rows. Of two combinations neither of which is finer, the loss decides which came first. The paper reads that
too; here nothing follows from it, so that conclusions hold under any loss that grows with labels. The paper also has a
row in each half of a label: that follows from the first rule where nodes have two children, and is wrong with more.

Levels finer than all labels of a column may not have been allowed, and count as none. By a requirement other than k
nothing follows, as a finer class may have lacked values. Of a publisher who goes another way, such as every algorithm
of this program, the conclusions may be wrong: classes that contradict the rules show it.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

from ldiv_db.attacking.base import AttackedTable, Attacker
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.gains import Attack, gain_of, mean_of
from ldiv_db.attacking.question import Knowledge
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.names import Identifier
from ldiv_db.requirements import promised_by
from ldiv_db.requirements.guarantees import Guarantee
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Taxonomy

_SOLVER = "highspy"
#: By how much it may miss a whole number.
_TOLERANCE = 1e-6
#: A combination of labels, as the nodes of their taxonomies.
Nodes = tuple[int, ...]
#: By node those at and below it, itself first, each with the first place of its values and the one after the last.
Tree = Mapping[int, Sequence[tuple[int, tuple[int, int]]]]
#: The places of the values of each node below a label, by label.
Spans = Sequence[Sequence[tuple[int, int]]]
#: The least and the most rows that have each value, by label; None where no way to spread the rows keeps the rules.
Counts = list[list[tuple[int, int]]] | None


class Refinement(Attacker):
    """The attack on a table by its labels alone: their nodes come to Python, with how many rows have them."""

    names = ("refinement",)
    key = "refine"
    reads_labels = True
    of_values = False
    words: ClassVar = {"rows_contradicted": "rows of classes that cannot have been published by these rules"}

    @classmethod
    def problems(cls, engine: Engine, columns: Columns, known: Knowledge) -> Iterator[Problem]:
        try:
            importlib.import_module(_SOLVER)
        except ModuleNotFoundError:
            yield Problem("refine", "needs highspy", "pip install 'ldiv-db[refine]'")

    def attacks(self) -> Iterator[Attack]:
        table, told = self.table, Counter[str]()
        promise = promised_by(table.required)
        if not (note := _why_not(table, promise)):
            for _, rows, counts in conclude(*_read_boxes(table), promise.size, table.budget):
                told.update(tried=rows, contradicted=0 if counts else rows)
                for ends in (one for one in counts or [] if len(one) > 1):
                    possible = sum(most > 0 for _, most in ends)
                    narrowed, counted = possible < len(ends), all(least == most for least, most in ends)
                    told.update(cells=rows, narrowed=rows * narrowed, counted=rows * counted)
                    told.update(values=rows * len(ends), possible=rows * possible)
        cells = table.rows * len(table.axes)
        measures = {"share of cells narrowed": "narrowed", "share of cells with all values counted": "counted"}
        shares = {measure: None if note else Fraction(told[key], cells) for measure, key in measures.items()}
        figures = {
            "rows_contradicted": told["contradicted"],
            "cells_coarse": told["cells"],
            "values": mean_of(told["values"], told["cells"], unit=1),
            "values_narrowed": mean_of(told["possible"], told["cells"], unit=1),
        }
        gains = tuple(gain_of(measure, share, None) for measure, share in shares.items())
        found = Attack("refinement", None, gains, {"note": note} if note else figures)
        yield found if note else found.with_untried("rows", told["tried"], table.rows)


def _why_not(table: AttackedTable, promise: Guarantee) -> str:
    """Why nothing follows from this table's labels; empty if something may."""
    others = [axis.name for axis in table.axes if axis.hierarchy.taxonomy is None or len(axis.columns) > 1]
    if others:
        return f"no taxonomy tells the finer labels of {', '.join(others)}"
    if promise.size < 2 or promise != Guarantee(size=promise.size) or table.columns.on_people:
        return "nothing follows unless k, of rows, is all that is required"
    return "" if table.rows else "there are no rows"


def _read_boxes(table: AttackedTable) -> tuple[list[tuple[Nodes, int]], list[Tree]]:
    """Each combination of labels with its rows, and the trees; raises PolicyError for labels of no node."""
    engine, axes = table.engine, list[dict[str, Any]]()
    taxonomies = [axis.hierarchy.taxonomy for axis in table.axes if axis.hierarchy.taxonomy]
    for number, (axis, taxonomy) in enumerate(zip(table.axes, taxonomies, strict=True), 1):
        nodes = {ROOT_LABEL: 0} | {node.label: node.node for node in taxonomy.nodes}
        loaded = engine.load("nodes", {"label": "VARCHAR", "node": "INTEGER"}, list(nodes.items()))
        axes.append({"nodes": loaded, "node": Identifier(f"node_{number}"), "column": axis.columns[0]})
    counted = engine.rows("attacking/refinement/count_boxes", classes=table.classes, axes=axes)
    engine.drop(*(axis["nodes"] for axis in axes))
    found = list(zip(*counted, strict=True))[1:]
    unknown = [f"quasi_identifiers.{axis.name}" for axis, nodes in zip(table.axes, found, strict=True) if None in nodes]
    refuse([Problem(key, "has labels that are not in its taxonomy") for key in unknown])
    trees = [tree_of(taxonomy, nodes) for taxonomy, nodes in zip(taxonomies, found, strict=True)]
    return sorted((tuple(nodes), rows) for rows, *nodes in counted), trees


def tree_of(taxonomy: Taxonomy, published: Sequence[int]) -> Tree:
    """The tree of a column with these nodes published, without the levels finer than all of them."""
    heights, depths = taxonomy.heights, {node.node: node.depth for node in taxonomy.nodes}
    lowest, deepest = min(heights[node] for node in published), max(depths[node] for node in published)
    tree: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    children: defaultdict[int | None, list[int]] = defaultdict(list)
    for node in reversed(taxonomy.nodes):  # children stand after their parent
        below, values = [], 0
        if all(heights[child] >= lowest and depths[child] <= deepest for child in children[node.node]):
            for child in children[node.node]:
                below += [(one, (low + values, high + values)) for one, (low, high) in tree[child]]
                values += tree[child][0][1][1]
        tree[node.node] = [(node.node, (0, max(values, 1))), *below]
        children[node.parent].append(node.node)
    return tree


def conclude(
    boxes: Sequence[tuple[Nodes, int]], trees: Sequence[Tree], k: int, budget: int
) -> Iterator[tuple[Nodes, int, Counts]]:
    """What follows of each class, those of few values first, until their programs have more numbers than the budget."""
    solved: dict[Any, Counts] = {}
    published = {nodes for nodes, _ in boxes}
    spans_of = {
        nodes: tuple(tuple(span for _, span in tree[node]) for tree, node in zip(trees, nodes, strict=True))
        for nodes in published
    }
    for nodes, rows in sorted(boxes, key=lambda box: (_cost(spans_of[box[0]]), box)):
        budget -= _cost(spans_of[nodes])
        if budget < 0:
            return
        finer = product(*([one for one, _ in tree[node]] for tree, node in zip(trees, nodes, strict=True)))
        limits = rows, *(0 if box in published else k - 1 for box in finer if box != nodes)
        key = spans_of[nodes], limits
        if key not in solved:
            solved[key] = _solve(*key)
        yield nodes, rows, solved[key]


def _cost(spans: Spans) -> int:
    """How many numbers the programs of a class have: two programs for each value."""
    return 2 * sum(one[0][1] for one in spans) * math.prod(sum(high - low for low, high in one) for one in spans)


def _solve(spans: Spans, limits: Sequence[int]) -> Counts:
    """The rows that have each value, with at most so many in each box of nodes, and exactly so many in the first."""
    highs = importlib.import_module(_SOLVER)
    cells = list(product(*(range(one[0][1]) for one in spans)))
    number = {cell: place for place, cell in enumerate(cells)}
    model = highs.Highs()
    model.setOptionValue("output_flag", False)
    model.addVars(len(cells), [0] * len(cells), [limits[0]] * len(cells))
    for limit, box in zip(limits, product(*spans), strict=True):
        inside = [number[cell] for cell in product(*(range(low, high) for low, high in box))]
        model.addRow(0 if model.getNumRow() else limit, limit, len(inside), inside, [1] * len(inside))
    counts: list[list[tuple[int, int]]] = [[] for _ in spans]
    for axis, place in ((axis, place) for axis, one in enumerate(spans) for place in range(one[0][1])):
        model.changeColsCost(len(cells), range(len(cells)), [cell[axis] == place for cell in cells])
        ends = []
        for sense in highs.ObjSense.kMinimize, highs.ObjSense.kMaximize:
            model.changeObjectiveSense(sense)
            model.run()
            if model.getModelStatus() == highs.HighsModelStatus.kInfeasible:
                return None
            ends.append(model.getInfo().objective_function_value)
        counts[axis].append((math.ceil(ends[0] - _TOLERANCE), math.floor(ends[1] + _TOLERANCE)))
    return counts
