"""An attacker who looks for an order in the numbers of groups, with nothing but published tables.

Written from what tables say alone: no code of the product is used. If the rows of each value take groups of rising
number in rising order of something that people are known by, few ways are left to give a group's people to its values.
People are numbers here, their order being what they are known by.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from typing import Any


@dataclass
class Groups:
    """People by group, and the values of one attribute by group, each as often as it stands there."""

    people: dict[int, list[int]]
    values: dict[int, list[Any]]


def read(con: Any, tables: list[str], attribute: str, after: int = 0) -> Groups:
    """The groups with numbers above `after`, out of the database."""
    people, values, where = defaultdict(list), defaultdict(list), f"WHERE group_id > {after}"
    for group, who in con.execute(f"SELECT group_id, person FROM {tables[0]} {where}").fetchall():
        people[group].append(who)
    for group, value in con.execute(f"SELECT group_id, {attribute} FROM {tables[1]} {where}").fetchall():
        values[group].append(value)
    return Groups(dict(people), dict(values))


def guess_by_curve(seen: Groups) -> dict[int, Any]:
    """Everybody's value, as if of each value the people and the groups stood in the same order."""
    everybody = sorted(person for people in seen.people.values() for person in people)
    quantile = {person: (i + 0.5) / len(everybody) for i, person in enumerate(everybody)}
    places = defaultdict(list)
    for group in sorted(seen.values):
        for value in seen.values[group]:
            places[value].append(group)
    expected = {(v, group): (i + 0.5) / len(groups) for v, groups in places.items() for i, group in enumerate(groups)}
    guessed = {}
    for group, people in seen.people.items():
        left = list(seen.values[group])
        pairs = [(abs(quantile[p] - expected[v, group]), p, str(v), v) for p in people for v in set(left)]
        for _, person, _, value in sorted(pairs):
            if person not in guessed and value in left:
                guessed[person] = value
                left.remove(value)
    return guessed


def told_by_order(seen: Groups, size: int, rounds: int = 9) -> dict[int, Any] | None:
    """The people of whom one value is left if each value's groups are taken in the people's order; None if none fits.

    Groups of more than `size` rows took in rows that were left over, out of order.
    """
    possible = {group: {p: set(seen.values[group]) for p in people} for group, people in seen.people.items()}
    of = defaultdict(list)
    for group in sorted(seen.values):
        for value in seen.values[group] if len(seen.values[group]) == size else ():
            of[value].append(group)
    for _ in range(rounds):
        for value, groups in of.items():
            if not _keep_rising(possible, value, groups):
                return None
        for people in possible.values():
            _settle(people)
    return {p: next(iter(left)) for people in possible.values() for p, left in people.items() if len(left) == 1}


def _keep_rising(possible: dict[int, dict[int, set[Any]]], value: Any, groups: list[int]) -> bool:
    """Leave the value only to people between the lowest and highest that groups before and after can have."""
    lows, highs, low, high = [], [], float("-inf"), float("inf")
    for group in groups:
        low = min((p for p, left in possible[group].items() if value in left and p > low), default=None)
        if low is None:
            return False
        lows.append(low)
    for group in reversed(groups):
        high = max((p for p, left in possible[group].items() if value in left and p < high), default=None)
        if high is None:
            return False
        highs.append(high)
    highs.reverse()
    for i, group in enumerate(groups):
        least = lows[i - 1] if i else float("-inf")
        most = highs[i + 1] if i + 1 < len(groups) else float("inf")
        for person, left in possible[group].items():
            if not least < person < most:
                left.discard(value)
    return True


def _settle(people: dict[int, set[Any]]) -> None:
    """A value that only one can have is theirs; who has one value, has it for themselves."""
    for value in set().union(*people.values()):
        who = [p for p, left in people.items() if value in left]
        if len(who) == 1:
            people[who[0]] = {value}
    for person, left in people.items():
        if len(left) == 1:
            for other in people:
                if other != person:
                    people[other] -= left


def is_no_better_than_chance(right: int, guesses: int, l: int) -> bool:
    """Whether so many right guesses are what 1/l gives, up to five standard deviations."""
    return right <= guesses / l + 5 * sqrt(guesses * (1 - 1 / l) / l) + 1
