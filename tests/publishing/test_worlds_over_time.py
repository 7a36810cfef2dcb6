"""Releases over time by brute force: all worlds that agree with every night's table, counted one by one.

The attacker knows who is in the source on each night with which quasi-identifiers, and sees the table of each night. A
world says in which class everybody is that was published; of the values of a class each arrangement is as likely.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest
from tables import fill

import ldiv_db
from ldiv_db import InfeasibleError

pytestmark = pytest.mark.usefixtures("no_remedies")

COLUMNS = {"id": "INTEGER", "person": "VARCHAR", "age": "INTEGER", "s": "VARCHAR"}
#: What makes the classes: by `bsgi` of people with several rows as well.
WAYS = (
    "auto", "topdown", "mondrian", "peel", "stratified", "tp", "bsgi", "bsgi of people", "peel beside harmless",
    "auto of sets", "topdown of sets",
)  # fmt: skip

Row = tuple[int, str, int, str]
#: The first and the last age that a class covers, and its values.
Class = tuple[int, int, tuple[str, ...]]


def policy_of(way: str) -> dict[str, Any]:
    name, _, more = way.partition(" ")
    document = {
        "source": "people", "target": {"table": "out"}, "key": "id",
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [10, 20]}} if name == "tp" else {"numeric": True}},
        "sensitive": {"s": {"harmless": ["b"]} if "harmless" in more else {"set": ","} if "sets" in more else {}},
        "require": [{"unique_distinct" if name == "bsgi" else "frequency": 2}], "algorithm": name,
    }  # fmt: skip
    return document | ({"individual": "person"} if "people" in more else {"identifiers": ["person"]})


def drawn(draw: random.Random, first: int, count: int, values: Sequence[str]) -> list[Row]:
    """Rows whose ages are few, so that classes cover the same people; every fourth is a row of somebody before."""
    rows: list[Row] = []
    for number in range(first, first + count):
        person = rows[-1][1] if rows and draw.random() < 0.25 else f"P{number}"
        rows.append((number, person, draw.choice((1, 5, 12, 15, 31)), draw.choice(values)))
    return rows


def changed(draw: random.Random, rows: list[Row], first: int, values: Sequence[str]) -> list[Row]:
    """The next night's rows: some are gone, some have another value or age, some are new."""
    rows = [row for row in rows if draw.random() > 0.15]
    rows = [(key, who, age, draw.choice("abc") if draw.random() < 0.15 else s) for key, who, age, s in rows]
    rows = [(key, who, draw.choice((1, 12, 31)) if draw.random() < 0.1 else age, s) for key, who, age, s in rows]
    return [*rows, *drawn(draw, first, draw.randrange(5), values)]


def classes_of(con: Any, last: int) -> list[Class]:
    """The classes of the table that no earlier night had."""
    found = con.execute("SELECT class_id, age, s FROM out WHERE class_id > ? ORDER BY ALL", [last]).fetchall()
    classes = defaultdict(list)
    for number, age, s in found:
        classes[number, age].append(s)
    return [(*span(age), tuple(values)) for (_, age), values in classes.items()]


def span(label: str) -> tuple[int, int]:
    """The first and the last age of a label: `*`, `[20 .. 29]` or `25`."""
    if label == "*":
        return 0, 100
    low, _, high = label.strip("[]").partition(" .. ")
    return int(low), int(high or low)


def members(free: list[Row], size: int, low: int, high: int, apart: bool) -> Iterator[tuple[Row, ...]]:
    """Those of whom a class may be: so many that it covers; `apart`, with no two rows of one person."""
    if not size:
        yield ()
    for place, row in enumerate(free if size else ()):
        if low <= row[2] <= high:
            rest = [r for r in free[place + 1 :] if not (apart and r[1] == row[1])]
            yield from ((row, *others) for others in members(rest, size - 1, low, high, apart))


def worlds(
    nights: list[tuple[list[Row], list[Class]]], apart: bool, published: frozenset[int] = frozenset()
) -> Iterator[dict[int, Class]]:
    """Each way in which the classes of all nights can be made of those who were there and in no class before."""
    if not nights:
        yield {}
        return
    (rows, classes), *later = nights
    if not classes:
        yield from worlds(later, apart, published)
        return
    (low, high, values), *others = classes
    free = [row for row in rows if row[0] not in published]
    for chosen in members(free, len(values), low, high, apart):
        keys = frozenset(row[0] for row in chosen)
        for world in worlds([(rows, others), *later], apart, published | keys):
            yield world | dict.fromkeys(keys, classes[0])


def posteriors(nights: list[tuple[list[Row], list[Class]]], apart: bool) -> tuple[int, dict[tuple[int, str], Fraction]]:
    """How many worlds there are, and how likely each row has each value, over all of them."""
    count, sums = 0, Counter[tuple[int, str]]()
    for world in worlds(nights, apart):
        count += 1
        for key, (_, _, values) in world.items():
            for value, n in Counter(member for told in values for member in told.split(",")).items():
                sums[key, value] += Fraction(n, len(values))
    return count, {known: total / count for known, total in sums.items()}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_value_is_likelier_than_promised_over_all_nights(con: Any, way: str) -> None:
    several = nights_with_classes = 0
    for seed in range(8):
        draw, nights = random.Random(f"{way} {seed}"), []
        values = ("a", "b", "a,c", "c,d", "d") if "sets" in way else "abbc"
        rows = drawn(draw, 0, draw.randrange(4, 9), values)
        con.execute("DROP SCHEMA IF EXISTS ldiv CASCADE; DROP TABLE IF EXISTS out")
        for night in range(draw.randrange(3, 6)):
            fill(con, "people", COLUMNS, rows)
            try:
                last = con.execute("SELECT max(class_id) FROM out").fetchone()[0] if nights else 0
                ldiv_db.run(con, policy_of(way))
                nights.append((rows, classes_of(con, last)))
            except InfeasibleError:
                assert not nights, "only a first release cannot do without classes"
            rows = changed(draw, rows, 100 * (night + 1), values)
        count, found = posteriors(nights, "people" in way)
        assert count or not nights, "the world as it was agrees with all nights"
        assert all(
            share <= Fraction(1, 2)
            for (_, value), share in found.items()
            if (way, value) != ("peel beside harmless", "b")
        )
        several += count > 1
        nights_with_classes += sum(bool(classes) for _, classes in nights[1:])
    assert several and nights_with_classes
