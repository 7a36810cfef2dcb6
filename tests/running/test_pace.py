"""What is said of the time that is left, by a clock of its own, on recorded runs and on made up ones."""

import json
from pathlib import Path

import pytest
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.algorithms.neighbours.passes import IMPROVING
from ldiv_db.commands.progress import ProgressDisplay
from ldiv_db.database.context import Stage, hearing_of
from ldiv_db.database.queries import Step
from ldiv_db.database.stages import timed
from ldiv_db.running.estimate import MEASURING, MOST, READING, WRITING, Pace, about, expected
from tests.benchmarks.pace import factors, played
from tests.benchmarks.wide import make_people, wide_policy

#: By `python -m tests.benchmarks.pace --traces`, in the processor's seconds.
TRACES = [json.loads(line) for line in Path(__file__).with_name("pace_traces.jsonl").read_text().splitlines()]
RUNS = [found for found in TRACES if found.get("command", "run") == "run"]
NAMES = [f"{found.get('command', 'run')}, {found['algorithm']} on {found['rows']:,} rows" for found in TRACES]
#: A run that takes less is over before anybody looks.
SHORT = 10.0


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def pace_of(*seconds, clock):
    """A run of stages `0`, `1`, … that are expected to take so long, of which the first has begun."""
    found = Pace("0", clock)
    found.expect([Stage(str(number), seconds=float(of)) for number, of in enumerate(seconds)])
    return found


def scaled(events, times):
    return [(at * times, kind, what) for at, kind, what in events]


# -- recorded runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", TRACES, ids=NAMES)
def test_what_is_left_of_a_recorded_run_is_right_within_a_factor_of_two(trace):
    early, *later = factors(trace["events"])
    assert max(later) <= 2
    assert (early is None and trace["seconds"] < SHORT) or early <= 2


@pytest.mark.parametrize("times", [1 / 3, 3])
@pytest.mark.parametrize("trace", TRACES, ids=NAMES)
def test_on_another_machine_it_becomes_right_as_work_is_counted(trace, times):
    """A search for the best cut counts none."""
    _, _, half, _, most = factors(scaled(trace["events"], times))
    assert trace["algorithm"] == "cuts" or (half <= 2.2 and most <= 2.2)


@pytest.mark.parametrize("trace", TRACES, ids=NAMES)
def test_the_stages_of_a_recorded_run_are_those_that_were_expected(trace):
    """What `auto` has before it after its trials it tells anew: more than one plan may be worth improving."""
    names, *_ = [[name for name, _ in what] for _, kind, what in trace["events"] if kind == "expect"]
    rest = iter([what for _, kind, what in trace["events"] if kind == "stage"])
    assert all(name in rest for name in names)


def test_all_kinds_of_algorithms_were_recorded_on_few_and_on_many_rows():
    every = {"topdown", "bsgi", "mondrian", "cuts", "auto"}
    for many in (False, True):
        assert {found["algorithm"] for found in RUNS if (found["rows"] >= 300_000) is many} == every


def test_moments_of_a_trace_are_played_by_its_own_clock():
    events = [(0.0, "stage", READING), (1.0, "expect", [(READING, 10**6)]), (9.0, "count", (1, 2)), (10.0, "end", None)]
    assert [left for left, _ in played(events, (0.1, 0.25, 0.5, 0.75))] == [9.0, 7.5, 5.0, 2.5]


# -- the arithmetic --------------------------------------------------------------------------------------


def test_as_expected_what_is_left_is_what_is_not_done():
    clock = Clock()
    pace = pace_of(10, 30, 60, clock=clock)
    assert pace.left == pytest.approx(100)
    for at, stage in ((10, "1"), (40, "2")):
        clock.now = at
        pace.enter(stage)
        assert (pace.stage, pace.left) == (stage, pytest.approx(100 - at))
        assert pace.share == pytest.approx(at / 100)


