"""Runs that ask how far apart values are: `range`, which unions of classes keep, and `proximity`, which may be lost."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from typing import Any

import oracle
import pytest
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.database.errors import InfeasibleError

pytestmark = pytest.mark.usefixtures("no_remedies")

ALGORITHMS = ["topdown", "peel", "mondrian", "stratified", {"name": "mondrian", "split": "relaxed"}, "auto"]
RANGE, PROXIMITY = {"range": {"k": 3, "e": "90.5"}}, {"proximity": {"epsilon": "10.5", "m": 3}}


def policy_of(*require: Any, algorithm: Any = "topdown", **changes: Any) -> dict[str, Any]:
    keys = {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [2, 1]}}}
    base = {"source": "t", "target": "o", "quasi_identifiers": keys, "sensitive": ["wage"], "seed": 1} | {
        "over_time": "independent"
    }
    return base | {"require": list(require), "algorithm": algorithm, "nulls_sensitive": "value"} | changes


def rows_of(seed: Any, count: int = 36, top: int = 200) -> list[tuple[int, str, int | None]]:
    draw = random.Random(seed)
    wages = [None, *range(0, top, 3)]
    return [(draw.randint(0, 60), f"{draw.randint(0, 99):02d}", draw.choice(wages)) for _ in range(count)]


def fill(con: Any, rows: list[tuple[Any, ...]], kind: str = "INTEGER") -> None:
    con.execute(f"CREATE OR REPLACE TABLE t (age INTEGER, zip VARCHAR, wage {kind})")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)


def published(con: Any) -> list[tuple[Any, Any]]:
    return con.execute("SELECT class_id, wage FROM o").fetchall()


@pytest.mark.parametrize("algorithm", some(ALGORITHMS))
@pytest.mark.parametrize("require", some([PROXIMITY, RANGE]), ids=["proximity", "range"])
def test_every_class_is_good_and_every_row_is_published(con: Any, require: Any, algorithm: Any) -> None:
    ((name, parameters),) = require.items()
    rows = rows_of(name)
    fill(con, rows)
    result = ldiv_db.run(con, policy_of(require, {"k": 4}, algorithm=algorithm, output={"class_id": True}))
    assert len(published(con)) == len(rows)
    assert not oracle.violations(published(con), name, parameters)
    assert not oracle.violations(published(con), "k", 4)
    classes = len({key for key, _ in published(con)})
    assert classes > 1 and all(verdict["holds"] for verdict in result.requirements)


def test_auto_improves_the_classes_of_several_trials(con: Any) -> None:
    """Which are no strata of one table: there values are bags, whose range is not defined."""
    fill(con, rows_of("range", 10))
    ldiv_db.run(con, policy_of(RANGE, algorithm="auto", output={"class_id": True}))
    assert not oracle.violations(published(con), "range", RANGE["range"])


@pytest.mark.parametrize("algorithm", some(["cuts", "incognito", "tds"]))
def test_global_recodings_keep_a_range_and_refuse_proximity(con: Any, algorithm: str) -> None:
    fill(con, rows_of(algorithm))
    keys = {"age": {"taxonomy": {"ranges": [5, 20]}}, "zip": {"taxonomy": {"prefix": [2, 1]}}}
    ldiv_db.run(con, policy_of(RANGE, algorithm=algorithm, quasi_identifiers=keys, output={"class_id": True}))
    assert not oracle.violations(published(con), "range", RANGE["range"])
    with refuses("require"):
        ldiv_db.plan(con, policy_of(PROXIMITY, algorithm=algorithm, quasi_identifiers=keys, target="p"))


@pytest.mark.parametrize("algorithm", some(["bsgi", "tp"]))
def test_algorithms_that_look_at_counts_refuse_both(con: Any, algorithm: str) -> None:
    fill(con, rows_of(algorithm))
    for require in (RANGE, PROXIMITY):
        with refuses("require"):
            ldiv_db.plan(con, policy_of(require, algorithm=algorithm))


def test_classes_that_unions_would_spoil_need_ids(con: Any) -> None:
    fill(con, rows_of("ids"))
    with refuses("output"):
        ldiv_db.plan(con, policy_of(PROXIMITY, output={"class_id": False}))


def test_times_and_what_unions_would_spoil_has_ids(con: Any) -> None:
    draw = random.Random("times")
    days = [date(2024, 1, 1) + timedelta(days=draw.randint(0, 300)) for _ in range(36)]
    fill(con, [(draw.randint(0, 60), f"{draw.randint(0, 99):02d}", day) for day in days], "DATE")
    wanted = [{"range": {"k": 3, "e": "12 weeks"}}, {"proximity": {"epsilon": "5 days", "m": 3}}]
    result = ldiv_db.run(con, policy_of(*wanted))
    found = [(key, (day - date(2024, 1, 1)).days) for key, day in published(con)]
    assert not oracle.violations(found, "range", {"k": 3, "e": 84})
    assert not oracle.violations(found, "proximity", {"epsilon": 5, "m": 3})
    ledger = con.execute("SELECT requirement, parameters FROM ldiv.run_requirement ORDER BY 1 DESC").fetchall()
    assert ledger == [("range", '{"k": 3, "e": "12 weeks"}'), ("proximity", '{"epsilon": "5 days", "m": 3}')]
    assert {verdict["holds"] for verdict in result.requirements} == {True}


def test_a_range_that_the_table_lacks_says_what_is_nearest(con: Any) -> None:
    rows = rows_of("lacks")
    fill(con, rows)
    wages = [wage for *_, wage in rows if wage is not None]
    with pytest.raises(InfeasibleError, match=f"the nearest it meets is k: 3, e: {max(wages) - min(wages)}\n"):
        ldiv_db.plan(con, policy_of({"range": {"k": 3, "e": 1000}}))


def test_what_a_bad_table_allows(con: Any) -> None:
    """Two thirds of the wages are near each other: no class can have them all, and peeling leaves some out."""
    wages = [*([100, 101, 102, 103] * 10), *range(1000, 3000, 100)]
    rows = [(i // 8, "00", wage) for i, wage in enumerate(wages)]
    fill(con, rows)
    require = {"proximity": {"epsilon": 5, "m": 2}}
    with pytest.raises(InfeasibleError) as raised:
        ldiv_db.run(con, policy_of(require, algorithm="topdown"))
    assert "topdown found no classes of all rows that meet proximity epsilon=5, m=2" in str(raised.value)
    assert "on wage: the whole table as one class meets m: 1" in str(raised.value)
    ldiv_db.run(con, policy_of(require, algorithm={"name": "peel", "residue": "suppress"}))
    assert not oracle.violations(published(con), "proximity", require["proximity"])
    assert 0 < len(published(con)) <= 40


@pytest.mark.parametrize("algorithm", some(["topdown", "mondrian"]))
def test_parts_may_be_good_where_the_table_is_not(con: Any, algorithm: str) -> None:
    """Around 0 lie three of four values, of the two parts' values none is near another."""
    fill(con, [(0, "00", -1), (0, "00", 1), (50, "99", 0), (50, "99", 10)])
    ldiv_db.run(con, policy_of({"proximity": {"epsilon": 1, "m": 2}}, algorithm=algorithm))
    assert sorted(Counter(key for key, _ in published(con)).values()) == [2, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "wanted"), some([pytest.param("TIMESTAMP WITH TIME ZONE", "720 hours"), pytest.param("DATE", "30 days")])
)
def test_files_of_texts_are_audited_as_numbers_and_times(con: Any, tmp_path: Any, kind: str, wanted: str) -> None:
    start = date(2024, 1, 1)
    fill(con, [(i % 20, "00", start + timedelta(days=i * 17 % 100)) for i in range(40)], kind)
    target = str(tmp_path / "o.csv")
    require = {"range": {"k": 3, "e": wanted}}
    result = ldiv_db.run(con, policy_of(require, {"proximity": {"epsilon": "2 days", "m": 3}}, target=target))
    assert [verdict["holds"] for verdict in result.requirements] == [True, True]
    with_days = con.execute(f"SELECT class_id, CAST(wage AS DATE) - DATE '2024-01-01' FROM '{target}'").fetchall()
    assert not oracle.violations(with_days, "range", {"k": 3, "e": 29})
