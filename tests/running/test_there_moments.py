"""Runs in warehouses that plan outside of any transaction: changes meanwhile are found by the one that publishes."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
import servers
from strategies import some
from there_beds import OLD_RELEASE, lite, place, policy, released, rows_of, tables_of, wipe

import ldiv_db
from ldiv_db.database.names import Relation
from ldiv_db.database.unchanged import is_unchanged, stamp_of
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.running import release_classes
from ldiv_db.running import run as running

ROWS = rows_of(random.Random(21), 60)


@pytest.fixture
def planning(monkeypatch: Any) -> Any:
    """Has something done while the next runs plan, so many times."""

    def arrange(act: Any, times: int = 1, module: Any = running) -> list[Any]:
        plain, done = module.work_out, []

        def work_out(*args: Any) -> Any:
            if len(done) < times:
                done.append(True)
                act()
            return plain(*args)

        monkeypatch.setattr(module, "work_out", work_out)
        return done

    monkeypatch.setattr("ldiv_db.publishing.history.time.sleep", lambda seconds: None)
    return arrange


_IN_CLICKHOUSE = r"ALTER TABLE people UPDATE \1 WHERE \2 SETTINGS mutations_sync = 1"


def changing(there: Any, *statements: str) -> Any:
    """What changes rows there, by the connection of a run, in which none has begun."""

    def change() -> None:
        for sql in statements:
            own = re.sub("UPDATE people SET (.*) WHERE (.*)", _IN_CLICKHOUSE, sql)
            there.execute(own if there.dialect == "clickhouse" else sql)
        there.connection.commit()

    return change


@pytest.mark.parametrize("kept", some([False, True], 1))
def test_a_source_that_changes_while_a_run_plans_is_counted_again(
    there: Any, con: Any, planning: Any, kept: bool
) -> None:
    place(there, con, ROWS)
    change = "UPDATE people SET rid = rid + 1000 WHERE rid = 3" if kept else "DELETE FROM people WHERE rid < 9"
    done = planning(changing(there, change))
    asked = policy(**({"identifiers": [], "keep": ["rid"]} if kept else {}))
    result = ldiv_db.run(there.connection, asked)
    assert len(done) == 1 and result.loss.rows_published == (60 if kept else 51)
    if kept:
        assert 1003 in {rid for (rid,) in there.query("SELECT rid FROM released")}


#: A run that is killed before what it has written is put in its place, or before the ledger hears of that.
KILLED = """
import json, os, sqlite3, sys
import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.publishing import in_file
from ldiv_db.publishing.destination import Destination
from there_beds import policy

def die(*given, **named):
    os._exit(9)

if sys.argv[2] == "written":
    in_file.move = Engine.rename = die
else:
    Destination.settle_draft = die
