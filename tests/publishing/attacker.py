"""An attacker who has nothing but published tables, and knows everybody's quasi-identifiers.

Written from what the tables say alone, without a look at how they are made: no code of the product is used.
Everything is a fact "these people have, among them, these values"; facts are cut with each other until nothing new
comes of it. People are told by a column of theirs that is unique.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass
class Seen:
    """One release: people by group, values of each attribute by group, and combinations if they were published."""

    people: dict[Any, set[Any]]
    values: dict[Any, list[Counter]]
    marginals: list[tuple[Any, ...]] | None = None


def read(con: Any, tables: list[str], person: str, attributes: list[str]) -> Seen:
    """A release out of the database."""
    listed = ", ".join(attributes)
    people: dict[Any, set[Any]] = {}
    for group, who in con.execute(f"SELECT group_id, {person} FROM {tables[0]}").fetchall():
        people.setdefault(group, set()).add(who)
    values: dict[Any, list[Counter]] = {}
    for group, *row in con.execute(f"SELECT group_id, {listed} FROM {tables[1]}").fetchall():
        counters = values.setdefault(group, [Counter() for _ in attributes])
        for counter, value in zip(counters, row, strict=True):
            counter[value] += 1
    marginals = con.execute(f"SELECT {listed} FROM {tables[2]}").fetchall() if len(tables) > 2 else None
    return Seen(people, values, marginals)


def facts_of(releases: list[Seen], attribute: int) -> set[tuple[frozenset, frozenset]]:
    """(people, values with their numbers) of every group, of everybody, and of those who are new in a release."""
    facts = set()
    ever: set[Any] = set()
    before: Counter = Counter()
    for number, release in enumerate(releases):
        here = set().union(*release.people.values())
        for group, counters in release.values.items():
            people = set(release.people.get(group, ()))
            missing = counters[attribute].total() - len(people)
            # Who was in the group and is nowhere now has left a place in it.
            gone = set().union(*(r.people.get(group, set()) for r in releases[:number])) - here
            if missing and len(gone) <= missing:
                people |= gone
            facts.add((frozenset(people), frozenset(counters[attribute].items())))
        if release.marginals is None:
            continue
        column = Counter(row[attribute] for row in release.marginals)
        new = here - ever
        if number and new:
            facts.add((frozenset(new), frozenset((column - before).items())))
        lost = before - column
        if lost:  # what is gone from the combinations belongs to who is gone from the people
            absent = frozenset(set().union(*releases[number - 1].people.values()) - here)
            facts.add((absent, frozenset(lost.items())))
        before = column
        ever |= here
    return {(people, values) for people, values in facts if people and values}


def cut(one: tuple[frozenset, frozenset], other: tuple[frozenset, frozenset]) -> list[tuple[frozenset, frozenset]]:
    """What two facts say of the people that both have, and of those that only one has."""
    (people, values), (others, theirs) = one, other
    mine, them = Counter(dict(values)), Counter(dict(theirs))
    both = people & others
    if not both:
        return []
    common = mine & them
    found = []
    if common.total() >= len(both):
        found.append((both, frozenset(common.items())))
    for rest, extra, whole, size in (
        (people - others, mine - them, mine, len(people)),
        (others - people, them - mine, them, len(others)),
    ):
        if rest and extra.total() == len(rest) and whole.total() == size:
            found.append((rest, frozenset(extra.items())))
    return found


def conclude(facts: set[tuple[frozenset, frozenset]], rounds: int) -> set[tuple[frozenset, frozenset]]:
    """The facts that follow in so many rounds."""
    known, fresh = set(facts), set(facts)
    while fresh and rounds:
        rounds -= 1
        found = set()
        by_person: dict[Any, set] = {}
        for fact in known:
            for person in fact[0]:
                by_person.setdefault(person, set()).add(fact)
        for fact in fresh:
            for other in set().union(*(by_person[person] for person in fact[0])):
                if other != fact:
                    found.update(cut(fact, other))
        fresh = found - known
        known |= fresh
    return known


def best_guess(releases: list[Seen], attribute: int, rounds: int = 9) -> Fraction:
    """The largest probability of any value of any person."""
    known = conclude(facts_of(releases, attribute), rounds)
    by_person: dict[Any, list] = {}
    for people, values in known:
        for person in people:
            by_person.setdefault(person, []).append((people, dict(values)))
    best = Fraction(0)
    for facts in by_person.values():
        possible = set.intersection(*(set(values) for _, values in facts))
        for people, values in facts:
            if any(other < people or (other == people and _less(theirs, values)) for other, theirs in facts):
                continue  # another fact says more
            left = {value: n for value, n in values.items() if value in possible}
            if left:
                best = max(best, Fraction(max(left.values()), sum(left.values())))
    return best


def _less(one: dict[Any, int], other: dict[Any, int]) -> bool:
    """Whether one multiset is a part of the other."""
    return one != other and all(n <= other.get(value, 0) for value, n in one.items())
