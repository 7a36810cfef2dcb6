"""The contents of a database: the columns of a source, its tables and views, and the place of the `ldiv` schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, Problem, nearest, refused
from ldiv_db.database.names import Relation, SqlType, literal
from ldiv_db.database.snapshot import MYSQL

#: The schema that holds taxonomies, the ledger of runs and the ledger of migrations.
SCHEMA = "ldiv"

#: The schemas and databases that are the database's own.
_SYSTEM = ("information_schema", "pg_catalog", "system", "temp")

#: Types that arithmetic orders; the rest generalises by taxonomy only.
_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_REAL = ("FLOAT", "DOUBLE", "DECIMAL", "UHUGEINT")
_TIME = ("DATE", "TIMESTAMP")
#: A type that people name: a word or some, perhaps with a precision.
_NAMED_TYPE = re.compile(r"[A-Z][A-Z0-9_ ]*(\(\d+(, ?\d+)?\))?")
#: A name in a nested type, or an enum, with its values or without.
_ENUM = re.compile(r"""("(?:[^"]|"")*")|\bENUM(?:\((?:'(?:[^']|'')*'(?:, )?)*\)|(?=[\[,)]|$))""")
#: The end of the type of a list.
_LIST = re.compile(r"\[\d*\]$")
#: The type of points in time that a connection shows in its own zone; we state them in UTC.
INSTANT = "TIMESTAMP WITH TIME ZONE"
#: The condition on a row of the database's own lists that it is of the schema that `named` gives.
NAMED = "lower(database_name) = lower($database) AND lower(schema_name) = lower($schema)"


@dataclass(frozen=True)
class Column:
    """A column of a source, with its SQL type."""

    name: str
    type: str

    @property
    def shown(self) -> str:
        """The type as people may see it."""
        return without_members(self.type)

    @property
    def published(self) -> str:
        """The type that a release has the column in: an enum lists values that no row need have, and becomes text."""
        return without_members(self.type, "VARCHAR")

    @property
    def is_list(self) -> bool:
        return self.type.endswith("]")

    @property
    def member(self) -> Column:
        """The column of the members of its lists; itself if it has none."""
        return Column(self.name, _LIST.sub("", self.type))

    @property
    def is_integer(self) -> bool:
        return self.type in _NUMERIC

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.type.startswith(_REAL)

    @property
    def is_fractional(self) -> bool:
        return self.is_number and not self.is_integer

    @property
    def is_float(self) -> bool:
        return self.type in ("FLOAT", "DOUBLE")

    @property
    def is_time(self) -> bool:
        return self.type.startswith(_TIME)

    @property
    def kind(self) -> str:
        """The kind of the column's values on a line: integer, date, timestamp, instant (with time zone), or real."""
        if self.is_time:
            return {"DATE": "date", INSTANT: "instant"}.get(self.type, "timestamp")
        return "integer" if self.is_integer else "real"


def without_members(kind: str, enum: str = "ENUM") -> str:
    """The SQL type without the values of its enums, which are data: `enum` stands for each of these."""
    return _ENUM.sub(lambda found: found[1] or enum, kind)


def columns_of(engine: Engine, source: Table) -> list[Column]:
    """The columns of a table, view or file, in their order; raises DatabaseError if there is no such source."""
    if isinstance(source, FileRelation) and source.form and not source.hive:
        return [Column(*column) for column in source.form.columns]
    return [Column(*column) for column in engine.describe(source)]


def table_exists(engine: Engine, relation: Relation) -> bool:
    """True if there is a table or view of that name, compared as the database compares names."""
    database, schema, name = located(engine, relation)
    return _there(engine, name, [(database, schema)]) is not None


def looked_up(engine: Engine, relation: Relation) -> Relation | None:
    """The table or view that the name stands for, TEMP ones coming first; None if there is none."""
    (database, schema, name), temporary = located(engine, relation), ("temp", "main")
    first = [temporary] if len(relation.parts) == 1 else []
    found = _there(engine, name, [*first, (database, schema)])
    return Relation((*temporary, name)) if found == temporary else found and relation


def definition_of(engine: Engine, table: Relation) -> str | None:
    """The statement that makes a table of DuckDB's; None of a view, and of a name alone that a TEMP table takes."""
    within = f"({NAMED} OR temporary)" if len(table.parts) == 1 else NAMED
    rows = engine.execute(
        f"SELECT sql FROM duckdb_tables() WHERE lower(table_name) = lower($name) AND {within}", named(engine, table)
    )
    return str(rows[0][0]) if len(rows) == 1 else None


