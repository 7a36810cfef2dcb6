"""Rows of people in their order: what is published, held against sequences that are counted in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import duckdb
import pytest
from hypothesis import reject
from strategies import search, seeds

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError
from ldiv_db.recoding.loss import lost_by_column
from ldiv_db.solving import improve, level_trials
from ldiv_db.solving.improve import mean_loss

Row = tuple[Any, ...]
ALIGNED = {"column": "person", "rows": "aligned", "order": "day"}
POLICY: dict[str, Any] = {
    "source": "visits", "target": {"table": "release", "if_exists": "replace"},
    "quasi_identifiers": {"age": {"numeric": True}, "zone": {"taxonomy": {"prefix": [2, 1]}}}, "sensitive": ["value"],
    "keep": ["row_no"], "individual": ALIGNED, "require": [{"frequency": 2}], "algorithm": "topdown",
    "over_time": "independent", "output": {"bounds": True}, "seed": 11,
}  # fmt: skip


def visits(rng: random.Random, people: int, most: int = 4) -> list[Row]:
    """Rows as COLUMNS has them: of nobody known a few, some days equal or not known."""
    rows: list[Row] = []
    for person in range(people):
        age, zone = rng.randrange(20, 60), rng.choice(["n1", "n2", "s1", "s2"])
        for _ in range(min(most, rng.choice([1, 1, 1, 2, 2, 3, 4, 5]))):
            moved = rng.choice(["n1", "s2"]) if rng.random() < 0.2 else zone
            who, day = None if rng.random() < 0.05 else person, rng.choice([None, *range(20)])
            rows.append((len(rows), who, age + rng.randrange(2), moved, rng.choice("abcdefghij"), day))
    rng.shuffle(rows)
    return rows


def fill(con: duckdb.DuckDBPyConnection, rows: list[Row]) -> None:
    con.execute(
        "CREATE OR REPLACE TABLE visits (row_no INT, person INT, age INT, zone VARCHAR, value VARCHAR, day INT)"
    )
    con.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?)", rows)


def published(con: duckdb.DuckDBPyConnection, rows: list[Row], **changes: Any) -> tuple[list[Row], Any]:
    """The release as rows (row_no, age_min, age_max, zone, value, person, position), and the result."""
    fill(con, rows)
    result = ldiv_db.run(con, POLICY | changes)
    columns = "row_no, age_min, age_max, zone, value, person, position"
    return con.execute(f"SELECT {columns} FROM release").fetchall(), result


def owners(rows: list[Row]) -> dict[int, Any]:
    """Whose each row is, by its number; of nobody known somebody of its own."""
    return {row[0]: row[1] if row[1] is not None else -1 - row[0] for row in rows}


@pytest.mark.slow
@search(2, number=seeds)
def test_people_with_one_row_lose_what_they_would_alone(number: int) -> None:
    """Whatever those do who have several: they are a table of their own."""
    con = duckdb.connect(config={"threads": 1})
    rows = visits(random.Random(number), 60)
    have = Counter(owners(rows).values())
    alone = [row for row in rows if have[owners(rows)[row[0]]] == 1]
    every = published(con, rows, individual=ALIGNED | {"rows_at_most": 2})[0]
    if len({person for *_, person, place in every if place == 2}) < 2:
        reject()
    fill(con, alone)
    nobody = {"identifiers": ["person", "day"], "individual": None}
    ldiv_db.run(con, POLICY | nobody)
    by_rows = con.execute("SELECT row_no, age_min, age_max, zone FROM release").fetchall()
    numbers = {row[0] for row in alone}
    assert sorted(by_rows) == sorted(row[:4] for row in every if row[0] in numbers)


@pytest.mark.parametrize("kind", ["STRUCT(a INT)", "BLOB"])
def test_rows_are_ordered_by_numbers_times_and_texts(kind: str) -> None:
    con = duckdb.connect(config={"threads": 1})
    fill(con, visits(random.Random(1), 30))
    con.execute(f"ALTER TABLE visits DROP day; ALTER TABLE visits ADD day {kind}")
    with pytest.raises(PolicyError, match=r"individual\.order: takes numbers, dates, timestamps or texts"):
        ldiv_db.run(con, POLICY)


@pytest.mark.slow
def test_the_order_may_be_a_quasi_identifier_an_identifier_or_kept() -> None:
    con = duckdb.connect(config={"threads": 1})
    rows = visits(random.Random(2), 12)
    for change in (
        {"quasi_identifiers": {"age": {"numeric": True}, "zone": {}, "day": {"numeric": True}}},
        {"identifiers": ["day"]},
        {"keep": ["row_no", "day"]},
    ):
        release, _ = published(con, rows, **change)
        day = {row[0]: 99 if row[5] is None else row[5] for row in rows}
        placed = sorted((person, position, day[row_no]) for row_no, *_, person, position in release)
        assert all(a[2] <= b[2] for a, b in pairwise(placed) if a[0] == b[0])
        shown = {name for name, *_ in con.execute("DESCRIBE release").fetchall()}
        assert bool(shown & {"day", "day_min"}) is ("identifiers" not in change)


def alike(people: int, values: str) -> list[Row]:
    """People who look alike, each with these values on one day."""
    return [(3 * n + place, n, 30, "n1", value, 1) for n in range(people) for place, value in enumerate(values)]


def test_neither_the_order_of_rows_that_tie_nor_which_are_left_out_says_anything() -> None:
    """Of people with a, b and c on one day each value comes first, and last, about as often as another."""
    release, result = published(
        duckdb.connect(config={"threads": 1}),
        alike(120, "abc"),
        require=[{"k": 4}],
        individual=ALIGNED | {"rows_at_most": 2},
    )
    for position in (1, 2):
        counts = Counter(row[4] for row in release if row[6] == position)
        assert sum(counts.values()) == 120 and all(25 <= counts[value] <= 55 for value in "abc")
    left_out = {value: 120 - count for value, count in Counter(row[4] for row in release).items()}
    assert all(25 <= count <= 55 for count in left_out.values())
    assert result.loss.rows_suppressed == sum(left_out.values()) == 120
    told = "120 rows of people who have more than they publish are left out, of which nothing is promised"
    assert any(told in note for note in result.notes)


def test_too_few_people_with_many_rows_publish_as_many_as_others() -> None:
    rows = [(no, who, 20 + who % 9, "n1", "abcdef"[no % 6], no) for no, who in enumerate([*range(12)] * 2)]
    rows += [(100 + n, 50, 33, "n1", "abcdef"[n], n) for n in range(5)]
    release, result = published(duckdb.connect(config={"threads": 1}), rows, require=[{"k": 3}])
    counts = Counter(person for *_, person, _ in release)
    assert set(counts.values()) == {2} and len(counts) == 13 and result.loss.rows_suppressed == 3
    (level,) = result.search["levels"]
    assert (level["rows"], level["people"]) == (2, 13)


def test_a_group_that_cannot_meet_the_policy_is_joined_with_the_next() -> None:
    """Four people have x in one of three rows each: by two of these some have none."""
    rows = [(n, n, 20 + n, "n1", "abcdefgh"[n % 8], 0) for n in range(16)]
    rows += [(100 + 3 * n + i, 30 + n, 40, "n1", v, i) for n in range(4) for i, v in enumerate("xx" + "pqrs"[n])]
    release, _ = published(duckdb.connect(config={"threads": 1}), rows, require=[{"frequency": 2}, {"k": 2}])
    assert max(row[6] for row in release) < 3


@pytest.mark.slow
def test_a_group_that_loses_more_by_all_of_its_rows_is_joined_with_the_next() -> None:
    """Two people far apart would be one class of all that there is: by two of three rows each they are like others."""
    rows = [(n, n // 2, 20 + n // 4, "n1" if n < 32 else "s1", "abcdefgh"[n % 8], n) for n in range(64)]
    far = [(90, 20, "n1"), (91, 35, "s1")]
    rows += [(100 + n, *far[n // 3], "ijklmn"[n], n % 3) for n in range(6)]
    release, result = published(duckdb.connect(config={"threads": 1}), rows)
    assert max(row[6] for row in release) == 2 and result.loss.rows_suppressed == 2
    every, _ = published(duckdb.connect(config={"threads": 1}), rows, individual=ALIGNED | {"rows_at_most": 3})
    assert max(row[6] for row in every) == 3 and len(every) == len(rows)
    budget, _ = published(duckdb.connect(config={"threads": 1}), rows, suppression=0.02)
    assert max(row[6] for row in budget) == 3


def test_the_loss_of_a_group_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the labels, which need not be written."""
    asked: list[Any] = []

    def labelled(task: Any, plan: Any) -> dict[str, float]:
        return lost_by_column(task.engine, task.encoded, improve.recode(task, plan))

    def measured(task: Any, plan: Any) -> float:
        asked.append(task.encoded.rows)
        found = mean_loss(task, plan)
        with monkeypatch.context() as few:
            few.setattr(improve, "_lost", labelled)
            assert mean_loss(task, plan) == found
        return found

    monkeypatch.setattr(level_trials, "mean_loss", measured)
    people = [who for who in range(36) for _ in range(1 + (who >= 10) + (who >= 22))]
    rows = [(no, who, 20 + who, "n1", "abcdefgh"[no % 8], no) for no, who in enumerate(people)]
    published(duckdb.connect(config={"threads": 1}), rows, require=[{"k": 2}])
    assert len(asked) == len(set(asked)) == 5  # all three, and two that the people of another come down to


