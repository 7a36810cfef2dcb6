"""The requirement templates on given histograms, and against the oracle on random ones."""

import random
from collections import Counter

import oracle
import pytest
from strategies import draws, search

from ldiv_db.database.names import Identifier
from ldiv_db.requirements import REQUIREMENTS, Classes, RequirementSpec, judge
from tests.sql.arguments import ARGUMENTS

COLUMNS = {"class_no": "BIGINT", "value": "VARCHAR", "rows": "BIGINT", "class_rows": "BIGINT"}
HISTOGRAM = [(1, "flu", 1), (1, "HIV", 1), (2, "flu", 2), (2, "HIV", 1), (2, None, 1), (3, "flu", 5)]
EXPECTED = [
    # requirement, argument, violating classes, rows in them, what the worst class reaches
    ("k", 2, 0, 0, 2),
    ("k", 4, 1, 2, 2),
    ("k", 6, 3, 11, 2),
    ("distinct", 1, 0, 0, 1),
    ("distinct", 2, 1, 5, 1),
    ("distinct", 3, 2, 7, 1),
    ("unique_distinct", 2, 2, 9, 0),
    ("frequency", 1, 0, 0, 1),
    ("frequency", 2, 1, 5, 1),
    ("frequency", "2.000000001", 3, 11, 1),
    ("threshold", 1, 0, 0, 1),
    ("threshold", {"default": 1, "flu": 0.5}, 1, 5, 2),
    ("threshold", {"default": 0.5, "flu": 1}, 0, 0, 1),
    ("threshold", {"default": "0.499999999", "flu": 1}, 1, 2, None),
]


def verdict_on(engine, histogram, name, argument):
    sizes = Counter()
    for class_no, _, rows in histogram:
        sizes[class_no] += rows
    relation = engine.load("histogram", COLUMNS, [(*row, sizes[row[0]]) for row in histogram])
    return judge(engine, RequirementSpec(name, argument).resolve(None), Classes(engine, relation))


@pytest.mark.parametrize(("name", "argument", "classes", "rows", "worst"), EXPECTED)
def test_given_histogram(engine, name, argument, classes, rows, worst):
    verdict = verdict_on(engine, HISTOGRAM, name, argument)
    assert (verdict.violating_classes, verdict.violating_rows, verdict.holds) == (classes, rows, classes == 0)
    assert verdict.classes == 3
    if worst is not None:
        assert verdict.worst == pytest.approx(worst)


@pytest.mark.parametrize(
    ("rows", "argument", "holds"), [((1, 9), "0.9", True), ((1, 9), "0.899999999", False), ((3, 7), "0.7", True)]
)
def test_thresholds_compare_exactly(engine, rows, argument, holds):
    histogram = [(1, "a", rows[0]), (1, "b", rows[1])]
    assert verdict_on(engine, histogram, "threshold", argument).holds is holds


def test_an_empty_table_violates_nothing(engine):
    verdict = verdict_on(engine, [], "k", 2)
    assert verdict.holds and (verdict.classes, verdict.worst, verdict.violating_rows) == (0, None, 0)


@search(2, draw=draws)
def test_random_histograms_agree_with_the_oracle(engine, draw):
    counts = {(draw.randint(1, 8), draw.choice("abcde")): draw.randint(1, draw.choice([1, 1, 4])) for _ in range(20)}
    rows = [(key, value) for (key, value), count in counts.items() for _ in range(count)]
    for name, arguments in {
        "k": [1, 3, 5], "risk": [1, 0.4, 0.2], "distinct": [1, 2, 3],
        "unique_distinct": [1, 2, 3], "frequency": [1, 1.5, 2, 3],
        "threshold": [0.5, {"default": 0.6, "a": 0.25}, {"b": 0.3}],
    }.items():  # fmt: skip
        for argument in arguments:
            verdict = verdict_on(engine, [(*key, count) for key, count in counts.items()], name, argument)
            expected = oracle.violations(rows, name, argument)
            found = (verdict.violating_classes, verdict.violating_rows)
            assert found == (len(expected), sum(expected.values())), (name, argument)


@pytest.mark.parametrize("name", [name for name, requirement in REQUIREMENTS.items() if requirement.tallies_only])
@pytest.mark.parametrize("seed", range(1))
def test_tallies_tell_what_a_histogram_does(engine, name, seed):
    """Of what says that it asks for no more, with one sensitive attribute and with several."""
    draw = random.Random(seed)
    counts = [(no, value, other, draw.randint(1, 4))
              for no in range(12) for value in range(5) for other in range(3) if draw.random() < 0.4]  # fmt: skip
    sums, sizes = Counter(), Counter()
    for no, value, _, rows in counts:
        sums[no, value] += rows
        sizes[no] += rows
    histogram = [(no, str(value), rows, sizes[no]) for (no, value), rows in sums.items()]
    classes = Classes(engine, engine.load("histogram", COLUMNS, histogram))
    columns = {"class_no": "BIGINT", "code": "INTEGER", "other": "INTEGER", "rows": "BIGINT"}
    several = engine.load("counts", columns, counts)
    one = engine.load("counts", columns, [(no, value, 0, rows) for (no, value), rows in sums.items()])
    requirement = RequirementSpec(name, ARGUMENTS[name]).resolve(None)
    expected = sorted(engine.columns(requirement.measure(engine, classes)))
    for table, summed in ((several, True), (one, False)):
        tallies = engine.materialise(
            "tallies", "local/tally_classes", counts=table, key=Identifier("code"), summed=summed
        )
        assert sorted(engine.columns(requirement.measure(engine, Classes.tallied(engine, tallies)))) == expected
