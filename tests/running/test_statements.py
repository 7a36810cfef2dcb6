"""How many statements a small run sends, by the database's own log: numbers that a change may lower."""

from __future__ import annotations

import duckdb
import pytest

import ldiv_db

#: The most statements of a first run of 24 rows, the catalog's migrations among them: four are what a later run of the
#: same rows needs to know that nothing changed.
MOST = {"bsgi": 167, "auto": 316}


@pytest.mark.parametrize("algorithm", MOST)
def test_a_small_run_sends_few_statements(algorithm, tmp_path):
    with duckdb.connect(tmp_path / "clinic.duckdb") as connection:
        people = "SELECT i AS id, 20 + i * 7 % 24 AS age, 'd' || (i % 4) AS illness FROM range(24) t(i)"
        connection.execute(f"CREATE TABLE people AS {people}")
        connection.execute("CALL enable_logging('QueryLog')")
        policy = {
            "source": "people",
            "target": "published",
            "identifiers": ["id"],
            "quasi_identifiers": {"age": {"numeric": True}},
            "sensitive": ["illness"],
            "require": [{"unique_distinct": 3} if algorithm == "bsgi" else {"frequency": 3}],
            "algorithm": algorithm,
        }
        ldiv_db.run(connection, policy)
        (sent,) = connection.execute("SELECT count(*) FROM duckdb_logs WHERE type = 'QueryLog'").fetchone()
    assert 0 < sent <= MOST[algorithm]
