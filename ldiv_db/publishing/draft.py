"""Drafts: publications that a destination has written, audited and entered in the ledger."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from ldiv_db.attacking.covering import label_axes
from ldiv_db.attacking.populations import people_counter
from ldiv_db.auditing.audit import (
    Audit,
    Judging,
    audit_each,
    audit_individuals,
    require_good,
    require_numbered,
    require_together,
)
from ldiv_db.auditing.cells import require_cells
from ldiv_db.auditing.centres import require_all, require_true, require_within
from ldiv_db.auditing.counting import require_same_rows
from ldiv_db.auditing.set_sizes import require_few
from ldiv_db.auditing.subject import Subject, Suppressed
from ldiv_db.database import catalog, migrate, postgres
from ldiv_db.database.data_files import Table, Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import looseness
from ldiv_db.database.errors import ConstraintError, DatabaseError
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing.expanded import renew_view
from ldiv_db.publishing.fingerprints import hash_release
from ldiv_db.publishing.history import Watch
from ldiv_db.publishing.ledger import enter_run, entries_of, settle_run
from ldiv_db.publishing.report import RunReport
from ldiv_db.publishing.result import Result
from ldiv_db.publishing.writing import require_rows, write_rows
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.recoding.recode import PUBLISHED as ROWS
from ldiv_db.recoding.recode import ClassNumbers, Recoding, published_rows
from ldiv_db.requirements import Requirement

#: The template of what a release published.
_LISTED = "publishing/list_published"


class Draft(ABC):
    """A publication: a table, or the tables of a release; `where` has these, their files, or the prefix of a series.

    A destination calls `announce`, `write`, `audit`, `enter`, and for a file `settle` at the end, or `withdraw` if it
    did not come to `enter`.
    """

    #: The watch over its source, until it is entered.
    watch: Watch
    #: The classes that it adds to a table; groups are in tables of their own.
    classes: NewClasses
    #: What is to be said of how it was written.
    noted: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        """The id in the ledger, and in the name of the folder in which a file is written."""
        return self.watch.run_id

    @property
    @abstractmethod
    def replaces(self) -> bool:
        """True if it takes the place of a file that is there."""

    @property
    @abstractmethod
    def extends(self) -> bool:
        """True if a file or table keeps what it holds already, and the draft is added to it."""

    @property
    @abstractmethod
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """The tables of the ledger in which it is entered, each with the values that tell its rows."""

    def announce(self) -> None:  # noqa: B027 - most have nothing to do
        """Enter in the ledger that it is being written, if the remains of a dead process would not tell."""

    def require_announced(self) -> None:  # noqa: B027 - most have nothing to do
        """Raise PolicyError if it was taken for one whose process is dead."""

    def withdraw(self) -> None:  # noqa: B027 - most have nothing to do
        """Take back what was announced."""

    @abstractmethod
    def write(self, where: Tables) -> None:
        """Make what is to be published."""

    def made(self, where: Tables) -> Tables:
        """The tables that it makes, where these are `where` they go."""
        return where

    def follow(self, rows: int) -> None:  # noqa: B027 - most have nothing to do
        """Be told how many rows the table has that it is appended to; called before the audit."""

    def note(self, text: str) -> None:
        """Add a note to the outcome, once however often it is written; called before the audit."""
        if text and text not in self.noted:
            self.noted = (*self.noted, text)

    @abstractmethod
    def audit(self, where: Tables) -> Result:
        """Audit what was written and return the outcome; raises AuditError if it fails the policy."""

    def expand(self, where: Tables) -> None:  # noqa: B027 - most have nothing to do
        """Make the view beside what was written and audited, in its transaction."""

    @abstractmethod
    def enter(self, outcome: Result, status: str) -> None:
        """Write it into the ledger, brought up to date; inside a transaction, in which no other run of the source is.

        Raises OvertakenError if one was faster.
        """

    @abstractmethod
    def settle(self, in_place: bool) -> None:
        """Settle its file in the ledger, which has it as written."""

    def told(self, outcome: Result, note: str = "", **facts: Any) -> Result:
        """The outcome with what came after the audit: a `note`, the place, the number of the snapshot."""
        return replace(outcome, notes=(*outcome.notes, *([note] if note else [])), **facts)


@dataclass(frozen=True)
class NewClasses:
    """Classes that are to be published: those of a run, or the new ones of a release, whose ids follow `last_class`."""

    engine: Engine
    resolved: Resolved
    encoded: Encoded
    recoding: Recoding
    requirements: Mapping[str, Sequence[Requirement]]
    last_class: int | None = None
    #: Whether requirements are on people, of whom a class may have several rows.
    counts_people: bool = False

    def published(
        self, last_class: int = 0, texts: bool = False, keyed: bool = False, lists: bool = False
    ) -> AbstractContextManager[dict[str, Any]]:
        """Parameters of the template of their rows; class ids follow `last_class`, as `texts` all columns are text.

        `keyed`: what is kept is elsewhere, and tells apart classes otherwise alike; `lists`: as the target has them.
        """
        last = last_class if self.last_class is None else self.last_class
        numbers = ClassNumbers(last, Value(self.resolved.source.seed) if keyed else None)
        released = self.resolved.released
        shown, listed = numbers if released.has_class_ids else None, released.lists if lists else ()
        return published_rows(self.engine, self.encoded, self.recoding, shown, texts, listed)

    def table(self) -> Relation:
        """Their rows as a TEMP table."""
        with self.published() as params:
            return self.engine.materialise("release", ROWS, **params)

    def write(self, where: Table, before: Table | None = None) -> str:
        """Write their rows to a table or file of its own, after those of `before`; returns what is to be said of it."""
        engine, source, target = self.engine, self.resolved.source, self.resolved.target
        kept = [column.name for column in (*source.sensitive, *source.keep)]
        types = partial(postgres.shown_types, engine, source.relation, kept)
        with self.published(texts=target.format == "csv", lists=True) as params, engine.scope():
            if before is None:
                return write_rows(engine, where, target, ROWS, params, types)
            known = [(Identifier(column.name), looseness(column)) for column in catalog.columns_of(engine, before)]
            columns = [Renamed(name, name, loose) for name, loose in known]
            rows = engine.materialise("all", _LISTED, published=before, columns=columns)
            engine.insert(rows, ROWS, **params)
            return write_rows(engine, where, target, _LISTED, {"published": rows, "columns": columns}, types)

    def audits(self, published: Table, earlier_rows: int = 0) -> list[Audit]:
        """The audits of a table of classes; raises AuditError if it fails the policy or has lost or gained rows.

        `earlier_rows` are those of it that were published before. Where people are counted, these are judged, on rows
        that must be those of the table.
        """
        engine, resolved, recoding = self.engine, self.resolved, self.recoding
        suppressed: Suppressed = resolved.suppressed if recoding.blanked is None else "unknown"
        released, same = resolved.released, resolved.source.same
        subject = Subject(published, released.identifying, released.class_ids, suppressed=suppressed, same=same)
        require_few(engine, published, released.most)
        judging = Judging(people=people_counter(label_axes(resolved), resolved.folder), twice=None)
        if released.centres:
            self.require_centres(subject, [*self.requirements])
        if resolved.tables_of:
            self.require_cells(subject)
        if self.counts_people:
            subject = self._of_people(subject, [*self.requirements])
        audits = audit_each(engine, subject, self.requirements, judging)
        beside = [] if self.counts_people else audit_individuals(engine, self.encoded, recoding.assigned)
        require_good([*audits, *beside])
        expected = engine.count_weighted(recoding.assigned, recoding.dealt)
        for audit in audits:
            require_rows(audit.rows + audit.ignored_rows - earlier_rows, expected)
        return [*audits, *beside]

    def require_centres(self, subject: Subject, sensitive: Sequence[str]) -> None:
        """Raise AuditError unless means and medians are those of the rows that are published, which are all."""
        engine, released = self.engine, self.resolved.released
        require_all(self.encoded.row_count - engine.count_weighted(self.recoding.assigned, self.recoding.dealt))
        require_within(engine, subject.table, released.centres)
        axes = {c: axis for c, name in released.centres.items() for axis in self.encoded.axes if axis.name == name}
        rows = self.rows_with([Renamed(axis.code, axis.code) for axis in axes.values()])
        require_same_rows(engine, subject, replace(subject, table=rows), sensitive)
        require_true(engine, replace(subject, table=rows), axes, released.forms)

    def require_cells(self, subject: Subject) -> None:
        """Raise AuditError unless the counts of cells are those of the source wherever labels tell these alone."""
        engine, resolved, recoding = self.engine, self.resolved, self.recoding
        require_rows(engine.count_weighted(recoding.assigned, recoding.dealt), self.encoded.row_count)
        crossed = {name for table in resolved.tables_of for name in table}
        axes = {self.spare(f"cell_{a.code.name}"): a for a in self.encoded.axes if a.name in crossed}
        rows = self.rows_with([Renamed(own, axis.code) for own, axis in axes.items()])
        require_cells(engine, subject, rows, axes, resolved, [*self.requirements])

    def rows_with(self, columns: Sequence[Renamed]) -> Relation:
        """The rows as they are to be written, with columns of ours beside."""
        with self.published(texts=self.resolved.target.format == "csv") as params:
            kept = [*params["kept"], *columns]
            return self.engine.materialise("judged", ROWS, **{**params, "kept": kept})

    def _of_people(self, subject: Subject, sensitive: Sequence[str]) -> Subject:
        """What is audited of a table where people are counted; raises AuditError unless it has the rows of these."""
        engine, released, source = self.engine, self.resolved.released, self.resolved.source
        rows, person = self._rows_of_people()
        if released.position is not None:  # the table itself says whose its rows are
            linked = replace(subject, labels=[*subject.labels, *released.people])
            require_same_rows(engine, linked, replace(linked, table=rows), sensitive)
            subject = replace(subject, person=released.person, position=released.position)
            require_numbered(engine, replace(subject, table=rows), person)
            return subject
        judged = replace(subject, table=rows, person=person, by_rows=not source.together)
        require_same_rows(engine, subject, judged, sensitive)
        if source.together:
            require_together(engine, judged)
        return judged

    def _rows_of_people(self) -> tuple[Relation, str]:
        """The rows as they are to be written, and the column that says whose each is, which is never published."""
        individual, person = self.encoded.individual, self.spare("person")
        assert individual is not None  # noqa: S101 - people are counted by it
        return self.rows_with([Renamed(person, individual.code)]), person.name

    def spare(self, name: str) -> Identifier:
        """A column's name that none has in the release: this one, perhaps with a number."""
        taken = {column.lower() for column in self.resolved.released.all}
        return next(Identifier(own) for number in count() if (own := f"{name}{number or ''}") not in taken)


