"""What tests of the search for the best cut share: the costs that it finds, however it goes, and runs in any order."""

from fractions import Fraction
from unittest import mock

import duckdb

import ldiv_db
from ldiv_db.algorithms.cuts import branch_and_bound as cut_sweep
from ldiv_db.algorithms.cuts import judged as cut_judged
from ldiv_db.algorithms.cuts.branch_and_bound import Sweep
from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best, descend
from ldiv_db.algorithms.cuts.problem import intervals_of


def found(evaluator, top=1, several=False):
    """The costs of the best cuts, exact; of taxonomies also as if there were very many; in `several` groups if so."""
    problem, ways = evaluator.problem, [{}] if intervals_of(evaluator.problem) else [{}, {"MOST_CUTS": 1}]
    few = {"_MOST_PREFIXES": 6, "_AT_ONCE": 2} | ({"_MOST_JOINED": 20} if several else {})
    some = mock.patch.object(cut_judged, "MOST_AT_ONCE", 7 if several else cut_judged.MOST_AT_ONCE)
    every = []
    for way in ways:
        best = Best(top)
        with mock.patch.multiple(cut_sweep, **few, **way), some:
            if several:
                descend(evaluator, best)
            assert Sweep(evaluator, best).run().proved
        costs = [cost for _, cost in best.ranked() if cost < FORBIDDEN]
        assert costs == sorted(cost for cost in evaluator.costs(list(best.costs)) if cost < FORBIDDEN)
        every.append(costs)
    assert every[0] == every[-1]
    return [Fraction(cost, problem.scale) for cost in every[0]]


def assert_same_in_any_order(case, folder, **options):
    """Neither the number of threads nor the order of rows changes the search or the release of `cuts`."""
    results = []
    case.rows *= 3
    for threads, turned in ((1, 1), (2, -1)):
        case.rows = case.rows[::turned]
        with duckdb.connect(config={"threads": threads}) as con:
            case.place(con, folder)
            try:
                search = ldiv_db.run(con, case.policy(scheme="allRec", **options), folder=folder).search
            except ldiv_db.InfeasibleError as error:  # every row would be left out
                results.append(str(error))
                continue
            results.append((search, con.execute("SELECT * FROM out.released").fetchall()))
    assert results[0] == results[1]
