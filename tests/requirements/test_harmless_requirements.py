"""Requirements beside harmless values: their templates against the definitions, and what follows from these."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import oracle
import pytest
from strategies import draws, search, seeds
from test_requirement_oracle import ARGUMENTS, load, measured, random_values

from ldiv_db.requirements import REQUIREMENTS, Attribute, RequirementSpec
from ldiv_db.requirements.values import make_categories

#: About rows alone, whatever their values are.
OF_ROWS = ("k", "risk", "k_map", "delta_presence")
SPARED = ("distinct", "frequency", "threshold", "alpha_k", "p_sensitive", "recursive")
HARMLESS: tuple[tuple[Any, ...], ...] = (("a",), ("h",), (None,), ("a", "b"), (None, "a", "c"), tuple("abcdefgh"))


def required(name: str, argument: Any, harmless: tuple[Any, ...]) -> Any:
    return RequirementSpec(name, argument).resolve(None, Attribute("s", harmless=harmless))


def cases(name: str) -> list[tuple[Any, tuple[Any, ...]]]:
    """Arguments with harmless values; those with a threshold of their own are not among these."""
    return [
        (argument, harmless)
        for argument in ARGUMENTS[name]
        for harmless in HARMLESS
        if not (isinstance(argument, dict) and set(argument) & set(harmless))
    ]


@pytest.mark.parametrize("name", SPARED)
@search(1, seed=seeds)
def test_every_class_is_judged_as_defined(engine: Any, con: Any, name: str, seed: int) -> None:
    draw, seen = random.Random(seed), Counter[bool]()
    tables = [random_values(draw) for _ in range(100)]
    classes = load(engine, tables)
    for argument, harmless in draw.sample(cases(name), 8):
        requirement = required(name, argument, harmless)
        found = measured(engine, con, requirement, classes)
        assert len(found) == len(tables), "a class of harmless values alone is one too"
        for number, values in enumerate(tables):
            rows, reached, holds = found[number]
            good = oracle.spared_class_is_good(values, name, argument, harmless)
            assert (rows, holds) == (len(values), good), (str(requirement), values)
            assert reached is None or (reached == reached and abs(reached) != float("inf"))
            seen[good] += 1
    assert min(seen[True], seen[False]) > 20, "classes of both kinds"


@search(10, draw=draws)
def test_the_union_of_good_classes_is_good(draw: random.Random) -> None:
    """All that spare are monotone: recursive diversity too, with what is left of rows when values are ruled out."""
    one, other = random_values(draw), random_values(draw)
    for name in SPARED:
        assert REQUIREMENTS[name].monotone
        for argument, harmless in cases(name):
            if all(oracle.spared_class_is_good(values, name, argument, harmless) for values in (one, other)):
                assert oracle.spared_class_is_good(one + other, name, argument, harmless), (name, argument, harmless)


@search(10, draw=draws)
def test_good_classes_keep_what_is_promised(draw: random.Random) -> None:
    values = random_values(draw)
    for name in SPARED:
        for argument, harmless in cases(name):
            if not oracle.spared_class_is_good(values, name, argument, harmless):
                continue
            promise = required(name, argument, harmless).promise()
            assert len(values) >= promise.size and len(set(values)) >= promise.values
            assert (promise.excluded, promise.mixed, promise.categories) == ((), frozenset(), 1)
            for value, count in Counter(values).items():
                assert Fraction(count, len(values)) <= promise.share_of(value)
            assert len(values) >= required(name, argument, harmless).least_rows


@pytest.mark.parametrize("name", SPARED)
def test_classes_of_different_values_are_good_from_their_size_on(name: str) -> None:
    for argument, harmless in cases(name):
        size = required(name, argument, harmless).unique_class_size()
        rest = [value for value in "abcdefghijklmnopqrst" if value not in harmless]
        for worst in ([*harmless, *rest], rest):
            values = worst[:size]
            assert len(values) < size or oracle.spared_class_is_good(values, name, argument, harmless), argument


@pytest.mark.parametrize("name", [name for name in SPARED if name != "recursive"])
@search(1, seed=seeds)
def test_the_fewest_rows_mend_a_class(engine: Any, con: Any, name: str, seed: int) -> None:
    draw = random.Random(seed)
    tables = [random_values(draw) for _ in range(24)]
    classes = load(engine, tables)
    for argument, harmless in draw.sample(cases(name), 4):
        requirement = required(name, argument, harmless)
        measures = requirement.measure(engine, classes)
        mended = requirement.rows_to_suppress(engine, classes, measures)
        for number, suppress in con.execute(f"SELECT class_no, suppress FROM {mended.sql()}").fetchall():

            def is_good(values: Any) -> bool:
                return oracle.spared_class_is_good(values, name, argument, harmless)  # noqa: B023

            assert suppress == oracle.least_suppression(tables[number], is_good), (tables[number], argument, harmless)
        engine.drop(measures, mended)


def test_the_nearest_that_a_table_meets_is_of_the_other_values(engine: Any) -> None:
    values = [None] * 6 + ["a", "a", "b"]
    classes = load(engine, [values])
    for name, argument, nearest in [("frequency", 5, "l: 4.5"), ("distinct", 3, "l: 2")]:
        requirement = required(name, argument, (None,))
        measures = requirement.measure(engine, classes)
        ((reached,),) = engine.connection.execute(f"SELECT reached FROM {measures.sql()}").fetchall()
        assert requirement.nearest_in(engine, classes, reached, classes.distribution(engine, ())) == nearest
    ceiling = required("frequency", 5, (None,)).ceiling(classes.distribution(engine, ()))
    assert (ceiling.rows, dict(ceiling.own)) == (1, {None: 9})


@pytest.mark.parametrize("name", sorted(set(REQUIREMENTS) - {*SPARED, *OF_ROWS}))
def test_what_is_about_all_values_is_refused(name: str) -> None:
    arguments: dict[str, Any] = {"recursive_alpha": {"c": 1, "l": 2, "alpha": 1}}
    argument = arguments.get(name, {"l": 2, "alpha": 1} if name.endswith("_alpha") else 0.5)
    argument = 2 if name in ("unique_distinct", "entropy") else argument
    distances = {"range": {"k": 2, "e": 1}, "proximity": {"epsilon": 1, "m": 2}}
    argument = distances.get(name, argument)
    attribute = Attribute("s", make_categories([["a"], ["b"]]), is_number=name in distances, harmless=("a",))
    (problem,) = RequirementSpec(name, argument).problems("require", attribute)
    assert "is about all values of a class, the harmless ones too; beside these take k, distinct" in problem.what


def test_k_is_about_rows_alone() -> None:
    assert required("k", 3, ("a",)) == required("k", 3, ())


def test_a_report_counts_harmless_values() -> None:
    requirement = required("threshold", {"default": 0.5, "b": 0.2}, (None, "a"))
    assert requirement.parameters["harmless"] == ["null", "a"] and requirement.shown["harmless"] == 2
    assert requirement.label == "threshold default=0.5, own_thresholds=1, harmless=2"
