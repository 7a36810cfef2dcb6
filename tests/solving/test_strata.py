"""Strata: people of all levels solved at once are in the classes that each level has by itself."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db import InfeasibleError
from ldiv_db.algorithms.local import strata
from ldiv_db.solving import level_trials, solve
from tests.running.schemas import CHOICES, drawn, fill, policy_of
from tests.running.test_aligned import POLICY, visits
from tests.running.test_aligned import fill as fill_visits

pytestmark = pytest.mark.usefixtures("no_remedies")

ALGORITHMS = ("topdown", "auto")
REQUIREMENTS: list[dict[str, Any]] = [{"k": 3}, {"frequency": 2}, {"distinct": 2}, {"entropy": 1.5}]


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counts the strata that are solved at once; after `apart()` every level is solved by itself."""
    found, made = Counter[int](), solve.made_together

    def counted(*given: Any) -> Any:
        plans = made(*given)
        found[len(plans)] += 1
        return plans

    def solve_by(how: Any) -> None:
        for module in (solve, level_trials):
            monkeypatch.setattr(module, "made_together", how)

    def apart() -> None:
        solve_by(lambda *given: {})

    def again() -> Counter[int]:
        solve_by(counted)
        return found

    return again, apart


def released(con: duckdb.DuckDBPyConnection, policy: dict[str, Any], names: list[str]) -> Any:
    try:
        ldiv_db.run(con, policy)
    except InfeasibleError as error:
        return str(error)
    return [sorted(map(str, con.execute(f"SELECT * FROM {name}").fetchall())) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("names", [(), CHOICES[0]], ids=["one table", "several"])
def test_people_are_released_as_level_by_level(names: tuple[str, ...], algorithm: str, together: Any) -> None:
    con, (again, apart), rng = duckdb.connect(config={"threads": 1}), together, random.Random("strata 0")
    if names:
        fill(con, names, drawn(rng, names, rng.randrange(24, 36), most=2, values="abcdefgh"))
        policy = policy_of(names, algorithm=algorithm, require=[rng.choice(REQUIREMENTS)])
    else:
        fill_visits(con, visits(rng, rng.randrange(14, 20)))
        policy = POLICY | {"algorithm": algorithm, "require": [rng.choice(REQUIREMENTS)]}
    targets, found = [f"published.{name}" for name in names] or ["release"], again()
    at_once = released(con, policy, targets)
    apart()
    assert at_once == released(con, policy, targets)
    assert sum(count for plans, count in found.items() if plans > 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "require",
    [
        [{"frequency": 4, "sensitive": ["stays.value"]}, {"frequency": 2, "sensitive": ["labs.value"]}],
        [{"distinct": 2, "sensitive": ["stays.value"]}, {"entropy": 2.5, "sensitive": ["labs.value"]}],
        [{"distinct": 2, "sensitive": ["stays.value"]}, {"k": 5, "sensitive": ["labs.value"]}],
    ],
    ids=str,
)  # fmt: skip
def test_what_is_asked_of_one_column_alone_is_met_by_all_people(require: list[Any]) -> None:
    con, names = duckdb.connect(config={"threads": 1}), ("patients", "stays", "labs")
    fill(con, names, drawn(random.Random(2), names, 40, most=2, values="abcdefgh"))
    assert ldiv_db.run(con, policy_of(names, algorithm="topdown", require=require)).tables


def test_people_without_labels_are_in_no_class() -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE visits AS SELECT i // 2 AS who, i % 7 AS age, i AS day FROM range(40) AS r(i)")
    con.execute("CREATE TABLE notes AS SELECT 10 + i // 2 AS who, i AS day, i % 4 AS value FROM range(60) AS r(i)")
    more: dict[str, Any] = {"person": "who", "order": "day", "identifiers": ["day"]}
    visits = {"source": "visits", "target": "a", "quasi_identifiers": {"age": {"numeric": True}}, **more}
    notes = {"source": "notes", "target": "b", "sensitive": ["value"], **more}
    policy = {"individual": "who", "tables": {"visits": visits, "notes": notes}, "require": [{"k": 3}]}
    with pytest.raises(InfeasibleError, match="no row in a table with quasi-identifiers"):
        ldiv_db.run(con, policy)


def test_no_batch_has_more_rows_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strata, "kind_of", lambda task: "any")
    tasks: Any = [SimpleNamespace(encoded=SimpleNamespace(row_count=rows)) for rows in (5, 4, 3, 12, 2, 7)]
    found = strata.batches(tasks, 10)
    assert [[own.encoded.row_count for own in batch] for batch in found] == [[5, 4], [3, 2]]