def test_stages_that_took_twice_as_long_make_all_others_twice_as_long():
    clock = Clock()
    pace = pace_of(40, 60, clock=clock)
    clock.now = 80
    pace.enter("1")
    assert 110 < pace.left <= 120


def test_counted_work_says_more_than_what_was_expected():
    clock = Clock()
    pace = pace_of(10, 90, clock=clock)
    clock.now = 10
    pace.enter("1")
    clock.now = 110  # of 200 that it takes in truth
    assert pace.left == pytest.approx(25)
    pace.count(50, 100)
    assert 50 < pace.left < 110
    clock.now = 160
    pace.count(75, 100)
    assert 30 < pace.left < 60


def test_a_stage_that_is_overdue_is_not_about_to_end():
    clock = Clock()
    pace = pace_of(10, clock=clock)
    clock.now = 100
    assert pace.left == pytest.approx(25) and pace.share <= MOST


@pytest.mark.parametrize("counted", [(0, 0), (1, 10), (10, 10), (12, 10)])
def test_never_all_is_done_before_it_is(counted):
    clock = Clock()
    pace = pace_of(1, 1, clock=clock)
    for stage in ("1", "nobody expected this", "1"):
        pace.enter(stage)
        for _ in range(50):
            clock.now += 10
            pace.count(*counted)
            assert pace.share <= MOST and "100 %" not in str(pace)
            assert pace.left is None or pace.left > 0


def test_a_run_without_rows_has_no_work():
    pace = Pace(READING, Clock())
    pace.expect(expected([("forming classes by topdown", 0)], 0, 100))
    assert (pace.left, pace.share) == (0, 0)


def test_a_stage_that_is_left_out_is_waited_for_no_more():
    clock = Clock()
    pace = pace_of(10, 1000, 10, clock=clock)
    clock.now = 10
    pace.enter("2")
    assert pace.left == pytest.approx(10)


def test_what_is_done_never_becomes_less_and_an_overdue_stage_is_said_to_be_late():
    clock = Clock()
    pace = pace_of(100, 20, clock=clock)
    clock.now = 95
    pace.count(95, 100)
    assert "about 65 % done" in str(pace)
    pace.expect([Stage("0", seconds=100.0), Stage("1", seconds=400.0)])
    assert pace.left > 300 and "about 65 % done" in str(pace)
    pace = pace_of(20, clock=clock)
    clock.now += 18
    assert str(pace).endswith("a few seconds left")
    clock.now += 20
    assert str(pace) == "about 80 % done in 38 s, longer than expected"


def test_a_stage_within_which_others_are_expected_is_these():
    clock = Clock()
    pace = pace_of(10, 40, 50, clock=clock)
    clock.now = 10
    pace.enter("1")
    pace.expect([Stage("1a", seconds=30.0), Stage("1b", seconds=20.0)])
    assert pace.left == pytest.approx(100)
    pace.enter("1a")
    pace.expect([Stage("1b", seconds=60.0)])  # known better
    clock.now = 25
    assert pace.left == pytest.approx(125)
    clock.now = 40
    pace.enter("1b")
    pace.enter("1b")  # said twice of one stage
    clock.now = 100
    pace.enter("2")
    assert pace.left == pytest.approx(50)


def test_parts_of_the_work_are_each_as_much_more_as_the_first_one_was():
    clock = Clock()
    pace = Pace("looking", clock)
    listener = ldiv_db.Listener(on_stage=pace.enter, on_expected=pace.expect)
    listener.on_expected([Stage("auditing", seconds=100.0).of(name) for name in "abc"])
    first, second = (hearing_of(name, listener) for name in "ab")
    first.on_stage("auditing")
    assert (pace.stage, pace.left) == ("a: auditing", pytest.approx(300))
    first.on_expected([Stage("comparing", seconds=10.0)])
    first.on_stage("comparing")
    assert pace.left == pytest.approx(30)
    clock.now = 10
    second.on_stage("auditing")
    assert (pace.stage, pace.left) == ("b: auditing", pytest.approx(20))


