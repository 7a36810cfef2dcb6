"""Trades and regrouping: each saves what it says, classes stay good, rows are conserved; in the end none is left."""

import itertools
import random
from dataclasses import replace

import oracle
import pytest
from strategies import some
from towns import TOWNS, cost, run_on
from towns import random_rows as of_towns

from ldiv_db.algorithms.local import peel
from ldiv_db.algorithms.neighbours import passes
from ldiv_db.algorithms.neighbours import trades as moves
from ldiv_db.algorithms.neighbours.regroup import REGROUP


def random_rows(seed, n=30):
    """Rows (number, town, job, id): numbers and towns with NULLs, and a job that some classes have twice."""
    draw = random.Random(seed)
    towns = ["a1", "a2", "a3", "b1", "b2", "c", None]
    return [(draw.choice([None, *range(20)]), draw.choice(towns), draw.choice("uvwxyz"), i) for i in range(n)]


def good(members, require):
    """Whether a class of rows (number, town, job, …) meets everything that is required."""
    jobs = [row[2] for row in members]
    return all(oracle.class_is_good(jobs, *next(iter(wanted.items()))) for wanted in require)


@pytest.fixture(params=some([moves.TRADES, REGROUP]), ids=lambda step: step.name)
def rounds(request, monkeypatch):
    """What each round of a pass says of itself, as it is run after peeling."""
    heard = []

    def start(state):
        change = request.param.start(state)

        def told(assigned, number):
            heard.append(change(assigned, number))
            return heard[-1]

        return told

    monkeypatch.setattr(peel, "TRADES", replace(request.param, start=start))
    return heard


@pytest.mark.parametrize("require", some([[{"entropy": 2}, {"k": 3}], [{"frequency": 3}], [{"distinct": 3}]]), ids=str)
@pytest.mark.parametrize("seed", some([0, 1, 2]))
def test_what_a_round_saves_is_what_classes_cost_less(seed, require, rounds, tmp_path):
    result, released = run_on(random_rows(seed), tmp_path, require, "peel")
    assert result.search["trades"] == [changed.changes for changed in rounds]
    saving = [changed for changed in rounds if changed.changes]
    assert all(later.cost == changed.cost - changed.gain for changed, later in itertools.pairwise(saving))
    assert all((changed.gain > 0) == (changed.changes > 0) for changed in rounds)
    assert saving or seed  # of some seeds peeling leaves classes that no change of theirs makes cheaper
    classes = {}
    for class_id, _, _, job, _ in released:
        classes.setdefault(class_id, []).append(job)
    assert sum(map(len, classes.values())) == 30
    assert all(good([(None, None, job) for job in jobs], require) for jobs in classes.values())


def changed_classes(here, there):
    """Both classes after every move of a row from one to the other, and every exchange of two."""
    for row in here:
        rest = [other for other in here if other is not row]
        yield rest, [*there, row]
        for other in there:
            yield [*rest, other], [*(one for one in there if one is not other), row]


@pytest.mark.slow
@pytest.mark.parametrize("require", [[{"k": 3}], [{"distinct": 3}]], ids=str)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_in_the_end_no_trade_is_left_that_saves(seed, require, tmp_path, monkeypatch):
    """Every trade of two classes, by brute force, where a row looks at all others and every trade is judged."""
    monkeypatch.setattr(passes, "STEPS", tuple(range(1, 26)))
    for name, value in {"RANKED": 10**4, "TRIED": 10**4, "ROUNDS": 200}.items():
        monkeypatch.setattr(moves, name, value)
    monkeypatch.setattr(passes, "ASKED", 0)
    draw = random.Random(seed)
    towns = ["a1", "a2", "a3", "b1", "b2", "c"]
    rows = [(number, town, draw.choice("uvwx"), i) for i, (number, town) in enumerate([(0, "a1"), (19, "c")])]
    rows += [(draw.randrange(20), draw.choice(towns), draw.choice("uvwxy"), i) for i in range(2, 26)]
    _, released = run_on(rows, tmp_path, require, "peel")
    classes = {}
    for class_id, *_, i in released:
        classes.setdefault(class_id, []).append(rows[i])
    assert len(classes) > 2
    for here, there in itertools.permutations(classes.values(), 2):
        for one, other in changed_classes(here, there):
            if one and good(one, require) and good(other, require):
                assert cost(one) + cost(other) > cost(here) + cost(there) - 1e-3


@pytest.mark.parametrize("seed", some([0, 1, 2, 3]))
def test_every_trade_that_saves_is_found_and_what_it_saves(seed, tmp_path, monkeypatch):
    """Of all moves and exchanges, by brute force: what is not worked out, as it cannot save, does not."""
    monkeypatch.setattr(passes, "STEPS", tuple(range(1, 40)))
    for name in ("RANKED", "TRIED"):
        monkeypatch.setattr(moves, name, 10**4)
    heard = []

    def listen(state, trades, assigned):
        engine, rows = state.task.engine, state.task.encoded.rows
        coded = {i: (number, TOWNS[town]) for i, number, town in engine.columns(rows, "row_id", "q1", "q2")}
        found = engine.columns(trades, "row_id", "other_class_id", "other_row_id", "gain")
        heard.append((coded, engine.columns(assigned, "row_id", "class_id"), found))
        return choose_good(state, trades, assigned)

    choose_good = moves.choose_good
    monkeypatch.setattr(moves, "choose_good", listen)
    run_on(of_towns(seed, 40), tmp_path, [{"distinct": 2}], "peel")
    coded, assigned, found = heard[0]
    classes = {}
    for i, class_id in assigned:
        classes.setdefault(class_id, []).append(i)

    def total(*some):
        return 500_000 * sum(cost([coded[i] for i in members]) for members in some)

    best = {}
    for (_, here), (other, there) in itertools.permutations(classes.items(), 2):
        for i in here if total(here) else ():
            rest = [x for x in here if x != i]
            best[i, other, None] = total(here, there) - total(rest, [*there, i])
            for j in there:
                best[i, other, j] = total(here, there) - total([*rest, j], [i, *(x for x in there if x != j)])
    listed = {(i, other, j): gain for i, other, j, gain in found}
    assert listed and listed.keys() >= {trade for trade, gain in best.items() if gain > 100}
    assert all(abs(gain - best[trade]) < 100 for trade, gain in listed.items())
