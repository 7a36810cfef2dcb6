"""PostgreSQL in its own words: the types of columns, views and what they read, tables that keep what is granted.

DuckDB reads and writes the rows; what it does not know of a table is asked of the server, in the same transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database import traits_there
from ldiv_db.database.catalog import NAMED, Column, columns_of, located, named
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.names import Identifier, Relation, literal

#: PostgreSQL's names for the types of DuckDB's that have another name, or another width, there.
_TYPES = {
    "VARCHAR": "text", "JSON": "json", "TINYINT": "smallint", "UTINYINT": "smallint", "USMALLINT": "integer",
    "UINTEGER": "bigint", "UBIGINT": "numeric(20,0)", "HUGEINT": "numeric(39,0)", "UHUGEINT": "numeric(39,0)",
    "FLOAT": "real", "DOUBLE": "double precision", "BLOB": "bytea", "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp", "TIMESTAMP_NS": "timestamp",
}  # fmt: skip
#: Those that have one name in both.
_SAME = re.compile(
    r"SMALLINT|INTEGER|BIGINT|BOOLEAN|DATE|UUID|INTERVAL|(?:TIME|TIMESTAMP)(?: WITH TIME ZONE)?|DECIMAL\(\d+, ?\d+\)"
)
_COLUMNS = (
    "SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type FROM pg_attribute a"
    " WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
)
#: The columns in types that say no more than their values: for a domain, which has checks, what it is over, and for an
#: enum, which lists values that no row need have, text.
_PLAIN = (
    "WITH RECURSIVE base AS (SELECT a.attnum, a.attname::text AS name, a.atttypid AS oid, a.atttypmod AS mod"
    " FROM pg_attribute a WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped"
    " UNION ALL SELECT b.attnum, b.name, t.typbasetype, t.typtypmod FROM base b"
    " JOIN pg_type t ON t.oid = b.oid AND t.typtype = 'd')"
    " SELECT b.name, CASE t.typtype WHEN 'e' THEN 'text' ELSE format_type(b.oid, b.mod) END AS type"
    " FROM base b JOIN pg_type t ON t.oid = b.oid AND t.typtype <> 'd' ORDER BY b.attnum"
)
#: The relation with all that it reads, through views of views; of a rule the server notes what it depends on.
_READ = (
    "WITH RECURSIVE read AS (SELECT {table}::regclass::oid AS oid UNION SELECT d.refobjid FROM read"
    " JOIN pg_rewrite w ON w.ev_class = read.oid JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass"
    " AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass)"
    " SELECT n.nspname::text AS schema, c.relname::text AS name FROM read JOIN pg_class c ON c.oid = read.oid"
    " JOIN pg_namespace n ON n.oid = c.relnamespace"
)
_NAMED = (
    "SELECT n.nspname::text AS schema, c.relname::text AS name FROM pg_class c"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')"
    " AND lower(n.nspname) = lower({schema}) AND lower(c.relname) = lower({name})"
    " ORDER BY n.nspname = {schema} DESC, c.relname = {name} DESC LIMIT 1"
)
#: The columns of what has that name, whoever may read it; none if it is not there.
_HELD = (
    "SELECT a.attname::text AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE a.attnum > 0 AND NOT a.attisdropped"
    " AND lower(n.nspname) = lower({schema}) AND lower(c.relname) = lower({name})"
)
#: A view may be an ordinary one or one that is stored (`m`).
_VIEWS = (
    "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('v', 'm')"
    " AND lower(n.nspname) = lower({schema}) AND lower(c.relname) = lower({name})"
)
#: The columns of a table that are foreign keys by themselves, each with the schema, table and key that it names.
_FOREIGN_KEYS = """
SELECT lower(a.attname) AS own, n.nspname AS place, f.relname AS named, lower(k.attname) AS key FROM pg_constraint o
JOIN pg_class c ON c.oid = o.conrelid JOIN pg_namespace m ON m.oid = c.relnamespace
JOIN pg_class f ON f.oid = o.confrelid JOIN pg_namespace n ON n.oid = f.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = o.conkey[1]
JOIN pg_attribute k ON k.attrelid = f.oid AND k.attnum = o.confkey[1]
WHERE o.contype = 'f' AND cardinality(o.conkey) = 1 AND lower(m.nspname) = lower({schema})
AND lower(c.relname) = lower({name}) ORDER BY o.oid DESC"""
#: Of rights that are asked for those that the user lacks; where a table or schema is not there, leave to make it.
_LACKING = (
    "SELECT w.place, c.oid IS NOT NULL AS is_there, s.oid IS NOT NULL AS has_schema"
    " FROM (VALUES {rights}) AS w (place, privilege, schema, name)"
    " LEFT JOIN pg_namespace s ON lower(s.nspname) = lower(w.schema)"
    " LEFT JOIN pg_class c ON c.relnamespace = s.oid AND lower(c.relname) = lower(w.name)"
    " WHERE NOT CASE WHEN s.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')"
    " WHEN w.name = '' THEN has_schema_privilege(s.oid, w.privilege)"
    " WHEN c.oid IS NULL THEN has_schema_privilege(s.oid, 'CREATE')"
    " WHEN w.privilege = 'OWNER' THEN pg_has_role(c.relowner, 'USAGE')"
    " ELSE has_table_privilege(c.oid, w.privilege) END ORDER BY w.place"
)
_SESSION = (
    "SELECT current_user::text AS name, current_database()::text AS base,"
    " pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS is_read_only"
)

#: Why a table is made anew.
OTHERS_NOW = "its columns are others now"
#: The privileges on the rows of a table.
READ, ADD, CHANGE, REMOVE = "SELECT", "INSERT", "UPDATE", "DELETE"


@dataclass(frozen=True)
class Right:
    """A privilege on a table, or on a schema if it names none; `OWNER` is to be the table's owner."""

    privilege: str
    schema: str
    table: str = ""

    def grant(self, user: str) -> str:
        """The statement that grants it."""
        where = f"SCHEMA {_bare(self.schema)}" if not self.table else f"{_bare(self.schema)}.{_bare(self.table)}"
        if self.privilege == "OWNER":
            return f"ALTER TABLE {where} OWNER TO {_bare(user)}"
        return f"GRANT {self.privilege} ON {where} TO {_bare(user)}"


