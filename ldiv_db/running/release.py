"""Releases over time: plan with what was published before, write, audit, compare, and enter in the ledger.

A row that was published stays in its group or class for ever. All of a release appears together: its tables and its
place in the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.bsgi.bsgi import Bsgi
from ldiv_db.auditing.audit import Audit
from ldiv_db.database import migrate
from ldiv_db.database.catalog import table_exists
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, nearest, numbered
from ldiv_db.database.templates import Relation, Value
from ldiv_db.policy.policy import Written
from ldiv_db.policy.resolve import Findings, Resolved, resolve
from ldiv_db.policy.series import DECOMPOSITIONS, REPEATED
from ldiv_db.publishing import series_ledger as ledger
from ldiv_db.publishing.channels import limits_of
from ldiv_db.publishing.collisions import refuse_read_tables, refuse_read_target
from ldiv_db.publishing.decomposed_tables import check_before
from ldiv_db.publishing.inference import Inference, Release, check_releases
from ldiv_db.publishing.series_destinations import Place, place_of, settle_crashed
from ldiv_db.publishing.series_draft import Draft, Start
from ldiv_db.publishing.series_key import key_of
from ldiv_db.publishing.series_ledger import Series
from ldiv_db.publishing.series_tables import Expected, Tables, require_earlier, tables_of
from ldiv_db.running.release_classes import check_classes_before, plan_classes
from ldiv_db.running.release_groups import plan_decomposition, read_options
from ldiv_db.running.run import Listener, versions, working_engine


@dataclass(frozen=True)
class Released:
    """What a release published and kept back: the object that `ldiv release publish --json` prints."""

    figures: dict[str, Any]
    audits: Sequence[Audit] = ()
    inference: Inference | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON has it, keys as in the README."""
        return {
            **self.figures,
            "requirements": [{**v.as_dict(), "sensitive": a.sensitive} for a in self.audits for v in a.verdicts],
            "inference": self.inference.as_dict() if self.inference else None,
            "notes": list(self.notes),
        }


def publish_release(
    connection: Any,
    policy: Written,
    folder: str | Path = ".",
    listener: Listener | None = None,
    catalog: str | None = None,
    show_values: bool = False,
) -> Released:
    """Publish the next release under `policy` on an open DuckDB connection; returns what was done.

    `catalog` is the attached database that holds taxonomies and the ledger, if it is not the current one; with
    `show_values` errors name values that a taxonomy lacks. Nothing is written if PolicyError, InfeasibleError,
    AuditError (also where comparing releases would tell too much) or DatabaseError is raised. Inside a transaction of
    the caller's it joins that one, unless it goes to a file.
    """
    start = time.perf_counter()
    with working_engine(connection, listener, catalog) as engine:
        resolved, place = resolve_release(engine, policy, Path(folder))
        migrate.pending(engine)  # raises if the ledger could not be written
        settle_crashed(engine, place.name)
        work = _Work(place, _plan(place, resolved, listener or Listener(), show_values), start)
        place.publish(work)
        return work.released[0]


def resolve_release(engine: Engine, written: Written, folder: Path) -> tuple[Resolved, Place]:
    """The policy held against its source, for releases over time, and their place; raises PolicyError."""
    places: list[Place] = []

    def check_target(found: Findings) -> None:
        if found.policy.is_series:
            places.append(_checked_place_of_series(engine, found))

    resolved = resolve(engine, written, folder, {"algorithm": _check_series, "target": check_target})
    return resolved, places[0]


def _checked_place_of_series(engine: Engine, found: Findings) -> Place:
    """The place that the target names; raises PolicyError if releases may not go there."""
    place = place_of(engine, found.policy, found.folder)
    place.check()
    if found.source is not None:
        refuse_read_target(engine, found.policy, found.folder, found.source)
    return place


def _check_series(found: Findings) -> None:
    """Raise PolicyError unless the policy is one of releases over time, and the algorithm has its options."""
    policy, name = found.policy, found.policy.algorithm.name
    if policy.decomposes:
        read_options(name, policy.algorithm.options)
    elif name not in REPEATED:
        what = f"{name} publishes one table, without releases over time"
        raise PolicyError([Problem("algorithm.name", what, nearest(name, [*DECOMPOSITIONS, *REPEATED]))])
    elif not policy.is_series:
        what = f"is required: {name} without one publishes one table, without releases over time"
        raise PolicyError([Problem("key", what, "name the column that says which row is which over time")])
    else:
        Bsgi(policy.algorithm.options)


