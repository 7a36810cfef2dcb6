"""Releases of several tables: links that are checked, keys that are numbers, joins, and what people publish."""

from __future__ import annotations

import random
import re
import sqlite3
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError
from ldiv_db.database import migrate
from ldiv_db.database.context import working_engine
from ldiv_db.taxonomies.readers import read_taxonomy
from ldiv_db.taxonomies.taxonomy import store
from tests.running.schemas import drawn, fill, policy_of, published, target

NAMES = ("patients", "stays", "labs")


def clinic(people: int = 24, seed: int = 3, names: tuple[str, ...] = NAMES) -> tuple[Any, Any]:
    con = duckdb.connect()
    rows = drawn(random.Random(seed), names, people, values="abcdefghijkl")
    fill(con, names, rows)
    return con, rows


def refused(con: Any, **changes: Any) -> str:
    with pytest.raises(PolicyError) as error:
        ldiv_db.run(con, policy_of(NAMES, **changes))
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE stays SET stay = NULL WHERE no = (SELECT min(no) FROM stays)", r"stays\.key: stay is NULL in 1 row"),
        ("UPDATE stays SET stay = 's'", r"stays\.key: \d+ rows share their stay with another"),
        ("UPDATE labs SET stay = NULL", r"labs\.parent: stay is NULL in \d+ rows, which belong to nobody"),
        ("INSERT INTO labs VALUES (1, 'x', 'a'), (2, 'x', 'a'), (3, 'y', 'a')", "3 rows have 2 values of stay"),
        ("UPDATE patients SET who = NULL WHERE who = 3", r"patients\.person: who is NULL in 1 row, which belong to"),
        ("DELETE FROM patients WHERE who < 5", r"people are not in patients, who have \d+ rows"),
        ("ALTER TABLE patients ALTER who TYPE VARCHAR", r"who is INTEGER, and who of patients is VARCHAR"),
        ("ALTER TABLE patients RENAME who TO whom", r"patients\.person: the source has no column who"),
        ("ALTER TABLE labs RENAME stay TO visit", r"labs\.parent: the source has no column stay"),
        ("ALTER TABLE stays RENAME day TO date", r"stays\.order: the source has no column day"),
        ("ALTER TABLE labs ADD COLUMN more INT", r"tables\.labs\.more: is a column of the source that the policy does"),
    ],
)  # fmt: skip
def test_links_are_checked_before_any_work(change: str, message: str) -> None:
    con, _ = clinic()
    con.execute(change)
    found = refused(con)
    assert re.search(message, found), found
    assert all(line.endswith(")") for line in found.splitlines()), "a way out is missing"


def test_several_links_are_reported_at_once() -> None:
    con, _ = clinic()
    con.execute("INSERT INTO labs VALUES (1, 'x', 'a'); UPDATE patients SET who = NULL WHERE who = 3")
    assert len(refused(con).splitlines()) == 2


def test_people_without_an_order_have_one_row_each() -> None:
    con, _ = clinic()
    policy = policy_of(NAMES)
    del policy["tables"]["stays"]["order"]
    with pytest.raises(PolicyError, match=r"tables\.stays\.order: is required"):
        ldiv_db.run(con, policy)


def test_a_key_that_nobody_joins_by_is_left_out() -> None:
    con, _ = clinic(names=("patients", "stays"))
    ldiv_db.run(con, policy_of(("patients", "stays")))
    assert "stay" not in {name for name, *_ in con.execute("DESCRIBE published.stays").fetchall()}


def test_a_public_table_is_published_as_it_is() -> None:
    con, _ = clinic()
    con.execute(
        "CREATE TABLE wards (ward INT, beds INT, note VARCHAR); INSERT INTO wards VALUES (1, 20, 'x'), (2, 7, 'y')"
    )
    policy = policy_of(NAMES)
    policy["tables"]["wards"] = {"source": "wards", "public": True, "keep": ["ward", "beds"], "target": target("wards")}
    with pytest.raises(PolicyError, match=r"tables\.wards\.note: is a column of the source"):
        ldiv_db.run(con, policy)
    policy["tables"]["wards"]["identifiers"] = ["note"]
    ldiv_db.run(con, policy)
    assert con.execute("SELECT * FROM published.wards ORDER BY ward").fetchall() == [(1, 20), (2, 7)]


