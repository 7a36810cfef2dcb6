"""Taxonomies: rooted trees over the base values of a column, every node an interval of leaf numbers.

Leaves are numbered depth first, so the lowest common ancestor of a set of values depends on the
smallest and the largest leaf number alone, and so do all losses.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.catalog import catalog_table, table_exists
from ldiv_db.engine import Engine
from ldiv_db.errors import PolicyError, Problem
from ldiv_db.templates import Identifier, Relation, Value

#: The label of a root that had to be added, and of everything that is fully generalised.
ROOT_LABEL = "*"
#: How the leaf of NULL is called among nodes; it is published as NULL.
NULL_LABEL = "NULL"
#: More leaves than this are no taxonomy but a mistake in its widths.
MAX_LEAVES = 1_000_000

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

    def as_row(self) -> tuple[Any, ...]:
        return tuple(getattr(self, column) for column in NODE_COLUMNS)


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

    @property
    def by_range(self) -> bool:
        """Whether leaves hold ranges of numbers rather than values."""
        return any(node.min_value is not None for node in self.nodes)


def number(tree: Tree, origin: str) -> Taxonomy:
    """The taxonomy of a tree, its nodes and leaves numbered depth first.

    Raises PolicyError naming every label that stands for more than one node.
    """
    nodes: list[Node] = []
    leaves = 0

    def visit(branch: Tree, parent: int | None, depth: int) -> None:
        nonlocal leaves
        me, low = len(nodes), leaves
        nodes.append(Node(me, parent, branch.label, depth, low, low))
        if not branch.children:
            leaves += 1
        for child in branch.children:
            visit(child, me, depth + 1)
        bounds = branch.bounds or (None, None)
        nodes[me] = Node(me, parent, branch.label, depth, low, leaves - 1, *bounds)

    visit(tree, None, 0)
    twice = sorted(label for label, count in Counter(node.label for node in nodes).items() if count > 1)
    if twice:
        raise PolicyError(
            Problem(f"taxonomy {origin}", f"{label!r} stands for more than one node", "labels are unique")
            for label in twice
        )
    return Taxonomy(tuple(nodes), origin)


def _rooted(trees: Sequence[Tree]) -> Tree:
    """The only tree, or a root over several."""
    return trees[0] if len(trees) == 1 else Tree(ROOT_LABEL, list(trees))


# -- reading ---------------------------------------------------------------------------------------


def read_taxonomy(path: Path, tree: str | None = None) -> Taxonomy:
    """The taxonomy in a file: levels `leaf;…;root` (CSV) or nested mappings (YAML, JSON).

    `tree` names one of several trees of a nested file. Raises PolicyError if the file is none.
    """
    if not path.is_file():
        raise PolicyError([Problem("taxonomy", f"no file {path.name}")])
    if path.suffix.lower() in (".yml", ".yaml", ".json"):
        return number(_rooted(_read_nested(path, tree)), path.name)
    return number(read_levels(path), path.name)


def read_levels(path: Path) -> Tree:
    """The tree of a level file: a line a leaf, `leaf;…;root`, as ARX writes them.

    A value repeated on neighbouring levels is one node; raises PolicyError naming every leaf given
    twice with different ancestors.
    """
    paths: dict[str, list[str]] = {}
    problems = []
    with path.open(encoding="utf-8-sig", newline="") as lines:
        for line, cells in enumerate(csv.reader(lines, delimiter=";"), 1):
            levels = [cell.strip() for cell in cells]
            if not any(levels):
                continue
            if not all(levels):
                problems.append(Problem(f"taxonomy {path.name}", f"line {line} has an empty level"))
            way = [cell for i, cell in enumerate(levels) if i == 0 or cell != levels[i - 1]][::-1]
            if paths.setdefault(way[-1], way) != way:
                problems.append(Problem(f"taxonomy {path.name}", f"{way[-1]!r} has two places (line {line})"))
    if not paths:
        problems.append(Problem(f"taxonomy {path.name}", "the file is empty"))
    if problems:
        raise PolicyError(problems)
    return _tree_of_paths(paths.values())


def _tree_of_paths(paths: Iterable[Sequence[str]]) -> Tree:
    """The tree whose branches are the given ways from root to leaf."""
    top = Tree("")
    known: dict[tuple[str, ...], Tree] = {(): top}
    for way in paths:
        for depth in range(1, len(way) + 1):
            key = tuple(way[:depth])
            if key not in known:
                known[key] = Tree(way[depth - 1])
                known[key[:-1]].children.append(known[key])
    return _rooted(top.children)


class _PairLoader(yaml.BaseLoader):
    """YAML (and so JSON) with every scalar as text and every mapping as its list of pairs."""


def _construct_pairs(loader: _PairLoader, node: yaml.MappingNode) -> tuple[Any, ...]:
    return tuple((loader.construct_object(k, True), loader.construct_object(v, True)) for k, v in node.value)


_PairLoader.add_constructor("tag:yaml.org,2002:map", _construct_pairs)


def _read_nested(path: Path, tree: str | None) -> list[Tree]:
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_PairLoader)  # noqa: S506 - builds text only
    except yaml.YAMLError as error:
        raise PolicyError([Problem(f"taxonomy {path.name}", f"is no YAML or JSON: {error}")]) from error
    if tree is not None:
        found = [value for key, value in document if key == tree] if isinstance(document, tuple) else []
        if not found:
            raise PolicyError([Problem(f"taxonomy {path.name}", f"has no tree {tree!r}")])
        document = found[0]
    trees = _nested(document)
    if not trees:
        raise PolicyError([Problem(f"taxonomy {path.name}", "holds no value")])
    return trees


def _nested(document: Any) -> list[Tree]:
    """The trees of a nested document: a mapping's keys, a list's items, or one text."""
    if isinstance(document, tuple):
        return [Tree(key, _nested(value)) for key, value in document]
    if isinstance(document, list):
        return [tree for item in document for tree in _nested(item)]
    return [Tree(document)] if document not in ("", "null", "~", None) else []


def from_edges(edges: Iterable[tuple[str, str | None]], origin: str) -> Taxonomy:
    """The taxonomy of a parent-child table: pairs (child, parent), the parent of a root NULL or empty.

    Raises PolicyError naming every value with two parents and every value on a cycle.
    """
    parents: dict[str, str | None] = {}
    problems = []
    for child, given in edges:
        parent = given or None
        if parents.setdefault(child, parent) != parent:
            problems.append(Problem(f"taxonomy {origin}", f"{child!r} has two parents"))
    for parent in [p for p in parents.values() if p is not None]:
        parents.setdefault(parent, None)
    problems += [Problem(f"taxonomy {origin}", f"{value!r} is its own ancestor") for value in _cyclic(parents)]
    if not parents:
        problems.append(Problem(f"taxonomy {origin}", "the table is empty"))
    if problems:
        raise PolicyError(problems)
    trees = {value: Tree(value) for value in parents}
    for value, parent in parents.items():
        if parent is not None:
            trees[parent].children.append(trees[value])
    return number(_rooted([trees[value] for value, parent in parents.items() if parent is None]), origin)


def _cyclic(parents: dict[str, str | None]) -> list[str]:
    """The values that never reach a root by going up."""
    safe: set[str] = set()
    cyclic: set[str] = set()
    for start in parents:
        way: list[str] = []
        value: str | None = start
        while value is not None and value not in safe and value not in cyclic and value not in way:
            way.append(value)
            value = parents[value]
        # Ended in the way itself or in a known cycle: nothing on the way reaches a root.
        (cyclic if value is not None and value not in safe else safe).update(way)
    return [value for value in parents if value in cyclic]


# -- building --------------------------------------------------------------------------------------


def from_ranges(widths: Sequence[float], origin: float, smallest: float, largest: float, integers: bool) -> Taxonomy:
    """The taxonomy of nested numeric ranges that covers `smallest..largest`.

    `widths` go from the leaves up, each a multiple of the one before; ranges start at `origin` plus
    multiples of their width. Raises PolicyError if the widths do not nest.
    """
    if not all(map(math.isfinite, [*widths, origin, smallest, largest])):
        raise PolicyError([Problem("ranges", "takes finite numbers")])
    exact = [Decimal(str(width)) for width in widths]
    problems = [
        Problem("ranges", f"{wide} is no multiple of {narrow}")
        for narrow, wide in itertools.pairwise(exact)
        if narrow > 0 and wide % narrow
    ]
    if not exact or any(width <= 0 for width in exact) or sorted(set(exact)) != exact:
        problems.append(Problem("ranges", "takes rising widths above 0"))
    if integers and any(width % 1 for width in exact):
        problems.append(Problem("ranges", "whole numbers take whole widths"))
    if problems:
        raise PolicyError(problems)
    start = Decimal(str(origin))
    low, high = Decimal(str(smallest)), Decimal(str(largest))
    if (high - low) / exact[0] > MAX_LEAVES:
        raise PolicyError([Problem("ranges", f"{exact[0]} makes more than {MAX_LEAVES:,} leaves", "widen it")])
    first, last = math.floor((low - start) / exact[0]), math.floor((high - start) / exact[0])
    level = [
        (start + i * exact[0], _range_tree(start + i * exact[0], exact[0], integers)) for i in range(first, last + 1)
    ]
    for width in exact[1:]:
        level = _group_ranges(level, width, start, integers)
    return number(_rooted([tree for _, tree in level]), f"ranges {', '.join(map(str, widths))}")


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")


def _range_label(low: Decimal, width: Decimal, integers: bool) -> str:
    if not integers:
        return f"[{_plain(low)}-{_plain(low + width)})"
    return str(int(low)) if width == 1 else f"[{int(low)}-{int(low + width - 1)}]"


def _range_tree(low: Decimal, width: Decimal, integers: bool) -> Tree:
    return Tree(_range_label(low, width, integers), bounds=(float(low), float(low + width)))


def _group_ranges(
    level: list[tuple[Decimal, Tree]], width: Decimal, origin: Decimal, integers: bool
) -> list[tuple[Decimal, Tree]]:
    """The next level up, the ranges of `width` over those of `level`, each with where it begins."""
    groups: dict[Decimal, Tree] = {}
    for begin, tree in level:
        low = origin + math.floor((begin - origin) / width) * width
        groups.setdefault(low, _range_tree(low, width, integers)).children.append(tree)
    return list(groups.items())


# -- in the database -------------------------------------------------------------------------------


def load(engine: Engine, taxonomy: Taxonomy, name: str) -> Relation:
    """A TEMP table of the taxonomy's nodes, columns as `NODE_COLUMNS`."""
    return engine.load(f"nodes_{name}", NODE_COLUMNS, [node.as_row() for node in taxonomy.nodes])


