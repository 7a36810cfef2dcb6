"""What profiles write, judged by the generic tests of the package: as by the audit of `ldiv check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
import what_profiles_write as written
from dbt_projects import Project
from strategies import some
from test_verdicts import judging

import ldiv_db

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed: pip install '.[dbt]'")
pytestmark = pytest.mark.dbt


@pytest.mark.parametrize("asked", some([written.ASKED[::4], written.ASKED], 1))
def test_what_profiles_require_is_judged(tmp_path: Path, asked: list[tuple[str, tuple[str, ...]]]) -> None:
    """Of the source as it lies, whose rows are classes of few: most requirements find some that violate."""
    project: Project = judging(tmp_path / "project", {"type": "duckdb", "path": "there.duckdb", "schema": "main"})
    cases: list[dict[str, Any]] = []
    expected: list[list[list[Any]]] = []
    with duckdb.connect(str(project.folder / "there.duckdb")) as con:
        for name, sensitive in asked:
            written.make(con, name)
            con.execute(f"ALTER TABLE events RENAME TO {(table := f'events_{len(cases)}')}")
            written.make(con, name)
            policy = written.starter(con, tmp_path, *sensitive, qi=["region"]).policy
            case = {"table": table, "qi": ["region"], "sensitive": policy.get("sensitive", []), "class_column": None}
            cases.append(case | {"require": policy["require"]})
            audits = ldiv_db.check(con, table, ["region"], case["sensitive"], policy["require"])
            expected.append([[v.violating_classes for a in audits for v in a.verdicts]])
    done = project.run("run-operation", "judge", "--args", json.dumps({"statements": [], "cases": cases}))
    assert done.success, done.said[-5:]
    found = [json.loads(line.partition("JUDGED ")[2]) for line in done.said if "JUDGED " in line]
    assert [len(rows) for rows in found] == [sum(map(sum, counts)) for counts in expected]
    assert any(found)
