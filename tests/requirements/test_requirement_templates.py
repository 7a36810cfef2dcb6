"""The requirement templates on given histograms, and against the oracle on random ones."""

import random
from collections import Counter

import pytest

from ldiv_db.database.names import Identifier
from ldiv_db.requirements import REQUIREMENTS, Classes, RequirementSpec, judge
from tests.sql.arguments import ARGUMENTS

COLUMNS = {"class_no": "BIGINT", "value": "VARCHAR", "rows": "BIGINT", "class_rows": "BIGINT"}


def verdict_on(engine, histogram, name, argument):
    sizes = Counter()
    for class_no, _, rows in histogram:
        sizes[class_no] += rows
    relation = engine.load("histogram", COLUMNS, [(*row, sizes[row[0]]) for row in histogram])
    return judge(engine, RequirementSpec(name, argument).resolve(None), Classes(engine, relation))


@pytest.mark.parametrize(
    ("rows", "argument", "holds"), [((1, 9), "0.9", True), ((1, 9), "0.899999999", False), ((3, 7), "0.7", True)]
)
def test_thresholds_compare_exactly(engine, rows, argument, holds):
    histogram = [(1, "a", rows[0]), (1, "b", rows[1])]
    assert verdict_on(engine, histogram, "threshold", argument).holds is holds


def test_an_empty_table_violates_nothing(engine):
    verdict = verdict_on(engine, [], "k", 2)
    assert verdict.holds and (verdict.classes, verdict.worst, verdict.violating_rows) == (0, None, 0)


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
