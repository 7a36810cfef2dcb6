"""Runs in warehouses: rows are counted and published there, and the release is the one of an embedded run."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
import servers
import yaml
from strategies import search, seeds, some
from there_beds import OLD_RELEASE, failing, lite, place, policy, released, rows_of, tables_of, wipe
from there_cases import LITE, checks
from there_cases import embedded as embedded_case

import ldiv_db
from ldiv_db.commands.console import open_for_command
from ldiv_db.database import drivers
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.connections import Settings
from ldiv_db.database.counted import ColumnThere, TableThere, memory_for_counts, open_counted, spare_threads
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.policy.reading import columns_asked
from ldiv_db.publishing.ledger import withdraw_run
from ldiv_db.publishing.ledger_there import ledger_of


@pytest.mark.slow
@pytest.mark.parametrize("way", some(["driver", "arrow"], 1))
@search(2, seed=seeds)
def test_the_release_is_that_of_an_embedded_run(there, tmp_path, seed, way):
    connection = there.connection if way == "driver" else there.arrow()
    if connection is None:
        pytest.skip(f"{there.dialect} has no connection of ADBC's here")
    expected = embedded_case(seed, LITE if there.dialect == "sqlite" else servers.TYPES, there.plain_names)
    policy = expected.case.policy
    expected.case.place(there, tmp_path)
    there.connection.commit()
    with closing(connection) if way == "arrow" else nullcontext():
        if expected.error:
            with pytest.raises(expected.error):
                ldiv_db.run(connection, policy, tmp_path)
            return
        found = ldiv_db.run(connection, policy, tmp_path)
        checked = checks(connection, "released", policy, tmp_path)
    expected.assert_same(there.query("SELECT * FROM released"), found, checked)


@pytest.mark.parametrize(
    "changes",
    some(
        [{}, {"identifiers": [], "individual": "rid"}, {"identifiers": [], "keep": ["rid"]}, {"algorithm": "auto"}], 1
    ),
)
def test_a_source_without_rows_is_said_to_be_empty(there, con, changes):
    place(there, con, [])
    for call in (ldiv_db.run, ldiv_db.plan):
        with pytest.raises(ldiv_db.InfeasibleError, match="people is empty: there is nothing to publish"):
            call(there.connection, policy(**changes))
    with pytest.raises(ldiv_db.InfeasibleError, match="people is empty: there is nothing to profile"):
        ldiv_db.profile(there.connection, "people", qi=["age", "town"])
    assert [audit.rows for audit in ldiv_db.check(there.connection, "people", qi=["age"], require=["k:2"])] == [0]


def test_what_is_kept_is_hashed_as_the_rows_are_counted(there, con, monkeypatch):
    """One scan counts; another counts what kept columns single out, and a third hashes where no function does."""
    place(there, con, rows_of(random.Random(5), 40))
    sent, signed = [], Warehouse._signed
    monkeypatch.setattr(Warehouse, "_signed", lambda self, sql: sent.append(sql) or signed(self, sql))
    ldiv_db.plan(there.connection, policy(identifiers=[], keep=["rid"]))
    scans = [sql for sql in sent if "GROUP BY" in sql and "people" in sql.lower()]
    assert len(scans) == (2 if Warehouse(there.connection).traits.hashed else 3)


@pytest.mark.parametrize("role", ["sensitive", "keep"])
def test_equal_numbers_stand_as_they_are_written_whatever_the_order_of_the_source(there, role):
    """Who sees 1.0 before 1.00 does not learn which of them the source has first."""
    if there.dialect != "postgres":
        pytest.skip("only PostgreSQL has numbers that are equal and written differently")
    found, asked = [], {"identifiers": ["secret"], "require": [{"k": 3}], "quasi_identifiers": ["age"]}
    asked |= {"sensitive": ["dose"]} if role == "sensitive" else {"sensitive": [], "keep": ["dose"]}
    values = ["1.0", "1.00", "2", "1.0", "1.00", "2.0"]
    for rows in (values * 4, values[::-1] * 4):
        there.execute("DROP TABLE IF EXISTS people; CREATE TABLE people (age integer, dose numeric, secret text)")
        there.execute(f"INSERT INTO people VALUES {', '.join(f'(20, {value}, NULL)' for value in rows)}")
        ldiv_db.run(there.connection, policy(**asked))
        found.append([str(dose) for (dose,) in there.query("SELECT dose FROM released ORDER BY ctid")])
    assert found[0] == found[1] and set(found[0]) == set(values)


def test_default_privileges_grant_nobody_the_secrets_of_the_ledger(there, con):
    if there.dialect != "postgres":
        pytest.skip("PostgreSQL has default privileges")
    place(there, con, rows_of(random.Random(4), 20))
    there.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader")
    there.execute("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader, PUBLIC")
    try:
        ldiv_db.run(there.connection, policy())
        read = "SELECT has_table_privilege('reader', oid, 'SELECT') FROM pg_class WHERE relname {}"
        assert there.query(read.format("= 'released'")) == [(True,)]
        assert there.query(read.format("LIKE '%\\_secret'")) == [(False,)] * 4
    finally:
        there.execute("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM reader, PUBLIC")
        wipe(there)
        there.execute("DROP TABLE IF EXISTS people, released; DROP ROLE reader")


@pytest.mark.parametrize("name", ["LDIV_ROWS", "ldiv_place"])
def test_a_column_named_as_the_counts_of_staged_rows_is_refused(tmp_path, name):
    there = lite(tmp_path, rows_of(random.Random(4), 40))
    there.execute(f"ALTER TABLE people RENAME COLUMN dose TO {name}")
    there.commit()
    with pytest.raises(ldiv_db.PolicyError, match=f"quasi_identifiers.{name}: .*rename it in a view"):
        ldiv_db.run(there, policy(quasi_identifiers={"age": {"numeric": True}, "town": {}, name: {"numeric": True}}))


def test_rows_are_appended_behind_those_that_are_there_and_nothing_else_stays(there, con):
    place(there, con, rows_of(random.Random(4), 20))
    asked = policy(target={"table": "released", "if_exists": "append"}, output={"class_id": True})
    first, names = ldiv_db.run(there.connection, asked), tables_of(there)
    ldiv_db.run(there.connection, asked)
    assert tables_of(there) == names
    ((rows, last),) = there.query("SELECT count(*), max(class_id) FROM released")
    assert (rows, last) == (40, 2 * first.loss.classes)


@pytest.mark.slow
@pytest.mark.parametrize("step", some(["lend", "send", "create", "put"], 1))
def test_a_run_that_fails_leaves_the_old_release_and_no_trace(there, con, monkeypatch, step):
    place(there, con, rows_of(random.Random(5), 40))
    ldiv_db.run(there.connection, policy())
    before, names = released(there), tables_of(there)
    joined = {"identifiers": [], "keep": ["rid"]} if step == "create" else {}
    with failing(monkeypatch, step), pytest.raises(ldiv_db.DatabaseError, match="pulled out"):
        ldiv_db.run(there.connection, policy(require=[{"k": 9}], **joined))
    if step != "put" or Warehouse(there.connection).takes_back:
        assert released(there) == before
    assert tables_of(there) == names


@pytest.mark.parametrize("if_exists", some(["replace", "append"], 1))
def test_a_release_of_which_rows_are_lost_on_the_way_to_its_place_is_not_published(there, con, monkeypatch, if_exists):
    if not Warehouse(there.connection).takes_back:
        pytest.skip("what replaces a table there cannot be taken back")
    place(there, con, rows_of(random.Random(5), 40))
    target = {"table": "released", "if_exists": if_exists}
    there.execute(OLD_RELEASE)
    there.connection.commit()
    before, names, rows = released(there), tables_of(there), Warehouse.rows_of
    monkeypatch.setattr(Warehouse, "rows_of", lambda self, staged: f"{rows(self, staged)} LIMIT 1")
    with pytest.raises(ldiv_db.DatabaseError, match="has 1 of the 40 rows"):
        ldiv_db.run(there.connection, policy(target=target))
    assert released(there) == before and tables_of(there) == names


@pytest.mark.parametrize("if_exists", ["replace", "append"])
@pytest.mark.parametrize("is_put", [True, False])
def test_the_run_after_one_that_was_killed_knows_whether_it_had_published(there, con, monkeypatch, if_exists, is_put):
    if Warehouse(there.connection).takes_back:
        pytest.skip("a kill is taken back there")
    place(there, con, rows_of(random.Random(14), 40))
    asked = policy(target={"table": "released", "if_exists": if_exists})
    first = ldiv_db.run(there.connection, asked)
    before, done, put = released(there), Warehouse.execute, []

    def until_killed(self, sql):
        puts = sql.startswith(("CREATE OR REPLACE TABLE", "INSERT ", "MERGE ")) and "SELECT * FROM " in sql
        if put or (puts and not is_put):
            put.append(True)
            raise ldiv_db.DatabaseError("killed")
        done(self, sql)
        put.extend([True] * puts)

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "execute", until_killed)
        with pytest.raises(ldiv_db.DatabaseError, match="killed"):
            ldiv_db.run(there.connection, policy(target=asked["target"], algorithm="bsgi"))
    assert (released(there) != before) == is_put and put
    last = ldiv_db.run(there.connection, asked)
    runs = dict(there.query("SELECT run_id, status FROM ldiv.run"))
    assert set(runs.values()) == {"published"} and len(runs) == 2 + is_put and {first.run_id, last.run_id} <= set(runs)
    assert [name.lower() for name in tables_of(there)] == ["people", "released"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"key": "rid", "identifiers": [], "target": {"prefix": "nights"}}, "is not a table of the warehouse"),
        ({"source": {"query": "SELECT 1"}}, "is not a table of the warehouse"),
        ({"source": "people.parquet"}, "is not a table of the warehouse"),
        ({"key": "rid", "identifiers": [], "target": {"file": "r.duckdb", "table": "t"}}, "goes to a table there"),
        ({"target": {"table": "people", "if_exists": "replace"}}, "is the source itself"),
        ({"target": {"table": "ldiv.x"}}, "the ledger's own"),
        ({"keep": ["nothing"]}, "is not a column of the source"),
        ({"identifiers": []}, "rid"),
    ],
)
def test_what_a_warehouse_is_not_for_is_refused_by_name(con, tmp_path, more, says):
    there = lite(tmp_path, rows_of(random.Random(7), 30))
    with pytest.raises(ldiv_db.PolicyError, match=says):
        ldiv_db.run(there, policy(**more))
    assert [name for (name,) in there.execute("SELECT name FROM sqlite_master")] == ["people"]


def test_a_transaction_of_the_caller_s_is_left_to_them_and_a_run_on_counts_answers_queries(there, con):
    place(there, con, rows_of(random.Random(10), 30))
    if there.dialect in ("snowflake", "clickhouse", "bigquery", "duckdb"):
        pytest.skip("its driver does not tell, or it has none")
    there.execute("BEGIN")
    with pytest.raises(ldiv_db.PolicyError, match="commit it first"):
        ldiv_db.run(there.connection, policy())
    there.execute("ROLLBACK")
    asked = policy(preserve=["SELECT town, avg(age) AS mean FROM source GROUP BY 1"])
    result = ldiv_db.run(there.connection, asked)
    assert result.loss.rows_published == 30
    assert result.answers and result.answers == ldiv_db.run(con, asked).answers


def test_changed_rows_stop_a_run_until_that_before_is_withdrawn_in_its_warehouse(there, con):
    rows = rows_of(random.Random(11), 20)
    place(there, con, rows)
    asked = policy(identifiers=[], keep=["rid"])
    del asked["over_time"], asked["seed"]
    first = ldiv_db.run(there.connection, asked)
    assert ldiv_db.plan(there.connection, asked).earlier.unchanged == first.run_id
    place(there, con, [(999, *rows[0][1:]), *rows[1:]])
    with pytest.raises(ldiv_db.PolicyError, match=r"(?s)have changed since.*runs withdraw"):
        ldiv_db.run(there.connection, asked)
    with ledger_of(Warehouse(there.connection)) as engine:
        assert withdraw_run(engine, first.run_id[:8])["status"] == "withdrawn"
    assert ldiv_db.run(there.connection, asked).loss.rows_published == 20


def test_a_ledger_lies_in_a_schema_and_no_file(tmp_path):
    with pytest.raises(ldiv_db.PolicyError, match="is a file"):
        ldiv_db.run(sqlite3.connect(tmp_path / "w.sqlite"), policy(), catalog="ours.duckdb")


def test_columns_that_nobody_asks_about_stay_there(there, con):
    place(there, con, rows_of(random.Random(13), 40))
    with open_counted(there.connection, columns_asked({"qi": "age, town"})) as counted:
        resolve_source(Engine(counted), "people", Path())
        assert [row[0].lower() for row in counted.execute("DESCRIBE people").fetchall()] == ["age", "town"]
        assert counted.execute("SELECT count(*) FROM people").fetchall() == [(40,)]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda there: ldiv_db.profile(there, "people"), "the columns that are named"),
        (lambda there: ldiv_db.check(there, "people", "height", require="k:2"), "none of the named columns"),
        (lambda there: ldiv_db.check(there, "persons", "age", require="k:2"), "no table or view persons"),
        (lambda there: ldiv_db.explore(there, policy()), "does not work on a warehouse"),
        (lambda there: ldiv_db.plan(there, policy(), rehearse=True), "not rehearsed"),
    ],
)
def test_what_counts_do_not_answer_is_refused_by_name(tmp_path, call, says):
    there = sqlite3.connect(tmp_path / "w.sqlite")
    there.execute("CREATE TABLE people (rid INTEGER, age INTEGER)")
    with pytest.raises(ldiv_db.PolicyError, match=says):
        call(there)


def test_commands_read_a_warehouse_by_its_name(tmp_path, call):
    pytest.importorskip("adbc_driver_sqlite.dbapi")
    with sqlite3.connect(tmp_path / "w.sqlite") as there:
        there.execute("CREATE TABLE people (rid INTEGER, age INTEGER, secret TEXT)")
        there.executemany("INSERT INTO people VALUES (?, ?, ?)", [(i, i // 4, "ab"[i % 2]) for i in range(40)])
    place_there = f"adbc:sqlite:{tmp_path / 'w.sqlite'}"
    asked = ["--qi", "age", "--sensitive", "secret", "--json"]
    ends = call("check", place_there, "people", *asked, "--require", "k:4", "--require", "frequency:2")
    assert (ends.code, ends.json["audits"][0]["classes"]) == (0, 10)
    assert call("profile", place_there, "people", *asked).json["rows"] == 40
    refused = call("check", place_there, "people", *asked, "--require", "k:4", "--into", "failing")
    assert refused.code == 2 and "is a warehouse, of which counts" in refused.out


def test_commands_on_the_ledger_of_a_warehouse_see_all_that_it_has(tmp_path, call):
    pytest.importorskip("adbc_driver_sqlite.dbapi")
    rows = rows_of(random.Random(8), 60)
    lite(tmp_path, rows[:40]).close()
    there, file = f"adbc:sqlite:{tmp_path / 'w.sqlite'}", tmp_path / "policy.yml"

    def run(**asked):
        file.write_text(yaml.safe_dump({k: v for k, v in policy(**asked).items() if v is not None}))
        ran = call("run", there, str(file), "--json")
        assert ran.code == 0, ran.out
        return ran.json

    waiting = call("migrate", there, "--pending", "--json").json["pending"]
    assert "ldiv_run" in waiting and call("migrate", there, "--json").json == {"applied": waiting, "pending": []}
    assert call("migrate", there, "--json").json == {"applied": [], "pending": []}
    night = {"key": "rid", "identifiers": None, "over_time": None, "target": {"table": "nights"}}
    first = run(**night)["rows_published"]
    with closing(sqlite3.connect(tmp_path / "w.sqlite")) as other, other:
        other.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows[40:])
    second = run(**night)["rows_published"]
    found = call("release", "diff", there, "nights", "1", "2", "--json").json
    assert found["rows_first_published"] == second - first > 0
    assert call("release", "check", there, "nights").code == 2
    trees = {name: {"taxonomy": {"flat": True}} for name in ("age", "town")}
    cut = {"algorithm": "cuts", "require": [{"threshold": {"default": 0.6}}], "identifiers": ["rid", "dose"]}
    number = run(quasi_identifiers=trees, **cut)["run_id"]
    recoded = call("sql", "recode", there, number, "--dialect", "sqlite", "--json").json["sql"]
    with closing(sqlite3.connect(tmp_path / "w.sqlite")) as other:
        published = Counter(other.execute("SELECT age, town, secret FROM released"))
        assert Counter(tuple(row[:3]) for row in other.execute(recoded)) == published
    assert call("runs", "withdraw", there, number, "--json").json["run"]["status"] == "withdrawn"
    assert call("taxonomy", "list", there).code == 2


def test_commands_that_need_rows_say_so():
    with pytest.raises(ldiv_db.PolicyError, match="is a warehouse"), open_for_command("snowflake:prod"):
        pass


def test_numbers_without_an_end_are_told():
    with pytest.raises(ldiv_db.DatabaseError, match="or is not a number"):
        drivers.Told().add([Decimal("1.5"), Decimal("NaN")])


WIDENED = [
    ([None, None, 3], "BIGINT"),
    ([1, 2, 2**63], "HUGEINT"),
    ([1, 2.5, 3], "DOUBLE"),
    ([1, Decimal("2.5"), Decimal("3.25")], "DECIMAL(38,2)"),
    ([None, "a", None], "VARCHAR"),
    ([datetime(2020, 1, 1), None, datetime(2020, 1, 1, tzinfo=UTC)], "TIMESTAMP WITH TIME ZONE"),
]


@pytest.mark.parametrize(("values", "kind"), WIDENED)
def test_counts_come_in_parts_whose_values_may_widen_a_column(con, values, kind):
    engine = Engine(con)
    parts = [[(value, 1)] for value in values]
    found = drivers.fetch_rows(engine, "counts", iter(parts), ["value", "n"])
    expected = drivers.fetch_rows(engine, "counts", [[row for part in parts for row in part]], ["value", "n"])
    assert [columns_of(engine, counts)[0].type for counts in (found, expected)] == [kind, kind]
    assert Counter(engine.column(found, "value")) == Counter(engine.column(expected, "value"))
    assert engine.count(found) == len(values)


@pytest.mark.parametrize("values", [[1, "a"], [None, 2.5, "a"]])
def test_parts_of_several_types_are_told(con, values):
    with pytest.raises(ldiv_db.DatabaseError, match="values of several types"):
        drivers.fetch_rows(Engine(con), "counts", [[(value,)] for value in values], ["value"])


@pytest.mark.parametrize(("part_rows", "threads"), [(3, 1), (2, 2)])
def test_one_thread_plans_few_counts_of_rows_that_are_not_divided(part_rows, threads):
    with memory_for_counts(Settings(threads=2)) as here:
        engine = Engine(here)
        spare_threads(engine, engine.load("counts", {"weight": "BIGINT"}, [(1,), (2,)]), part_rows)
        assert engine.snapshot.threads == threads


def test_no_driver_is_asked_for_all_counts_at_once(there, con, monkeypatch):
    """A result of psycopg's has one row: it is streamed. Others are asked for as many as there are in a part."""
    place(there, con, rows_of(random.Random(5), 90))
    monkeypatch.setattr(drivers, "AT_ONCE", 7)
    most, append = [], Engine.append
    monkeypatch.setattr(
        Engine, "append", lambda self, to, by, rows: [most.append(len(rows)), append(self, to, by, rows)]
    )
    if there.dialect == "postgres":
        monkeypatch.setattr(type(there.connection.cursor()), "fetchmany", None)
    columns = [ColumnThere(Identifier("rid"), Identifier("k0"))]
    with memory_for_counts() as here:
        counts = TableThere(Warehouse(there.connection), Relation(("people",))).count(Engine(here), "counts", columns)
        assert here.execute(f"SELECT count(*), sum(k0) FROM {counts.sql()}").fetchall() == [(90, 89 * 45)]
    assert most == [*[7] * 12, 6] or there.dialect == "duckdb"  # which hands on Arrow


