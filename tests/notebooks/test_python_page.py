"""The page on Python runs from top to bottom."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "frames.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas", reason="the extra `notebooks` is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert len(re.findall(r"│ distinct l=3 │ yes ", printed)) == 2  # of the run, and of the check
    assert "- frequency: 2" in printed
    assert "{'require': [{'distinct': 4}]}" in printed
    assert (tmp_path / "patients.parquet").is_file()
