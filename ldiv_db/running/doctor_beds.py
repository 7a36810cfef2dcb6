"""Where a doctor lays the people that were made up: in a schema of a warehouse, or in a transaction of DuckDB's.

Afterwards both are as they were: the schema is dropped with all that runs made in it, their ledger among it, and the
transaction is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.catalog import Column, named_table
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, LdivError, refused
from ldiv_db.database.names import Relation
from ldiv_db.database.snapshot import Kind
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.publishing.ledger import RUN_TABLES
from ldiv_db.publishing.ledger_there import OTHERS, ledger_of
from ldiv_db.running.run import run

#: The tables that a doctor makes: people, people who are to change, a release and a series of them.
PEOPLE, CHANGING, RELEASED, SERIES = "people", "changing", "released", "released_nightly"
#: No two people have the same quasi-identifiers and illness: so it is known which kept values are beside which labels.
COLUMNS = {
    "number": "INTEGER", "person": "VARCHAR", "age": "INTEGER", "town": "VARCHAR", "dose": "DOUBLE",
    "seen": "DATE", "entered": "TIMESTAMP", "cost": "DECIMAL(6, 2)", "smokes": "BOOLEAN", "illness": "VARCHAR",
}  # fmt: skip
_TOWNS, _ILLNESSES = ("Łódź", "it's", None, 'a "b" \\ c'), ("flu", "x;--", "HIV", "cold", "gout")
ROWS = [
    (
        *(number, f"p{number // 2}", 30 + number // 3, _TOWNS[number % 4], number / 4),
        *(date(2024, 2, 29 - number), datetime(2024, 2, 1, 12, 30, number, 250_001)),
        *(Decimal(number) / 4, number % 3 == 0, _ILLNESSES[number % 5]),
    )
    for number in range(12)
]


class _UndoneError(Exception):
    """Ends a transaction that is to leave nothing."""


@dataclass
class _Bed:
    """A place for tables, in a `schema`."""

    schema: str

    def named(self, name: str) -> Relation:
        """The table of that name."""
        return Relation((*named_table(self.schema, "schema").parts, name))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Within, trials are made; afterwards nothing is left."""
        yield

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Within, there are people, and what runs make of them."""
        yield


@dataclass
class Transaction(_Bed):
    """Tables of a connection of DuckDB's, whose current database may be one that is attached."""

    connection: Any
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        self.engine = Engine(self.connection)
        if not self.kind.takes_back or self.engine.in_transaction():
            what = "has a transaction that has begun" if self.kind.takes_back else f"{self.kind.name} takes no releases"
            raise refused("connection", what)

    @property
    def kind(self) -> Kind:
        """The kind of the database."""
        return self.engine.snapshot.traits(self.engine.snapshot.current)

    def named(self, name: str) -> Relation:
        return super().named(name) if self.kind.has_schemas else Relation((f"{self.schema}_{name}",))

    @contextmanager
    def trial(self) -> Iterator[None]:
        with suppress(_UndoneError), self.engine.transaction():
            for name in (PEOPLE, CHANGING):
                rows = self.engine.load("made_up", COLUMNS, ROWS)
                self.engine.create(self.named(name), "database/list_rows", rows=rows, columns=[*COLUMNS])
            yield
            raise _UndoneError

    def run(self, policy: Mapping[str, Any]) -> Any:
        """Run a policy; raises as every run."""
        return run(self.connection, policy)

    def read(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table, in no order."""
        return self.engine.columns(self.named(name))

    def add(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add people to a table."""
        self.engine.extend(self.named(name), self.engine.load("made_up", COLUMNS, rows))

    @contextmanager
    def ledger(self) -> Iterator[Engine]:
        """An engine that has the ledger."""
        yield self.engine


@dataclass
class Schema(_Bed):
    """Tables of a warehouse, with a ledger of their own, in a schema that is made, or empty."""

    there: Warehouse

    @contextmanager
    def opened(self) -> Iterator[None]:
        there, people = self.there, self.named(PEOPLE)
        if not there.traits.schema:
            raise refused("database", f"{there.traits.name} has no schemas to try in", "give its file, as sqlite:FILE")
        with there.moment():
            if found := there.tables(people):
                raise refused("schema", f"{self.schema} has {len(found):,} tables", "name one that is empty, or new")
            is_made = there.make_schema(people)
        try:
            for name in (PEOPLE, CHANGING):
                with there.moment():
                    there.make_table(self.named(name), [Column(*column) for column in COLUMNS.items()])
                self.add(name, ROWS)
            yield
        finally:
            self._clear(is_made)

    def _clear(self, is_made: bool) -> None:
        """Drop what is ours, and the schema if it was made."""
        there, people = self.there, self.named(PEOPLE)
        ours = {PEOPLE, CHANGING, RELEASED, SERIES, *RUN_TABLES, *OTHERS}
        try:
            with there.moment():
                for name in [name.lower() for name in there.tables(people)]:
                    if name in ours or name.startswith("ldiv_"):
                        there.drop(people.beside(name))
                if is_made:
                    there.execute(there.traits.no_more_schema.format(there.name(Relation(people.parts[:-1]))))
        except LdivError as error:
            raise DatabaseError(f"drop the schema {self.schema}, in which tables are left: {error}") from error

    def run(self, policy: Mapping[str, Any]) -> Any:
        return run(self.there, policy, catalog=self.schema)

    def read(self, name: str) -> list[tuple[Any, ...]]:
        with self.there.moment():
            return self.there.rows(self.there.rows_of(self.named(name)))

    def add(self, name: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self.there.moment(), open_database(MEMORY) as connection:
            engine = Engine(connection)
            self.there.send(engine, engine.load("made_up", COLUMNS, rows), self.named(name))

    def ledger(self) -> AbstractContextManager[Engine]:
        return ledger_of(self.there, self.schema)
