"""Pages of the reference that are written from the program: its commands and its Python names.

`python -m tests.docs.reference` writes them; `test_reference.py` makes them again and compares.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from os.path import relpath
from pathlib import Path
from textwrap import fill
from typing import Any

import ldiv_db
from ldiv_db.commands.cli import COMMANDS, command_of
from ldiv_db.policy.limits import LIMITS, Limit
from tests.docs import policy_schema

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
_EXAMPLES = re.compile(r"\n\s*Examples?:\n(?P<examples>(?:[ ]+\S.*\n?)+)")
#: The choices of an option, which versions of typer put into brackets of different kinds.
_CHOICES = re.compile(r"\w+(?:\|\w+)+")
#: So many examples of a command are on the page, of those of groups none; `--help` has them all.
_EXAMPLES_SHOWN, _ALONE = 1, 2
#: What so many commands take in the same words stands once; what so many take, its sections do not name again.
_MANY, _MOST = 2, 7
_FUNCTIONS = (
    "run",
    "plan",
    "profile",
    "check",
    "measure",
    "ask",
    "attack",
    "explore",
    "report",
    "register",
    "read_policy",
    "parse_policy",
)
_STATEMENTS = ("check_sql", "counts_sql")
#: Members that the program's own screens and pages are made of.
_OF_FORMS = {"about", "unit", "readings", "axes", "compared", "kept_back", "measured", "policy_of", "ways_out"}
_ERRORS = ("LdivError", "PolicyError", "InfeasibleError", "AuditError", "DatabaseError")


def plain(text: str) -> str:
    """A text of ours as Markdown: what would be markup there stands for itself, code aside."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def commands() -> str:
    """The page of the command line: what several commands take stands once, before them."""
    times = Counter(_all_lines())
    shared = {line: found >= _MOST for line, found in times.items() if found >= _MANY}
    most, several = ([line for line, is_common in shared.items() if is_common is wanted] for wanted in (True, False))
    head = [
        "# Commands",
        "`ldiv COMMAND --help` says the same, with more examples; `python -m tests.docs.reference` writes this page.",
        "With `--json` a command prints one JSON object, on a failure one with the key `error`"
        " ([errors and exit codes](result.md#errors)). `ldiv --install-completion` makes bash, zsh and fish complete"
        " words.",
        "## What most commands take",
        "\n".join(most),
        "## What several commands take",
        "\n".join(several),
    ]
    for name in COMMANDS:
        head += list(command(f"ldiv {name}", command_of(name), shared))
    return "\n\n".join(head) + "\n"


def _all_lines() -> Iterator[str]:
    """The arguments and options of all commands, those of groups included."""
    left = [command_of(name) for name in COMMANDS]
    while left:
        found = left.pop(0)
        if hasattr(found, "commands"):
            left += found.commands.values()
        else:
            yield from parameters_of(found)


def parameters_of(found: Any) -> list[str]:
    """A line for every argument and option of a command that is shown."""
    context = found.context_class(found)
    return [line_of(parameter, context) for parameter in found.params if not parameter.hidden]


def command(name: str, found: Any, shared: Mapping[str, bool], level: int = 2) -> Iterator[str]:
    """The section of a command, and of those of a group one by one; of what is `shared` the names, if they are rare."""
    said = inspect.cleandoc(found.help or "").replace("\b\n", "").replace("\b", "")
    yield f"{'#' * level} `{name}`"
    if hasattr(found, "commands"):
        yield said
        for inner in found.commands:
            yield from command(f"{name} {inner}", found.commands[inner], shared, level + 1)
        return
    examples = _EXAMPLES.search(f"{said}\n")
    yield _EXAMPLES.sub("\n", f"{said}\n").strip()
    if examples and level == _ALONE:
        lines = "\n".join(_first(inspect.cleandoc(examples["examples"].strip("\n"))))
        yield f"```sh\n{lines}\n```"
    listed = parameters_of(found)
    beside = [line for line in listed if not shared.get(line, True)]
    names = ", ".join(line.split("`")[1].removesuffix(" …") for line in beside)
    own = [line for line in listed if line not in shared]
    yield "\n".join([*own, *([f"- As above: `{names}`."] if names else [])])


def _first(examples: str) -> list[str]:
    """The first few commands, with the lines that continue them."""
    commands = re.split(r"(?<!\\\\)\n", examples)
    return commands[:_EXAMPLES_SHOWN]


