"""What tests of the searches for the best cut share: the costs that all searches find, and runs in any order."""

from fractions import Fraction
from unittest import mock

import duckdb

import ldiv_db
from ldiv_db.algorithms.cuts import branch_and_bound as cut_sweep
from ldiv_db.algorithms.cuts import judged as cut_judged
from ldiv_db.algorithms.cuts.branch_and_bound import Sweep
from ldiv_db.algorithms.cuts.enumeration import Search, find_start
from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best
from ldiv_db.algorithms.cuts.problem import intervals_of


def found(evaluator, top=1, several=False):
    """The costs of the best cuts, exact, by boxes and, of taxonomies, from cut to cut; in `several` groups if so."""
    problem, best, swept = evaluator.problem, Best(top), Best(top)
    first = (lambda: find_start(evaluator, best)) if several else (lambda: None)
    few = {"_MOST_PREFIXES": 6, "_AT_ONCE": 2} | ({"_MOST_JOINED": 20} if several else {})
    some = mock.patch.object(cut_judged, "MOST_AT_ONCE", 7 if several else cut_judged.MOST_AT_ONCE)
    with mock.patch.multiple(cut_sweep, **few), some:
        assert Sweep(evaluator, swept).run().proved
        if not intervals_of(problem):
            assert Search(evaluator, best).run(first).proved
    costs = [cost for _, cost in swept.ranked() if cost < FORBIDDEN]
    assert costs == sorted(cost for cost in evaluator.costs(list(swept.costs)) if cost < FORBIDDEN)
    assert intervals_of(problem) or costs == [cost for _, cost in best.ranked() if cost < FORBIDDEN]
    return [Fraction(cost, problem.scale) for cost in costs]


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
