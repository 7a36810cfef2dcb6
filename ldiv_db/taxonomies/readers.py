"""Taxonomies read from level files, nested files and parent-child tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database.documents import LEVELS_BYTES, NESTED_BYTES, Bounded, load_yaml, read_lines, read_text
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, first_of, refuse, refused
from ldiv_db.database.names import Relation
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Taxonomy, Tree, number, rooted, tree_of_paths

_EMPTY = "a value that is empty stands in quotes in a .yml or .json file"

#: The names of levels in a header.
_LEVEL = re.compile(r"(leaf|value|parent|child|root|(level|lvl)[ _-]?\d+)", re.IGNORECASE)


def read_taxonomy(path: Path, tree: str | None = None) -> Taxonomy:
    """The taxonomy in a file: levels `leaf;…;root` (CSV) or nested mappings (YAML, JSON).

    `tree` names one of several trees of a nested file. Raises PolicyError if the file is none.
    """
    if not path.is_file():
        raise refused("taxonomy", f"no file {path.name} in {path.parent.resolve()}")
    nested = path.suffix.lower() in (".yml", ".yaml", ".json")
    try:
        trees = rooted(_read_nested(path, tree)) if nested else read_levels(path)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise refused(f"taxonomy {path.name}", f"{what}") from error
    return number(trees, path.name)


def read_levels(path: Path) -> Tree:
    """The tree of a level file: a line a leaf, `leaf;…;root`, as ARX writes them; or with tabs or commas, or a header.

    A value repeated on neighbouring levels is one node, unless other values are below it: then it is a leaf of the
    group that has its name. Raises PolicyError naming every leaf given twice with different ancestors.
    """
    paths: dict[str, list[str]] = {}
    problems = []
    for line, levels in _without_header(_level_lines(read_text(path, LEVELS_BYTES)), path.stem):
        if not all(levels):
            problems.append(Problem(f"taxonomy {path.name}", f"line {line} has an empty level", _EMPTY))
        way = [cell for cell, _ in groupby(levels)][::-1]
        if paths.setdefault(way[-1], way) != way:
            problems.append(Problem(f"taxonomy {path.name}", f"{way[-1]!r} has two places (line {line})"))
    if not paths:
        problems.append(Problem(f"taxonomy {path.name}", "the file is empty"))
    refuse(first_of(problems))
    above = {tuple(way[:depth]) for way in paths.values() for depth in range(1, len(way))}
    above.discard((ROOT_LABEL,))  # stands for all values, and is none
    return tree_of_paths([*way, way[-1]] if tuple(way) in above else way for way in paths.values())


def _level_lines(text: str) -> list[tuple[int, list[str]]]:
    """The lines that are not blank, as (number, levels).

    Semicolons part levels; where there are none, tabs or commas, if they part every line into as many levels. Raises
    ValueError where that is left open: a whole line may not become one label unseen.
    """
    for delimiter in ";\t,":
        lines = [(line, levels) for line, levels in read_lines(text, delimiter) if any(levels)]
        if len({len(levels) for _, levels in lines}) == 1 and len(lines[0][1]) > 1:
            return lines
        if delimiter == ";":
            by_semicolons = lines
    if all(len(levels) == 1 for _, levels in by_semicolons):
        odd = next((line for line, (label,) in by_semicolons if {",", "\t"} & set(label)), None)
        if odd is not None:
            what = f"line {odd} has commas or tabs and no semicolon, and not all lines have as many of them"
            raise ValueError(f"{what}: part levels by semicolons, as in leaf;group;*")
    return by_semicolons


def _without_header(lines: list[tuple[int, list[str]]], stem: str) -> list[tuple[int, list[str]]]:
    """The lines without a first one that names the levels: it ends unlike all others, or says what levels are."""
    (_, first), rest = (lines[0], lines[1:]) if lines else ((0, []), [])
    roots = {levels[-1] for _, levels in rest}
    named = first and (first[0].lower() == stem.lower() or any(_LEVEL.fullmatch(cell) for cell in first))
    if len(first) > 1 and rest and (named or (len(rest) > 1 and len(roots) == 1 and first[-1] not in roots)):
        return rest
    return lines


class _PairLoader(Bounded, yaml.BaseLoader):
    """YAML (and so JSON) with every scalar as text and every mapping as its list of pairs."""


def _construct(loader: _PairLoader, node: yaml.Node) -> Any:
    """What a node holds, whatever its tag: tags say nothing of labels. Nothing and null are None, unless in quotes."""
    if isinstance(node, yaml.SequenceNode):
        return [loader.construct_object(item, True) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return tuple((_key(loader, key), loader.construct_object(value, True)) for key, value in node.value)
    nothing = isinstance(node, yaml.ScalarNode) and node.style is None and node.value in ("", "null", "~")
    return None if nothing else str(loader.construct_scalar(node))


def _key(loader: _PairLoader, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(problem="a label is not a text", problem_mark=node.start_mark)
    return str(loader.construct_scalar(node))


_PairLoader.add_constructor(None, _construct)


def _read_nested(path: Path, tree: str | None) -> list[Tree]:
    document = load_yaml(read_text(path, NESTED_BYTES), _PairLoader, "YAML or JSON")
    if tree is not None:
        named = [value for key, value in document if key == tree] if isinstance(document, tuple) else []
        if not named:
            raise refused(f"taxonomy {path.name}", f"has no tree {tree!r}")
        document = named[0]
    trees = _nested(document)
    if not trees:
        raise refused(f"taxonomy {path.name}", "holds no value")
    return trees


def _nested(document: Any) -> list[Tree]:
    """The trees of a nested document: a mapping's keys, a list's items, or one text."""
    if isinstance(document, tuple):
        return [Tree(key, _nested(value) if value != "" else []) for key, value in document]
    if isinstance(document, list):
        return [tree for item in document for tree in _nested(item)]
    return [] if document is None else [Tree(document)]


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
    trees = {value: Tree(value) for value in parents}
    for value, parent in parents.items():
        if parent is not None:
            trees[parent].children.append(trees[value])
    roots = [trees[value] for value, parent in parents.items() if parent is None]
    reached, waiting = set[str](), [*roots]
    while waiting:
        tree = waiting.pop()
        reached.add(tree.label)
        waiting += tree.children
    cyclic = [value for value in parents if value not in reached]
    problems += [Problem(f"taxonomy {origin}", f"{value!r} is its own ancestor") for value in cyclic]
    if not parents:
        problems.append(Problem(f"taxonomy {origin}", "the table is empty"))
    refuse(first_of(problems))
    return number(rooted(roots), origin)


def read_edges(engine: Engine, source: Relation, child: str, parent: str) -> Taxonomy:
    """The taxonomy of a parent-child table in the database."""
    rows = engine.rows("taxonomies/list_edges", edges=source, child=child, parent=parent)
    return from_edges(rows, str(source))
