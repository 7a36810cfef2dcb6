"""Warehouses: databases in which rows stay, by a connection of theirs and the dialect that they speak.

A connection of ADBC carries Arrow both ways; any other of Python's (PEP 249) fetches rows in parts, and sends them as
its driver can (`sending.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlglot import exp

from ldiv_db.database.catalog import Column, columns_of, named_table
from ldiv_db.database.connections import Settings
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.dialects import bound, written_table, written_tree, written_type
from ldiv_db.database.drivers import dialect_of, fetch_arrow, fetch_parts, fetch_rows, told_type
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, refused
from ldiv_db.database.failures import said_there
from ldiv_db.database.names import Identifier, Relation, literal
from ldiv_db.database.sending import Sent, send_rows
from ldiv_db.database.templates import render
from ldiv_db.database.traits_there import DIALECTS, TRAITS, TraitsThere, told_of_loss

#: The columns of rows that stand once for all that are equal: how many, and their place in the order of a release.
COUNTED, PLACE = Identifier("ldiv_rows"), Identifier("ldiv_place")


class Warehouse:
    """A database in which rows stay: it counts them, and writes a release as it is told.

    `dialect` is by default that of the connection's driver. Raises PolicyError for one that is not known. `accept` is
    what else judges a table before it takes the place of another: it raises an error, and the table is not put.
    """

    #: Whether rows of a table can be changed.
    updates = True
    #: What the database here may use that holds its counts.
    settings: Settings | None = None
    accept: Callable[[Relation], None] = staticmethod(lambda staged: None)

    def __init__(self, connection: Any, dialect: str | None = None):
        self.connection = connection
        self.is_adbc = hasattr(connection, "adbc_get_info")
        self.dialect = dialect or dialect_of(connection)
        if self.dialect not in DIALECTS:
            what = f"speaks {self.dialect}" if self.dialect else f"comes from {type(connection).__module__}"
            hint = f"say which SQL it speaks: dialect, one of {', '.join(DIALECTS)}"
            raise refused("connection", f"{what}, which is not known", hint)
        self.traits = TRAITS[self.dialect]
        #: Whether a table that was made can be taken back; until then nobody else sees it.
        self.takes_back = self.traits.takes_back
        #: What the statements of a run say that they are of, to whoever looks at the server or its bill.
        self.run = "ldiv_db"

    # -- statements --------------------------------------------------------------------------------------

    @contextmanager
    def moment(self, written: Relation | None = None) -> Iterator[None]:
        """Within, all is of one moment, which begins once no other writes to the table `written`; then committed.

        Raises PolicyError where a transaction of the caller's has begun, which ours would end.
        """
        status = getattr(getattr(self.connection, "info", None), "transaction_status", 0)  # of psycopg: 0 is idle
        if status or getattr(self.connection, "in_transaction", False):
            raise refused("connection", "has a transaction that has begun", "commit it first")
        sent = self._beforehand(written)
        if self._commits_each or (self.dialect == "sqlite" and not self.is_adbc):
            self.execute(self.traits.begin)
        try:
            for sql in sent:
                self.execute(sql)
            yield
            with self._doing("commit"):
                self._end("COMMIT")
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                self._end("ROLLBACK")
            raise

    def _beforehand(self, written: Relation | None) -> list[str]:
        """What is set for a transaction, and locked before it reads, which is when its moment begins; asked outside."""
        traits = self.traits
        lacking = [sql for (sql,) in self.rows(traits.lacking.format(run=self.run))] if traits.lacking else []
        locks = [traits.lock.format(self.name(written))] if traits.lock and written and self.exists(written) else []
        if (traits.lacking or traits.lock) and not self._commits_each:
            self.connection.rollback()
        return [*traits.settings, *lacking, *locks, *filter(None, [traits.locked])]

    @property
    def _commits_each(self) -> bool:
        """True if the driver commits every statement by itself, where a transaction could hold several."""
        return self.takes_back and getattr(self.connection, "autocommit", False) is True

    def _end(self, how: str) -> None:
        self.execute(how) if self._commits_each else getattr(self.connection, how.lower())()

    def execute(self, sql: str, doing: str = "run a statement") -> None:
        """Run a statement without rows."""
        with self._ran(sql, doing):
            pass

    def _signed(self, sql: str) -> str:
        """A statement that says whose it is, at its end, as some servers cut off a beginning."""
        return f"{sql} /* {self.run} */"

    @contextmanager
    def _ran(self, sql: str, doing: str) -> Iterator[Any]:
        """A cursor that has run a statement."""
        with self._doing(doing), closing(self.connection.cursor()) as cursor:
            cursor.execute(self._signed(sql))
            yield cursor

    def written(self, template: str, **params: Any) -> str:
        """The SELECT of a template in the dialect."""
        return written_tree(bound(render(template, params), self.dialect), self.dialect)

    def rows(self, sql: str, doing: str = "read") -> list[tuple[Any, ...]]:
        """The rows of a SELECT that are few."""
        with self._ran(sql, doing) as cursor:
            return [tuple(row) for row in cursor.fetchall()]

    def source(self, given: Any, folder: Path) -> Relation:
        """The table or view of that name; raises PolicyError for anything else."""
        if not isinstance(given, str) or FileRelation.of(given) is not None:
            raise refused("source", f"{given} is not a table of the warehouse", "name a table or view of it")
        return named_table(given, "source")

    def refresh(self, source: Relation) -> None:
        """Have the next statements read a source as it is by now, as databases do of themselves."""

    def columns(self, source: Relation) -> list[Column]:
        """The columns of a table, with the types that its driver tells; a text where it tells none."""
        return [Column(name, told_type(kind, self.dialect, self.is_adbc)) for name, kind in self.described(source)]

    def described(self, table: Relation | str, parts: Sequence[int] = (0, 1)) -> list[tuple[Any, ...]]:
        """These parts of what a driver says of each column of a table, or of what a SELECT gives: its name and type."""
        sql = table if isinstance(table, str) else f"SELECT * FROM {self.name(table)} WHERE 1 = 0"
        with self._ran(sql, "read" if isinstance(table, str) else f"read {table}") as cursor:
            return [tuple(entry[part] for part in parts) for entry in cursor.description]

    def fetch(self, engine: Engine, name: str, sql: str, renamed: Sequence[str]) -> Relation:
        """The rows of a SELECT as a TEMP table of the engine's, its columns renamed."""
        with self._doing("count"), closing(self.connection.cursor()) as cursor:
            if not self.is_adbc:
                return fetch_rows(engine, name, fetch_parts(cursor, self._signed(sql)), renamed)
            cursor.execute(self._signed(sql))
            return fetch_arrow(engine, name, cursor, renamed)

    # -- tables ------------------------------------------------------------------------------------------

    def name(self, named: Relation | str) -> str:
        """The name of a table, or that of a column, in the dialect."""
        return written_table(Relation((named,)) if isinstance(named, str) else named, self.dialect)

    def tables(self, beside: Relation) -> list[str]:
        """The names of the tables and views in the schema of a table."""
        return self._listed(beside) or []

    def _listed(self, beside: Relation) -> list[str] | None:
        """The same, None where there is no such schema and the database says so."""
        catalog = f"{self.name(beside.parts[0])}." if len(beside.parts) > 2 else ""
        within = f"{self.name(Relation(beside.parts[:-1]))}." if len(beside.parts) > 1 else ""
        asked = self.traits.tables.format(here=self._schema(beside), catalog=catalog, within=within)
        try:
            return [name for (name,) in self.rows(asked)]
        except DatabaseError as error:  # its own words are withheld
            if self.traits.no_schema and self.traits.no_schema in str(error.__context__):
                return None
            raise

    def _schema(self, table: Relation) -> str:
        """The schema of a table, as a value."""
        return literal(self.held(table.parts[-2])) if len(table.parts) > 1 else self.traits.here

    def exists(self, table: Relation) -> bool:
        """True if there is a table or view of that name."""
        return self.held(table.name) in self.tables(table)

    def held(self, name: str) -> str:
        """A name as the database holds it: it may fold what a policy writes in lower case."""
        return exp.to_table(self.name(name), dialect=self.dialect).name

    def _has_schema(self, table: Relation) -> bool:
        if self.traits.no_schema:  # its list of schemas is of one region
            return self._listed(table) is not None
        return (self.held(table.parts[-2]),) in self.rows(self.traits.schemata)

    def make_schema(self, table: Relation) -> bool:
        """Make the schema of a table where it is not there; true if it was made."""
        if len(table.parts) < 2 or not self.traits.schema or self._has_schema(table):
            return False
        here = self.rows(f"SELECT {self.traits.here}") if self.traits.go_back else []
        self.execute(self.traits.schema.format(self.name(Relation(table.parts[:-1]))))
        if here and here[0][0]:
            self.execute(self.traits.go_back.format(self.name(here[0][0])))
        return True

    def make_table(self, table: Relation, columns: Sequence[Column], withheld: bool = False) -> None:
        """Make an empty table of columns in our types, its owner's alone if it is `withheld`."""
        listed = ", ".join(f"{self.name(c.name)} {written_type(c.type, self.dialect)}" for c in columns)
        self.execute(f"CREATE TABLE {self.name(table)} ({listed}){self.traits.storage}")
        if withheld and self.traits.withhold:
            self.execute(self.traits.withhold.format(table=literal(self.name(table))))

    def send(self, engine: Engine, rows: Relation, table: Relation, lent: bool = False) -> None:
        """Append a TEMP table's rows to a table there by the names of its columns; to one this run made, if `lent`."""
        with self._doing(f"write {table}"), closing(self.connection.cursor()) as cursor:
            send_rows(Sent(engine, rows, self.connection, cursor, table, self.dialect, lent))

    def create(self, table: Relation, template: str, **params: Any) -> None:
        """Make a table of the rows of a template's SELECT."""
        self.execute(f"CREATE TABLE {self.name(table)}{self.traits.storage} AS\n{self.written(template, **params)}")

    def change(self, table: Relation, values: Mapping[str, str] | None, having: Mapping[str, str]) -> None:
        """Change the rows with these texts in some columns, or delete them if there are no values."""
        set_to = ", ".join(f"{self.name(name)} = {literal(text)}" for name, text in (values or {}).items())
        where = " AND ".join(f"{self.name(name)} = {literal(text)}" for name, text in having.items())
        what = self.traits.update if values else "DELETE FROM {table} WHERE {where}"
        self.execute(what.format(table=self.name(table), values=set_to, where=where))

    def scratch(self, beside: Relation, name: str) -> Relation:
        """A place for a table that is there for the time of a run, in the schema of another."""
        return beside.beside(name)

    def lend(self, engine: Engine, rows: Relation, table: Relation, typed: str = "") -> None:
        """Copy the rows of one of the engine's TEMP tables to a table there that is dropped at the end.

        Its columns have the types of our own database, and it is counted to plan with it; or those of the SELECT
        `typed`, for a table that is read as a whole.
        """
        if typed:
            self.execute(f"CREATE TABLE {self.name(table)}{self.traits.storage} AS\n{typed}")
        else:
            self.make_table(table, columns_of(engine, rows))
        self.send(engine, rows, table, lent=True)
        if self.traits.analyze and not typed:
            self.execute(self.traits.analyze.format(self.name(table)))

    def exact(self, table: Relation) -> set[str]:
        """The columns, in lower case, in which values that are equal are known to be written alike."""
        return {name.lower() for name in self._asked(self.traits.exact, table)}

    def extent(self, table: Relation, column: str | None) -> tuple[int, int]:
        """The rows of a table, and the largest number in a column; 0 without a column, or rows."""
        most = f"COALESCE(MAX({self.name(column)}), 0)" if column else "0"
        ((rows, largest),) = self.rows(f"SELECT COUNT(*), {most} FROM {self.name(table)}")
        return int(rows), int(largest)

    def put_back(self, aside: Relation, table: Relation) -> None:
        """Drop what a dead run had moved aside."""
        self.drop(aside)

    def drop(self, table: Relation) -> None:
        """Drop a table, if it is there."""
        self.execute(f"DROP TABLE IF EXISTS {self.name(table)}")

    def counted(self, staged: Relation) -> Identifier | None:
        """The column of a staged table that says how many rows each of its rows is, if it has equal rows once."""
        return COUNTED if any(name.lower() == COUNTED.name for name, _ in self.described(staged)) else None

    def released(self, staged: Relation, parts: Sequence[int] = (0, 1)) -> list[tuple[Any, ...]]:
        """As `described`, the columns of the release that is staged in a table."""
        return [entry for entry in self.described(staged, parts) if entry[0].lower() not in (COUNTED.name, PLACE.name)]

    def rows_of(self, staged: Relation) -> str:
        """The SELECT of the rows of the release that is staged in a table."""
        if not self.counted(staged):
            return f"SELECT * FROM {self.name(staged)}"
        columns = [Identifier(name) for name, _ in self.released(staged)]
        told = {"columns": columns, "place": PLACE, "counted": COUNTED, "as_list": self.traits.repeats == "list"}
        return self.written("database/repeat_staged", staged=staged, **told)

    def require_all(self, staged: Relation, table: Relation, before: int = 0) -> None:
        """Raise DatabaseError unless a table has as many rows as were staged, beside those that were there before."""
        shown = f"SUM({self.name(COUNTED.name)})" if self.counted(staged) else "COUNT(*)"
        ((staged_rows,),) = self.rows(f"SELECT {shown} FROM {self.name(staged)}")
        found, wanted = self.extent(table, None)[0] - before, int(staged_rows or 0)
        if found != wanted:
            raise DatabaseError(f"{self.dialect} has {found:,} of the {wanted:,} rows that were to be written")

    def facts(self, table: Relation, staged: Relation) -> TraitsThere:
        """What is known of the place of a table in which a staged release is to be put."""
        return self.traits

    def put(self, staged: Relation, table: Relation, append: bool) -> None:
        """Put a staged release into the place of a table, or its rows behind those that are there.

        Where nothing is taken back it is one statement as far as the database has one.
        """
        rows, old, there = self.rows_of(staged), self.name(table), self.exists(table)
        withdrawn = self._asked(self.traits.withdrawn, table) if there else []
        before = self.extent(table, None)[0] if there and append and self.takes_back else 0
        if there and (append or self.keeps(staged, table)):
            columns = ", ".join(self.name(name) for name, _ in self.released(staged))
            for sql in ("INSERT INTO {table} {rows}",) if append else self.traits.overwrite:
                self.execute(sql.format(table=old, rows=rows, columns=columns))
        else:
            if there and not self.traits.replaces:
                self.drop(table)
            is_renamed = self.takes_back and not self.counted(staged)
            made = "CREATE OR REPLACE" if self.traits.replaces else "CREATE"
            moved = f"ALTER TABLE {self.name(staged)} RENAME TO {self.name(table.name)}"
            for sql in (moved if is_renamed else f"{made} TABLE {old}{self.traits.storage} AS {rows}", *withdrawn):
                self.execute(sql)
            if is_renamed:
                return
        if self.takes_back:
            self.require_all(staged, table, before)
        self.forget(staged)

    def forget(self, staged: Relation) -> None:
        """Drop what was put into its place; outside of a transaction the next run does where that fails."""
        with suppress(*(() if self.takes_back else (DatabaseError,))):
            self.drop(staged)

    def keeps(self, staged: Relation, table: Relation) -> bool:
        """True if the table stays, with all that it has, and its rows are exchanged: its columns are the same."""
        parts = (0, 1, 4, 5)  # with precision and scale, to which what is inserted would be rounded
        return bool(self.traits.overwrite) and str(self.released(staged, parts)) == str(self.described(table, parts))

    def beside_rows(self, table: Relation) -> list[str]:
        """What a table has beside its rows that is lost if it is made anew, as a note says it."""
        return self._asked(self.traits.beside, table)

    def told_of_loss(self, table: Relation, why: str, lose: Sequence[str] = ()) -> str:
        """A note on what a table loses that is made anew; raises as the function of that name."""
        return told_of_loss(self.beside_rows(table), str(table), why, self._asked(self.traits.dependent, table), lose)

    def _asked(self, asked: str, table: Relation) -> list[str]:
        """The texts that a SELECT of the traits finds of a table; none without one."""
        name = {"table": literal(self.name(table)), "here": self._schema(table), "name": literal(self.held(table.name))}
        return [str(what) for (what,) in self.rows(asked.format(**name))] if asked else []

    def refuse_place(self, table: Relation) -> None:
        """Raise PolicyError if something is in the place of a table of which the database does not know."""

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Within, errors of the driver are raised as DatabaseError: its own words may quote a row or a password."""
        try:
            yield
        except (KeyboardInterrupt, DatabaseError, PolicyError):
            raise
        except Exception as error:
            raise said_there(error, self.dialect, what) from None