def test_a_target_elsewhere_is_refused_without_the_ways_of_one_table() -> None:
    con, _ = clinic()
    con.execute("ATTACH ':memory:' AS other")
    policy = policy_of(NAMES)
    policy["tables"]["labs"]["target"] = "other.main.labs"
    with pytest.raises(PolicyError, match=r"one transaction writes one \(name one of the database that is opened\)"):
        ldiv_db.run(con, policy)


@pytest.mark.slow
def test_the_ledger_has_one_entry_and_knows_all_sources() -> None:
    con, _ = clinic()
    policy = policy_of(NAMES)
    del policy["over_time"], policy["seed"]
    first, shown = ldiv_db.run(con, policy), published(con, NAMES)
    again = ldiv_db.run(con, policy)
    assert again.earlier.unchanged == first.run_id and published(con, NAMES) == shown
    (sources,) = {source for (source,) in con.execute("SELECT source FROM ldiv.run").fetchall()}
    assert sources == "patients & stays & labs"
    con.execute("UPDATE stays SET age = age + 1")
    changed = refused(con, over_time=None)
    assert "over_time: run" in changed and "published this source, and its rows have changed" in changed
    assert "(set over_time: independent" in changed and "key: " not in changed
    single = {
        **{"source": "stays", "target": "one", "quasi_identifiers": ["age"], "sensitive": ["value"]},
        **{"identifiers": ["no", "who", "stay", "day"], "require": [{"k": 4}]},
    }
    with pytest.raises(PolicyError, match="published this source"):
        ldiv_db.run(con, single)


def test_what_nobody_can_meet_is_refused_with_its_reasons() -> None:
    con, _ = clinic(people=5)
    with pytest.raises(InfeasibleError, match="people"):
        ldiv_db.run(con, policy_of(NAMES, require=[{"frequency": 6}]))


def test_a_chain_of_tables_joins_from_end_to_end() -> None:
    """Rows of rows of rows, each in its order where it has one, with quasi-identifiers of their own."""
    con, _ = clinic(people=30, seed=4)
    con.execute("CREATE TABLE tests AS SELECT *, no + 7 AS lab, no % 4 AS hour FROM labs")
    con.execute("CREATE TABLE notes AS SELECT lab, 'n' || (lab % 5) AS note, no FROM tests WHERE lab % 2 = 0")
    policy = policy_of(NAMES, require=[{"frequency": 2}])
    own = {"source": "tests", "key": "lab", "order": "no", "quasi_identifiers": {"hour": {"numeric": True}}}
    policy["tables"]["labs"] |= own
    policy["tables"]["notes"] = {
        **{"source": "notes", "parent": {"lab": "labs"}, "sensitive": ["note"], "keep": ["no"]},
        "target": target("notes"),
    }
    result = ldiv_db.run(con, policy)
    assert [audit.sensitive for audit in result.audits][-2:] == ["notes.note", ""]
    join = "FROM published.notes n JOIN published.labs l USING (lab) JOIN published.stays s USING (stay)"
    shown = con.execute(f"SELECT n.no, l.no, s.who {join}").fetchall()
    assert shown and len(shown) == con.execute("SELECT count(*) FROM published.notes").fetchall()[0][0]
    assert all(note == lab for note, lab, _ in shown)  # a note has the number of its test


