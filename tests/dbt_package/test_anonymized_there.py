"""The materialization in warehouses: rows stay there and are counted; the release is audited there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from clinics import POLICY, Clinic, clinic_in

import ldiv_db

pytestmark = pytest.mark.dbt


@pytest.fixture(params=["postgres", "snowflake", "spark"])
def clinic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Clinic]:
    with clinic_in(request.param, tmp_path / "project", request) as found:
        yield found


def test_two_models_at_once_are_published_audited_and_tested(clinic: Clinic) -> None:
    clinic.models(patients=POLICY, guests={**POLICY, "require": [{"distinct": 2}]})
    done = clinic.project.run("build")
    assert done.success, done.said[-8:]
    assert "40 rows in" in done.message("patients")
    least = "SELECT min(n) FROM (SELECT count(DISTINCT disease) AS n FROM clinic.{} GROUP BY age, sex) AS c"
    assert clinic.read(least.format("patients"))[0][0] >= 3
    assert clinic.read(least.format("guests"))[0][0] >= 2
    assert clinic.read("SELECT count(*) FROM clinic.patients") == [(40,)]
    assert clinic.read("SELECT count(*) FROM ldiv.run WHERE status = 'published'") == [(2,)]
    assert not [name for name in clinic.tables() if name.startswith("ldiv_")]
    checked = ldiv_db.check(clinic.connection, "clinic.patients", policy=POLICY)
    assert [(audit.rows, audit.holds) for audit in checked] == [(40, True)]


def test_a_model_that_fails_leaves_the_release_before(clinic: Clinic) -> None:
    clinic.models(patients=POLICY)
    assert clinic.project.run("run").success
    before = clinic.read("SELECT * FROM clinic.patients")
    clinic.models(patients={**POLICY, "require": [{"distinct": 9}]})
    done = clinic.project.run("run")
    assert not done.success
    said = done.message("patients")
    assert re.search(r"a run accepts, the least costly first:\n +1\. require: \[\{distinct: 5\}\] \(", said), said
    assert clinic.read("SELECT * FROM clinic.patients") == before
    assert not [name for name in clinic.tables() if name.startswith("ldiv_")]


def test_empty_makes_columns_and_publishes_nothing(clinic: Clinic) -> None:
    clinic.models(patients=POLICY)
    done = clinic.project.run("build", "--empty")
    assert done.success, done.said[-8:]
    assert done.message("patients") == "nothing published (--empty): a table without rows"
    assert clinic.tables() == ["patients"] and clinic.read("SELECT age, sex, disease FROM clinic.patients") == []
    done = clinic.project.run("build")
    assert done.success and done.message("patients").startswith("40 rows in "), done.said[-8:]
    done = clinic.project.run("run", "--empty")
    assert done.message("patients") == "nothing published (--empty): the release stays"
    assert clinic.read("SELECT count(*) FROM clinic.patients") == [(40,)]
    clinic.models(patients={**POLICY, "sensitive": ["illness"]})
    done = clinic.project.run("run", "--empty")
    assert not done.success and "sensitive.illness: is not a column" in done.message("patients")
    assert not [name for name in clinic.tables() if name.startswith("ldiv_")]


def test_unchanged_rows_are_the_same_release_and_changed_rows_are_refused_or_replace_it(clinic: Clinic) -> None:
    clinic.models(patients=POLICY)
    assert clinic.project.run("run").success
    before = clinic.read("SELECT * FROM clinic.patients")
    done = clinic.project.run("run")
    assert done.message("patients").startswith("unchanged: ")
    assert clinic.read("SELECT * FROM clinic.patients") == before
    clinic.models(rows=36, patients=POLICY)
    done = clinic.project.run("run")
    assert not done.success
    assert "over_time: independent" in done.message("patients")
    assert clinic.read("SELECT * FROM clinic.patients") == before
    clinic.models(rows=36, patients={**POLICY, "over_time": "independent"})
    done = clinic.project.run("build")
    assert done.success, done.said[-8:]
    assert clinic.read("SELECT count(*) FROM clinic.patients") == [(36,)]


def test_what_the_database_counts_itself_is_refused_by_name(clinic: Clinic) -> None:
    clinic.models(patients={**POLICY, "weight": "age"})
    done = clinic.project.run("run")
    assert not done.success
    assert "weight: does not go with a warehouse" in done.message("patients")


def test_a_contract_that_is_broken_leaves_the_release_before(clinic: Clinic) -> None:
    clinic.models(patients=POLICY)
    assert clinic.project.run("run").success
    columns = dict.fromkeys(("age", "sex", "disease"), clinic.text)
    before = clinic.read("SELECT * FROM clinic.patients")
    clinic.models(contract=columns | {"age": "integer"}, patients=POLICY)
    done = clinic.project.run("run")
    assert not done.success and "the contract is broken: " in done.message("patients"), done.said[-8:]
    assert clinic.read("SELECT * FROM clinic.patients") == before
    clinic.models(contract=columns, patients=POLICY)
    done = clinic.project.run("run")
    assert done.success, done.said[-8:]


def test_names_are_those_that_dbt_finds(clinic: Clinic) -> None:
    """Names with capitals, which dbt quotes or not: the release is where tests and models that build on it look."""
    clinic.models(OutPatients=POLICY)
    clinic.project.write("models/sums.sql", "select count(*) as n from {{ ref('OutPatients') }}")
    for command in (["build", "--empty"], ["build"], ["build"]):
        done = clinic.project.run(*command)
        assert done.success, done.said[-8:]
    assert done.message("OutPatients").startswith("unchanged: 40 rows in ")
    assert clinic.read("SELECT n FROM clinic.sums") == [(40,)]
    assert clinic.tables().count("outpatients") == 1


def test_a_view_in_the_place_of_the_release_stays(clinic: Clinic) -> None:
    clinic.read("CREATE SCHEMA clinic")
    clinic.read("CREATE VIEW clinic.patients AS SELECT 1 AS one")
    clinic.models(patients=POLICY)
    done = clinic.project.run("run")
    assert not done.success
    assert "is a view" in done.message("patients")
    assert clinic.read("SELECT one FROM clinic.patients") == [(1,)]
