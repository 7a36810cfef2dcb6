"""Releases as users ask for them afterwards: checked, compared, of our own series or of any published tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.database.catalog import missing_columns, named_table
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, nearest, refuse, refused
from ldiv_db.database.names import Relation
from ldiv_db.database.requests import asked
from ldiv_db.database.sources import list_tables
from ldiv_db.publishing import ledger
from ldiv_db.publishing.in_file import InFile
from ldiv_db.publishing.inference import Combinations, Inference, Release, check_releases
from ldiv_db.publishing.pairings import entered_limits, limits_of
from ldiv_db.publishing.people_over_time import content_of
from ldiv_db.publishing.series import require_release, secret_of
from ldiv_db.publishing.series_target import is_as_audited, is_there, sql_name_of, target_of

#: Figures of a release that add up to where each row is.
_FIGURES = ("rows_in", "rows_published", "rows_waiting", "rows_changed", "counterfeits", "groups")


def _limits(texts: Sequence[str] | None) -> list[tuple[str, int]]:
    parts = [(text, *text.rpartition(":")) for text in texts or ()]
    what = "{!r} is not a column with its l"
    wrong = [text for text, name, _, least in parts if not name or not least.isdigit() or int(least) < 1]
    refuse(Problem("--sensitive", what.format(text), "e.g. disease:3") for text in wrong)
    return [(name, int(least)) for _, name, _, least in parts]


def _columns(texts: Sequence[str] | None) -> list[str]:
    return [name for text in texts or () for name in text.split(",")]


_LIST = list[str] | None


@dataclass(frozen=True)
class SequenceRequest:
    """Any published tables, the oldest first: each `table` has the key and the columns of groups, `values` sensitive
    columns; where there are no `values`, tables have these too.
    """

    table: Sequence[str] = asked((), "A published table with a key; repeated, the oldest first.", of=_LIST)
    key: str | None = asked(None, "The column that says which row is which over time.")
    group: Sequence[str] = asked(
        (), "The columns that distinguish groups: an id, or quasi-identifiers.", _columns, of=_LIST
    )
    sensitive: Sequence[tuple[str, int]] = asked(
        (), "A sensitive column with its l, e.g. disease:3.", _limits, of=_LIST
    )
    values: Sequence[str] = asked((), "The sensitive table of each --table, if there is one.", of=_LIST)
    count: str | None = asked(None, "The column of counts of the sensitive tables.")


def check_series(engine: Engine, series: str) -> Inference:
    """Check all releases of a series, by the tables as they are now and the limits of the last release."""
    last = require_release(engine, series)
    target = target_of(engine, last)
    if isinstance(target.destination, InFile) and not target.destination.is_there:
        raise refused("series", f"no file {target.destination.path}, to which {last.series} was published")
    entries, kept = ledger.releases(engine, last.series), last.report.get(ledger.LIMITS)
    if target.is_several:
        with target.destination.opened() as there:
            altered = [] if is_as_audited(engine, there, last) else [f"release {last.release}"]
        names = [f"release {entry.release}" for entry in entries]
        return Inference.of_nights(names, entered_limits(kept or {}), altered)
    with target.opened() as prefix:
        listed = target.releases(prefix, last.release)
        for release in listed:
            _require_table(engine, release.values, "series")
        told = (entries[0].report.get("combinations") or {}).get("option") == "first"
        # There are none in a ledger of an older version.
        limits = entered_limits(kept) if kept else limits_of(list(last.report["l"].items()))
        secret = secret_of(engine, last.series)
        if ledger.CONTENT in last.report:
            held = {f"release {entry.release}": entry.report.get(ledger.CONTENT) for entry in entries}
            now = {one.name: content_of(engine, one.values, secret) for one in listed}
            inference = Inference.of_nights(now, limits, [name for name in now if now[name] != held[name]])
        else:
            combinations: Combinations = "allowed" if told else "checked"
            inference = check_releases(engine, listed, limits, combinations=combinations, secret=secret)
    return replace(inference, ordered=tuple(f"release {entry.release}" for entry in entries if entry.is_ordered))


def check_sequence(engine: Engine, tables: SequenceRequest) -> Inference:
    """Check published tables of anybody's against each other; raises PolicyError if a column is missing.

    All keys of a group are looked at together, group after group: several groups at once may tell more.
    """
    needed = ("table", "key", "group", "sensitive")
    lacking = [f"--{name}" for name in needed if not getattr(tables, name)]
    refuse(Problem(name, "is required where no series is named") for name in lacking)
    if tables.values and len(tables.values) != len(tables.table):
        raise refused("--values", "gives one sensitive table for each --table")
    listed = []
    for number, name in enumerate(tables.table):
        people = _table(engine, name, [tables.key or "", *tables.group], "--table")
        sensitive = [column for column, _ in tables.sensitive]
        holder = tables.values[number] if tables.values else name
        columns = [*tables.group, *sensitive, *([tables.count] if tables.count else [])]
        values = _table(engine, holder, columns, "--values" if tables.values else "--table")
        listed.append(Release(name, values, tuple(tables.group), people, tables.key, count=tables.count))
    return check_releases(engine, listed, limits_of(list(tables.sensitive)), combinations="jointly")


def _table(engine: Engine, name: str, columns: Sequence[str], key: str) -> Relation:
    relation = named_table(name, key)
    _require_table(engine, relation, key)
    refuse(missing_columns(engine, relation, [(key, column) for column in columns], f"table {name}"))
    return relation


def _require_table(engine: Engine, relation: Table, key: str) -> None:
    if not is_there(engine, relation):
        raise refused(key, f"no table {sql_name_of(relation)}", nearest(str(relation), list_tables(engine)))


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
