"""Releases over time: encode, match with earlier releases, group, write, audit, compare, and enter in the ledger.

A row that was published keeps its group for ever. New rows, and those that were kept back, form new groups, the
longest waiting first. All of a release is one transaction: its tables and its place in the ledger appear together.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ldiv_db.algorithms.decomposition import DecompositionOptions, Grouping
from ldiv_db.algorithms.groups import Groups, make_groups
from ldiv_db.audit import Audit
from ldiv_db.catalog import columns_of
from ldiv_db.engine import Engine
from ldiv_db.errors import InfeasibleError, PolicyError, Problem, nearest, what_is_wrong
from ldiv_db.policy import Policy, check_columns, parse_policy
from ldiv_db.policy_decomposition import DECOMPOSITIONS, GROUP_ID
from ldiv_db.releasing import ledger
from ldiv_db.releasing.decomposed import Decomposed, encode_source
from ldiv_db.releasing.inference import Inference, Release, check_releases, limits_of
from ldiv_db.releasing.ledger import Series
from ldiv_db.releasing.separate import (
    Expected,
    Tables,
    audit_tables,
    check_before,
    check_place,
    name_of,
    prefix_of,
    tables_of,
    write_tables,
)
from ldiv_db.run import Listener, resolve_source, versions
from ldiv_db.templates import Relation, Value

#: Rows left over join groups at once, and are not kept back, in the algorithms that know no releases over time.
AT_ONCE = -1


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


@dataclass(frozen=True)
class _Draft:
    """A release that is planned but not written."""

    engine: Engine
    policy: Policy
    options: DecompositionOptions
    prefix: Relation
    series: Series
    found: Decomposed
    rows: Relation
    known: Relation
    groups: Groups

    def tables(self, release: int) -> Tables:
        return tables_of(self.prefix, self.policy.algorithm.name, release)


def publish_release(
    connection: Any,
    policy: Policy | dict[str, Any],
    folder: str | Path = ".",
    listener: Listener | None = None,
    catalog: str | None = None,
) -> Released:
    """Publish the next release under `policy` on an open DuckDB connection; returns what was done.

    Nothing is written if PolicyError, InfeasibleError, AuditError (also where comparing releases would tell too much)
    or DatabaseError is raised. Inside a transaction of the caller's it joins that one.
    """
    start = time.perf_counter()
    policy = parse_policy(policy)
    with _engine(connection, listener, catalog) as engine:
        draft = _plan(engine, policy, Path(folder), listener or Listener())
        with engine.transaction():
            result = _publish(draft, start)
        return result


@contextmanager
def _engine(connection: Any, listener: Listener | None, catalog: str | None) -> Iterator[Engine]:
    listener = listener or Listener()
    engine = Engine(connection, listener.on_step, listener.on_statement, catalog)
    try:
        yield engine
    finally:
        engine.close_scratch()


def read_options(policy: Policy) -> DecompositionOptions:
    """The algorithm's options; raises PolicyError if it is no decomposition, or has no such options."""
    name, given = policy.algorithm.name, policy.algorithm.options
    if name not in DECOMPOSITIONS:
        what = f"{name} publishes one table, without releases over time"
        raise PolicyError([Problem("algorithm.name", what, nearest(name, DECOMPOSITIONS))])
    try:
        options = DecompositionOptions.model_validate({**_defaults(name), **given})
    except ValidationError as error:
        raise PolicyError([_problem(name, item) for item in error.errors()]) from None
    if name != "decomposition_plus" and "starvation" in given:
        raise PolicyError([Problem("algorithm.starvation", f"{name} keeps no row back that could join a group")])
    return options


def _defaults(name: str) -> dict[str, Any]:
    return {"noise": "random"} if name == "decomposition" else {}


def _problem(name: str, item: Any) -> Problem:
    key = ".".join(["algorithm", *map(str, item["loc"])])
    if item["type"] == "extra_forbidden":
        hint = nearest(str(item["loc"][-1]), DecompositionOptions.model_fields)
        return Problem(key, f"{name} has no such option", hint)
    return Problem(key, what_is_wrong(item))


def _plan(engine: Engine, policy: Policy, folder: Path, listener: Listener) -> _Draft:
    """The release as it will be; raises before any work if it cannot be made."""
    options = read_options(policy)
    source = resolve_source(engine, policy.source, folder)
    columns = columns_of(engine, source)
    check_columns(policy, columns)
    prefix = prefix_of(engine, policy)
    series = ledger.open_series(engine, name_of(prefix), policy.algorithm.name)
    check_place(engine, prefix, tables_of(prefix, policy.algorithm.name, series.next))
    if series.releases:
        check_before(engine, tables_of(prefix, policy.algorithm.name, series.releases), policy)
    found = encode_source(engine, policy, source, columns, folder, series.secret)
    known = ledger.known_keys(engine, series)
    rows = engine.materialise("matched", "release/match_rows", rows=found.rows, known=known, release=Value(series.next))
    task = Grouping(engine, rows, found.primary, found.others, options, policy.seed, listener.on_progress)
    groups = make_groups(task, rows, _threshold(policy, options))
    if not groups.count and not series.groups:
        raise InfeasibleError(_why_none(found, groups))
    return _Draft(engine, policy, options, prefix, series, found, rows, known, groups)


