"""Taxonomies read from level files, nested files, parent-child tables, prefixes, stretches of time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.documents import LEVELS_BYTES, NESTED_BYTES, Bounded, load_yaml, read_lines, read_text
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step
from ldiv_db.database.errors import PolicyError, Problem, count_phrase, first_of, refuse
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Taxonomy, Tree, number, rooted

_EMPTY = "a value that is empty stands in quotes in a .yml or .json file"

#: The names of levels in a header.
_LEVEL = re.compile(r"(leaf|value|parent|child|root|(level|lvl)[ _-]?\d+)", re.IGNORECASE)

# -- reading ---------------------------------------------------------------------------------------


def read_taxonomy(path: Path, tree: str | None = None) -> Taxonomy:
    """The taxonomy in a file: levels `leaf;…;root` (CSV) or nested mappings (YAML, JSON).

    `tree` names one of several trees of a nested file. Raises PolicyError if the file is none.
    """
    if not path.is_file():
        raise PolicyError([Problem("taxonomy", f"no file {path.name} in {path.parent.resolve()}")])
    nested = path.suffix.lower() in (".yml", ".yaml", ".json")
    try:
        trees = rooted(_read_nested(path, tree)) if nested else read_levels(path)
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise PolicyError([Problem(f"taxonomy {path.name}", f"{what}")]) from error
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
        way = [cell for i, cell in enumerate(levels) if i == 0 or cell != levels[i - 1]][::-1]
        if paths.setdefault(way[-1], way) != way:
            problems.append(Problem(f"taxonomy {path.name}", f"{way[-1]!r} has two places (line {line})"))
    if not paths:
        problems.append(Problem(f"taxonomy {path.name}", "the file is empty"))
    refuse(first_of(problems))
    above = {tuple(way[:depth]) for way in paths.values() for depth in range(1, len(way))}
    above.discard((ROOT_LABEL,))  # stands for all values, and is none
    return _tree_of_paths([*way, way[-1]] if tuple(way) in above else way for way in paths.values())


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
    return rooted(top.children)


class _PairLoader(Bounded, yaml.BaseLoader):
    """YAML (and so JSON) with every scalar as text and every mapping as its list of pairs."""


def _construct_pairs(loader: _PairLoader, node: yaml.MappingNode) -> tuple[Any, ...]:
    return tuple((_key(loader, k), loader.construct_object(v, True)) for k, v in node.value)


def _key(loader: _PairLoader, node: yaml.Node) -> str:
    """The label of a node with children."""
    if not isinstance(node, yaml.ScalarNode):
        raise yaml.constructor.ConstructorError(problem="a label is not a text", problem_mark=node.start_mark)
    return str(loader.construct_scalar(node))


def _construct_text(loader: _PairLoader, node: yaml.ScalarNode) -> str | None:
    """The text, None for nothing and for null, unless they stand in quotes."""
    nothing = node.style is None and node.value in ("", "null", "~")
    return None if nothing else str(loader.construct_scalar(node))


def _construct_any(loader: _PairLoader, node: yaml.Node) -> Any:
    """The value behind a tag of any kind: tags say nothing of labels."""
    if isinstance(node, yaml.SequenceNode):
        return [loader.construct_object(item, True) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return _construct_pairs(loader, node)
    return _construct_text(loader, node) if isinstance(node, yaml.ScalarNode) else None


_PairLoader.add_constructor(None, _construct_any)
_PairLoader.add_constructor("tag:yaml.org,2002:map", _construct_pairs)
_PairLoader.add_constructor("tag:yaml.org,2002:str", _construct_text)


def _read_nested(path: Path, tree: str | None) -> list[Tree]:
    document = load_yaml(read_text(path, NESTED_BYTES), _PairLoader, "YAML or JSON")
    if tree is not None:
        named = [value for key, value in document if key == tree] if isinstance(document, tuple) else []
        if not named:
            raise PolicyError([Problem(f"taxonomy {path.name}", f"has no tree {tree!r}")])
        document = named[0]
    trees = _nested(document)
    if not trees:
        raise PolicyError([Problem(f"taxonomy {path.name}", "holds no value")])
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
    problems += [Problem(f"taxonomy {origin}", f"{value!r} is its own ancestor") for value in _cyclic(parents)]
    if not parents:
        problems.append(Problem(f"taxonomy {origin}", "the table is empty"))
    refuse(first_of(problems))
    trees = {value: Tree(value) for value in parents}
    for value, parent in parents.items():
        if parent is not None:
            trees[parent].children.append(trees[value])
    return number(rooted([trees[value] for value, parent in parents.items() if parent is None]), origin)


def _cyclic(parents: dict[str, str | None]) -> list[str]:
    """The values that never reach a root by going up."""
    safe: set[str] = set()
    cyclic: set[str] = set()
    for start in parents:
        way: dict[str, None] = {}
        value: str | None = start
        while value is not None and value not in safe and value not in cyclic and value not in way:
            way[value] = None
            value = parents[value]
        # Ended in the way itself or in a known cycle: nothing on the way reaches a root.
        (cyclic if value is not None and value not in safe else safe).update(way)
    return [value for value in parents if value in cyclic]


def read_edges(engine: Engine, source: Relation, child: str, parent: str) -> Taxonomy:
    """The taxonomy of a parent-child table in the database."""
    rows = engine.rows("taxonomies/list_edges", edges=source, child=child, parent=parent)
    return from_edges(rows, str(source))


# -- of the values themselves ------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """The values that begin with a text from `first` to `last`, which are as long, and their label."""

    first: Value
    last: Value
    label: Value

    @classmethod
    def of(cls, first: str, last: str, label: str) -> Band:
        return cls(Value(first), Value(last), Value(label))


@dataclass(frozen=True)
class Level:
    """One level of a taxonomy made of the values themselves: the first `prefix` characters, or a stretch of time.

    With neither it is that of the values as they are. Values in one of the `bands` have the label of the first of them.
    Texts are those after the steps of `same`; whole numbers of fewer than so many `digits` get zeros in front.

    A value has a leaf if it is of the `form` of the first level, one of a column of numbers of `number_form`, and in a
    band of each level that is `closed`.
    """

    label: Identifier
    prefix: int | None = None
    unit: str | None = None
    bands: tuple[Band, ...] = ()
    same: tuple[Step, ...] = ()
    digits: int | None = None
    form: Value | None = None
    number_form: Value | None = None
    closed: bool = False


#: The stretches of time that values can be grouped by, from short to long: months lie in years, weeks in those of
#: ISO 8601, which begin with the week of their first Thursday.
UNITS = ("day", "month", "quarter", "year", "decade")
ISO_UNITS = ("day", "week", "iso_year", "decade")


def prefix_levels(lengths: Sequence[int], bands: Sequence[Sequence[Band]] = ()) -> list[Level]:
    """The levels of prefixes of falling length, leaves first; `bands` are those of the last of them, in their order."""
    listed = [*[()] * (len(lengths) - len(bands)), *map(tuple, bands)]
    return [
        Level(Identifier(f"level_{i}"), prefix=length, bands=own)
        for i, (length, own) in enumerate(zip(lengths, listed, strict=True), 1)
    ]


def date_levels(units: Sequence[str], before: int | None = None) -> list[Level]:
    """The levels of stretches of time, short ones first; years `before` one are a single value.

    Above weeks and years of ISO 8601 a decade is one of such years.
    """
    if set(ISO_UNITS[1:3]) & set(units):
        units = ["iso_decade" if unit == "decade" else unit for unit in units]
    bands = () if before is None else (Band.of("0001", f"{before - 1:04}", f"before {before}"),)
    return [Level(Identifier(f"level_{i}"), unit=unit, bands=bands) for i, unit in enumerate(units, 1)]


def value_levels() -> list[Level]:
    """The level of the values as they are, below a root."""
    return [Level(Identifier("level_1"))]


def from_values(
    engine: Engine, rows: Relation | FileRelation, column: Identifier, levels: Sequence[Level], origin: str
) -> Taxonomy:
    """The taxonomy that `levels` make of a column's distinct values.

    Values that these have no leaf for are left out. Raises PolicyError if one is written like the root, which stands
    for all of them.
    """
    paths = engine.rows("taxonomies/list_paths", rows=rows, column=column, levels=levels)
    if any(path[0] == ROOT_LABEL for path in paths):
        raise PolicyError([Problem(f"taxonomy {origin}", f"{ROOT_LABEL} is a value, and stands for all of them")])
    upward = [path[::-1] for path in paths]
    ways = [[label for i, label in enumerate(way) if i == 0 or label != way[i - 1]] for way in upward]
    tree = _tree_of_paths(ways) if ways else Tree(ROOT_LABEL)
    return number(tree if tree.label == ROOT_LABEL else Tree(ROOT_LABEL, [tree]), origin)


def warn_of_lengths(engine: Engine, name: str, counted: Relation, shortest: int = 1) -> str:
    """That codes of digits have several lengths, so that one beginning stands for several things; empty if they do not.

    `counted` is (value, rows) of the column of that name, `shortest` the length of the shortest prefix.
    """
    found = engine.rows("taxonomies/list_lengths", counted=counted)
    if len(found) < 2 or found[-1][0] <= shortest:
        return ""
    counts = [(count_phrase(values, "value", "values"), rows, digits) for digits, values, rows in found]
    listed = ", ".join(f"{values} (rows: {rows:,}) of {digits}" for values, rows, digits in counts)
    quoted = Identifier(name).sql()
    return (
        f"codes of several lengths, {listed} digits: in front of short ones zeros may be lost, so that they begin like"
        f" others; lpad(CAST({quoted} AS VARCHAR), {found[-1][0]}, '0') in a view or in `source: {{query: …}}` restores"
        " them"
    )
