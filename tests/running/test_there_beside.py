"""What a table of a warehouse has beside its rows stays when a release is replaced, or is said before it is lost."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sqlglot
from own_names import held, resolve
from recoded import random_case
from servers import DuckDB
from sqlglot import exp
from strategies import search, seeds, some
from there_beds import place, policy, released, rows_of

import ldiv_db
from ldiv_db.database.dialects import written_name, written_table
from ldiv_db.database.names import Relation
from ldiv_db.database.traits_there import TRAITS
from ldiv_db.database.warehouses import Warehouse

#: What gives a table more than rows, and the SELECT that finds it; for PostgreSQL all that is named.
GIVEN = {
    "postgres": (
        ["GRANT SELECT ON released TO PUBLIC", "COMMENT ON COLUMN released.town IS 'as told'",
         "CREATE INDEX named ON released (town)"],
        "SELECT has_table_privilege('public', 'released', 'SELECT'), indexname FROM pg_indexes WHERE tablename = "
        "'released' AND EXISTS (SELECT FROM pg_description WHERE objoid = 'released'::regclass)",
        ["the grants, the comments and the indexes"],
    ),
    "sqlite": (
        ["CREATE INDEX named ON released (town)"],
        "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'released'",
        ["the indexes"],
    ),
    "duckdb": (
        ["COMMENT ON TABLE released IS 'for research'"],
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'released' AND comment IS NOT NULL",
        ["any comments and indexes"],
    ),
    "clickhouse": (
        ["DROP TABLE released", "CREATE TABLE released (age Nullable(String), town Nullable(String),"
         " dose Nullable(String), secret Nullable(String)) ENGINE = Log COMMENT 'for research'"],
        "SELECT comment FROM system.tables WHERE name = 'released' AND engine = 'Log'",
        ["the settings of the engine and the comments"],
    ),
    "snowflake": ([], "", ["any grants, comments, tags, masks, row policies and clusters"]),
    "bigquery": ([], "", ["any grants, descriptions, labels, policy tags, row policies, partitions and clusters"]),
}  # fmt: skip


def lost(result: Any) -> list[str]:
    return [note for note in result.notes if "not kept" in note]


def test_a_table_stays_with_all_that_it_has_or_a_note_says_what_is_lost(there: Any, con: Any, monkeypatch: Any) -> None:
    place(there, con, rows_of(random.Random(31), 20))
    given, found, words = GIVEN[there.dialect]
    assert lost(ldiv_db.run(there.connection, policy())) == []
    for sql in given:
        there.execute(sql)
    there.connection.commit()
    before, sent, execute = there.query(found) if found else [], [], Warehouse.execute
    asked = policy(require=[{"k": 5}])
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "execute", lambda self, sql: (sent.append(sql), execute(self, sql))[1])
        again = ldiv_db.run(there.connection, asked)
    name = written_name("released", there.dialect)
    made = [sql for sql in sent if sql.startswith((f"CREATE OR REPLACE TABLE {name}", f"DROP TABLE IF EXISTS {name}"))]
    overwrites = TRAITS[there.dialect].overwrite
    if overwrites:
        assert lost(again) == made == [] and (not found or (there.query(found) == before and before))
    else:
        assert lost(again) == [f"{words[0]} of released are not kept, as the table is made anew"] and made
        assert before and not there.query(found)
    shown = released(there)
    assert len(shown) == again.loss.rows_published == 20
    # With other columns it is made anew, and what is lost said before.
    for sql in given if not overwrites else ():
        there.execute(sql)
    there.connection.commit()
    put, had = Warehouse.put, []
    monkeypatch.setattr(Warehouse, "put", lambda self, *more: (had.append(self.beside_rows(more[1])), put(self, *more)))
    result = ldiv_db.run(there.connection, asked | {"output": {"class_id": True}})
    why = "its columns are others now" if overwrites else "the table is made anew"
    assert lost(result) == [f"{words[0]} of released are not kept, as {why}"] and had[0]
    assert (not found or not there.query(found)) and len(released(there)) == 20
    assert released(there) == shown or there.dialect != "sqlite"


@pytest.mark.parametrize("values", some([[10.25, 20.5], [10.0, 20.0]], 1))
def test_values_are_not_rounded_to_the_scale_of_the_old_table(there: Any, con: Any, values: list[float]) -> None:
    if there.dialect not in ("postgres", "snowflake"):
        pytest.skip("its driver tells no scale, or its release has texts")
    kind = "NUMERIC(12, 2)"
    there.execute(f"CREATE TABLE people (rid INTEGER, age INTEGER, cost {kind})")
    there.execute(f"INSERT INTO people VALUES {', '.join(f'({i}, {i % 3}, {values[i % 2]})' for i in range(12))}")
    there.connection.commit()
    asked = policy(quasi_identifiers={"age": {"numeric": True}}, identifiers=["rid"], sensitive=["cost"],
                   require=[{"k": 2}])  # fmt: skip
    ldiv_db.run(there.connection, asked)
    columns = "age VARCHAR(40), cost NUMERIC(12, 0)"
    there.execute("DROP TABLE released")
    there.execute(f"CREATE TABLE released ({columns})")
    there.connection.commit()
    ldiv_db.run(there.connection, asked)
    assert {float(cost) for (cost,) in there.query("SELECT cost FROM released")} == set(values)


@search(2, seed=seeds)
def test_each_name_of_what_exchanges_rows_is_one(seed: int) -> None:
    """By each engine's own rules of names; the columns that are written are those of the table, in its order."""
    case = random_case(seed)
    for dialect, traits in TRAITS.items():
        columns = [held(column, dialect) for column in case.columns]
        quoted = ", ".join(written_table(Relation((column,)), dialect) for column in columns)
        table, staged = (written_table(Relation((name,)), dialect) for name in ("released", "ldiv_new"))
        kinds = {name: DuckDB.types[kind] for name, kind in case.columns.items()}
        for written_as in traits.overwrite:
            sql = written_as.format(table=table, rows=f"SELECT * FROM {staged}", columns=quoted)
            tree = sqlglot.parse_one(sql, read=dialect)
            target = tree.find(exp.Table)
            assert target.name == held("released", dialect) or dialect == "bigquery", sql
            for rows in [tree.expression] if isinstance(tree, exp.Insert) else tree.find_all(exp.Subquery):
                plain = rows.unnest().sql(dialect)
                assert [one.alias for one in resolve(plain, dialect, {"ldiv_new": kinds}).selects] == columns
            for written in tree.find_all(exp.Schema, exp.Tuple):
                assert [one.name for one in written.expressions] == columns
