"""Lineage: the tables and files that a table or view reads, through views, macros and names of any spelling.

Tables are those of the database's own plan, before it leaves out what it need not read. The plan does not name files,
so these are read off the definitions of the views and macros where the plan reads something that is no table.

A table's neighbours are found too: the tables that its foreign keys name, and the columns of all others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from ldiv_db.database import catalog, postgres
from ldiv_db.database.catalog import NAMED, SCHEMA, Column, named
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.names import DIALECT, Relation

#: The functions of tables that read no file, by their names or how these begin.
_WITHIN = {"seq_scan", "range", "generate_series", "repeat", "repeat_row", "unnest", "summary", "test_all_types",
           "pandas_scan", "arrow_scan", "arrow_scan_dumb", "python_arrow_scan", "python_map_function"}  # fmt: skip
_DESCRIBING = ("duckdb_", "pragma_")
#: Operators that are called like functions of tables.
_OPERATORS = {"cte_scan", "rec_cte_scan", "dummy_scan", "column_data_scan", "delim_scan", "index_scan", "empty_scan"}
#: The functions whose argument is a statement, and the names of tables.
_QUERY, _QUERY_TABLE = "query", "query_table"


def reads_table(engine: Engine, source: Relation, table: Relation) -> bool:
    """True if reading `source` reads `table`, by any name."""
    if postgres.is_in_postgres(engine, table):
        wanted_name = catalog.full_name(engine, table)
        if postgres.is_in_postgres(engine, source):
            return wanted_name in postgres.relations_read(engine, source)
        # Of a table of the server that a view of ours reads, the plan has the bare name.
        return any(read.name.lower() == wanted_name[2] for read in tables_read(engine, source))
    wanted = _identity(engine, table)
    return any(_identity(engine, read) == wanted for read in tables_read(engine, source))


def reads_file(engine: Engine, source: Relation, path: Path) -> bool | None:
    """True if reading `source` reads the file at `path`, which exists; None if that cannot be told."""
    if reads_tables_alone(engine, source):
        return False
    definitions = _Definitions(engine)
    definitions.follow([source.name])
    if any(_names(engine, pattern, path) for pattern in definitions.patterns):
        return True
    return False if definitions.certain else None


def lies_among(pattern: str, path: Path) -> bool:
    """True if a file at `path`, which need not exist, would match a pattern, or lie in the folder of a table."""
    base = Path(pattern)
    fixed = next((folder for folder in (base, *base.parents) if not set("*?[") & set(str(folder))), base)
    within = path.resolve().is_relative_to(fixed.resolve()) and fixed.is_dir()
    return within and (fixed == base or base.suffix.lower() == path.suffix.lower() or not base.suffix)


def tables_read(engine: Engine, source: Relation) -> list[Relation]:
    """The tables beneath `source`, each with its database and schema."""
    texts = dict.fromkeys(info["Table"] for _, info in _plan(engine, source) if info.get("Table"))
    return [Relation.parse(text) for text in texts]


def reads_tables_alone(engine: Engine, source: Relation) -> bool:
    """True if reading `source` reads nothing but tables, and what is in memory."""
    used = {name for name, _ in _plan(engine, source)}
    if used <= _WITHIN | {"projection", "filter"}:  # so that thousands of functions need not be listed
        return True
    functions = {name for (name,) in engine.execute(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'table'"
    )}  # fmt: skip
    scans = {name for name in used if name in functions or (name.endswith("_scan") and name not in _OPERATORS)}
    return all(name in _WITHIN or name.startswith(_DESCRIBING) for name in scans)


def same_file(one: str | Path, other: str | Path) -> bool:
    """True if two paths lead to one file that exists, by whatever links."""
    with suppress(OSError, ValueError):
        return os.path.samefile(one, other)
    return False


# -- the plan ----------------------------------------------------------------------------------------


def _plan(engine: Engine, source: Relation) -> list[tuple[str, dict[str, Any]]]:
    with engine.setting("explain_output", "all"):  # before branches without rows are pruned
        plans = dict(engine.execute(f"EXPLAIN (FORMAT json) SELECT * FROM {source.sql()}"))
    return list(_operators(json.loads(plans.get("logical_plan") or plans["physical_plan"])))


def _operators(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, list):
        for child in node:
            yield from _operators(child)
        return
    yield node["name"].strip().lower(), node.get("extra_info") or {}
    yield from _operators(node.get("children", []))


def _identity(engine: Engine, relation: Relation) -> tuple[Any, ...]:
    """The table's identity among all tables: the file of its database, its schema and its name."""
    database, schema, name = catalog.full_name(engine, relation)
    file = engine.snapshot[database].file
    with suppress(OSError, TypeError):
        status = os.stat(file)  # type: ignore[arg-type] # a database in memory has none
        return status.st_dev, status.st_ino, schema, name
    return database, schema, name


