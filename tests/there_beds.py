"""A table of people in a warehouse, and the policy of a run there."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager, suppress

import tables

import ldiv_db
from ldiv_db.database.names import Relation
from ldiv_db.database.warehouses import Warehouse

COLUMNS = [("rid", "integer"), ("age", "integer"), ("town", "text"), ("dose", "double"), ("secret", "text")]
TYPES = {"integer": "INTEGER", "text": "VARCHAR", "double": "DOUBLE"}
#: What makes a table as that of a release of one class, which a run that fails has to leave as it is.
OLD_RELEASE = "CREATE TABLE released AS SELECT '*' AS age, '*' AS town, '*' AS dose, secret FROM people"


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
    place_here(con, rows)


def place_here(con, rows):
    tables.fill(con, "people", {name: TYPES[kind] for name, kind in COLUMNS}, rows)


def lite(folder, rows):
    """A connection to SQLite with the table `people` in a file, `w.sqlite`."""
    there = sqlite3.connect(folder / "w.sqlite")
    there.execute("CREATE TABLE people (rid INTEGER, age INTEGER, town TEXT, dose REAL, secret TEXT)")
    there.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
    there.commit()
    return there


def embedded(con, asked, columns="age, town, dose, secret"):
    """What a run on the rows here gives, and its release."""
    result = ldiv_db.run(con, asked)
    return result, sorted(map(repr, con.execute(f"SELECT {columns} FROM released").fetchall()))


@contextmanager
def failing(monkeypatch, name):
    """Within, that step of a warehouse fails once it is done."""
    done = getattr(Warehouse, name)

    def fail(self, *args, **kwargs):
        done(self, *args, **kwargs)
        raise ldiv_db.DatabaseError("pulled out")

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, name, fail)
        yield


def answers(there, asked, **more):
    """What is said, and found by attacks, of the release of a policy and of its source; few are drawn."""
    known = dict.fromkeys(("known", "population", "definetti", "targets"), "people")
    attacks = ldiv_db.attack(there, "released", policy=asked, **known, tries=40).attacks
    said = [
        *(audit.as_dict() for audit in ldiv_db.check(there, "released", policy=asked, **more)),
        ldiv_db.measure(there, "released", asked, queries=50).as_dict(),
        {attack.name: attack.as_dict() for attack in attacks if attack.name != "form"},  # counts have no order
    ]
    report = ldiv_db.report(there, "released", asked, queries=20, tries=20, worlds=2).document
    return [*said, report["identifiability"]], report["statement"]["run"]


def released(server, columns="age, town, dose, secret"):
    return sorted(map(repr, map(tuple, server.query(f"SELECT {columns} FROM released"))))
