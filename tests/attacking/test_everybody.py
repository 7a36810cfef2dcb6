"""Who knows one row of everybody, held against all their worlds."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db
from ldiv_db.database.errors import AuditError
from tests import one_row, worlds
from tests.running.schemas import Tree, drawn

NAMES = ("patients", "stays", "labs")


def surest(shown: dict[int, Tree]) -> dict[str, Fraction]:
    """The largest posterior in each table, where of everybody the row is known that fewest of their class show."""
    found: dict[str, Fraction] = {}
    for label in {tree["patients"][0][1] for tree in shown.values()}:
        alike = {n: tree for n, tree in shown.items() if tree["patients"][0][1] == label}
        labels = {n: {p for p, _ in one_row.rows_of(tree) if p[0][0] != "patients"} for n, tree in alike.items()}
        people = Counter(path for own in labels.values() for path in own)
        known = {n: min(own, key=lambda p: (people[p], len(p), p), default=None) for n, own in labels.items()}
        fits = {n: {m: 1 for m in alike if known[n] is None or known[n] in labels[m]} for n in alike}
        bags = {n: {(p[-1][0], v) for p, (_, _, v, _) in one_row.rows_of(t) if v} for n, t in alike.items()}
        for (_, (table, _)), share in worlds.posteriors(fits, bags).items():
            found[table] = max(found.get(table, Fraction(0)), share)
    return found


def attacked(shown: dict[int, Tree]) -> dict[str, Any]:
    con = duckdb.connect(config={"threads": 1})
    one_row.publish(con, NAMES, shown)
    found = ldiv_db.attack(con, policy=one_row.policy_of(NAMES, require=[{"frequency": 1}]))
    return {one.sensitive: one for one in found.attacks if one.name == "one row of everybody"}


def test_whoever_alone_shows_a_label_is_certain_if_all_others_who_do_are_known_by_another() -> None:
    def person(n: int, *days: int) -> Tree:
        stays = [(10 * n + day, (day, day), f"{n} {day}", {}) for day in days]
        return {"patients": [(n, (0, 9), "", {})], "stays": stays}

    found = attacked({1: person(1, 1), 2: person(2, 1, 2), 3: person(3, 2), 4: person(4, 2)})
    attack = found["stays.value"]
    assert attack.gains[0].gain == 0.5 and attack.holds is None
    certain = attacked({1: person(1, 1), 2: person(2, 1, 2), 3: person(3, 2, 3), 4: person(4, 3)})["stays.value"]
    assert certain.gains[0].gain == 1
    assert certain.figures["people_tried"] == certain.figures["people"] == 4


@pytest.mark.parametrize("seed", some(range(40), 2))
def test_the_largest_posterior_is_that_of_all_worlds(seed: int) -> None:
    rng = random.Random(seed)
    shown = one_row.labelled(rng, drawn(rng, NAMES, rng.randrange(3, 8), values="abcdefgh"))
    expected = surest(shown)
    try:
        found = attacked(shown)
    except AuditError:
        return  # labels overlap
    for table in ("stays", "labs"):
        gain = found[f"{table}.value"].gains[0].gain
        assert gain == pytest.approx(float(expected.get(table, 0)))
