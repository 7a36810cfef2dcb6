"""A release as a file: written beside its place, and moved there in one step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from refusals import refuses
from visits import POLICY, place

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.publishing.in_file import DataFile
from ldiv_db.publishing.ledger import WRITTEN, runs

TO_FILE = POLICY | {"target": {"file": "released.csv"}}
STATUS = "SELECT status FROM ldiv.run"


def test_what_is_no_longer_in_its_folder_is_in_its_place(engine: Engine, tmp_path: Path) -> None:
    place = DataFile(engine, tmp_path / "released.csv", "released.csv", "csv", ["zip"])
    work = tmp_path / "work"
    work.mkdir()
    (work / "released.csv").write_text("zip\n")
    assert not place.is_moved(work)
    place.move(work / "released.csv")
    assert place.is_moved(work) and place.path.read_text() == "zip\n"


@pytest.fixture
def visits(con: Any) -> None:
    place(con)


def test_it_is_published_once_it_is_in_its_place(
    visits: None, con: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move, seen = DataFile.move, []

    def moved(self: DataFile, staging_path: Path) -> None:
        seen.extend(con.execute(STATUS).fetchall())
        move(self, staging_path)

    monkeypatch.setattr(DataFile, "move", moved)
    ldiv_db.run(con, TO_FILE, folder=tmp_path)
    assert seen == [(WRITTEN,)] and con.execute(STATUS).fetchall() == [("published",)]


def test_a_file_that_somebody_made_meanwhile_stays(
    visits: None, con: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DataFile, "flush", lambda *_: (tmp_path / "released.csv").write_text("theirs"))
    with refuses("target.file"):
        ldiv_db.run(con, TO_FILE, folder=tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("released.csv", "theirs")]
    assert runs(Engine(con)) == []
