"""The worst class: of the classes that violate, or of all if none does, the one of the worst figure, which is shown."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

from strategies import search, seeded

import ldiv_db
from ldiv_db.requirements import REQUIREMENTS, Attribute, Classes, RequirementSpec, judge, make_categories

COLUMNS = {"class_no": "BIGINT", "rows": "BIGINT", "class_rows": "BIGINT"}
TEXTS = Attribute("s", make_categories([["1", "2"], ["3"], ["9"]], "uniform"))
NUMBERS = Attribute("s", is_number=True, type="INTEGER")
#: Of every requirement arguments that some classes meet and others violate, by one condition or another.
ARGUMENTS: dict[str, list[Any]] = {
    "k": [3, 6],
    "risk": [0.25, {"average": 0.3}],
    "distinct": [2, 3],
    "unique_distinct": [1, 2],
    "entropy": [1.5, 2],
    "recursive": [{"c": 1, "l": 2}, {"c": 2, "l": 3}],
    "frequency": [1, 1.5, 2],
    "threshold": [0.5, {"default": 0.6, "1": 0.3}],
    "alpha_k": [{"alpha": 1, "k": 1}, {"alpha": 0.5, "k": 4}, {"alpha": 0.9, "k": 6}],
    "p_sensitive": [{"p": 1, "k": 1}, {"p": 2, "k": 4}, {"p": 1, "k": 6}],
    "distinct_alpha": [{"l": 2, "alpha": 1}, {"l": 1, "alpha": 2}],
    "entropy_alpha": [{"l": 1.5, "alpha": 1}],
    "recursive_alpha": [{"c": 2, "l": 2, "alpha": 1}],
    "beta_likeness": [0.5, {"beta": 1, "kind": "basic"}],
    "delta_disclosure": [1],
    "t_closeness": [{"t": 0.3, "distance": "equal"}],
    "range": [{"k": 2, "e": 3}],
    "proximity": [{"epsilon": 2, "m": 2}],
    "k_map": [{"k": 3, "population": "people"}],
    "delta_presence": [{"max": 0.5, "population": "people"}, {"max": 1, "min": 0.2, "population": "people"}],
}


def worst_of(measures: dict[int, tuple[Any, ...]], most_is_worst: bool) -> list[int]:
    """The numbers of the classes that may be shown as the worst: of those that violate, or of all if none does."""
    looked_at = [no for no, (*_, margin) in measures.items() if margin < 0] or list(measures)

    def badness(no: int) -> tuple[float, float]:
        _, reached, margin = measures[no]
        figure = math.inf if reached is None else reached
        return (-figure if most_is_worst else figure, margin)

    return [no for no in looked_at if badness(no) == min(map(badness, looked_at))]


@search(1, draw=seeded)
def test_the_class_that_is_shown_reaches_the_figure_that_is_shown(engine: Any, con: Any, draw: random.Random) -> None:
    of_numbers = ("range", "proximity")
    for kind, attribute, names in (("INTEGER", NUMBERS, of_numbers), ("VARCHAR", TEXTS, ARGUMENTS.keys() - of_numbers)):
        classes = drawn_classes(engine, draw, kind)
        for name in sorted(names):
            for argument in ARGUMENTS[name]:
                requirement = RequirementSpec(name, argument).resolve(None, attribute)
                relation = requirement.measure_table(engine, classes)
                found = con.execute(f"SELECT class_no, rows, reached, margin FROM {relation.sql()}").fetchall()
                measures = {no: tuple(rest) for no, *rest in found}
                verdict = judge(engine, requirement, classes)
                assert verdict.worst_class in worst_of(measures, requirement.most_is_worst), (argument, measures)
                assert (verdict.worst_rows, verdict.worst, verdict.margin) == measures[verdict.worst_class]
                assert (verdict.margin < 0) is not verdict.holds


def drawn_classes(engine: Any, draw: random.Random, kind: str) -> Classes:
    tables = [
        draw.choices("1239", [draw.random() for _ in range(4)], k=draw.randint(1, 12))
        for _ in range(draw.randint(2, 4))
    ]
    rows = [(no, n, len(values), v) for no, values in enumerate(tables) for v, n in Counter(values).items()]
    classes = Classes(engine, engine.load("histogram", COLUMNS | {"value": kind}, rows))
    covered = [(no, len(values) + draw.randint(0, 9)) for no, values in enumerate(tables)]
    people = engine.load("people", {"class_no": "BIGINT", "rows": "BIGINT"}, covered)
    classes.place_people({"people": people})
    return classes


def test_every_requirement_is_tried() -> None:
    assert ARGUMENTS.keys() == REQUIREMENTS.keys()


def test_figures_are_one_class_s_wherever_they_are_shown(con: Any) -> None:
    """A large class is nearer to its bound by its share, a small one by rows that it could lose."""
    values = "CASE WHEN i < 15 THEN 'a' WHEN i < 27 THEN 'b' ELSE 'c' END"
    con.execute(f"CREATE TABLE t AS SELECT 'large' AS q, {values} AS s FROM range(30) r(i)")
    con.execute("INSERT INTO t SELECT 'small', ['a', 'a', 'b', 'b', 'c'][i] FROM range(1, 6) r(i)")
    (audit,) = ldiv_db.check(con, "t", "q", "s", ["frequency:2", {"alpha_k": {"alpha": 0.5, "k": 5}}, "k:2"])
    frequency, alpha_k, k = audit.verdicts
    assert (frequency.worst, frequency.worst_class, frequency.worst_rows, frequency.margin) == (2, 1, 30, 0)
    assert (alpha_k.worst, alpha_k.worst_class, alpha_k.worst_rows) == (0.5, 1, 30)
    assert (k.worst, k.worst_class, k.worst_rows, k.margin) == (5, 2, 5, 3)
    assert "no. 1, 30 rows" in str(audit)


def test_the_classes_that_violate_stand_in_the_same_order(bed: Any) -> None:
    bed.sql("CREATE TABLE t AS SELECT 'A' AS q, unnest(['x', 'x', 'y', 'z', 'w']) AS s")
    bed.sql("INSERT INTO t SELECT 'B', unnest(['x', 'x', 'x', 'x', 'x', 'x', 'x', 'y', 'z', 'w'])")
    words = ("--qi", "q", "--sensitive", "s", "--require", "alpha_k:alpha=0.5,k=6", "--violations", "--json")
    called = bed.call("check", bed.database, "t", *words).json
    (found,) = called["audits"][0]["requirements"]
    first = called["violations"][0]
    assert (found["worst"], found["worst_class"], found["worst_class_rows"], found["margin"]) == (0.7, 2, 10, -2)
    assert (first["reached"], first["class_no"], first["rows"], first["missing"]) == (0.7, 2, 10, 2)
