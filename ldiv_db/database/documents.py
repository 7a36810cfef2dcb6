"""Text files from outside, read with bounds: no device or pipe, no endless file, no YAML that unfolds without end.

YAML documents are plain values; a key that is given twice is an error, not a choice. Keys are texts as they are
written, so that `010`, `No` and `1.50` stay what they are, and so are scalars where a document names values of the
data. NULL, in words or as nothing, is None; in quotes it is a text.
"""

from __future__ import annotations

import csv
import io
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ldiv_db.database.errors import refused
from ldiv_db.database.failures import has_half_character

MEGABYTE = 2**20
#: Most bytes of a policy, or of anything else that people write by hand; of a nested taxonomy; of one of levels.
POLICY_BYTES, NESTED_BYTES, LEVELS_BYTES = MEGABYTE, 8 * MEGABYTE, 64 * MEGABYTE
#: The deepest nesting of YAML and taxonomies, and the most nodes that all aliases of a document may stand for.
MAX_DEPTH, MAX_ALIASED = 100, 100_000


def read_text(path: Path, most: int) -> str:
    """The UTF-8 text of a file of at most `most` bytes; raises OSError, or ValueError that says what else it is."""
    # Without O_NONBLOCK to open a pipe would wait for somebody to write into it.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"is larger than {most // MEGABYTE} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text: {error.reason}") from None  # its own text would quote the file


def read_lines(text: str, delimiter: str = ";") -> Iterator[tuple[int, list[str]]]:
    """The cells, between delimiters, of every line, numbered from 1; raises ValueError where they are none.

    Blanks at the ends of a cell are not of it, unless they stand in quotes.
    """
    taken: list[str] = []

    def noted() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    lines = csv.reader(noted(), delimiter=delimiter, skipinitialspace=True)
    quoted = re.compile(rf'(?:^|{delimiter}) *(?:"((?:[^"]|"")*)"\s*(?={delimiter}|$)|[^{delimiter}]*)')
    for line in itertools.count(1):
        taken.clear()
        try:
            cells = [cell.strip() for cell in next(lines)]
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(f"line {line} is not a line of levels: {error}") from None
        if len(cells) > MAX_DEPTH:
            raise ValueError(f"line {line} has more than {MAX_DEPTH} levels")
        found = [match[1] for match in quoted.finditer("".join(taken).rstrip("\r\n"))]
        if len(found) == len(cells):  # otherwise a quote stands where it is none
            cells = [cell if text is None else text.replace('""', '"') for cell, text in zip(cells, found, strict=True)]
        yield line, cells


class Bounded:
    """Goes before a loader of YAML: bounds of depth and aliases, and characters that JSON wrote in two escapes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        sizes: dict[int, int] = self.__dict__.setdefault("_sizes", {})
        self._depth = getattr(self, "_depth", 0) + 1
        if self._depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(problem=f"is nested too deeply (more than {MAX_DEPTH} levels)")
        is_alias = self.check_event(yaml.AliasEvent)  # type: ignore[attr-defined]
        mark = self.peek_event().start_mark  # type: ignore[attr-defined]
        node = super().compose_node(parent, index)  # type: ignore[misc]
        self._depth -= 1
        if is_alias:
            self._aliased = getattr(self, "_aliased", 0) + sizes.get(id(node), MAX_ALIASED + 1)
            if self._aliased > MAX_ALIASED:
                problem = f"its aliases stand for more than {MAX_ALIASED:,} values"
                raise yaml.composer.ComposerError(problem=problem, problem_mark=mark)
        else:
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in _parts(node))
        return node

    def construct_scalar(self, node: Any) -> Any:
        return _whole(node, super().construct_scalar(node))  # type: ignore[misc]


def _parts(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _whole(node: Any, text: Any) -> Any:
    """The scalar with halves of characters put together; raises ConstructorError for a half that is alone."""
    if not isinstance(text, str) or not has_half_character(text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        problem = "holds half a character (a lone surrogate)"
        raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from None


def load_yaml(text: str, loader: Callable[[str], Any], form: str = "YAML") -> Any:
    """The document in a text, by a `loader` that is Bounded; raises ValueError that says what is wrong, and where."""
    try:
        return yaml.load(text, Loader=loader)  # type: ignore[arg-type]  # noqa: S506 - a safe one, perhaps with settings
    except yaml.MarkedYAMLError as error:
        said = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    except yaml.YAMLError as error:
        said, where = str(error).splitlines()[0], ""
    except RecursionError:
        said, where = "is nested too deeply", ""
    except (ValueError, LookupError, AttributeError, TypeError, OverflowError):
        said, where = "a number, a date or another value is not of its type", ""  # how constructors of YAML fail
    raise ValueError(f"is not {form}: {said}{where}")


class _Loader(Bounded, yaml.SafeLoader):
    """Safe YAML that refuses keys given twice; `texts` are the places whose scalars are texts."""

    def __init__(self, stream: str, texts: Sequence[Sequence[str]] = ()):
        super().__init__(stream)
        self._texts = [tuple(way) for way in texts]

    def get_single_data(self) -> Any:
        node = self.get_single_node()
        if node is None:
            return None
        _keep_texts(node, self._texts, set())
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
        raise refused(key, f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise refused(key, f"{path} {error}") from error


def parse_document(text: str, texts: Sequence[Sequence[str]] = ()) -> Any:
    """The document that a text is; raises ValueError that says what is wrong, and where. `texts` as `read_document`."""
    return load_yaml(text, partial(_Loader, texts=texts))


def _keep_texts(node: yaml.Node, ways: Sequence[tuple[str, ...]], seen: set[Any]) -> None:
    """Read the scalars at the ends of these ways, or below, as texts."""
    place = id(node), tuple(ways)
    if place in seen:
        return
    seen.add(place)
    if isinstance(node, yaml.SequenceNode):  # at the end of a way, or of mappings that are merged
        for item in node.value:
            _keep_texts(item, ways, seen)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            passes = () in ways or key.tag == "tag:yaml.org,2002:merge"
            if rest := ways if passes else [way[1:] for way in ways if way[0] in ("*", key.value)]:
                _keep_texts(value, rest, seen)
    elif () in ways and isinstance(node, yaml.ScalarNode) and not _is_null(node):
        node.tag = "tag:yaml.org,2002:str"