os.chdir(sys.argv[1])
ldiv_db.run(sqlite3.connect("w.sqlite"), policy(**json.loads(sys.argv[3])))
"""
TO_FILE: dict[str, Any] = {"target": {"file": "r.parquet", "if_exists": "replace"}}
TO_DATABASE: dict[str, Any] = {
    "target": {"database": "other", "table": "r", "if_exists": "replace"},
    "databases": {"other": "other.duckdb"},
}


@pytest.mark.parametrize(
    ("moment", "more"), some([(moment, more) for more in (TO_DATABASE, TO_FILE) for moment in ("written", "moved")], 2)
)
def test_the_ledger_there_learns_of_what_a_killed_run_has_published_here(
    tmp_path: Path, moment: str, more: dict[str, Any]
) -> None:
    duckdb.connect(str(tmp_path / "other.duckdb")).close()
    with closing(lite(tmp_path, ROWS)) as there:
        ran = [sys.executable, "-c", KILLED, str(tmp_path), moment, json.dumps(more)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        assert subprocess.run(ran, env=environment, check=False).returncode == 9
        assert there.execute("SELECT status FROM ldiv_run").fetchall() == [("written",)]
        result = ldiv_db.run(there, policy(**more), folder=tmp_path)
        runs = dict(there.execute("SELECT run_id, status FROM ldiv_run").fetchall())
    assert set(runs.values()) == {"published"} and len(runs) == 1 + (moment == "moved") and result.run_id in runs
    with duckdb.connect(str(tmp_path / "other.duckdb")) as other:
        table = "r" if "databases" in more else f"'{tmp_path}/r.parquet'"
        assert other.execute(f"SELECT count(*) FROM {table}").fetchall() == [(60,)]
        assert other.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("r",)] * ("databases" in more)
    assert {path.name for path in tmp_path.iterdir()} - {"r.parquet"} == {"other.duckdb", "w.sqlite"}


def test_a_file_of_a_source_that_changed_meanwhile_is_of_the_rows_as_they_are(
    con: Any, tmp_path: Path, planning: Any
) -> None:
    with closing(lite(tmp_path, ROWS)) as there:

        def change() -> None:
            there.execute("DELETE FROM people WHERE rid < 9")
            there.commit()

        done = planning(change)
        ldiv_db.run(there, policy(target={"file": "r.parquet"}), folder=tmp_path)
    assert len(done) == 1 and con.execute(f"SELECT count(*) FROM '{tmp_path}/r.parquet'").fetchall() == [(51,)]


def test_a_source_that_changes_each_time_ends_the_run_and_leaves_the_old_release(
    there: Any, con: Any, planning: Any
) -> None:
    place(there, con, ROWS)
    there.execute(OLD_RELEASE)
    there.connection.commit()
    before, names = released(there), tables_of(there)
    done = planning(changing(there, "UPDATE people SET age = COALESCE(age, 20) + 1 WHERE rid < 5"), times=99)
    with pytest.raises(ldiv_db.DatabaseError, match="people changed twice while this run planned"):
        ldiv_db.run(there.connection, policy(require=[{"k": 9}]))
    assert (len(done), released(there), tables_of(there)) == (2, before, names)


def test_what_changes_beside_the_columns_that_are_read_is_no_change(there: Any, con: Any, planning: Any) -> None:
    place(there, con, ROWS)
    done = planning(changing(there, "UPDATE people SET rid = rid + 1000 WHERE rid >= 0"), times=99)
    assert ldiv_db.run(there.connection, policy()).loss.rows_published == 60 and len(done) == 1


@pytest.mark.slow
def test_a_column_that_is_gone_is_a_change(there: Any, con: Any, planning: Any) -> None:
    place(there, con, ROWS)
    planning(changing(there, "ALTER TABLE people DROP COLUMN dose"))
    with pytest.raises(ldiv_db.PolicyError, match="dose: is not a column of the source"):
        ldiv_db.run(there.connection, policy())


def test_a_target_that_appears_while_a_run_plans_is_not_replaced(there: Any, con: Any, planning: Any) -> None:
    place(there, con, ROWS)
    planning(changing(there, "CREATE TABLE released AS SELECT 1 AS theirs"))
    with pytest.raises(ldiv_db.PolicyError, match="released exists"):
        ldiv_db.run(there.connection, policy(target={"table": "released"}))
    assert there.query("SELECT theirs FROM released") == [(1,)]


@pytest.mark.slow
def test_a_night_of_the_series_by_another_name_of_the_source_is_found(there: Any, con: Any, planning: Any) -> None:
    if not Warehouse(there.connection).traits.holds_off:
        pytest.skip("it has no series")
    place(there, con, ROWS)
    there.execute("DROP VIEW IF EXISTS others")
    there.execute("CREATE VIEW others AS SELECT * FROM people")
    there.connection.commit()
    night = {name: value for name, value in policy(key="rid", target={"table": "released"}).items()
             if name not in ("identifiers", "over_time")}  # fmt: skip
    try:
        planning(lambda: ldiv_db.run(there.connection, night | {"source": "others"}), module=release_classes)
        assert ldiv_db.run(there.connection, night).figures["release"] == 2
        assert len(released(there)) == 60
    finally:
        there.execute("DROP VIEW others")
        there.connection.commit()


def test_a_connection_of_sqlite_sees_what_itself_and_others_wrote(tmp_path: Any) -> None:
    connection = lite(tmp_path, ROWS)
    there, people = Warehouse(connection), Relation(("people",))
    with closing(connection), closing(sqlite3.connect(tmp_path / "w.sqlite")) as other:
        stamp = stamp_of(there, people)
        assert is_unchanged(there, people, stamp, 60)
        for age, one in enumerate((connection, other)):
            one.execute(f"UPDATE people SET age = {age} WHERE rid = 1")
            one.commit()
            assert not is_unchanged(there, people, stamp, 60)
            stamp = stamp_of(there, people)
    assert not is_unchanged(there, people, (), 60)


# -- PostgreSQL ----------------------------------------------------------------------------------------


@pytest.fixture
def postgres(con: Any) -> Any:
    if servers.missing("postgres"):
        pytest.skip(servers.missing("postgres"))
    postgres = servers.started("postgres")
    wipe(postgres)
    place(postgres, con, ROWS)
    yield postgres
    # A schema that is made anew is its owner's alone: other tests of this server connect as other users.
    postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")
    wipe(postgres)


CHANGES = [
    "UPDATE people SET age = age WHERE rid = 5",
    "INSERT INTO people SELECT * FROM people LIMIT 1",
    "DELETE FROM people WHERE rid = 5",
    "DELETE FROM people WHERE rid = 5; INSERT INTO people VALUES (5, 21, 'a', 1.5, 'flu')",
    "DO $$ BEGIN BEGIN UPDATE people SET age = 20; EXCEPTION WHEN division_by_zero THEN NULL; END; END $$",
    "ALTER TABLE people RENAME TO people_old; ALTER TABLE people_new RENAME TO people; DROP TABLE people_old",
    "ALTER TABLE people DROP COLUMN age; ALTER TABLE people ADD COLUMN age integer DEFAULT 30",
    "ALTER TABLE people ALTER COLUMN age TYPE text",
    "ALTER TABLE people RENAME COLUMN age TO b; ALTER TABLE people RENAME COLUMN rid TO age",
    "CREATE TABLE kin () INHERITS (people)",
    "DROP TABLE people; CREATE VIEW people AS SELECT * FROM people_new",
]
NO_CHANGES = [
    "SELECT 1",
    "VACUUM FULL people",
    "ANALYZE people",
    "UPDATE people_new SET age = 1",
    "VACUUM FREEZE people",
]


@pytest.mark.engines
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("change", some([*CHANGES, *NO_CHANGES], 3))
def test_rows_of_postgres_tell_that_they_are_the_same(postgres: Any, change: str) -> None:
    postgres.execute("CREATE TABLE people_new AS SELECT * FROM people")
    there, people = Warehouse(postgres.another()), Relation(("people",))
    with closing(there.connection):
        with there.moment():
            assert there.extent(people, None) == (60, 0)
            stamp = stamp_of(there, people)
        postgres.execute(change)
        with there.moment():
            assert stamp and is_unchanged(there, people, stamp, 60) == (change in NO_CHANGES)


@pytest.mark.engines
@pytest.mark.xdist_group("postgres")
def test_rows_whose_writer_may_not_have_ended_are_not_known_to_be_the_same(postgres: Any) -> None:
    """A part of a transaction has a number of its own, of which the server does not say that it was at work."""
    people = Relation(("people",))
    with closing(postgres.another()) as writer, closing(postgres.another()) as connection:
        writer.execute("SAVEPOINT a")
        writer.execute("UPDATE people SET age = 1 WHERE rid = 5")
        there = Warehouse(connection)
        with there.moment():
            stamp = stamp_of(there, people)
        writer.commit()
        with there.moment():
            assert stamp and not is_unchanged(there, people, stamp, 60)


@pytest.mark.engines
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("table", ["seen", "kin"])
def test_what_has_not_rows_of_its_own_alone_has_no_stamp(postgres: Any, table: str) -> None:
    postgres.execute("CREATE VIEW seen AS SELECT * FROM people; CREATE TABLE kin (a int) PARTITION BY LIST (a)")
    there = Warehouse(postgres.another())
    with closing(there.connection):
        assert stamp_of(there, Relation((table,))) == ()


@pytest.mark.slow
@pytest.mark.engines
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("driver", ["psycopg", "adbc"])
def test_nothing_is_held_while_a_run_plans_and_the_server_knows_whose_statements_are_whose(
    postgres: Any, planning: Any, driver: str, monkeypatch: Any
) -> None:
    connection = postgres.another() if driver == "psycopg" else postgres.arrow()
    if connection is None:
        pytest.skip("no driver of ADBC's")
    seen, forget = [], Warehouse.forget
    own = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"

    def look(*args: Any) -> None:
        seen.append(postgres.query(f"SELECT state, application_name, query {own} AND state <> 'idle'"))
        seen.append(postgres.query(f"SELECT count(*) FROM pg_locks WHERE pid IN (SELECT pid {own})"))
        forget(*args) if args else None

    monkeypatch.setattr(Warehouse, "forget", look)
    planning(look)
    with closing(connection):
        result = ldiv_db.run(connection, policy())
    while_planning, locks, ((state, name, query),), ((held,),) = seen
    assert (while_planning, locks) == ([], [(0,)])
    assert (state, name, held > 0) == ("idle in transaction", f"ldiv_db {result.run_id}", True)
    assert f" /* ldiv_db {result.run_id} */" in query


@pytest.mark.slow
@pytest.mark.engines
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("given", [{}, {"lock_timeout": "7s", "application_name": "nightly"}])
def test_settings_of_the_session_are_respected_and_come_back(postgres: Any, given: dict[str, str]) -> None:
    with closing(postgres.another()) as connection:
        for name, value in given.items():
            connection.execute(f"SET {name} = '{value}'")
        connection.commit()
        there, asked = (
            Warehouse(connection),
            "SELECT current_setting('lock_timeout'), current_setting('application_name')",
        )
        before = there.rows(asked)
        connection.rollback()
        with there.moment():
            assert there.rows(asked) == [(given.get("lock_timeout", "10min"), given.get("application_name", "ldiv_db"))]
        assert there.rows(asked) == before


@pytest.mark.slow
@pytest.mark.engines
@pytest.mark.xdist_group("postgres")
def test_a_server_that_ends_idle_transactions_does_not_end_a_run(postgres: Any, planning: Any) -> None:
    with closing(postgres.another()) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '4s'")
        connection.commit()
        done = planning(lambda: postgres.query("SELECT pg_sleep(6)"))
        assert ldiv_db.run(connection, policy()).loss.rows_published == 60 and done
