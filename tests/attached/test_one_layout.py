"""Tables of one layout in databases that DuckDB attaches are each read for themselves."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db.database.connections import load_extension, merges_parts, open_database, parts_apart

#: Two tables of one layout in one file, and one in another: statements by which scans of them were taken for one, as
#: duckdb/duckdb#24781 has them, and their answers.
APART = [
    ("SELECT (SELECT count(*) FROM a.flows WHERE n > 0), (SELECT count(*) FROM b.flows WHERE n > 0)", [(3, 5)]),
    ("SELECT (SELECT string_agg(s, '' ORDER BY n) FROM a.flows), (SELECT string_agg(s, '' ORDER BY n) FROM a.other)",
     [("abc", "vw")]),
    ("WITH x AS (SELECT count(*) c FROM a.flows WHERE n > 0), y AS (SELECT count(*) c FROM a.other WHERE n > 0)"
     " SELECT x.c, y.c FROM x, y", [(3, 2)]),
    ("SELECT count(*) FROM a.flows WHERE n > 0 UNION ALL SELECT count(*) FROM b.flows WHERE n > 0 ORDER BY 1",
     [(3,), (5,)]),
]  # fmt: skip
#: Tables, and arms of a union over one join of theirs, with what the arms have: those of duckdb/duckdb#24624, which
#: have nothing by DuckDB 2 (it reads a substring that begins so far before the text otherwise), and such as
#: duckdb/duckdb#25819 has, where one arm had its last column for both that it joins.
_NONE = "FROM t2 LEFT JOIN t0 ON true WHERE"
_NOT = "NOT t2.c0 AND substring(t0.c1 FROM -4294967296) <> t0.c1"
_PAIRS = "FROM pairs JOIN q x ON x.id = a JOIN q y ON y.id = b"
ARMS = [
    ("CREATE TABLE t2 AS SELECT false AS c0; CREATE TABLE t0 AS SELECT 'a' AS c1",
     [f"SELECT * {_NONE} NOT ({_NOT})", f"SELECT * {_NONE} ({_NOT}) IS NULL"],
     [(False, "a")] if duckdb.__version__ < "2" else []),
    ("CREATE TABLE q AS SELECT i AS id, 'r' || i AS r FROM range(1, 4) t(i);"
     " CREATE TABLE pairs AS SELECT s.id AS a, t.id AS b FROM q s JOIN q t ON s.r < t.r",
     [f"SELECT a + b, y.id || y.r {_PAIRS} WHERE x.r < y.r", f"SELECT a, x.r || y.r {_PAIRS} WHERE x.r < y.r"],
     [(1, "r1r2"), (1, "r1r3"), (2, "r2r3"), (3, "2r2"), (4, "3r3"), (5, "3r3")]),
]  # fmt: skip


def make(path: Path, **tables: str) -> None:
    with sqlite3.connect(path) as made:
        for name, letters in tables.items():
            made.execute(f"CREATE TABLE {name} (n INTEGER, s TEXT)")
            made.executemany(f"INSERT INTO {name} VALUES (?, ?)", enumerate(letters, 1))


@pytest.mark.parametrize(("sql", "answer"), APART)
def test_scans_of_one_layout_are_not_one(tmp_path: Path, needs: Any, sql: str, answer: list[Any]) -> None:
    needs("sqlite")
    make(tmp_path / "a.db", flows="abc", other="vw")
    make(tmp_path / "b.db", flows="defgh")
    with open_database(":memory:") as con:
        load_extension(con, "sqlite_scanner", "SQLite")
        for name in "ab":
            con.execute(f"ATTACH '{tmp_path / name}.db' AS {name} (TYPE sqlite)")
        assert con.execute(sql).fetchall() == answer


def test_a_run_publishes_the_rows_of_both_tables(tmp_path: Path, needs: Any) -> None:
    needs("sqlite")
    make(tmp_path / "a.db", flows="ab" * 4, other="cd" * 10)
    query = "SELECT DISTINCT ON (n) s, s AS dx FROM flows UNION ALL SELECT DISTINCT ON (n) s, s FROM other"
    policy = {"source": {"query": query}, "target": "published", "quasi_identifiers": {"s": {}}, "sensitive": ["dx"],
              "require": [{"k": 4}]}  # fmt: skip
    ldiv_db.run(f"sqlite:{tmp_path / 'a.db'}", policy)
    with sqlite3.connect(tmp_path / "a.db") as made:
        found = made.execute("SELECT dx, count(*) FROM published GROUP BY 1 ORDER BY 1").fetchall()
    assert found == [("a", 4), ("b", 4), ("c", 10), ("d", 10)]


@pytest.mark.parametrize(("tables", "arms", "answer"), ARMS)
def test_arms_that_share_a_join_have_together_what_they_have_apart(
    tables: str, arms: list[str], answer: list[Any]
) -> None:
    with open_database(":memory:") as con:
        con.execute(tables)
        assert sorted(row for arm in arms for row in con.execute(arm).fetchall()) == answer
        assert sorted(con.execute(" UNION ALL ".join(arms)).fetchall()) == answer


def test_what_was_set_on_a_connection_of_the_caller_s_is_put_back_by_the_last() -> None:
    con = duckdb.connect()
    con.execute("SET disabled_optimizers = 'top_n'")

    def off() -> str:
        return str(con.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0][0])

    with parts_apart(con):
        other = parts_apart(con.cursor())
        other.__enter__()
        assert not merges_parts(off()) and "top_n" in off()
    assert not merges_parts(off())
    other.__exit__(None, None, None)
    assert off() == "top_n"


def test_settings_that_are_locked_are_refused_where_parts_may_be_merged() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT i % 3 AS a, i % 2 AS d FROM range(12) r(i); SET lock_configuration = true")
    policy = {"source": "t", "target": "o", "quasi_identifiers": ["a"], "sensitive": ["d"], "require": [{"k": 2}]}
    if merges_parts(""):
        with pytest.raises(ldiv_db.PolicyError, match="disabled_optimizers: is locked"):
            ldiv_db.run(con, policy)
    else:
        assert ldiv_db.run(con, policy).loss.rows_published == 12
