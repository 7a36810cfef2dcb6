"""What pages say was executed is what the table of facts says, by which runs tell it as well."""

from __future__ import annotations

import re

import pytest

from ldiv_db.database.snapshot import DUCKLAKE
from ldiv_db.database.traits_there import FORMATS, TRAITS
from tests.docs.pages import DOCS, ROOT

NEVER = {name: traits for name, traits in TRAITS.items() if traits.caution}


def page(name: str) -> str:
    return (DOCS / "how-to" / f"{name}.md").read_text(encoding="utf-8")


def test_the_first_page_names_what_was_never_executed() -> None:
    (paragraph,) = [p for p in (ROOT / "README.md").read_text().split("\n\n") if "**never executed by" in p]
    told = paragraph[paragraph.index("We executed") : paragraph.index("never executed")]
    assert {traits.name for traits in TRAITS.values() if traits.name in told} == {t.name for t in NEVER.values()}


@pytest.mark.parametrize("dialect", [name for name in NEVER if (DOCS / "how-to" / f"{name}.md").is_file()])
def test_its_page_says_so(dialect: str) -> None:
    (row,) = re.findall(r"^- executed: .*(?:\n  .*)*", page(dialect), re.MULTILINE)
    assert NEVER[dialect].caution.partition(": ")[2] in " ".join(row.split())


def test_the_table_of_what_was_executed_has_all() -> None:
    table = page("warehouse").partition("### What was executed")[2].partition("###")[0]
    for traits in TRAITS.values():
        (row,) = [row for row in table.splitlines() if traits.name in row.partition("|")[2].partition("|")[0]]
        known = re.findall(r"\w+ \d+(?:\.\d+)*", traits.executed + traits.tried)
        assert all(one in row for one in known) and (bool(known) or "never" in row)


def test_the_page_on_histories_has_what_a_note_says() -> None:
    text = page("time-travel")
    ends = [traits.history for traits in (*TRAITS.values(), *FORMATS.values()) if traits.history]
    for end in [*ends, *DUCKLAKE.history.format("lake").split("; ")]:
        for words in re.split(r"…|CATALOG|, (?:before|two days)", end.format(table="published.patients")):
            assert words.strip(" ')") in text
