"""A run that has the same to publish as an earlier one, whose release stands where it goes: nothing is made anew."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from ldiv_db.database.errors import DatabaseError
from ldiv_db.policy.sensitive import smallest_class
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing import ledger
from ldiv_db.publishing.draft import enter_result
from ldiv_db.publishing.expanded import renew_view
from ldiv_db.publishing.fingerprints import hash_release, versions
from ldiv_db.publishing.in_database import InDatabase
from ldiv_db.publishing.report import RunReport
from ldiv_db.publishing.result import Result
from ldiv_db.recoding.rules import fetch_recoding
from ldiv_db.running.preparation import Preparation
from ldiv_db.running.tables import PreparedTables

Ready = TypeVar("Ready", Preparation, PreparedTables)


def published_again(ready: Preparation | PreparedTables, kl: bool, begun: float) -> Result | None:
    """The result, entered in the ledger as every run's; None where the release is to be made.

    That is where the ledger has no report of the earlier run, or of less than is asked for, and where the release is
    not as it was published.
    """
    engine, earlier, watch = ready.task.engine, ready.earlier, ready.watch
    if not earlier.unchanged or earlier.target != ready.named["target"] or not ready.replaces:
        return None
    report = ledger.report_of(engine, earlier.unchanged)
    if watch is None or report is None or report.release != _release_there(ready):
        return None
    recoding = None
    if ready.algorithm.traits.recodes_globally:
        if ready.is_there:  # what the ledger there says of values is not brought here
            return None
        try:
            recoding = fetch_recoding(engine, earlier.unchanged)
        except DatabaseError:  # it takes no right to read them to publish the same again
            return None
    result = Result(
        **report.figures,
        **ready.named,
        run_id=watch.run_id,
        versions=versions(),
        audits=report.audited(ready.judged),
        seconds=time.perf_counter() - begun,
        recoding=recoding,
        smallest_class=smallest_class(ready.task.requirements),
        earlier=earlier,
        place=ready.destination.place,
    )
    diverges = any(loss.kl is not None for loss in (result.loss, *(table.loss for table in result.tables)))
    if (diverges, bool(result.people)) != (kl, ready.people is not None):
        return None
    with engine.transaction():
        if isinstance(ready, Preparation) and isinstance(ready.destination, InDatabase):
            renew_view(engine, ready.resolved, ready.destination.tables[ONLY])
        enter_result(engine, watch, result, ledger.PUBLISHED, RunReport.of(result, report.release))
    return replace(result, **ready.destination.entered(watch))


def with_release_before(ready: Ready) -> Ready:
    """With the hash of what other versions published of the same rows, as the ledger has it or as it stands there."""
    earlier, is_there = ready.earlier, ready.earlier.target == ready.named["target"]
    if not (earlier.made_by and earlier.same_rows and earlier.run_id):
        return ready
    release = ledger.release_of(ready.task.engine, earlier.run_id)
    if release is None and is_there and not ready.is_there:
        release = _release_there(ready)
    return replace(ready, earlier=replace(earlier, release=release))


def _release_there(ready: Preparation | PreparedTables) -> str | None:
    """The hash of what is where the release goes; None if it cannot be read."""
    engine, resolved = ready.task.engine, ready.resolved if isinstance(ready, Preparation) else None
    with suppress(DatabaseError), engine.scope(), ready.destination.opened(resolved) as there:
        return hash_release(engine, there, ready.earlier.fingerprint, ready.queries)
    return None
