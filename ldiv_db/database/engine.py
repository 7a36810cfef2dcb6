"""The database: one statement a step, results as named relations, and nothing known of privacy.

It works on a connection of the caller's, or on one that is opened for it; what it makes for itself is TEMP and dropped
at the end.
"""

from __future__ import annotations

import itertools
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from ldiv_db.database import interrupts
from ldiv_db.database.connections import ClientError, Connection, StoppedError, attempt
from ldiv_db.database.data_files import Table
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.failures import failure_of, refuse_half_characters, unread_type
from ldiv_db.database.names import CallerView, Identifier, Part, Relation, literal
from ldiv_db.database.queries import Step, Where, listed
from ldiv_db.database.snapshot import CHANGES, Snapshot, read_snapshot
from ldiv_db.database.table_queries import TableQueries
from ldiv_db.database.templates import Statement, render

Found = TypeVar("Found")


class Scope:
    """The relations that outlive a scope of the engine."""

    def __init__(self) -> None:
        self.kept: set[Relation] = set()

    def keep(self, relation: Relation) -> Relation:
        """The relation, which outlives the scope."""
        self.kept.add(relation)
        return relation


#: A TEMP table of fewer rows is not dropped at once: the next step takes its place.
SMALL = 10_000
#: How statements begin that change no columns of a table that stays.
_KEEPS_COLUMNS = re.compile(r"\s*(SELECT|WITH|DESCRIBE|INSERT|UPDATE|DELETE|CREATE (OR REPLACE )?TEMP)\b")
#: The lock of each database's writer, by its file; those in memory are told by their names.
_WRITERS: dict[str, threading.RLock] = {}


