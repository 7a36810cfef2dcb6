"""`ldiv profile` of several tables: what is printed of their links and people, and the policy that it writes."""

from __future__ import annotations

import json
import random
from typing import Any

import duckdb
import pytest
import yaml

from tests.running.schemas import drawn, fill

NAMES = ("patients", "stays", "labs")


@pytest.fixture
def clinic(bed: Any) -> Any:
    bed.sql("DROP TABLE patients")
    with duckdb.connect(str(bed.database)) as con:
        fill(con, NAMES, drawn(random.Random(4), NAMES, 24, values="abcdefghijkl"))
        con.execute("UPDATE labs SET stay = NULL WHERE no % 10 = 0")
        con.execute("ALTER TABLE stays ADD COLUMN ward VARCHAR; UPDATE stays SET ward = 'ward ' || no % 3")
    return bed


@pytest.mark.slow
def test_the_policy_that_is_written_is_planned_and_run_as_it_is(clinic: Any) -> None:
    words = ("--sensitive", "stays.value,labs.value", "--policy", clinic.folder / "schema.yml")
    called = clinic.call("profile", clinic.database, *NAMES, *words)
    assert called.code == 0, called.err
    for text in (
        "links to patients.who",
        "labs.stay → stays.stay",
        "rows of a person",
        "`ldiv plan` accepts the policy",
    ):
        assert text in called.out
    assert "have no stay, and belong to nobody" in called.out
    written = clinic.folder / "schema.yml"
    assert f"written: {written}" in called.out and (clinic.folder / "stays_ward.csv").exists()
    assert "SELECT * FROM" in yaml.safe_load(written.read_text())["tables"]["labs"]["source"]["query"]
    assert clinic.call("plan", clinic.database, written).code == 0
    ran = clinic.call("run", clinic.database, written, "--json")
    assert ran.code == 0, ran.err
    assert {one["table"] for one in json.loads(ran.out)["tables"]} == set(NAMES)


def test_json_has_tables_links_and_the_policy_and_no_value(clinic: Any) -> None:
    called = clinic.call(
        "profile", clinic.database, *NAMES, "--sensitive", "stays.value", "--qi", "patients.age", "--json"
    )
    found = json.loads(called.out)
    assert found["individual"] == "patients.who" and [one["name"] for one in found["tables"]] == list(NAMES)
    labs = found["tables"][2]
    assert labs["link"]["parent"] == "stays" and labs["link"]["rows_lost"] > 0
    assert sum(one["people"] for one in labs["people_rows"]) == 24
    assert list(found["policy"]["tables"]["patients"]["quasi_identifiers"]) == ["age"]
    assert "quasi_identifiers" not in found["policy"]["tables"]["stays"]
    assert "ward 1" not in called.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sensitive", "value"), "sensitive: stays, labs have a column value (stays.value)"),
        (("--sensitive", "gone"), "sensitive: no table has a column 'gone'"),
        (("--qi", "labs.gone"), "qi: no table has a column 'labs.gone'"),
        (("--population-size", "1000"), "population_size: is of people who have one row each"),
    ],
)
def test_what_is_of_no_table_or_of_several_is_refused(clinic: Any, words: tuple[str, ...], message: str) -> None:
    assert message in clinic.fails(2, "profile", clinic.database, *NAMES, *words)


def test_tables_without_rows_are_left_out_and_told(clinic: Any) -> None:
    clinic.sql("CREATE TABLE scans AS FROM labs LIMIT 0")
    called = clinic.call("profile", clinic.database, *NAMES, "scans", "--sensitive", "stays.value")
    assert (
        called.code == 0 and "scans is empty, and is left out" in called.out and "links to patients.who" in called.out
    )
    called = clinic.call("profile", clinic.database, "patients", "scans")
    assert called.code == 0 and "scans is empty, and is left out" in called.out


@pytest.mark.slow
def test_of_files_without_a_database_files_are_published(clinic: Any) -> None:
    """Keys of unlike types are held against one another, which the reader of a CSV file is not asked to read."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE p AS SELECT 'u' || i AS uuid, i AS patient_id, i % 40 AS age FROM range(60) AS r(i)")
        con.execute(
            "CREATE TABLE s AS SELECT i AS stay_id, i % 60 AS patient_id, 'd' || i % 7 AS dx FROM range(90) r(i)"
        )
        for table, file in (("p", "patients.csv"), ("s", "stays.csv")):
            con.execute(f"COPY {table} TO '{clinic.folder / file}'")
    files, policy = [clinic.folder / "patients.csv", clinic.folder / "stays.csv"], clinic.folder / "files.yml"
    called = clinic.call("profile", ":memory:", *files, "--sensitive", "dx", "--policy", policy)
    assert called.code == 0, called.err
    assert "stays.patient_id → patients.patient_id" in called.out and "names and values" in called.out
    written = yaml.safe_load(policy.read_text())["tables"]
    assert [one["target"] for one in written.values()] == ["release/patients.parquet", "release/stays.parquet"]
    policy.write_text(yaml.safe_dump(yaml.safe_load(policy.read_text()) | {"algorithm": "topdown"}))
    assert clinic.call("run", ":memory:", policy).code == 0
    assert {file.name for file in (clinic.folder / "release").iterdir()} == {"patients.parquet", "stays.parquet"}
    written["stays"]["target"] = "published.stays"
    policy.write_text(yaml.safe_dump({"individual": "patient_id", "tables": written, "require": [{"k": 2}]}))
    assert "gone when the command ends" in clinic.fails(2, "run", ":memory:", policy)


def test_without_a_link_no_policy_is_written(clinic: Any) -> None:
    words = ("--policy", clinic.folder / "schema.yml")
    assert "no link between labs, patients" in clinic.fails(1, "profile", clinic.database, "labs", "patients", *words)
    assert not (clinic.folder / "schema.yml").exists()
    called = clinic.call("profile", clinic.database, "labs", "patients")
    assert called.code == 0 and "note: no link between labs, patients" in called.out
