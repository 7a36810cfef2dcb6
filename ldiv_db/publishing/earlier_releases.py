"""Releases as users ask for them afterwards: checked, compared, of our own series or of any published tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog
from ldiv_db.database.catalog import missing_columns, named_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import nearest, refuse, refused
from ldiv_db.database.names import Relation
from ldiv_db.publishing import ledger
from ldiv_db.publishing.inference import Inference, Release, check_releases
from ldiv_db.publishing.pairings import entered_limits, limits_of
from ldiv_db.publishing.series import require_release, secret_of
from ldiv_db.publishing.series_target import sql_name_of, target_of

#: Figures of a release that add up to where each row is.
_FIGURES = ("rows_in", "rows_published", "rows_waiting", "rows_changed", "counterfeits", "groups")


@dataclass(frozen=True)
class PublishedTables:
    """Any published tables, the oldest first: `people` have the key and the columns of groups, `values` the sensitive
    columns; where there are no `values`, people have these too.
    """

    people: Sequence[str]
    key: str
    group: Sequence[str]
    sensitive: Sequence[tuple[str, int]]
    values: Sequence[str] = field(default_factory=tuple)
    count: str | None = None


def check_series(engine: Engine, series: str) -> Inference:
    """Check all releases of a series, by the tables as they are now and the limits of the last release."""
    last = require_release(engine, series)
    file, target = last.report.get("file"), target_of(engine, last)
    if file is not None and not Path(file).is_file():
        raise refused("series", f"no file {file}, to which {last.series} was published")
    with target.opened() as prefix:
        listed = target.releases(prefix, last.release)
        for release in listed:
            _require_table(engine, release.values, "series")
        entries = ledger.releases(engine, last.series)
        allowed = bool((entries[0].report.get("combinations") or {}).get("option") == "first")
        kept = last.report.get(ledger.LIMITS)  # none in a ledger of an older version
        limits = entered_limits(kept) if kept else limits_of(list(last.report["l"].items()))
        inference = check_releases(engine, listed, limits, allowed=allowed, secret=secret_of(engine, last.series))
    return replace(inference, ordered=tuple(f"release {entry.release}" for entry in entries if entry.is_ordered))


def check_sequence(engine: Engine, asked: PublishedTables) -> Inference:
    """Check published tables of anybody's against each other; raises PolicyError if they lack a column.

    All keys of a group are looked at together, group after group: several groups at once may tell more.
    """
    if asked.values and len(asked.values) != len(asked.people):
        raise refused("--values", "gives one sensitive table for each --table")
    listed = []
    for number, name in enumerate(asked.people):
        people = _table(engine, name, [asked.key, *asked.group], "--table")
        sensitive = [column for column, _ in asked.sensitive]
        holder = asked.values[number] if asked.values else name
        columns = [*asked.group, *sensitive, *([asked.count] if asked.count else [])]
        values = _table(engine, holder, columns, "--values" if asked.values else "--table")
        listed.append(Release(name, values, tuple(asked.group), people, asked.key, count=asked.count))
    return check_releases(engine, listed, limits_of(list(asked.sensitive)), jointly=True)


def _table(engine: Engine, name: str, columns: Sequence[str], key: str) -> Relation:
    relation = named_table(name, key)
    _require_table(engine, relation, key)
    refuse(missing_columns(engine, relation, [(key, column) for column in columns], f"table {name}"))
    return relation


def _require_table(engine: Engine, relation: Any, key: str) -> None:
    if not catalog.table_exists(engine, relation):
        raise refused(key, f"no table {sql_name_of(relation)}", nearest(str(relation), catalog.list_tables(engine)))


def difference(engine: Engine, series: str, first: int, last: int) -> dict[str, Any]:
    """Counts of what happened to rows between two releases of a series."""
    if first >= last:
        raise refused("release", "the first comes before the last", f"{last} {first}")
    one, other = (require_release(engine, series, number) for number in (first, last))
    members = ledger.table(engine, "release_member")
    listed = engine.records("publishing/summarise_events", members=members, series=one.series)
    between = [row for row in listed if first < row["release"] <= last]
    return {
        "series": one.series,
        "releases": [first, last],
        "rows_first_published": sum(row["published"] for row in between),
        "rows_first_waiting": sum(row["kept_back"] for row in between),
        "groups_new": sum(row["groups"] for row in between),
        "figures": {name: [one.report[name], other.report[name]] for name in _FIGURES},
    }
