"""A run where its rows lie: in a database, in frames, or in a session of Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldiv_db.database.context import Listener
from ldiv_db.database.spark import is_session
from ldiv_db.policy.reading import GivenPolicy
from ldiv_db.publishing.result import Result
from ldiv_db.running.run import run as run_here


def run(
    connection: Any,
    policy: GivenPolicy,
    folder: str | Path = ".",
    listener: Listener | None = None,
    catalog: str | None = None,
    kl: bool = False,
    show_values: bool = False,
    workers: int | None = None,
) -> Result:
    """Anonymize, audit and publish under `policy` on an open DuckDB connection, in the database of an address, as
    `postgres:service=clinic`, of a frame, or in a session of Spark's; returns what was done.

    A frame of pandas, Polars or Arrow, or a relation, is the source, whatever the policy calls it; in a mapping of
    names to frames the policy's source is looked up. Both are read in memory, where the release is as well
    (`Result.table`) unless the policy has another target.

    `folder` is where the policy's relative files lie, `catalog` the name of the attached database that holds
    taxonomies and the ledger, if it is not the current one; `kl` has the KL divergence worked out as well, with
    `show_values` errors name values that are too frequent or not in a taxonomy. A table of more than the policy's
    `part_rows` rows is solved in parts by so many processes, `workers`, as many as threads if it is None; the release
    is the same for any number. Release, audit and ledger row are one
    transaction, and nothing is written if PolicyError, InfeasibleError, AuditError or DatabaseError is raised. Inside
    a transaction of the caller's they join that one: the caller commits, or rolls back after an error. A release to a
    file of its own is written beside, audited there and moved into place; it joins no transaction.
    """
    if is_session(connection):
        from ldiv_db.running.spark.run import run_on_spark  # noqa: PLC0415 - few runs are on Spark

        return run_on_spark(connection, policy, folder, listener, catalog, kl, show_values)
    return run_here(connection, policy, folder, listener, catalog, kl, show_values, workers)
