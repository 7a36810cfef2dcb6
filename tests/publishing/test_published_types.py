"""Types of a release say nothing beyond its rows: sources of which the same is published have one schema."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.recoding.statement import find_run, recoding_sql

#: What only the type of the one source says.
SECRET = "Ebola (patient 200)"
KINDS = {
    "flat": "d",
    "listed": "[d, d]",
    "fixed": "CAST([d, d] AS {kind}[2])",
    "nested": "{{'ENUM': d, 'a b': [{{'x': d}}]}}",
    "mapped": "MAP {{d: 1}}",
    "one_of": "CAST(union_value(a := d) AS UNION(a {kind}, b INTEGER))",
}
PEOPLE = (
    "SELECT i AS id, i % 6 AS age, CAST(i % 2 = 0 AS BOOLEAN) AS b, ['Gout', 'Flu', 'it''s'][i % 3 + 1] AS d"
    " FROM (SELECT CAST(range AS INTEGER) AS i FROM range(24))"
)
ONCE = {
    "source": "people", "quasi_identifiers": ["age", "b"], "sensitive": ["flat"], "nulls": "suppress",
    "keep": ["listed", "fixed", "nested", "mapped", "one_of"], "require": [{"distinct": 2}], "seed": 1,
    "identifiers": ["id"], "algorithm": "topdown",
}  # fmt: skip


def fill(con: Any, enums: bool) -> None:
    """The table `people`: of text, or of enums with a default, a check and comments, where a row is left out."""
    kind = f"ENUM ('{SECRET}', 'it''s', 'Gout', 'Flu')" if enums else "VARCHAR"
    con.execute(f"CREATE TYPE disease AS {kind}") if enums else None
    of = "disease" if enums else "VARCHAR"
    columns = ", ".join(f"{value.format(kind=of)} AS {name}" for name, value in KINDS.items())
    con.execute(
        f"CREATE TABLE made AS SELECT id, age, b, {columns}"
        f" FROM (SELECT * REPLACE (CAST(d AS {of}) AS d) FROM ({PEOPLE}))"
    )
    listed = [f"{name} {sort}" for name, sort, *_ in con.execute("DESCRIBE made").fetchall()]
    if enums:
        listed = [
            f"{one} DEFAULT '{SECRET}' CHECK (flat <> 'no {SECRET}')" if one.startswith("flat") else one
            for one in listed
        ]
    con.execute(f"CREATE TABLE people ({', '.join(listed)}); INSERT INTO people FROM made; DROP TABLE made")
    if enums:
        con.execute(f"COMMENT ON COLUMN people.flat IS '{SECRET}'; COMMENT ON TABLE people IS '{SECRET}'")
        con.execute(f"INSERT INTO people (id, flat) VALUES (99, '{SECRET}')")


def schema_of(con: Any) -> list[Any]:
    """All that the database says of tables that are not the source's or the ledger's, and their rows."""
    tables = con.execute(
        "SELECT schema_name, table_name, comment, sql, check_constraint_count FROM duckdb_tables()"
        " WHERE table_name <> 'people' AND schema_name <> 'ldiv' ORDER BY ALL"
    ).fetchall()
    columns = con.execute(
        "SELECT table_name, column_name, data_type, column_default, is_nullable, comment FROM duckdb_columns()"
        " WHERE table_name <> 'people' AND schema_name <> 'ldiv' AND NOT internal ORDER BY ALL"
    ).fetchall()
    rows = [con.execute(f'FROM "{schema}"."{name}"').fetchall() for schema, name, *_ in tables]
    assert tables and all(rows)
    return [tables, columns, rows]


def released(folder: Path, enums: bool, way: str) -> list[Any]:
    """What is published of one source: schemas and rows, and the bytes of files without an identity of their own."""
    folder.mkdir()
    with duckdb.connect(str(folder / "source.duckdb")) as con:
        fill(con, enums)
        if way in POLICIES:
            prepared, changes, times = POLICIES[way]
            con.execute(prepared.format(folder=folder)) if prepared else None
            for _ in range(times):
                ldiv_db.run(con, ONCE | {"target": "released"} | changes, folder)
            con.execute("DROP VIEW IF EXISTS seen")
            return schema_of(con)
        return WAYS[way](con, folder)


SERIES = {"target": {"prefix": "released"}, "key": "id"}
#: What is done first, what the policy says, and how often it is run.
POLICIES: dict[str, tuple[str, dict[str, Any], int]] = {
    "table": ("", {}, 1),
    "replaced": ("CREATE TABLE released (flat INTEGER)", {"target": {"table": "released", "if_exists": "replace"}}, 1),
    "appended": ("", {"target": {"table": "released", "if_exists": "append"}}, 2),
    "of a view": ("CREATE TEMP VIEW seen AS FROM people", {"source": "seen"}, 1),
    "kept types": (
        "",
        {"output": {"types": "keep", "bounds": True}, "quasi_identifiers": ["age"], "identifiers": ["id", "b"]},
        1,
    ),
    "of a file": (
        "COPY (SELECT * EXCLUDE (one_of) FROM people) TO '{folder}/people.parquet'",
        {"source": "people.parquet", "keep": ["listed", "fixed", "nested", "mapped"]},
        1,
    ),
    "series": ("", SERIES | {"identifiers": [], "algorithm": "bsgi"}, 2),
    # Of a decomposition quasi-identifiers are published as they are, enums among them.
    "pairs": (
        "",
        SERIES
        | {
            "quasi_identifiers": ["age", "flat"], "sensitive": {"listed": {"l": 2}, "nested": {"l": 2}},
            "identifiers": ["b"], "algorithm": {"name": "decomposition_plus", "primary": "listed"},
            "keep": ["fixed", "mapped", "one_of"], "require": [],
        },
        1,
    ),
    "anatomy": (
        "",
        SERIES
        | {
            "quasi_identifiers": ["age", "listed"], "sensitive": {"flat": {"l": 2}}, "identifiers": ["b", "nested"],
            "keep": ["fixed", "mapped", "one_of"], "algorithm": "anatomy", "require": [],
        },
        1,
    ),
}  # fmt: skip


def _of_frame(con: Any, folder: Path) -> list[Any]:
    keep = ["listed", "nested", "mapped"]  # DuckDB cannot give other connections an array of enums
    policy = {key: value for key, value in ONCE.items() if key != "source"} | {"keep": keep}
    relation = ldiv_db.run(con.sql("SELECT * EXCLUDE (fixed, one_of) FROM people"), policy).table()
    return [[str(kind) for kind in relation.types], relation.fetchall()]


def _duckdb(con: Any, folder: Path) -> list[Any]:
    ldiv_db.run(con, ONCE | {"target": {"file": "r.duckdb", "table": "released"}}, folder)
    assert SECRET.encode() not in (folder / "r.duckdb").read_bytes()
    with duckdb.connect(str(folder / "r.duckdb")) as other:
        return schema_of(other)


def _file(name: str, con: Any, folder: Path) -> list[Any]:
    keep = [name for name in KINDS if name not in ("flat", "one_of")]
    ldiv_db.run(con, ONCE | {"target": name, "keep": keep, "identifiers": ["id", "one_of"]}, folder)
    return [(folder / name).read_bytes()]


def _statement(con: Any, folder: Path) -> list[Any]:
    """The recoding as SQL, which makes a table of the source."""
    policy = ONCE | {"algorithm": "cuts", "require": [{"frequency": 2}], "target": "released"}
    engine = Engine(con)
    sql = recoding_sql(engine, find_run(engine, ldiv_db.run(con, policy).run_id), "duckdb")
    con.execute(f"CREATE TABLE again AS {sql}")
    return schema_of(con)


WAYS = {
    "database file": _duckdb, "parquet": partial(_file, "r.parquet"), "csv": partial(_file, "r.csv"),
    "statement": _statement, "of a frame": _of_frame,
}  # fmt: skip


@pytest.mark.parametrize("way", some([*WAYS, *POLICIES]))
def test_sources_of_which_the_same_is_published_have_one_schema(tmp_path, way):
    first, second = (released(tmp_path / name, enums, way) for name, enums in (("enums", True), ("texts", False)))
    assert first == second
    assert SECRET not in repr(first) and "ENUM(" not in repr(first)


def test_the_order_of_an_enum_is_required_of_nobody() -> None:
    """The release has texts, whose order is another one: what was required would not be what is audited."""
    with duckdb.connect() as con:
        fill(con, True)
        ordered = ONCE | {"require": [{"t_closeness": {"t": 0.9, "distance": "ordered"}}]}
        with pytest.raises(ldiv_db.PolicyError, match="the order of an ENUM is not published"):
            ldiv_db.run(con, ordered)
        equal = {"require": [{"t_closeness": {"t": 0.9, "distance": "equal"}}], "target": "told"}
        assert ldiv_db.plan(con, ONCE | equal)
