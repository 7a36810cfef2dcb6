"""How groups are formed and numbered tells nothing of who has which value."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter

import pytest
from strategies import search, seeds

from ldiv_db.algorithms.decomposition.grouping import DecompositionOptions, Grouping, Secret, deal
from ldiv_db.algorithms.decomposition.steps import make_groups
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier
from ldiv_db.requirements import Distribution

# -- what the steps see ----------------------------------------------------------------------------------


def attribute(engine, number, codes, l):
    """A sensitive attribute of the codes, which are its values."""
    counts = Counter(codes)
    rows = [(code, n, code, code, False) for code, n in sorted(counts.items())]
    columns = {"value": "INTEGER", "rows": "BIGINT", "code": "INTEGER", "leaf": "INTEGER", "is_free": "BOOLEAN"}
    dictionary = engine.load(f"dictionary_{number}", columns, rows)
    name = Identifier(f"s{number}")
    distribution = Distribution(sorted(counts.values(), reverse=True))
    return Secret(name, name, dictionary, distribution, number, l)


def grouping(engine, rows, ls, **more):
    """A task of the rows (row_id, waited, codes ...)."""
    names = [f"s{i}" for i in range(1, len(ls) + 1)]
    columns = {"row_id": "BIGINT", "group_id": "BIGINT", "waited": "INTEGER"} | dict.fromkeys(names, "INTEGER")
    loaded = engine.load("rows", columns, [(row, None, waited, *codes) for row, waited, *codes in rows])
    secrets = [attribute(engine, i, [row[1 + i] for row in rows], l) for i, l in enumerate(ls, 1)]
    return Grouping(engine, loaded, secrets[0], tuple(secrets[1:]), DecompositionOptions(), **more)


def groups_of(task):
    """(row_id, group_no, codes ...) of every row that has a group."""
    groups = make_groups(task, task.rows, 1)
    names = ", ".join(secret.code.name for secret in task.secrets)
    return task.engine.connection.execute(f"SELECT row_id, group_no, {names} FROM {groups.shown.sql()}").fetchall()


def dealt(numbers, coins):
    """The numbers of rows in the order that coins give."""
    return sorted(numbers, key=lambda number: hashlib.md5(f"{coins}:row:{number}".encode()).hexdigest())


@search(1, seed=seeds)
def test_groups_are_a_function_of_places_values_and_waits(con, seed):
    """Other people with the same values in the same places: the same groups of places, with the same values."""
    draw = random.Random(seed)
    ls, found = [3, 2], []
    table = [(draw.randrange(3), draw.randrange(7), *(draw.choice([0, 0, 1, 2, 3]) for _ in ls[1:])) for _ in range(36)]
    for _ in range(2):
        numbers = draw.sample(range(1, 1000), len(table))
        places = {number: place for place, number in enumerate(dealt(numbers, f"{seed}:3"))}
        engine = Engine(con)
        rows = [(number, *table[places[number]]) for number in numbers]
        shown = groups_of(grouping(engine, rows, ls, seed=seed, release=3))
        found.append(sorted((places[number], *rest) for number, *rest in shown))
        engine.close_scratch()
    assert found[0] == found[1] and len(found[0]) > 20


def test_every_order_is_dealt_as_often(con):
    """Four people, 24 orders, 5 seeds each on the average: chi square of 23 degrees, whose 99.9 % point is 49.7."""
    engine, seen = Engine(con), Counter()
    task = grouping(engine, [(i, 0, 1) for i in range(1, 5)], [1])
    for seed in range(120):
        found = deal(Grouping(engine, task.rows, task.primary, (), task.options, seed=seed))
        seen[tuple(con.execute(f"SELECT source_id FROM {found.rows.sql()} ORDER BY row_id").fetchall())] += 1
        engine.drop(found.rows)
    assert len(seen) == 24 and sum((n - 5) ** 2 / 5 for n in seen.values()) < 49.7
    again = [
        deal(Grouping(engine, task.rows, task.primary, (), task.options, seed=1, release=n)).rows for n in range(9)
    ]
    assert len({str(con.execute(f"FROM {rows.sql()} ORDER BY row_id").fetchall()) for rows in again}) > 4


@pytest.mark.slow
def test_all_ways_to_give_values_to_people_are_as_likely(con):
    """All six tables of four people with two values, under many seeds: each release comes of each table that it allows
    as often. Chi square of 18 degrees (24 cells in 6 tables), whose 99.9 % point is 42.3."""
    engine, seen, often = Engine(con), Counter(), 32
    for table in sorted(set(itertools.permutations((1, 1, 2, 2)))):
        task = grouping(engine, [(i, 0, value) for i, value in enumerate(table, 1)], [2])
        for seed in range(often):
            shown = groups_of(Grouping(engine, task.rows, task.primary, (), task.options, seed=seed))
            release = tuple(sorted((group, person) for person, group, _ in shown))
            seen[table, release] += 1
    assert len(seen) == 24
    assert sum((n - often / 4) ** 2 / (often / 4) for n in seen.values()) < 42.3
    assert Counter(release for _, release in seen) == dict.fromkeys({release for _, release in seen}, 4)