# -- definitions -------------------------------------------------------------------------------------


@dataclass
class _Definitions:
    """The paths that views and macros read, as they are written; not `certain` if some cannot be told."""

    engine: Engine
    patterns: set[str] = field(default_factory=set)
    certain: bool = True
    _seen: set[str] = field(default_factory=set)

    def follow(self, names: list[str]) -> None:
        """Take in what the views and macros of these names read, in whatever schema they are."""
        waiting = [name.lower() for name in names]
        while waiting:
            name = waiting.pop()
            if name in self._seen:
                continue
            self._seen.add(name)
            for text, parameters in _texts_of(self.engine, name):
                waiting += self._read(text, parameters)

    def _read(self, text: str, parameters: set[str]) -> list[str]:
        """The names that a definition uses, in lower case."""
        try:
            tree = sqlglot.parse_one(text, read=DIALECT)
        except sqlglot.ParseError:
            self.certain = False
            return []
        names = []
        for table in tree.find_all(exp.Table):
            if isinstance(table.this, exp.Func):
                continue
            parts = [part.name for part in table.parts]
            self.patterns |= {parts[-1], ".".join(parts)}
            names.append(parts[-1].lower())
        for function in tree.find_all(exp.Func):
            name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()
            names += [name, *self._call(function, name, parameters)]
        return names

    def _call(self, function: exp.Func, name: str, parameters: set[str]) -> list[str]:
        """Take in the arguments of a call that may be paths; the names in the statements that it runs."""
        macros = [declared for _, declared in _texts_of(self.engine, name, "macro")]
        within = name in _WITHIN or name.startswith(_DESCRIBING)
        if not macros and (within or not isinstance(function.parent, exp.Table)):
            return []
        arguments = (function.args.get("this"), *function.expressions)
        given = [argument for argument in arguments if isinstance(argument, exp.Expr)]
        if any(len(given) < len(declared) for declared in macros):
            self.certain = False  # what a parameter is by default is not known
        names: list[str] = []
        for argument in given:
            texts = self._values(argument, parameters)
            self.patterns |= set(texts)
            if name == _QUERY:
                names += [called for text in texts for called in self._read(text, set())]
            elif name == _QUERY_TABLE:
                names += [text.rpartition(".")[2].strip('"').lower() for text in texts]
        return names

    def _values(self, argument: exp.Expr, parameters: set[str]) -> list[str]:
        """The texts that an argument stands for; those of a macro's parameter are among its calls' arguments."""
        argument = argument.unnest()
        named = isinstance(argument, exp.EQ | exp.PropertyEQ | exp.Kwarg)
        value = argument.expression if named else argument
        if isinstance(value, exp.Column) and value.name.lower() in parameters:
            return []
        if value.find(exp.Column, exp.Subquery, exp.Select):
            self.certain = self.certain and named
            return []
        try:
            ((result,),) = self.engine.execute(f"SELECT {value.sql(dialect=DIALECT)}")
        except DatabaseError:
            self.certain = self.certain and named
            return []
        return [text for text in (result if isinstance(result, list) else [result]) if isinstance(text, str)]


