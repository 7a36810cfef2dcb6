"""Every requirement against the definitions in plain Python, on thousands of random classes, one statement each.

A class is a table of its own here: what the templates return for it does not depend on the others, except for
t-closeness, which compares with the whole and is judged table by table.
"""

from __future__ import annotations

import functools
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import oracle
import pytest
from strategies import search, seeded, seeds, some

from ldiv_db.requirements import Attribute, Classes, RequirementSpec, judge, make_categories
from ldiv_db.taxonomies.readers import read_taxonomy

COLUMNS = {"class_no": "BIGINT", "value": "VARCHAR", "rows": "BIGINT", "class_rows": "BIGINT"}
#: Categories of the random values, and one that never occurs.
GROUPS = [["a", "b"], ["c"], ["d", "e", "f"], ["g", "h", "never"]]
WEIGHINGS = {
    "explicit": ([0, 0.2, "0.25", 1], [Fraction(0), Fraction(1, 5), Fraction(1, 4), Fraction(1)]),
    "sensitivity": ({"sensitivity": 2}, oracle.weights([Fraction(1, i * i) for i in (1, 2, 3)])),
    "uniform": ("uniform", oracle.weights([Fraction(1)] * 3)),
}
ARGUMENTS: dict[str, list[Any]] = {
    "k": [1, 2, 5, 9],
    "risk": [1, 0.5, "1/5", "0.199999999", "0.11", 0.09],
    "distinct": [1, 2, 3, 5],
    "unique_distinct": [1, 2, 3],
    "entropy": [1, 2, 3, 4, 1.5, "2.75"],
    "recursive": [{"c": c, "l": n} for c in (1, 2, "0.5", 3.25) for n in (1, 2, 3, 4)],
    "frequency": [1, 1.5, 2, 3, "2.000000001"],
    "threshold": [0.5, 0.25, {"default": 0.6, "a": 0.25}, {"b": 0.3, "c": "0.333333333"}],
    "alpha_k": [{"alpha": a, "k": k} for a in (0.5, "0.333333333", 0.75, 1) for k in (1, 3, 6)],
    "p_sensitive": [{"p": p, "k": k} for p in (1, 2, 4) for k in (1, 4, 8)],
}
ALPHA_ARGUMENTS: dict[str, list[Any]] = {
    "distinct_alpha": [{"l": n, "alpha": a} for n in (1, 2, 3) for a in (0, 0.2, 1, "1.4", 2)],
    "entropy_alpha": [{"l": n, "alpha": a} for n in (1, 2, 1.5, 3) for a in (0, 1, "0.45")],
    "recursive_alpha": [{"c": c, "l": n, "alpha": a} for c in (1, 2, 0.5) for n in (1, 2, 3) for a in (0, 1, 2)],
}


def random_values(draw: random.Random) -> list[Any]:
    """A class: single rows, ties, NULLs, skew, or many values."""
    kind = draw.choice(["single", "few", "ties", "skewed", "many", "null"])
    if kind == "single":
        return [draw.choice([*"abcdefgh", None])]
    if kind == "ties":
        return [v for v in draw.sample([*"abcdefgh", None], draw.randint(1, 6)) for _ in range(draw.randint(1, 3))][:12]
    if kind == "null":
        return [None] * draw.randint(1, 4) + [draw.choice("ab") for _ in range(draw.randint(0, 3))]
    if kind == "skewed":
        return ["a"] * draw.randint(3, 9) + [draw.choice("bcd") for _ in range(draw.randint(0, 5))]
    values = "abcdefgh" if kind == "many" else "abc"
    return [draw.choice(values) for _ in range(draw.randint(1, 12))]


def tables_of(seed: int) -> list[list[Any]]:
    """Classes of all values alike, and random ones."""
    draw = random.Random(seed)
    equal = [[value for value in "abcdefgh"[:count] for _ in range(n)] for count in range(1, 9) for n in (1, 2, 7, 60)]
    return equal + [random_values(draw) for _ in range(180)]


def load(engine: Any, classes: list[list[Any]], value_type: str = "VARCHAR") -> Classes:
    rows = [(i, v, n, len(values)) for i, values in enumerate(classes) for v, n in Counter(values).items()]
    return Classes(engine, engine.load("histogram", COLUMNS | {"value": value_type}, rows))


def measured(engine: Any, con: Any, requirement: Any, classes: Classes) -> dict[int, tuple[int, Any, bool]]:
    """(rows, reached, whether it holds) of every class."""
    relation = requirement.measure(engine, classes)
    rows = con.execute(f"SELECT class_no, rows, reached, margin < 0 FROM {relation.sql()}").fetchall()
    engine.drop(relation)
    assert all(violates is not None for *_, violates in rows)
    return {class_no: (rows_, reached, not violates) for class_no, rows_, reached, violates in rows}


