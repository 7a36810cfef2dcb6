"""What a benchmark counts as concluded, and as wrong."""

import duckdb

from ldiv_db.database.templates import resource_folder
from ldiv_db.taxonomies.readers import read_taxonomy
from tests.benchmarks.refine import COLUMNS, held_against_truth, truth_of


def test_who_is_where_refinement_excludes_them_is_wrong():
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE adult AS SELECT id, CASE WHEN id < 6 THEN 17 ELSE 18 END AS age FROM range(10) AS r(id)"
        )
        con.execute("ALTER TABLE adult ADD COLUMN education VARCHAR DEFAULT 'Bachelors'")
        con.execute("ALTER TABLE adult ADD COLUMN marital_status VARCHAR DEFAULT 'Divorced'")
        label = "CASE WHEN id < 5 THEN '17' ELSE '15-19' END AS age"
        con.execute(f"CREATE TABLE other AS SELECT id, {label}, education, marital_status FROM adult")
        folder = resource_folder("fixtures") / "adult" / "taxonomies"
        truth = truth_of(con, "other", "adult", "id", {one: read_taxonomy(folder / f"{one}.csv") for one in COLUMNS})
    assert truth is not None and truth.cells_not_least() == 0
    assert held_against_truth(truth, 5, 10**6) == {
        "tried": 10, "contradicted": 0, "coarse": 5, "values": 25, "possible": 20, "narrowed": 5,
        "wrong": 1, "untried": 0, "cells": 30,
    }  # fmt: skip
