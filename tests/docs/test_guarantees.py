"""The examples of `docs/explanation/guarantees.md` give what the page says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.strategies import some

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "guarantees.md"
#: The first block says how the others are replayed.
FIRST, *BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
NUMBERED = [pytest.param(block, id=str(number)) for number, block in enumerate(BLOCKS, 1)]


def examples(block: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(FIRST + block, {}, "guarantees", str(PAGE), None)


def test_the_page_has_examples() -> None:
    setup = len(examples("").examples)
    assert sum(len(examples(block).examples) - setup for block in BLOCKS) > 20


@pytest.mark.parametrize("block", some([*NUMBERED[6:], *NUMBERED[:6]]))
def test_examples_give_what_is_written(monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    # A replay is hundreds of runs on a few rows, for which threads and plans cost more than they save.
    connect = duckdb.connect

    def connected(*words: Any, config: Any = None, **options: Any) -> Any:
        con = connect(*words, config={"threads": 1} | (config or {}), **options)
        con.execute("PRAGMA disable_optimizer")
        return con

    monkeypatch.setattr(duckdb, "connect", connected)
    found = doctest.DocTestRunner().run(examples(block))
    assert found.attempted and found.failed == 0
