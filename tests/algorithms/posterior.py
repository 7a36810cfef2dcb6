"""What a release tells those who know everything but values and coins: posteriors counted over all worlds and coins.

A world gives the values to the people; all are equally likely, and so are all coins. A release is what every class
shows and, to be on the safe side, who is in it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tables import fill

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.transparent import Bucket, build_from, lay_out
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import resolve
from ldiv_db.recoding.encode import read_source

#: People's quasi-identifiers: numbers in as many columns as the first has.
People = Sequence[tuple[int, ...]]
#: The values of the people, in their order; a letter in either case is one value, and published as it is written.
World = tuple[str, ...]
#: The value of which nothing is promised.
HARMLESS = "Z"
#: A run: the world, the place of each person among those of the same value, and the place in the order of ties.
Run = tuple[World, tuple[int, ...], tuple[int, ...]]


def folded(written: Iterable[str]) -> str:
    """The values, whichever way they are written."""
    return "".join(written).upper()


def worlds(values: str) -> list[World]:
    """All ways to give these values to as many people."""
    return sorted(set(itertools.permutations(values)))


def seatings(world: World) -> Iterator[tuple[int, ...]]:
    """All ways to order the people of each value: the place of each person among those of the same value."""
    people = {value: [p for p, own in enumerate(world) if own.upper() == value] for value in sorted(set(folded(world)))}
    for orders in itertools.product(*(itertools.permutations(range(len(own))) for own in people.values())):
        places = [0] * len(world)
        for own, order in zip(people.values(), orders, strict=True):
            for person, place in zip(own, order, strict=True):
                places[person] = place
        yield tuple(places)


def all_runs(values: str, ties: Iterable[tuple[int, ...]]) -> list[Run]:
    """Every world with every seating, under each of these orders of ties."""
    return [(world, seating, tie) for tie in ties for world in worlds(values) for seating in seatings(world)]


def releases(
    engine: Engine, people: People, values: str, runs: Sequence[Run], l: int, order: str = ""
) -> list[Hashable]:
    """What each run publishes, by the statements of the product: all runs lie side by side in one table.

    Each has values, buckets and nodes of its own, so that it does what it does alone. `order` is that of equally
    frequent values, by default their own.
    """
    alike = folded(values)
    names = sorted(set(alike), key=lambda v: (-alike.count(v), order.find(v), v))
    axes = [f"a{i}" for i in range(len(people[0]))]
    rows = [
        (*people[p], f"{number}.{own}", f"{number}.{p}")
        for number, (world, _, _) in enumerate(runs)
        for p, own in enumerate(world)
    ]
    fill(engine.connection, "people", dict.fromkeys(axes, "INTEGER") | {"s": "VARCHAR", "who": "VARCHAR"}, rows)
    policy: dict[str, Any] = {
        "source": "people", "target": "released", "quasi_identifiers": {axis: {"numeric": True} for axis in axes},
        "sensitive": {"s": {"same": "casefold"}}, "keep": ["who"], "require": [{"distinct": 2}], "seed": 1,
    }  # fmt: skip
    encoded = read_source(engine, resolve(engine, parse_policy(policy), Path()).source).encode()
    codes = {
        folded(value): code
        for value, code in pairs_of(engine, encoded.sensitive[0].dictionary, "value", "code").items()
    }
    who = pairs_of(engine, encoded.rows, "row_id", encoded.kept[0].alias.name)
    free = [place for place, name in enumerate(names) if name == HARMLESS]
    layout = lay_out([alike.count(name) for name in names], len(values) // l, free)
    buckets = [
        Bucket(b.columns, tuple((place + number * len(names), first) for place, first in b.values))
        for number in range(len(runs))
        for b in layout
    ]
    values_of = [codes[f"{number}.{name}"] for number in range(len(runs)) for name in names]
    coins = []
    for row_id, text in who.items():
        number, person = map(int, text.split("."))
        _, seating, tie = runs[number]
        coins.append((row_id, f"{seating[person]:03}", f"{tie[person]:03}"))
    drawn = engine.load("coins", {"row_id": "BIGINT", "seat": "VARCHAR", "tie": "VARCHAR"}, coins)
    assigned, _ = build_from(Task(engine, encoded, [], 1), drawn, buckets, values_of, rounds=2)
    classes: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row_id, class_id in pairs_of(engine, assigned, "row_id", "class_id").items():
        number, person = map(int, who[row_id].split("."))
        classes[number][class_id].append(person)
    return [shown(world, classes[number].values()) for number, (world, _, _) in enumerate(runs)]


def pairs_of(engine: Engine, relation: Relation, key: str, value: str) -> dict[Any, Any]:
    """Two columns of a table."""
    return dict(zip(engine.column(relation, key), engine.column(relation, value), strict=True))


def shown(world: World, classes: Iterable[Sequence[int]]) -> Hashable:
    """What classes of these people give away: who is in each, and its values."""
    return frozenset((tuple(sorted(own)), frozenset(world[p] for p in own)) for own in classes)


def worst(found: Iterable[tuple[World, Hashable]]) -> Fraction:
    """The largest posterior of any value of any person, of (world, what is told) of equally likely runs."""
    groups: dict[Hashable, list[World]] = defaultdict(list)
    for world, told in found:
        groups[told].append(world)
    return max(
        Fraction(sum(folded(world[p]) == value for world in group), len(group))
        for group in groups.values()
        for p in range(len(group[0]))
        for value in {*folded(group[0])} - {HARMLESS}
    )
