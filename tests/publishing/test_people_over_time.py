"""Nights of people, by brute force: all worlds that agree with every night, counted, and what values tell that persist.

The attacker knows everybody's rows on each night, all their quasi-identifiers and whose they are, and sees the table. A
world says which pseudonym of each night is whose: of the rows that no earlier night published, all of a person's where
they stand together, or as many as the pseudonym has where they are in their order. The attacker is told which rows were
given up for a value that is too frequent.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import strategies as st
from tables import fill

import ldiv_db
from ldiv_db.database.context import working_engine
from ldiv_db.publishing.earlier_releases import check_series
from tests.publishing.test_worlds_over_time import classes_of, posteriors, span
from tests.strategies import draws, search, seeded

pytestmark = pytest.mark.usefixtures("no_remedies")

COLUMNS = {"id": "INTEGER", "person": "VARCHAR", "day": "INTEGER", "age": "INTEGER", "s": "VARCHAR"}
Row = tuple[int, str, int, int, str]
#: The rows with their keys published beside, so that a test sees where each is.
KEPT: dict[str, Any] = {"source": {"query": "SELECT *, id AS id2 FROM people"}, "keep": ["id2"]}
#: The labels and values of a pseudonym's rows, in their order.
Shown = tuple[tuple[str, str], ...]


def policy_of(rows: str, algorithm: str = "topdown", **changes: Any) -> dict[str, Any]:
    whose = {"column": "person", "rows": rows} | ({"order": "day"} if rows == "aligned" else {})
    return {
        "source": "people", "target": {"table": "out"}, "key": "id", "nights": "apart", "individual": whose,
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [10, 20]}}}, "sensitive": ["s"],
        "require": [{"frequency": 2}], "algorithm": algorithm,
        **({} if rows == "apart" else {"output": {"person": "person"}}),
        **({} if rows == "aligned" else {"identifiers": ["day"]}),
    } | changes  # fmt: skip


def drawn(draw: random.Random, night: int, count: int) -> list[Row]:
    """Rows of few people, who have one or two a night, with few ages."""
    numbers, whose = range(100 * night, 100 * night + count), [f"P{draw.randrange(5)}" for _ in range(count)]
    days, ages = [draw.randrange(10**6) for _ in numbers], draw.choices((1, 5, 12, 31), k=count)
    return list(zip(numbers, whose, days, ages, draw.choices("abcd", k=count), strict=True))


def nights_of(con: Any, draw: random.Random, policy: dict[str, Any]) -> list[tuple[list[Row], int, int]]:
    """The source of each night, and the last class before and after it; the release is in the table."""
    con.execute("DROP SCHEMA IF EXISTS ldiv CASCADE; DROP TABLE IF EXISTS out")
    rows, nights, count = list[Row](), list[tuple[list[Row], int, int]](), draw.randrange(2, 4)
    for night in range(count):
        rows = [
            (*row[:4], draw.choice("abcd") if draw.random() < 0.1 else row[4]) for row in rows if draw.random() > 0.1
        ]
        rows += drawn(draw, night, draw.randrange(2, 6))
        fill(con, "people", COLUMNS, rows)
        last = nights[-1][-1] if nights else 0
        before = con.execute("FROM out ORDER BY ALL").fetchall() if nights else []
        try:
            ldiv_db.run(con, policy)
        except ldiv_db.InfeasibleError:
            assert not nights, "only a first night cannot do without classes"
            continue
        nights.append((rows, last, con.execute("SELECT max(class_id) FROM out").fetchone()[0]))
        shown = con.execute("FROM out ORDER BY ALL").fetchall()
        assert not Counter(before) - Counter(shown), "what was published stays"
    return nights


def shown_on(con: Any, last: int, until: int, is_aligned: bool) -> list[Shown]:
    """The rows of each pseudonym of a night."""
    order = "position" if is_aligned else "s"
    found = con.execute(
        f"SELECT person, age, s FROM out WHERE class_id > {last} AND class_id <= {until} ORDER BY {order}"
    ).fetchall()
    whose = defaultdict(list)
    for person, age, s in found:
        whose[person].append((age, s))
    return [tuple(rows) for rows in whose.values()]


def published_as(shown: Shown, free: list[Row], is_aligned: bool) -> tuple[int, ...] | None:
    """The rows that somebody publishes by a pseudonym, of those that are free; None if it cannot be theirs."""
    rows = sorted(free, key=lambda row: row[2])[: len(shown)] if is_aligned else free
    labels = [label for label, _ in shown] if is_aligned else [shown[0][0]] * len(rows)
    if not rows or len(labels) != len(rows):
        return None
    fits = all(low <= row[3] <= high for row, (low, high) in zip(rows, map(span, labels), strict=True))
    # Of a register, which has no value, a row is in its own table.
    fits &= not is_aligned or all((value == "") == (row[4] == "") for row, (_, value) in zip(rows, shown, strict=True))
    return tuple(row[0] for row in rows) if fits else None


def given_up(rows: list[Row], shown: set[int], before: set[int]) -> set[int]:
    """The rows that people kept back of whose later ones a night has `shown`: all that they have of some values."""
    last, kept = dict[str, int](), defaultdict[str, set[str]](set)
    for key, person, day, _, value in rows:
        if key in shown:
            last[person] = max(day, last.get(person, day))
            kept[person].add(value)
    gone = [row for row in rows if row[0] not in shown | before and row[2] < last.get(row[1], row[2])]
    assert all(row[4] not in kept[row[1]] for row in gone)
    return {row[0] for row in gone}


def assigned(
    pseudonyms: list[Shown], free: dict[str, list[Row]], is_aligned: bool, taken: dict[str, Shown]
) -> Iterator[tuple[dict[str, Shown], frozenset[int]]]:
    """Each way to give the pseudonyms of a night to people, with the rows that it publishes."""
    if not pseudonyms:
        yield taken, frozenset()
        return
    first, *rest = pseudonyms
    for person, rows in free.items():
        if person not in taken and (keys := published_as(first, rows, is_aligned)):
            for world, more in assigned(rest, free, is_aligned, taken | {person: first}):
                yield world, more | set(keys)


#: The rows of the source, the pseudonyms, and the rows that people gave up.
Night = tuple[list[Row], list[Shown], set[int]]


def seen_of(con: Any, nights: list[tuple[list[Row], int, int]], is_aligned: bool) -> list[Night]:
    """What each night shows, of which the release has the keys beside."""
    seen, before = list[Night](), set[int]()
    for rows, last, until in nights:
        found = con.execute(f"SELECT id2 FROM out WHERE class_id > {last} AND class_id <= {until}").fetchall()
        shown = {key for (key,) in found}
        seen.append((rows, shown_on(con, last, until, is_aligned), given_up(rows, shown, before)))
        before |= shown
    return seen


def shares(nights: list[Night], is_aligned: bool) -> dict[tuple[int, str, str], Fraction]:
    """How likely each person has each value in some row of each night, over all worlds of all nights."""
    found, total = Counter[tuple[int, str, str]](), 0

    def count(number: int, published: frozenset[int], known: tuple[tuple[int, str, str], ...]) -> None:
        nonlocal total
        if number == len(nights):
            total += 1
            found.update(known)
            return
        rows, pseudonyms, gone = nights[number]
        free = defaultdict(list)
        for row in rows:
            if row[0] not in published and row[0] not in gone:
                free[row[1]].append(row)
        for world, keys in assigned(pseudonyms, free, is_aligned, {}):
            more = {(number, person, value) for person, own in world.items() for _, value in own}
            count(number + 1, published | keys, (*known, *more))

    count(0, frozenset(), ())
    assert total, "the world as it was agrees with all nights"
    return {one: Fraction(worlds, total) for one, worlds in found.items()}


@pytest.mark.slow
@search(6, draw=draws, rows=st.sampled_from(["together", "aligned"]))
def test_no_value_of_a_night_is_likelier_than_promised_whatever_all_nights_show(draw: random.Random, rows: str) -> None:
    with duckdb.connect(config={"threads": 1}) as con:
        policy = policy_of(rows, draw.choice(["topdown", "mondrian", "peel"]), over_time="independent", **KEPT)
        nights = nights_of(con, draw, policy)
        if not nights:
            return
        assert max(shares(seen_of(con, nights, rows == "aligned"), rows == "aligned").values()) <= Fraction(1, 2)
        assert ldiv_db.check(con, "out", policy=policy).holds


def test_a_row_that_is_given_up_waits_while_a_later_one_is_published(con: Any) -> None:
    """Four of six have a in their first row, and some of them publish the second alone."""
    own = enumerate(["ab", "ac", "ad", "ab", "cd", "bc"])
    rows = [(2 * who + n, f"P{who}", n, 30 * n, value) for who, values in own for n, value in enumerate(values)]
    fill(con, "people", COLUMNS, rows)
    ldiv_db.run(con, policy_of("aligned", over_time="independent", seed=2, **KEPT))
    (night,) = seen_of(con, [(rows, 0, len(rows))], True)
    assert night[2] and max(shares([night], True).values()) <= Fraction(1, 2)
    with pytest.raises(AssertionError, match="the world as it was"):
        shares([(*night[:2], set())], True)


@search(1, draw=seeded)
def test_no_row_is_likelier_to_have_a_value_than_promised_where_rows_stand_apart(draw: random.Random) -> None:
    with duckdb.connect(config={"threads": 1}) as con:
        seen = []
        for source, last, until in nights_of(con, draw, policy_of("apart", over_time="independent")):
            con.execute(f"CREATE OR REPLACE TEMP TABLE out AS FROM memory.out WHERE class_id <= {until}")
            seen.append(([(row[0], row[1], *row[3:]) for row in source], classes_of(con, last)))
        assert all(share <= Fraction(1, 2) for share in posteriors(seen, apart=False)[1].values())


@search(2, draw=seeded, rows=st.sampled_from(["apart", "together", "aligned"]))
def test_what_values_tell_that_persist_is_what_brute_force_finds(draw: random.Random, rows: str) -> None:
    with duckdb.connect(config={"threads": 1}) as con:
        nights = nights_of(con, draw, policy_of(rows, over_time="independent", **KEPT))
        if len(nights) < 2:
            return
        source = {row[0]: row[1] for row in nights[-1][0]}
        starts = [last for _, last, _ in nights]
        values, places = defaultdict(set), {}
        for key, class_id, s in con.execute("SELECT id2, class_id, s FROM out").fetchall():
            values[class_id].add(s)
            places[key] = class_id
        own = defaultdict(lambda: defaultdict(set))
        for key, class_id in places.items():
            if key in source:
                night = max(n for n, start in enumerate(starts) if class_id > start)
                own[source[key]][night] |= values[class_id]
        several = [list(by_night.values()) for by_night in own.values() if len(by_night) > 1]
        (report,) = con.execute("SELECT report FROM ldiv.release ORDER BY release DESC LIMIT 1").fetchone()
        (found,) = json.loads(report)["persisting"]
        one_value = sum(len(set.intersection(*nights)) == 1 for nights in several)
        assert (found["people"], found["one_value"]) == (len(several), one_value)


@pytest.fixture
def two_nights(con: Any) -> Any:
    """A table of people's rows together, after its first night, and the policy of the next."""
    policy = policy_of("together", output={})
    fill(con, "people", COLUMNS, [(n, f"P{n // 2}", n, n, "abcd"[n % 4]) for n in range(12)])
    ldiv_db.run(con, policy | {"over_time": "independent"})
    fill(con, "people", COLUMNS, [(n, f"P{n // 2}", n, n, "abcd"[n % 4]) for n in range(20)])
    return con


