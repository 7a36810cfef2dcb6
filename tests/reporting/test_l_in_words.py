"""The l that is said of a run is one that the policy asks for: never the k of k-anonymity."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import some

import ldiv_db
from ldiv_db.running.preview import describe_plan

POLICY: dict[str, Any] = {
    "source": "t",
    "target": {"table": "out", "if_exists": "replace"},
    "quasi_identifiers": {"age": {"taxonomy": {"ranges": [5, 10, 20]}}, "town": {"taxonomy": {"flat": True}}},
    "sensitive": ["s"],
    "over_time": "independent",
    "seed": 1,
}


ALGORITHMS = ("topdown", "cuts", "auto", "mondrian", "tds", "incognito")
#: What is asked, and the l that is said of it.
ASKED: list[tuple[list[Any], int | None]] = [
    ([{"k": 9}, {"distinct": 3}, {"frequency": 2}], 3),
    ([{"k": 5}], None),
    ([{"recursive": {"c": 4, "l": 2}}, {"k": 6}], 2),
    ([{"k": 5}, {"frequency": 3}], 3),
    ([{"p_sensitive": {"p": 2, "k": 5}}], None),
    ([{"alpha_k": {"alpha": 0.5, "k": 7}}], None),
]
CASES = [
    pytest.param(algorithm, *ASKED[(place + turn) % len(ASKED)])
    for turn in range(len(ASKED))
    for place, algorithm in enumerate(ALGORITHMS)
]


@pytest.mark.parametrize(("algorithm", "require", "l"), some(CASES))
def test_what_is_said_is_what_is_asked(con: Any, algorithm: str, require: list[Any], l: int | None) -> None:
    con.execute(
        "CREATE TABLE t AS SELECT 20 + i * 7 % 50 AS age, 't' || i % 3 AS town, 'd' || i % 5 AS s FROM range(100) r(i)"
    )
    policy = {**POLICY, "require": require, "algorithm": algorithm}
    plan, result = ldiv_db.plan(con, policy), ldiv_db.run(con, policy)
    said = "" if l is None else f", l = {l}"
    assert f"{result.algorithm}{said} " in str(result).splitlines()[2] + " " and str(result).count("l = ") == (
        l is not None
    )
    assert "feasible" not in str(plan) and "reach k: 100" in str(plan) if "k" in require[0] else True
    document = describe_plan(plan)
    assert (document["l"], document["largest_l"]) == (l, None)
    assert algorithm == "auto" or result.l == l  # classes of different values have an l of their own


def test_an_exploration_says_the_l_that_is_asked(con: Any) -> None:
    con.execute("CREATE TABLE t AS SELECT i % 50 AS age, 't' || i % 3 AS town, 'd' || i % 5 AS s FROM range(200) r(i)")
    found = ldiv_db.explore(con, {**POLICY, "require": [{"k": 5}], "algorithm": "topdown"}, k=[5], workers=1)
    assert [one.as_dict()["l"] for one in found.outcomes] == [None]
