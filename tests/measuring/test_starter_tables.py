"""Policies of several tables that profiles write: links, rows that belong to nobody, and what resolves."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest
from strategies import search, seeds, some

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.measuring.links import BY_VALUES, DECLARED, Link, ProfiledTable, find_links
from ldiv_db.measuring.people_of_tables import tree_of
from ldiv_db.measuring.profile import ProfileRequest, profile_table
from ldiv_db.measuring.starter_tables import Started, start_policy
from tests.running.schemas import CHOICES, drawn, fill

CLINIC = """
CREATE TABLE patients AS
SELECT 'P' || i AS patient_nr, 1930 + i * 7 % 60 AS born, 'ab'[1 + i % 2] AS sex FROM range(120) AS r(i);
CREATE TABLE stays AS
SELECT 500 + i AS stay_id, 'P' || i * 37 % 120 AS patient_nr,
    DATE '2024-01-01' + CAST(i * 11 % 300 AS INTEGER) AS admitted, 'd' || i % 9 AS diagnosis FROM range(180) AS r(i);
CREATE TABLE labs AS
SELECT 9000 + i AS lab_id, 500 + i * 13 % 180 AS stay_id, 'f' || i % 11 AS finding FROM range(200) AS r(i);
"""
SECRET = {"stays": ["diagnosis"], "labs": ["finding"], "orders": ["value"]}


@pytest.fixture
def clinic() -> Any:
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute(CLINIC)
        yield con


def profiled(con: Any, names: Any, secret: Any = None) -> tuple[Engine, list[ProfiledTable]]:
    engine, found = Engine(con), []
    for name in names:
        relation, own = Relation.parse(name), (SECRET if secret is None else secret).get(name, [])
        found.append(
            ProfiledTable.of(
                engine, name, name, relation, profile_table(engine, relation, ProfileRequest(sensitive=own))
            )
        )
    return engine, found


def started(con: Any, *names: str, secret: Any = None) -> Started:
    engine, tables = profiled(con, names or ("patients", "stays", "labs"), secret)
    return start_policy(engine, tables, find_links(engine, tables))


def links_of(con: Any, *names: str) -> dict[str, str]:
    found = started(con, *names)
    assert found.tree is not None, found.reason
    return {link.child[0]: str(link) for link in found.tree.links.values()}


def flat(policy: dict[str, Any]) -> dict[str, Any]:
    """The policy without its level files, which are not written."""
    for table in policy["tables"].values():
        for one in table.get("quasi_identifiers", {}).values():
            if "file" in one.get("taxonomy", ()):
                one["taxonomy"] = {"flat": True}
    return policy


def planned(con: Any, found: Started) -> Any:
    assert found.starter is not None, found.reason
    return ldiv_db.plan(con, flat(found.starter.policy) | {"algorithm": "topdown"})


@pytest.mark.slow
def test_links_lead_from_values_by_stays_to_patients(clinic: Any) -> None:
    found = started(clinic)
    assert found.tree is not None and found.starter is not None
    assert found.tree.people == ("patients", "patient_nr")
    policy = found.starter.policy
    assert policy["tables"]["stays"]["person"] == "patient_nr" and policy["tables"]["stays"]["key"] == "stay_id"
    assert policy["tables"]["stays"]["order"] == "admitted"
    assert policy["tables"]["labs"]["parent"] == {"stay_id": "stays"} and "order" not in policy["tables"]["labs"]
    assert {table["source"] for table in policy["tables"].values()} == {"patients", "stays", "labs"}
    assert planned(clinic, found).rows["patients"] == (120, 120)
    assert {one.name for one in ldiv_db.run(clinic, policy).tables} == {"patients", "stays", "labs"}


def test_rows_of_people_are_counted(clinic: Any) -> None:
    found = started(clinic).people_rows
    stays = Counter(dict(clinic.execute("SELECT patient_nr, count(*) FROM stays GROUP BY 1").fetchall()).values())
    stays[0] = 120 - sum(stays.values())
    assert {one.rows: one.people for one in found["stays"] if not one.or_more} == {
        rows: people for rows, people in stays.items() if people >= 5
    }
    assert {sum(one.people for one in own) for own in found.values()} == {120}
    assert all(one.people >= 5 for own in found.values() for one in own)


def test_few_people_of_many_rows_are_counted_together(clinic: Any) -> None:
    clinic.execute("INSERT INTO stays SELECT 5000 + i, 'P1', DATE '2024-03-01', 'd1' FROM range(40) AS r(i)")
    clinic.execute("INSERT INTO stays SELECT 6000 + i, 'P' || i // 30, DATE '2024-03-01', 'd2' FROM range(180) AS r(i)")
    *_, last = started(clinic).people_rows["stays"]
    assert last.or_more and last.people == 6, "one of whom has more than any other"


def test_no_link_is_said_with_a_way_out(clinic: Any) -> None:
    clinic.execute("CREATE TABLE prices AS SELECT 'x' || i AS item, i AS price FROM range(90) AS r(i)")
    found = started(clinic, "patients", "prices")
    assert found.starter is None and "no link between patients, prices" in found.reason and "view" in found.reason


def test_values_without_names_are_a_link_if_they_leave_no_doubt(clinic: Any) -> None:
    clinic.execute("ALTER TABLE stays RENAME patient_nr TO whose")
    found = started(clinic, "patients", "stays").tree
    assert found is not None and found.links["stays"].why == BY_VALUES
    assert str(found.links["stays"]) == "stays.whose → patients.patient_nr"
    clinic.execute("CREATE TABLE numbers AS SELECT i AS id, i % 60 AS age FROM range(120) AS r(i)")
    clinic.execute("CREATE TABLE others AS SELECT i AS id, i % 50 AS size, 'x' AS what FROM range(120) AS r(i)")
    assert started(clinic, "numbers", "others").tree is None, "numbers from 0 are no keys of each other"


def test_a_foreign_key_is_a_link_whatever_it_is_called() -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE people (nr INTEGER PRIMARY KEY, age INTEGER)")
    con.execute("CREATE TABLE visits (x INTEGER REFERENCES people (nr), day INTEGER)")
    con.execute("INSERT INTO people SELECT i, i % 40 FROM range(30) AS r(i)")
    con.execute("INSERT INTO visits SELECT i % 20, i FROM range(60) AS r(i)")
    found = started(con, "people", "visits").tree
    assert found is not None and found.links["visits"].why == DECLARED


@pytest.mark.slow
def test_of_two_candidates_the_one_that_loses_fewer_rows_is_taken_and_the_other_told(clinic: Any) -> None:
    clinic.execute("ALTER TABLE labs ADD COLUMN patient_nr VARCHAR")
    clinic.execute("UPDATE labs SET patient_nr = (SELECT s.patient_nr FROM stays s WHERE s.stay_id = labs.stay_id)")
    found = started(clinic)
    assert links_of(clinic)["labs"] == "labs.stay_id → stays.stay_id", "the longer way joins more"
    assert any(note.startswith("another link fits: labs.patient_nr → patients.patient_nr") for note in found.notes)
    assert found.starter is not None and "patient_nr" in found.starter.policy["tables"]["labs"]["identifiers"]
    planned(clinic, found)
    clinic.execute("UPDATE labs SET stay_id = NULL WHERE lab_id % 3 = 0")
    assert links_of(clinic)["labs"] == "labs.patient_nr → patients.patient_nr"
    planned(clinic, started(clinic))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"), some(map(pytest.param, ["INTEGER", "VARCHAR", "DOUBLE"], ["VARCHAR", "INTEGER", "BIGINT"]))
)
def test_keys_of_another_type_are_read_as_the_parent_has_them(clinic: Any, ours: str, theirs: str) -> None:
    for table, kind in (("stays", ours), ("patients", theirs)):
        clinic.execute(f"ALTER TABLE {table} ALTER patient_nr TYPE {kind} USING CAST(substr(patient_nr, 2) AS {kind})")
    found = started(clinic)
    if "VARCHAR" in (ours, theirs):
        assert any(f"is read as {theirs}, as patients has it" in note for note in found.notes)
    assert planned(clinic, found).rows["stays"][0] == 180


@pytest.mark.slow
def test_people_who_are_missing_are_said_with_counts_and_left_out(clinic: Any) -> None:
    clinic.execute("DELETE FROM patients WHERE patient_nr IN ('P1', 'P2', 'P3')")
    clinic.execute("UPDATE stays SET patient_nr = NULL WHERE stay_id IN (501, 502)")
    found = started(clinic)
    stays = clinic.execute("SELECT count(*) FROM stays WHERE patient_nr IN ('P1', 'P2', 'P3')").fetchall()[0][0]
    (missing,) = [note for note in found.notes if "that patients has not" in note]
    assert (
        missing.startswith(f"{stays} rows of stays have 3 values of patient_nr") and "add these to patients" in missing
    )
    assert (
        "2 rows of stays have no patient_nr, and belong to nobody: `orphans: leave_out` leaves them out" in found.notes
    )
    assert planned(clinic, found).rows["stays"][0] == 178 - stays, "and so do their values, which belong to nobody then"
    ldiv_db.run(clinic, found.starter.policy | {"seed": 1})


@pytest.mark.slow
def test_unknown_values_and_columns_in_the_way_are_read_another_way(clinic: Any) -> None:
    clinic.execute("UPDATE stays SET diagnosis = NULL WHERE stay_id % 20 = 0")
    clinic.execute("ALTER TABLE stays ADD COLUMN position INTEGER; UPDATE stays SET position = stay_id % 5")
    found = started(clinic)
    assert any("9 rows of stays have no diagnosis, and are 'not known' in the query" in note for note in found.notes)
    planned(clinic, found)
    ldiv_db.run(clinic, found.starter.policy | {"seed": 1})
    values = {value for (value,) in clinic.execute("SELECT DISTINCT diagnosis FROM published.stays").fetchall()}
    assert "not known" in values and None not in values


def test_tables_without_one_row_a_person_are_of_the_same_people() -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute(
        "CREATE TABLE stays AS SELECT i % 70 AS patient_id, i % 30 AS age, 'd' || i % 7 AS diagnosis"
        " FROM range(150) AS r(i)"
    )
    con.execute(
        "CREATE TABLE orders AS SELECT 10 + i % 60 AS patient_id, i AS day, 'v' || i % 8 AS value FROM range(150) r(i)"
    )
    found = started(con, "stays", "orders")
    assert found.starter is not None and not any("has not" in note for note in found.notes)
    assert {table["person"] for table in found.starter.policy["tables"].values()} == {"patient_id"}


@pytest.mark.slow
def test_people_are_those_of_a_column_where_the_key_is_of_their_stays(clinic: Any) -> None:
    """Else classes would count stays, all of which may be one patient's."""
    found = started(clinic, "stays", "labs")
    assert found.tree is not None and found.tree.people == ("stays", "patient_nr") and found.starter is not None
    stays = found.starter.policy["tables"]["stays"]
    assert (stays["person"], stays["key"], stays["order"]) == ("patient_nr", "stay_id", "admitted")
    assert not any("a person of its own" in note for note in found.notes)
    assert planned(clinic, found).rows["stays"][0] == 180
    clinic.execute("ALTER TABLE stays DROP COLUMN patient_nr")
    found = started(clinic, "stays", "labs")
    assert any(note.startswith("each row of stays is taken for a person of its own") for note in found.notes)