def compare(engine: Any, con: Any, requirement: Any, classes: Classes, tables: Any, good: Any) -> tuple[int, int]:
    """How many classes are good and how many are not, both by the template and by the oracle."""
    found = measured(engine, con, requirement, classes)
    assert len(found) == len(tables)
    for i, values in enumerate(tables):
        assert found[i][0] == len(values)
        assert found[i][2] == good(values), (str(requirement), values, found[i])
    holds = sum(found[i][2] for i in found)
    return holds, len(tables) - holds


@pytest.mark.parametrize("name", ARGUMENTS)
@search(1, seed=seeds)
def test_counts_agree_with_the_oracle(engine: Any, con: Any, name: str, seed: int) -> None:
    tables = tables_of(seed)
    classes = load(engine, tables)
    seen = [0, 0]
    for argument in ARGUMENTS[name]:
        requirement = RequirementSpec(name, argument).resolve(None)
        good = functools.partial(oracle.class_is_good, name=name, argument=argument)
        found = compare(engine, con, requirement, classes, tables, good)
        seen = [a + b for a, b in zip(seen, found, strict=True)]
    assert min(seen) > 20, "random classes of both kinds"


@search(2, draw=seeded)
def test_a_mean_risk_is_that_of_the_table(engine: Any, con: Any, draw: random.Random) -> None:
    """Judged as a whole it is the mean itself; algorithms, which see classes alone, keep every class below it."""
    tables = [random_values(draw) for _ in range(draw.randint(1, 6))]
    mean, classes = oracle.mean_risk(tables), load(engine, tables)
    for bound in (mean, mean * Fraction(999, 1000), Fraction(draw.randint(1, 9), 9)):
        requirement = RequirementSpec("risk", {"average": f"{bound.numerator}/{bound.denominator}"}).resolve(None)
        verdict = judge(engine, requirement, classes)
        assert verdict.worst == pytest.approx(float(mean)) and verdict.holds == (mean <= bound)
        aimed = measured(engine, con, requirement, classes)
        assert all(aimed[i][2] == (Fraction(1, len(values)) <= bound) for i, values in enumerate(tables))
        assert verdict.holds or not all(good for _, _, good in aimed.values())


@pytest.mark.parametrize("scheme", some(WEIGHINGS))
@pytest.mark.parametrize("name", ALPHA_ARGUMENTS)
@search(1, seed=seeds)
def test_weights_agree_with_the_oracle(engine: Any, con: Any, name: str, scheme: str, seed: int) -> None:
    tables, (written, weights) = tables_of(seed)[::2], WEIGHINGS[scheme]
    attribute = Attribute("s", make_categories(GROUPS, written))
    weighing = oracle.Weighing(GROUPS, weights)
    classes = load(engine, tables)
    seen = [0, 0]
    for argument in ALPHA_ARGUMENTS[name]:
        requirement = RequirementSpec(name, argument).resolve(None, attribute)
        good = functools.partial(weighing.is_good, name=name, argument=argument)
        found = compare(engine, con, requirement, classes, tables, good)
        seen = [a + b for a, b in zip(seen, found, strict=True)]
    assert min(seen) > 20


def test_a_listed_null_is_of_its_category(engine: Any, con: Any) -> None:
    attribute = Attribute("s", make_categories([["a"], [None, "b"]]))
    requirement = RequirementSpec("distinct_alpha", {"l": 1, "alpha": 2}).resolve(None, attribute)
    classes = load(engine, [[None, None], ["a", None], ["b", None, "a"]])
    assert [measured(engine, con, requirement, classes)[i][1:] for i in range(3)] == [(2, True), (1, False), (2, True)]


TREE = {"Any": {"x": {"a": {}, "b": {}}, "y": {"z": {"c": {}, "d": {}}, "e": {}}, "f": {}, "g": {"h": {}}}}
GROUNDS = {
    # distance, type, values, whether they are numbers
    "equal": ("equal", "VARCHAR", [*"abcdefh", None]),
    "hierarchical": ("hierarchical", "VARCHAR", [*"abcdefh", None]),
    "ordered numbers": ("ordered", "INTEGER", [-5, 0, 2, 3, 10, 11, 200, None]),
    "ordered": ("ordered", "VARCHAR", [*"abcdefh", None]),
    "ordered numbers in text": ("ordered", "VARCHAR", ["-5", "0", "2", "10", "9", "200", None]),
}