def _plan(place: Place, resolved: Resolved, listener: Listener, show_values: bool) -> Draft:
    """The release as it will be; raises before any work if it cannot be made."""
    engine, name, source = place.engine, resolved.algorithm, resolved.source
    assert source.key is not None  # noqa: S101 - releases over time have one
    series = ledger.open_series(engine, place.name, name, key_of(source.key))
    if resolved.target.file is None:
        numbers = range(1, series.next + 1)
        tables = [table for number in numbers for table in place.tables(number).all]
        refuse_read_tables(engine, source.relation, tables)
    place.check_next(series.next)
    start = Start(engine, resolved, series, listener, show_values)
    decomposes = name in DECOMPOSITIONS
    if series.releases:
        with place.opened() as prefix:
            require_earlier(engine, prefix, name, series.releases)
            before = tables_of(prefix, name, series.releases)
            (check_before if decomposes else check_classes_before)(start, before)
    return plan_decomposition(start) if decomposes else plan_classes(start)


@dataclass(frozen=True)
class _Work:
    """The next release, as its place has it made; `released` then holds what was done."""

    place: Place
    draft: Draft
    begun: float
    released: list[Released] = field(default_factory=list)

    @property
    def series(self) -> Series:
        return self.draft.start.series

    def record(self) -> None:
        ledger.record_members(self.place.engine, self.series, self.draft.matched.rows, self.draft.shown)

    def _tables(self, prefix: Relation) -> Tables:
        return self.draft.written(tables_of(prefix, self.draft.start.resolved.algorithm, self.series.next))

    def write(self, prefix: Relation) -> None:
        name, series = self.draft.start.resolved.algorithm, self.series
        before = tables_of(prefix, name, series.releases) if series.releases else None
        self.draft.write(self._tables(prefix), before)

    def judge(self, prefix: Relation, run_id: str) -> dict[str, Any]:
        draft, engine, name = self.draft, self.place.engine, self.draft.start.resolved.algorithm
        holes = {"rows": draft.matched.rows, "known": draft.matched.known}
        counts = engine.record("publishing/summarise_rows", **holes)
        short = engine.scalar("publishing/count_short_groups", **holes)
        expected = Expected(counts["rows_kept"] + draft.rows_new, counts["counterfeits"], short)
        audits = draft.audit(self._tables(prefix), expected)
        listed = releases_of(engine, prefix, name, self.series.next, self.series.name)
        allowed = draft.combined is not None and draft.combined.allowed
        inference = check_releases(engine, listed, limits_of(draft.limits), self.series.next, allowed)
        inference.require_good()
        figures = self._figures(run_id, counts, expected.people)
        result = Released(figures, audits, inference, _notes(draft, counts))
        self.released.append(result)
        return result.as_dict() | self.place.where

    def _figures(self, run_id: str, counts: dict[str, Any], people: int) -> dict[str, Any]:
        """What the result says in numbers."""
        draft, matched, resolved = self.draft, self.draft.matched, self.draft.start.resolved
        waiting = self.place.engine.record(
            "publishing/summarise_waiting", rows=matched.rows, shown=draft.shown, threshold=Value(draft.threshold)
        )
        return {
            "series": self.series.name,
            "release": self.series.next,
            "run_id": run_id,
            "algorithm": resolved.algorithm,
            "source": resolved.source.name,
            "file": resolved.target.file,
            "tables": [str(table) for table in self._tables(self.place.prefix).all],
            "l": dict(draft.limits),
            "rows_in": matched.rows_in,
            "rows_left_out": matched.left_out,
            "rows_published": people,
            "rows_first_published": draft.rows_new,
            **counts,
            **waiting,
            "groups": self.series.groups + draft.groups_new,
            "groups_new": draft.groups_new,
            **draft.figures(),
            "seed": resolved.source.seed,
            "versions": versions(),
            "seconds": time.perf_counter() - self.begun,
        }


def releases_of(engine: Engine, prefix: Relation, algorithm: str, last: int, series: str) -> list[Release]:
    """The releases of a series up to `last`, as they lie in the database of `prefix`."""
    members = ledger.table(engine, "release_member")
    found = []
    for number in range(1, last + 1):
        tables = tables_of(prefix, algorithm, number)
        found.append(
            Release(
                name=f"release {number}",
                values=tables.values,
                group=(tables.group,),
                members=members,
                series=series,
                number=number,
                count=tables.count,
                combinations=tables.marginals if tables.marginals and table_exists(engine, tables.marginals) else None,
            )
        )
    return found


def _notes(draft: Draft, counts: dict[str, Any]) -> list[str]:
    """What the user should hear."""
    notes = list(draft.notes)
    if counts["rows_changed"]:
        rows = numbered(counts["rows_changed"], "published row has", "published rows have")
        notes.append(f"{rows} other sensitive values now; the old ones stay")
    if counts["counterfeits"]:
        gone = (
            "published row is gone; its values stay in its group",
            "published rows are gone; their values stay in their groups",
        )
        notes.append(numbered(counts["counterfeits"], *gone))
    return notes