def type_named(engine: Engine, text: str) -> str | None:
    """The type as the database itself names it, INTEGER for `int`; None if the text names none."""
    kind = text.strip().upper()
    if not _NAMED_TYPE.fullmatch(kind):
        return None
    try:
        ((name,),) = engine.execute(f"SELECT typeof(CAST(NULL AS {SqlType(kind).sql()}))")
    except DatabaseError:
        return None
    return str(name)


def is_foreign(engine: Engine, relation: Table) -> bool:
    """True if a relation lies, or would lie, in a database that is not DuckDB's own; files lie in none."""
    return isinstance(relation, Relation) and engine.snapshot.kind(located(engine, relation)[0]) != "duckdb"


def located(engine: Engine, relation: Relation) -> tuple[str, str, str]:
    """The database, schema and name of a relation, which need not be there, as the database itself looks it up.

    A name of two parts is one in a schema of the current database, or else in the main schema of an attached one;
    a name alone is in the first schema of the search path that has it, or in the first of all.
    """
    if len(relation.parts) == 3:
        database, schema, name = relation.parts
        return database, schema, name
    name = relation.name
    if len(relation.parts) == 2:
        first = relation.parts[0]
        if first.lower() in engine.snapshot.databases and not _schema_exists(engine, first):
            return first, main_schema(engine, first), name
        return engine.snapshot.current, first, name
    current, schemas = engine.snapshot.current, engine.snapshot.schemas
    places = [(current, schema) for schema in schemas]
    return *((_there(engine, name, places) if len(places) > 1 else None) or places[0]), name


def main_schema(engine: Engine, database: str) -> str:
    """The schema of an attached database that is meant where none is named."""
    kind = engine.snapshot.traits(database)
    if kind is MYSQL:
        ((name,),) = engine.execute(f"FROM mysql_query({literal(database)}, 'SELECT database() AS name')")
        return name or kind.schema
    return kind.schema


def compare_here(engine: Engine) -> None:
    """Have DuckDB itself compare the rows of MySQL, which takes `flu` and `Flu` for one, from here on."""
    if not engine.snapshot.of_kind("mysql"):
        return
    for (name,) in engine.execute("SELECT name FROM duckdb_settings() WHERE name LIKE 'mysql_%pushdown%'"):
        engine.execute(f"SET {name} = false")


def last_snapshot(engine: Engine, database: str) -> int | None:
    """The number of the snapshot of a DuckLake that this connection committed last."""
    ((number,),) = engine.execute(f"FROM ducklake_last_committed_snapshot({literal(database)})")
    return None if number is None else int(number)


def _there(engine: Engine, name: str, places: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """The first of some places, (database, schema), that has a table or view of that name."""
    wanted = [
        f"lower(table_schema) = lower($schema{i}) AND lower(table_catalog) = lower($database{i})"
        for i in range(len(places))
    ]
    asked = f"SELECT {', '.join(wanted)} FROM information_schema.tables"
    values = {f"database{i}": database for i, (database, _) in enumerate(places)}
    values |= {f"schema{i}": schema for i, (_, schema) in enumerate(places)}
    found = engine.execute(
        f"{asked} WHERE lower(table_name) = lower($name) AND ({' OR '.join(wanted)})", {**values, "name": name}
    )
    return next((place for i, place in enumerate(places) if any(row[i] for row in found)), None)


def relations_in(engine: Engine, database: str) -> list[Relation]:
    """All tables and views of an attached database, as (schema, name)."""
    rows = engine.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE lower(database_name) = lower($d) AND NOT internal"
        " UNION ALL SELECT schema_name, view_name FROM duckdb_views()"
        " WHERE lower(database_name) = lower($d) AND NOT internal",
        {"d": database},
    )
    return [Relation(row) for row in rows]


def read_once(engine: Engine, rows: Table) -> Table:
    """A copy of what stands in a database that is attached, else the rows themselves."""
    return engine.copy("published", rows) if isinstance(rows, Relation) and is_foreign(engine, rows) else rows


def same_table(engine: Engine, one: Relation, other: Relation) -> bool:
    """True if two names stand for the same table, whichever of their parts are left out."""
    return full_name(engine, one) == full_name(engine, other)


def full_name(engine: Engine, relation: Relation) -> tuple[str, str, str]:
    """The database, schema and name of a relation, in lower case."""
    database, schema, name = located(engine, relation)
    return database.lower(), schema.lower(), name.lower()


def named(engine: Engine, relation: Relation) -> dict[str, str]:
    """The database, schema and name of a relation, as values of a statement."""
    return dict(zip(("database", "schema", "name"), located(engine, relation), strict=True))


