"""The draft of several tables that are one release: written, read together, audited and entered at once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ldiv_db.auditing.audit import require_good
from ldiv_db.auditing.subject import Subject, require_same_rows
from ldiv_db.auditing.tables import PublishedTable, audit_tables
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.policy.tables import PolicyTable
from ldiv_db.publishing.draft import NewClasses, RunDraft, read_once, require_rows, write_rows
from ldiv_db.publishing.result import Result
from ldiv_db.requirements import Requirement


@dataclass
class TablesDraft(RunDraft):
    """Several tables: those of people are audited by what all of them show."""

    #: The tables that belong to people, each where it goes and as the audit reads it.
    members: Sequence[tuple[NewClasses, PublishedTable]] = ()
    #: The rows of the others, which belong to nobody, what the policy says of them, and where they go.
    public: Sequence[tuple[Table, PolicyTable, Table]] = ()
    wanted: Mapping[str, Sequence[Requirement]] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        return any(classes.resolved.target.if_exists != "fail" for classes, _ in self.members)

    def write(self, where: Table) -> None:
        for classes, read in self.members:
            self.note(classes.write(_placed(read.rows, where)))
        for rows, table, place in self.public:
            params = {"rows": rows, "columns": table.keep}
            self.note(write_rows(self.engine, _placed(place, where), table.target, "database/list_rows", params))

    def audit(self, where: Table) -> Result:
        engine, result = self.engine, self.result
        with engine.scope():
            places = [replace(table, rows=_placed(table.rows, where)) for _, table in self.members]
            read = [self._as_written(own, table) for (own, _), table in zip(self.members, places, strict=True)]
            audits = audit_tables(engine, read, self.wanted)
            require_good(audits)
        people = audits[-1]
        loss = replace(result.loss, classes=people.classes, smallest_class=people.least_people or 0)
        notes = (*result.notes, *self.noted)
        return replace(result, audits=audits, loss=loss, notes=notes, seconds=time.perf_counter() - self.begun)

    def _as_written(self, classes: NewClasses, table: PublishedTable) -> PublishedTable:
        """The table to be read; raises AuditError unless it has the rows that were planned."""
        engine = self.engine
        rows, planned = read_once(engine, table.rows), classes.table()
        require_rows(engine.count(rows), engine.count(planned))
        sensitive = [column.name for column in table.sensitive.values()]
        columns = [column.name for column in columns_of(engine, planned)]
        labels = [name for name in columns if name not in sensitive]
        require_same_rows(engine, Subject(rows, labels), Subject(planned, labels), sensitive or [""])
        engine.drop(planned)
        return replace(table, rows=rows)


def _placed(table: Table, where: Table) -> Table:
    """A table of the database, or its file in the folder that is written."""
    if not isinstance(table, FileRelation):
        return table
    assert isinstance(where, FileRelation)  # noqa: S101 - files go to a folder
    return replace(table, path=str(Path(where.path) / Path(table.path).name))