def line_of(parameter: Any, context: Any) -> str:
    """An item for an argument (in capitals) or an option."""
    said = plain(" ".join((parameter.help or "").split()))
    if parameter.param_type_name == "argument":
        return f"- `{parameter.name.upper()}`{'' if parameter.required else ', optional'}: {said}"
    written = ", ".join(f"`{option}{'' if parameter.is_flag else ' …'}`" for option in parameter.opts)
    if choices := _CHOICES.search(parameter.get_help_record(context)[0]):
        said += f" One of {choices[0].replace('|', ', ')}."
    if parameter.required:
        said += " Required."
    default = parameter.default
    if default not in (None, False, ()) and not callable(default):
        said += f" Default: {default}."
    return f"- {written}: {said}"


def python() -> str:
    """The page of the names that `import ldiv_db` has."""
    rest = [name for name in ldiv_db.__all__ if name not in (*_FUNCTIONS, *_STATEMENTS, *_ERRORS)]
    of_policies = [name for name in rest if hasattr(getattr(ldiv_db, name), "model_fields")]
    parts = [
        "# Python",
        "The names of `import ldiv_db`, from their docstrings, by `python -m tests.docs.reference`."
        " [How to use it from Python](../how-to/python.md) shows them at work. `con` is a DuckDB connection, or the"
        " address of a [database](../how-to/attached.md); `folder` holds relative files, `catalog` is the attached"
        " database with taxonomies and ledger, if that is not the current one; with `show_values` errors name values of"
        " the data. What has the name of a [command's option](commands.md) means the same. Functions raise PolicyError"
        " for what does not exist, does not fit or cannot be read, InfeasibleError for an empty source, and"
        " DatabaseError if the database refuses. `as_dict()` of a result is what the command prints with `--json`.",
    ]
    for title, names in (
        ("Functions", _FUNCTIONS),
        ("SQL for other databases", _STATEMENTS),
        ("What they take and give", [name for name in rest if name not in of_policies]),
        ("Errors", _ERRORS),
    ):
        parts += [f"## {title}", *(part for name in names for part in name_section(name))]
    listed = ", ".join(f"`{name}`" for name in of_policies)
    parts.insert(2, f"{listed} take the keys of [a policy](policy.md).")
    return "\n\n".join(parts) + "\n"


def name_section(name: str) -> Iterator[str]:
    """What a function or a class says of itself."""
    thing = getattr(ldiv_db, name)
    yield f"### `{name}`"
    if inspect.isfunction(thing):
        yield f"```text\n{name}({arguments(thing)})\n```"
    said = plain(inspect.cleandoc(thing.__doc__ or ""))
    yield said if inspect.isfunction(thing) else said.partition("\n\n")[0]
    if inspect.isclass(thing) and (listed := "\n".join(members(thing))):
        yield listed


def arguments(function: Any) -> str:
    """A function's parameters with their defaults, as in the source; types are in the source alone."""
    shown: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}".replace("'", '"')
        shown.append(f"{parameter.name}{default}")
    return fill(", ".join(shown), 110, subsequent_indent="    ")


def members(thing: type) -> Iterator[str]:
    """An item for each public method and property with a docstring, but `as_dict`: its first sentence."""
    for name, value in sorted(vars(thing).items()):
        documented = inspect.isfunction(value) or isinstance(value, property)
        if (
            documented
            and name not in {"as_dict", *_OF_FORMS}
            and not name.startswith(("_", "model_"))
            and value.__doc__
        ):
            called = name if isinstance(value, property) else f"{name}()"
            sentence = " ".join(value.__doc__.split()).split(". ")[0].rstrip(".")
            yield f"- `{called}`: {plain(sentence)}."


def front() -> str:
    """The first page of the site: README's, but for what developers read; its links start in `docs/`."""
    text = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")
    return text.partition("\n## For developers\n")[0].replace("](docs/", "](")


def limits() -> str:
    """The page of what does not go together: those that a promise forbids lead to where the docs say so."""
    text = [
        "# What does not go together",
        "`ldiv` refuses both together, with the reason and a way out. Links say why no promise holds; *italics* would"
        " change nothing; all others are not there yet.",
    ]
    for feature, found in groupby(LIMITS, key=lambda limit: limit.feature):
        text.append(f"**{feature}**: {', '.join(map(_limit, found))}")
    return "\n\n".join(text) + "\n"


def _limit(limit: Limit) -> str:
    if limit.proof:
        return f"[{limit.other}]({relpath(limit.proof, 'reference')})"
    return f"*{limit.other}*" if limit.pointless else limit.other


PAGES = {
    "limits.md": limits,
    **{"../index.md": front, "commands.md": commands, "python.md": python, "policy.schema.json": policy_schema.page},
}


def main() -> None:
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