#: Of other people, of whom nothing was audited.
PEOPLE_BY_DAY = {"individual": {"column": "day", "rows": "together"}, "identifiers": ["person"], "output": {}}


def test_what_was_audited_by_people_must_be_there_still(two_nights: Any) -> None:
    con, policy = two_nights, policy_of("together", output={}, over_time="independent")
    with working_engine(con) as engine:
        assert check_series(engine, "out").holds
    con.execute("UPDATE out SET s = 'a' WHERE class_id = 1")
    with working_engine(con) as engine:
        found = check_series(engine, "out")
        assert not found.holds and "no longer what was audited" in str(found)
    with pytest.raises(ldiv_db.AuditError, match="earlier nights"):
        ldiv_db.run(con, policy)
    ldiv_db.run(con, policy | {"target": {"table": "other"}})
    con.execute("DROP TABLE other")
    with pytest.raises(ldiv_db.PolicyError, match=r"target\.table: other of the last release is gone"):
        ldiv_db.run(con, policy | {"target": {"table": "other"}})


@pytest.mark.parametrize("changes", [{"rows": "aligned"}, {"require": [{"frequency": 3}]}, PEOPLE_BY_DAY])
def test_the_same_is_asked_of_all_nights(two_nights: Any, changes: dict[str, Any]) -> None:
    policy = policy_of(changes.pop("rows", "together"), over_time="independent") | changes
    with pytest.raises(ldiv_db.PolicyError, match="those before in out are of people, and something else was"):
        ldiv_db.run(two_nights, policy)