def _bare(name: str) -> str:
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else Identifier(name).sql()


#: The rows of a query, as the server itself understands it.
Ask = Callable[[str], Sequence[tuple[object, ...]]]


def writing_user(ask: Ask) -> str:
    """The user of a server; raises DatabaseError if all that they may begin is read-only."""
    ((user, _, is_read_only),) = ask(_SESSION)
    if is_read_only:
        raise DatabaseError("the server takes no writes here: it is a standby, or the session is set to read only")
    return str(user)


def schema_of(ask: Ask) -> str:
    """The schema in which tables are made that name none."""
    return str(ask("SELECT current_schema()")[0][0])


def columns_held(ask: Ask, schema: str, name: str) -> set[str]:
    """The columns of a table, whether or not the user may read it; none if it is not there."""
    return {str(column) for (column,) in ask(_HELD.format(schema=literal(schema), name=literal(name)))}


def grants_lacking(ask: Ask, rights: Sequence[Right]) -> list[str]:
    """The statements that grant what the user lacks of the rights; to make what is not there where it would lie."""
    if not rights:
        return []
    ((user, base, _),) = ask(_SESSION)
    values = ", ".join(
        f"({i}, {literal(right.privilege)}, {literal(right.schema)}, {literal(right.table)})"
        for i, right in enumerate(rights)
    )
    found = []
    for place, is_there, has_schema in ask(_LACKING.format(rights=values)):
        right = rights[int(str(place))]
        if not has_schema:
            found.append(f"GRANT CREATE ON DATABASE {_bare(str(base))} TO {_bare(str(user))}")
        elif right.table and not is_there:
            found.append(Right("CREATE", right.schema).grant(str(user)))
        else:
            found.append(right.grant(str(user)))
    return list(dict.fromkeys(found))


def withhold(engine: Engine, tables: Sequence[Relation]) -> None:
    """Withdraw all rights on tables of an attached database from everybody but their owner."""
    for table in tables:
        name = literal(Relation(located(engine, table)[1:]).sql())
        tell(engine, table, traits_there.TRAITS["postgres"].withhold.format(table=name))