@pytest.mark.parametrize("kind", some(["DATE", "VARCHAR", "DOUBLE"], 1))
def test_tables_are_ordered_by_columns_of_any_types(kind: str) -> None:
    """Rows of stays by a number, those of their values by a date or a text: each in its own order."""
    con, _ = clinic(people=30, seed=4)
    day = "DATE '2024-01-01' + no" if kind == "DATE" else f"CAST(no AS {kind})"
    con.execute(f"CREATE OR REPLACE TABLE labs AS SELECT *, no AS lab, {day} AS hour FROM labs")
    con.execute("INSERT INTO stays SELECT no + 5000, who, 'x' || no, day + 9, age, value FROM stays WHERE day = 0")
    policy = policy_of(NAMES, require=[{"k": 2}])
    policy["tables"]["labs"] |= {"order": "hour", "identifiers": ["lab", "hour"], "source": "labs"}
    policy["tables"]["labs"] |= {"quasi_identifiers": {"lab": {"numeric": True}}, "identifiers": ["hour"]}
    ldiv_db.run(con, policy)
    for name, owner, true in (("stays", "who", "day"), ("labs", "stay", "hour")):
        join = f"published.{name} p JOIN {name} s USING (no)"
        shown = con.execute(f"SELECT p.{owner}, s.{true} FROM {join} ORDER BY p.{owner}, p.position").fetchall()
        assert shown == sorted(shown), name


def test_a_budget_of_rows_left_out_is_kept() -> None:
    con, _ = clinic(people=30, seed=4)
    with pytest.raises(InfeasibleError, match="rows"):
        ldiv_db.run(con, policy_of(NAMES, suppression=0.1))
    left = ldiv_db.run(con, policy_of(NAMES, suppression=0.6)).loss
    assert left.rows_suppressed <= 0.6 * (left.rows_suppressed + left.rows_published)


def test_warehouses_are_refused() -> None:
    with pytest.raises(PolicyError, match="tables: a warehouse counts one table"):
        ldiv_db.run(sqlite3.connect(":memory:"), policy_of(NAMES), dialect="postgres")


def small(**changes: Any) -> tuple[Any, Any]:
    """Two tables of few people, and a policy of them and of a public one that draws its seed."""
    con, _ = clinic(people=12, names=NAMES[:2])
    con.execute("CREATE TABLE wards AS SELECT i AS ward, i + 3 AS beds, 'x' AS note FROM range(3) t(i)")
    con.execute("ALTER TABLE stays ADD COLUMN note VARCHAR; ALTER TABLE patients ALTER age TYPE VARCHAR")
    policy = policy_of(NAMES[:2], over_time=None, output={}, require=[{"k": 2}], **changes)
    del policy["seed"]
    policy["tables"]["patients"]["quasi_identifiers"] = ["age"]
    policy["tables"]["stays"]["identifiers"] = ["day", "note"]
    own = {"public": True, "keep": ["ward", "beds"], "identifiers": ["note"], "target": target("wards")}
    policy["tables"]["wards"] = {"source": "wards", **own}
    return con, policy


#: What changes the release, or only what nobody reads of the source, and whether the release is another.
CHANGES: dict[str, tuple[str, bool]] = {
    "a width of numbers": ("ALTER TABLE stays ALTER age TYPE BIGINT", False),
    "texts that are numbers now": ("ALTER TABLE patients ALTER age TYPE INTEGER", True),
    "an order of another type": ("ALTER TABLE stays ALTER day TYPE VARCHAR", True),
    "a public table": ("UPDATE wards SET beds = beds + 1", True),
    "rows in another order": ("CREATE OR REPLACE TABLE stays AS FROM stays ORDER BY hash(no)", False),
    "columns in another order": ("CREATE OR REPLACE TABLE stays AS SELECT value, * EXCLUDE (value) FROM stays", False),
    "a column that nobody reads": ("UPDATE stays SET note = 'corrected'", False),
    "a key that nobody joins by": ("UPDATE stays SET stay = stay || 'x'", False),
    "a column of a public table that is not kept": ("UPDATE wards SET note = 'corrected'", False),
}


@pytest.mark.parametrize("change", some(CHANGES, 3))
def test_a_release_is_unchanged_if_all_that_it_rests_on_is(change: str) -> None:
    con, policy = small()
    statement, is_another = CHANGES[change]
    first = ldiv_db.run(con, policy)
    con.execute(statement)
    planned = ldiv_db.plan(con, policy)
    assert planned.earlier.same_rows and planned.earlier.unchanged == (None if is_another else first.run_id)
    assert f"run {first.run_id}" in planned.as_dict()["notes"][0]


