"""Who knows all rows of everybody, and how many they are: every world that a release of sequences allows, counted.

A world gives every person the sequence of one pseudonym, which has as many rows as they publish and whose labels cover
some of theirs in their order; which rows these are is not known where somebody has more. All worlds are as likely.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from strategies import numbers, some

import ldiv_db
from ldiv_db import InfeasibleError
from tests import worlds

#: Of each person the quasi-identifier of each row in its order, and of each pseudonym its rows (low, high, value).
People = dict[int, list[int]]
Sequences = dict[int, list[tuple[int, int, str]]]


def ways(known: list[int], rows: list[tuple[int, int, str]]) -> int:
    """In how many ways the rows of a pseudonym may be some of those of a person, in their order."""
    return sum(
        all(low <= age <= high for age, (low, high, _) in zip(some, rows, strict=True))
        for some in itertools.combinations(known, len(rows))
    )


def posteriors(people: People, sequences: Sequences, lengths: dict[int, int]) -> dict[tuple[int, str], Fraction]:
    """The share of the worlds in which a person has a value in some published row, by person and value."""
    fits = {
        person: {n: ways(known, rows) for n, rows in sequences.items() if len(rows) == lengths[person]}
        for person, known in people.items()
    }
    return worlds.posteriors(fits, {n: {value for *_, value in rows} for n, rows in sequences.items()})


def sequences_of(con: duckdb.DuckDBPyConnection, place: str) -> Sequences:
    """The sequences of a release, each in the order of a column."""
    sequences: Sequences = defaultdict(list)
    shown = f"SELECT person, age_min, age_max, value FROM release ORDER BY person, {place}"
    for person, low, high, value in con.execute(shown).fetchall():
        sequences[person].append((low, high, value))
    return dict(sequences)


def released(people: int, rng: random.Random, **more: Any) -> tuple[People, Sequences]:
    """What everybody has, and what a release of it says."""
    con = duckdb.connect()
    con.execute("CREATE TABLE visits (row_no INT, person INT, age INT, value VARCHAR, day INT)")
    # Most visits are at one age: where a second row loses much, a run publishes one of each person, which tells little.
    ages = [rng.randrange(4) for _ in range(people)]
    listed = [(person, ages[person] + (rng.random() < 0.2), rng.choice("abcde"), day) for person in range(people)
              for day in range(rng.choice([1, 2, 2, 2, 3]))]  # fmt: skip
    con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", [(no, *row) for no, row in enumerate(listed)])
    individual = {"column": "person", "rows": "aligned", "order": "day", **more}
    policy = {
        "source": "visits", "target": "release", "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": ["value"], "identifiers": ["row_no"], "individual": individual,
        "output": {"bounds": True, "person": "person"}, "require": [{"frequency": 2}], "algorithm": "topdown",
        "seed": rng.randrange(10**6),
    }  # fmt: skip
    ldiv_db.run(con, policy)
    known: People = defaultdict(list)
    for person, age, *_ in sorted(listed, key=lambda row: (row[0], row[3])):
        known[person].append(age)
    return known, sequences_of(con, "position")


@pytest.mark.parametrize("more", some([{"rows_at_most": 2}, {}, {"rows_at_most": 3}], 1))
def test_nobody_is_surer_than_is_promised(more: dict[str, int]) -> None:
    """Not even who knows everything but the values: no posterior is above 1/2 under `frequency: 2`."""
    tried, worst, several = 0, Fraction(0), 0
    for number in numbers(3):
        rng = random.Random(f"worlds {number} {more}")
        try:
            people, sequences = released(rng.randrange(4, 9), rng, **more)
        except InfeasibleError:
            continue
        tried += 1
        several += any(len(rows) > 1 for rows in sequences.values())
        # All who have equally many rows publish equally many: by the lengths of the sequences, the longest first.
        have = sorted(people, key=lambda person: len(people[person]), reverse=True)
        shown = sorted((len(rows) for rows in sequences.values()), reverse=True)
        lengths = dict(zip(have, shown, strict=True))
        found = posteriors(people, sequences, lengths)
        worst = max(worst, *found.values())
        assert max(found.values()) <= Fraction(1, 2), number
    # Where the run chooses how many rows are published, so few people lose less by one each.
    assert tried and (several or not more) and worst == Fraction(1, 2)


def test_rows_together_do_not_withstand_who_knows_their_numbers() -> None:
    """A has x twice, B y once, with one label: who knows that A has two rows is certain."""
    con = duckdb.connect()
    con.execute("CREATE TABLE visits (person VARCHAR, age INT, value VARCHAR)")
    con.execute("INSERT INTO visits VALUES ('A', 1, 'x'), ('A', 2, 'x'), ('B', 3, 'y')")
    policy: dict[str, Any] = {
        "source": "visits", "target": "release", "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": ["value"], "individual": {"column": "person", "rows": "together"},
        "output": {"bounds": True, "person": "person"}, "require": [{"frequency": 2}], "algorithm": "topdown",
    }  # fmt: skip
    ldiv_db.run(con, policy)
    people = {0: [1, 2], 1: [3]}
    assert posteriors(people, sequences_of(con, "value"), {0: 2, 1: 1}) == {(0, "x"): 1, (1, "y"): 1}
    con.execute("ALTER TABLE visits ADD COLUMN day INT; UPDATE visits SET day = age")
    aligned = {"column": "person", "rows": "aligned", "order": "day"}
    target = {"table": "release", "if_exists": "replace"}
    ldiv_db.run(con, policy | {"individual": aligned, "target": target, "over_time": "independent"})
    found = posteriors(people, sequences_of(con, "position"), {0: 1, 1: 1})
    assert set(found.values()) == {Fraction(1, 2)}  # each publishes one row
