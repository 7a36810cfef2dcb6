"""The page on Dagster: its asset publishes or fails without a trace, and its check finds what came later."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import Project

pytestmark = pytest.mark.skipif(find_spec("dagster") is None, reason="dagster is not installed")
#: A secret that the policy names.
SEED = "987654321987654321"
#: An asset after the page's, which only a check that blocks keeps back.
DOWNSTREAM = """

@dg.asset(deps=[published_patients])
def by_country() -> None:
    with duckdb.connect(WAREHOUSE) as con:
        con.execute("CREATE OR REPLACE TABLE by_country AS SELECT DISTINCT country FROM published.patients")


defs = dg.Definitions([published_patients, by_country], asset_checks=[l_diverse], executor=dg.in_process_executor)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.of(tmp_path, "Dagster", DAGSTER_DISABLE_TELEMETRY="yes", DAGSTER_HOME=str(tmp_path))


def test_a_policy_that_cannot_be_met_leaves_the_release(project: Project) -> None:
    (run,) = project.page.commands
    project.write("policies/patients.yml", project.page.files["policies/patients.yml"] + f"seed: {SEED}\n")
    assert SEED not in project.does(run)
    before = project.release()
    assert len(before) == 24
    project.fill(("Flu", "Cancer"))
    failed = project.call(run)
    assert failed.returncode == 1 and "no table of all these rows meets the policy" in failed.stderr
    assert "Cancer" not in failed.stdout + failed.stderr
    assert (project.release(), project.runs()) == (before, 1)


def test_a_check_that_fails_keeps_back_what_is_downstream(project: Project) -> None:
    code = project.page.files["definitions.py"]
    stricter = code.replace('"distinct:3"', '"k:25"')
    assert stricter != code
    project.write("definitions.py", stricter + DOWNSTREAM)
    failed = project.call("dagster asset materialize --select '*' -f definitions.py")
    assert failed.returncode == 1 and "l_diverse" in failed.stderr
    assert project.runs() == 1 and not project.sql("SELECT * FROM duckdb_tables() WHERE table_name = 'by_country'")
    project.write("definitions.py", code + DOWNSTREAM)
    project.does("dagster asset materialize --select '*' -f definitions.py")
    assert project.sql("FROM by_country")
