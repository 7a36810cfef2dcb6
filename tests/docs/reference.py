"""Pages of the reference that are written from the program: its commands and its Python names.

`python -m tests.docs.reference` writes them; `test_reference.py` makes them again and compares.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
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
#: What parts paragraphs.
_BREAK = "\n\n"
#: So many examples of a command are on the page, of those of groups none; `--help` has them all.
_EXAMPLES_SHOWN, _ALONE = 1, 2
#: What so many commands take in the same words stands first, and their sections do not name it again.
_MOST = 7
#: What several commands take stands once, under the first of these that one of them fits; see `homes`.
_FAMILIES = {"Policies": {"run"}, "Audits": {"check"}, "Attacks and reports": {"attack", "report"}}
#: The pages that explain commands, of which the reference has the first sentence; `--help` has all of it.
_EXPLAINED = {
    "ldiv profile": "../how-to/warehouse.md#let-profile-write-the-policy",
    "ldiv measure": "auditing.md#measure",
    "ldiv ask": "../how-to/use-a-release.md",
    "ldiv attack": "auditing.md#attack",
    "ldiv report": "../how-to/reports.md",
    "ldiv run": "../how-to/warehouse.md#plan-and-run",
    "ldiv runs": "result.md#the-ledger",
    "ldiv explore": "../how-to/explore.md",
    "ldiv check": "auditing.md#check",
    "ldiv taxonomy": "../how-to/taxonomies.md",
    "ldiv release": "../how-to/releases.md",
    "ldiv sql": "sql.md",
    "ldiv doctor": "../how-to/warehouse.md#try-it-on-your-account",
    "ldiv mcp": "../how-to/reports.md#for-agents",
    "ldiv dbt": "../how-to/dbt.md",
}
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
    "doctor",
    "read_policy",
    "parse_policy",
)
_STATEMENTS = ("check_sql", "counts_sql")
#: Functions that take what their command takes, and no more.
_AS_COMMANDS = ("profile", "ask", "explore")
#: Members that the program's own screens and pages are made of.
_OF_FORMS = {
    "about",
    "unit",
    "readings",
    "axes",
    "compared",
    "kept_back",
    "measured",
    "policy_of",
    "ways_out",
    "comparable_loss",
    "of_role",
    "rows_added",
    "loss_of",
    "ranked",
    "done",
}
_ERRORS = ("LdivError", "PolicyError", "InfeasibleError", "AuditError", "DatabaseError")


def plain(text: str) -> str:
    """A text of ours as Markdown: what would be markup there stands for itself, code aside."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def commands() -> str:
    """The page of the command line: what several commands take stands once, before them."""
    shared = homes()
    lines: dict[str, list[str]] = defaultdict(list)
    for line, home in shared.items():
        lines[home].append(line)
    head = [
        "# Commands",
        "`ldiv COMMAND --help` says more of each. With `--json` a command prints one JSON object, on"
        " a failure one with the key `error` ([errors and exit codes](result.md#errors)). `ldiv --install-completion`"
        " makes bash, zsh and fish complete words.",
        "## What most commands take",
        "\n".join(lines[""]),
        "## What several commands take",
        *(f"### {title}\n\n" + "\n".join(lines[title]) for title in _FAMILIES),
    ]
    for name in COMMANDS:
        head += list(command(f"ldiv {name}", command_of(name), shared))
    return "\n\n".join(head) + "\n"


def homes() -> dict[str, str]:
    """Where each line that several commands have stands: "" for most, else a family, or the group that alone has it."""
    takers: dict[str, set[str]] = defaultdict(set)
    for name in COMMANDS:
        found = command_of(name)
        for inner, part in getattr(found, "commands", {"": found}).items():
            for line in parameters_of(part):
                takers[line].add(f"{name} {inner}".strip())
    found_homes = {}
    for line, names in takers.items():
        family = next((title for title, those in _FAMILIES.items() if those & names), None)
        groups = {name.split()[0] for name in names}
        if len(names) >= _MOST:
            found_homes[line] = ""
        elif len(names) > 1 and (family or len(groups) == 1):
            found_homes[line] = family or f"ldiv {groups.pop()}"
    return found_homes