def test_nobody_is_too_few_if_others_publish_as_many_rows() -> None:
    """One person with one row is a class with sixteen who publish one of two."""
    rows = [(n, n // 2, 20 + n, "n1", "abcdefgh"[n % 8], n) for n in range(32)] + [(99, 99, 20, "n1", "x", 0)]
    release, result = published(duckdb.connect(config={"threads": 1}), rows, require=[{"k": 2}])
    assert {row[6] for row in release} == {1} and len(release) == 17 and result.loss.rows_suppressed == 16


@pytest.mark.usefixtures("no_remedies")
def test_too_few_people_are_refused_with_their_number() -> None:
    rows = [(n, n // 2, 20 + n, "n1", "abcdefgh"[n % 8], n) for n in range(32)]
    with pytest.raises(InfeasibleError, match="16 people who would publish 1 row each are too few, or too much alike"):
        published(duckdb.connect(config={"threads": 1}), rows, require=[{"k": 17}])


@pytest.mark.slow
def test_one_policy_in_two_spellings_is_one_release() -> None:
    """By `individual`, or as `tables` of one: the same labels of the same rows, if nobody is drawn to give up some."""
    named = {"source": "visits", "sensitive": ["value"], "keep": ["row_no"], "identifiers": ["day"]}
    quasi = {"quasi_identifiers": POLICY["quasi_identifiers"], "target": POLICY["target"]}
    shared = {key: POLICY[key] for key in ("algorithm", "over_time", "output", "seed")}
    for number, require in enumerate([{"k": 3}, {"frequency": 2}, {"distinct": 2}]):
        rows = [row for row in visits(random.Random(number), 40) if row[1] is not None]
        con, whose = duckdb.connect(config={"threads": 1}), owners(rows)
        release, one = published(con, rows, require=[require], identifiers=["day"])
        table = {**named, **quasi, "person": "person", "order": "day"}
        policy = {"individual": "person", "tables": {"visits": table}, "require": [require], **shared}
        other = ldiv_db.run(con, policy)
        assert other.loss.lm_mean == pytest.approx(one.loss.lm_mean)
        shown = "SELECT row_no, age_min, age_max, zone, position FROM release"
        # Whose rows tie in all but their values is drawn anew.
        told = [sorted((whose[no], *label) for no, *label in con.execute(shown).fetchall())]
        assert told == [sorted((whose[no], *label, place) for no, *label, _, _, place in release)], require


def test_of_a_value_that_is_too_frequent_as_few_rows_are_given_up_as_do() -> None:
    """Of 40 people with two rows 24 have x in the first: eight give it up at least, and publish the other one."""
    others = "abcdefgh"
    rows = [(n, n, 20 + n, "n1", others[n % 8], 0) for n in range(40)]
    values = [("x" if n < 24 else others[n % 7], others[n % 8]) for n in range(40)]
    rows += [(100 + 2 * n + i, 50 + n, 20 + n, "n1", v, i) for n, own in enumerate(values) for i, v in enumerate(own)]
    most, required = ALIGNED | {"rows_at_most": 2}, [{"frequency": 2}, {"k": 2}]
    release, result = published(duckdb.connect(), rows, require=required, individual=most)
    shown = {row[0]: row[6] for row in release}
    left_out = [row for row in rows if row[0] not in shown]
    assert 8 <= len(left_out) <= 14 and {row[4] for row in left_out} == {"x"}
    assert all(shown[row[0] + 1] == 1 for row in left_out)
    assert Counter(shown.values()) == {1: 80, 2: 40 - len(left_out)}
    assert any("(by counts 8 people must give up some)" in note for note in result.notes)
    assert len(published(duckdb.connect(), rows, require=required, suppression=8 / 120)[0]) == len(rows) - 8
