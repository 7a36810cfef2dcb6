"""BSGI's numbers of classes and quotas, and Select against the paper's one-class-at-a-time procedure."""

from collections import Counter
from pathlib import Path

import oracle
import pytest
import tables
from hypothesis import strategies as st
from strategies import search, seeded, some

from ldiv_db.algorithms import costs, eligibility
from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.bsgi import bisection, selection
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import resolve
from ldiv_db.recoding.encode import read_source
from ldiv_db.requirements.guarantees import most_classes

COUNTS = st.lists(st.integers(1, 6), min_size=2, max_size=6).map(lambda counts: sorted(counts, reverse=True))


@search(100, counts=COUNTS, l=st.integers(2, 6))
def test_most_classes_is_the_most_there_can_be(counts, l):
    assert most_classes(counts, l) == oracle.most_classes(counts, l) == len(oracle.draws(counts, l))


@search(
    100,
    counts=st.lists(st.integers(1, 60), min_size=2, max_size=9).map(lambda c: sorted(c, reverse=True)),
    l=st.integers(2, 5),
)
def test_quotas_fill_the_classes_and_leave_different_values(counts, l):
    classes = most_classes(counts, l)
    quotas = eligibility.quotas(counts, l)
    assert sum(quotas) == l * classes
    assert all(0 <= quota <= min(count, classes) for quota, count in zip(quotas, counts, strict=True))
    residue = [count - quota for count, quota in zip(counts, quotas, strict=True)]
    if counts[0] * l <= sum(counts):
        assert max(residue) <= 1 and sum(residue) < l  # Corollary 1


@search(50, counts=COUNTS, l=st.integers(2, 6))
def test_schedule_draws_from_the_largest_buckets(counts, l):
    plan = oracle.draws(counts, l)
    expected = [
        (number, step, bucket + 1) for number, order in enumerate(plan, 1) for step, bucket in enumerate(order, 1)
    ]
    assert selection.schedule(counts, l, len(plan)) == expected


def encoded_task(con, case: tables.Case, folder: Path) -> Task:
    case.place(con, folder)
    engine = Engine(con)
    policy = parse_policy(case.policy)
    encoded = read_source(engine, resolve(engine, policy, folder).source).encode()
    requirements = [spec.resolve(encoded.sensitive[0].distribution) for spec in policy.require]
    return Task(engine, encoded, requirements, policy.seed)


def coded_axes(encoded) -> list:
    """The oracle's costs of the quasi-identifiers' codes."""
    axes = []
    for axis in encoded.axes:
        unit = round(axis.weight * costs.COST_UNIT)
        if axis.tree is None:
            axes.append(oracle.CodedNumbers(axis.scale, axis.null_apart, unit))
        else:
            axes.append(oracle.CodedTree([(node.low, node.high) for node in axis.tree.nodes], unit))
    return axes


def sequential(con, task: Task, l: int, classes: int) -> dict[int, int]:
    """The paper's Select on the encoded rows."""
    encoded = task.encoded
    axes = coded_axes(encoded)
    names = ", ".join(column.code.sql() for column in [*encoded.axes, *encoded.keys[1:]])
    sensitive = encoded.sensitive[0]
    found = con.execute(f"SELECT row_id, {sensitive.code.sql()}, {names} FROM {encoded.rows.sql()}").fetchall()
    rows = {row[0]: (row[1], row[2 : 2 + len(axes)]) for row in found}
    others = {row[0]: row[2 + len(axes) :] for row in found}
    sizes = Counter(bucket for bucket, _ in rows.values())
    order = sorted(sizes, key=lambda bucket: (-sizes[bucket], bucket))
    return oracle.select(rows, axes, order, l, task.seed, selection.TIE_STRIDE, others, classes)


@pytest.mark.parametrize(
    ("batch", "ranked"), some([pytest.param(*n) for n in ((None, None), (5, 2), (30, 1), (1, 1))], 2)
)
@search(1, draw=seeded)
def test_greedy_is_the_sequential_procedure(con, tmp_path, batch, ranked, draw):
    """What is selected many classes at a time, however many, is what one class at a time selects, row by row."""
    case = tables.random_case(draw, "greedy", largest=draw.choice([20, 60]))
    task = encoded_task(con, case, tmp_path)
    l = eligibility.class_size(task)
    classes = most_classes(task.encoded.sensitive[0].distribution.counts, l)
    with pytest.MonkeyPatch.context() as patch:
        if batch is not None:
            patch.setattr(selection, "BATCH", batch)
            patch.setattr(selection, "RANKED", ranked)
        selected = con.execute(f"SELECT row_id, class_id FROM {selection.select(task, l, classes).sql()}").fetchall()
    assert len(selected) == l * classes
    assert dict(selected) == sequential(con, task, l, classes)


@search(3, draw=seeded)
def test_equal_rows_in_one_are_halved_as_each_by_itself(con, tmp_path, draw):
    """Classes of different values, whose rows agree as much as those that are made row by row."""
    case = tables.random_case(draw, "bisect", largest=36)
    case.rows = [(*row[:-2], rid, row[-1]) for rid, row in enumerate(row for row in case.rows for _ in range(9))]
    task = encoded_task(con, case, tmp_path)
    l, axes = eligibility.class_size(task), ", ".join(f"r.{axis.code.sql()}" for axis in task.encoded.axes)
    counts, secret = task.encoded.sensitive[0].distribution.counts, task.encoded.sensitive[0].code.sql()
    quotas, classes = eligibility.quotas(counts, l), most_classes(counts, l)

    def made():
        found = bisection.bisect(task, quotas, l, classes).sql()
        joined = f"FROM {found} AS a JOIN {task.encoded.rows.sql()} AS r ON r.row_id = a.row_id GROUP BY a.class_id"
        assert con.execute(f"SELECT DISTINCT count(*), count(DISTINCT r.{secret}) {joined}").fetchall() == [(l, l)]
        return Counter(con.execute(f"SELECT CAST(list_sort(list(row({axes}))) AS VARCHAR) {joined}").fetchall())

    def alone(flow, name, template="", **more):
        if template != "group_rows":
            return step(flow, name, template, **more)
        return flow.engine.select(name, more["rows"], constants={"weight": 1})

    together, step = made(), EngineFlow.step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EngineFlow, "step", alone)
        assert together == made() and together.total() == classes


@search(3, draw=seeded)
def test_cells_of_large_nodes_are_halved_as_their_rows_would_be(con, tmp_path, draw):
    """However many numbers are in one cell; of equal rows more than a side takes, and of values that force some."""
    case = tables.random_case(draw, "bisect", largest=36)
    case.rows = [(*row[:-2], rid, row[-1]) for rid, row in enumerate(row for row in case.rows for _ in range(5))]
    task = encoded_task(con, case, tmp_path)
    l, counts = eligibility.class_size(task), task.encoded.sensitive[0].distribution.counts
    quotas, classes = eligibility.quotas(counts, l), most_classes(counts, l)

    def made():
        return sorted(con.execute(f"FROM {bisection.bisect(task, quotas, l, classes).sql()}").fetchall())

    by_rows = made()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bisection, "MANY_ROWS", 0)
        patch.setattr(bisection, "FORCED", 1)
        for grains in (1, 10):
            patch.setattr(bisection, "GRAINS", grains)
            assert made() == by_rows
