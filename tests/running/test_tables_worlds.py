"""Who knows all rows of everybody in all tables, and how many they are: every world that a release allows, counted."""

from __future__ import annotations

import random
from fractions import Fraction

import duckdb
import pytest
from strategies import numbers, some

import ldiv_db
from ldiv_db import InfeasibleError
from tests.running.schemas import CHOICES, drawn, fill, policy_of, posteriors, published, rows_of


@pytest.mark.parametrize("names", some(map(pytest.param, CHOICES), 3))
def test_nobody_is_surer_than_is_promised(names: tuple[str, ...]) -> None:
    """Not even who knows everything but the values: no posterior is above 1/2 under `frequency: 2`."""
    tried, worst = 0, Fraction(0)
    for number in numbers(5):
        rng, con = random.Random(f"schemas {number} {names}"), duckdb.connect()
        people = drawn(rng, names, rng.randrange(4, 9))
        fill(con, names, people)
        try:
            ldiv_db.run(con, policy_of(names))
        except InfeasibleError:
            continue
        tried += 1
        shown = published(con, names)
        source = {no: (name, value) for tree in people.values() for name, (no, _, value, _) in rows_of(tree)}
        for tree in shown.values():
            assert all(value in ("", source[no][1]) for _, (no, _, value, _) in rows_of(tree))
        found = posteriors(people, shown)
        worst = max([worst, *found.values()])
        assert all(share <= Fraction(1, 2) for share in found.values()), number
    assert tried and worst == Fraction(1, 2)
