"""The phases of TP on histograms, held against the oracle, the optimum and the paper's bounds."""

import random

import oracle_tp as oracle
import pytest
from hypothesis import reject
from strategies import draws, search, some

from ldiv_db.algorithms.tp import three_phases as phases
from ldiv_db.algorithms.tp.three_phases import Histogram, drain, run_phases
from ldiv_db.database.names import Value
from ldiv_db.requirements.histogram import Classes, Core, suppress_by_core

HARD = [(p, n, high, copies) for n in (3, 4, 5) for p in range(2, n) for high, copies in ((1, 1), (3, 2), (4, 4))]


def load(engine, groups):
    rows = [(g, v, n) for g, group in enumerate(groups, 1) for v, n in enumerate(group, 1) if n]
    return engine.load("cells", {"group_no": "BIGINT", "code": "BIGINT", "rows": "BIGINT"}, rows)


def kept_of(engine, histogram, groups):
    found = {
        (g, v): n
        for g, v, n in engine.connection.execute(
            f"SELECT group_no, code, kept FROM {histogram['state'].sql()}"
        ).fetchall()
    }
    return [[found.get((g, v), 0) for v in range(1, len(group) + 1)] for g, group in enumerate(groups, 1)]


def run(engine, groups, l):
    """What is kept after phase one, what in the end, and the phases; all that must hold is asserted."""
    cells = load(engine, groups)
    histogram = Histogram(engine, cells, l)
    first = kept_of(engine, histogram, groups)
    assert first == [oracle.core(group, l) for group in groups]
    done = run_phases(histogram)
    kept = kept_of(engine, histogram, groups)
    engine.drop(histogram["state"], histogram["residue"])
    engine.drop(cells)
    removed = oracle.residue(groups, kept)
    assert all(0 <= k <= n for group, left in zip(groups, kept, strict=True) for n, k in zip(group, left, strict=True))
    assert all(oracle.eligible(group, l) for group in kept) and oracle.eligible(removed, l)
    assert (done.residues[-1].rows, done.residues[-1].height) == (sum(removed), max(removed))
    check_bounds(oracle.residue(groups, first), removed, done, l)
    return done


def check_bounds(first, removed, done, l):
    height = max(first)
    fewest = max(sum(first), l * height)
    assert (done.residues[0].rows, done.residues[0].height) == (sum(first), height)
    assert (done.last == 1) == oracle.eligible(first, l)
    if done.last == 1:
        assert sum(removed) == fewest
    if done.last == 2:
        assert max(removed) == height and sum(removed) <= l * height + l - 1
    if done.last == 3:
        assert l > 2, "two values are enough for l = 2 (Theorem 5.16)"
        assert sum(removed) <= l * fewest
        assert (done.rounds - 1) * l < done.residues[1].gap(l) <= (l - 2) * height, "the gap falls by l or more a round"


