"""Random tables through the whole of a run, held against the oracle."""

import random
import tempfile
from pathlib import Path

import duckdb
import pytest
import tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from times import often, seeds

import ldiv_db

WAYS = ("bisect", "refine", "greedy")


@pytest.mark.parametrize("select", WAYS)
@settings(
    max_examples=often(6), deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
@given(draw=st.randoms(use_true_random=False))
def test_release_is_what_the_oracle_says(select, draw):
    case = tables.random_case(draw, select)
    with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
        case.place(con, Path(folder))
        result = ldiv_db.run(con, case.policy, folder=folder)
        tables.verify(case, result, tables.published(con, case))


@pytest.mark.parametrize("select", WAYS)
@pytest.mark.parametrize("seed", seeds(4))
def test_release_of_seeded_tables_is_what_the_oracle_says(select, seed, con, tmp_path):
    """As above with tables that are always full of NULLs, ties and several taxonomies."""
    case = tables.random_case(random.Random(seed), select, largest=60)
    case.place(con, tmp_path)
    result = ldiv_db.run(con, case.policy, folder=tmp_path)
    tables.verify(case, result, tables.published(con, case))


@pytest.mark.slow
@pytest.mark.parametrize("select", WAYS)
@pytest.mark.parametrize("seed", seeds(1))
def test_same_table_for_any_order_and_number_of_threads(select, seed, tmp_path):
    case = tables.random_case(random.Random(1000 + seed), select, largest=80)
    tables.assert_same_in_any_order(case, tmp_path, seed)


def test_rerun_in_place_gives_the_same_table(con, tmp_path):
    case = tables.random_case(random.Random(5), "bisect")
    case.place(con, tmp_path)
    case.policy["target"] = {"table": "out.released", "if_exists": "replace"}
    ldiv_db.run(con, case.policy, folder=tmp_path)
    first = con.execute("SELECT * FROM out.released").fetchall()
    ldiv_db.run(con, case.policy, folder=tmp_path)
    assert con.execute("SELECT * FROM out.released").fetchall() == first


def test_rows_come_in_an_order_given_by_what_is_published(con, tmp_path):
    """Rows published alike stand sorted by their sensitive value, not as they came."""
    rows = [(30 + i % 5, f"v{(7 * i) % 6}") for i in range(60)]
    tables.fill(con, "source", {"age": "INTEGER", "secret": "VARCHAR"}, rows)
    policy = {
        "source": "source", "target": "released", "sensitive": ["secret"], "require": [{"unique_distinct": 3}],
        "quasi_identifiers": {"age": {"numeric": True}},
    }  # fmt: skip
    ldiv_db.run(con, policy)
    release = con.execute("SELECT class_id, age, secret FROM released").fetchall()
    assert release == sorted(release, key=lambda row: (row[0], row[2]))
    labels = {row[0]: row[1] for row in release}
    assert list(labels.values()) == sorted(labels.values()), "class ids follow the labels"