def _texts_of(engine: Engine, name: str, kind: str = "") -> list[tuple[str, set[str]]]:
    """The definitions of all views and macros of that name, each with the parameters that it has."""
    macros = engine.execute(
        "SELECT macro_definition, parameters FROM duckdb_functions()"
        " WHERE macro_definition IS NOT NULL AND NOT internal AND lower(function_name) = $name",
        {"name": name},
    )
    definitions = [(text, {parameter.lower() for parameter in parameters}) for text, parameters in macros]
    if kind:
        return definitions
    views = engine.execute("SELECT sql FROM duckdb_views() WHERE NOT internal AND lower(view_name) = $n", {"n": name})
    return definitions + [(text, set()) for (text,) in views]


def _names(engine: Engine, pattern: str, path: Path) -> bool:
    """True if a path or pattern, as the database reads it, stands for the file, or for a folder above it."""
    scheme, separator, rest = pattern.partition("://")
    if separator and scheme.lower() != "file":
        return False
    plain = os.path.expanduser(rest if separator else pattern.removeprefix("file:"))
    with suppress(OSError, ValueError):
        if os.path.isdir(plain) and path.resolve().is_relative_to(Path(plain).resolve()):
            return True
    if same_file(plain, path):
        return True
    with suppress(DatabaseError):
        return any(same_file(file, path) for (file,) in engine.execute("SELECT file FROM glob($p)", {"p": pattern}))
    return False


def foreign_keys(engine: Engine, table: Relation) -> dict[str, tuple[Relation, str]]:
    """The tables whose rows a column of the table names, each with its key, as declared: all columns in lower case."""
    if postgres.is_in_postgres(engine, table):
        return {column: (Relation(tuple(place)), key) for column, *place, key in postgres.foreign_keys(engine, table)}
    rows = engine.execute(
        "SELECT lower(constraint_column_names[1]), database_name, schema_name, referenced_table,"
        " lower(referenced_column_names[1]) FROM duckdb_constraints()"
        f" WHERE {NAMED} AND lower(table_name) = lower($name)"
        " AND constraint_type = 'FOREIGN KEY' AND len(constraint_column_names) = 1"
        " ORDER BY constraint_index ASC NULLS LAST",
        named(engine, table),
    )
    return {column: (Relation(tuple(place)), key) for column, *place, key in rows}


def columns_beside(engine: Engine, table: Relation, most_rows: int) -> list[tuple[Relation, Column]]:
    """The other tables of its database of up to so many rows, as the database guesses, with each of their columns."""
    rows = engine.execute(
        "SELECT c.database_name, c.schema_name, c.table_name, c.column_name, c.data_type"
        " FROM duckdb_columns() AS c JOIN duckdb_tables() AS t ON c.database_name = t.database_name"
        " AND c.schema_name = t.schema_name AND c.table_name = t.table_name"
        " JOIN duckdb_databases() AS d ON d.database_name = c.database_name"
        " WHERE lower(c.database_name) = lower($database) AND lower(c.schema_name) <> $ours AND NOT t.internal"
        " AND NOT (d.type = 'sqlite' AND starts_with(lower(c.table_name), $ours || '_'))"
        " AND NOT (lower(c.schema_name) = lower($schema) AND lower(c.table_name) = lower($name))"
        " AND NOT (t.temporary AND starts_with(lower(c.table_name), $ours || '_'))"  # copies of frames, which are ours
        " AND coalesce(t.estimated_size, 0) <= $most"
        " ORDER BY c.schema_name ASC NULLS LAST, c.table_name ASC NULLS LAST, c.column_index ASC NULLS LAST",
        {**named(engine, table), "ours": SCHEMA, "most": most_rows},
    )
    return [(Relation(row[:3]), Column(row[3], row[4])) for row in rows]
