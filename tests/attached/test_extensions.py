"""Where an extension cannot be loaded the error says how to install it, online and from PyPI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db.database import connections
from ldiv_db.database.errors import DatabaseError, PolicyError


def fake_wheel(folder: Path, name: str, version: str) -> None:
    """The package of an extension's wheel for a version of DuckDB; what is in it is no extension."""
    files = folder / f"duckdb_extension_{name}" / "extensions" / f"v{version}"
    files.mkdir(parents=True)
    (files / f"{name}.duckdb_extension").write_bytes(b"no extension")
    (folder / f"duckdb_extension_{name}" / "__init__.py").touch()


def failure(con: Any, name: str) -> str:
    with pytest.raises(DatabaseError) as raised:
        connections.load_extension(con, name, "A database")
    return str(raised.value)


def test_both_ways_to_install_are_said(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "database_version", lambda: "1.5.4")
    said = failure(con, "no_such_one")
    assert said.startswith("A database needs DuckDB's extension no_such_one, which is not here (this is 1.5.4)")
    assert "INSTALL no_such_one" in said
    assert "pip install duckdb==1.5.4 duckdb-extension-no-such-one==1.5.4" in said


def test_for_a_version_without_wheels_the_last_that_has_them_is_named(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "database_version", lambda: "2.0.0")
    assert "pip install duckdb==1.5.5 duckdb-extension-no-such-one==1.5.5" in failure(con, "no_such_one")


def test_a_wheel_of_another_version_is_named(con: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_wheel(tmp_path, "elsewhere", "0.1.0")
    monkeypatch.syspath_prepend(tmp_path)
    assert "whose wheel here is for DuckDB 0.1.0 (this is " in failure(con, "elsewhere")
    assert connections.wheel_of("elsewhere") is None


def test_the_wheel_of_this_version_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_wheel(tmp_path, "broken_here", duckdb.__version__)
    monkeypatch.syspath_prepend(tmp_path)
    found = connections.wheel_of("broken_here")
    assert found is not None and found.is_file()


def test_a_wheel_that_cannot_be_loaded_is_said(tmp_path: Path, con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_wheel(tmp_path, "damaged", duckdb.__version__)
    monkeypatch.syspath_prepend(tmp_path)
    assert "whose wheel here cannot be loaded (this is " in failure(con, "damaged")


def test_all_that_an_extension_needs_is_said_at_once(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "attempt", lambda connection, sql: "not here")
    monkeypatch.setattr(connections, "database_version", lambda: "1.5.5")
    said = failure(con, "iceberg")
    assert "INSTALL avro; INSTALL iceberg" in said
    assert "duckdb-extension-avro==1.5.5 duckdb-extension-iceberg==1.5.5" in said


@pytest.mark.parametrize(("folder", "name"), [("_delta_log", "delta"), ("metadata", "avro")])
def test_a_folder_of_a_table_format_needs_its_extension(
    folder: str, name: str, tmp_path: Path, con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "attempt", lambda connection, sql: "not here")
    (tmp_path / "visits" / folder).mkdir(parents=True)
    with pytest.raises((DatabaseError, PolicyError), match=f"needs DuckDB's extension {name}"):
        ldiv_db.profile(con, str(tmp_path / "visits"))
