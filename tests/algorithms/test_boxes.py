"""How much `cuts` makes on its way: boxes that are too many are not made, and counts travel together."""

import duckdb
import pytest

import ldiv_db
from ldiv_db.algorithms.cuts import boxes as cut_boxes

pytestmark = pytest.mark.usefixtures("no_remedies")

ROWS = 800
POLICY = {
    "source": "people",
    "target": "published",
    "quasi_identifiers": {
        "age": {"taxonomy": {"ranges": [5, 20, 40]}},
        "zip": {"taxonomy": {"prefix": [2, 1]}},
        "hours": {"taxonomy": {"ranges": [10, 20, 40]}},
        "work": {"taxonomy": {"prefix": [2]}},
    },
    "sensitive": ["disease"],
    "require": [{"frequency": 3}],
    "algorithm": "cuts",
    "seed": 1,
}


@pytest.fixture
def con():
    """Rows whose quasi-identifiers are almost independent, hardly any twice."""
    con = duckdb.connect()
    con.execute(
        f"""CREATE TABLE people AS SELECT CAST(hash(i, 1) % 74 AS INTEGER) + 17 AS age,
        printf('%03d', hash(i, 2) % 500) AS zip, CAST(hash(i, 3) % 99 AS INTEGER) + 1 AS hours,
        'o' || (hash(i, 4) % 9) AS work, 's' || chr(65 + CAST(hash(i, 5) % 14 AS INTEGER)) AS disease
        FROM range({ROWS}) AS t (i)"""
    )
    return con


def run(con, algorithm="cuts", **hears):
    return ldiv_db.run(con, POLICY | {"algorithm": algorithm}, listener=ldiv_db.Listener(**hears))


@pytest.mark.slow
def test_boxes_that_are_too_many_are_not_made(con, monkeypatch):
    monkeypatch.setattr(cut_boxes, "MOST_BOXES", 5 * ROWS)
    with pytest.raises(
        ldiv_db.InfeasibleError, match=r"zip: .* values make more than 40,000,000 partitions .*unproved"
    ):
        run(con)
    made = []
    found = run(con, algorithm={"name": "cuts", "unproved": "publish"}, on_step=made.append).search
    assert sum(step.name == "boxes" for step in made) == 1  # those of leaves
    assert (found["proved"], found["bound"], found["gap"]) == (False, 0, 1)
    monkeypatch.undo()
    con.execute("DROP TABLE published")
    assert run(con).search["cost"] <= found["cost"]


def test_few_boxes_are_made_without_an_estimate_and_counts_of_partitions_travel_together(con):
    made, sent = [], []
    run(con, on_step=made.append, on_statement=sent.append)
    assert sum(step.name == "boxes" for step in made) > 1
    assert not [step for step in made if step.name == "sample"]
    counting = [statement.sql for statement in sent if statement.template == "cuts/count_parts"]
    assert counting
    assert not [sql for sql in counting if 'AS "c14"' in sql]  # of 14 values
