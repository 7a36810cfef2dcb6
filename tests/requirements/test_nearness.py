"""(k,e)-anonymity and (epsilon,m)-anonymity: against the definitions, on numbers and times of every type."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import oracle
import pytest
from strategies import search, seeds, some

import ldiv_db
from ldiv_db.database.errors import PolicyError
from ldiv_db.requirements import Attribute, Classes, RequirementSpec, parse_requirement

NUMBERS = {
    "INTEGER": [-7, 0, 1, 2, 5, 6, 40],
    "UBIGINT": [0, 1, 2, 2**63, 2**63 + 1],
    "DECIMAL(38,18)": [Decimal(text) for text in ("0", "1E-18", "0.1", "0.200000000000000001", "3")],
    "DOUBLE": [-0.0, 0.1, 0.2, 0.30000000000000004, 0.4, 1.5, 1e15],
    "BIGINT": [-(2**63), -1, 0, 1, 2**63 - 2, 2**63 - 1],
    "DECIMAL(9,2)": [Decimal(text) for text in ("-0.01", "20.10", "20.15", "20.20", "21.15", "3000")],
    "FLOAT": [0.0, 0.25, 0.5, 2.0, 1024.0],
}
#: Of times: the first two are of every pass.
TIMES = ("DATE", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_NS")
#: Distances, some of which some differences meet exactly.
DISTANCES = [1, 2, 5, "0.1", "0.05", "0.2", 1000, 3]
COLUMNS = {"class_no": "BIGINT", "rows": "BIGINT", "class_rows": "BIGINT"}


def written(value: Any) -> Any:
    """The decimal that is written for a number; NULL is None."""
    return None if value is None else Fraction(repr(value) if isinstance(value, float) else str(value))


def load(engine: Any, kind: str, tables: list[list[Any]]) -> Classes:
    rows = [(i, n, len(values), value) for i, values in enumerate(tables) for value, n in Counter(values).items()]
    return Classes(engine, engine.load("histogram", COLUMNS | {"value": kind}, rows))


def measured(engine: Any, con: Any, classes: Classes, requirement: Any) -> dict[int, tuple[Any, ...]]:
    relation = requirement.measure(engine, classes)
    rows = con.execute(f"SELECT class_no, rows, reached, margin >= 0 FROM {relation.sql()}").fetchall()
    engine.drop(relation)
    return {number: found for number, *found in rows}


def drawn_tables(draw: random.Random, pool: list[Any]) -> list[list[Any]]:
    pool = [*pool, None]
    return [[draw.choice(pool) for _ in range(draw.randint(1, 9))] for _ in range(40)]


@pytest.mark.parametrize("kind", some(NUMBERS, 3))
@pytest.mark.parametrize("name", ["range", "proximity"])
@search(1, seed=seeds)
def test_numbers_agree_with_the_definition(engine: Any, con: Any, name: str, kind: str, seed: int) -> None:
    draw, seen = random.Random(seed), Counter()
    attribute = Attribute("s", is_number=True)
    tables = drawn_tables(draw, NUMBERS[kind])
    classes = load(engine, kind, tables)
    for distance, least in draw.sample([*itertools.product(DISTANCES, (1, 2, 3))], 6):
        parameters = {"k": least, "e": distance} if name == "range" else {"m": least, "epsilon": distance}
        found = measured(engine, con, classes, RequirementSpec(name, parameters).resolve(None, attribute))
        assert len(found) == len(tables)
        for i, values in enumerate(tables):
            exact = [written(value) for value in values]
            good = oracle.class_is_good(exact, name, parameters)
            assert found[i][0] == len(values)
            assert found[i][2] == good, (parameters, values, found[i])
            if name == "range":
                ends = [value for value in exact if value is not None] or [Fraction(0)]
                assert found[i][1] == pytest.approx(float(max(ends) - min(ends)))
            else:
                near = max(oracle.neighbours(exact, value, distance) for value in exact)
                assert found[i][1] == pytest.approx(near / len(values))
            seen[good] += 1
    classes.drop()
    assert min(seen[True], seen[False]) > 0


@pytest.mark.parametrize("kind", some(TIMES, 2))
@pytest.mark.parametrize("name", ["range", "proximity"])
def test_times_agree_with_the_definition(engine: Any, con: Any, name: str, kind: str) -> None:
    """In a zone with a change of clocks between the days: instants are compared in UTC, days have 24 hours."""
    con.execute("SET TimeZone = 'America/New_York'")
    draw, start = random.Random(f"{name} {kind}"), datetime(2024, 3, 9)
    steps = [timedelta(days=n, hours=0 if kind == "DATE" else hours) for n in range(4) for hours in (0, 1)]
    seconds = {str(start + step): Fraction(int(step.total_seconds())) for step in steps}
    tables = drawn_tables(draw, list(seconds))
    zone = "+00" if "ZONE" in kind else ""
    rows = [
        (i, n, len(t), None if v is None else v + zone) for i, t in enumerate(tables) for v, n in Counter(t).items()
    ]
    if kind == "DATE":
        rows = [(i, n, size, v and date.fromisoformat(v[:10]).isoformat()) for i, n, size, v in rows]
    classes = Classes(engine, engine.load("histogram", COLUMNS | {"value": kind}, rows))
    seen: Counter[bool] = Counter()
    for (text, length), least in itertools.product(
        {"1 day": 86400, "2 hours": 7200, "1.5 days": 129600}.items(), (2, 3)
    ):
        parameters = {"k": least, "e": text} if name == "range" else {"m": least, "epsilon": text}
        requirement = RequirementSpec(name, parameters).resolve(None, Attribute("s", is_time=True))
        found = measured(engine, con, classes, requirement)
        for i, values in enumerate(tables):
            exact = [None if value is None else seconds[value] for value in values]
            good = oracle.class_is_good(exact, name, parameters | {"e": length, "epsilon": length})
            assert found[i][2] == good, (parameters, values, found[i])
            seen[good] += 1
    assert min(seen[True], seen[False]) > 20


def is_good(values: list[int], name: str, parameters: dict[str, int]) -> bool:
    return oracle.class_is_good(values, name, parameters)


@pytest.mark.parametrize("name", ["range", "proximity"])
def test_whether_unions_of_good_classes_are_good(name: str) -> None:
    """Of all pairs of good classes of up to four small numbers: what `monotone` says, and `more_is_better`."""
    parameters = {"k": 2, "e": 2} if name == "range" else {"m": 2, "epsilon": 1}
    requirement = RequirementSpec(name, parameters).resolve(None, Attribute("s", is_number=True))
    every = [list(values) for n in (1, 2, 3, 4) for values in itertools.combinations_with_replacement(range(5), n)]
    good = functools.partial(is_good, name=name, parameters=parameters)
    holds = [values for values in every if good(values)]
    unions = [good([*one, *two]) for one, two in itertools.combinations_with_replacement(holds, 2)]
    assert all(unions) == requirement.monotone
    assert all(good([*one, *two]) for one in holds for two in every) == requirement.more_is_better


@pytest.mark.parametrize("name", ["range", "proximity"])
def test_what_mends_a_class_is_what_brute_force_finds(engine: Any, con: Any, name: str) -> None:
    """Where an exact rule is known; elsewhere nothing is said."""
    parameters = {"k": 2, "e": 3} if name == "range" else {"m": 3, "epsilon": 1}
    draw = random.Random(name)
    tables = [[draw.choice([0, 1, 2, 5, 9, None]) for _ in range(draw.randint(1, 7))] for _ in range(150)]
    requirement = RequirementSpec(name, parameters).resolve(None, Attribute("s", is_number=True))
    classes = load(engine, "INTEGER", tables)
    measures = requirement.measure(engine, classes)
    found = con.execute(f"SELECT * FROM {requirement.rows_to_suppress(engine, classes, measures).sql()}").fetchall()
    good = functools.partial(is_good, name=name, parameters=parameters)
    assert {number for number, _ in found} == {i for i, values in enumerate(tables) if not good(values)}
    known = [(tables[number], rows) for number, rows in found if rows is not None]
    assert len(known) > 20 and all(rows == oracle.least_suppression(values, good) for values, rows in known)
    assert name == "range" or len(known) < len(found)


# -- what is written ------------------------------------------------------------------------------------


def wages(con: Any) -> None:
    """Two classes: wages that differ by cents, and wages that are far apart."""
    con.execute("CREATE TABLE t (q INTEGER, wage DECIMAL(9,2), paid DATE, name VARCHAR, odd DOUBLE)")
    rows = [(0, "20.10", 1), (0, "20.15", 2), (0, "20.20", 3), (1, "10.00", 1), (1, "15.00", 20), (1, "25.00", 28)]
    con.executemany(
        "INSERT INTO t VALUES (?, ?, ?, 'x', 'infinity')", [(q, wage, date(2024, 1, day)) for q, wage, day in rows]
    )


JUDGED = {
    "wage": {
        "distinct:3": (0, 3), "range:k=3,e=0.1": (0, 0.1), "range:k=3,e=0.100000001": (1, 0.1),
        "range:k=4,e=0.1": (2, 0.1), "proximity:epsilon=0.05,m=2": (1, 1), "proximity:epsilon=5,m=2": (2, 1),
        "proximity:epsilon=4.99,m=3": (1, 1),
    },
    "paid": {
        "range:k=3,e=2 days": (0, 2 * 86400), "range:k=3,e=49 hours": (1, 2 * 86400),
        "proximity:epsilon=1 week,m=3": (1, 1),
    },
}  # fmt: skip


def test_a_check_judges_them(con: Any) -> None:
    """How many classes violate each, and the worst figure."""
    wages(con)
    for column, judged in JUDGED.items():
        (audit,) = ldiv_db.check(con, "t", ["q"], column, list(judged))
        found = [(verdict.violating_classes, pytest.approx(verdict.worst)) for verdict in audit.verdicts]
        assert found == list(judged.values())


@pytest.mark.parametrize(
    ("column", "text", "problem"),
    [
        ("name", "range:k=2,e=1", "needs a sensitive column of numbers or times"),
        ("wage", "range:k=2,e=1 day", "e takes a number, as its column does, not 1 day"),
        ("paid", "range:k=2,e=86400", "e takes a stretch of time, such as 30 days, not 86400"),
        ("paid", "proximity:m=2,epsilon=1 month", "takes a stretch of weeks, days, hours, minutes, seconds"),
        ("wage", "proximity:m=2,epsilon=0", "takes a number from"),
        ("wage", "proximity:m=0,epsilon=1", "takes a whole number from 1"),
        ("wage", "range:k=2", "takes k, e, not|lacks e"),
        ("wage", "range:k=2,e=soon", "takes a number, not 'soon'"),
        ("wage", "range:k=2,e=1e18 weeks", "takes up to"),
        ("odd", "range:k=2,e=1", "1 of the sensitive values cannot be compared: too large, infinite or NaN"),
    ],
)
def test_what_cannot_be_asked_is_refused(con: Any, column: str, text: str, problem: str) -> None:
    wages(con)
    with pytest.raises(PolicyError, match=problem):
        ldiv_db.check(con, "t", ["q"], column, [text])


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("range:k=3,e=1000", "range k=3, e=1000"),
        ("range:k=3,e=0.5", "range k=3, e=0.5"),
        ("range:k=3,e=14 days", "range k=3, e=2 weeks"),
        ("range:k=3,e=1 day", "range k=3, e=1 day"),
        ("range:k=3,e=90 minutes", "range k=3, e=90 minutes"),
        ("range:k=3,e=0.25 seconds", "range k=3, e=0.25 seconds"),
    ],
)
def test_distances_are_shown_as_they_are_written(text: str, label: str) -> None:
    attribute = Attribute("s", is_number=" " not in text, is_time=" " in text)
    assert parse_requirement(text).resolve(None, attribute).label == label
