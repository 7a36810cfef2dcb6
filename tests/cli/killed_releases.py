"""Releases to a file that are killed: `killed_releases.py FOLDER:MOMENT ...` dies at its moment of a release.

A moment is the step that comes next: `start` (the ledger says nothing), `folder` or `write` (it says started), `record`
(the new file is whole), `move` (the ledger says written), or `settle` (the file is in place). Every release is a fork
of this process, which itself opens no database.
"""

from __future__ import annotations

from pathlib import Path

from forked import die, fork_each

import ldiv_db
from ldiv_db.database import engine
from ldiv_db.publishing import series_destinations as places
from ldiv_db.running import release as publish


def run(folder: Path, moment: str) -> None:
    if moment in ("write", "record"):
        setattr(publish._Work, moment, die)
    elif moment in ("start", "settle"):
        setattr(places.Filed, f"_{moment}", die)
    elif moment == "folder":
        places.work_folder = die
    else:
        setattr(places, moment, die)
    with engine.open_database(folder / "hospital.duckdb") as connection:
        connection.execute("SET threads = 1")
        ldiv_db.publish_release(connection, ldiv_db.read_policy(folder / "policy.yml"), folder)


fork_each(run)
