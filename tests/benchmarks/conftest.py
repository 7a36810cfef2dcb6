"""Benchmarks measure in child processes; tests of what they measure do it in their own."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What child processes would do is done in this one."""

    def run(module: str, task: str, case: Any, folder: str) -> None:
        result = import_module(module).TASKS[task](case, Path(folder))
        Path(folder, "result.json").write_text(json.dumps(result, default=float))

    monkeypatch.setattr("tests.benchmarks.child_processes._run_child", run)
