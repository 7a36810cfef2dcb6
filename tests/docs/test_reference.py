"""The pages that are written from the program say what the program says today."""

from __future__ import annotations

import pytest

import ldiv_db
from ldiv_db.commands.cli import COMMANDS
from tests.docs.reference import FOLDER, PAGES, plain


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_of_today(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text == PAGES[name](), "python -m tests.docs.reference writes it again"


def test_nothing_is_left_out() -> None:
    commands, python = PAGES["commands.md"](), PAGES["python.md"]()
    assert all(f"## `ldiv {name}`" in commands for name in COMMANDS)
    assert all(f"`{name}`" in python for name in ldiv_db.__all__)


def test_every_argument_and_every_option_has_help() -> None:
    items = [line for line in PAGES["commands.md"]().splitlines() if line.startswith("- ")]
    assert len(items) > 100 and not [item for item in items if item.endswith(": ")]


def test_what_several_commands_take_stands_once() -> None:
    text = PAGES["commands.md"]()
    assert text.count("- `DATABASE`: ") == 1 and text.count("Print one JSON object.") == 1
    sections = {part.partition("`")[0]: part for part in text.split("\n## `ldiv ")}
    assert (
        "- As above: all of *Policies*." in sections["run"]
        and "but `--population-size`, `PUBLISHED`." in sections["report"]
    )


def test_what_would_be_markup() -> None:
    assert plain("a <b> *c* `*<`") == "a &lt;b> \\*c\\* `*<`"
