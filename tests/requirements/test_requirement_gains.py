"""beta-likeness and delta-disclosure privacy: against the definitions, unions of classes, pyCANON."""

from __future__ import annotations

import importlib.util
import math
import random
from collections import Counter
from typing import Any

import oracle
import pytest
from test_requirement_oracle import load, measured
from times import TIMES

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


@pytest.mark.slow
@pytest.mark.parametrize(("name", "argument"), REQUIRED)
def test_verdicts_are_those_of_the_definition(engine: Any, con: Any, name: str, argument: dict[str, Any]) -> None:
    draw, seen = random.Random(f"{name} {argument}"), Counter[bool]()
    requirement = RequirementSpec(name, argument).resolve(None)
    for _ in range(12 * TIMES):
        classes = drawn_table(draw, draw.randint(1, 12))
        table = [value for values in classes for value in values]
        found = measured(engine, con, requirement, load(engine, classes))
        for number, values in enumerate(classes):
            good = oracle.gain_is_allowed(values, table, name, argument)
            assert found[number][::2] == (len(values), good), (values, table)
            seen[good] += 1
    assert min(seen[True], seen[False]) > 0


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


@pytest.mark.parametrize(("name", "argument"), REQUIRED)
def test_the_union_of_good_classes_is_good(name: str, argument: dict[str, Any]) -> None:
    """As `monotone` says: no counterexample among random tables of a union and other rows."""
    assert REQUIREMENTS[name].monotone
    draw, tried = random.Random(f"union {name} {argument}"), 0
    while tried < 150 * TIMES:
        one, two, *rest = drawn_table(draw, draw.randint(2, 4))
        table = [*one, *two, *(value for values in rest for value in values)]
        if all(oracle.gain_is_allowed(values, table, name, argument) for values in (one, two)):
            tried += 1
            assert oracle.gain_is_allowed(one + two, table, name, argument), (one, two, rest)


@pytest.mark.skipif(importlib.util.find_spec("pycanon") is None, reason="pyCANON is not installed: the extra `peers`")
def test_pycanon_agrees_on_tables_without_nulls(con: Any) -> None:
    """Of delta-disclosure where every class has every value: pyCANON does not look at those that a class lacks."""
    import pandas  # noqa: PLC0415
    from pycanon import anonymity  # noqa: PLC0415

    draw = random.Random(8)
    for number in range(12 * TIMES):
        rows = [(q, v) for q in "xyz" for v in [*"abcd", *draw.choices("aabcd", k=draw.randint(0, 9))]]
        data = pandas.DataFrame(rows, columns=["q", "s"])
        con.execute(f"CREATE TABLE t{number} AS SELECT * FROM data")
        beta = anonymity.basic_beta_likeness(data, ["q"], ["s"])
        delta = anonymity.delta_disclosure(data, ["q"], ["s"])
        asked = ["beta_likeness:beta=0.000001,kind=basic", "delta_disclosure:delta=0.000001,log=e"]
        (audit,) = ldiv_db.check(con, f"t{number}", ["q"], "s", asked)
        assert [verdict.worst for verdict in audit.verdicts] == pytest.approx([beta, delta])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["topdown", "mondrian", "peel", "auto", "incognito"])
@pytest.mark.parametrize(("name", "argument"), [("beta_likeness", 2), ("delta_disclosure", 2)])
def test_releases_keep_to_it(con: Any, algorithm: str, name: str, argument: Any) -> None:
    draw = random.Random(3)
    con.execute("CREATE TABLE people (age INTEGER, town VARCHAR, s VARCHAR)")
    rows = [(draw.randint(20, 60), draw.choice("xyz"), draw.choice("aaaabbbccd")) for _ in range(400)]
    con.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    tree = {"taxonomy": {"ranges": [5, 20]}}
    policy = {
        "source": "people",
        "target": "released",
        "quasi_identifiers": {"age": tree, "town": {"taxonomy": {"flat": True}}},
        "sensitive": ["s"],
        "require": [{name: argument}],
        "algorithm": algorithm,
        "seed": 1,
    }
    result = ldiv_db.run(con, policy)
    released = con.execute("SELECT age, town, s FROM released").fetchall()
    table, classes = [s for *_, s in released], oracle.group(((age, town), s) for age, town, s in released)
    assert result.loss.classes > 1
    wanted = {"beta": argument, "delta": argument}
    assert all(oracle.gain_is_allowed(values, table, name, wanted) for values in classes.values())
    attacks = ldiv_db.attack(con, "released", policy=policy)
    assert attacks.holds