def test_pseudonyms_of_one_night_say_nothing_of_those_of_another(con: Any) -> None:
    rows = [(n, f"P{n % 8}", n, n % 8, "abcdefghijklmnop"[n]) for n in range(16)]
    fill(con, "people", COLUMNS, rows)
    policy = policy_of("aligned", over_time="independent", seed=5)
    policy["individual"]["rows_at_most"] = 1
    for _ in range(2):
        assert ldiv_db.run(con, policy).figures["rows_first_published"] == 8
    whose = {value: person for _, person, _, _, value in rows}
    order = [whose[value] for (value,) in con.execute("SELECT s FROM out ORDER BY person").fetchall()]
    assert sorted(order[:8]) == sorted(order[8:]) and order[:8] != order[8:]


def test_all_new_rows_of_a_person_wait_who_finds_no_class(con: Any) -> None:
    rows = [(n, f"P{n}", n, 1, "ab"[n % 2]) for n in range(6)]
    fill(con, "people", COLUMNS, rows)
    policy = policy_of("together", over_time="independent")
    ldiv_db.run(con, policy)
    new = [(10, "Q", 1, 1, "a"), (11, "Q", 2, 1, "c"), (12, "R", 1, 1, "a"), (13, "S", 1, 1, "b"), (14, "T", 1, 1, "a")]
    fill(con, "people", COLUMNS, rows + new)
    figures = ldiv_db.run(con, policy).figures
    waiting = figures["rows_waiting"]
    assert figures["rows_first_published"] == 5 - waiting and waiting in (1, 2, 3)
    fill(con, "people", COLUMNS, rows + new + [(20, "U", 1, 1, "d"), (21, "V", 1, 1, "e")])
    assert ldiv_db.run(con, policy).figures["rows_waiting"] == 0