@pytest.mark.parametrize("many", some(["employees", "persons", "users", "students", "people", "members", "clientes"]))
def test_people_are_known_by_the_plural_and_lists_of_places_are_none(many: str) -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE countries AS SELECT i AS id, 'country ' || i AS name FROM range(1, 21) AS r(i)")
    con.execute(f"CREATE TABLE {many} AS SELECT i AS id, 1 + i % 20 AS country_id, i % 40 AS age FROM range(300) r(i)")
    found = started(con, "countries", many).tree
    assert found is not None and (found.people, dict(found.links)) == ((many, "id"), {})
    con.execute("CREATE TABLE t AS SELECT i AS id, 1 + i % 20 AS country_id, i % 9 AS size FROM range(3000) AS r(i)")
    found = started(con, "countries", "t")
    assert found.tree is None and "lead" in found.reason and "lists" in found.reason


def test_a_row_for_each_person_leads_to_people_and_so_do_rows_of_that_row() -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, age INTEGER)")
    con.execute("CREATE TABLE profiles (id INTEGER PRIMARY KEY REFERENCES users (id), city INTEGER)")
    con.execute("CREATE TABLE posts (nr INTEGER, owner INTEGER REFERENCES profiles (id), topic VARCHAR)")
    for rows in ("users SELECT i, i % 40", "profiles SELECT i, i % 7", "posts SELECT i, i * 3 % 90, 't' || i % 5"):
        con.execute(f"INSERT INTO {rows} FROM range(90) AS r(i)")
    found = started(con, "posts", "profiles", "users").tree
    assert found is not None and {link.why for link in found.links.values()} == {DECLARED}
    assert {str(link) for link in found.links.values()} == {"profiles.id → users.id", "posts.owner → users.id"}