def test_a_taxonomy_that_comes_makes_another_release_with_other_numbers(tmp_path: Any) -> None:
    con, policy = small()
    policy["seed"] = 3
    first = ldiv_db.run(con, policy)
    numbers = "SELECT no, who FROM published.patients ORDER BY no"
    before = con.execute(numbers).fetchall()
    levels = "\n".join(f"{age};{'low' if age < 4 else 'high'};*" for age in range(8))
    (tmp_path / "age.csv").write_text(levels, encoding="utf-8")
    with working_engine(con) as engine:
        migrate.migrate(engine)
        store(engine, "age", read_taxonomy(tmp_path / "age.csv"), True)
    again = ldiv_db.run(con, policy)
    assert first.earlier.unchanged is None and again.earlier.unchanged is None and again.earlier.same_rows
    assert con.execute(numbers).fetchall() != before


def test_a_table_that_was_published_alone_has_the_same_rows() -> None:
    con, _ = clinic()
    single = {
        **{"source": "stays", "target": {"table": "one", "if_exists": "replace"}, "quasi_identifiers": ["age"]},
        **{"sensitive": ["value"], "identifiers": ["no", "who", "stay", "day"], "require": [{"k": 4}]},
    }
    alone = ldiv_db.run(con, single)
    several = ldiv_db.run(con, policy_of(NAMES, over_time=None))
    assert several.earlier.run_id == alone.run_id and several.earlier.same_rows
    assert ldiv_db.run(con, single).earlier.unchanged == alone.run_id
    con.execute("CREATE TABLE copied AS FROM stays; DELETE FROM ldiv.run_secret WHERE run_id <> ?", [several.run_id])
    con.execute("DELETE FROM ldiv.run WHERE run_id <> ?", [several.run_id])
    other = ldiv_db.run(con, {**single, "keep": ["no"], "identifiers": ["who", "stay", "day"]})
    assert other.earlier.run_id == several.run_id and other.earlier.same_rows
    con.execute("UPDATE stays SET age = age + 1 WHERE no = (SELECT min(no) FROM stays)")
    with pytest.raises(PolicyError, match="its rows have changed"):
        ldiv_db.run(con, policy_of(NAMES, over_time=None))
    with pytest.raises(PolicyError, match="its rows have changed"):
        ldiv_db.run(con, {**single, "identifiers": ["no", "stay", "who"], "keep": ["day"]})


def test_releases_of_changed_rows_are_said_not_to_be_held_together() -> None:
    con, _ = clinic(people=16)
    ldiv_db.run(con, policy_of(NAMES))
    con.execute("UPDATE stays SET age = age + 1")
    assert any(
        "was not measured: releases of several tables" in note for note in ldiv_db.run(con, policy_of(NAMES)).said
    )


def test_no_name_has_numbers_of_two_things() -> None:
    con, _ = clinic(people=16)
    con.execute("ALTER TABLE patients RENAME who TO id; ALTER TABLE stays RENAME stay TO id")
    policy = policy_of(NAMES, individual="id", require=[{"frequency": 2}])
    policy["tables"]["patients"]["person"] = "id"
    policy["tables"]["stays"]["key"] = "id"
    result = ldiv_db.run(con, policy)
    columns = {name: [column for column, *_ in con.execute(f"DESCRIBE published.{name}").fetchall()] for name in NAMES}
    assert "id" in columns["patients"] and "stays_id" in columns["stays"] and "stay" in columns["labs"]
    assert any("stays.id is published as stays_id: it has numbers of its rows" in note for note in result.notes)
    assert all(audit.holds for audit in ldiv_db.check(con, policy=policy))
    joined = [(join.parent, join.child, join.rows_published) for join in ldiv_db.measure(con, policy=policy).joins]
    rows = {one.name: one.loss.rows_published for one in result.tables}
    assert ("patients", "stays", rows["stays"]) in joined and ("stays", "labs", rows["labs"]) in joined
    join = "published.labs l JOIN published.stays s ON l.stay = s.stays_id JOIN published.patients p ON p.id = s.who"
    assert con.execute(f"SELECT count(*) FROM {join}").fetchall() == [(rows["labs"],)]
