"""Runs that are killed: `killed.py FOLDER:MOMENT ...` runs the policy of each folder and dies at its moment.

Of a policy with a key the run is the next release of its series.

A moment is the number of a statement, one of STEPS that comes next, or `before` or `after` the move of a file, or
folder, into place; `count` dies at none and prints the number of statements, and that of the one that publishes. Every
run is a fork of this process, which itself opens no database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forked import die, fork_each

import ldiv_db
from ldiv_db.database.connections import open_database
from ldiv_db.publishing import in_file as targets
from ldiv_db.publishing import series_draft

#: The steps of a release to a file.
STEPS = {
    "start": (series_draft.PrefixDraft, "announce"),  # the ledger says nothing
    "folder": (targets, "work_folder"),  # it says started
    "write": (series_draft.PrefixDraft, "write"),
    "record": (series_draft, "record_members"),  # the new file is whole
    "move": (targets, "move"),  # the ledger says written
    "settle": (series_draft.PrefixDraft, "settle"),  # the file is in place
}


def run(folder: Path, moment: str) -> None:
    seen: list[str] = []

    def listen(statement: Any) -> None:
        if moment == str(len(seen)):
            die()
        seen.append(statement.template)

    if moment in STEPS:
        setattr(*STEPS[moment], die)
    for name in ("move", "swap"):
        real = getattr(targets, name)
        if moment == "before":
            setattr(targets, name, die)
        if moment == "after":
            setattr(targets, name, lambda part, final, real=real: (real(part, final), die()))
    with open_database(folder / "hospital.duckdb") as connection:
        policy = ldiv_db.read_policy(folder / "policy.yml")
        ldiv_db.run(connection, policy, folder, ldiv_db.Listener(on_statement=listen))
    if moment == "count":
        print(len(seen), seen.index("recoding/publish/recode_rows"), flush=True)


fork_each(run, "count")
