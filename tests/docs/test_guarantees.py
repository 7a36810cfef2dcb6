"""The examples of `docs/explanation/guarantees.md` give what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "guarantees.md"


@pytest.mark.heavy
@pytest.mark.long
def test_examples_give_what_is_written() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 20 and found.failed == 0
