"""The draft of several tables that are one release: written, read together, audited and entered at once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ldiv_db.auditing.audit import require_good
from ldiv_db.auditing.subject import Subject, require_same_rows
from ldiv_db.auditing.tables import PublishedTable, audit_tables
from ldiv_db.database import catalog
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table, Tables
from ldiv_db.policy.tables import PolicyTable
from ldiv_db.publishing.draft import NewClasses, RunDraft, require_rows, write_rows
from ldiv_db.publishing.fingerprints import hash_release
from ldiv_db.publishing.result import Result
from ldiv_db.requirements import Requirement


@dataclass
class TablesDraft(RunDraft):
    """Several tables: those of people are audited by what all of them show."""

    #: What the policy says of all tables, what is published of those that belong to people, each after that which its
    #: rows belong to, and the rows of the others.
    tables: Mapping[str, PolicyTable] = field(default_factory=dict)
    members: Mapping[str, NewClasses] = field(default_factory=dict)
    public: Mapping[str, Table] = field(default_factory=dict)
    wanted: Mapping[str, Sequence[Requirement]] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        return any(table.target.if_exists != "fail" for table in self.tables.values())

    def published(self, where: Tables) -> list[PublishedTable]:
        """The tables that belong to people, as the audit reads them where they are."""
        return [
            PublishedTable.of(name, number, self.tables, classes.resolved.released, where[name])
            for number, (name, classes) in enumerate(self.members.items(), 1)
        ]

    def write(self, where: Tables) -> None:
        for name, classes in self.members.items():
            self.note(classes.write(where[name]))
        for name, rows in self.public.items():
            target, params = self.tables[name].target, {"rows": rows, "columns": self.tables[name].keep}
            self.note(write_rows(self.engine, where[name], target, "database/list_rows", params))

    def audit(self, where: Tables) -> Result:
        engine, result = self.engine, self.result
        with engine.scope():
            read = [self._as_written(self.members[table.name], table) for table in self.published(where)]
            audits = audit_tables(engine, read, self.wanted)
            require_good(audits)
            found, queries = {**where, **{table.name: table.rows for table in read}}, self.resolved.policy.preserve
            self.hashed = hash_release(engine, found, result.earlier.fingerprint, queries)
        people = audits[-1]
        loss = replace(result.loss, classes=people.classes, smallest_class=people.least_people or 0)
        notes = (*result.notes, *self.noted)
        seconds, earlier = time.perf_counter() - self.begun, result.earlier.held_against(self.hashed)
        return replace(result, audits=audits, loss=loss, notes=notes, earlier=earlier, seconds=seconds)

    def _as_written(self, classes: NewClasses, table: PublishedTable) -> PublishedTable:
        """The table to be read; raises AuditError unless it has the rows that were planned."""
        engine = self.engine
        rows, planned = catalog.read_once(engine, table.rows), classes.table()
        require_rows(engine.count(rows), engine.count(planned))
        sensitive = [column.name for column in table.sensitive.values()]
        columns = [column.name for column in columns_of(engine, planned)]
        labels = [name for name in columns if name not in sensitive]
        require_same_rows(engine, Subject(rows, labels), Subject(planned, labels), sensitive or [""])
        if classes.resolved.released.centres:
            classes.require_centres(Subject(rows, classes.resolved.released.identifying), sensitive or [""])
        engine.drop(planned)
        return replace(table, rows=rows)
