"""The page of benchmarks: each section has its command, and the figures that are soon measured are measured again."""

from __future__ import annotations

import re

import pytest
from beds import called

from ldiv_db.commands.cli import app
from tests.docs.pages import DOCS

PAGE = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in PAGE.split("\n## ")[1:]}
#: Sections of what was measured on data that are not in the repository, or on copies made for it.
BY_HAND = {"Harmless values"}


def test_a_section_says_how_it_was_measured() -> None:
    command = re.compile(r"^(?:ldiv|python -m tests\.benchmarks\.)\S* ?.*$", re.MULTILINE)
    assert {title for title, text in SECTIONS.items() if not command.search(text)} <= BY_HAND


@pytest.mark.slow
@pytest.mark.parametrize("select", ["bisect", "refine"])
def test_the_demo_loses_what_the_table_says(select: str) -> None:
    lines = SECTIONS["Measuring and attacking"].splitlines()
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    (shown,) = (row for row in rows if row[0] == select)
    found = called(app, ["demo", "--select", select, "--l", 4, "--json", "--quiet"], "ldiv").json
    assert f"{found['loss']['lm_mean']:.4f}".lstrip("0") == shown[rows[0].index("mean LM")]
