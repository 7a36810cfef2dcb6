"""What a benchmark counts as concluded, and as wrong."""

import duckdb

from ldiv_db.database.templates import resource_folder
from tests.benchmarks.refine import held_against_truth


def test_who_is_where_refinement_excludes_them_is_wrong():
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE adult AS SELECT id, CASE WHEN id < 6 THEN 17 ELSE 18 END AS age FROM range(10) AS r(id)"
        )
        con.execute("ALTER TABLE adult ADD COLUMN education VARCHAR DEFAULT 'Bachelors'")
        con.execute("ALTER TABLE adult ADD COLUMN marital_status VARCHAR DEFAULT 'Divorced'")
        label = "CASE WHEN id < 5 THEN '17' ELSE '15-19' END AS age"
        con.execute(f"CREATE TABLE other AS SELECT id, {label}, education, marital_status FROM adult")
        found = held_against_truth(con, "other", 5, resource_folder("fixtures") / "adult", 10**6)
    assert found == {
        "release": "other", "tried": 10, "contradicted": 0, "coarse": 5, "values": 25, "possible": 20, "narrowed": 5,
        "wrong": 1, "untried": 0,
    }  # fmt: skip
