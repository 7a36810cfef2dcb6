"""That a run may not write where it has to is said before any work, by its plan too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ldiv_db


def test_a_connection_that_only_reads_is_refused_before_work(bed: Any) -> None:
    policy, stages = ldiv_db.read_policy(bed.policy), []
    with duckdb.connect(str(bed.database), read_only=True) as con:
        assert ldiv_db.plan(con, policy, folder=bed.folder).feasibility, "which writes nothing"
        with pytest.raises(ldiv_db.DatabaseError, match="open read-only"):
            ldiv_db.run(con, policy, folder=bed.folder, listener=ldiv_db.Listener(on_stage=stages.append))
    assert not stages


@pytest.mark.parametrize("locked", ["hospital.duckdb", ".", "out"])
@pytest.mark.parametrize("command", ["plan", "run"])
def test_files_and_folders_that_may_not_be_written_are_refused_before_work(
    bed: Any, locked: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bed.folder / "out").mkdir()
    bed.write_policy(target="out/release.csv" if locked == "out" else "published.patients")
    allows, shut = os.access, (bed.folder / locked).resolve()

    def access(path: Any, mode: int, **others: Any) -> bool:  # root may write anywhere
        return allows(path, mode, **others) and (mode & os.W_OK == 0 or Path(path).resolve() != shut)

    monkeypatch.setattr(os, "access", access)
    message = bed.fails(3, command, bed.database, bed.policy)
    assert str(shut) in message and "its owner has to allow it" in message
