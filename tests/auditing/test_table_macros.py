"""The table macros of `ldiv.sql`: verdicts are those of `check`; what they cannot judge they refuse."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
import random_cases
from strategies import search, seeds

import ldiv_db
from tests.sql.table_macros import JUDGED, PATH, text

#: What each parameter is drawn from.
DRAWN: dict[str, list[Any]] = {
    **{"k": [1, 2, 3, 5, 8], "l": [1, 2, 3, 5], "p": [1, 2, 3], "c": [0.5, 1, 2.5, 4]},
    **{"max": [0.09, 0.25, 0.5, 1], "default": [0.2, 0.5, 0.75, 1], "alpha": [0.2, 0.5, 1], "t": [0, 0.1, 0.25, 0.9]},
}


@pytest.fixture
def con() -> Any:
    with duckdb.connect() as connection:
        ldiv_db.register(connection)
        yield connection


def asked(draw: random.Random, name: str) -> tuple[dict[str, Any], str]:
    """A requirement as `check` takes it, and the last arguments of the macro."""
    given = {key: draw.choice(DRAWN[key]) for key in JUDGED[name] if key in DRAWN}
    if draw.random() < 0.3 and name in ("frequency", "entropy"):
        given["l"] = draw.choice([1.5, 2.25, 3.333333333])
    by_name = {str(JUDGED[name][key]): value for key, value in given.items()}
    others = "".join(f", {key} := {value}" for key, value in by_name.items() if key != "parameter")
    distance = {"distance": "equal"} if name == "t_closeness" else {}
    return {name: {**given, **distance}}, f"'{name}', {by_name['parameter']}{others}"


@search(8, seed=seeds)
def test_verdicts_are_those_of_check(con: Any, seed: int) -> None:
    draw = random.Random(seed)
    case = random_cases.random_case(draw, seed)
    for statement in random_cases.statements(case):
        con.execute(statement)
    sensitive, qi, name = draw.choice(list(case["sensitive"])), list(case["qi"]), list(JUDGED)[seed % len(JUDGED)]
    requirement, last = asked(draw, name)
    (audit,) = ldiv_db.check(con, case["table"], qi, sensitive, requirement)
    (verdict,) = audit.verdicts
    found = one(con, f"ldiv_check(?, {listed(qi)}, ?, {last})", case["table"], sensitive)
    for key in ("classes", "violating_classes", "violating_rows", "holds"):
        assert found[key] == getattr(verdict, key), (key, requirement)
    assert found["requirement"] == name and found["holds"] is (found["violating_rows"] == 0)
    assert (found["margin"] < -1e-8) is (float(verdict.margin) < -1e-8)  # in units of its own for `risk`


def listed(names: list[str]) -> str:
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def one(con: Any, call: str, *given: Any) -> dict[str, Any]:
    """The only row of a call, by the names of its columns."""
    found = con.execute(f"FROM {call}", given)
    names = [name for name, *_ in found.description]
    (row,) = found.fetchall()
    return dict(zip(names, row, strict=True))


def test_the_file_is_of_today() -> None:
    assert PATH.read_text(encoding="utf-8") == text(), "python -m tests.sql.table_macros writes it again"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("ldiv_check('t', ['a'], 's', 'frequency', 0.5)", "l takes a number from 1 to"),
        ("ldiv_check('t', ['a'], 's', 'frequency', 1 / 3.0 + 1)", "up to 9 digits"),
        ("ldiv_check('t', ['a'], 's', 'entropy', NULL)", "l takes a number from 1 to"),
        ("ldiv_check('t', ['a'], 's', 'distinct', 2.5)", "l takes a whole number from 1, not 2.5"),
        ("ldiv_check('t', ['a'], 's', 'recursive', 2)", "c takes a number above 0"),
        ("ldiv_check('t', ['a'], 's', 'p_sensitive', 2)", "k takes a whole number from 1, not NULL"),
        ("ldiv_check('t', ['a'], 's', 'l_diversity', 2)", "no requirement l_diversity; known: k, risk"),
        ("ldiv_check('t', ['none'], 's', 'k', 2)", "none"),
        ("ldiv_check('t', ['a'], 'none', 'distinct', 2)", "none"),
        ("ldiv_check('t', 'a', 's', 'k', 2)", "VARCHAR[]"),
        ("ldiv_check('t', ['sets'], 's', 'k', 2)", "a column holds VARCHAR[]"),
        ("ldiv_check('t', ['ldiv_value', 'a'], 's', 'k', 2)", "rename the column ldiv_value"),
        ("ldiv_risk('t', 'a')", "a list of names"),
        ("ldiv_loss('t', ['sets'])", "a column holds VARCHAR[]"),
        ("ldiv_classes('t', 'a')", "a list of names"),
        ("ldiv_risk('none', ['a'])", "none"),
    ],
)
def test_what_cannot_be_judged_is_refused(con: Any, call: str, said: str) -> None:
    con.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS ab, 'x' AS s, ['y'] AS sets, 3 AS ldiv_value FROM range(4)")
    with pytest.raises(duckdb.Error, match=re.escape(said)):
        con.execute(f"FROM {call}").fetchall()


@pytest.mark.parametrize("value", ["-0.0", "-nan"])
def test_classes_that_are_told_apart_by_a_sign_are_refused(con: Any, value: str) -> None:
    con.execute("CREATE TABLE t (x DOUBLE, s VARCHAR)")
    con.executemany("INSERT INTO t VALUES (?, ?)", [(value, "a"), (value[1:], "b"), ("1", "c")])
    with pytest.raises(ldiv_db.PolicyError, match="written differently"):
        ldiv_db.check(con, "t", ["x"], "s", "k:2")
    for call in ("ldiv_check('t', ['x'], 's', 'k', 2)", "ldiv_risk('t', ['x'])"):
        with pytest.raises(duckdb.Error, match=f"holds {value}: write it without its sign"):
            con.execute(f"FROM {call}").fetchall()
    assert one(con, "ldiv_check('t', ['s'], 'x', 'distinct', 1)")["holds"]


def test_risk_and_loss_are_those_of_measure_and_a_file_is_read(con: Any, tmp_path: Path) -> None:
    con.execute(
        "CREATE TABLE patients AS SELECT i AS id, ['f', 'm'][i % 2 + 1] AS sex, 'z' || i % 31 AS zip,"
        " 'd' || (hash(i) % 5) AS disease FROM range(90) AS t(i)"
    )
    policy = {
        **{"source": "patients", "target": "release", "identifiers": ["id"], "quasi_identifiers": ["sex", "zip"]},
        **{"sensitive": "disease", "require": [{"k": 5}], "recode": "tree", "seed": 1},
    }
    ldiv_db.run(con, policy)
    lost = ldiv_db.measure(con, "release", policy=policy).as_dict()["loss"]
    found = one(con, "ldiv_loss('release', ['sex', 'zip'])")
    assert (found["rows"], found["dm"], found["stars"]) == (90, lost["dm"], lost["stars"]) and found["stars"] > 0
    sizes = [rows for *_, rows in con.execute("FROM ldiv_classes('release', ['sex', 'zip'])").fetchall()]
    assert sum(sizes) == 90 and found["classes"] == len(sizes) and found["dm"] == sum(size**2 for size in sizes)
    assert found["mean_class_size"] == pytest.approx(90 / len(sizes))
    file = tmp_path / "release.parquet"
    con.execute(f"COPY release TO '{file}'")
    risk = one(con, "ldiv_risk(?, ['sex', 'zip'])", str(file))
    assert risk == {
        **{"rows": 90, "classes": len(sizes), "smallest_class": min(sizes), "largest_risk": 1 / min(sizes)},
        **{"mean_risk": len(sizes) / 90, "unique_rows": sizes.count(1)},
    }


def test_nothing_stays_in_the_database(tmp_path: Path) -> None:
    file = str(tmp_path / "t.duckdb")
    with duckdb.connect(file) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS s")
    with duckdb.connect(file, read_only=True) as con:
        ldiv_db.register(con)
        ldiv_db.register(con)
        assert one(con, "ldiv_check('t', ['a'], NULL, 'k', 1)")["holds"] is True
    with duckdb.connect(file) as con, pytest.raises(duckdb.Error, match="ldiv_check"):
        con.execute("FROM ldiv_check('t', ['a'], NULL, 'k', 1)")
