"""YAML documents, as plain values; a key that is given twice is an error, not a choice.

Keys are texts as they are written, so that `010`, `No` and `1.50` stay what they are, and so are scalars where a
document names values of the data. NULL, in words or as nothing, is None; in quotes it is a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.texts import POLICY_BYTES, Bounded, load_yaml, read_text


class _Loader(Bounded, yaml.SafeLoader):
    """Safe YAML that refuses keys given twice; `texts` are the places whose scalars are texts."""

    def __init__(self, stream: str, texts: Sequence[Sequence[str]] = ()):
        super().__init__(stream)
        self._texts = [tuple(way) for way in texts]

    def get_single_data(self) -> Any:
        node = self.get_single_node()
        if node is None:
            return None
        _keep_texts(node, self._texts)
        return self.construct_document(node)


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(problem="a key is not a text", problem_mark=key_node.start_mark)
        key = None if _is_null(key_node) else loader.construct_scalar(key_node)
        if key in mapping:
            raise yaml.constructor.ConstructorError(
                problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark
            )
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _is_null(node: yaml.Node) -> bool:
    return bool(node.tag == "tag:yaml.org,2002:null")


def read_document(path: Path, key: str, texts: Sequence[Sequence[str]] = ()) -> Any:
    """The document in a YAML file; raises PolicyError, naming it `key`, if it cannot be read or is none.

    `texts` are the places, as keys on the way there (`*` is any key), whose scalars are texts.
    """
    try:
        return parse_document(read_text(path, POLICY_BYTES), texts)
    except OSError as error:
        raise PolicyError([Problem(key, f"cannot read {path}: {error.strerror}")]) from error
    except ValueError as error:
        raise PolicyError([Problem(key, f"{path} {error}")]) from error


def parse_document(text: str, texts: Sequence[Sequence[str]] = ()) -> Any:
    """The document that a text is; raises ValueError that says what is wrong, and where. `texts` as `read_document`."""
    return load_yaml(text, partial(_Loader, texts=texts))


def _keep_texts(node: yaml.Node, ways: Sequence[tuple[str, ...]]) -> None:
    """Have the scalars at the end of the ways be texts."""
    if () in ways:
        _mark_texts(node, set())
    elif isinstance(node, yaml.SequenceNode):  # of mappings that are merged
        for item in node.value:
            _keep_texts(item, ways)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            is_merge = key.tag == "tag:yaml.org,2002:merge"
            rest = ways if is_merge else [way[1:] for way in ways if way[0] in ("*", key.value)]
            if rest:
                _keep_texts(value, rest)


def _mark_texts(node: yaml.Node, seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _mark_texts(item, seen)
    elif isinstance(node, yaml.ScalarNode) and not _is_null(node):
        node.tag = "tag:yaml.org,2002:str"