def _threshold(policy: Policy, options: DecompositionOptions) -> int:
    return options.starvation if policy.algorithm.name == "decomposition_plus" else AT_ONCE


def _why_none(found: Decomposed, groups: Groups) -> str:
    """Why there is not one group, and what could be."""
    primary = found.primary
    if not groups.formed:
        distinct = primary.distribution.distinct
        return (
            f"groups of {primary.l} different values of {primary.name} are impossible: it has {distinct} in"
            f" {primary.distribution.rows:,} rows. The largest feasible l is {distinct}"
        )
    return "no group can be published: " + "; ".join(map(str, groups.refused))


def _publish(draft: _Draft, start: float) -> Released:
    """Write tables and ledger, audit and compare; call inside a transaction."""
    engine, policy, series = draft.engine, draft.policy, draft.series
    tables, before = draft.tables(series.next), draft.tables(series.releases) if series.releases else None
    ledger.record_series(engine, series, policy.algorithm.name, policy.source)
    ledger.record_members(engine, series, draft.rows, draft.groups.shown)
    write_tables(engine, tables, before, draft.found, draft.rows, draft.groups.shown, series.last_group)
    counts = engine.record("release/summarise_rows", rows=draft.rows, known=draft.known)
    short = engine.scalar("release/count_short_groups", rows=draft.rows, known=draft.known)
    expected = Expected(counts["rows_kept"] + draft.groups.rows, counts["counterfeits"], short)
    audits = audit_tables(engine, tables, policy, expected)
    inference = _compare(draft)
    inference.require_good()
    figures = _figures(draft, tables, counts, expected.people) | {"seconds": time.perf_counter() - start}
    result = Released(figures, audits, inference, _notes(draft, counts))
    ledger.record_release(engine, series, result.as_dict())
    return result


def _compare(draft: _Draft) -> Inference:
    """The inference check of the release that was just written against all earlier ones."""
    settings = [(name, setting.l or 1) for name, setting in draft.policy.sensitive.items()]
    listed = releases_of(draft.engine, draft.prefix, draft.policy.algorithm.name, draft.series.next)
    return check_releases(draft.engine, listed, limits_of(settings), since=draft.series.next)


def releases_of(engine: Engine, prefix: Relation, algorithm: str, last: int) -> list[Release]:
    """The releases of a series up to `last`, as they lie in the database."""
    members = ledger.table(engine, "release_member")
    found = []
    for number in range(1, last + 1):
        tables = tables_of(prefix, algorithm, number)
        found.append(
            Release(
                name=f"release {number}",
                values=tables.values,
                group=(GROUP_ID,),
                members=members,
                series=name_of(prefix),
                number=number,
                count=tables.count,
            )
        )
    return found


def _figures(draft: _Draft, tables: Tables, counts: dict[str, Any], people: int) -> dict[str, Any]:
    """What the result says in numbers."""
    groups, policy = draft.groups, draft.policy
    waiting = draft.engine.record(
        "release/summarise_waiting",
        rows=draft.rows,
        shown=groups.shown,
        threshold=Value(_threshold(policy, draft.options)),
    )
    return {
        "series": draft.series.name,
        "release": draft.series.next,
        "run_id": uuid.uuid4().hex,
        "algorithm": policy.algorithm.name,
        "source": policy.source,
        "tables": [str(table) for table in tables.all],
        "primary": draft.found.primary.name,
        "l": {secret.name: secret.l for secret in draft.found.secrets},
        "rows_in": draft.found.rows_in,
        "rows_left_out": draft.found.left_out,
        "rows_published": people,
        "rows_first_published": groups.rows,
        "rows_placed": groups.placed,
        **counts,
        **waiting,
        "groups": draft.series.groups + groups.count,
        "groups_new": groups.count,
        "residual": sorted((rows for _, rows in groups.residual if rows), reverse=True),
        "noise": [lost.as_dict() for lost in groups.lost],
        "refused": [dict(vars(refused)) for refused in groups.refused],
        "exchanges": list(groups.exchanges),
        "seed": policy.seed,
        "versions": versions(),
    }


def _notes(draft: _Draft, counts: dict[str, Any]) -> list[str]:
    """What the user should hear."""
    notes = [str(refused) for refused in draft.groups.refused]
    if counts["rows_changed"]:
        notes.append(f"{counts['rows_changed']:,} published rows have other sensitive values now; the old ones stay")
    if counts["counterfeits"]:
        notes.append(f"{counts['counterfeits']:,} published rows are gone; their values stay in their groups")
    return notes
