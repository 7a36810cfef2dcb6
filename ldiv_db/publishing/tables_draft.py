"""The draft of several tables that are one release: written, read together, audited and entered at once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ldiv_db.auditing.audit import require_good
from ldiv_db.auditing.subject import Subject, require_same_rows
from ldiv_db.auditing.tables import PublishedTable, audit_tables
from ldiv_db.database import catalog, postgres
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.names import Relation
from ldiv_db.policy.targets import Target
from ldiv_db.publishing.draft import RunDraft, Where, require_rows
from ldiv_db.publishing.result import Result
from ldiv_db.requirements import Requirement


@dataclass(frozen=True)
class PublicTable:
    """A table that belongs to nobody, and the columns of it that are published as they are."""

    rows: Relation | FileRelation
    columns: Sequence[str]
    target: Target


@dataclass
class TablesDraft(RunDraft):
    """Several tables: those of people are drafts of their own, and are audited by what all of them show."""

    #: The tables that belong to people, each where it goes and as the audit reads it, and the others.
    members: Sequence[tuple[RunDraft, PublishedTable]] = field(default_factory=tuple)
    public: Sequence[tuple[PublicTable, Where]] = field(default_factory=tuple)
    wanted: Mapping[str, Sequence[Requirement]] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        return any(draft.replaces for draft, _ in self.members)

    def write(self, where: Where) -> None:
        for draft, read in self.members:
            draft.write(_placed(read.rows, where))
            for note in draft.noted:
                self.note(note)
        for public, place in self.public:
            table, params = _placed(place, where), {"rows": public.rows, "columns": public.columns}
            if isinstance(table, FileRelation):
                self.engine.export(Path(table.path), "parquet", "database/list_rows", **params)
            elif postgres.is_in_postgres(self.engine, table):
                with self.engine.scope():
                    copied = self.engine.materialise("public", "database/list_rows", **params)
                    self.note(postgres.make_table(self.engine, table, copied, {}, public.target.lose))
            else:
                self.engine.create(table, "database/list_rows", replace=public.target.if_exists == "replace", **params)

    def audit(self, where: Where) -> Result:
        engine, result = self.engine, self.result
        with engine.scope():
            places = [replace(table, rows=_placed(table.rows, where)) for _, table in self.members]
            read = [self._as_written(draft, table) for (draft, _), table in zip(self.members, places, strict=True)]
            audits = audit_tables(engine, read, self.wanted)
            require_good(audits)
        people = audits[-1]
        loss = replace(result.loss, classes=people.classes, smallest_class=people.least_people or 0)
        notes = (*result.notes, *self.noted)
        return replace(result, audits=audits, loss=loss, notes=notes, seconds=time.perf_counter() - self.begun)

    def _as_written(self, draft: RunDraft, table: PublishedTable) -> PublishedTable:
        """The table to be read; raises AuditError unless it has the rows that were planned."""
        engine, rows = self.engine, table.rows
        if isinstance(rows, Relation) and catalog.is_foreign(
            engine, rows
        ):  # what stands in a database that is attached is read once
            rows = engine.copy("published", rows)
        planned = draft.classes.table()
        require_rows(engine.count(rows), engine.count(planned))
        sensitive = [column.name for column in table.sensitive.values()]
        columns = [column.name for column in columns_of(engine, planned)]
        labels = [name for name in columns if name not in sensitive]
        require_same_rows(engine, Subject(rows, labels), Subject(planned, labels), sensitive or [""])
        engine.drop(planned)
        return replace(table, rows=rows)


def _placed(table: Where, where: Where) -> Where:
    """A table of the database, or its file in the folder that is written."""
    if not isinstance(table, FileRelation):
        return table
    assert isinstance(where, FileRelation)  # noqa: S101 - files go to a folder
    return replace(table, path=str(Path(where.path) / Path(table.path).name))
