"""Rows that go to a warehouse: in bulk, whole, and by as few statements as its driver allows."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from types import ModuleType, SimpleNamespace

import duckdb
import pytest
import sqlglot

from ldiv_db.database import sending
from ldiv_db.database.counted import memory_for_counts
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation, literal
from ldiv_db.database.sending import Sent, send_rows
from ldiv_db.database.traits_there import TRAITS
from ldiv_db.database.warehouses import Warehouse

#: Rows of all types, with texts that a statement, a file or a pattern could take for something else.
TEXTS = ["it's ''", "\\n \\\\ \\", '"q" {x} ${y} %s %%', "", "Łódź\n", "NULL", "a,b\t;--"]
ROWS = f"""
    SELECT i AS k0,
        CASE WHEN i % 9 > 0 THEN [{", ".join(map(literal, TEXTS))}][1 + i % {len(TEXTS)}] || i % 7 END AS k1,
        DATE '1950-01-01' + (i * 13 % 20000)::INTEGER AS k2, i / 8 AS k3,
        CASE WHEN i % 5 > 0 THEN TIMESTAMP '2001-02-03 04:05:06.5' + to_minutes(i) END AS k4,
        i % 2 = 0 AS k5, NULL::VARCHAR AS k6
    FROM range"""
LENT = Relation(("ldiv", "ldiv_plan_1"))


@pytest.fixture
def engine():
    with memory_for_counts() as here:
        yield Engine(here)


def rows_of(engine, number):
    return engine.copy("rows", engine.view_of("made", f"{ROWS}({number}) AS r (i)"))


def plain(rows):
    """Rows to compare: some drivers give times as texts, and truth as a number."""
    return sorted(repr([*map(plain_value, row)]) for row in rows)


def plain_value(value):
    if isinstance(value, datetime | date):
        return str(value)[:19]
    return float(value) if isinstance(value, Decimal | bool) else value


def sent_by(connection, dialect, engine, rows, table=LENT, lent=True):
    send_rows(Sent(engine, rows, connection, connection.cursor(), table, dialect, lent))


@pytest.mark.parametrize("lent", [True, False])
def test_rows_arrive_whole_in_bulk(there, engine, monkeypatch, lent):
    server = Warehouse(there.connection)
    rows, table = rows_of(engine, 2_500), LENT if server.traits.schema else Relation(LENT.parts[1:])
    if there.dialect != "sqlite" and (lent or there.dialect != "snowflake"):
        monkeypatch.setattr(sending, "_bind", None)
    server.make_schema(table)
    if lent:
        server.lend(engine, rows, table)
    else:
        server.make_table(table, sending.columns_of(engine, rows))
        server.send(engine, rows, table)
    there.connection.commit()
    found = server.rows(f"SELECT k0, k1, k2, k3, k4, k5, k6 FROM {server.name(table)}")
    expected = engine.columns(rows, *(f"k{i}" for i in range(7)))
    if there.dialect == "sqlite":  # whose times are texts
        found, expected = ([row[:2] for row in listed] for listed in (found, expected))
    assert plain(found) == plain(expected)
    server.drop(table)


class Transpiled:
    """A driver that runs statements in DuckDB, and takes no more than one of Databricks' or Trino's does."""

    def __init__(self, dialect, most_values, most_length):
        self.database, self.sent = duckdb.connect(":memory:", config={"threads": 1}), []
        self.dialect, self.most_values, self.most_length = dialect, most_values, most_length
        self.database.execute("CREATE SCHEMA ldiv")

    def cursor(self):
        return self

    def execute(self, sql, values=()):
        assert len(values) <= self.most_values and len(sql) <= self.most_length
        self.sent.append(sql)
        (tree,) = sqlglot.parse(sql, read=self.dialect)
        self.database.execute(tree.sql("duckdb"), values)


@pytest.mark.parametrize(("dialect", "most_values"), [("databricks", 255), ("trino", 0)])
def test_statements_of_literals_are_as_long_as_they_may_be(engine, monkeypatch, dialect, most_values):
    monkeypatch.setitem(TRAITS, dialect, replace(TRAITS[dialect], written_down=20_000))
    rows, there = rows_of(engine, 400), Transpiled(dialect, most_values, 20_000)
    kinds = ("BIGINT", "VARCHAR", "DATE", "DOUBLE", "TIMESTAMP", "BOOLEAN", "VARCHAR")
    there.database.execute(f"CREATE TABLE ldiv.ldiv_plan_1 ({', '.join(f'k{i} {k}' for i, k in enumerate(kinds))})")
    sent_by(there, dialect, engine, rows)
    found = there.database.execute("FROM ldiv.ldiv_plan_1").fetchall()
    assert plain(found) == plain(engine.columns(rows, *(f"k{i}" for i in range(7))))
    lengths = [len(sql) for sql in there.sent]
    assert min(lengths[:-1]) > 19_000


def test_a_dialect_that_binds_few_values_has_literals():
    assert TRAITS["databricks"].written_down and TRAITS["trino"].written_down < 1_000_000


def test_the_client_of_clickhouse_connect_sends_a_file(engine):
    """A stub that takes what the driver's documentation says of `raw_insert`; it was never run against a server."""
    sent = []

    def raw_insert(table, column_names=None, insert_block=None, settings=None, fmt=None, compression=None):
        lines = insert_block.read().decode()
        sent.append((table, column_names, fmt, lines.count("\n")))

    there = SimpleNamespace(client=SimpleNamespace(raw_insert=raw_insert), cursor=SimpleNamespace)
    sent_by(there, "clickhouse", engine, rows_of(engine, 300))
    assert sent == [('"ldiv"."ldiv_plan_1"', [f"k{i}" for i in range(7)], "JSONEachRow", 300)]


def test_a_driver_without_a_bulk_way_binds_values(engine, monkeypatch):
    """Marks are of the style that its module tells, and a statement has a thousand rows."""
    module = ModuleType("some_driver")
    module.paramstyle = "numeric"
    monkeypatch.setitem(sys.modules, "some_driver", module)
    sent = []

    class Driver:
        __module__ = "some_driver"

        def cursor(self):
            return SimpleNamespace(execute=lambda sql, values: sent.append((sql, values)))

    sent_by(Driver(), "redshift", engine, rows_of(engine, 2_300))
    assert [len(values) for _, values in sent] == [7_000, 7_000, 2_100]
    assert sent[0][0].startswith('INSERT INTO "ldiv"."ldiv_plan_1" ("k0", ') and sent[0][0].endswith(":6999, :7000)")


def test_a_file_of_rows_is_gone_once_it_is_read(engine):
    sent = Sent(engine, rows_of(engine, 10), None, None, LENT, "clickhouse")
    with sent.file("json") as path:
        assert path.exists() and path.parent.stat().st_mode & 0o077 == 0
    assert not path.parent.exists()
