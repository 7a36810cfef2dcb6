"""Trees for what has none: numbers, parted where half of their rows are, and people who have several values.

Of such a person a cut publishes the lowest common ancestor of the values: lifted to the cut, or as it is where it is
above the cut. So it is a value of its own, a leaf below that node (`SpannedTaxonomy`), and every search sees one code
of each quasi-identifier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.cuts.intervals import IntervalTree, Stretch, interval_tree
from ldiv_db.algorithms.cuts.trees import CutTree
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.encoded import Axis, Encoded
from ldiv_db.recoding.levels import HIGHEST
from ldiv_db.taxonomies.taxonomy import NULL_LABEL, ROOT_LABEL, Node, SpannedTaxonomy, Taxonomy, range_label


@dataclass(frozen=True)
class HalvedTree(CutTree):
    """One quasi-identifier's numbers, in a tree of halves; NULL is beside them."""

    numbers: IntervalTree

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy(tuple(_halves(self.numbers)), "halves of its numbers")

    @cached_property
    def leaf_of(self) -> dict[int, int]:
        own = [stretch.codes for stretch in self.numbers.stretches]
        own += [] if self.numbers.null is None else [(self.numbers.null,)]
        return {code: leaf.node for leaf, codes in zip(self.taxonomy.leaves, own, strict=True) for code in codes}


#: What numbers without a taxonomy are to a search.
TreeOfNumbers = Callable[[Engine, Axis, int], CutTree]


def halved_tree(engine: Engine, axis: Axis, number: int) -> CutTree:
    """The tree of the halves of a quasi-identifier's numbers."""
    return HalvedTree(axis, number, interval_tree(engine, axis, number))


def trees_of(engine: Engine, axes: Sequence[Axis], of_numbers: TreeOfNumbers = halved_tree) -> tuple[CutTree, ...]:
    """The trees of quasi-identifiers: their taxonomies, or what their numbers are."""
    numbered = enumerate(axes, 1)
    return tuple(CutTree(axis, n) if axis.taxonomy else of_numbers(engine, axis, n) for n, axis in numbered)


def _halves(numbers: IntervalTree) -> list[Node]:
    """The nodes of the tree, each parted so that its halves have as nearly equally many rows as can be."""
    nodes: list[Node] = []

    def visit(own: Sequence[Stretch], parent: int | None, depth: int) -> None:
        low, high, texts = own[0].codes[0], own[-1].codes[-1], (own[0].first, own[-1].last)
        label = texts[0] if low == high else range_label(*texts)
        nodes.append(Node(number := len(nodes), parent, label, depth, low, high))
        if len(own) > 1:
            middle = _middle([stretch.rows for stretch in own])
            visit(own[:middle], number, depth + 1)
            visit(own[middle:], number, depth + 1)

    if numbers.null is None:
        visit(numbers.stretches, None, 0)
        return nodes
    nodes.append(Node(0, None, ROOT_LABEL, 0, numbers.stretches[0].codes[0], numbers.null))
    visit(numbers.stretches, 0, 1)
    return [*nodes, Node(len(nodes), 0, NULL_LABEL, 1, numbers.null, numbers.null)]


def _middle(rows: Sequence[int]) -> int:
    """How many of the values the first half has."""
    before, whole, apart = 0, sum(rows), list[int]()
    for own in rows[:-1]:
        before += own
        apart.append(abs(2 * before - whole))
    return 1 + apart.index(min(apart))


def in_nodes(task: Task) -> Task:
    """The task with one axis for each quasi-identifier, those of several values spanning nodes of a tree."""
    engine, encoded = task.engine, task.encoded
    named = {axis.name: axis for axis in encoded.axes}
    pairs = {name: axis for name in named if (axis := named.get(name + HIGHEST))}
    if not pairs:
        return task
    axes = [axis for axis in encoded.axes if axis not in pairs.values()]
    with engine.scope() as scope:
        rows = encoded.rows
        for place, axis in enumerate(axes):
            if axis.name in pairs:
                spanned = SpannedTaxonomy.of(trees_of(engine, [axis])[0].taxonomy)
                leaves = [(spanned.code_of(leaf), leaf.low, leaf.high) for leaf in spanned.leaves]
                both = axis.code, pairs[axis.name].code
                rows = _place_spans(engine, encoded, rows, both, leaves)
                axes[place] = replace(axis, taxonomy=spanned, weight=2 * axis.weight)
        scope.keep(rows)
    return replace(task, encoded=replace(encoded, rows=rows, axes=tuple(axes)))


def _place_spans(
    engine: Engine,
    encoded: Encoded,
    rows: Relation,
    both: tuple[Identifier, Identifier],
    leaves: Sequence[tuple[int, ...]],
) -> Relation:
    """The rows with the code of a leaf in place of the lowest and the highest code of somebody's values."""
    lowest, highest = both
    listed = engine.load("leaves", dict.fromkeys(("code", "low", "high"), "INTEGER"), leaves)
    params = {"rows": rows, "leaves": listed, "lowest": lowest, "highest": highest}
    placed = engine.materialise("placed", "cuts/place_spans", **params)
    codes = [*encoded.codes, *(axis.code.name for axis in encoded.sensitive)]
    keys = ((lowest.name, "low"), (highest.name, "high"))
    others = ["row_id", *(code for code in codes if code != lowest.name)]
    return engine.join("rows", rows, placed, *keys, left_columns=others, right_columns=[("code", lowest.name)])
