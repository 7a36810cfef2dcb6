"""One release of several tables: a model `anonymized` publishes them all, and each is a model that follows it."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_projects import Done, Project
from strategies import some

import ldiv_db
from ldiv_db.database.errors import AuditError
from ldiv_db.publishing import tables_draft
from ldiv_db.running import dbt_model
from ldiv_db.running.dbt_policy import Model, policy_of

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed: pip install '.[dbt]'")

pytestmark = pytest.mark.dbt

TABLES = ("patients", "stays", "labs")
MODELS = "models/published/models.yml"
JOIN = "SELECT count(*) FROM {0}patients JOIN {0}stays USING (patient_nr) LEFT JOIN {0}labs USING (stay_id)"
RUNS = "SELECT target, status FROM ldiv.run"


class Clinic(Project):
    """The project `fixtures/dbt_clinic`."""

    file = "clinic.duckdb"


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> tuple[Path, Done]:
    folder = tmp_path_factory.mktemp("tables") / "project"
    names = shutil.ignore_patterns("target", "logs", "dbt_packages", "*.duckdb*", ".user.yml", "package-lock.yml")
    clinic = Clinic(Path(shutil.copytree(fixtures / "dbt_clinic", folder, ignore=names)))
    clinic.install()
    done = clinic.run("build")
    assert done.success, done.said
    return folder, done


@pytest.fixture
def clinic(tmp_path: Path, built_once: tuple[Path, Done]) -> Clinic:
    """A copy of the project as its first build leaves it."""
    return Clinic(Path(shutil.copytree(built_once[0], tmp_path / "project", symlinks=True)))


def rows_of(clinic: Clinic) -> list[Any]:
    """All that is published, in the order in which it lies, and the ledger's entries."""
    return [clinic.query(f"FROM dev.{name}") for name in TABLES] + [clinic.query(RUNS)]


def is_there(clinic: Clinic) -> set[str]:
    sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'dev' AND table_type = 'BASE TABLE'"
    return {name for (name,) in clinic.query(sql)}


def unpublished(clinic: Clinic) -> None:
    """Take the release away, as if it had never been."""
    for name in TABLES:
        clinic.query(f"DROP TABLE dev.{name}")
    clinic.query("DROP SCHEMA ldiv CASCADE")


def fail(*_: Any, **__: Any) -> None:
    raise AuditError("as the test wants it")


def test_all_tables_are_one_release_with_one_entry(clinic: Clinic, built_once: tuple[Path, Done]) -> None:
    done = built_once[1]
    assert done.message("clinic_release") == "320 rows of 3 tables in 9 classes, 0 suppressed"
    assert done.message("stays") == "120 rows, published by clinic_release"
    assert clinic.query(RUNS) == [("clinic.dev.patients, clinic.dev.stays, clinic.dev.labs", "published")]
    assert clinic.query(JOIN.format("dev.")) == clinic.query(JOIN.format("dev.stg_")) == [(120,)]
    policy = whole_policy(clinic)
    with clinic.database() as connection:
        assert all(audit.holds for audit in ldiv_db.check(connection, policy=policy))


def whole_policy(clinic: Clinic) -> Any:
    """The policy of the project as `ldiv run` takes it."""
    document = yaml.safe_load((clinic.folder / MODELS).read_text())["models"][0]["config"]["meta"]["policy"]
    places = {name: {"source": f"dev.stg_{name}", "target": f"dev.{name}"} for name in TABLES}
    return document | {"tables": {name: document["tables"][name] | places[name] for name in TABLES}}


def test_unchanged_rows_are_the_same_release(clinic: Clinic) -> None:
    before = rows_of(clinic)
    done = clinic.run("run")
    assert done.message("clinic_release").startswith("unchanged: 320 rows of 3 tables")
    assert rows_of(clinic)[:3] == before[:3] and len(clinic.query(RUNS)) == 2


def test_changed_rows_are_refused_and_nothing_of_them_is_published(clinic: Clinic) -> None:
    before = rows_of(clinic)
    clinic.edit("models/staging/stg_patients.sql", "1, 80", "1, 90")
    done = clinic.run("build")
    assert "over_time: independent" in done.message("clinic_release")
    assert {done.statuses[name] for name in (*TABLES, "stays_by_ward")} == {"skipped"}
    assert rows_of(clinic) == before


def test_docs_know_each_table_and_what_it_is_made_of(clinic: Clinic) -> None:
    assert clinic.run("docs", "generate").success
    manifest, catalog = (json.loads((clinic.folder / "target" / f"{name}.json").read_text())
                         for name in ("manifest", "catalog"))  # fmt: skip
    parents = {name.split(".")[-1]: {p.split(".")[-1] for p in found} for name, found in manifest["parent_map"].items()}
    assert parents["clinic_release"] == {"stg_patients", "stg_stays", "stg_labs"}
    assert all(parents[name] == {"clinic_release"} for name in TABLES)
    assert set(catalog["nodes"]["model.clinic.labs"]["columns"]) == {"result", "stay_id"}


def test_a_table_that_is_selected_alone_publishes_nothing(clinic: Clinic) -> None:
    before = rows_of(clinic)
    assert clinic.run("build", "--select", "stays").success
    assert rows_of(clinic) == before
    unpublished(clinic)
    done = clinic.run("build", "--select", "stays+")
    assert "`dbt build --select clinic_release+`" in done.message("stays")
    assert done.statuses["stays_by_ward"] == "skipped"
    assert not is_there(clinic) & set(TABLES)
    done = clinic.run("run", "--select", "+stays")
    assert done.success and is_there(clinic) >= set(TABLES)