def test_a_column_that_names_rows_of_one_table_names_none_of_another(clinic: Any) -> None:
    """Numbers from 1 are among any others, and an owner by name beats what the values allow."""
    clinic.execute("CREATE TABLE beds AS SELECT i AS bed_id, i % 4 AS floor FROM range(1, 91) AS r(i)")
    clinic.execute("CREATE TABLE meals AS SELECT i AS meal_id, 1 + i % 90 AS bed_id, 'x' AS what FROM range(180) r(i)")
    clinic.execute("UPDATE stays SET stay_id = stay_id - 499; UPDATE labs SET stay_id = stay_id - 499")
    assert set(links_of(clinic, "patients", "stays", "labs", "meals")) == {"stays", "labs"}


def test_a_way_to_other_people_than_a_column_says_is_not_taken(clinic: Any) -> None:
    clinic.execute("ALTER TABLE labs ADD COLUMN patient_nr VARCHAR")
    clinic.execute("UPDATE labs SET patient_nr = 'P' || lab_id % 120")
    assert links_of(clinic)["labs"] == "labs.patient_nr → patients.patient_nr"


def test_every_quasi_identifier_has_a_level_file_of_its_own(clinic: Any) -> None:
    clinic.execute("ALTER TABLE stays ADD COLUMN sex VARCHAR; UPDATE stays SET sex = 'xy'[1 + stay_id % 2]")
    found = started(clinic).starter
    assert found is not None and {"patients_sex.csv", "stays_sex.csv"} <= set(found.files)
    assert found.text.count("taxonomy: {file: patients_sex.csv}") == 1