def enter_result(engine: Engine, watch: Watch, result: Result, status: str, report: RunReport | None) -> None:
    """Enter a run in the ledger as `Draft.enter` does."""
    migrate.migrate(engine)
    watch.hold()
    enter_run(engine, result, status, report)


@dataclass
class RunDraft(Draft):
    """The table of one run, whose work began at `begun`; `result` is what is known of it before it is audited."""

    classes: NewClasses
    watch: Watch
    result: Result
    begun: float
    #: The rows of the table that the draft is appended to.
    earlier_rows: int = 0
    #: The hash of what was audited; None if that is more than the draft.
    hashed: str | None = None

    @property
    def engine(self) -> Engine:
        return self.classes.engine

    @property
    def resolved(self) -> Resolved:
        return self.classes.resolved

    @property
    def replaces(self) -> bool:
        return self.resolved.target.if_exists != "fail"

    @property
    def extends(self) -> bool:
        return self.resolved.target.if_exists == "append"

    @property
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        return entries_of(self.run_id)

    def write(self, where: Tables) -> None:
        table = where[ONLY]
        if self.extends and isinstance(table, Relation) and catalog.table_exists(self.engine, table):
            self._append(table)
        else:
            self.note(self.classes.write(table))

    def _append(self, table: Relation) -> None:
        self.earlier_rows, last = self.engine.count(table), 0
        if self.resolved.released.has_class_ids:
            last = self.engine.most(table, "class_id") or 0
        limits = catalog.constraints_of(self.engine, table)  # a transaction that failed answers nothing
        try:
            with self.classes.published(last, lists=True) as params:
                self.engine.insert(table, ROWS, **params)
        except ConstraintError as error:
            broken = " or ".join(limit.text for limit in limits if limit.kind in error.kinds) or "a constraint"
            what = f"cannot append to {table}: its rows and the release together break {broken}"
            raise DatabaseError(f"{what}: drop the constraint, or append to a table without it") from None

    def audit(self, where: Tables) -> Result:
        engine = self.engine
        with engine.scope():
            table = catalog.read_once(engine, where[ONLY])
            audits = self.classes.audits(table, self.earlier_rows)
            if not self.extends:
                queries = self.resolved.policy.preserve
                self.hashed = hash_release(engine, {ONLY: table}, self.result.earlier.fingerprint, queries)
        notes, earlier = (*self.result.notes, *self.noted), self.result.earlier.held_against(self.hashed)
        seconds = time.perf_counter() - self.begun
        return replace(self.result, audits=audits, notes=notes, earlier=earlier, seconds=seconds)

    def follow(self, rows: int) -> None:
        self.earlier_rows = rows

    def expand(self, where: Tables) -> None:
        if isinstance(table := where.get(ONLY), Relation):
            renew_view(self.engine, self.resolved, table)

    def enter(self, outcome: Result, status: str) -> None:
        report = RunReport.of(replace(outcome, notes=self.result.notes), self.hashed) if self.hashed else None
        enter_result(self.engine, self.watch, outcome, status, report)

    def settle(self, in_place: bool) -> None:
        settle_run(self.engine, self.run_id, in_place)
