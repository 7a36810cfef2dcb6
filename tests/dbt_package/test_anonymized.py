"""The materialization `anonymized`: all of a model is there, audited and in the ledger, or nothing of it."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from dbt_projects import Done, Project

import ldiv_db
from ldiv_db.algorithms.base import Plan
from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.running import dbt_model

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed: pip install '.[dbt]'")
import dbt_ldiv_db

pytestmark = pytest.mark.dbt

MODELS = "models/models.yml"
RUNS = "SELECT count(*) FROM ldiv.run WHERE target = 'hospital.dev.patients'"
OLD_CLASS = "SELECT class_id, age, sex, list(disease ORDER BY disease) FROM dev.patients_over_time GROUP BY ALL"


def one_row_a_class(self: Any, task: Any) -> Plan:
    """Classes that no policy allows, as a defect of an algorithm would make them."""
    assigned = task.engine.load("bad", {"row_id": "BIGINT", "class_id": "BIGINT"}, [(i, i) for i in range(1, 61)])
    return Plan(assigned, 2)


def digest(project: Project) -> str:
    return hashlib.sha256((project.folder / "hospital.duckdb").read_bytes()).hexdigest()


def tables(project: Project, schema: str) -> list[str]:
    sql = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}' ORDER BY ALL"
    return [name for (name,) in project.query(sql)]


def test_the_first_build_and_a_rebuild(built: Project, first_build: Done) -> None:
    assert first_build.message("patients").startswith("60 rows in ")
    assert first_build.message("patients_over_time") == "release 1: 60 rows, 60 for the first time"
    expected = ["admissions", "diseases_by_age", "patients", "patients_over_time"]
    assert tables(built, "dev") == expected
    policy = {"qi": ["age", "sex", "zip"], "sensitive": "disease", "require": [{"distinct": 3}, {"frequency": 2}]}
    with built.database() as connection:
        assert all(audit.holds for audit in ldiv_db.check(connection, "dev.patients", **policy))
        assert connection.execute("SELECT count(*) FROM dev.patients").fetchone() == (60,)
        assert connection.execute(RUNS).fetchone() == (1,)
    again = built.run("build")
    assert again.success and built.query(RUNS) == [(2,)]
    assert tables(built, "dev") == expected
    assert set(again.statuses.values()) == {"success", "pass"}


@pytest.mark.slow
def test_ranges_with_ends_are_published_as_by_a_run(built: Project) -> None:
    """All numbers below `bottom` and from `top` on are one value each, in the model and for its test."""
    whole = "            age: {numeric: true}\n            sex: {}\n            zip: {taxonomy: {prefix: [5, 3, 1]}}\n"
    built.edit(MODELS, whole, "            age: {taxonomy: {ranges: [5, 20], bottom: 40, top: 60}}\n")
    built.edit(MODELS, "[id, name]", "[id, name, sex, zip]")
    done = built.run("build", "--select", "patients")
    assert done.success and done.statuses["ldiv_meets_policy_patients_"] == "pass", done.said
    document = yaml.safe_load((built.folder / MODELS).read_text())["models"][0]["config"]["meta"]["policy"]
    with built.database() as connection:
        ldiv_db.run(connection, document | {"source": "dev.admissions", "target": "dev.other"})
    rows = built.query("FROM dev.patients ORDER BY ALL")
    assert rows == built.query("FROM dev.other ORDER BY ALL")
    assert {"<40", "60+"} <= {age for age, *_ in rows}


@pytest.mark.slow
def test_every_target_has_a_release_of_its_own(built: Project) -> None:
    assert built.run("build", "--target", "prod").success
    assert tables(built, "prod") == tables(built, "dev")
    found = built.query("SELECT target FROM ldiv.run ORDER BY ALL")
    assert found == [("hospital.dev.patients",), ("hospital.prod.patients",)]


def test_a_build_of_what_is_unchanged_says_so_and_another_warns(built: Project, bytes_of: Any) -> None:
    released = bytes_of(built, "dev.patients")
    again = built.run("run", "--select", "patients")
    assert again.message("patients").startswith("unchanged: ")
    assert not any("published this source before" in line for line in again.said)
    assert bytes_of(built, "dev.patients") == released
    built.edit(MODELS, "{distinct: 3}, {frequency: 2}", "{distinct: 2}")
    later = built.run("run", "--select", "patients")
    assert later.success and not later.message("patients").startswith("unchanged")
    assert any("published the same rows under another policy" in line for line in later.said)


def snapshot_of(project: Project) -> list[tuple[Any, ...]]:
    """The releases, and the rows of them and of the ledger."""
    counted = ("dev.patients", "dev.patients_over_time", "ldiv.run", "ldiv.release")
    counts = [row for name in counted for row in project.query(f"SELECT count(*) FROM {name}")]
    return [tuple(project.query("FROM dev.patients ORDER BY ALL")), *counts]


COPY = """\
{{{{ config(materialized="anonymized", post_hook="{hook}", meta={{"policy": {{
    "quasi_identifiers": {{"age": {{"numeric": true}}, "sex": {{}}}}, "sensitive": ["disease"],
    "require": [{{"unique_distinct": 3}}], "algorithm": "bsgi"
}}}}) }}}}
select age, sex, disease from {{{{ ref("admissions") }}}}
"""


@pytest.mark.slow
def test_models_of_one_source_built_by_several_threads_are_one_release(
    project: Project, bytes_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would look before another has published, and two releases of the same people be compared."""
    monkeypatch.setattr(dbt_model, "_LEFT", 0.5)
    names = [f"copy_{number}" for number in range(3)]
    for name in names:
        project.write(f"models/{name}.sql", COPY.format(hook="select 1"))
    done = project.run("run", "--threads", "4", "--select", *names)
    assert done.success, done.said
    assert len({bytes_of(project, f"dev.{name}") for name in names}) == 1
    assert sum(done.message(name).startswith("unchanged: ") for name in names) == 2
    project.write(f"models/{names[0]}.sql", COPY.format(hook="select nothing"))
    done = project.run("run", "--threads", "4", "--select", *names)
    assert done.statuses == {names[0]: "error", names[1]: "success", names[2]: "success"}, "nobody waits for it"


