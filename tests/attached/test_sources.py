"""Sources as they are: patterns and folders of files, packed text, queries, frames, databases that a policy names."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from homes import PATIENTS as ROWS
from homes import TREE, policy_document
from refusals import refuses
from strategies import some
from typer.testing import CliRunner

import ldiv_db
from ldiv_db.commands.cli import app

COLUMNS = ("name", "age", "country", "disease", "ward")


def document(source: Any, **changes: Any) -> dict[str, Any]:
    """The policy of a source, which may be no name."""
    return {**policy_document(**changes), "source": source}


@pytest.fixture(scope="module")
def first_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the taxonomy and the same rows in files of several kinds."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "country.csv").write_text(TREE)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE patients (name VARCHAR, age INTEGER, country VARCHAR, disease VARCHAR, ward VARCHAR)")
        con.executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?)", ROWS)
        con.execute(f"COPY patients TO '{folder}/hive' (FORMAT parquet, PARTITION_BY (ward))")
        con.execute(f"COPY (FROM patients WHERE age < 40) TO '{folder}/part-1.parquet'")
        con.execute(f"COPY (FROM patients WHERE age >= 40) TO '{folder}/part-2.parquet'")
    text = "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in ROWS)])
    (folder / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    lines = [json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in ROWS]
    (folder / "lines.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture
def folder(first_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(first_folder, tmp_path, dirs_exist_ok=True)


def released(con: Any) -> list[tuple[Any, ...]]:
    return sorted(con.execute("SELECT age, country, disease, ward FROM released").fetchall())


@pytest.fixture(scope="module")
def expected(first_folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE patients AS FROM '{first_folder}/lines.jsonl'")
        ldiv_db.run(con, document("patients"), folder=first_folder)
        return released(con)


@pytest.mark.parametrize("source", some(["hive", "packed.csv.gz", "hive/*/*.parquet", "part-*.parquet", "lines.jsonl"]))
def test_files_are_read_as_they_are(source: str, folder: Path, expected: list[tuple[Any, ...]]) -> None:
    with duckdb.connect() as con:
        assert ldiv_db.run(con, document(source), folder=folder).source == source
        assert released(con) == expected


def test_files_that_are_not_there(folder: Path, con: Any) -> None:
    for source in ("none-*.parquet", "none.csv.gz"):
        with refuses("source"):
            ldiv_db.run(con, document(source), folder=folder)
    (folder / "odd[1].csv").write_text("a\n1\n")
    with refuses("source"):
        ldiv_db.run(con, document("odd[1].csv"), folder=folder)


def test_a_release_is_never_among_the_files_of_its_source(folder: Path, con: Any) -> None:
    for source, target in (("part-*.parquet", "part-3.parquet"), ("hive", "hive/ward=W9.parquet")):
        with refuses("target.file"):
            ldiv_db.run(con, document(source, target={"file": target}), folder=folder)


def test_a_query_is_a_source(folder: Path, expected: list[tuple[Any, ...]]) -> None:
    query = f"SELECT * FROM read_parquet('{folder}/part-*.parquet') WHERE disease <> 'Plague';"
    with duckdb.connect() as con:
        result = ldiv_db.run(con, document({"query": query}), folder=folder)
        assert released(con) == expected
        assert result.source.startswith("query ") and "Plague" not in json.dumps(result.as_dict())
        assert con.execute("SELECT count(*) FROM ldiv.run WHERE source LIKE '%Plague%'").fetchall() == [(0,)]
        assert con.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE t",
        "SELECT 1; DROP TABLE t",
        "SELECT 1; SELECT 2",
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
        "COPY t TO 'x.csv'",
        "",
        "SELECT nextval('s') AS a",
        "SELECT * FROM t WHERE random() < 0.5",
        "SELECT * FROM (SELECT * FROM checkpoint())",
        "SELECT * FROM postgres_query('c', 'DELETE FROM t')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT (SELECT count(*) FROM force_checkpoint()) AS a",
        "SELECT * FROM nowhere",
    ],
)
def test_a_query_that_does_more_than_read_is_refused(query: str, folder: Path, con: Any) -> None:
    con.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE SEQUENCE s")
    with refuses("source.query"):
        ldiv_db.run(con, document({"query": query}), folder=folder)
    assert con.execute("FROM t").fetchall() == [(1,)]


def test_a_relation_of_the_client_is_a_source(folder: Path, expected: list[tuple[Any, ...]]) -> None:
    with duckdb.connect() as con:
        relation = con.sql(f"FROM '{folder}/lines.jsonl'")
        assert ldiv_db.run(con, document(relation), folder=folder).source == "frame"
        assert released(con) == expected


@pytest.mark.parametrize("library", some(["polars", "pandas", "pyarrow"]))
def test_a_frame_is_a_source(library: str, folder: Path, expected: list[tuple[Any, ...]]) -> None:
    module = pytest.importorskip(library)
    values = {name: [row[i] for row in ROWS] for i, name in enumerate(COLUMNS)}
    frame = module.table(values) if library == "pyarrow" else module.DataFrame(values)
    with duckdb.connect() as con:
        ldiv_db.run(con, document(frame), folder=folder)
        assert released(con) == expected


@pytest.mark.parametrize("source", [{}, {"query": 1}, {"sql": "SELECT 1"}, {"query": "SELECT 1", "table": "t"}])
def test_a_mapping_that_is_no_query_is_refused(source: Any, folder: Path, con: Any) -> None:
    with refuses("source"):
        ldiv_db.run(con, document(source), folder=folder)


def test_what_is_no_frame_is_refused(folder: Path, con: Any) -> None:
    with refuses("source"):
        ldiv_db.run(con, document(object()), folder=folder)


def test_a_policy_names_databases(
    folder: Path, expected: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect(str(folder / "other.duckdb")) as con:
        con.execute(f"CREATE TABLE patients AS FROM '{folder}/lines.jsonl'")
    written = document("crm.patients", databases={"crm": "other.duckdb"})
    with duckdb.connect() as con:
        ldiv_db.run(con, written, folder=folder)
        assert released(con) == expected
        assert con.execute("SELECT count(*) FROM duckdb_databases() WHERE database_name = 'crm'").fetchall() == [(0,)]
        with refuses("databases"):
            ldiv_db.run(con, {**written, "databases": {"memory": "other.duckdb"}}, folder=folder)


def test_a_policy_names_a_database_of_another_kind(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME_DSN", home.address.partition(":")[2])
    home.write_policy(
        source="crm.patients", databases={"crm": f"{home.kind}:${{HOME_DSN}}"}, target={"file": "released.parquet"}
    )
    called = CliRunner().invoke(app, ["run", ":memory:", str(home.policy), "--json"])
    assert called.exit_code == 0, called.output
    with duckdb.connect() as con:
        assert con.execute(f"SELECT count(*) FROM '{home.folder}/released.parquet'").fetchall() == [(24,)]
