"""Every world that a release allows, counted: who of the people may have which of the published pseudonyms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from fractions import Fraction
from typing import Any


def posteriors(
    fits: Mapping[Any, Mapping[Any, int]], values: Mapping[Any, Collection[Hashable]]
) -> dict[tuple[Any, Any], Fraction]:
    """The share of the worlds in which a person has a value, by person and value.

    A world gives each person another pseudonym that fits, in as many ways as `fits` says; `values` are those of each.
    """
    found: dict[tuple[Any, Any], Fraction] = defaultdict(Fraction)
    for person in fits:
        for one, share in shares(fits, person).items():
            for value in values[one]:
                found[person, value] += share
    return found


def shares(fits: Mapping[Any, Mapping[Any, int]], person: Any) -> dict[Any, Fraction]:
    """The share of the worlds in which a person has a pseudonym, by pseudonym."""
    order, known = [person, *(other for other in fits if other != person)], {}
    every = frozenset(one for able in fits.values() for one in able)
    total = _worlds(fits, order, 0, every, known)
    assert total, "the truth is a world"
    return {
        one: Fraction(ways * _worlds(fits, order, 1, every - {one}, known), total) for one, ways in fits[person].items()
    }


def _worlds(fits: Any, order: list[Any], place: int, left: frozenset[Any], known: dict[Any, int]) -> int:
    if place == len(order):
        return 1
    if (place, left) not in known:
        able = [(one, ways) for one, ways in fits[order[place]].items() if one in left and ways]
        known[place, left] = sum(ways * _worlds(fits, order, place + 1, left - {one}, known) for one, ways in able)
    return known[place, left]