@pytest.mark.slow
def test_a_failed_audit_leaves_the_file_as_it_was_byte_for_byte(
    built: Project, bytes_of: Callable[[Project, str], bytes], snapshot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with built.database() as connection:
        before = snapshot(connection)
    released, whole = bytes_of(built, "dev.patients"), digest(built)
    monkeypatch.setattr(Mondrian, "run", one_row_a_class)
    failed = built.run("build", "--exclude-resource-type", "seed", "--select", "patients+")
    assert not failed.success
    assert "the audit failed, nothing was published" in failed.message("patients")
    assert failed.statuses["diseases_by_age"] == "skipped"
    assert digest(built) == whole
    assert bytes_of(built, "dev.patients") == released
    with built.database() as connection:
        assert snapshot(connection) == before


def test_a_first_build_that_fails_leaves_no_table_and_no_row(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mondrian, "run", one_row_a_class)
    monkeypatch.setattr(Bsgi, "run", one_row_a_class)
    failed = project.run("build", "--threads", "4")
    assert failed.statuses["patients"] == failed.statuses["patients_over_time"] == "error"
    assert tables(project, "dev") == ["admissions"]
    assert project.query("SELECT (SELECT count(*) FROM ldiv.run) + (SELECT count(*) FROM ldiv.release)") == [(0,)]


def test_a_policy_that_cannot_be_met_says_why_and_names_no_value(built: Project) -> None:
    whole = digest(built)
    built.edit(MODELS, "{distinct: 3}, {frequency: 2}", "{distinct: 7}")
    failed = built.run("run", "--select", "patients+")
    said = failed.message("patients")
    assert "Traceback" not in said and failed.statuses["diseases_by_age"] == "skipped"
    (remedy,) = re.findall(r"a run accepts, the least costly first:\n +1\. require: \[(.*?)\] \(", said)
    assert not any(value in said for value in ("asthma", "bronchitis", "gastritis", "migraine", "diabetes"))
    assert digest(built) == whole
    built.edit(MODELS, "{distinct: 7}", remedy)
    assert built.run("run", "--select", "patients").success


def test_empty_makes_columns_and_publishes_nothing(project: Project) -> None:
    """What builds on the models has their columns, and the next build publishes where the empty tables are."""
    first = project.run("build", "--empty", "--exclude-resource-type", "seed")
    assert first.success, first.said
    assert first.message("patients") == "nothing published (--empty): a table without rows"
    assert tables(project, "dev") == ["admissions", "diseases_by_age", "patients", "patients_over_time"]
    assert project.query("SELECT count(*) FROM dev.patients, dev.patients_over_time") == [(0,)]
    assert not tables(project, "ldiv")
    described = "SELECT column_name FROM (DESCRIBE dev.{}) ORDER BY ALL"
    empty = [project.query(described.format(name)) for name in ("patients", "patients_over_time")]
    assert project.run("build", "--exclude-resource-type", "seed").success
    assert [project.query(described.format(name)) for name in ("patients", "patients_over_time")] == empty
    whole = snapshot_of(project)
    again = project.run("run", "--empty", "--select", "patients", "patients_over_time")
    assert again.message("patients_over_time") == "nothing published (--empty): the release stays"
    assert snapshot_of(project) == whole and whole[1:] == [(60,), (60,), (1,), (1,)]


def test_empty_holds_the_policy_against_the_columns(project: Project) -> None:
    project.edit("models/patients.sql", "zip, disease", "zip")
    failed = project.run("run", "--empty", "--select", "patients")
    assert "sensitive.disease: " in failed.message("patients") and tables(project, "dev") == ["admissions"]


@pytest.mark.slow
def test_what_fails_after_the_release_takes_it_back(built: Project, bytes_of: Any) -> None:
    released = bytes_of(built, "dev.patients")
    built.edit(MODELS, "materialized: anonymized\n      meta:\n        policy:\n          identifiers",
                 "materialized: anonymized\n      post_hook: select error('no')\n      meta:\n        policy:\n"
                 "          identifiers")  # fmt: skip
    assert built.run("run", "--select", "patients").statuses == {"patients": "error"}
    assert bytes_of(built, "dev.patients") == released and built.query(RUNS) == [(1,)]


@pytest.mark.slow
def test_a_source_that_fails_takes_nothing_with_it(built: Project) -> None:
    whole = digest(built)
    built.edit("models/patients.sql", "zip, disease", "zip, CAST(disease AS INTEGER) AS disease")
    failed = built.run("run", "--select", "patients")
    assert failed.statuses == {"patients": "error"} and "asthma" not in failed.message("patients")
    assert digest(built) == whole


@pytest.mark.slow
def test_many_models_at_once(project: Project) -> None:
    """None has a ledger yet, and all of them write it."""
    text = (project.folder / MODELS).read_text().partition("  - name: patients_over_time\n")[2]
    model = text.partition("    data_tests")[0].replace("key: id", "identifiers: [id]")
    names = [f"patients_{number}" for number in range(6)]
    project.write("models/copies.yml", "models:\n" + "".join(f"  - name: {name}\n{model}" for name in names))
    for name in names:
        shutil.copy(project.folder / "models/patients_over_time.sql", project.folder / f"models/{name}.sql")
    done = project.run("run", "--threads", "4", "--select", *names)
    assert done.success, done.said
    assert project.query("SELECT count(*), count(DISTINCT target) FROM ldiv.run") == [(6, 6)]


def test_releases_over_time_publish_nobody_anew(built: Project) -> None:
    first = dict(enumerate(sorted(built.query(OLD_CLASS))))
    seed = built.folder / "seeds/admissions.csv"
    rows = [f"{number},New {number},{20 + number % 9},F,10115,{disease}"
            for number, disease in enumerate(["asthma", "flu", "diabetes"] * 3, 61)]  # fmt: skip
    seed.write_text(seed.read_text() + "\n".join(rows) + "\n")
    again = built.run("build", "--full-refresh")  # the model says full_refresh: false
    assert again.message("patients_over_time") == "release 2: 69 rows, 9 for the first time"
    second = built.query(OLD_CLASS)
    assert sorted(row for row in second if row[0] <= len(first)) == list(first.values())
    assert built.query("SELECT count(*) FROM dev.patients_over_time") == [(69,)]
    assert built.query("SELECT count(DISTINCT key_hash), count(*) FROM ldiv.release_member") == [(69, 69)]


def test_a_series_is_not_begun_anew(built: Project) -> None:
    built.edit(MODELS, "      full_refresh: false\n", "")
    failed = built.run("run", "--full-refresh", "--select", "patients_over_time")
    assert "a series cannot be restarted" in failed.message("patients_over_time")
    assert built.query("SELECT count(*) FROM ldiv.release") == [(1,)]


@pytest.mark.slow
def test_a_series_fails_as_a_whole(built: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = digest(built)
    seed = built.folder / "seeds/admissions.csv"
    monkeypatch.setattr(dbt_model, "run", _fails_late(dbt_model.run))
    assert built.run("run", "--select", "patients_over_time").statuses == {"patients_over_time": "error"}
    assert digest(built) == whole and seed.exists()
    monkeypatch.undo()


def _fails_late(publish: Any) -> Any:
    """The same, which fails once all is written."""

    def call(*arguments: Any, **named: Any) -> Any:
        publish(*arguments, **named)
        raise ldiv_db.AuditError("late")

    return call


@pytest.mark.slow
def test_a_view_makes_room_only_for_a_release(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.edit(MODELS, "      materialized: anonymized\n      meta:\n        policy:\n          identifiers",
                 "      materialized: view\n      meta:\n        policy:\n          identifiers")  # fmt: skip
    assert project.run("build", "--exclude", "test_type:generic").success
    project.edit(MODELS, "materialized: view", "materialized: anonymized")
    with monkeypatch.context() as defect:
        defect.setattr(Mondrian, "run", one_row_a_class)
        assert not project.run("run", "--select", "patients").success
    assert project.query("SELECT count(name) FROM dev.patients") == [(60,)]  # the view is there
    assert project.run("run", "--select", "patients").success
    assert project.query("SELECT table_type FROM information_schema.tables WHERE table_name = 'patients'") == [
        ("BASE TABLE",)
    ]


def test_a_table_is_no_beginning_of_a_series(built: Project) -> None:
    built.edit(MODELS, "identifiers: [id, name]", "key: id\n          identifiers: [name]")
    failed = built.run("run", "--select", "patients")
    assert "published this source without a key" in failed.message("patients")
    assert built.query("SELECT count(*) FROM dev.patients") == [(60,)]


def test_a_policy_in_a_file_beside_the_model(project: Project) -> None:
    document = "identifiers: [id, name]\nquasi_identifiers: [age, sex, zip]\nsensitive: [disease]\nrequire: [{k: 5}]\n"
    project.write("models/patients.policy", document)
    text = (project.folder / MODELS).read_text()
    start, end = text.index("          identifiers"), text.index("    data_tests")
    project.write(MODELS, text[:start].rstrip().removesuffix("policy:") + "policy: patients.policy\n" + text[end:])
    done = project.run("build", "--select", "admissions", "patients")
    assert done.statuses["patients"] == "success", done.said
    assert "is in a file, which no test can read" in done.message("ldiv_meets_policy_patients_")
    project.write("models/patients.policy", document + "source: admissions\n")
    assert "source: is not set by the policy in dbt" in project.run("run", "--select", "patients").message("patients")
    (project.folder / "models/patients.policy").unlink()
    assert "policy: no file patients.policy in" in project.run("run", "--select", "patients").message("patients")


def test_a_model_without_a_policy(project: Project) -> None:
    project.edit(MODELS, "        policy:\n          identifiers", "        other:\n          identifiers")
    assert "the model has no policy" in project.run("run", "--select", "patients").message("patients")


def test_a_program_that_is_missing_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or is older than the package, which asks for a method that it does not have."""
    from dbt.adapters.base import BaseAdapter  # noqa: PLC0415

    monkeypatch.setattr(dbt_ldiv_db, "plugins", [])
    monkeypatch.delattr(BaseAdapter, "no_rows_anonymized", raising=False)
    failed = project.run("run", "--select", "patients")
    assert "ldiv_db is not installed where dbt runs, or is older than this package" in failed.message("patients")


def test_a_transaction_is_required(project: Project) -> None:
    project.edit("profiles.yml", "schema: dev, threads: 2", "schema: dev, threads: 2, disable_transactions: true")
    failed = project.run("run", "--select", "patients")
    assert "remove disable_transactions from the profile" in failed.message("patients")
    assert tables(project, "dev") == ["admissions"]


def test_an_adapter_that_swallows_rollbacks_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbt_model, "version", lambda name: "1.10.1")
    failed = project.run("run", "--select", "patients")
    said = "dbt-duckdb 1.10.1 cannot roll back a model that fails: install 1.11 or later"
    assert said in failed.message("patients") and tables(project, "dev") == ["admissions"]


def test_a_contract_holds_or_nothing_is_published(project: Project) -> None:
    project.edit("models/models.yml", "    config:\n      materialized: anonymized\n      meta:\n        policy:\n"
                 "          identifiers", "    columns: [{name: age, data_type: varchar}]\n    config:\n"
                 "      contract: {enforced: true}\n      materialized: anonymized\n      meta:\n        policy:\n"
                 "          identifiers")  # fmt: skip
    failed = project.run("run", "--select", "patients")
    assert "contract" in failed.message("patients") and tables(project, "dev") == ["admissions"]


@pytest.mark.slow
def test_a_build_says_where_people_have_several_rows(project: Project) -> None:
    """Where the policy names no individual: everybody has four of the rows."""
    sql = "select id, 'n' || id % 15 as patient, age, sex, zip, disease from {{ ref('admissions') }}"
    project.write("models/patients.sql", sql)
    project.edit(MODELS, "identifiers: [id, name]", "identifiers: [id, patient]")
    done = project.run("run", "--select", "patients")
    assert done.success, done.said
    said = [line for line in done.said if "requirements count rows" in line]
    assert said and all("60 rows belong to 15 people if patient identifies people" in line for line in said)
    assert "classes have two rows of one person" in said[0]