def test_a_driver_that_is_not_known_has_to_say_what_it_speaks():
    class Connection:
        def cursor(self):
            raise AssertionError

        commit = cursor

    with pytest.raises(ldiv_db.PolicyError, match="say which SQL it speaks"):
        ldiv_db.run(Connection(), policy())
    with pytest.raises(ldiv_db.PolicyError, match="oracle"):
        ldiv_db.run(Connection(), policy(), dialect="oracle")


def test_columns_with_values_of_several_types_are_told(tmp_path):
    there = sqlite3.connect(tmp_path / "w.sqlite")
    there.execute("CREATE TABLE people (rid INTEGER, age, town TEXT, dose REAL, secret TEXT)")
    there.executemany(
        "INSERT INTO people VALUES (?, ?, 'a', 1.5, ?)", [(i, [1, "x"][i % 2], "ab"[i % 2]) for i in range(9)]
    )
    there.commit()
    with pytest.raises(ldiv_db.DatabaseError, match="int and str"):
        ldiv_db.run(there, policy())


@pytest.mark.engines
@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (OSError("[libpq] server closed the connection: 'Ann'"), ldiv_db.DatabaseError, "cannot count: the server end"),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
)
def test_what_ends_counts_that_come_as_arrow_is_told(con, monkeypatch, error, raised, said):
    pyarrow = pytest.importorskip("pyarrow")
    cursor = type("Cursor", (), {"execute": lambda self, sql: None, "close": lambda self: None})
    there = Warehouse(type("Connection", (), {"adbc_get_info": dict, "cursor": lambda self: cursor()})(), "postgres")

    def parts(ends):
        yield pyarrow.record_batch({"a": [1, 2]})
        if ends:
            raise error
        yield pyarrow.record_batch({"a": [3]})

    def counts(ends):
        schema = pyarrow.schema({"a": pyarrow.int64()})
        reader = pyarrow.RecordBatchReader.from_batches(schema, parts(ends))
        monkeypatch.setattr(cursor, "fetch_record_batch", lambda self: reader, raising=False)
        return there.fetch(Engine(con), "counted", "SELECT 1", ["b"])

    assert con.execute(f"SELECT b FROM {counts(False).sql()}").fetchall() == [(1,), (2,), (3,)]
    with pytest.raises(raised, match=said):
        counts(True)
