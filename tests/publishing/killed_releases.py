"""Releases to a file that are killed: `killed_releases.py FOLDER:MOMENT ...` dies at its moment of a release.

A moment is the step that comes next: `start` (the ledger says nothing), `folder` or `write` (it says started), `record`
(the new file is whole), `move` (the ledger says written), or `settle` (the file is in place). Every release is a fork
of this process, which itself opens no database.
"""

from __future__ import annotations

from pathlib import Path

from forked import die, fork_each

import ldiv_db
from ldiv_db.database.connections import open_database
from ldiv_db.publishing import in_file, series_draft


def run(folder: Path, moment: str) -> None:
    steps = {"start": "announce", "write": "write", "settle": "settle"}
    if moment in steps:
        setattr(series_draft.SeriesDraft, steps[moment], lambda *_, **__: die())
    elif moment == "record":
        series_draft.record_members = die
    else:
        setattr(in_file, {"folder": "work_folder"}.get(moment, moment), die)
    with open_database(folder / "hospital.duckdb") as connection:
        connection.execute("SET threads = 1")
        ldiv_db.run(connection, ldiv_db.read_policy(folder / "policy.yml"), folder)


fork_each(run)
