"""Several tables that are one release, or a night of a series: written, read together, audited and entered at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ldiv_db.attacking.covering import label_axes
from ldiv_db.auditing.audit import Audit, require_good
from ldiv_db.auditing.counting import require_same_rows
from ldiv_db.auditing.one_row import published_of_people
from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.auditing.set_sizes import require_few
from ldiv_db.auditing.subject import Subject
from ldiv_db.auditing.tables import audit_tables
from ldiv_db.database import catalog
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table, Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation, SqlType
from ldiv_db.database.queries import Where
from ldiv_db.policy.tables import PolicyTable
from ldiv_db.publishing.draft import NewClasses, RunDraft
from ldiv_db.publishing.fingerprints import hash_release
from ldiv_db.publishing.result import Result
from ldiv_db.publishing.writing import require_rows, write_rows
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.recode import PUBLISHED
from ldiv_db.requirements import Requirement

#: The templates of all rows of a table, and of those of a public one.
_ROWS, _PUBLIC = "database/list_rows", "publishing/list_public"


@dataclass(frozen=True)
class NewTables:
    """What the policy says of `tables`, and what is published of them: those of people are audited by what all show.

    `members` are new rows of tables that belong to people, each after that which its rows belong to, `public` the rows
    of the others. Numbers of people and rows follow the `last` that earlier nights published.
    """

    engine: Engine
    tables: Mapping[str, PolicyTable]
    members: Mapping[str, NewClasses]
    public: Mapping[str, Table]
    wanted: Mapping[str, Sequence[Requirement]]
    last: int = 0
    #: Whether who is protected against knows one row of the person sought, or else all.
    knows_one: bool = False

    def published(self, where: Tables) -> list[PublishedTable]:
        """The tables that belong to people, as the audit reads them where they are."""
        return [
            PublishedTable.of(
                name,
                number,
                self.tables,
                classes.resolved.released,
                where[name],
                [[axis] for axis in label_axes(classes.resolved)],
            )
            for number, (name, classes) in enumerate(self.members.items(), 1)
        ]

    def write(self, where: Tables, before: Tables | None = None) -> Iterator[str]:
        """Write the tables, whose earlier nights are `before`; yields what is to be said of it."""
        for name, table in self.tables.items():
            new, old, there = self.members.get(name), before[name] if before else None, where[name]
            if table.public:
                target = table.target.model_copy(update={"if_exists": "replace"} if before else {})
                params = {"rows": self.public[name], "columns": self._kept(name)}
                yield write_rows(self.engine, there, target, _PUBLIC, params)
            elif new is None and old is not None and old != there:
                columns = [column.name for column in columns_of(self.engine, old)]
                yield write_rows(self.engine, there, table.target, _ROWS, {"rows": old, "columns": columns})
            elif new is not None and old == there and isinstance(there, Relation):
                with new.published() as params:
                    self.engine.insert(there, PUBLISHED, **params)
            elif new is not None:
                yield new.write(there, old)

    def _kept(self, name: str) -> list[Renamed]:
        """What is kept of a public table, in the types that a release has."""
        columns = columns_of(self.engine, self.public[name])
        types = {column.name.lower(): SqlType(column.published) for column in columns}
        named = [(Identifier(column), types[column.lower()]) for column in self.tables[name].keep]
        return [Renamed(column, column, cast=kind) for column, kind in named]

    def audit(self, where: Tables) -> tuple[list[Audit], list[PublishedTable]]:
        """The audits of new rows, and the tables that they were read from; raises AuditError if one fails."""
        read = [self._as_written(self.members[table.name], table) for table in self.published(where)]
        audits = audit_tables(self.engine, read, self.wanted, knows_one=self.knows_one) if read else []
        require_good(audits)
        return audits, read

    def _as_written(self, classes: NewClasses, table: PublishedTable) -> PublishedTable:
        """The table to be read; raises AuditError unless it has the rows that were planned."""
        engine = self.engine
        rows, planned = catalog.read_once(engine, table.rows), classes.table()
        if self.last:
            rows = engine.select("night", rows, where=[Where(table.owner.name, self.last, ">")])
        require_rows(engine.count(rows), engine.count(planned))
        sensitive = [column.name for column in table.sensitive.values()]
        columns = [column.name for column in columns_of(engine, planned)]
        labels = [name for name in columns if name not in sensitive]
        require_same_rows(engine, Subject(rows, labels), Subject(planned, labels), sensitive or [""])
        released = classes.resolved.released
        require_few(engine, rows, released.most)
        if released.centres:
            classes.require_centres(Subject(rows, released.identifying), sensitive or [""])
        engine.drop(planned)
        return replace(table, rows=rows)

    def last_of(self, read: Sequence[PublishedTable]) -> int:
        """The last number of a person or row, once new rows are `read`."""
        shown = ((table.rows, one.name) for table in read for one in (table.owner, table.key) if one)
        return max([self.last, *(int(self.engine.most(rows, column) or 0) for rows, column in shown)])


@dataclass
class TablesDraft(RunDraft):
    """The tables of one run."""

    several: NewTables = field(kw_only=True)

    @property
    def replaces(self) -> bool:
        return any(table.target.if_exists != "fail" for table in self.several.tables.values())

    def write(self, where: Tables) -> None:
        for note in self.several.write(where):
            self.note(note)

    def audit(self, where: Tables) -> Result:
        engine, result = self.engine, self.result
        with engine.scope():
            audits, read = self.several.audit(where)
            of_people = published_of_people(engine, read) if self.several.knows_one else []
            found, queries = {**where, **{table.name: table.rows for table in read}}, self.resolved.policy.preserve
            self.hashed = hash_release(engine, found, result.earlier.fingerprint, queries)
        people = audits[-1]
        loss = replace(result.loss, classes=people.classes, smallest_class=people.least_people or 0)
        notes = (*result.notes, *self.noted)
        seconds, earlier = time.perf_counter() - self.begun, result.earlier.held_against(self.hashed)
        known = self.several.knows_one
        tables = [replace(one, is_of_people=one.name in of_people if known else None) for one in result.tables]
        result = replace(result, audits=audits, loss=loss, tables=tables)
        return replace(result, notes=notes, earlier=earlier, seconds=seconds)
