"""A table of people in a warehouse, and the policy of a run there."""

from __future__ import annotations

from contextlib import suppress

import tables

from ldiv_db.database.templates import Relation
from ldiv_db.database.warehouses import Warehouse

COLUMNS = [("rid", "integer"), ("age", "integer"), ("town", "text"), ("dose", "double"), ("secret", "text")]
TYPES = {"integer": "INTEGER", "text": "VARCHAR", "double": "DOUBLE"}


def wipe(server):
    for name in ("people", "my source", "released", "ldiv_run", "ldiv_run_secret"):
        with suppress(Exception):
            server.drop(name)
    if server.dialect == "sqlite":
        for (name,) in server.query("SELECT name FROM sqlite_master WHERE name LIKE 'ldiv_%' AND type = 'table'"):
            server.drop(name)
    elif server.dialect == "clickhouse":
        server.execute("DROP DATABASE IF EXISTS ldiv")
    else:
        server.execute("DROP SCHEMA IF EXISTS ldiv CASCADE")
    server.connection.commit()


def tables_of(server):
    """Those that runs read and make; tests of other modules leave some on the same server."""
    names = Warehouse(server.connection).tables(Relation(("released",)))
    return sorted(name for name in names if name.lower() in ("people", "released") or name.lower().startswith("ldiv_"))


def rows_of(draw, n):
    towns = ["Oslo", "Łódź", "it's", "", None]
    values = ["flu", "HIV", "x;--", "cold"]
    return [
        (i, draw.choice([None, *range(20, 29)]), draw.choice(towns), draw.choice([1.5, 2.25, -3.0, None]),
         draw.choice(values))
        for i in range(n)
    ]  # fmt: skip


def policy(**more):
    return {
        "source": "people", "target": {"table": "released", "if_exists": "replace"}, "identifiers": ["rid"],
        "quasi_identifiers": {"age": {"numeric": True}, "town": {}, "dose": {"numeric": True}}, "sensitive": ["secret"],
        "require": [{"frequency": 2}], "algorithm": "topdown", "seed": 1, "over_time": "independent",
    } | more  # fmt: skip


def place(server, con, rows):
    """The table `people` there and here."""
    server.create("people", COLUMNS, rows)
    server.connection.commit()
    tables.fill(con, "people", {name: TYPES[kind] for name, kind in COLUMNS}, rows)


def released(server, columns="age, town, dose, secret"):
    return sorted(map(repr, map(tuple, server.query(f"SELECT {columns} FROM released"))))
