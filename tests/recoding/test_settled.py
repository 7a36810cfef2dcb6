"""What people of each shape publish: enough of them the same, and what a search that counts all anew keeps."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

from ldiv_db.recoding.settled import settled
from ldiv_db.recoding.shapes import Option


def drawn(number: int) -> tuple[Any, int]:
    """Shapes of a few people each, what may be left of them, and how many must publish the same."""
    chance = random.Random(number)
    rows = [chance.randint(1, 6) for _ in range(12)]
    kept = {shape: chance.sample(range(12), chance.randint(1, 7)) for shape in range(chance.randint(1, 8))}
    options = {shape: sorted((Option(rows[k], k, 0, 0) for k in own), reverse=True) for shape, own in kept.items()}
    people = {shape: chance.choice([1, 1, 2, 3, 5, 9]) for shape in options}
    banned = frozenset(chance.sample(range(12), chance.choice([0, 0, 1])))
    shapes = SimpleNamespace(people=people, options=options, banned=banned, needs=[1, 2])
    return shapes, chance.randint(1, 10)


def greedy(shapes: Any, least: int) -> dict[int, Option]:
    """One level after the other that keeps most rows of enough people, each time counted anew."""
    allowed = {shape: [o for o in own if o.kept not in shapes.banned] for shape, own in shapes.options.items()}
    chosen = dict[int, Option]()

    def gains(kept: int) -> dict[int, tuple[int, Option]]:
        both = ((shape, option) for shape, own in allowed.items() for option in own if option.kept == kept)
        more = {shape: (o.rows - (chosen[shape].rows if shape in chosen else 0), o) for shape, o in both}
        return {shape: found for shape, found in more.items() if found[0] > 0}

    whole = sorted({own[0].kept for shape, own in allowed.items() if own and shapes.people[shape] >= least})
    while True:
        found = {kept: gains(kept) for kept in range(12)}
        rows = {k: sum(shapes.people[s] * more for s, (more, _) in own.items()) for k, own in found.items()}
        enough = [k for k, own in found.items() if own and sum(shapes.people[s] for s in own) >= least]
        if not whole and not enough:
            return chosen
        best = whole.pop(0) if whole else max(enough, key=lambda kept: (rows[kept], -kept))
        chosen |= {shape: option for shape, (_, option) in found[best].items()}


def test_enough_people_publish_the_same_and_as_many_rows_as_they_can() -> None:
    whole = 0
    for number in range(1_000):
        shapes, least = drawn(number)
        found = settled(shapes, least)
        naive = greedy(shapes, least)
        sizes = Counter[int]()
        for shape, option in naive.items():
            sizes[option.kept] += shapes.people[shape]
        if len(naive) == len(shapes.options) and min(sizes.values()) >= least:
            assert found == naive, number
            whole += 1
        if found is not None:
            people = Counter[int]()
            for shape, option in found.items():
                assert option in shapes.options[shape] and option.kept not in shapes.banned, number
                people[option.kept] += shapes.people[shape]
            assert min(people.values()) >= least, number
    assert whole > 200
