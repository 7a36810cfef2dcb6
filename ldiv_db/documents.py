"""YAML documents, as plain values; a key that is given twice is an error, not a choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ldiv_db.errors import PolicyError, Problem
from ldiv_db.texts import POLICY_BYTES, Bounded, load_yaml, read_text


class _Loader(Bounded, yaml.SafeLoader):
    """Safe YAML that refuses keys given twice."""


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int | float | bool | None):
            raise yaml.constructor.ConstructorError(problem="a key is no text", problem_mark=key_node.start_mark)
        if key in found:
            raise yaml.constructor.ConstructorError(
                problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark
            )
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def read_document(path: Path, key: str) -> Any:
    """The document in a YAML file; raises PolicyError, naming it `key`, if it cannot be read or is none."""
    try:
        return parse_document(read_text(path, POLICY_BYTES))
    except OSError as error:
        raise PolicyError([Problem(key, f"cannot read {path}: {error.strerror}")]) from error
    except ValueError as error:
        raise PolicyError([Problem(key, f"{path} {error}")]) from error


def parse_document(text: str) -> Any:
    """The document that a text is; raises ValueError that says what is wrong with it, and where."""
    return load_yaml(text, _Loader)
