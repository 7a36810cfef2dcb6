"""How groups are formed and numbered tells nothing of who has which value."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections import Counter, defaultdict

import orders
import pytest
from strategies import search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.algorithms.decomposition.grouping import DecompositionOptions, Grouping, Secret, deal
from ldiv_db.algorithms.decomposition.steps import make_groups
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier
from ldiv_db.requirements import Distribution

L = 4
#: Algorithm, and the other sensitive attributes with their l.
CASES = [
    ("decomposition_plus", {"s2": 3, "s3": 2}), ("decomposition_plus", {}), ("decomposition", {}),
    ("decomposition", {"s2": 2}), ("anatomy", {}),
]  # fmt: skip


def people(draw, count, first=0):
    """(id, person, s1, s2, s3), persons in rising order."""
    domain = [f"v{k}" for k in range(8)]
    weights = [1 / (k + 1) for k in range(8)]
    rows, person = [], first * 10
    for i in range(first, first + count):
        person += draw.randrange(1, 4)
        rows.append((i, person, *(draw.choices(domain, weights)[0] for _ in range(3))))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "others"), some([pytest.param(*case) for case in CASES]))
def test_the_order_of_groups_tells_nothing(con, algorithm, others):
    """Over two releases, of new groups each: who tries the order guesses as who does not."""
    draw = random.Random(1)
    ls = {"s1": L, **others}
    rows = people(draw, 480)
    true, last = {}, 0
    for release in range(2):
        if release:
            rows += people(draw, 440, first=480)
        columns = {"id": "INTEGER", "person": "INTEGER", "s1": "VARCHAR", "s2": "VARCHAR", "s3": "VARCHAR"}
        fill(con, "people", columns, draw.sample(rows, len(rows)))
        true = {person: dict(zip(("s1", "s2", "s3"), values, strict=True)) for _, person, *values in rows}
        result = ldiv_db.run(
            con,
            {
                "source": "people",
                "target": {"prefix": "pub.p"},
                "key": "id",
                "identifiers": [name for name in ("s2", "s3") if name not in ls],
                "quasi_identifiers": ["person"],
                "sensitive": {name: {"l": least} for name, least in ls.items()},
                "algorithm": {"name": algorithm, "primary": "s1"},
                "seed": 987654321,
            },
        )
        tables = result.figures["tables"]
        for name, l in ls.items():
            seen = orders.read(con, tables, name, after=last)
            assert len(seen.people) > 80
            guessed = orders.guess_by_curve(seen)
            right = sum(true[person][name] == value for person, value in guessed.items())
            assert orders.is_no_better_than_chance(right, len(guessed), l)
            told = orders.told_by_order(seen, L) if name == "s1" else None
            if told:
                right = sum(true[person][name] == value for person, value in told.items())
                assert orders.is_no_better_than_chance(right, len(told), l)
        last = result.figures["groups"]
        for table in tables:  # rows stand in an order that follows from what is published
            published = con.execute(f"FROM {table}").fetchall()
            assert published == sorted(published)


def test_the_attacker_finds_an_order_where_there_is_one():
    """Groups filled value by value in the order of persons: nearly everybody is told, and rightly."""
    draw = random.Random(4)
    counts = dict(zip("abcdefgh", (200, 150, 120, 110, 90, 60, 40, 30), strict=True))
    rows = list(enumerate(draw.sample([value for value, n in counts.items() for _ in range(n)], 800)))
    seen, start = orders.Groups(defaultdict(list), defaultdict(list)), 0
    for value, n in counts.items():
        of = sorted((start + i) % 200 for i in range(n))
        start += n
        for group, person in zip(of, [person for person, own in rows if own == value], strict=True):
            seen.people[group].append(person)
            seen.values[group].append(value)
    true = dict(rows)
    guessed, told = orders.guess_by_curve(seen), orders.told_by_order(seen, L)
    right = sum(true[person] == value for person, value in guessed.items())
    assert not orders.is_no_better_than_chance(right, len(guessed), L)
    assert len(told) > len(rows) // 2 and all(true[person] == value for person, value in told.items())


# -- what the steps see ----------------------------------------------------------------------------------


def attribute(engine, number, codes, l):
    """A sensitive attribute of the codes, which are its values."""
    counts = Counter(codes)
    rows = [(code, n, code, code) for code, n in sorted(counts.items())]
    columns = {"value": "INTEGER", "rows": "BIGINT", "code": "INTEGER", "leaf": "INTEGER"}
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
    ls, found = [4, 2, 3], []
    table = [(draw.randrange(3), draw.randrange(7), *(draw.choice([0, 0, 1, 2, 3]) for _ in ls[1:])) for _ in range(70)]
    for _ in range(2):
        numbers = draw.sample(range(1, 1000), len(table))
        places = {number: place for place, number in enumerate(dealt(numbers, f"{seed}:3"))}
        engine = Engine(con)
        rows = [(number, *table[places[number]]) for number in numbers]
        shown = groups_of(grouping(engine, rows, ls, seed=seed, release=3))
        found.append(sorted((places[number], *rest) for number, *rest in shown))
        engine.close_scratch()
    assert found[0] == found[1] and len(found[0]) > 40


def test_every_order_is_dealt_as_often(con):
    """Four people, 24 orders, 10 seeds each on the average: chi square of 23 degrees, whose 99.9 % point is 49.7."""
    engine, seen = Engine(con), Counter()
    task = grouping(engine, [(i, 0, 1) for i in range(1, 5)], [1])
    for seed in range(240):
        found = deal(Grouping(engine, task.rows, task.primary, (), task.options, seed=seed))
        seen[tuple(con.execute(f"SELECT source_id FROM {found.rows.sql()} ORDER BY row_id").fetchall())] += 1
        engine.drop(found.rows)
    assert len(seen) == 24 and sum((n - 10) ** 2 / 10 for n in seen.values()) < 49.7
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
