"""The best cut under any requirement that survives the union of classes, against brute force over all cuts."""

from collections import Counter
from itertools import product

import cut_oracle
import pytest
from cut_cases import EACH_KIND, SHAPES, Judged, found, numbered, refuses_all
from strategies import draws, search, seeded

from ldiv_db.algorithms.cuts import branch_and_bound as cut_sweep

pytestmark = pytest.mark.usefixtures("no_remedies")


@pytest.mark.parametrize("kind", EACH_KIND)
@search(1, draw=seeded)
def test_the_best_cut_is_found_and_published_less_what_violates(con, tmp_path, kind, draw):
    case, of_numbers = Judged(draw, kind), draw.random() < 0.5
    case = numbered(case, draw, 5) if of_numbers else case
    metric, scheme, top = draw.choice(["LM", "LM", "DM", "CM"]), draw.choice(case.schemes), draw.choice([1, 1, 4])
    costs = case.costs(metric, scheme)
    least = found(case.evaluator(con, tmp_path, metric, scheme), top, draw.random() < 0.3)
    assert least == costs[:top], (metric, scheme, case.require)
    assert of_numbers or not least or least[:1] <= case.costs(metric, scheme, cut_oracle.full_domains)[:1]
    options = {"metric": metric, "scheme": scheme} | ({"class": "y"} if metric == "CM" else {})
    if not costs:
        refuses_all(case, con, tmp_path, "whole table as one class|no cut is allowed", **options)
    elif not cut_oracle.keeps_rows(case.rows, case.trees, case.good):
        refuses_all(case, con, tmp_path, "leaves out all", **options)
    else:
        with pytest.MonkeyPatch.context() as patch:
            if draw.random() < 0.3 and not of_numbers:  # very many cuts: listed
                patch.setattr(cut_sweep, "MOST_CUTS", 1)
            verify_release(case, case.run(con, tmp_path, **options), con, costs[0], metric)


def verify_release(case, result, con, cost, metric):
    assert result.search["proved"] and result.search["cost"] == pytest.approx(float(cost))
    assert result.search["cuts"] == len(list(product(*(list(cut_oracle.cuts(tree)) for tree in case.trees))))
    shown = {
        tuple(label for label, _ in labels): Counter(row[1] for row in members)
        for labels, members in cut_oracle.partitions(case.rows, case.cut_of(result.search["cut"])).items()
        if case.good(members)
    }
    assert case.released(con) == shown
    assert result.loss.rows_published == sum(map(Counter.total, shown.values()))
    assert result.loss.rows_suppressed == len(case.rows) - result.loss.rows_published
    if metric == "LM":
        assert result.loss.lm + len(case.trees) * result.loss.rows_suppressed == pytest.approx(result.search["cost"])


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "metric", "top"), [("cuts", "DM", 9), ("annealing", "LM", 1)])
@search(1, draw=draws)
def test_no_release_is_empty(con, tmp_path, algorithm, metric, top, draw):
    """Where every cut leaves out every row it is said so; where one keeps some, it is published whatever is drawn."""
    case = Judged(draw, "k")
    case.trees, case.attributes, case.algorithm = [SHAPES[1], SHAPES[0]], ("s",), algorithm
    case.rows = [(("abcd"[i % 4], "abc"[i % 3]), ("s",), "y") for i in range(12)]
    case.place(con, tmp_path)
    chosen = {"scheme": "allRec", "metric": metric, "top": top}
    case.require = [{"k": 13}]
    refuses_all(case, con, tmp_path, r"k=13 on s fails even in the whole table.*\n.*leaves out all 12 rows", **chosen)
    case.require = [{"k": 12}]
    assert case.run(con, tmp_path, **chosen).loss.rows_published == 12
