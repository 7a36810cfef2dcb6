"""Taxonomies: rooted trees over the base values of a column, every node an interval of leaf numbers.

Leaves are numbered depth first, so the lowest common ancestor of a set of values depends on the
smallest and the largest leaf number alone, and so do all losses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from ldiv_db.database import migrate
from ldiv_db.database.catalog import catalog_table, table_exists
from ldiv_db.database.documents import MAX_DEPTH
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, Problem, first_of, refuse, refused
from ldiv_db.database.names import Relation

#: The label of a root that had to be added, and of everything that is fully generalised.
ROOT_LABEL = "*"
#: The name of NULL's leaf among nodes; it is published as NULL.
NULL_LABEL = "NULL"


def range_label(low: Any, high: Any, end: str = "]") -> str:
    """The label of a range, as `written_range` in `sql/macros/labels.j2` writes it; `end` is `)` without `high`."""
    return f"[{low} .. {high}{end}"


NODE_COLUMNS = {
    "node": "INTEGER",
    "parent": "INTEGER",
    "label": "VARCHAR",
    "depth": "INTEGER",
    "low": "INTEGER",
    "high": "INTEGER",
    "min_value": "DOUBLE",
    "max_value": "DOUBLE",
}


@dataclass
class Tree:
    """A label with its subtrees, in order; `bounds` are those of a leaf that stands for a range of numbers."""

    label: str
    children: list[Tree] = field(default_factory=list)
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class Node:
    """A node with its interval `low..high` of leaf numbers, both ends included; a leaf has `low == high`."""

    node: int
    parent: int | None
    label: str
    depth: int
    low: int
    high: int
    min_value: float | None = None
    max_value: float | None = None


@dataclass(frozen=True)
class Taxonomy:
    """The numbered nodes of one tree, the root first, and where it came from."""

    nodes: tuple[Node, ...]
    origin: str

    @property
    def leaves(self) -> list[Node]:
        parents = {node.parent for node in self.nodes}
        return [node for node in self.nodes if node.node not in parents]

    @property
    def height(self) -> int:
        return max(node.depth for node in self.nodes)

    @property
    def cuts(self) -> int:
        """The number of full-subtree generalisations: 1 for a leaf, 1 + the product over the children else."""
        counts = {node.node: 1 for node in self.nodes}
        inner = {node.parent for node in self.nodes}
        for node in reversed(self.nodes):  # children stand after their parent, so theirs are multiplied in by now
            if node.node in inner:
                counts[node.node] += 1
            if node.parent is not None:
                counts[node.parent] *= counts[node.node]
        return counts[self.nodes[0].node]

    def with_null(self) -> Taxonomy:
        """The taxonomy with one more leaf, the last, that stands for NULL: a value of its own under the root.

        A root that says something about values, such as a range, gets a root `*` above it and NULL.
        """
        root, last = self.nodes[0], max(node.high for node in self.nodes) + 1
        old = list(self.nodes)
        if root.label == ROOT_LABEL and len(old) > 1:
            old[0] = replace(root, high=last)
            null = Node(len(old), 0, NULL_LABEL, 1, last, last)
            return Taxonomy((*old, null), self.origin)
        moved = [
            replace(n, node=n.node + 1, parent=0 if n.parent is None else n.parent + 1, depth=n.depth + 1) for n in old
        ]
        null = Node(len(old) + 1, 0, NULL_LABEL, 1, last, last)
        return Taxonomy((Node(0, None, ROOT_LABEL, 0, 0, last), *moved, null), self.origin)

    def code_of(self, leaf: Node) -> int:
        """The code of a leaf."""
        return leaf.low

    @property
    def skippable(self) -> int:
        """The number of times that the lowest level between leaves and root can be left out."""
        return max(self.heights[self.nodes[0].node] - 1, 0)

    def skipping(self, levels: int) -> Taxonomy:
        """The taxonomy without the nodes that stand so many levels or fewer above the lowest of their leaves.

        Leaves and the root stay, so losses keep their measure: a value that is generalised goes further up at once.
        """
        heights, root = self.heights, self.nodes[0].node
        kept = [node for node in self.nodes if node.node == root or not 0 < heights[node.node] <= levels]
        numbers = {node.node: number for number, node in enumerate(kept)}
        by_node = {node.node: node for node in self.nodes}
        made: dict[int, Node] = {}
        for node in kept:
            above = node.parent
            while above is not None and above not in numbers:
                above = by_node[above].parent
            parent = None if above is None else made[above]
            depth = 0 if parent is None else parent.depth + 1
            number = None if parent is None else parent.node
            made[node.node] = replace(node, node=numbers[node.node], parent=number, depth=depth)
        return Taxonomy(tuple(made.values()), self.origin)

    @cached_property
    def heights(self) -> dict[int, int]:
        """By node the most steps down to a leaf."""
        heights = dict.fromkeys((node.node for node in self.nodes), 0)
        for node in reversed(self.nodes):  # children stand after their parent
            if node.parent is not None:
                heights[node.parent] = max(heights[node.parent], heights[node.node] + 1)
        return heights

    def with_leaves(self, texts: Mapping[Any, Any]) -> Taxonomy:
        """The taxonomy with other texts for its leaves, of which those that become one are one where they are siblings.

        Raises PolicyError where they are not.
        """
        leaves, trees = {leaf.node for leaf in self.leaves}, dict[int, Tree]()
        for node in self.nodes:
            trees[node.node] = tree = Tree(texts[node.label] if node.node in leaves else node.label)
            siblings = [] if node.parent is None else trees[node.parent].children
            if node.node not in leaves or tree not in siblings:
                siblings.append(tree)
        return number(trees[self.nodes[0].node], self.origin)

    @property
    def by_range(self) -> bool:
        """True if leaves hold ranges of numbers rather than values."""
        return any(node.min_value is not None for node in self.nodes)


class SpannedTaxonomy(Taxonomy):
    """A taxonomy for who has several values: each node of several children has one more leaf, called as the node.

    It spans the same leaves, so that a cut below the node publishes its label. The code of a leaf is its node's number.
    """

    @classmethod
    def of(cls, taxonomy: Taxonomy) -> SpannedTaxonomy:
        children = Counter(node.parent for node in taxonomy.nodes)
        inner = [node for node in taxonomy.nodes if children[node.node] > 1]
        numbered = enumerate(inner, len(taxonomy.nodes))
        spans = (replace(node, node=number, parent=node.node, depth=node.depth + 1) for number, node in numbered)
        return cls((*taxonomy.nodes, *spans), taxonomy.origin)

    def code_of(self, leaf: Node) -> int:
        return leaf.node


def number(tree: Tree, origin: str) -> Taxonomy:
    """The taxonomy of a tree, its nodes and leaves numbered depth first.

    A group that has the name of a value right below it is called by it with a star, so that a release tells the two
    apart. Raises PolicyError naming every label that stands for more than one node, and for a tree that is too deep.
    """
    nodes: list[Node] = []
    leaves = 0

    def visit(branch: Tree, parent: int | None, depth: int) -> None:
        nonlocal leaves
        if depth > MAX_DEPTH:
            raise refused(f"taxonomy {origin}", f"has more than {MAX_DEPTH} levels")
        me, low = len(nodes), leaves
        label, below = branch.label, [child.label for child in branch.children if not child.children]
        label += "*" if label in below and label != ROOT_LABEL else ""
        nodes.append(Node(me, parent, label, depth, low, low))
        if not branch.children:
            leaves += 1
        for child in branch.children:
            visit(child, me, depth + 1)
        bounds = branch.bounds or (None, None)
        nodes[me] = Node(me, parent, label, depth, low, leaves - 1, *bounds)

    visit(tree, None, 0)
    twice = sorted(label for label, count in Counter(node.label for node in nodes).items() if count > 1)
    what = "stands for more than one node"
    refuse(first_of([Problem(f"taxonomy {origin}", f"{label!r} {what}", "labels are unique") for label in twice]))
    return Taxonomy(tuple(nodes), origin)


def rooted(trees: Sequence[Tree]) -> Tree:
    """The only tree, or a root over several."""
    return trees[0] if len(trees) == 1 else Tree(ROOT_LABEL, list(trees))


def tree_of_paths(paths: Iterable[Sequence[str]]) -> Tree:
    """The tree whose branches are the given ways from root to leaf."""
    top = Tree("")
    known: dict[tuple[str, ...], Tree] = {(): top}
    for way in paths:
        for depth in range(1, len(way) + 1):
            key = tuple(way[:depth])
            if key not in known:
                known[key] = Tree(way[depth - 1])
                known[key[:-1]].children.append(known[key])
    return rooted(top.children)


# -- in the database -------------------------------------------------------------------------------


def load(engine: Engine, taxonomy: Taxonomy, name: str) -> Relation:
    """A TEMP table of the taxonomy's nodes, columns as `NODE_COLUMNS`."""
    return engine.load(f"nodes_{name}", NODE_COLUMNS, [astuple(node) for node in taxonomy.nodes])


