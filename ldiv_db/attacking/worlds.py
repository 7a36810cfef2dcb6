"""Worlds: ways to give what is published of sensitive values to the rows, in plain numbers.

A payload is what one row publishes beside what people are known by, here a number; a place is a class, or several that
are published alike. Two ways that give the same payload to every row are one world.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

#: The payload of each row, in the order of the rows.
World = tuple[int, ...]
#: A place and a payload that occurs there.
Cell = tuple[int, int]
#: Beginnings of worlds looked at for each world that is allowed: some come to nothing.
_BEGINNINGS = 20
#: From so many ways on, more of them count no more: of those that were drawn the true one alone is sure.
_MOST_WEIGHT = 10**6


def consistent_worlds(fits: Sequence[Collection[int]], cells: Mapping[Cell, int], most: int) -> list[World] | None:
    """All worlds that a release leaves open, in order; None if there are more than `most`, or too many to look at.

    `fits` are the places that each row may be in, `cells` how many rows of each place have each payload.
    """
    order = sorted(cells)
    begun: dict[tuple[int, ...], set[World]] = {tuple(cells[cell] for cell in order): {()}}
    for places in fits:
        longer: dict[tuple[int, ...], set[World]] = {}
        for left, worlds in begun.items():
            for rest, payload in _taken(left, order, places):
                longer.setdefault(rest, set()).update((*world, payload) for world in worlds)
        begun = longer
        if sum(map(len, begun.values())) > most * _BEGINNINGS:
            return None
    found = set().union(*begun.values())
    return sorted(found) if len(found) <= most else None


def _taken(left: tuple[int, ...], order: Sequence[Cell], places: Collection[int]) -> Iterator[tuple[World, int]]:
    """What is left of cells after one more row has taken its payload from one of them, and the payload."""
    for number, (place, payload) in enumerate(order):
        if left[number] and place in places:
            yield (*left[:number], left[number] - 1, *left[number + 1 :]), payload


@dataclass(frozen=True)
class Arrangements:
    """Ways to give a class's payloads to its rows, the true one first: all there are, or some that were drawn.

    `weights` are what each stands for, in whole numbers: of those that were drawn the true one stands for itself, and
    the others for all others.
    """

    worlds: list[World]
    weights: list[int]
    all: bool


def count_arrangements(payloads: Sequence[int]) -> int:
    """The number of different ways to give the payloads to as many rows."""
    ways = math.factorial(len(payloads))
    for rows in Counter(payloads).values():
        ways //= math.factorial(rows)
    return ways


def arrange(payloads: World, most: int, coins: Random) -> Arrangements:
    """The ways to give `payloads`, as they truly are, to as many rows; `most` (at least 2) of them, drawn by coins."""
    ways = count_arrangements(payloads)
    if ways <= most:
        place = [{0}] * len(payloads)
        cells = {(0, payload): rows for payload, rows in Counter(payloads).items()}
        worlds = consistent_worlds(place, cells, ways) or []
        others = [world for world in worlds if world != payloads]
        return Arrangements([payloads, *others], [1] * ways, True)
    drawn = {payloads: None}
    while len(drawn) < most:
        drawn[tuple(coins.sample(payloads, len(payloads)))] = None
    beside = len(drawn) - 1
    return Arrangements(list(drawn), [beside] + [min(ways - 1, _MOST_WEIGHT)] * beside, False)