@pytest.mark.parametrize("case", some(GROUNDS, 3))
@search(1, seed=seeds)
def test_closeness_agrees_with_the_oracle(engine: Any, con: Any, tmp_path: Any, case: str, seed: int) -> None:
    """Distances by transport, on many random tables of many classes."""
    kind, value_type, pool = GROUNDS[case]
    (tmp_path / "tree.yml").write_text(repr(TREE))
    attribute = Attribute("s", None, read_taxonomy(tmp_path / "tree.yml"), "numbers" in case)
    key = (lambda v: None if v is None else int(v)) if "numbers" in case else (lambda v: v)
    draw = random.Random(seed)
    values = draw.sample(pool, draw.randint(2, len(pool)))
    sizes = [draw.choice([1, 2, 3, 4, 6]) for _ in range(draw.randint(4, 6))]
    table = [[draw.choice(values) for _ in range(size)] for size in sizes]
    column = [key(v) for members in table for v in members]
    distance = oracle.ground(kind, column, TREE if kind == "hierarchical" else None)
    whole = oracle.shares(column)
    expected = [oracle.transport(oracle.shares([key(v) for v in members]), whole, distance) for members in table]
    classes = load(engine, table, value_type)
    for limit in {round(float(draw.choice(expected)), 9), 0.3, draw.choice([0, 0.05, 0.5, 1])}:
        argument = {"t": f"{limit:.9f}", "distance": kind}
        requirement = RequirementSpec("t_closeness", argument).resolve(None, attribute)
        found = measured(engine, con, requirement, classes)
        for i, moved in enumerate(expected):
            assert found[i][1] == pytest.approx(float(moved), abs=1e-12), (table[i], column)
            assert found[i][2] == (moved <= Fraction(argument["t"]))
    classes.drop()


def test_the_distance_follows_from_the_attribute(tmp_path: Any) -> None:
    (tmp_path / "tree.yml").write_text(repr(TREE))
    tree = read_taxonomy(tmp_path / "tree.yml")
    spec = RequirementSpec("t_closeness", 0.2)
    assert spec.resolve(None, Attribute("s")).distance == "equal"
    assert spec.resolve(None, Attribute("s", is_number=True)).distance == "ordered"
    assert spec.resolve(None, Attribute("s", is_time=True)).distance == "ordered"
    assert spec.resolve(None, Attribute("s", taxonomy=tree, is_number=True)).distance == "hierarchical"
    (problem,) = RequirementSpec("t_closeness", {"t": 0.2, "distance": "hierarchical"}).problems("r", Attribute("s"))
    assert "needs a taxonomy" in str(problem)


# -- what mends a class -------------------------------------------------------------------------------

MENDED: dict[str, list[Any]] = {
    "k": [3, 5],
    "risk": [0.3, "1/3"],
    "distinct": [2, 3],
    "unique_distinct": [2, 3],
    "frequency": [2, 3, 1.5],
    "threshold": [0.5, 0.34, {"default": 0.6, "a": 0.25}, {"default": "0.9", "a": "0.7"}],
    "alpha_k": [{"alpha": 0.5, "k": 4}, {"alpha": 0.4, "k": 2}],
    "p_sensitive": [{"p": 2, "k": 4}],
    "entropy": [2, 2.5, 1.2],
    "recursive": [{"c": 2, "l": 2}, {"c": 1, "l": 3}, {"c": "0.4", "l": 1}, {"c": "0.5", "l": 2}],
}
PARTLY: dict[str, list[Any]] = {
    "distinct_alpha": [{"l": 2, "alpha": 1}],
    "entropy_alpha": [{"l": 2, "alpha": 1}],
    "recursive_alpha": [{"c": 1, "l": 2, "alpha": 1}],
    "t_closeness": [0.2],
    "beta_likeness": [1, {"beta": 1, "kind": "basic"}],
    "delta_disclosure": [1],
}
#: Requirements that compare a class with the table: no rule says which rows mend one.
OF_WHOLE = ("t_closeness", "beta_likeness", "delta_disclosure")


@pytest.mark.parametrize("name", [*MENDED, *PARTLY])
@search(1, seed=seeds)
def test_the_smallest_suppression_is_that_of_brute_force(engine: Any, con: Any, name: str, seed: int) -> None:
    attribute = Attribute("s", make_categories(GROUPS))
    weighing = oracle.Weighing(GROUPS, WEIGHINGS["uniform"][1])
    chosen = [values for values in tables_of(seed) if len(values) <= 9][:60]
    classes = load(engine, chosen)
    known = 0
    for argument in (MENDED | PARTLY)[name]:
        requirement = RequirementSpec(name, argument).resolve(None, attribute)
        measures = requirement.measure(engine, classes)
        mended = requirement.rows_to_suppress(engine, classes, measures)
        found = dict(con.execute(f"SELECT class_no, suppress FROM {mended.sql()}").fetchall())
        bad = con.execute(f"SELECT class_no FROM {measures.sql()} WHERE margin < 0").fetchall()
        assert set(found) == {class_no for (class_no,) in bad}
        engine.drop(measures, mended)
        if name in OF_WHOLE:
            assert set(found.values()) == {None}
            continue
        good = oracle.class_is_good if name in MENDED or "alpha" not in name else weighing.is_good
        for class_no, suppress in found.items():
            if suppress is None:
                assert name in PARTLY
                continue
            known += 1
            is_good = functools.partial(good, name=name, argument=argument)
            assert suppress == oracle.least_suppression(chosen[class_no], is_good)
        assert name in PARTLY or None not in found.values()
    assert known > 5 or name in OF_WHOLE