def ask_postgres(engine: Engine, database: str, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query as the server itself understands it, in the transaction that is open."""
    return engine.execute(f"FROM postgres_query({literal(database)}, {literal(sql)})")


def is_view(engine: Engine, relation: Relation) -> bool:
    """True if the name stands for a view; DuckDB takes those of PostgreSQL for tables."""
    if is_in_postgres(engine, relation):
        database, schema, name = located(engine, relation)
        return bool(ask_postgres(engine, database, _VIEWS.format(schema=literal(schema), name=literal(name))))
    found = f"SELECT 1 FROM duckdb_views() WHERE {NAMED} AND lower(view_name) = lower($name)"
    return bool(engine.execute(found, named(engine, relation)))


def is_in_postgres(engine: Engine, relation: Any) -> bool:
    """True if a relation lies, or would lie, in a database of PostgreSQL's; a file does not."""
    return isinstance(relation, Relation) and engine.snapshot.kind(located(engine, relation)[0]) == "postgres"


def type_of(kind: str) -> str | None:
    """PostgreSQL's name for a type of DuckDB's, None for one that is not written there: a list, a structure."""
    return _TYPES.get(kind) or (kind if _SAME.fullmatch(kind) else None)


def own_types(engine: Engine, relation: Relation) -> dict[str, str]:
    """The types of PostgreSQL's that values of a table or view are published in, by column in lower case."""
    return {name.lower(): kind for name, kind in _columns(engine, relation, _PLAIN)}


def foreign_keys(engine: Engine, relation: Relation) -> list[tuple[str, str, str, str, str]]:
    """The columns of a table that name rows of others, as declared: column, database, schema, table and its key."""
    database, schema, name = located(engine, relation)
    found = ask_postgres(engine, database, _FOREIGN_KEYS.format(schema=literal(schema), name=literal(name)))
    return [(str(own), database, str(place), str(named), str(key)) for own, place, named, key in found]


def relations_read(engine: Engine, relation: Relation) -> set[tuple[str, str, str]]:
    """The tables and views beneath a relation of PostgreSQL's, and itself: database, schema, name in lower case."""
    database = located(engine, relation)[0].lower()
    return {(database, str(schema).lower(), str(name).lower()) for schema, name in _ask(engine, relation, _READ)}


def values_beyond_floats(engine: Engine, relation: Relation, columns: Sequence[str]) -> dict[str, int]:
    """The number of values in unbounded `numeric` columns, which DuckDB reads as floats, that no float holds."""
    kinds = own_types(engine, relation)
    read = {column.name.lower(): column.type for column in columns_of(engine, relation)}
    open_ended = [c for c in columns if kinds[c.lower()].startswith("numeric") and read[c.lower()] == "DOUBLE"]
    if not open_ended:
        return {}
    names = {name.lower(): name for name, _ in _columns(engine, relation)}
    quoted = [Identifier(names[column.lower()]).sql() for column in open_ended]
    counts = ", ".join(f"count(*) FILTER (WHERE {c}::float8::numeric <> {c}) AS n{i}" for i, c in enumerate(quoted))
    ((*found,),) = ask_postgres(engine, located(engine, relation)[0], f"SELECT {counts} FROM {_name(engine, relation)}")
    return {column: int(count) for column, count in zip(open_ended, map(str, found), strict=True) if count != "0"}


def hides_rows(engine: Engine, relation: Relation) -> bool:
    """True if row level security applies to the user in a table: some of its rows may be nobody's to see here."""
    asked = "SELECT row_security_active({table}::regclass) AS active"
    return _find(engine, relation) is not None and bool(_ask(engine, relation, asked)[0][0])


def shown_types(engine: Engine, source: Any, names: Collection[str]) -> dict[str, str]:
    """The types of PostgreSQL's that a release has of a source's columns, by name in lower case; none of another's."""
    wanted = {name.lower() for name in names}
    types = own_types(engine, source) if is_in_postgres(engine, source) else {}
    return {name: kind for name, kind in types.items() if name in wanted}


def make_table(
    engine: Engine, target: Relation, rows: Relation, own: Mapping[str, str], lose: Sequence[str] = ()
) -> str:
    """Put the rows into the table: create it, empty it if it has the same columns, or else create it anew.

    `own` are the types in PostgreSQL of columns whose values are a source's, by name in lower case. Returns what is
    to be said of what a table that was made anew has lost, which `told_of_loss` may refuse. Inside a transaction.
    """
    columns = columns_of(engine, rows)
    there, withdrawn, note = _find(engine, target), list[str](), ""
    if there and not _differs(engine, target, columns, own):
        tell(engine, target, f"DELETE FROM {there.sql()}")
    else:
        if there:
            note, withdrawn = told_of_loss(engine, target, OTHERS_NOW, lose), withdrawn_from(engine, target)
            tell(engine, target, f"DROP TABLE {there.sql()}")
        engine.make_schema(target)
        listed = ", ".join(f"{Identifier(name).sql()} {kind}" for name, kind in _wanted(columns, own))
        place = Relation(located(engine, target)[1:])
        tell(engine, target, f"CREATE TABLE {place.sql()} ({listed})", *withdrawn)
        engine.refresh_servers()
    engine.extend(target, rows)
    return note


def foreseen_loss(
    engine: Engine, target: Relation, columns: Sequence[Column], own: Mapping[str, str], lose: Sequence[str]
) -> str:
    """What `make_table` will say of a table that is there, for a release of these columns; raises as it does."""
    return told_of_loss(engine, target, OTHERS_NOW, lose) if _differs(engine, target, columns, own) else ""


def told_of_loss(engine: Engine, table: Relation, why: str, lose: Sequence[str]) -> str:
    """A note on what is lost with a table; '' if it has nothing but rows, or does not exist.

    Raises DatabaseError, or PolicyError, if it may not be lost.
    """
    traits, there = traits_there.TRAITS["postgres"], _find(engine, table)
    lost, others = (_texts(engine, table, asked) if there else [] for asked in (traits.beside, traits.dependent))
    return traits_there.told_of_loss(lost, str(table), why, others, lose)


def withdrawn_from(engine: Engine, table: Relation) -> list[str]:
    """The statements that withdraw what a table made in place of this one would give; none if it is not there."""
    return _texts(engine, table, traits_there.TRAITS["postgres"].withdrawn) if _find(engine, table) else []


def tell(engine: Engine, table: Relation, *statements: str) -> None:
    """Run statements that write to a table on its server, as that understands them."""
    database = literal(located(engine, table)[0])
    for sql in statements:
        engine.execute(f"CALL postgres_execute({database}, {literal(sql)})", writes=table)


def _wanted(columns: Sequence[Column], own: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(column.name, own.get(column.name.lower()) or _required(column)) for column in columns]


def _differs(engine: Engine, table: Relation, columns: Sequence[Column], own: Mapping[str, str]) -> bool:
    """Whether a table that is there has other columns, or in another order, than those of a release."""
    database = located(engine, table)[0]
    wanted = [(name, _spelt(engine, database, kind)) for name, kind in _wanted(columns, own)]
    return _columns(engine, table) != wanted


def _required(column: Column) -> str:
    kind = type_of(column.type)
    if kind is None:
        raise DatabaseError(f"PostgreSQL has no type for {column.name}, which is {column.shown}")
    return kind


def _spelt(engine: Engine, database: str, kind: str) -> str:
    """The type as PostgreSQL writes it in its own lists."""
    if kind.upper().startswith("DECIMAL"):
        return kind.lower().replace("decimal", "numeric").replace(" ", "")
    asked = f"SELECT format_type({literal(kind)}::regtype, NULL) AS type"
    return kind if "(" in kind else str(ask_postgres(engine, database, asked)[0][0])


def _texts(engine: Engine, relation: Relation, asked: str) -> list[str]:
    return [str(text) for (text,) in _ask(engine, relation, asked)]


def _columns(engine: Engine, relation: Relation, asked: str = _COLUMNS) -> list[tuple[str, str]]:
    return [(str(name), str(kind)) for name, kind in _ask(engine, relation, asked)]


def _find(engine: Engine, relation: Relation) -> Relation | None:
    """The relation as PostgreSQL spells it, by schema and name, None if it is not there."""
    database, schema, name = located(engine, relation)
    asked = _NAMED.format(schema=literal(schema), name=literal(name))
    rows = ask_postgres(engine, database, asked)
    return Relation((str(rows[0][0]), str(rows[0][1]))) if rows else None


def _name(engine: Engine, relation: Relation) -> str:
    found = _find(engine, relation)
    if found is None:
        raise DatabaseError(f"{relation} is gone")
    return found.sql()


def _ask(engine: Engine, relation: Relation, asked: str) -> list[tuple[object, ...]]:
    """The answer of a relation's server to a query that calls it `{table}`."""
    name = literal(_name(engine, relation))
    return ask_postgres(engine, located(engine, relation)[0], asked.format(table=name))
