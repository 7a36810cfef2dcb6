"""YAML documents, as plain values; a key that is given twice is an error, not a choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ldiv_db.errors import PolicyError, Problem


class _Loader(yaml.SafeLoader):
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
        return yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)  # noqa: S506 - a safe loader
    except OSError as error:
        raise PolicyError([Problem(key, f"cannot read {path}: {error.strerror}")]) from error
    except (yaml.YAMLError, ValueError) as error:  # bytes that are no text, numbers of thousands of digits
        raise PolicyError([Problem(key, f"{path} is no YAML: {error}")]) from error
    except RecursionError as error:
        raise PolicyError([Problem(key, f"{path} is nested too deeply")]) from error