@pytest.mark.parametrize("is_first", some([False, True]))
def test_an_audit_that_fails_publishes_no_table(
    clinic: Clinic, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_first:
        unpublished(clinic)
    before = is_there(clinic) if is_first else rows_of(clinic)
    monkeypatch.setattr(tables_draft, "audit_tables", fail)
    done = clinic.run("build")
    assert "as the test wants it" in done.message("clinic_release") and not done.success
    assert {done.statuses[name] for name in (*TABLES, "stays_by_ward")} == {"skipped"}
    assert (is_there(clinic) if is_first else rows_of(clinic)) == before


@pytest.mark.slow
def test_a_contract_of_one_table_takes_back_all(clinic: Clinic) -> None:
    before = rows_of(clinic)
    promised = "columns: [{name: result, data_type: varchar}, {name: stay_id, data_type: varchar}]"
    config = "config: {contract: {enforced: true}, materialized: anonymized_table}"
    clinic.edit(MODELS, "labs\n    config: {materialized: anonymized_table}", f"labs\n    {promised}\n    {config}")
    done = clinic.run("run")
    assert "contract" in done.message("clinic_release") and rows_of(clinic) == before
    clinic.edit(MODELS, "stay_id, data_type: varchar", "stay_id, data_type: bigint")
    done = clinic.run("run")
    assert done.success, done.said


@pytest.mark.slow
def test_empty_makes_the_columns_of_each_table_and_leaves_a_release(clinic: Clinic) -> None:
    columns = {name: clinic.query(f"DESCRIBE dev.{name}") for name in TABLES}
    before = rows_of(clinic)
    done = clinic.run("run", "--empty", "--select", "clinic_release+")
    assert done.message("clinic_release") == "nothing published (--empty): the release stays", done.said
    assert rows_of(clinic) == before
    unpublished(clinic)
    assert clinic.run("build", "--empty").success
    assert {name: clinic.query(f"DESCRIBE dev.{name}") for name in TABLES} == columns
    assert clinic.query(f"SELECT count(*) FROM {', '.join(f'dev.{name}' for name in TABLES)}") == [(0,)]
    done = clinic.run("run", "--select", "labs")
    assert "is not published" in done.message("labs")


@pytest.mark.slow
def test_a_model_may_have_another_name_and_schema_than_its_table(clinic: Clinic) -> None:
    unpublished(clinic)
    clinic.query("CREATE VIEW dev.stays AS SELECT 1 AS one")
    clinic.edit(MODELS, "  - name: patients\n    config: {", "  - name: people\n    config: {schema: open, "
                "alias: Persons, meta: {table: patients}, ")  # fmt: skip
    (clinic.folder / "models/published/patients.sql").rename(clinic.folder / "models/published/people.sql")
    done = clinic.run("run", "--select", "clinic_release")
    assert done.success, done.said
    assert clinic.query(RUNS) == [('clinic.dev_open."Persons", clinic.dev.stays, clinic.dev.labs', "published")]
    done = clinic.run("run", "--select", "people")
    assert done.message("people") == "80 rows, published by clinic_release"


MISFITS = [
    ("models/published/labs.sql", "}}", "}} where result is not null", "alone: what selects from it is a model"),
    ("models/published/clinic_release.sql", ', labs=ref("stg_labs")', "", "tables.labs: the model's SQL names no"),
    ("models/staging/stg_labs.sql", "-- One", "{{ config(materialized='ephemeral') }} -- One", "stg_labs is ephem"),
    (MODELS, "  - name: labs\n    config: {materialized: anonymized_table}\n", "", "tables.labs: no model is"),
    (MODELS, "- ldiv.l_diverse: {", "- ldiv.meets_policy\n      - ldiv.l_diverse: {", "one table of several"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "said"), some(pytest.param(*misfit) for misfit in MISFITS))
def test_models_that_misfit_are_refused(clinic: Clinic, file: str, old: str, new: str, said: str) -> None:
    before = rows_of(clinic)
    clinic.edit(file, old, new)
    done = clinic.run("build")
    assert not done.success and any(said in str(result.message) for result in done.results), done.said
    assert rows_of(clinic)[:3] == before[:3]


def test_what_models_and_policy_do_not_say_of_each_other_is_named_at_once() -> None:
    policy = {"individual": "who", "require": [{"k": 2}], "tables": {"a": {"source": "s"}, "b": {"target": "t"}}}
    tables = {"a": {"source": "a", "target": "o.a"}, "b": {"source": "b"}, "c": {"source": "c", "target": "o.c"}}
    model = Model("m", "s", "t", policy, ["."], tables=tables)
    with pytest.raises(ldiv_db.PolicyError) as error:
        policy_of(model)
    keys = [problem.key for problem in error.value.problems]
    assert keys == ["tables", "tables.a.source", "tables.b", "tables.b.target"]


def test_other_adapters_refuse_several_tables_by_name() -> None:
    policy = {"individual": "who", "require": [{"k": 2}], "tables": {"a": {"person": "who", "keep": ["b"]}}}
    model = Model("m", "s", "t", policy, ["."], tables={"a": {"source": "a", "target": "o.a"}})
    with pytest.raises(ldiv_db.PolicyError, match="on dbt-duckdb and dbt-postgres alone"):
        dbt_model.no_rows_there(None, "snowflake", json.dumps(asdict(model)))