def store(engine: Engine, name: str, taxonomy: Taxonomy, overwrite: bool = False) -> None:
    """Keep the taxonomy in the catalog under `name`; raises PolicyError if it is there and not to be replaced."""
    if name in stored(engine):
        if not overwrite:
            raise refused("taxonomy", f"{name!r} exists", "use --replace")
        for table, column in (("taxonomy_node", "taxonomy"), ("taxonomy", "name")):
            engine.delete(catalog_table(engine, table), {column: name})
    engine.append(
        catalog_table(engine, "taxonomy"),
        {"name": "VARCHAR", "origin": "VARCHAR", "created_at": "TIMESTAMPTZ"},
        [(name, taxonomy.origin, datetime.now(UTC))],
    )
    columns = {"taxonomy": "VARCHAR", **NODE_COLUMNS}
    engine.append(catalog_table(engine, "taxonomy_node"), columns, [(name, *astuple(node)) for node in taxonomy.nodes])


def stored(engine: Engine) -> dict[str, str]:
    """The catalog's taxonomies: name to origin; empty where there is no catalog."""
    table = catalog_table(engine, "taxonomy")
    if not table_exists(engine, table):
        return {}
    migrate.held(engine)  # raises if it is somebody else's
    return dict(sorted(engine.columns(table, "name", "origin")))


def fetch(engine: Engine, name: str) -> Taxonomy | None:
    """The catalog's taxonomy of that name, or None."""
    origins = stored(engine)
    if name not in origins:
        return None
    rows = engine.rows("taxonomies/list_taxonomy_nodes", nodes=catalog_table(engine, "taxonomy_node"), taxonomy=name)
    if not rows:
        raise DatabaseError(f"the catalog's taxonomy {name!r} has lost its nodes; import it again with --replace")
    return Taxonomy(tuple(Node(*row) for row in rows), origins[name])
