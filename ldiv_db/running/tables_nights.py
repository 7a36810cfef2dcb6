"""Nights of several tables: people are those who have rows that no earlier night published, of any of the tables.

A row whose parent an earlier night published waits for ever: what it belongs to has a number of that night alone, and
whoever saw both would know whose it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.database import migrate
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, refuse, refused, rows_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.changes import labelled_as
from ldiv_db.policy.limits import limit_problems
from ldiv_db.policy.schema import ROW
from ldiv_db.policy.tables import named_in, types_as
from ldiv_db.publishing.destinations import key_of as key_of_target
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.fingerprints import Summaries, keyed
from ldiv_db.publishing.ledger import LAST_PERSON
from ldiv_db.publishing.result import Earlier
from ldiv_db.publishing.series import Key, key_of, open_series
from ldiv_db.publishing.series_draft import MATCHED, MatchedRows, ReleaseStart, match_rows
from ldiv_db.publishing.series_target import is_there, series_target_of, sql_name_of
from ldiv_db.publishing.tables_draft import NewTables
from ldiv_db.publishing.tables_night import TablesNight
from ldiv_db.recoding.axes import among
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.links import check_identities, check_links
from ldiv_db.recoding.loss import loss_of_tables
from ldiv_db.recoding.stacked import Stack, stacked
from ldiv_db.running.release import require_columns, settle, started
from ldiv_db.running.tables import (
    MemberTable,
    OpenedTables,
    People,
    check_targets,
    encoded_tables,
    resolve_tables,
)
from ldiv_db.running.tables_run import (
    loss_of,
    new_tables,
    prepared_people,
    secret_of_release,
    similarity_of,
    work_out_tables,
)

#: What is counted of rows that are matched.
_COUNTED = ("group_id", "changed", "is_new")


@dataclass
class NewRows:
    """The rows of each table that no earlier night published, as they are matched with what these did."""

    start: ReleaseStart
    matched: MatchedRows | None = None
    #: How many rows of each table belong to one that was published.
    orphans: dict[str, int] = field(default_factory=dict)
    #: The unpublished rows of the tables before, and the column of the numbers of these.
    _free: dict[str, tuple[Relation, Identifier | None]] = field(default_factory=dict)

    def encoded(self, one: MemberTable, coding: Coding, own: Identifier | None, parent: Identifier | None) -> Encoded:
        """The rows of a copy of a table, without those whose parent was published."""
        engine, matched = self.start.engine, match_rows(self.start, coding, table=f":{one.name}")
        free = engine.select("free", matched.rows, where=[Where("group_id", None)])
        above, key = self._free.get(one.linked.above, (None, None))
        if above and key and parent:
            every = engine.count(free)
            free = engine.join("free", free, above, (parent.name, key.name))
            self.orphans[one.name] = every - engine.count(free)
        self._add(matched, free)
        self._free[one.name] = free, own
        rows = coding.encode(free, (), MATCHED)
        return among(engine, rows, rows.rows)

    def _add(self, matched: MatchedRows, free: Relation) -> None:
        """Add the rows of a table, those published before and those that may be now, to those of all."""
        engine, before = self.start.engine, [Where("group_id", None, "<>")]
        known = engine.select("matched", matched.rows, *_COUNTED, where=before)
        engine.extend(known, free, *_COUNTED)
        if self.matched is None:
            self.matched = replace(matched, rows=known)
            return
        engine.extend(self.matched.rows, known)
        rows_in, left_out = self.matched.rows_in + matched.rows_in, self.matched.left_out + matched.left_out
        self.matched = replace(self.matched, rows_in=rows_in, left_out=left_out)

    @property
    def all(self) -> MatchedRows:
        """Those of all tables."""
        assert self.matched is not None  # noqa: S101 - some table is of people
        return replace(self.matched, left_out=self.matched.left_out + sum(self.orphans.values()))

    @property
    def notes(self) -> list[str]:
        """What is to be said of rows that no night will publish."""
        return [
            f"{rows_phrase(rows)} of {name} belong to rows that an earlier night published, and are left out"
            for name, rows in self.orphans.items()
            if rows
        ]


def draft_night(opened: OpenedTables, begun: float, publishes: bool) -> TablesNight:
    """The next night of several tables as it will be, of which a plan `publishes` nothing."""
    engine, others = opened.engine, opened.engine.snapshot.others
    check_identities(engine, opened.tables.values())
    tables: Sequence[MemberTable] = resolve_tables(opened)
    algorithm = tables[0].algorithm
    if algorithm.traits.recodes_globally:
        refuse(limit_problems(opened.policy, "a global recoding", algorithm=algorithm.name))
    migrate.pending(engine)  # raises if the ledger could not be written
    start = _start(opened, tables, begun, publishes)
    followed = labelled_as(opened.policy, start.series.report.get("inferred", ()))
    if followed is not opened.policy:
        opened = replace(opened, policy=followed)
        tables = resolve_tables(opened)
        start = _start(opened, tables, begun, publishes)
    opened, earlier = replace(opened, destination=start.target.destination), start.series.report
    check_targets(opened, tables, start.series.releases > 0)
    if start.series.releases:
        _require_earlier(start, opened, tables)
    new = NewRows(start)
    with engine.transaction() if others else nullcontext():  # what is read of all tables is of one moment
        if others:  # others may have written since
            check_links(engine, opened.tables)
            tables = resolve_tables(opened)
        tables = [_settled(one, earlier.get("requirements", ())) for one in tables]
        last, secret = (
            int(earlier.get(LAST_PERSON, 0)),
            secret_of_release(opened, tables, opened.policy.seed, Summaries()),
        )
        stack = stacked(engine, list(encoded_tables(engine, opened.context, tables, new)))
        # Of sources that stay as they are, the people of two nights would stand in one order.
        whose = People(opened, tables, stack, keyed(secret, last) if last else secret, last)
    return _planned(start, new, whose)


def _start(opened: OpenedTables, tables: Sequence[MemberTable], begun: float, publishes: bool) -> ReleaseStart:
    """The start of the night, which knows of all tables what it knows of one."""
    engine, policy, first = opened.engine, opened.policy, tables[0].resolved
    target = series_target_of(engine, policy.targets, policy.algorithm.name, opened.context.folder)
    if target.first.file is None and target.first.database is None:
        target.refuse_elsewhere()
    settle(engine, target.name, publishes)
    keys = {one.name: key_of(next(c for c in one.resolved.columns if c.name == ROW)) for one in tables}
    names = ", ".join(named_in(one.name, one.linked.table.identity) for one in tables)
    key = Key(names, ", ".join(f"{named_in(name, own.kind)}" for name, own in keys.items()))
    series = open_series(engine, target.name, policy.algorithm.name, key)
    row = next(column for column in first.columns if column.name == ROW)
    source = replace(first.source, name=policy.reads, keep=(), key=row)
    inferred = [found for one in tables for found in one.resolved.inferred]
    resolved = replace(first, policy=policy, source=source, inferred=inferred, target=target.first)
    read = [one.relation for one in opened.tables.values()]
    return started(resolved, series, target, begun, read, publishes)


def _settled(one: MemberTable, found: Sequence[Mapping[str, Any]]) -> MemberTable:
    """The table with `auto` as the last night had it."""
    own = [
        {**judged, "sensitive": judged["sensitive"].removeprefix(f"{one.name}.")}
        for judged in found
        if judged["sensitive"].startswith(f"{one.name}.")
    ]
    return replace(one, resolved=replace(one.resolved, required=one.resolved.required.settled(own)))


def _require_earlier(start: ReleaseStart, opened: OpenedTables, tables: Sequence[MemberTable]) -> None:
    """Raise PolicyError unless the tables of earlier nights are there, with the columns of the next one."""
    with start.target.destination.opened() as there:
        for name, table in there.items():
            if not is_there(start.engine, table):
                what = f"{sql_name_of(table)} of the last release is gone"
                raise refused(key_of_target(start.target.targets[name], name), what, "a release builds on the last one")
        for one in tables:
            types = types_as(opened.policy.tables, one.name, one.resolved.released, one.resolved.columns)
            require_columns(start.target, types, there[one.name])


def _planned(start: ReleaseStart, new: NewRows, whose: People) -> TablesNight:
    """The night with classes of the people who have new rows; where there can be none they all wait."""
    engine, opened = start.engine, whose.opened
    rows = _united(engine, whose.stack)
    try:
        if not engine.count(rows):
            raise InfeasibleError(f"{start.source.name} has no rows to publish")
        ready = prepared_people(whose, Earlier(), start.watch)
        ready.estimate.require_room()
        plan, sizes, made = work_out_tables(ready, opened.context.workers)
    except InfeasibleError:
        if not start.series.groups:
            raise
        shown = engine.load("shown", dict.fromkeys(("row_id", "group_no"), "BIGINT"), [])
        nothing = NewTables(engine, opened.policy.tables, {}, opened.public, {}, whose.last)
        return TablesNight(start, new.all, rows, shown, 0, 0, nothing, planned=new.notes)
    shown = engine.number_groups("shown", plan.assigned, "class_id", number="group_no", columns=("row_id",))
    named = {one.name: _of_new(classes) for one, classes in zip(whose.tables, made, strict=True)}
    filled = {name: classes for name, classes in named.items() if classes.encoded.rows_in}
    losses = [loss_of(*one, False) for one in filled.items()]
    groups, published = int(engine.most(shown, "group_no") or 0), engine.count(plan.assigned)
    return TablesNight(
        *(start, new.all, rows, shown, groups, published, new_tables(ready, named)),
        search=plan.search,
        loss=loss_of_tables(losses, sizes),
        similarity=[attack for one in filled.items() for attack in similarity_of(*one)],
        planned=list(dict.fromkeys([*ready.reasons, *plan.notes, *ready.kept, *ready.estimate.notes, *new.notes])),
    )


def _of_new(classes: NewClasses) -> NewClasses:
    """The classes of a table, of which nothing is said of rows that wait."""
    count = classes.engine.count(classes.recoding.assigned)
    return replace(classes, encoded=replace(classes.encoded, rows_in=count, left_out=0))


def _united(engine: Engine, stack: Stack) -> Relation:
    """The rows of all tables by their numbers among these, with what earlier nights made of each."""
    united: Relation | None = None
    for member in stack.members:
        where = [Where("member", member.number)]
        own = engine.select("own", stack.encoded.rows, "row_id", "own_id", where=where)
        columns = [column.name for column in MATCHED]
        found = engine.join(
            "united", own, member.rows, ("own_id", "row_id"), left_columns=["row_id"], right_columns=columns
        )
        if united is None:
            united = found
        else:
            engine.extend(united, found, "row_id", *columns)
    assert united is not None  # noqa: S101 - some table is of people
    return united
