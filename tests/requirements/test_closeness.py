"""beta-likeness and delta-disclosure privacy: against the definitions, unions of classes, pyCANON."""

from __future__ import annotations

import importlib.util
import math
import random
from typing import Any

import oracle
import pytest
from strategies import draws, search, seeded, some
from test_requirement_oracle import load, measured

import ldiv_db
from ldiv_db.requirements import REQUIREMENTS, RequirementSpec

REQUIRED: list[tuple[str, dict[str, Any]]] = [
    ("beta_likeness", {"beta": beta, "kind": kind}) for beta in ("0.25", 1, 2, 4) for kind in ("basic", "enhanced")
]
REQUIRED += [("delta_disclosure", {"delta": delta, "log": log}) for delta in ("0.5", 1, 2) for log in (2, "e")]


def drawn_table(draw: random.Random, classes: int) -> list[list[Any]]:
    """Classes of a table of few values, some of them rare: some classes have all, as often as the table, nearly."""
    values = draw.sample(["a", "b", "c", None], draw.randint(1, 3))
    even = [value for value, times in zip(values, (7, 3, 1), strict=False) for _ in range(times)]
    return [
        draw.choice([even * draw.choice([1, 20]), []]) + draw.choices(values, k=draw.randint(1, 4))
        for _ in range(classes)
    ]


@search(2, draw=seeded)
def test_verdicts_are_those_of_the_definition(engine: Any, con: Any, draw: random.Random) -> None:
    tables = drawn_table(draw, draw.randint(1, 12))
    whole, classes = [value for values in tables for value in values], load(engine, tables)
    for name, argument in REQUIRED:
        found = measured(engine, con, RequirementSpec(name, argument).resolve(None), classes)
        for number, values in enumerate(tables):
            good = oracle.gain_is_allowed(values, whole, name, argument)
            assert found[number][::2] == (len(values), good), (name, argument, values)


@pytest.mark.parametrize(
    ("name", "argument", "classes", "reached", "holds"),
    [
        ("beta_likeness", {"beta": 1, "kind": "basic"}, ["aabb", "aaaa", "aaaa"], 2, False),
        ("beta_likeness", {"beta": 2, "kind": "basic"}, ["aabb", "aaaa", "aaaa"], 2, True),
        ("beta_likeness", {"beta": "1.999999999", "kind": "basic"}, ["aabb", "aaaa", "aaaa"], 2, False),
        ("beta_likeness", {"beta": 2}, ["aabb", "aaaa", "aaaa"], 2, False),  # -ln(1/6) is 1.79
        ("beta_likeness", {"beta": 9}, ["aaa", "aa"], 0, True),  # one value has gained nothing, and ln 1 is 0
        ("beta_likeness", {"beta": 9}, ["a", "b"], 1, False),  # ln 2 is 0.69: no share comes to 1
        ("delta_disclosure", 1, ["aabb", "aabb", "ab"], 0, True),
        ("delta_disclosure", 1, ["aabbb", "abbbb"], math.log2(1.5), True),
        ("delta_disclosure", 1, ["aab", "abbbbbbbb"], math.log2(8 / 3), False),
        ("delta_disclosure", 1, ["ab", "abbbbb"], 1, False),  # log 2 is not below 1, whatever doubles make of it
        ("delta_disclosure", {"delta": 1, "log": "e"}, ["ab", "abbbbb"], math.log(2), True),
        ("delta_disclosure", 9, ["ab", "a"], math.log2(1.5), False),  # a class lacks a value
    ],
)
def test_known_classes(
    engine: Any, con: Any, name: str, argument: Any, classes: Any, reached: float, holds: bool
) -> None:
    requirement = RequirementSpec(name, argument).resolve(None)
    found = measured(engine, con, requirement, load(engine, [list(values) for values in classes]))
    assert all(good for *_, good in found.values()) == holds
    worst = max(figure for _, figure, _ in found.values())
    assert worst == pytest.approx(reached)


@search(60, draw=draws)
def test_the_union_of_good_classes_is_good(draw: random.Random) -> None:
    """As `monotone` says: no counterexample among random tables of a union and other rows."""
    one, two, *rest = drawn_table(draw, draw.randint(2, 4))
    table = [*one, *two, *(value for values in rest for value in values)]
    for name, argument in REQUIRED:
        assert REQUIREMENTS[name].monotone
        if all(oracle.gain_is_allowed(values, table, name, argument) for values in (one, two)):
            assert oracle.gain_is_allowed(one + two, table, name, argument), (name, argument)


@pytest.mark.skipif(importlib.util.find_spec("pycanon") is None, reason="pyCANON is not installed: the extra `peers`")
def test_pycanon_agrees_on_tables_without_nulls(con: Any) -> None:
    """Of delta-disclosure where every class has every value: pyCANON does not look at those that a class lacks."""
    import pandas  # noqa: PLC0415
    from pycanon import anonymity  # noqa: PLC0415

    draw = random.Random(8)
    for number in range(12):
        rows = [(q, v) for q in "xyz" for v in [*"abcd", *draw.choices("aabcd", k=draw.randint(0, 9))]]
        data = pandas.DataFrame(rows, columns=["q", "s"])
        con.execute(f"CREATE TABLE t{number} AS SELECT * FROM data")
        beta = anonymity.basic_beta_likeness(data, ["q"], ["s"])
        delta = anonymity.delta_disclosure(data, ["q"], ["s"])
        asked = ["beta_likeness:beta=0.000001,kind=basic", "delta_disclosure:delta=0.000001,log=e"]
        (audit,) = ldiv_db.check(con, f"t{number}", ["q"], "s", asked)
        assert [verdict.worst for verdict in audit.verdicts] == pytest.approx([beta, delta])


@pytest.mark.parametrize("algorithm", some(["topdown", "incognito", "mondrian", "peel", "auto"]))
@pytest.mark.parametrize("name", some(["delta_disclosure", "beta_likeness"]))
def test_releases_keep_to_it(con: Any, algorithm: str, name: str) -> None:
    draw, argument = random.Random(3), 2
    con.execute("CREATE TABLE people (age INTEGER, town VARCHAR, s VARCHAR)")
    rows = [(draw.randint(20, 60), draw.choice("xyz"), draw.choice("aaaabbbccd")) for _ in range(40)]
    con.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    tree = {"taxonomy": {"ranges": [5, 20]}}
    policy = {
        "source": "people", "target": "released",
        "quasi_identifiers": {"age": tree, "town": {"taxonomy": {"flat": True}}}, "sensitive": ["s"],
        "require": [{name: argument}], "algorithm": algorithm, "seed": 1,
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    released = con.execute("SELECT age, town, s FROM released").fetchall()
    table, classes = [s for *_, s in released], oracle.group(((age, town), s) for age, town, s in released)
    assert result.loss.classes > 1
    wanted = {"beta": argument, "delta": argument}
    assert all(oracle.gain_is_allowed(values, table, name, wanted) for values in classes.values())
