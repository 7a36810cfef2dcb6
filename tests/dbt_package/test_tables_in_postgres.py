"""One release of several tables on dbt-postgres: DuckDB attaches the same server, and one transaction publishes all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from clinics import InPostgres
from dbt_projects import Done

from ldiv_db.database.connections import load_extension
from ldiv_db.database.errors import AuditError, DatabaseError
from ldiv_db.publishing import tables_draft

pytest.importorskip("dbt.adapters.postgres", reason="dbt-postgres is not installed: pip install dbt-postgres")

pytestmark = pytest.mark.dbt

TABLES = ("patients", "stays", "labs")
JOIN = "SELECT count(*) FROM {0}patients JOIN {0}stays USING (patient_nr) LEFT JOIN {0}labs USING (stay_id)"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory, postgres: Path, fixtures: Path) -> InPostgres:
    """The project `fixtures/dbt_clinic` on a server of our own, of which nothing is there."""
    try:
        load_extension(duckdb.connect(), "postgres_scanner", "PostgreSQL")
    except DatabaseError as error:
        pytest.skip(str(error))
    found = InPostgres(tmp_path_factory.mktemp("tables") / "project", postgres)
    shutil.copytree(fixtures / "dbt_clinic" / "models", found.project.folder / "models")
    return found


def rows_of(clinic: InPostgres) -> list[Any]:
    """All that is published, and the number of entries in the ledger."""
    shown = [sorted(clinic.read(f"SELECT * FROM clinic.{name}")) for name in TABLES]
    return [*shown, clinic.read("SELECT count(*) FROM ldiv.run")]


def build(clinic: InPostgres, *words: str) -> Done:
    return clinic.project.run("build", *words)


def test_all_tables_are_one_release_or_nothing(clinic: InPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    done = build(clinic, "--empty")
    assert done.success and done.message("clinic_release").endswith("a table without rows"), done.said[-8:]
    columns = "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'clinic'"
    empty = sorted(clinic.read(columns))
    with monkeypatch.context() as defect:
        defect.setattr(tables_draft, "audit_tables", fail)
        done = build(clinic)
    assert "as the test wants it" in done.message("clinic_release")
    assert {done.statuses[name] for name in TABLES} == {"skipped"}
    assert clinic.read(f"SELECT count(*) FROM {', '.join(f'clinic.{name}' for name in TABLES)}") == [(0,)]
    done = build(clinic, "--select", "stays")
    assert "is not published" in done.message("stays")

    done = build(clinic)
    assert done.success, done.said[-8:]
    assert done.message("clinic_release") == "320 rows of 3 tables in 9 classes, 0 suppressed"
    assert clinic.read(JOIN.format("clinic.")) == clinic.read(JOIN.format("clinic.stg_")) == [(120,)]
    assert sorted(clinic.read(columns)) == empty
    target = "clinic.patients, clinic.stays, clinic.labs"
    assert clinic.read("SELECT target, status FROM ldiv.run") == [(target, "published")]
    before = rows_of(clinic)
    done = build(clinic)
    assert done.message("clinic_release").startswith("unchanged: 320 rows of 3 tables")
    assert rows_of(clinic)[:3] == before[:3] and rows_of(clinic)[3] == [(2,)]


def fail(*_: Any, **__: Any) -> None:
    raise AuditError("as the test wants it")


def test_a_role_of_the_profile_publishes_and_no_password_is_said(clinic: InPostgres) -> None:
    clinic.read("DROP SCHEMA IF EXISTS clinic CASCADE")
    clinic.read("DROP SCHEMA IF EXISTS ldiv CASCADE")
    clinic.read("DROP ROLE IF EXISTS publisher")
    clinic.read("CREATE ROLE publisher SUPERUSER")
    profiles = clinic.project.folder / "profiles.yml"
    document = json.loads(profiles.read_text())
    document["clinic"]["outputs"]["dev"] |= {"role": "publisher", "password": "open sesame"}
    profiles.write_text(json.dumps(document))
    done = build(clinic)
    assert done.success and "open sesame" not in "".join(map(str, done.said)), done.said[-8:]
    owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'clinic' AND tablename IN ('labs', 'stays')"
    assert clinic.read(owners) == [("publisher",)]