def test_without_an_expectation_counted_work_alone_tells():
    clock = Clock()
    pace = Pace("trying worlds", clock)
    clock.now = 20
    assert pace.left is None and str(pace) == "20 s so far"
    pace.count(1, 4)
    assert pace.left == pytest.approx(60) and str(pace) == "about 25 % done in 20 s, about 60 s left"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "a few seconds"), (14, "about 10 s"), (94, "about 90 s"), (95, "about 2 min"), (1065, "about 18 min"),
     (9000, "about 2 h")],
)  # fmt: skip
def test_nobody_knows_it_to_the_second(seconds, said):
    assert about(seconds) == said


# -- runs ------------------------------------------------------------------------------------------------


def policy(con, algorithm):
    fill(con, "t", {"age": "INTEGER", "s": "VARCHAR"}, [(i * 7 % 50, "abcd"[i % 4]) for i in range(200)])
    wanted = {"source": "t", "target": {"table": "out", "if_exists": "replace"}, "sensitive": ["s"], "seed": 1}
    return wanted | {
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [5, 10, 20, 100]}}},
        "require": [{"frequency": 2}],
        "algorithm": algorithm,
    }


@pytest.mark.parametrize("algorithm", some(["bsgi", "auto", "topdown", "mondrian", "cuts", "peel", "fast"], 2))
def test_a_run_says_what_it_does_now_and_what_it_will(con, algorithm):
    went, ahead = [], []
    listener = ldiv_db.Listener(on_stage=went.append, on_expected=ahead.extend)
    result = ldiv_db.run(con, policy(con, algorithm), listener=listener)
    assert went[0] == ahead[0].name == READING and went[-2:] == [MEASURING, WRITING]
    names = [stage.name for stage in ahead]
    assert f"forming classes by {result.algorithm}" in names and set(names[:2]) <= set(went)
    assert all(stage.seconds > 0 for stage in ahead)


def test_a_plan_says_how_long_a_run_takes(con):
    quick, slow = (ldiv_db.plan(con, policy(con, name)).estimate.seconds for name in ("mondrian", "auto"))
    assert 0 < quick < slow
    ahead = list[Stage]()
    ldiv_db.plan(con, policy(con, "mondrian"), listener=ldiv_db.Listener(on_expected=ahead.extend))
    assert [stage.name for stage in ahead] == [READING]  # what only a run does is not waited for
    assert sum(stage.seconds for stage in expected([("forming classes by topdown", 2 * 10**6)], 2 * 10**6, 7)) > 5


@pytest.mark.parametrize("algorithm", some(["topdown", "auto"], 1))
def test_a_plan_of_many_columns_expects_time_for_each(con, algorithm):
    def planned(columns):
        make_people(con, 60, columns)
        return ldiv_db.plan(con, wide_policy(columns, algorithm)).estimate.stages

    few, many = planned(5), planned(25)
    assert [stage.name for stage in few] == [stage.name for stage in many]
    assert all(wide.seconds - narrow.seconds > 0.1 for narrow, wide in zip(few, many, strict=True))


def test_lines_of_progress_name_the_stage_and_no_end_that_nobody_knows(capsys, monkeypatch):
    monkeypatch.setattr("ldiv_db.commands.progress._PAUSE", 0.0)
    with ProgressDisplay(first_stage="counting columns") as listener:
        listener.on_step(Step("a", 1, 1.0))
        listener.on_expected([timed("counting columns", 10**6), timed(IMPROVING, 10**7)])
        listener.on_stage(IMPROVING)
        listener.on_progress(16, 16)
        listener.on_step(Step("b", 1, 1.0))
    first, last = capsys.readouterr().err.splitlines()
    assert first == "counting columns: 0 s so far"
    assert last.startswith(f"{IMPROVING}: about ") and last.endswith(" left") and "100 %" not in last