def store(engine: Engine, name: str, taxonomy: Taxonomy, overwrite: bool = False) -> None:
    """Keep the taxonomy in the catalog under `name`; raises PolicyError if it is there and not to be replaced."""
    if name in stored(engine):
        if not overwrite:
            raise PolicyError([Problem("taxonomy", f"{name!r} exists", "use --replace")])
        for table, column in (("taxonomy_node", "taxonomy"), ("taxonomy", "name")):
            engine.delete(catalog_table(table), Identifier(column), name)
    engine.append(
        catalog_table("taxonomy"),
        {"name": "VARCHAR", "origin": "VARCHAR", "created_at": "TIMESTAMPTZ"},
        [(name, taxonomy.origin, datetime.now(UTC))],
    )
    columns = {"taxonomy": "VARCHAR", **NODE_COLUMNS}
    engine.append(catalog_table("taxonomy_node"), columns, [(name, *node.as_row()) for node in taxonomy.nodes])


def stored(engine: Engine) -> dict[str, str]:
    """The catalog's taxonomies: name to origin; empty where there is no catalog."""
    table = catalog_table("taxonomy")
    if not table_exists(engine, table):
        return {}
    return dict(engine.rows("input/list_taxonomies", taxonomies=table))


def fetch(engine: Engine, name: str) -> Taxonomy | None:
    """The catalog's taxonomy of that name, or None."""
    origins = stored(engine)
    if name not in origins:
        return None
    rows = engine.rows("input/list_taxonomy_nodes", nodes=catalog_table("taxonomy_node"), taxonomy=Value(name))
    return Taxonomy(tuple(Node(*row) for row in rows), origins[name])


def read_edges(engine: Engine, source: Relation, child: str, parent: str) -> Taxonomy:
    """The taxonomy of a parent-child table in the database."""
    rows = engine.rows("input/list_edges", edges=source, child=Identifier(child), parent=Identifier(parent))
    return from_edges(rows, str(source))
