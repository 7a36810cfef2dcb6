"""Categories of sensitive values as they are written: in line, in a file, or a level of a taxonomy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ldiv_db import taxonomy as taxonomies
from ldiv_db.engine import Engine
from ldiv_db.errors import PolicyError, Problem, nearest
from ldiv_db.taxonomy import Taxonomy
from ldiv_db.taxonomy_sources import read_taxonomy

#: Categories as the values of each, as text, None for NULL. NULL, unless it is listed, is of the first.
Groups = tuple[tuple[str | None, ...], ...]
KEY = "categories"


def read_categories(engine: Engine, written: Any, sensitive: Sequence[str]) -> dict[str, Groups]:
    """The categories of each sensitive attribute that has some.

    `written` is a mapping by attribute, a list of `attribute=…`, or for a single attribute one description: lists of
    values, `A,B;C;D`, a YAML file of lists, or `taxonomy:depth` for the nodes so far below the root of a taxonomy,
    a file or a name in the catalog. Raises PolicyError.
    """
    found: dict[str, Groups] = {}
    for name, description in _by_attribute(written, sensitive).items():
        found[name] = _groups(_described(engine, description))
    return found


def _by_attribute(written: Any, sensitive: Sequence[str]) -> dict[str, Any]:
    """Each description by the sensitive attribute that it is of."""
    if written is None:
        return {}
    if isinstance(written, Mapping):
        found = dict(written)
    elif isinstance(written, Sequence) and written and all(isinstance(item, str) for item in written):
        items = [written] if isinstance(written, str) else written
        found = dict(_addressed(str(item), sensitive) for item in items)
    else:
        found = dict.fromkeys(sensitive[:1], written) if len(sensitive) == 1 else {"": written}
    strangers = [name for name in found if name not in sensitive]
    if strangers:
        raise PolicyError([Problem(KEY, "say of which sensitive attribute", f"e.g. {s}=A,B;C") for s in sensitive[:1]])
    return found


def _addressed(text: str, sensitive: Sequence[str]) -> tuple[str, str]:
    """The attribute that `attribute=…` names, and the rest; a single attribute need not be named."""
    for name in sensitive:
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    return (sensitive[0] if len(sensitive) == 1 else ""), text


def _described(engine: Engine, description: Any) -> Any:
    """The lists of values that a description stands for."""
    if not isinstance(description, str):
        return description
    if ";" in description:
        return [[value.strip() for value in part.split(",")] for part in description.split(";")]
    source, colon, depth = description.rpartition(":")
    if colon and depth.isdecimal():
        return _level(_taxonomy(engine, source), int(depth))
    if Path(description).is_file():
        return _yaml(Path(description).read_text(encoding="utf-8"), description)
    if description.startswith("["):
        return _yaml(description, "the text")
    what = f"{description!r} is no file, and neither A,B;C nor taxonomy:depth"
    raise PolicyError([Problem(KEY, what, "most sensitive values first")])


def _yaml(text: str, where: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PolicyError([Problem(KEY, f"{where} is no YAML")]) from error


def _taxonomy(engine: Engine, source: str) -> Taxonomy:
    if Path(source).is_file():
        return read_taxonomy(Path(source))
    found = taxonomies.fetch(engine, source)
    if found is None:
        hint = nearest(source, taxonomies.stored(engine))
        raise PolicyError([Problem(KEY, f"no file and no taxonomy of the catalog is called {source!r}", hint)])
    return found


def _level(taxonomy: Taxonomy, depth: int) -> list[list[str]]:
    """The leaves below each node at that depth; a leaf above it is a category of its own."""
    leaves = {node.low: node.label for node in taxonomy.leaves}
    parents = {node.parent for node in taxonomy.nodes}
    tops = [n for n in taxonomy.nodes if n.depth == depth or (n.depth < depth and n.node not in parents)]
    return [[leaves[i] for i in range(node.low, node.high + 1)] for node in tops]


def _groups(lists: Any) -> Groups:
    """The categories, checked."""
    if not isinstance(lists, Sequence) or isinstance(lists, str) or len(lists) < 2:
        raise PolicyError([Problem(KEY, "takes two lists of values or more, the most sensitive first")])
    parts = [[part] if isinstance(part, str) else part for part in lists]
    if not all(isinstance(part, Sequence) and part and "" not in part for part in parts):
        raise PolicyError([Problem(KEY, "takes lists of values, none of them empty")])
    groups = tuple(tuple(None if value is None else _text(value) for value in part) for part in parts)
    values = [value for group in groups for value in group]
    if len(set(values)) < len(values):
        raise PolicyError([Problem(KEY, "has a value twice")])
    return groups


def _text(value: Any) -> str:
    """A value as the database writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
