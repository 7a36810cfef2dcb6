"""Where the tables of a cell are and its release goes: how rows get there, and how what is published is read."""

from __future__ import annotations

import contextlib
import copy
import importlib
import random
import re
import sqlite3
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import servers

import ldiv_db
from tests.promises.cells import Cell, Row, renamed, rows_of, tables_of

#: Types of SQLite's: those that it has no equal of are put in as text or floating.
_LITE = {"INTEGER": "INTEGER", "VARCHAR": "TEXT", "DECIMAL(8, 2)": "REAL", "DATE": "TEXT"}


#: What a caller may have set, each to something else than the database's own choice.
HOSTILE = {
    "Calendar": "'islamic'", "TimeZone": "'Pacific/Apia'", "default_null_order": "'nulls_first'",
    "default_order": "'DESC'", "dialect_compatibility_mode": "'spark'",
    "disabled_optimizers": "'statistics_propagation,top_n'", "enable_macro_dependencies": "true",
    "enable_view_dependencies": "true", "error_on_division_by_zero": "false", "errors_as_json": "true",
    "ieee_floating_point_ops": "false", "immediate_transaction_mode": "true", "integer_division": "true",
    "legacy_disable_null_type": "true", "old_implicit_casting": "true", "order_by_non_integer_literal": "true",
    "ordered_aggregate_threshold": "2", "preserve_identifier_case": "'lowercase'", "preserve_insertion_order": "false",
    "python_enable_replacements": "false", "regex_match_operator_semantics": "'full'",
    "scalar_subquery_error_on_multiple_rows": "false", "scheduler_process_partial": "true",
    "table_function_identifier_conversion": "'DISABLE_IMPLICIT_STRING'", "threads": "2",
}  # fmt: skip


def be_hostile(connection: Any) -> None:
    """Set all of it that this version of the database knows."""
    known = {name for (name,) in connection.execute("SELECT name FROM duckdb_settings()").fetchall()}
    for name in sorted(known.intersection(HOSTILE)):
        with contextlib.suppress(duckdb.Error):  # an older version may take other words
            connection.execute(f"SET {name} = {HOSTILE[name]}")


def quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


