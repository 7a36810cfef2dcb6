"""The README's Python runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
SCRIPTS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def warehouse(bed: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The folder that the README's scripts stand in."""
    bed.database.rename(bed.folder / "warehouse.duckdb")
    monkeypatch.chdir(bed.folder)
    return bed


def run_code(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_the_blocks_are_found() -> None:
    assert len(SCRIPTS) >= 2


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_a_script_publishes(warehouse: Any, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    run_code(SCRIPTS[number])["con"].close()
    assert capsys.readouterr().out
    with duckdb.connect("warehouse.duckdb") as con:
        assert con.execute("SELECT count(*) FROM published.patients").fetchone() == (24,)


def test_a_script_that_fails_publishes_nothing(warehouse: Any) -> None:
    (code,) = [block for block in SCRIPTS if '"k:3"' in block]
    with pytest.raises(SystemExit):
        run_code(code.replace('"k:3"', '"k:25"'))
    with duckdb.connect("warehouse.duckdb") as con, pytest.raises(duckdb.CatalogException):
        con.execute("FROM published.patients")
