"""Anatomised releases with `transparent: true`: what groups tell who knows all but the coins, over all worlds."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from refusals import refuses
from strategies import some
from tables import fill
from test_steps import dealt, grouping

import ldiv_db
from ldiv_db.algorithms.decomposition.steps import make_groups
from ldiv_db.database.engine import Engine
from ldiv_db.running.release_groups import AT_ONCE

pytestmark = pytest.mark.usefixtures("no_remedies")

ALGORITHMS = ["anatomy", "decomposition", "decomposition_plus"]


_known: dict[Any, Any] = {}


def groups_of_places(
    con: Any, placed: tuple[int, ...], l: int, free: bool = False
) -> list[tuple[int, tuple[int, ...]]]:
    """The groups (number, places) of rows whose values stand in these places of the order that coins gave.

    A negative number is the value written differently; the value 1 may be harmless.
    """
    values = tuple(map(abs, placed))
    if (values, l, free) in _known:
        return list(_known[values, l, free])
    engine, numbers = Engine(con), range(1, len(values) + 1)
    order = dealt(numbers, "0:1")
    rows = [(number, 0, values[order.index(number)]) for number in numbers]
    task = grouping(engine, rows, [l])
    con.execute(f"UPDATE {task.primary.dictionary.sql()} SET is_free = {free} AND code = 1")
    shown = make_groups(task, task.rows, AT_ONCE).shown
    found = defaultdict(list)
    for number, group in con.execute(f"SELECT row_id, group_no FROM {shown.sql()}").fetchall():
        found[group].append(order.index(number))
    engine.close_scratch()
    _known[values, l, free] = [(group, tuple(places)) for group, places in found.items()]
    return list(_known[values, l, free])


def worst(
    con: Any,
    counts: Sequence[int],
    l: int,
    orders: Iterable[tuple[int, ...]],
    spelled: bool = False,
    free: bool = False,
) -> Fraction:
    """The largest posterior over all ways to give the values to people, and these orders in which they are dealt.

    The numbers of groups are given away too. Of each value one row may be written differently; nothing is said of a
    value that is harmless.
    """
    values = [value for value, count in enumerate(counts, 1) for _ in range(count)]
    if spelled:
        values = [-value if value in values[:place] else value for place, value in enumerate(values)]
    people, worlds = range(len(values)), sorted(set(itertools.permutations(values)))
    formed = {placed: groups_of_places(con, placed, l, free) for placed in worlds}
    assert all(sum(len(places) for _, places in groups) == len(values) for groups in formed.values())
    told: dict[Any, Counter[tuple[int, int]]] = defaultdict(Counter)
    for order in orders:
        for placed, groups in formed.items():  # the world is `placed` in that order: all are as likely
            release = tuple(
                sorted(
                    (group, tuple(sorted(order[p] for p in places)), tuple(sorted(placed[p] for p in places)))
                    for group, places in groups
                )
            )
            told[release].update((order[place], abs(placed[place])) for place in people)
    return max(
        Fraction(
            max((count for (who, value), count in beliefs.items() if who == person and value > free), default=0),
            _runs(beliefs, person),
        )
        for beliefs in told.values()
        for person in people
    )


def _runs(beliefs: Counter[tuple[int, int]], person: int) -> int:
    return sum(count for (who, _), count in beliefs.items() if who == person)


COUNTS = [((2, 2), 2), ((2, 2, 1), 2), ((2, 2, 2), 2), ((2, 2, 2), 3), ((3, 2, 1), 2), ((3, 3), 2), ((3, 3, 1), 2)]


@pytest.mark.parametrize(("counts", "l"), some([pytest.param(*each) for each in COUNTS]))
def test_no_posterior_exceeds_the_share_of_a_group(con: Any, counts: tuple[int, ...], l: int) -> None:
    assert worst(con, counts, l, itertools.permutations(range(sum(counts)))) == Fraction(1, l)


OTHERWISE = [
    ((2, 2, 1), 2, True, False),
    ((3, 1, 1), 2, False, True),
    ((4, 1, 1), 2, True, True),
    ((1, 2, 2), 2, False, True),
]


@pytest.mark.parametrize(("counts", "l", "spelled", "free"), some(OTHERWISE))
def test_neither_spellings_nor_harmless_rows_make_others_surer(
    con: Any, counts: tuple[int, ...], l: int, spelled: bool, free: bool
) -> None:
    assert worst(con, counts, l, itertools.permutations(range(sum(counts))), spelled, free) <= Fraction(1, l)


def test_without_coins_groups_would_tell(con: Any) -> None:
    """The same count finds out an order that is known."""
    assert worst(con, (2, 1, 1), 2, [tuple(range(4))]) > Fraction(1, 2)


def policy_of(algorithm: str, **changes: Any) -> dict[str, Any]:
    return {
        "source": "source", "target": {"prefix": "out"}, "key": "id", "quasi_identifiers": ["age"],
        "sensitive": {"s": {"l": 3}}, "algorithm": algorithm, "transparent": True, **changes,
    }  # fmt: skip


@pytest.fixture
def source(con: Any) -> None:
    columns = {"id": "INTEGER", "age": "INTEGER", "s": "VARCHAR"}
    fill(con, "source", columns, [(i, i % 9, "abcde"[i % 5]) for i in range(32)])


@pytest.mark.parametrize("algorithm", some(ALGORITHMS))
def test_everybody_is_published_once(con: Any, source: None, algorithm: str) -> None:
    released = ldiv_db.run(con, policy_of(algorithm))
    assert released.figures["rows_published"] == 32 and released.figures["rows_waiting"] == 0
    assert not any("seed" in note for note in released.notes)
    with refuses("transparent"):
        ldiv_db.run(con, policy_of(algorithm))
    again = ldiv_db.run(con, policy_of(algorithm, target={"prefix": "other"}, seed=3, over_time="independent"))
    assert any("as secret as their seed" in note for note in again.notes)


@pytest.mark.parametrize("algorithm", some(ALGORITHMS))
def test_rows_kept_back_are_refused(con: Any, source: None, algorithm: str) -> None:
    """Of whom no group has is known that his value is frequent."""
    con.execute("UPDATE source SET s = 'a' WHERE id < 20")
    with pytest.raises(ldiv_db.InfeasibleError, match="found no group"):
        ldiv_db.run(con, policy_of(algorithm))
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE NOT temporary").fetchall() == [(1,)]


def test_several_attributes_are_refused(con: Any, source: None) -> None:
    policy = policy_of("decomposition_plus", quasi_identifiers=[], sensitive={"s": {"l": 3}, "age": {"l": 2}})
    with refuses("key.id", "sensitive"):
        ldiv_db.run(con, policy | {"quasi_identifiers": ["id"], "key": "id"})