class Home:
    """A database with the tables of a cell, in a folder of its own; `order` is a seed of the order of their rows.

    `hostile` says that its caller has set all that can be set otherwise.
    """

    def __init__(self, cell: Cell, folder: Path, order: int = 0, threads: int = 1, hostile: bool = False):
        self.cell, self.folder, self._order = cell, folder, order
        self.is_there = bool(cell.given)
        folder.mkdir(exist_ok=True)
        if cell.place == "sqlite":
            self.connection: Any = sqlite3.connect(folder / "w.sqlite")
        elif cell.place == "postgres":
            self.connection = _database()
        else:
            self.connection = duckdb.connect(str(folder / "w.duckdb"), config={"threads": threads})
            if hostile:
                be_hostile(self.connection)
        self.frames: dict[str, Any] = {}
        self.policy = renamed(self._policy(), cell.names())
        with duckdb.connect(str(folder / "other.duckdb")):
            pass

    def _policy(self) -> dict[str, Any]:
        document = self.cell.document()
        document["databases"] = {"other": "other.duckdb"} if "databases" in document else None
        document = {key: said for key, said in document.items() if said is not None}
        for said in document.get("tables", {"": document}).values():
            name = said["source"]
            said["source"] = {"attached": f"other.{name}", "csv": f"{name}.csv"}.get(self.cell.place, name)
        return document

    def place(self, rows: Iterable[Row] | None = None) -> None:
        """The tables of these rows, or of the first night, in the place of what is there."""
        tables, kinds = tables_of(self.cell, list(rows_of(self.cell)[:12] if rows is None else rows))
        for name, listed in tables.items():
            types = {self.cell.names().get(column, column): kind for column, kind in kinds[name].items()}
            shuffled = random.Random(self._order).sample(listed, len(listed)) if self._order else listed
            self._put(name, types, [tuple(row.values()) for row in shuffled])

    def _put(self, name: str, types: dict[str, str], rows: list[tuple[Any, ...]]) -> None:
        if self.is_there:
            types = {column: _LITE[kind] if self.cell.place == "sqlite" else kind for column, kind in types.items()}
            mark = "?" if self.cell.place == "sqlite" else "%s"
            self.connection.execute(f"DROP TABLE IF EXISTS {name}")
            columns = ", ".join(f"{quoted(column)} {kind}" for column, kind in types.items())
            self.connection.execute(f"CREATE TABLE {name} ({columns})")
            put = f"INSERT INTO {name} VALUES ({', '.join([mark] * len(types))})"
            plain = [tuple(_lite(value) for value in row) for row in rows] if self.cell.place == "sqlite" else rows
            self.connection.cursor().executemany(put, plain)
            if self.cell.place == "sqlite":
                self.connection.commit()
            return
        place = self.cell.place
        file = str(self.folder / "other.duckdb") if place == "attached" else ":memory:"
        with contextlib.ExitStack() as stack:
            con = self.connection if place == "database" else stack.enter_context(duckdb.connect(file))
            columns = ", ".join(f"{quoted(column)} {kind}" for column, kind in types.items())
            con.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
            con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(types))})", rows)
            if place == "csv":
                con.execute(f"COPY {name} TO '{self.folder}/{name}.csv'")
            if place == "frame":
                self.frames[name] = con.execute(f"FROM {name}").df()

    def asked(self, **changes: Any) -> dict[str, Any]:
        """The policy as it is run, with other values for some keys; frames are its sources."""
        policy = copy.deepcopy(self.policy) | changes
        for said in policy.get("tables", {"": policy}).values():
            said["source"] = self.frames.get(said["source"], said["source"])
        return policy

    def run(self, **changes: Any) -> Any:
        return ldiv_db.run(self.connection, self.asked(**changes), folder=self.folder)

    def replacing(self, again: bool = False) -> dict[str, Any]:
        """The policy of a run that takes the place of what is published, anew or `again`."""
        policy = self.asked()
        for said in policy.get("tables", {"": policy}).values():
            if "prefix" not in said["target"] and "key" not in policy:
                said["target"] = said["target"] | {"if_exists": "replace"}
        if "key" in policy or again:
            return policy
        return policy | {"over_time": "independent"}

    def shown(self) -> str:
        """The published table as it is called on the connection."""
        target = self.policy["target"]
        return str(self.folder / target["file"]) if "file" in target else target["table"]

    def beside(self) -> set[str]:
        """Tables and files that are neither sources nor published nor of the ledger."""
        targets = self._targets().values()
        own = {
            "w.duckdb",
            "w.duckdb.wal",
            "w.sqlite",
            "other.duckdb",
            *(f"{name}.csv" for name in ("stays", "patients", "counted")),
        }
        files = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        files -= own | {target.get("file") for target in targets}
        own = {"stays", "patients", "counted", *(target.get("table") for target in targets)}
        # The ledger's names in SQLite begin as those of tables at work do, which are told by letters and digits.
        theirs = re.compile(r"ldiv[._](?!\w*[0-9a-f]{8})|sqlite_|information_schema\.|pg_catalog\.")
        tables = {name.split(" ")[-1] for name in self.content() if not (self.folder / name).is_file()}
        return files | {name for name in tables if not theirs.match(name) and name.split(".")[-1] not in own | {""}}

    # -- what is published -----------------------------------------------------------------------------------------

    def published(self) -> dict[str, list[Row]]:
        """The rows of each published table, by the plain names of columns, values as they are read."""
        found = {}
        plain = {shown: name for name, shown in self.cell.names().items()}
        for name, target in self._targets().items():
            with self._reader(target) as (con, relation):
                cursor = con.execute(f"SELECT * FROM {relation}")
                names = [plain.get(column[0], column[0]) for column in cursor.description]
                found[name] = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return found

    def _targets(self) -> dict[str, dict[str, Any]]:
        policy = self.policy
        if "tables" in policy:
            return {name: said["target"] for name, said in policy["tables"].items()}
        target = policy["target"]
        if self.cell.form != "decomposition":
            return {"stays": target}
        if target.get("file", "").endswith("parquet"):
            files = (self.folder / target["file"]).parent.glob("pub_*.parquet")
            return {path.stem: {"file": str(path.relative_to(self.folder))} for path in files}
        with self._reader(target | {"table": ""}) as (con, _):
            listed = con.execute("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'pub%'").fetchall()
        return {name: target | {"table": name} for (name,) in listed}

    @contextlib.contextmanager
    def _reader(self, target: dict[str, Any]) -> Any:
        """A connection that reads a target, and its name there."""
        if target.get("file", "").endswith("parquet"):
            with duckdb.connect() as con:
                yield con, f"'{self.folder / target['file']}'"
        elif target.get("file") or target.get("database"):
            with duckdb.connect(str(self.folder / target.get("file", "other.duckdb"))) as con:
                yield con, target["table"]
        else:
            yield self.connection, target["table"]

    @contextlib.contextmanager
    def reading(self, name: str) -> Any:
        """A connection in which what is published can be asked about, and what it is called there."""
        target = self._targets()[name]
        with self._reader(target) as (con, relation):
            yield con, relation.strip("'")

    def judged(self) -> dict[str, Any]:
        """The policy for those who ask about what is published, which of several tables says where these are."""
        if self.cell.tables == "several":
            return self.asked()
        return {key: said for key, said in self.policy.items() if key != "databases"}

    def ledger(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """Rows of a table of the ledger."""
        name = f"ldiv_{table}" if self.cell.place == "sqlite" else f"ldiv.{table}"
        return list(self.connection.execute(f"SELECT {columns} FROM {name}").fetchall())

    def content(self) -> dict[str, Any]:
        """All that is there: tables with their rows, as texts, and files, which a run may have changed."""
        found: dict[str, Any] = {}
        if self.is_there:
            lite = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
            post = (
                "SELECT table_schema || '.' || table_name FROM information_schema.tables"
                " WHERE table_schema IN ('public', 'ldiv') ORDER BY 1"
            )
            names = [
                name for (name,) in self.connection.execute(lite if self.cell.place == "sqlite" else post).fetchall()
            ]
            for name in names:
                found[name] = sorted(map(repr, self.connection.execute(f"SELECT * FROM {name}").fetchall()))
            return found
        found |= _content(self.connection)
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file() and path.name[:2] != "w."):
            name = str(path.relative_to(self.folder))
            if path.suffix == ".duckdb":
                with duckdb.connect(str(path), read_only=True) as con:
                    found |= {f"{name} {table}": rows for table, rows in _content(con).items()}
            else:
                found[name] = path.read_bytes()
        return found

    def close(self) -> None:
        self.connection.close()


def _database() -> Any:
    """A connection to a new database of the server's."""
    server = servers.started("postgres")
    name = f"cell_{uuid.uuid4().hex}"
    server.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
    found = importlib.import_module("psycopg").connect(host=server.connection.info.host, user="postgres", dbname=name)
    found.autocommit = True
    return found


def _lite(value: Any) -> Any:
    return (
        value
        if value is None or isinstance(value, int | str)
        else float(value)
        if hasattr(value, "as_tuple")
        else str(value)
    )


def _content(con: Any) -> dict[str, Any]:
    """The rows of all tables of a database, in their order."""
    listed = (
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database()"
        " UNION ALL SELECT schema_name, '' FROM duckdb_schemas() WHERE database_name = current_database() ORDER BY ALL"
    )
    found: dict[str, Any] = {}
    for schema, table in con.execute(listed).fetchall():
        name = f"{schema}.{table}"
        found[name] = None
        if table:
            shown = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {quoted(schema)}.{quoted(table)}"
            found[name] = list(map(repr, con.execute(shown).fetchall()))
    return found
