"""What classes published as sets cost, in the passes that improve them, against plain Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from strategies import search, seeded, some
from tables import fill

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.neighbours.passes import ClassState, Improving, Pass
from ldiv_db.algorithms.neighbours.regroup import REGROUP
from ldiv_db.algorithms.neighbours.trades import TRADES
from ldiv_db.database.engine import Engine
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import resolve
from ldiv_db.recoding.encode import read_source
from ldiv_db.recoding.set_words import WORD_BITS

KEYS = {"age": {"numeric": True}, "town": {"taxonomy": {"prefix": [3, 1]}}, "job": {"weight": 0.5}}


def task_of(con: Any, draw: random.Random, rows: int, towns: int) -> Task:
    """A task of rows of which some are equal, and some lack a town; its sets may be limited."""
    cells = [
        (draw.randrange(9), draw.choice([None, *range(towns)]), draw.choice("abc"), draw.choice("xy"))
        for _ in range(rows)
    ]
    listed = [(i, town, "a", "x") for i, town in enumerate(range(towns))] + draw.choices(cells, k=rows)
    columns = {"age": "INTEGER", "town": "INTEGER", "job": "VARCHAR", "secret": "VARCHAR"}
    fill(con, "source", columns, listed)
    con.execute("ALTER TABLE source ALTER town TYPE VARCHAR")
    policy = parse_policy({
        "source": "source", "target": "released", "quasi_identifiers": KEYS, "sensitive": ["secret"],
        "recode": draw.choice(["set", {"set": 2}, {"set": 3}]), "require": [{"k": 2}], "seed": 1,
    })  # fmt: skip
    engine = Engine(con)
    encoded = read_source(engine, resolve(engine, policy, Path()).source).encode()
    requirements = [spec.resolve(encoded.sensitive[0].distribution) for spec in policy.require]
    return Task(engine, encoded, requirements, policy.seed, wanted={"secret": requirements})


def coded(con: Any, task: Task) -> dict[int, tuple[int, ...]]:
    names = ", ".join(axis.code.sql() for axis in task.encoded.axes)
    found = con.execute(f"SELECT row_id, {names} FROM {task.encoded.rows.sql()}").fetchall()
    return {row_id: codes for row_id, *codes in found}


def cost(task: Task, rows: Sequence[Sequence[int]]) -> int:
    """Of one row of a class: the share of the range of ages, and of the values or the leaves that are published."""
    found = 0
    for measure, codes in zip(lm_measures(task), zip(*rows, strict=True), strict=True):
        width, axis = max(codes) - min(codes), measure.axis
        if axis.sets:
            assert axis.taxonomy is not None
            holding = [n.high - n.low for n in axis.taxonomy.nodes if n.low <= min(codes) and max(codes) <= n.high]
            width = len(set(codes)) - 1 if len(set(codes)) <= axis.sets else min(holding)
        found += width * measure.full // axis.scale
    return found


def classes_of(con: Any, assigned: Any) -> dict[int, list[int]]:
    classes: dict[int, list[int]] = {}
    for row_id, class_id in sorted(con.execute(f"SELECT row_id, class_id FROM {assigned.sql()}").fetchall()):
        classes.setdefault(class_id, []).append(row_id)
    return classes


def dealt(task: Task, draw: random.Random, rows: Sequence[int]) -> Any:
    """The rows in random classes of two or more."""
    shuffled, number, pairs = draw.sample(list(rows), len(rows)), 0, []
    while shuffled:
        size = len(shuffled) if len(shuffled) < 4 else draw.randint(2, 4)
        number += 1
        pairs += [(row, number) for row in shuffled[:size]]
        del shuffled[:size]
    if number > 1 and sum(of == number for _, of in pairs) < 2:
        pairs = [(row, min(of, number - 1)) for row, of in pairs]
    return task.engine.load("assigned", {"row_id": "BIGINT", "class_id": "BIGINT"}, pairs)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("towns", some([5 * WORD_BITS, 3]))
@search(1, draw=seeded)
def test_a_class_costs_its_values_and_without_a_row_those_of_the_others(con, towns, grouped, draw):
    task = task_of(con, draw, 40, towns)
    rows, assigned = coded(con, task), dealt(task, draw, list(coded(con, task)))
    state = ClassState(task, lm_measures(task), assigned, grouped=grouped)
    measured = dict(con.execute(f"SELECT class_id, cost FROM {state['measured'].sql()}").fetchall())
    classes = classes_of(con, assigned)
    assert measured == {number: cost(task, [rows[row] for row in members]) for number, members in classes.items()}
    state.rests()
    for number, row_id, rest in con.execute(
        f"SELECT class_id, row_id, rest_cost FROM {state['rests'].sql()}"
    ).fetchall():
        assert rest == cost(task, [rows[row] for row in classes[number] if row != row_id])


@pytest.mark.parametrize("towns", some([2 * WORD_BITS, 5]))
@pytest.mark.parametrize("step", [TRADES, REGROUP], ids=lambda step: step.name)
@search(1, draw=seeded)
def test_a_round_saves_what_it_says(con, towns, step: Pass, draw):
    task = task_of(con, draw, 40, towns)
    rows, assigned = coded(con, task), dealt(task, draw, list(coded(con, task)))

    def total(assigned: Any) -> int:
        return sum(len(own) * cost(task, [rows[row] for row in own]) for own in classes_of(con, assigned).values())

    before = total(assigned)
    changed = step.start(Improving.of(task))(assigned, 0)
    assert changed.changes and changed.cost == before
    assert total(changed.assigned) == before - changed.gain < before