def parameters_of(found: Any) -> list[str]:
    """A line for every argument and option of a command that is shown."""
    context = found.context_class(found)
    return [line_of(parameter, context) for parameter in found.params if not parameter.hidden]


def command(name: str, found: Any, shared: Mapping[str, str], level: int = 2) -> Iterator[str]:
    """The section of a command, and of those of a group one by one; of what stands elsewhere the names."""
    said = inspect.cleandoc(found.help or "").replace("\b\n", "").replace("\b", "")
    examples = _EXAMPLES.search(f"{said}\n")
    said = _EXAMPLES.sub("\n", f"{said}\n").strip()
    yield f"{'#' * level} `{name}`"
    yield said.split(_BREAK)[0] + (f" [More]({_EXPLAINED[name]})." if name in _EXPLAINED else "")
    if hasattr(found, "commands"):
        if several := [line for line, home in shared.items() if home == name]:
            yield "\n".join(several)
        for inner in found.commands:
            yield from command(f"{name} {inner}", found.commands[inner], shared, level + 1)
        return
    if examples and level == _ALONE:
        lines = "\n".join(_first(inspect.cleandoc(examples["examples"].strip("\n"))))
        yield f"```sh\n{lines}\n```"
    listed = parameters_of(found)
    own = [line for line in listed if line not in shared]
    above = "; ".join(_above(listed, shared))
    if own or above:
        yield "\n".join([*own, *([f"- As above: {above}."] if above else [])])


def _above(listed: list[str], shared: Mapping[str, str]) -> Iterator[str]:
    """What of a command stands under each title before it: all of it, all but a few, or the names."""
    for title in dict.fromkeys(shared[line] for line in listed if shared.get(line)):
        there = [line for line, home in shared.items() if home == title]
        named = [line for line in there if line in listed]
        left = [line for line in there if line not in listed]
        lines = left if title in _FAMILIES and len(left) < len(named) else named
        names = ", ".join(f"`{line.split('`')[1].removesuffix('=…')}`" for line in lines)
        all_but = f"all of *{title}*{f' but {names}' if names else ''}"
        yield names if lines is named else all_but


def _first(examples: str) -> list[str]:
    """The first few commands, with the lines that continue them."""
    commands = re.split(r"(?<!\\)\n", examples)
    return commands[:_EXAMPLES_SHOWN]


def line_of(parameter: Any, context: Any) -> str:
    """An item for an argument (in capitals) or an option."""
    said = plain(" ".join((parameter.help or "").split()))
    if parameter.param_type_name == "argument":
        return f"- `{parameter.name.upper()}`{'' if parameter.required else ', optional'}: {said}"
    written = ", ".join(f"`{option}{'' if parameter.is_flag else '=…'}`" for option in parameter.opts)
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
        "The names of `import ldiv_db` ([at work](../how-to/python.md)); `help(ldiv_db.run)` has the rest. What has the"
        " name of a [command's option](commands.md) means the same. `con` is a DuckDB connection, or the address of a"
        " [database](../how-to/attached.md); `folder` holds relative files, `catalog` is the attached database with"
        " taxonomies and ledger; with `show_values` errors name values of the data. `as_dict()` of a result is what the"
        " command prints with `--json`. Look at `holds`: only `run` raises for a requirement that fails.",
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
    """What a function or a class says of itself: a sentence, and of a function the paragraph on what it takes."""
    thing = getattr(ldiv_db, name)
    yield f"### `{name}`"
    if inspect.isfunction(thing):
        yield f"```text\n{name}({arguments(thing)})\n```"
    said = plain(inspect.cleandoc(thing.__doc__ or "")).split(_BREAK)
    if name in _AS_COMMANDS:
        yield f"{said[0]} Arguments are those of [the command](commands.md#ldiv-{name})."
    else:
        yield _BREAK.join(said[: 2 if inspect.isfunction(thing) else 1])
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
    """The first page of the site: README without what developers read or the tutorial has; links start in `docs`."""
    text = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8").partition("\n## For developers\n")[0]
    return re.sub(r"\n## One policy\n.*?(?=\n## )", "", text, flags=re.DOTALL).replace("](docs/", "](")


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
