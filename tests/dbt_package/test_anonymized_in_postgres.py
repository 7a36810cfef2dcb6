"""The materialization on dbt-postgres: rows stay in the server, which counts them; the release is audited there."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from dbt_projects import PACKAGE, Project

from ldiv_db.running import dbt_model

pytest.importorskip("dbt.adapters.postgres", reason="dbt-postgres is not installed: pip install dbt-postgres")
psycopg2 = pytest.importorskip("psycopg2")
from dbt_ldiv_db import publish_anonymized  # noqa: E402

pytestmark = pytest.mark.dbt

ROWS = """
    SELECT i AS id, 20 + i % 40 AS age, CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, 'disease ' || i % 5 AS disease
    FROM generate_series(1, {rows}) AS r(i)
"""
POLICY = {
    "identifiers": ["id"],
    "quasi_identifiers": {"age": {"numeric": True}, "sex": {}},
    "sensitive": ["disease"],
    "require": [{"distinct": 3}],
    "algorithm": "topdown",
}


class Server:
    """A schema of the server for one test, and a project of models in it."""

    def __init__(self, host: Path, folder: Path):
        self.connection = psycopg2.connect(host=str(host), user="tester", dbname="postgres")
        self.connection.autocommit = True
        self.read("DROP SCHEMA IF EXISTS clinic CASCADE")
        self.read("DROP SCHEMA IF EXISTS ldiv CASCADE")
        folder.mkdir()
        self.project = Project(folder)
        login = {"type": "postgres", "host": str(host), "port": 5432, "user": "tester", "password": "none"}
        output = {**login, "dbname": "postgres", "schema": "clinic", "threads": 2}
        self.project.write("profiles.yml", json.dumps({"clinic": {"target": "dev", "outputs": {"dev": output}}}))
        self.project.write("dbt_project.yml", json.dumps({"name": "clinic", "version": "1.0.0", "profile": "clinic"}))
        self.project.write("packages.yml", json.dumps({"packages": [{"local": str(PACKAGE)}]}))
        self.project.install()

    def read(self, sql: str) -> list[tuple]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def models(self, rows: int = 200, contract: dict | None = None, **policies: dict) -> None:
        """Models of the same rows, each with a policy, and perhaps a contract: the types of its columns."""
        for name, policy in policies.items():
            config = {"materialized": "anonymized", "meta": {"policy": policy}}
            model = {"name": name, "config": config, "data_tests": [{"ldiv.meets_policy": {}}]}
            if contract is not None:
                config["contract"] = {"enforced": True}
                model["columns"] = [{"name": column, "data_type": kind} for column, kind in contract.items()]
            listed = {"version": 2, "models": [model]}
            self.project.write(f"models/{name}.yml", json.dumps(listed))
            self.project.write(f"models/{name}.sql", ROWS.format(rows=rows))


@pytest.fixture
def clinic(postgres: Path, tmp_path: Path) -> Server:
    return Server(postgres, tmp_path / "project")


def test_two_models_at_once_are_published_audited_and_tested(clinic: Server) -> None:
    clinic.models(patients=POLICY, guests={**POLICY, "require": [{"distinct": 2}]})
    done = clinic.project.run("build")
    assert done.success, done.said[-8:]
    assert "200 rows in" in done.message("patients")
    least = "SELECT min(n) FROM (SELECT count(DISTINCT disease) AS n FROM clinic.{} GROUP BY age, sex) AS c"
    assert clinic.read(least.format("patients"))[0][0] >= 3
    assert clinic.read(least.format("guests"))[0][0] >= 2
    assert clinic.read("SELECT count(*) FROM clinic.patients") == [(200,)]
    assert clinic.read("SELECT count(*) FROM ldiv.run WHERE status = 'published'") == [(2,)]
    left = "SELECT relname FROM pg_class WHERE relname LIKE 'ldiv_%' AND relkind IN ('r', 'v')"
    assert clinic.read(left) == []


def test_a_model_that_fails_leaves_the_release_before(clinic: Server) -> None:
    clinic.models(patients=POLICY)
    assert clinic.project.run("run").success
    before = clinic.read("SELECT * FROM clinic.patients")
    clinic.models(patients={**POLICY, "require": [{"distinct": 9}]})
    done = clinic.project.run("run")
    assert not done.success
    assert "distinct" in done.message("patients")
    assert clinic.read("SELECT * FROM clinic.patients") == before


def test_unchanged_rows_are_the_same_release_and_changed_rows_are_refused(clinic: Server) -> None:
    clinic.models(patients=POLICY)
    assert clinic.project.run("run").success
    before = clinic.read("SELECT * FROM clinic.patients")
    done = clinic.project.run("run")
    assert done.message("patients").startswith("unchanged: ")
    assert clinic.read("SELECT * FROM clinic.patients") == before
    clinic.models(rows=190, patients=POLICY)
    done = clinic.project.run("run")
    assert not done.success
    assert "over_time: independent" in done.message("patients")
    assert clinic.read("SELECT * FROM clinic.patients") == before


def test_what_counts_do_not_serve_is_refused_by_name(clinic: Server) -> None:
    clinic.models(patients={**POLICY, "algorithm": "bsgi", "transparent": True})
    done = clinic.project.run("run")
    assert not done.success
    assert "transparent" in done.message("patients")


def test_a_contract_that_is_broken_leaves_the_release_before(clinic: Server) -> None:
    clinic.models(patients=POLICY)
    assert clinic.project.run("run").success
    columns = [(name, "text") for (name,) in clinic.read(
        "SELECT attname FROM pg_attribute WHERE attrelid = 'clinic.patients'::regclass AND attnum > 0 ORDER BY attnum"
    )]  # fmt: skip
    before = clinic.read("SELECT * FROM clinic.patients")
    clinic.models(contract=dict(columns) | {"age": "integer"}, patients=POLICY)
    done = clinic.project.run("run")
    assert not done.success and "the contract is broken: age is" in done.message("patients"), done.said[-8:]
    assert clinic.read("SELECT * FROM clinic.patients") == before
    clinic.models(contract=dict(columns), patients=POLICY)
    done = clinic.project.run("run")
    assert done.success, done.said[-8:]


def test_every_build_adds_classes_under_a_key_and_none_begins_a_series_anew(clinic: Server) -> None:
    nightly = {name: value for name, value in POLICY.items() if name != "identifiers"} | {"key": "id"}
    for number, rows in enumerate((180, 200), 1):
        clinic.models(rows=rows, patients=nightly)
        done = clinic.project.run("build")
        assert done.success, done.said[-8:]
        assert done.message("patients").startswith(f"release {number}: ")
    done = clinic.project.run("run", "--full-refresh")
    assert not done.success and "begun anew" in done.message("patients")
    assert clinic.read("SELECT count(*) FROM ldiv.release WHERE status = 'published'") == [(2,)]


def test_the_view_of_a_models_rows_goes_whatever_ends_the_release(
    clinic: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(dbt_model, "publish_there", interrupt)
    clinic.read("CREATE VIEW public.rows_of_a_model AS SELECT 1 AS age")
    opened = SimpleNamespace(transaction_open=False, handle=clinic.connection)
    connections = SimpleNamespace(get_thread_connection=lambda: opened, data_type_code_to_name=str)
    adapter = SimpleNamespace(type=lambda: "postgres", connections=connections)
    with pytest.raises(KeyboardInterrupt):
        publish_anonymized(adapter, "{}", "DROP VIEW public.rows_of_a_model")
    assert clinic.read("SELECT to_regclass('public.rows_of_a_model')") == [(None,)]


def test_a_view_in_the_place_of_the_release_stays(clinic: Server) -> None:
    clinic.read("CREATE SCHEMA clinic")
    clinic.read("CREATE VIEW clinic.patients AS SELECT 1 AS one")
    clinic.models(patients=POLICY)
    done = clinic.project.run("run")
    assert not done.success
    assert "is a view" in done.message("patients")
    assert clinic.read("SELECT one FROM clinic.patients") == [(1,)]
