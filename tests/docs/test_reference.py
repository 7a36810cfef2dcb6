"""The pages that are written from the program say what the program says today."""

from __future__ import annotations

import pytest

import ldiv_db
from ldiv_db.commands.cli import COMMANDS
from tests.docs.reference import FOLDER, PAGES, cell


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_of_today(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert text == PAGES[name](), "python -m tests.docs.reference writes it again"


def test_nothing_is_left_out() -> None:
    commands, python = PAGES["commands.md"](), PAGES["python.md"]()
    assert all(f"## `ldiv {name}`" in commands for name in COMMANDS)
    assert all(f"### `{name}`" in python for name in ldiv_db.__all__)


def test_every_argument_and_every_option_has_help() -> None:
    rows = [line for line in PAGES["commands.md"]().splitlines() if line.startswith("| `")]
    assert len(rows) > 100 and not [row for row in rows if row.endswith("|  |")]


def test_what_would_be_markup() -> None:
    assert cell("a  <b> | *c* `*<`") == "a &lt;b> &#124; \\*c\\* `*<`"
