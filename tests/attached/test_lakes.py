"""Tables of Delta Lake and Iceberg, written by other programs' own libraries, as sources."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from homes import PATIENTS, TREE, policy_document
from refusals import refuses

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.sources import files_of

Needs = Callable[[str], None]
NAMES = ("name", "age", "country", "disease", "ward")
#: Rows that are written and deleted again: their files are still there, and are not the table's.
DELETED = [(f"D{i}", 99, "Norway", "Plague", "W9") for i in range(6)]


def arrow(rows: list[tuple[Any, ...]]) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({name: [row[i] for row in rows] for i, name in enumerate(NAMES)})


def write_delta(folder: Path) -> Path:
    """The patients in two versions, by wards, after others that were deleted."""
    deltalake = pytest.importorskip("deltalake")
    path = folder / "visits"
    for rows in (DELETED, PATIENTS[:12], PATIENTS[12:]):
        deltalake.write_deltalake(str(path), arrow(rows), mode="append", partition_by=["ward"])
    deltalake.DeltaTable(str(path)).delete("disease = 'Plague'")
    return path


def write_iceberg(folder: Path) -> Path:
    """The same; the file of the current state is returned, which the catalog alone knows."""
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("clinic")
    table = catalog.create_table("clinic.visits", schema=arrow(PATIENTS).schema)
    for rows in (DELETED, PATIENTS[:12], PATIENTS[12:]):
        table.append(arrow(rows))
    table.delete("disease = 'Plague'")
    return Path(table.metadata_location.removeprefix("file://"))


WRITERS: dict[str, Callable[[Path], Path]] = {"delta": write_delta, "iceberg": write_iceberg}


def published(source: Any, folder: Path, **changes: Any) -> list[tuple[Any, ...]]:
    (folder / "country.csv").write_text(TREE)
    with duckdb.connect() as con:
        con.execute("CREATE TABLE patients (name VARCHAR, age BIGINT, country VARCHAR, disease VARCHAR, ward VARCHAR)")
        con.executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?)", PATIENTS)
        ldiv_db.run(con, {**policy_document(**changes), "source": source}, folder=folder)
        return sorted(con.execute("SELECT age, country, disease, ward FROM released").fetchall())


@pytest.fixture(scope="module")
def table_of(needs: Needs, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    """A folder with a table of a kind, which nobody changes, and the table."""

    @functools.cache
    def written(kind: str) -> tuple[Path, Path]:
        needs(kind)
        folder = tmp_path_factory.mktemp(kind)
        return folder, WRITERS[kind](folder)

    return written


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """What the same rows in DuckDB itself give."""
    return published("patients", tmp_path_factory.mktemp("expected"))


@pytest.mark.parametrize("kind", list(WRITERS))
def test_the_current_rows_of_a_table_are_published(
    kind: str, table_of: Callable[[str], tuple[Path, Path]], expected: list[tuple[Any, ...]]
) -> None:
    folder, source = table_of(kind)
    assert published(str(source.relative_to(folder)), folder) == expected and len(expected) == 24


def test_a_folder_of_iceberg_needs_to_say_its_state(
    needs: Needs, tmp_path: Path, expected: list[tuple[Any, ...]]
) -> None:
    needs("iceberg")
    state = write_iceberg(tmp_path)
    folder = str(state.parent.parent)
    with refuses("source"):
        published(folder, tmp_path)
    (state.parent / "version-hint.text").write_text(state.name.removesuffix(".metadata.json"))
    assert published(folder, tmp_path) == expected


def test_rows_that_come_during_a_run_are_not_of_it(needs: Needs, tmp_path: Path) -> None:
    needs("delta")
    path = write_delta(tmp_path)
    with duckdb.connect() as con:
        read = files_of(Engine(con), path)
        assert read is not None
        pytest.importorskip("deltalake").write_deltalake(str(path), arrow(DELETED), mode="append")
        asked = f"SELECT count(*) FROM {read.reader}($p{read.options})"
        assert con.execute(asked, {"p": read.path}).fetchall() == [(24,)]
        assert con.execute("SELECT count(*) FROM delta_scan($p)", {"p": read.path}).fetchall() == [(30,)]


@pytest.mark.parametrize("kind", list(WRITERS))
def test_a_release_is_never_in_the_folder_of_its_table(
    kind: str, table_of: Callable[[str], tuple[Path, Path]], tmp_path: Path
) -> None:
    _, source = table_of(kind)
    folder = source if kind == "delta" else source.parent.parent
    (folder / "data").mkdir(exist_ok=True)
    with refuses("target.file"):
        published(str(source), tmp_path, target={"file": str(folder / "data" / "released.parquet")})


@pytest.mark.parametrize("kind", list(WRITERS))
def test_what_is_not_there_or_broken_is_refused(kind: str, needs: Needs, tmp_path: Path) -> None:
    needs(kind)
    inner = "_delta_log" if kind == "delta" else "metadata"
    (tmp_path / "broken" / inner).mkdir(parents=True)
    (tmp_path / "broken" / inner / "version-hint.text").write_text("1")
    with refuses("source"):
        published("broken", tmp_path)
    with refuses("source"):
        published("none" if kind == "delta" else "none/metadata/1.metadata.json", tmp_path)
