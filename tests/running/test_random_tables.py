"""Random tables through the whole of a run, held against the oracle."""

import tempfile
from pathlib import Path

import duckdb
import pytest
import tables
from strategies import search, seeded, some

import ldiv_db

WAYS = ("bisect", "refine", "greedy")


@pytest.mark.parametrize("select", some(WAYS, 1))
@search(1, draw=seeded)
def test_release_is_what_the_oracle_says(select, draw):
    case = tables.random_case(draw, select)
    with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
        case.place(con, Path(folder))
        result = ldiv_db.run(con, case.policy, folder=folder)
        tables.verify(case, result, tables.published(con, case))