def draw_groups(draw, l, most=6, counts=(0, 0, 1, 1, 2, 3)):
    """An eligible table: rows of the values that have fewest make it so."""
    values = draw.randint(l, l + 3)
    groups = [[draw.choice(counts) for _ in range(values)] for _ in range(draw.randint(1, most))]
    while True:
        totals = [sum(column) for column in zip(*groups, strict=True)]
        if any(totals) and oracle.eligible(totals, l):
            return groups
        draw.choice(groups)[totals.index(min(totals))] += max(1, max(totals) // 8)


@pytest.mark.parametrize("l", some([3, 2, 4]))
def test_random_histograms(engine, l):
    draw = random.Random(l)
    ends = [run(engine, draw_groups(draw, l), l).last for _ in range(15)]
    assert {1, 2} <= set(ends)


@pytest.mark.slow
@pytest.mark.parametrize("l", some([3, 2, 6]))
@search(2, draw=draws)
def test_histograms_of_many_rows(engine, l, draw):
    """Skewed counts, so that batches are large and thin groups lose many rows at once."""
    assert run(engine, draw_groups(draw, l, 12, (0, 0, 0, 1, 1, 2, 5, 30, 400)), l).batches <= 80


@pytest.mark.parametrize("l", [2, 3])
@search(6, draw=draws)
def test_no_fewer_rows_than_the_optimum_and_within_the_factor(engine, l, draw):
    groups = draw_groups(draw, l, 4, (0, 0, 1, 1, 2))
    best, done = oracle.fewest_removed(groups, l), run(engine, groups, l)
    found = done.residues[-1].rows
    fewest = max(done.residues[0].rows, l * done.residues[0].height)
    assert fewest <= best <= found
    assert found <= {1: best, 2: best + l - 1, 3: l * best}[done.last], groups


@pytest.mark.parametrize(("pillars", "l", "high", "copies"), some(HARD, 3))
def test_phase_three(engine, pillars, l, high, copies):
    groups = oracle.hard_groups(pillars, l, high, copies)
    if not oracle.eligible([sum(column) for column in zip(*groups, strict=True)], l):
        groups = oracle.hard_groups(pillars, l, high, copies + high)
    done = run(engine, groups, l)
    assert done.last == 3 and done.rounds >= 1
    assert len(oracle.three_phases(groups, l, random.Random(0))[1]) == 3


@pytest.mark.parametrize("l", some([3, 4]))
def test_hard_histograms_among_random_groups(engine, l):
    draw, reached = random.Random(l), 0
    for _ in range(8):
        groups = oracle.hard_groups(draw.randint(2, l - 1), l, draw.randint(1, 3), draw.randint(1, 3))
        groups += [[draw.choice((0, 0, 1, 2)) for _ in groups[0]] for _ in range(draw.randint(0, 2))]
        if oracle.eligible([sum(column) for column in zip(*groups, strict=True)], l):
            reached += run(engine, groups, l).last == 3
    assert reached >= 2


@pytest.mark.parametrize(
    ("pillars", "l", "high", "copies", "weight"),
    some([pytest.param(2, 3, 150, 200, 1), pytest.param(3, 4, 400, 3, 400), pytest.param(3, 6, 100, 300, 1),
          pytest.param(2, 3, 400, 1, 800), pytest.param(4, 5, 150, 300, 1)]),
)  # fmt: skip
def test_phase_three_of_many_rows(engine, pillars, l, high, copies, weight):
    """Hundreds of rounds in few batches, and about as many rows removed as one by one."""
    groups = oracle.hard_groups(pillars, l, high, copies)
    groups = groups[:pillars] + [[weight * count for count in group] for group in groups[pillars:]]
    done = run(engine, groups, l)
    assert done.last == 3 and done.batches <= 30
    alone = oracle.three_phases(groups, l, random.Random(0))[1]
    assert len(alone) == 3 and done.residues[-1].rows <= 1.02 * sum(alone[-1])


@search(6, draw=draws)
def test_phase_two_leaves_dead_groups_alone(engine, draw):
    """Whatever it leaves not eligible, no group is alive (the premise of phase three)."""
    groups = oracle.hard_groups(2, 3, draw.randint(1, 3), 3) + draw_groups(draw, 4, 2)
    groups = [group[:4] + [0] * (4 - len(group)) for group in groups]
    if not oracle.eligible([sum(column) for column in zip(*groups, strict=True)], 3):
        reject()
    cells = load(engine, groups)
    histogram = Histogram(engine, cells, 3)
    drain(histogram, lambda gap: None)
    kept = kept_of(engine, histogram, groups)
    removed = oracle.residue(groups, kept)
    assert oracle.eligible(removed, 3) or all(oracle.is_dead(group, removed, 3) for group in kept)
    engine.drop(histogram["state"], histogram["residue"])
    engine.drop(cells)


def test_cores_are_those_that_the_audit_would_keep(engine):
    """The audit's core takes steps to a fixpoint, phase one solves for it."""
    draw = random.Random(5)
    groups = [[draw.choice((0, 1, 2, 5, 40)) for _ in range(5)] for _ in range(120)]
    groups = [group for group in groups if any(group)]
    for l in (2, 3, 5, 7):
        cells = load(engine, groups)
        con = engine.connection
        con.execute(
            "CREATE OR REPLACE TABLE histogram AS SELECT group_no AS class_no, code AS value, rows, CAST(sum(rows) OVER"
            f" (PARTITION BY group_no) AS BIGINT) AS class_rows FROM {cells.sql()}"
        )
        con.execute(
            "CREATE OR REPLACE TABLE measures AS"
            " SELECT DISTINCT class_no, class_rows AS rows, -1 AS margin FROM histogram"
        )
        relation = phases.Relation.parse
        classes = Classes(engine, relation("histogram"))
        mended = suppress_by_core(engine, classes, relation("measures"), Core(1, l))
        lost = dict(con.execute(f"SELECT class_no, suppress FROM {mended.sql()}").fetchall())
        assert lost == {g: sum(group) - sum(oracle.core(group, l)) for g, group in enumerate(groups, 1)}
        state = engine.materialise("state", "tp/keep_cores", cells=cells, l=Value(l))
        ours = dict(con.execute(f"SELECT group_no, sum(rows - kept) FROM {state.sql()} GROUP BY group_no").fetchall())
        assert ours == lost
