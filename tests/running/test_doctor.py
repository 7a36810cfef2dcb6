"""The doctor: what it finds where all works, and where something does not; and that it leaves nothing behind."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing
from importlib import import_module

import duckdb
import pytest
from carried import Connection
from strategies import some
from there_beds import place, policy, rows_of, tables_of

import ldiv_db
from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import TRAITS
from ldiv_db.database.warehouses import Warehouse

CARRIED = ("databricks", "redshift", "trino")


def schemas(there):
    warehouse = Warehouse(there.connection)
    if there.dialect == "bigquery":
        return {dataset.dataset_id for dataset in there.client.list_datasets()}
    with warehouse.moment():
        return set(warehouse.rows(warehouse.traits.schemata))


def failed(visit):
    return {check.name: check.problem for check in visit.checks if check.problem}


@pytest.fixture
def few(monkeypatch):
    """Of the kinds of runs that the doctor tries the first alone."""
    doctor = import_module("ldiv_db.running.doctor")
    monkeypatch.setattr(doctor, "KINDS", dict(list(doctor.KINDS.items())[:1]))


@pytest.mark.parametrize("way", some(["driver", "arrow"], 1))
def test_a_warehouse_is_well_and_as_it_was(there, way):
    if there.dialect == "sqlite":
        pytest.skip("it has no schemas")
    connection = there.connection if way == "driver" else there.arrow()
    if connection is None:
        pytest.skip(f"{there.dialect} has no connection of ADBC's here")
    before = schemas(there)
    visit = ldiv_db.doctor(connection)
    if way == "arrow":
        connection.close()
    assert failed(visit) == {} and visit.holds
    assert ("a series" in [check.name for check in visit.checks]) == TRAITS[there.dialect].holds_off
    assert schemas(there) == before and tables_of(there) == []
    assert ("server" in visit.versions) == (there.dialect != "bigquery")


@pytest.mark.slow
@pytest.mark.parametrize("dialect", some(CARRIED, 2))
def test_statements_for_services_that_were_never_there_are_read_and_resolved(dialect):
    there = Connection(dialect)
    visit = ldiv_db.doctor(there, dialect=dialect)
    assert failed(visit) == {} and len(there.sent) > 300
    assert visit.caution == f"{TRAITS[dialect].name}: parsed and resolved, never executed by us"
    assert visit.caution in str(visit)
    assert there.duckdb.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]


@pytest.mark.slow
def test_a_run_says_that_a_history_keeps_its_release_and_that_we_never_executed_its_statements(there, con):
    place(there, con, rows_of(random.Random(2), 40))
    first, second = (ldiv_db.run(there.connection, policy(require=[{"frequency": n}])).notes for n in (3, 2))
    appended = ldiv_db.run(there.connection, policy(target={"table": "released", "if_exists": "append"})).notes
    told = [[note for note in notes if "the history of released" in note] for notes in (first, second, appended)]
    ends = TRAITS[there.dialect].history
    assert [len(notes) for notes in told] == [0, int(bool(ends)), 0]
    assert ends == "" or told[1][0].endswith(f"; this ends it: {ends.format(table='released')}")
    said = [note for note in first if "never executed by us" in note]
    emulated = {"snowflake": "fakesnow 0.12", "bigquery": "bqemulator 1.4"}.get(there.dialect)
    name = TRAITS[there.dialect].name
    assert said == ([f"{name}: executed on an emulator alone ({emulated}), never executed by us"] if emulated else [])


BROKEN = {
    "lend": ["classes", "one rule for all rows"],
    "create": ["kept columns"],
    "put": ["classes", "kept columns", "one rule for all rows", "people with several rows"],
    "send": ["a schema with people"],
}


@pytest.mark.slow
@pytest.mark.parametrize("step", some(BROKEN, 2))
def test_what_fails_is_told_with_the_statement_and_nothing_is_left(monkeypatch, step):
    there, done = Connection("databricks"), getattr(Warehouse, step)

    def fail(self, *args, **kwargs):
        done(self, *args, **kwargs)
        self.execute("SELECT 'not there' FROM nowhere")

    monkeypatch.setattr(Warehouse, step, fail)
    visit = ldiv_db.doctor(there, dialect="databricks")
    assert not visit.holds and set(BROKEN[step]) <= set(failed(visit))
    broken = next(check for check in visit.checks if check.name == BROKEN[step][0])
    assert "Table with name nowhere does not exist" in broken.problem
    assert broken.statement.startswith("SELECT 'not there' FROM nowhere /* ldiv_db ")
    assert visit.as_dict()["holds"] is False and broken.problem in str(visit)
    made = "SELECT schema_name FROM duckdb_schemas() WHERE schema_name LIKE 'doctor%'"
    assert there.duckdb.execute(made).fetchall() == []


_ROWS_OF = Warehouse.rows_of


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "done", "check", "says"),
    [
        ("rows_of", lambda *of: f"{_ROWS_OF(*of)} LIMIT 11", "classes", "0 rows are others, as [] in place of [("),
        ("change", lambda *of: False, "the ledger, and rows behind others", "the ledger says: written, written"),
        ("exists", lambda *of: False, "the ledger, and rows behind others", "already exists"),
    ],
)
def test_other_rows_and_a_ledger_that_cannot_be_kept_are_told(monkeypatch, few, step, done, check, says):
    monkeypatch.setattr(Warehouse, step, done)
    visit = ldiv_db.doctor(Connection("trino"), dialect="trino")
    assert says in failed(visit)[check]


@pytest.mark.slow
def test_a_schema_that_cannot_be_dropped_is_named(monkeypatch, few):
    there = Connection("databricks")
    monkeypatch.setattr(Warehouse, "drop", lambda *given: None)
    visit = ldiv_db.doctor(there, dialect="databricks")
    ((left,),) = there.duckdb.execute("SELECT DISTINCT schema_name FROM duckdb_tables()").fetchall()
    assert not visit.holds and f"drop the schema {left}" in failed(visit)["a schema with people"]


@pytest.mark.slow
def test_an_empty_schema_stays_with_what_another_makes_in_it_and_one_with_tables_is_refused(monkeypatch, few):
    there, made = Connection("databricks"), Warehouse.make_table

    def make(self, table, columns, withheld=False):
        made(self, table, columns, withheld)
        there.duckdb.execute("CREATE TABLE IF NOT EXISTS sandbox.theirs (id INTEGER)")

    there.duckdb.execute("CREATE SCHEMA sandbox")
    assert ldiv_db.doctor(there, "sandbox", "databricks").holds
    monkeypatch.setattr(Warehouse, "make_table", make)
    assert ldiv_db.doctor(there, "sandbox", "databricks").holds
    with pytest.raises(ldiv_db.PolicyError, match="sandbox has 1 tables"):
        ldiv_db.doctor(there, "sandbox", "databricks")
    assert there.duckdb.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("theirs",)]


def test_a_warehouse_without_schemas_is_tried_as_a_file(tmp_path):
    with closing(sqlite3.connect(tmp_path / "w.sqlite")) as there:
        with pytest.raises(ldiv_db.PolicyError, match="SQLite has no schemas"):
            ldiv_db.doctor(there)
        assert Warehouse(there).tables(Relation(("people",))) == []


def test_the_command_says_what_it_found_and_leaves_the_database_as_it_was(call, few, tmp_path, monkeypatch):
    with duckdb.connect(tmp_path / "w.duckdb") as con:
        con.execute("CREATE TABLE people (id INTEGER)")
    ends = call("doctor", tmp_path / "w.duckdb", "--json")
    assert (ends.code, ends.json["holds"], ends.json["service"]) == (0, True, "DuckDB")
    assert {"name", "seconds", "problem", "statement"} == set(ends.json["checks"][0])
    with duckdb.connect(tmp_path / "w.duckdb") as con:
        assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("people",)]
        con.begin()
        with pytest.raises(ldiv_db.PolicyError, match="has begun"):
            ldiv_db.doctor(con)
    monkeypatch.setattr("ldiv_db.running.doctor._publish", lambda bed, more: Counter([object()]))
    monkeypatch.setattr("ldiv_db.running.doctor._enter", lambda bed: "")
    ends = call("doctor", ":memory:")
    assert ends.code == 1 and "classes: " in ends.out
