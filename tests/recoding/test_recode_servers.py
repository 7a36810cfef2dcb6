"""The recoding of a run as one SELECT, run by the databases that it is written for: it gives the published rows."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from recoded import Case, Recoded, published, recoded
from servers import DuckDB, Server, comparable
from times import seeds

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.traits_there import DIALECTS
from ldiv_db.recoding.statement import find_run, recoding_sql

#: How many random cases a server gets: Spark takes seconds for each, the others a tenth of one.
CASES = {"spark": 6, "bigquery": 12}
POLICY = {
    "source": '"my source"', "target": "out.released", "sensitive": ["group"], "seed": 1,
    "require": [{"frequency": 2}], "algorithm": {"name": "cuts", "scheme": "vioRec"},
}  # fmt: skip


@pytest.mark.slow
def test_random_releases_are_what_the_select_gives(server: Server) -> None:
    tried = 0
    for seed in seeds(CASES.get(server.dialect, 30)):
        made = recoded(seed, server.plain_names)
        if made is not None:
            tried += 1
            assert made.differs(server) == "", seed
    assert tried


def run_of(folder: Path, columns: dict[str, str], rows: list[tuple[Any, ...]], policy: dict[str, Any]) -> Recoded:
    """A run on a table `my source` of its own."""
    case = Case(columns, rows, POLICY | policy)
    server = DuckDB()
    case.place(server, folder)
    result = ldiv_db.run(server.connection, case.policy, folder=folder)
    return Recoded(case, Engine(server.connection), result.run_id, published(server, case))


def test_products_of_places_and_thresholds_exceed_32_bits(server: Server, tmp_path: Path) -> None:
    """Places in a class times a common multiple of the thresholds: Spark counts places in 32 bits."""
    rows = [(1, "abc"[i % 7 % 3]) for i in range(900)]
    require = [{"threshold": {"default": "0.8123", "a": "0.3967"}}]
    policy = {"quasi_identifiers": {"age": {"taxonomy": {"ranges": [5]}}}, "require": require}
    made = run_of(tmp_path, {"age": "integer", "group": "text"}, rows, policy)
    assert 0 < sum(made.release.values()) < 900 and made.differs(server) == ""


@pytest.mark.slow
def test_a_taxonomy_of_thousands_of_leaves(server: Server, tmp_path: Path) -> None:
    """The CASE has a branch for each label and a list of its leaves; the statement has some 30,000 characters."""
    tree = {"*": {f"town {i}": {f"street {i}.{j} 'é'": {} for j in range(8)} for i in range(150)}}
    (tmp_path / "streets.json").write_text(json.dumps(tree))
    leaves = [leaf for below in tree["*"].values() for leaf in below]
    rows = [(leaf, "ab"[i % 2]) for i, leaf in enumerate(leaves)]
    policy = {"quasi_identifiers": {"street": {"taxonomy": {"file": "streets.json"}}}, "require": [{"frequency": 2}]}
    made = run_of(tmp_path, {"street": "text", "group": "text"}, rows, policy | {"algorithm": {"name": "tds"}})
    assert len(made.sql(server.dialect)) > 20_000
    assert sum(made.release.values()) == 1200 and made.differs(server) == ""


def test_plain_names_are_found_as_the_server_folds_them(server: Server, tmp_path: Path) -> None:
    rows = [(day % 4, f"t{day % 3}", f"s{day}", day % 2 == 0) for day in range(12)]
    policy = {
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [2, 4]}}, "Home Town": {"taxonomy": {"flat": True}}},
        "sensitive": ["user"], "keep": ["q1"],
    }  # fmt: skip
    columns = {"age": "integer", "Home Town": "text", "user": "text", "q1": "boolean"}
    made = run_of(tmp_path, columns, rows, policy | {"algorithm": {"name": "cuts", "scheme": "none"}})
    assert made.differs(server) == ""
    sql = recoding_sql(made.engine, find_run(made.engine, made.run_id), server.dialect, "patients")
    server.create("patients", list(columns.items()), rows)
    assert comparable(server.query(sql)) == made.release
    server.drop("patients")


def test_numbers_of_many_digits_are_told_apart(server: Server, tmp_path: Path) -> None:
    """Neighbours that a floating number would make one."""
    rows = [(Decimal(f"{i % 2}123456789.0{i % 9}") / 1, f"s{i}") for i in range(18)]
    policy = {
        "quasi_identifiers": {"sum": {"taxonomy": {"flat": True}}},
        "algorithm": {"name": "cuts", "scheme": "none"},
    }
    assert run_of(tmp_path, {"sum": "decimal", "group": "text"}, rows, policy).differs(server) == ""


def test_years_far_apart(server: Server, tmp_path: Path) -> None:
    """Days from 1900 to 2299, which ClickHouse has; and moments of microseconds."""
    days = [date(1900, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2149, 6, 7), date(2299, 12, 30)]
    rows = [(day, datetime(1969, 12, 31, 23, 59, 59, 999990) + timedelta(microseconds=5 * (i % 5)), f"s{i}")
            for i, day in enumerate(days * 2)]  # fmt: skip
    policy = {
        "quasi_identifiers": {"born": {"taxonomy": {"dates": ["day", "year"]}}, "seen": {"taxonomy": {"flat": True}}},
        "algorithm": {"name": "cuts", "scheme": "none"},
    }  # fmt: skip
    assert run_of(tmp_path, {"born": "date", "seen": "timestamp", "group": "text"}, rows, policy).differs(server) == ""


@pytest.mark.parametrize(
    ("kind", "value", "taxonomy"),
    [
        ("FLOAT", "i % 4 / 10", {"flat": True}),
        ("TIME", "TIME '10:00:00' + to_hours(i % 4)", {"flat": True}),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ '2001-01-01 00:00:00+00' + to_hours(i % 4)", {"flat": True}),
        ("DOUBLE", "CASE WHEN i % 2 = 0 THEN CAST('nan' AS DOUBLE) ELSE 1 END", {"flat": True}),
    ],
)
def test_values_that_databases_write_otherwise_are_refused(con: Any, kind: str, value: str, taxonomy: Any) -> None:
    """In all dialects but DuckDB's, where a value's text is that of the run's labels."""
    con.execute(f"CREATE TABLE t AS SELECT CAST({value} AS {kind}) AS x, concat('s', i) AS s FROM range(8) AS r(i)")
    policy = {
        "source": "t", "target": "out.released", "sensitive": ["s"], "quasi_identifiers": {"x": {"taxonomy": taxonomy}},
        "require": [{"frequency": 2}], "algorithm": {"name": "cuts", "scheme": "none"},
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    engine = Engine(con)
    run = find_run(engine, result.run_id)
    rows = con.execute(recoding_sql(engine, run, "duckdb")).fetchall()
    assert sorted(rows) == sorted(con.execute("SELECT CAST(x AS VARCHAR), s FROM out.released").fetchall())
    for dialect in set(DIALECTS) - {"duckdb"}:
        with pytest.raises(
            ldiv_db.PolicyError, match=f"--dialect: x is .*, whose values {dialect} may write otherwise"
        ):
            recoding_sql(engine, run, dialect)