class Engine(TableQueries):
    """Runs templates on one connection and remembers the steps it took.

    `on_step` is called after every named step, `on_statement` before every statement is sent. `catalog` names the
    attached database that holds our own schema, None the current one. `templates` are folders of more templates.
    """

    def __init__(
        self,
        connection: Connection,
        on_step: Callable[[Step], None] | None = None,
        on_statement: Callable[[Statement], None] | None = None,
        catalog: str | None = None,
        templates: Iterable[Path] = (),
    ):
        self.connection = connection
        self.catalog = catalog
        self.steps: list[Step] = []
        self.on_step = on_step
        self.on_statement = on_statement
        self._render = partial(render, folders=tuple(templates))
        self._scratch: list[Relation] = []
        self._free: list[Relation] = []  # small TEMP tables that nobody reads any more
        self._views: set[Relation] = set()
        self._counted: dict[Relation, int] = {}  # rows of TEMP tables that hold what was selected, and nothing since
        self._answers: dict[Relation, list[tuple[tuple[object, ...], Any]]] = {}  # what was asked of them, likewise
        self._found: dict[object, Any] = {}  # of the columns of tables that stay, in a transaction of ours
        self._caller_views: list[Relation] = []
        self._registered: set[Relation] = set()
        self.attached_for_it: list[str] = []
        self._snapshot: Snapshot | None = None
        self._prefix = f"ldiv_{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count(1)

    # -- templates ---------------------------------------------------------------------------------

    def rendered(self, template: str | Statement, values: dict[str, Any] | None = None, /, **params: Any) -> Statement:
        return template if isinstance(template, Statement) else self._render(template, params, values=values)

    def make(self, name: str, statement: Statement) -> Relation:
        verb, target = ("CREATE OR REPLACE", self._free.pop()) if self._free else ("CREATE", self._temp_name())
        statement.sql = f"{verb} TEMP TABLE {target.sql()} AS\n{statement.sql}"
        self._scratch.append(target)
        self._answers.pop(target, None)
        self._counted[target] = self._timed(name, statement)
        return target

    def count(self, rows: Table, *where: Where) -> int:
        """As of any table; known of what was materialised and is as it was."""
        known = self._counted.get(rows) if isinstance(rows, Relation) and not where else None
        return super().count(rows, *where) if known is None else known

    def remembered(self, rows: Relation, ask: Callable[[], Found], *question: object) -> Found:
        """What `ask` finds of a TEMP table: asked once a question while the table is as it is."""
        answers = self._answers.setdefault(rows, [])
        for asked, known in answers:
            if asked == question:
                return cast(Found, known)
        found = ask()
        answers.append((question, found))
        return found

    def refresh_count(self, target: Relation, added: int | None = None) -> None:
        self._answers.pop(target, None)
        known = self._counted.pop(target, None)
        if known is not None and added is not None:
            self._counted[target] = known + added

    def describe(self, source: Table) -> list[tuple[str, str]]:
        """The columns of a table, view or file with their types; a table's are asked for once in a transaction of ours.

        Raises DatabaseError if there is no such source.
        """
        ask = partial(self.execute, f"DESCRIBE SELECT * FROM {source.sql()}", reads=[source])
        stays = isinstance(source, Relation) and source.parts[0] != "temp"
        return [(row[0], row[1]) for row in (self.found(source, ask) if stays else ask())]

    def found(self, question: object, ask: Callable[[], Found]) -> Found:
        """What `ask` finds of the columns of tables that stay: asked once in a transaction, until some are changed."""
        if not self.has_begun:
            return ask()
        if question not in self._found:
            self._found[question] = ask()
        return cast(Found, self._found[question])

    def part(self, name: str) -> Part:
        """A name for a part of a statement, which no other has."""
        return Part((self._temp_name(name).name,))

    def view(self, name: str, template: str, **params: Any) -> Relation:
        """As `materialise`, a TEMP view: its rows are made again by each statement that reads them, and kept nowhere.

        What it reads is there as long as the view is.
        """
        target = self._temp_name(name)
        statement = self._render(template, params, of_view=True)
        statement.sql = f"CREATE TEMP VIEW {target.sql()} AS\n{statement.sql}"
        self._timed(name, statement)
        self._scratch.append(target)
        self._views.add(target)
        return target

    @contextmanager
    def attached(self, path: Path, read_only: bool = False, options: Sequence[str] = ()) -> Iterator[str]:
        """The name under which the database file at `path` is attached, made if it is not there.

        The file is checkpointed and let go at the end: then nothing of it is in a log beside it. The name is in it, and
        therefore does not count our steps: how many there are may depend on the data.
        """
        name = f"ldiv_{uuid.uuid4().hex[:8]}_0_file"
        said = ", ".join(["TYPE duckdb", *(["READ_ONLY"] if read_only else []), *options])
        self.execute(f"ATTACH {literal(str(path))} AS {Identifier(name).sql()} ({said})")
        try:
            yield name
            if not read_only:
                self.execute(f"CHECKPOINT {Identifier(name).sql()}")
        finally:
            self.attempt(f"DETACH {Identifier(name).sql()}")  # the first error is the one to report

    def reader(self, rows: Relation, size: int = 100_000) -> Any:
        """A reader of Arrow's of the rows of a TEMP table, in their order: for whoever hands them on unread."""
        found: Any = self.connection.sql(f"SELECT * FROM {rows.sql()}")
        # DuckDB 2 has another name for it.
        return found.to_arrow_reader(size) if hasattr(found, "to_arrow_reader") else found.fetch_record_batch(size)

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """A TEMP table of metadata made in Python (a taxonomy's nodes): `columns` is name to SQL type."""
        return self.make(name, listed(columns, rows))

    def view_of(self, name: str, query: str) -> Relation:
        """A TEMP view of a query that is not ours; it lives until `close_scratch`."""
        view = CallerView(self._temp_name(name).parts, name)
        self.execute(f"CREATE TEMP VIEW {view.sql()} AS\n{query}", writes=view)
        self._caller_views.append(view)
        return view

    def register(self, name: str, frame: Any) -> Relation:
        """A TEMP view of what the database's client reads where it lies: a frame, or a relation of this connection.

        It lives until `close_scratch`; raises DatabaseError for anything else.
        """
        view = CallerView(self._temp_name(name).parts, name)
        try:
            self.connection.register(view.name, frame)
        except (ClientError, TypeError) as error:
            if unread := unread_type(frame, str(error)):
                what = f"{type(frame).__name__} has a column of type {unread}, which the database does not read"
                raise DatabaseError(f"{what}: give its text, as `.astype(str)` does") from None
            raise DatabaseError(f"{type(frame).__name__} is not a frame that the database reads") from None
        self._caller_views.append(view)
        self._registered.add(view)
        return view

    def _temp_name(self, *name: str) -> Relation:
        return Relation(("temp", "main", "_".join([self._prefix, str(next(self._numbers)), *name])))

    def drop(self, *relations: Relation) -> None:
        """Drop TEMP tables and views that `materialise`, `view` or `load` made.

        What is small stays until the next step takes its place, or to the end: that is one statement less.
        """
        for relation in relations:
            self._scratch.remove(relation)
            self._answers.pop(relation, None)
            if self._counted.pop(relation, SMALL) < SMALL:
                self._free.append(relation)
            else:
                self.execute(self._dropping(relation))

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Drops at its end the TEMP tables that were made inside, but for those that it was told to keep.

        What an inner scope keeps belongs to the outer one. After an error everything is left to `close_scratch`.
        """
        scope, before = Scope(), set(self._scratch)
        yield scope
        self.drop(*(relation for relation in self._scratch if relation not in before | scope.kept))

    def close_scratch(self) -> None:
        """Drop every TEMP table of ours that is left, and detach what was attached for this engine alone."""
        with suppress(ClientError):  # after a failure the connection itself may be gone, and TEMP goes with it
            for relation in reversed(self._all_scratch()):
                self.connection.execute(self._dropping(relation))
            for view in self._caller_views:
                self.connection.execute(f"DROP VIEW IF EXISTS {view.sql()}")
                if view in self._registered:
                    self.connection.unregister(view.name)  # it keeps the frame in memory otherwise
            for database in self.attached_for_it:
                self.connection.execute(f"DETACH {Identifier(database).sql()}")
        done = (self._scratch, self._free, self._counted, self._answers, self._caller_views, self.attached_for_it)
        for forgotten in done:
            forgotten.clear()

    def _all_scratch(self) -> list[Relation]:
        return [*self._free, *self._scratch]

    def _dropping(self, relation: Relation) -> str:
        # A setting of the caller's keeps a table while there are views on it; all of these are ours.
        return f"DROP {'VIEW' if relation in self._views else 'TABLE'} IF EXISTS {relation.sql()} CASCADE"

    @contextmanager
    def transaction(self, joins: bool | None = None) -> Iterator[None]:
        """All or nothing. Inside a transaction of the caller's it joins that one, which the caller ends.

        `joins` says whether there is one, where it was asked for already.
        """
        if self.in_transaction() if joins is None else joins:
            yield
            return
        before = self._all_scratch()
        with self._writing_alone():
            try:
                self.execute("BEGIN TRANSACTION")
                self.has_begun = True
                yield
                self.execute("COMMIT")
            except BaseException:
                with suppress(ClientError):  # it may have ended already; the first error is the one to report
                    self.connection.execute("ROLLBACK")
                # What was dropped within is there again, and what was put in its place is gone.
                self._scratch = [*dict.fromkeys([*before, *self._scratch])]
                for forgotten in (self._free, self._counted, self._answers):
                    forgotten.clear()
                with suppress(DatabaseError):
                    self.refresh_servers()
                raise
            finally:
                self.has_begun = False

    @property
    def is_joined(self) -> bool:
        """True inside a transaction that a caller began."""
        return not self.has_begun and self.in_transaction()

    @contextmanager
    def _writing_alone(self) -> Iterator[None]:
        """Within, no other thread of this process has a transaction of ours on this database: two would conflict."""
        current = self.snapshot.databases[self.snapshot.current.lower()]
        with _WRITERS.setdefault(current.path or current.name, threading.RLock()):
            yield

    @property
    def snapshot(self) -> Snapshot:
        """The databases that are attached, read again after a statement of this engine that may change them."""
        if self._snapshot is None:
            self._snapshot = read_snapshot(self.execute)
        return self._snapshot

    def attempt(self, sql: str) -> str | None:
        """Run a statement that may hold a secret; what the database says if it fails, which may quote it as well."""
        self._snapshot = None
        return attempt(self.connection, sql)

    def _timed(self, name: str, statement: Statement) -> int:
        start = time.perf_counter()
        result = self._execute(statement)[1]
        count = result[0][0] if result and isinstance(result[0][0], int) else 0
        step = Step(name, count, (time.perf_counter() - start) * 1000)
        self.steps.append(step)
        if self.on_step:
            self.on_step(step)
        return count

    def _execute(self, statement: Statement) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names of the columns and the rows; both are read here, as errors may come as late as that."""
        interrupts.check()
        if self.on_statement:
            self.on_statement(statement)
        if CHANGES.match(statement.sql):
            self._snapshot = None
        if not _KEEPS_COLUMNS.match(statement.sql):
            self._found.clear()
        try:
            interrupts.work.statement = statement
            cursor = self.connection.execute(statement.sql, statement.values or None)
            return [column[0] for column in cursor.description or ()], cursor.fetchall()
        except StoppedError:
            raise KeyboardInterrupt from None
        except ClientError as error:
            raise failure_of(error, statement) from None  # a cause in a traceback would quote data
        except (RuntimeError, UnicodeError) as error:
            refuse_half_characters(statement)
            if "interrupted" in str(error):  # the client's word for Ctrl-C during a statement
                raise KeyboardInterrupt from None
            raise
        finally:
            interrupts.work.statement = None


def is_joined(connection: Connection) -> bool:
    """True if the connection has a transaction open that a caller began, be it one that has failed."""
    try:
        return Engine(connection).in_transaction()
    except DatabaseError:
        return True
