"""Who pays: what groups of rows lose, against the labels of a run of the same policy, row by row in Python."""

from __future__ import annotations

import random
from collections import defaultdict
from statistics import fmean
from typing import Any

import pytest
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.recoding import snapshot
from ldiv_db.recoding.groups import RANGES, GroupLoss

COLUMNS = {"id": "INTEGER", "age": "INTEGER", "town": "VARCHAR", "s": "VARCHAR"}
Row = tuple[int, int | None, str | None, str]


def policy_of(**changes: Any) -> dict[str, Any]:
    return {
        "source": "people", "target": "out", "quasi_identifiers": {"age": {"numeric": True}, "town": {}},
        "sensitive": "s", "keep": ["id"], "require": [{"distinct": 3}], "algorithm": "mondrian", "seed": 1,
        "suppression": 0.1, "recode": "tree", "output": {"bounds": True},
    } | changes  # fmt: skip


def groups_of(con: Any, policy: dict[str, Any], show_values: bool = True) -> Any:
    (outcome,) = ldiv_db.explore(con, policy, l=[3], workers=1, show_values=show_values).outcomes
    return outcome


def lost(shown: tuple[Any, Any, Any] | None, width: int) -> float:
    """The mean LM of a row's cells: of ages the part of all their width, of towns all or nothing."""
    if shown is None:
        return 1.0
    low, high, town = shown
    return (high - low) / width / 2 + (town == "*") / 2


def group_of(row: Row, column: str, low: int, width: int) -> str:
    if column == "town":
        return row[2] or "NULL"
    return "NULL" if row[1] is None else str((row[1] - low) * RANGES // (width + 1))


@pytest.mark.parametrize("seed", some([1, 2]))
def test_a_group_loses_what_its_rows_do(con: Any, seed: int) -> None:
    draw = random.Random(seed)
    people = range(60)
    rows = [(n, draw.randrange(20, 90), draw.choice(["p", "q", None, "r"]), draw.choice("abcdd")) for n in people]
    fill(con, "people", COLUMNS, rows)
    outcome = groups_of(con, policy_of())
    ldiv_db.run(con, policy_of())
    shown = {row[0]: row[1:] for row in con.execute("SELECT id, age_min, age_max, town FROM out").fetchall()}
    assert len(shown) == 60 - outcome.loss.rows_suppressed
    low = min(row[1] for row in rows)
    width = max(row[1] for row in rows) - low
    for column in ("age", "town"):
        paid = defaultdict(list)
        for row in rows:
            paid[group_of(row, column, low, width)].append((lost(shown.get(row[0]), width), row))
        found = [group for group in outcome.groups if group.column == column]
        assert len(found) == len(paid)
        for group in found:
            at = group.low if column == "town" else group_of((0, int(group.low), None, ""), column, low, width)
            every = [row for _, row in paid[at]]
            assert group.lm_mean == pytest.approx(fmean(loss for loss, _ in paid[at]), abs=1e-6)
            assert group.share == pytest.approx(len(every) / 60)
            assert group.left_out == pytest.approx(sum(row[0] not in shown for row in every) / len(every))
            if column == "age":
                assert [group.low, group.high] == [str(min(r[1] for r in every)), str(max(r[1] for r in every))]
        assert [group.lm_mean for group in found] == sorted((group.lm_mean for group in found), reverse=True)


def test_groups_of_counts_make_up_the_whole_and_name_no_value_unasked(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "COUNTED_FROM", 10)
    draw = random.Random(3)
    rows = [(0, draw.choice([1, 2, None]), draw.choice("pq"), draw.choice("abcd")) for _ in range(90)]
    fill(con, "people", COLUMNS, rows)
    policy = policy_of(keep=[], identifiers=["id"])
    outcome = groups_of(con, policy, show_values=False)
    for column, groups in (("age", 3), ("town", 2)):
        found: list[GroupLoss] = [group for group in outcome.groups if group.column == column]
        assert len(found) == groups and all(group.low is group.high is None for group in found)
        assert sum(group.share * group.lm_mean for group in found) == pytest.approx(outcome.loss.lm_mean)
        assert sum(group.share * group.left_out for group in found) == pytest.approx(outcome.loss.rows_suppressed / 90)
    assert str(outcome.groups[0]) == "age, group 1"