def test_the_core_of_large_classes_is_the_fixpoint(engine: Any, con: Any) -> None:
    """Thresholds near one, for which plain iteration takes thousands of steps."""
    tables = [[(10**6, "a"), (1, "b")], [(10**6, "a"), (999, "b"), (7, "c")], [(5, "a")], [(10**9, "a"), (3, "b")]]
    rows = [(i, v, n, sum(m for m, _ in t)) for i, t in enumerate(tables) for n, v in t]
    classes = Classes(engine, engine.load("histogram", COLUMNS, rows))
    requirement = RequirementSpec("threshold", "0.999").resolve(None)
    measures = requirement.measure(engine, classes)
    mended = requirement.rows_to_suppress(engine, classes, measures)
    found = dict(con.execute(f"SELECT class_no, suppress FROM {mended.sql()}").fetchall())
    for i, table in enumerate(tables):
        n = whole = sum(count for count, _ in table)
        while (less := sum(min(count, n * 999 // 1000) for count, _ in table)) < n:
            n = less
        assert found.get(i, 0) == whole - n


# -- mutations: what a requirement forbids makes the check fail ------------------------------------------

GOOD_CLASS = ["a", "c", "d", "g"] * 2
MUTATIONS: dict[str, tuple[Any, list[list[Any]]]] = {
    # requirement: its argument, and classes each broken in one way
    "k": (8, [GOOD_CLASS[:7]]),
    "risk": (0.125, [GOOD_CLASS[:7]]),
    "distinct": (4, [["a", "c", "d"] * 4]),
    "unique_distinct": (4, [["a", "c", "d", "g", "g"], ["a", "c", "d"]]),
    "entropy": (4, [[*GOOD_CLASS, "a"], ["a", "c", "d"] * 3]),
    "recursive": ({"c": 1, "l": 3}, [["a"] * 4 + ["c", "c", "d", "d", "g", "g"], ["a", "c"]]),
    "frequency": (4, [[*GOOD_CLASS, "a"]]),
    "threshold": ({"default": 0.25, "a": 0.3}, [[*GOOD_CLASS, "c"], ["a", "a", "a", "a", *"cdgcdgb"]]),
    "alpha_k": ({"alpha": 0.25, "k": 8}, [["a", "c", "d", "g"], [*GOOD_CLASS, "a"]]),
    "p_sensitive": ({"p": 4, "k": 8}, [["a", "c", "d", "g"], ["a", "c", "d"] * 4]),
    "distinct_alpha": ({"l": 4, "alpha": 4}, [["a", "b", "c", "d"], ["d", "e", "f"] * 3]),
    "entropy_alpha": ({"l": 4, "alpha": 4}, [["a", "c", "d", "g"], [*GOOD_CLASS, "h"], ["d", "g", "h", "e"] * 2]),
    "recursive_alpha": (
        {"c": 1, "l": 3, "alpha": 4},
        [["a", "c", "d", "g"], [*GOOD_CLASS, "g", "h", "g"], ["d", "g", "h", "e"] * 2],
    ),
    "t_closeness": (0.5, [["a"], ["g", "g", "g", "g"]]),
    "beta_likeness": (1, [["a"], ["g", "g", "g", "a", "c"]]),
    "delta_disclosure": (1.1, [["a", "c", "d"], [*GOOD_CLASS, *"aaaaaaaaaa"]]),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_one_broken_class_among_good_ones_is_found(engine: Any, name: str) -> None:
    argument, broken = MUTATIONS[name]
    good = [["a", "c", "d", "g"]] * 30 if name == "unique_distinct" else [GOOD_CLASS] * 30
    requirement = RequirementSpec(name, argument).resolve(None, Attribute("s", make_categories(GROUPS)))
    assert judge(engine, requirement, load(engine, good)).holds
    for mutant in broken:
        verdict = judge(engine, requirement, load(engine, [*good, mutant]))
        assert (verdict.holds, verdict.violating_classes, verdict.violating_rows) == (False, 1, len(mutant)), mutant
