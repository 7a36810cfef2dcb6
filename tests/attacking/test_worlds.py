"""Worlds: all that a release leaves open, against all assignments tried one by one; what is drawn of a class."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest
from strategies import draws, search

from ldiv_db.attacking.replay import arrange, consistent_worlds, count_arrangements


def tried(fits, cells):
    """The same by trying: every way to give the cells to the rows, whose payloads are then a world."""
    each = [cell for cell, rows in cells.items() for _ in range(rows)]
    ways = itertools.permutations(each, len(fits))
    return sorted(
        {
            tuple(payload for _, payload in way)
            for way in ways
            if all(place in places for (place, _), places in zip(way, fits, strict=True))
        }
    )


@search(30, draw=draws)
def test_worlds_are_those_that_labels_allow(draw):
    true = [(draw.randrange(3), draw.randrange(3)) for _ in range(draw.randint(1, 6))]
    fits = [{place, *draw.sample(range(3), draw.randint(0, 2))} for place, _ in true]
    cells = Counter(true)
    worlds = consistent_worlds(fits, cells, 10_000)
    assert worlds == tried(fits, cells)
    assert tuple(payload for _, payload in true) in worlds


def test_too_many_worlds_are_none():
    cells = Counter({(0, 1): 4, (0, 2): 4})
    assert len(consistent_worlds([{0}] * 8, cells, 70)) == 70
    assert consistent_worlds([{0}] * 8, cells, 69) is None
    many = Counter({(0, payload): 1 for payload in range(12)})
    assert consistent_worlds([{0}] * 12, many, 2000) is None


@pytest.mark.parametrize("payloads", [(1,), (1, 1), (1, 2, 2), (3, 1, 2, 1), (1, 2, 3, 4)])
def test_few_arrangements_are_all_tried_the_true_one_first(payloads):
    found = arrange(range(len(payloads)), payloads, 64, random.Random(1))
    assert found.worlds[0] == payloads == found.true
    assert sorted(found.worlds) == sorted(set(itertools.permutations(payloads)))
    assert found.weights == [1] * count_arrangements(payloads)


def test_of_many_arrangements_some_are_drawn_which_stand_for_all_but_the_true_one():
    payloads = (1, 2, 3, 4, 5, 6)
    found = arrange(range(6), payloads, 10, random.Random(1))
    assert found.worlds[0] == payloads and len(set(found.worlds)) == 10 < count_arrangements(payloads)
    assert all(sorted(world) == list(payloads) for world in found.worlds)
    first, *others = found.weights
    # The true one stands for one way, the nine others for all other ways.
    assert sum(others) == first * (math.factorial(6) - 1)
