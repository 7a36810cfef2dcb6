"""Flows: no step costs more, classes stay good; in the end no flow is left; swaps change no class's values."""

import collections
from dataclasses import replace

import oracle
import pytest
from strategies import some
from towns import cost, random_rows, run_on

from ldiv_db.algorithms.local.stratified import SPLITS
from ldiv_db.algorithms.neighbours import passes as shared
from ldiv_db.algorithms.neighbours import several
from ldiv_db.algorithms.neighbours import trades as moves
from ldiv_db.algorithms.neighbours.passes import Changed
from ldiv_db.recoding.cross_tables import STRATUM
from ldiv_db.solving import improve

REQUIRES = [[{"distinct": 3}], [{"k": 4}], [{"entropy": 2}, {"k": 3}], [{"t_closeness": 0.4}]]


def classes_of(task, assigned):
    """The ids of the rows of each class; of several tables in one the numbers of their rows."""
    rows, assigned = task.encoded.rows.sql(), assigned.sql()
    several = any(axis.column == STRATUM for axis in task.encoded.axes)
    kept = "row_id" if several else task.encoded.kept[0].alias.sql()
    query = (
        f"SELECT class_id, list({kept} ORDER BY {kept}) FROM {assigned} JOIN {rows} USING (row_id) GROUP BY class_id"
    )
    return dict(task.engine.connection.execute(query).fetchall())


def merging(state):
    """In place of splitting neighbours anew: some classes become one, so that there is much to do."""

    def merge(assigned, number):
        merged = state.task.engine.copy("merged", assigned)
        change = f"UPDATE {merged.sql()} SET class_id = class_id - class_id % 3 WHERE class_id // 3 % 2 = 0"
        state.task.engine.connection.execute(change)
        return Changed(merged, 0, 0, 0)

    return merge


MERGES = replace(SPLITS, start=merging, rounds=lambda task: 1)


def passes(first):
    """Flows and trades, after another pass."""
    return (first, moves.FLOWS, moves.TRADES)


@pytest.fixture
def heard(monkeypatch):
    """(name, classes before, classes after, what it returned) of all flows, turns and swaps."""
    steps = []

    def listen(module, name, place):
        function = getattr(module, name)

        def told(state, *params):
            before = classes_of(state.task, params[place])
            found = function(state, *params)
            after = found[0] if isinstance(found, tuple) else found
            steps.append((name.strip("_"), before, classes_of(state.task, after), found))
            return found

        monkeypatch.setattr(module, name, told)

    def told(all_passes, state, assigned, asked):
        """One pass after the other."""
        courses = []
        for step in all_passes:
            before = classes_of(state.task, assigned)
            assigned, (course,) = run_passes([step], state, assigned, asked)
            courses.append(course)
            if step.name == "flows":
                steps.append(("flow", before, classes_of(state.task, assigned), (assigned, course.changes)))
        return assigned, courses

    run_passes = several.improve
    monkeypatch.setattr(several, "improve", told)
    monkeypatch.setattr(improve, "_paying", lambda task: passes(MERGES))
    listen(moves, "_turn", 1)
    listen(moves, "_swap", 0)
    return steps


def distance(jobs, all_jobs):
    """Half the sum of what the shares of values differ by."""
    here, everywhere = oracle.shares(jobs), oracle.shares(all_jobs)
    return sum(abs(here.get(job, 0) - share) for job, share in everywhere.items()) / 2


def good(members, require, rows):
    """Whether a class of rows meets everything that is required."""
    jobs, all_jobs = [row[2] for row in members], [row[2] for row in rows]
    for wanted in require:
        ((name, argument),) = wanted.items()
        holds = (
            distance(jobs, all_jobs) <= argument + 1e-12
            if name == "t_closeness"
            else oracle.class_is_good(jobs, name, argument)
        )
        if not holds:
            return False
    return True


def total(classes, rows):
    return sum(cost([rows[i] for i in ids]) for ids in classes.values())


def jobs_of(classes, rows):
    return {number: collections.Counter(rows[i][2] for i in ids) for number, ids in classes.items()}


@pytest.mark.parametrize("require", some(REQUIRES), ids=str)
@pytest.mark.parametrize("count", some([60, 150]))
def test_no_step_costs_more_and_classes_stay_good(count, require, heard, tmp_path):
    rows = random_rows(0, count)
    run_on(rows, tmp_path, require, "auto")
    assert any(name == "flow" for name, *_ in heard)
    for name, before, after, _ in heard:
        assert sorted(i for ids in after.values() for i in ids) == list(range(len(rows)))
        assert all(good([rows[i] for i in ids], require, rows) for ids in after.values())
        if name != "turn":
            assert total(after, rows) < total(before, rows) + 1e-3
        if name == "swap":
            assert jobs_of(after, rows) == jobs_of(before, rows)


def better_classes(classes, require, rows):
    """(row, its class, another that covers it, costs a row less, and is good with it) where its own is good without."""
    for left, here in classes.items():
        for i in here:
            rest = [rows[j] for j in here if j != i]
            if not rest or not good(rest, require, rows):
                continue
            for right, there in classes.items():
                members = [rows[j] for j in there]
                grown = [*members, rows[i]]
                covered = abs(cost(grown) / len(grown) - cost(members) / len(members)) < 1e-9
                dearer = cost([*rest, rows[i]]) / len(here) > cost(members) / len(members) + 1e-3
                if right != left and covered and dearer and good(grown, require, rows):
                    yield i, left, right


@pytest.mark.slow
@pytest.mark.parametrize("require", REQUIRES, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_in_the_end_no_flow_is_left(seed, require, heard, tmp_path, monkeypatch):
    """By brute force over all rows and classes, where a row looks at all others and every flow is compared."""
    monkeypatch.setattr(shared, "STEPS", tuple(range(1, 60)))
    monkeypatch.setattr(moves, "_swap", lambda state, assigned, *_: state.task.engine.copy("a", assigned))
    for name, value in {"FLOWS_RANKED": 10**4, "FLOW_ROUNDS": 200}.items():
        monkeypatch.setattr(moves, name, value)
    monkeypatch.setitem(improve.EFFORTS, "normal", improve.Effort(asked=0))
    rows = random_rows(seed, 60)
    run_on(rows, tmp_path, require, "auto")
    for name, before, after, found in heard:
        if name == "flow":
            assert not list(better_classes(after, require, rows))
            assert bool(list(better_classes(before, require, rows))) == (sum(found[1]) > 0)
        if name == "turn":
            moved = sum(len(set(ids) - set(before.get(number, []))) for number, ids in after.items())
            assert moved == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("cells", some([None, 40]))
def test_small_tables_alone_have_flows_and_the_result_says_how_many(heard, tmp_path, monkeypatch, cells):
    monkeypatch.setattr(improve, "_paying", lambda task: passes(SPLITS))
    if cells:
        monkeypatch.setattr(improve, "SMALL_CELLS", cells)
    result, _ = run_on(random_rows(3, 30), tmp_path, [{"distinct": 3}], "auto")
    if cells:
        assert not heard and "flows" not in result.search
    else:
        assert result.search["flows"] in [found[1] for name, _, _, found in heard if name == "flow"]