def catalog_table(engine: Engine, name: str) -> Relation:
    """A table of the catalog schema, which lies in the engine's catalog or, without one, in the current database.

    Where a database has one schema alone, the table's name begins with that of ours.
    """
    home = () if engine.catalog is None else (engine.catalog,)
    if not engine.snapshot.traits(engine.catalog or engine.snapshot.current).has_schemas:
        return Relation((*home, "main", f"{SCHEMA}_{name}"))
    return Relation((*home, SCHEMA, name))


def is_ours(engine: Engine, table: Relation) -> bool:
    """True if a table would lie in the catalog's schema or, without schemas, be named as the catalog's tables are."""
    if [part.lower() for part in table.parts[-2:-1]] == [SCHEMA]:
        return True
    is_named_so = table.name.lower().startswith(f"{SCHEMA}_")
    return is_named_so and not engine.snapshot.traits(catalog_of(engine, table)).has_schemas


def named_table(text: str, key: str) -> Relation:
    """The relation that `text` names; raises PolicyError if it is no name."""
    plain, what = '"' not in text, f"{text!r} is not the name of a table"
    if "`" in text and plain:
        raise refused(key, what, "quote names with double quotes")
    try:
        relation = Relation.parse(text)
    except Exception as error:
        raise refused(key, what) from error
    # Text without quotes may be one name with odd characters, but points are between parts, none of them empty.
    odd = plain and (not all(text.split(".")) or (len(relation.parts) == 1 and "." in text))
    if odd or not 1 <= len(relation.parts) <= 3 or not all(relation.parts):
        raise refused(key, what)
    return relation


def new_table(engine: Engine, text: str, key: str, in_file: bool = False) -> Relation:
    """The relation that `text` names, a table to be made in the source's database, or in a file of its own.

    Raises PolicyError for what is no name, for a path, and for places that the database keeps to itself.
    """
    relation = named_table(text, key)
    if set("/\\") & set(text) and '"' not in text:
        hint = "a file takes `file:` and a known ending, a table of that name stands in double quotes"
        raise refused(key, f"{text!r} looks like a path", hint)
    above = [part.lower() for part in relation.parts[:-1]]
    if set(above) & set(_SYSTEM):
        raise refused(key, f"{text} lies in a schema of the database system", "name another schema")
    is_database = len(above) == 1 and above[0] in engine.snapshot.databases
    if not in_file and is_database and not _schema_exists(engine, above[0]):
        what = f"{above[0]} is the name of a database, and no schema"
        raise refused(key, what, f"write {above[0]}.main.{relation.name}, or name another schema")
    return relation


def _schema_exists(engine: Engine, schema: str) -> bool:
    rows = engine.execute(
        "SELECT count(*) FROM duckdb_schemas() WHERE lower(schema_name) = lower($schema)"
        " AND database_name = current_database()",
        {"schema": schema},
    )
    return bool(rows[0][0])


def catalog_of(engine: Engine, relation: Relation) -> str:
    """The database that holds the relation."""
    return located(engine, relation)[0]


def missing_columns(engine: Engine, table: Table, asked: Sequence[tuple[str, str]], what: str) -> list[Problem]:
    """The columns, each with the option that names it, that the table lacks."""
    names = [column.name for column in columns_of(engine, table)]
    known = {name.lower() for name in names}
    return [
        Problem(key, f"the {what} has no column {name!r}", nearest(name, names))
        for key, name in asked
        if name.lower() not in known
    ]


@dataclass(frozen=True)
class Constraint:
    """A constraint of a table of DuckDB's: its kind, as UNIQUE, its text, and the columns that it is on."""

    kind: str
    text: str
    columns: tuple[str, ...]

    @property
    def is_key(self) -> bool:
        """True if no two rows may have the same values."""
        return self.kind in ("UNIQUE", "PRIMARY KEY")


def constraints_of(engine: Engine, table: Relation) -> list[Constraint]:
    """The constraints of a table; none of a table of another database, whose server names what is broken."""
    rows = engine.execute(
        "SELECT constraint_type, CASE constraint_type WHEN 'NOT NULL' THEN 'NOT NULL of ' || constraint_column_names[1]"
        f" ELSE constraint_text END, constraint_column_names FROM duckdb_constraints() WHERE {NAMED}"
        " AND lower(table_name) = lower($name) ORDER BY ALL",
        named(engine, table),
    )
    return [Constraint(kind, text, tuple(name.lower() for name in columns)) for kind, text, columns in rows]
