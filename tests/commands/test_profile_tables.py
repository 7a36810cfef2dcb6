"""`ldiv profile` of several tables: what is printed of their links and people, and the policy that it writes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import duckdb
import pytest
import yaml
from refusals import codes_told

from tests.beds import Bed, Called
from tests.running.schemas import drawn, fill

NAMES = ("patients", "stays", "labs")
KINDS = {"patients": "people", "stays": "of people", "labs": "of people"}


@pytest.fixture(scope="module")
def first_clinic(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    bed = Bed(tmp_path_factory.mktemp("clinic"))
    with duckdb.connect(str(bed.database)) as con:
        fill(con, NAMES, drawn(random.Random(4), NAMES, 24, 2, values="abcdefghijkl"))
        con.execute("UPDATE labs SET stay = NULL WHERE no % 10 = 0")
        con.execute("ALTER TABLE stays ADD COLUMN ward VARCHAR; UPDATE stays SET ward = 'ward ' || no % 3")
        con.execute("CREATE TABLE scans AS FROM labs LIMIT 0")
    return bed


@pytest.fixture
def clinic(first_clinic: Bed, tmp_path: Path) -> Bed:
    return first_clinic.copied(tmp_path)


@pytest.mark.slow
def test_the_policy_that_is_written_is_planned_and_run_as_it_is(clinic: Bed) -> None:
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
    assert yaml.safe_load(written.read_text())["tables"]["labs"]["orphans"] == "leave_out"
    assert clinic.call("plan", clinic.database, written).code == 0
    ran = clinic.call("run", clinic.database, written, "--json")
    assert ran.code == 0, ran.err
    assert {one["table"] for one in json.loads(ran.out)["tables"]} == set(NAMES)


def test_tables_their_links_and_the_policy_are_told_and_no_value(first_clinic: Bed) -> None:
    """A table without rows is left out."""
    words = ("profile", first_clinic.database, *NAMES, "scans", "--sensitive", "stays.value", "--qi", "patients.age")
    called = first_clinic.call(*words, "--json")
    found = json.loads(called.out)
    assert found["individual"] == "patients.who" and [one["name"] for one in found["tables"]] == list(NAMES)
    labs = found["tables"][2]
    assert labs["link"]["parent"] == "stays" and labs["link"]["rows_lost"] > 0
    assert sum(one["people"] for one in labs["people_rows"]) == 24
    assert list(found["policy"]["tables"]["patients"]["quasi_identifiers"]) == ["age"]
    assert "quasi_identifiers" not in found["policy"]["tables"]["stays"]
    assert "ward 1" not in called.out


def test_tables_without_rows_are_left_out_and_told(first_clinic: Bed) -> None:
    called = first_clinic.call("profile", first_clinic.database, "patients", "scans")
    assert called.code == 0 and "scans is empty, and is left out" in called.out


def test_one_row_is_known_where_people_have_too_unlike_numbers_of_rows(tmp_path: Path) -> None:
    """Nobody has as many stays as another, so that all would publish few of them; four people are no five."""
    bed = Bed(tmp_path)
    with duckdb.connect(str(bed.database)) as con:
        con.execute("CREATE TABLE patients AS SELECT i AS patient_id, i % 3 AS ward FROM range(4) AS r(i)")
        con.execute("CREATE TABLE stays AS SELECT p AS patient_id, j AS day, CASE p WHEN 0 THEN 'd9' ELSE 'd' || j % 2"
                    " END AS dx FROM range(4) AS r(p), range(108) AS s(j) WHERE j < 4 * power(3, p)")  # fmt: skip
    written = tmp_path / "schema.yml"
    called = bed.call("profile", bed.database, "--sensitive", "dx", "--policy", written, "--json")
    assert called.code == 0, called.err
    policy, (why, *_) = yaml.safe_load(written.read_text()), json.loads(called.out)["notes"][-2:]
    assert policy["known"] == 1 and not {"order", "rows"} & {*policy["tables"]["stays"]}
    assert "one row of another" in written.read_text() and "the policy says `known: 1`" in why
    (*_, bound, people) = policy["require"]
    assert bound["alpha_k"]["k"] == people["k"] < 4
    assert bed.call("plan", bed.database, written).code == 0


REFUSED = [
    ("sensitive", ("--sensitive", "value")),
    ("sensitive", ("--sensitive", "gone")),
    ("qi", ("--qi", "labs.gone")),
    ("population_size", ("--population-size", "1000")),
]


def test_what_is_of_no_table_or_of_several_is_refused_by_its_code(first_clinic: Bed) -> None:
    about = ("profile", first_clinic.database, "stays", "labs")
    assert [(" ".join(codes_told(first_clinic.fails(2, *about, *words))), words) for _, words in REFUSED] == REFUSED


@pytest.mark.slow
def test_of_files_without_a_database_files_are_published(clinic: Bed) -> None:
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


def test_without_a_link_no_policy_is_written(first_clinic: Bed) -> None:
    words = ("labs", "patients", "--policy", first_clinic.folder / "schema.yml")
    assert "no link between labs, patients" in first_clinic.fails(1, "profile", first_clinic.database, *words)


def tables_of(called: Called) -> dict[str, str]:
    """The tables that were profiled, each with whose rows it has."""
    assert called.code == 0, called.err
    return {table["name"]: table["kind"] for table in json.loads(called.out)["tables"]}


def test_all_tables_are_those_of_a_database_or_a_schema(clinic: Bed) -> None:
    """What a run published is none of them, nor is a view beside tables, or a table of another schema."""
    with duckdb.connect(str(clinic.database)) as con:
        con.execute("DROP TABLE scans; CREATE VIEW seen AS FROM stays")
        con.execute("CREATE SCHEMA other; CREATE TABLE other.lone AS SELECT 1 AS a")
    assert tables_of(clinic.call("profile", clinic.database, "main", "--json")) == KINDS
    asked = {"source": "patients", "target": "shown", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": []}
    asked |= {"identifiers": ["no", "who"], "require": [{"k": 2}], "algorithm": "topdown"}
    written = clinic.write("alone.yml", yaml.safe_dump(asked))
    assert clinic.call("run", clinic.database, written).code == 0
    with duckdb.connect(str(clinic.database)) as con:
        con.execute("DROP TABLE other.lone")
    assert tables_of(clinic.call("profile", clinic.database, "--json")) == KINDS


def test_all_tables_are_the_files_of_a_folder(clinic: Bed) -> None:
    (clinic.folder / "files").mkdir()
    with duckdb.connect(str(clinic.database)) as con:
        for name in NAMES:
            con.execute(f"COPY {name} TO '{clinic.folder / 'files' / name}.parquet'")
    assert tables_of(clinic.call("profile", clinic.folder / "files", "--json")) == KINDS
