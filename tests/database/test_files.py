"""Files that are written beside their place: who may read them, and what becomes of those that dead runs left."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldiv_db.database.engine import Engine
from ldiv_db.database.files import abandoned, folder_of, renew_file, work_folder

TOKEN = "0" * 32


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_sees_what_is_being_written(tmp_path: Path) -> None:
    with work_folder(tmp_path, "released.csv", TOKEN) as folder:
        assert mode_of(folder) == 0o700
        assert abandoned(tmp_path, "released.csv") == {}, "its process is at it"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_nobody_holds_is_abandoned(tmp_path: Path) -> None:
    left = folder_of(tmp_path, "released.csv", TOKEN)
    left.mkdir()
    assert abandoned(tmp_path, "released.csv") == {TOKEN: left}
    assert abandoned(tmp_path, "other.csv") == {}


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_that_is_written_anew_can_be_read_by_whom_it_could_be(con: Any, tmp_path: Path, mode: int) -> None:
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t AS SELECT range AS x FROM range(9)")
    path.chmod(mode)
    con.execute(f"ATTACH '{path}' AS clinic")
    assert renew_file(Engine(con), "clinic")
    assert mode_of(path) == mode and con.execute("SELECT count(*) FROM clinic.t").fetchone() == (9,)
