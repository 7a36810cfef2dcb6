"""What judges the output of every command: the JSON Schema that is published, with its objects closed.

What is written leaves objects open: a program that reads them is to pass over keys that it does not know. Tests close
them, so that no key lacks its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ldiv_db.commands import cli as commands
from ldiv_db.database.templates import resource_folder

SCHEMA: dict[str, Any] = json.loads((resource_folder("docs/reference") / "output.schema.json").read_text("utf-8"))
#: The definitions of what is printed: one a command, whose name has underscores for blanks, and `error`.
PRINTED = [printed["$ref"].rpartition("/")[2] for printed in SCHEMA["anyOf"]]
COMMANDS = [name.replace("_", " ") for name in PRINTED if name != "error"]


@cache
def validators() -> Mapping[str, Any]:
    """What judges the output of each command, by its name; keys that the schema does not name are refused."""
    jsonschema = import_module("jsonschema")
    whole = _closed(SCHEMA)
    return {
        name: jsonschema.Draft202012Validator({**whole, "anyOf": [{"$ref": f"#/$defs/{name}"}]}) for name in PRINTED
    }


def command_of(words: Sequence[str]) -> str:
    """The command that words call; one of a group is named by two, and that which lists may be left out."""
    first = next(place for place, word in enumerate(words) if word in commands.COMMANDS)
    name, inner = words[first], " ".join(words[first : first + 2])
    return next(found for found in (inner, name, f"{name} list") if found in COMMANDS)


def _closed(found: Any) -> Any:
    if isinstance(found, list):
        return [_closed(one) for one in found]
    if not isinstance(found, Mapping):
        return found
    inner = {key: _closed(one) for key, one in found.items()}
    return {"additionalProperties": False} | inner if "properties" in found and "required" in found else inner


def refuse_unknown(words: Sequence[str], printed: str) -> None:
    """Raise AssertionError unless the output of `ldiv WORDS --json` is what the schema says of that command.

    Without jsonschema, which environments of single packages lack, it judges nothing.
    """
    if find_spec("jsonschema") is None:
        return
    document = json.loads(printed)
    name = "error" if "error" in document else command_of(words).replace(" ", "_")
    wrong = [f"{error.json_path}: {error.message}" for error in validators()[name].iter_errors(document)]
    assert not wrong, (name, wrong)