@search(1, seed=seeds)
def test_policies_of_random_schemas_resolve(seed: int) -> None:
    """Messy ones: people are missing, references lost, values unknown, types other. A plan may lack people alone."""
    rng = random.Random(seed)
    con, names = duckdb.connect(config={"threads": 1}), rng.choice([choice for choice in CHOICES if len(choice) == 2])
    fill(con, names, drawn(rng, names, rng.randrange(20, 50), values="abcdefghijklm"))
    messy = {
        "patients": ["DELETE FROM patients WHERE no % 9 = 0", "UPDATE patients SET age = NULL WHERE no % 4 = 0",
                     "UPDATE patients SET who = NULL WHERE no % 11 = 0"],
        "stays": ["UPDATE stays SET who = NULL WHERE no % 7 = 0", "ALTER TABLE stays ALTER who TYPE VARCHAR",
                  "UPDATE stays SET value = NULL WHERE no % 5 = 0", "ALTER TABLE stays RENAME day TO position"],
        "labs": ["UPDATE labs SET stay = 'lost' || no WHERE no % 6 = 0",
                 "UPDATE labs SET stay = NULL WHERE no % 10 = 0"],
        "orders": ["ALTER TABLE orders RENAME buyer TO who", "UPDATE orders SET age = NULL"],
        "scans": ["UPDATE scans SET stay = NULL WHERE no % 10 = 0"],
        "visits": ["UPDATE visits SET who = NULL WHERE no % 7 = 0", "ALTER TABLE visits ALTER who TYPE VARCHAR"],
    }  # fmt: skip
    for change in (change for name in names for change in messy[name] if rng.random() < 0.4):
        con.execute(change)
    secret = {"stays": ["value"], "labs": ["value"], "orders": ["value"]}
    found = started(con, *names, secret=secret)
    if found.starter is None:
        assert found.reason
        return
    try:
        planned(con, found)
    except InfeasibleError as error:
        assert "people" in str(error)
    except PolicyError as error:
        pytest.fail(f"{error}\n{found.starter.text}")


def test_circles_and_chains_are_a_tree(clinic: Any) -> None:
    _, tables = profiled(clinic, ("patients", "stays", "labs"))
    a, b, c = (("patients", "patient_nr"), ("stays", "stay_id"), ("labs", "lab_id"))
    circle = [Link(a, b, DECLARED, 0, 0, 0), Link(b, c, DECLARED, 0, 0, 0), Link(c, a, DECLARED, 0, 0, 0)]
    found = tree_of(
        tables,
        [replace_child(circle[0], "born"), replace_child(circle[1], "diagnosis"), replace_child(circle[2], "stay_id")],
    )
    assert found is not None and found.people == a and set(found.links) == {"labs", "stays"}


def replace_child(link: Link, column: str) -> Link:
    return Link((link.child[0], column), link.parent, link.why, link.unknown, link.lacking, link.strangers)
