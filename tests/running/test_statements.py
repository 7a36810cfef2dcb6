"""How many statements a small run sends, and how long those of many columns are.

The time to plan a join grows with the cube of what it joins.
"""

from __future__ import annotations

from collections import defaultdict

import duckdb
import pytest
import sqlglot
from sqlglot import exp
from strategies import some

import ldiv_db
from ldiv_db.database.context import Listener
from tests.benchmarks.wide import make_people, wide_policy

#: The most statements of a first run of 24 rows, the catalog's migrations among them: four are what a later run of the
#: same rows needs to know that nothing changed.
MOST = {"bsgi": 125, "auto": 200}


@pytest.mark.parametrize("algorithm", MOST)
def test_a_small_run_sends_few_statements(algorithm, tmp_path):
    with duckdb.connect(tmp_path / "clinic.duckdb") as connection:
        people = "SELECT i AS id, 20 + i * 7 % 24 AS age, 'd' || (i % 4) AS illness FROM range(24) t(i)"
        connection.execute(f"CREATE TABLE people AS {people}")
        connection.execute("CALL enable_logging('QueryLog')")
        policy = {
            "source": "people", "target": "published", "identifiers": ["id"],
            "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["illness"],
            "require": [{"unique_distinct": 3} if algorithm == "bsgi" else {"frequency": 3}], "algorithm": algorithm,
        }  # fmt: skip
        ldiv_db.run(connection, policy)
        (sent,) = connection.execute("SELECT count(*) FROM duckdb_logs WHERE type = 'QueryLog'").fetchone()
    assert 0 < sent <= MOST[algorithm]


#: Tables that one SELECT may join, however many columns there are.
MOST_JOINED = 12


def statements(columns, algorithm):
    """All that a run of so many quasi-identifiers sends."""
    sent = []
    with duckdb.connect() as connection:
        make_people(connection, 60, columns)
        ldiv_db.run(connection, wide_policy(columns, algorithm), listener=Listener(on_statement=sent.append))
    return sent


def longest(sent):
    """The characters of the longest statement of each template."""
    found = defaultdict(int)
    for statement in sent:
        found[statement.template] = max(found[statement.template], len(statement.sql))
    return found


def most_joined(statement):
    """The most tables that one SELECT of a statement joins."""
    if statement.sql.count("JOIN ") <= MOST_JOINED:
        return 0
    selects = sqlglot.parse_one(statement.sql, dialect="duckdb").find_all(exp.Select)
    return max(len(select.args.get("joins") or ()) for select in selects)


@pytest.mark.parametrize("algorithm", some(["topdown", "mondrian"], 1))
def test_no_select_joins_a_table_for_each_column(algorithm):
    wide = statements(14, algorithm)
    assert "recoding/input/encode_rows" in {s.template for s in wide if s.sql.count("JOIN ") > MOST_JOINED}
    assert {s.template: n for s in wide if (n := most_joined(s)) > MOST_JOINED} == {}


@pytest.mark.slow
def test_statements_grow_no_faster_than_columns():
    narrow, wide = statements(20, "topdown"), statements(40, "topdown")
    assert sum(len(s.sql) for s in wide) <= 2.2 * sum(len(s.sql) for s in narrow)
    before = longest(narrow)
    assert {name: size for name, size in longest(wide).items() if size > 2.2 * before[name]} == {}
    assert longest(wide)["measuring/answer_pairs"] <= 1.1 * before["measuring/answer_pairs"], "pairs come in batches"
