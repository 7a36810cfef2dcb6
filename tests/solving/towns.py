"""Runs on tables of a number, a town and a job, and what their classes cost."""

import json
import random

import duckdb
import tables

import ldiv_db

TREE = {"*": {"A": {"a1": {}, "a2": {}, "a3": {}}, "B": {"b1": {}, "b2": {}}, "c": {}}}

TOWNS = ["a1", "a2", "a3", "b1", "b2", "c"]


def random_rows(seed, n=60, jobs="uuuvvwxyz"):
    """Rows (number, town, job, id), with all towns and both ends of the numbers."""
    draw = random.Random(seed)
    ends = [(i % 2 * 19, town, "u", i) for i, town in enumerate(TOWNS)]
    return ends + [(draw.randrange(20), draw.choice(TOWNS), draw.choice(jobs), i) for i in range(len(ends), n)]


def run_on(rows, folder, require, algorithm, threads=2):
    """The result, and the release's rows (class_id, number, town, job, id) by id."""
    (folder / "tree.json").write_text(json.dumps(TREE))
    policy = {
        "source": "source", "target": {"table": "released", "if_exists": "replace"},
        "quasi_identifiers": {"number": {"numeric": True}, "town": {"taxonomy": {"file": "tree.json"}, "weight": 2}},
        "sensitive": ["job"], "keep": ["id"], "require": require, "algorithm": algorithm,
        "output": {"class_id": True}, "seed": 0,
    }  # fmt: skip
    with duckdb.connect(config={"threads": threads}) as con:
        columns = {"number": "INTEGER", "town": "VARCHAR", "job": "VARCHAR", "id": "INTEGER"}
        tables.fill(con, "source", columns, rows)
        result = ldiv_db.run(con, policy, folder=folder)
        return result, con.execute("SELECT class_id, number, town, job, id FROM released ORDER BY id").fetchall()


def cost(members):
    """What a class of rows (number, town, …) without NULL loses, in rows: numbers of 20 and the leaves of the tree."""
    numbers, towns = [row[0] for row in members], {row[1] for row in members}
    alike = {town[0] for town in towns}
    leaves = 1 if len(towns) < 2 else {"a": 3, "b": 2}[alike.pop()] if len(alike) == 1 else 6
    return len(members) * ((max(numbers) - min(numbers)) / 19 + 2 * (leaves - 1) / 5) if members else 0


def frequent(con, require, **more):
    """A policy for 24 rows of which half have one value, which is too many for classes of three different values."""
    rows = [(i, "x" if i % 2 else "abc"[i // 2 % 3]) for i in range(24)]
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR"}, rows)
    return {
        "source": "t", "target": {"table": "out", "if_exists": "replace"}, "sensitive": ["s"],
        "quasi_identifiers": {"age": {"numeric": True}}, "require": [require], "seed": 0,
    } | more  # fmt: skip
