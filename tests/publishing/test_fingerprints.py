"""Fingerprints of rows and policies: equal for what publishes the same, and worth nothing without their key."""

from __future__ import annotations

from typing import Any

import pytest
from tables import fill

import ldiv_db
from ldiv_db.publishing.fingerprints import keyed

POLICY: dict[str, Any] = {
    "source": "visits", "target": {"table": "released", "if_exists": "replace"}, "quasi_identifiers": ["zip"],
    "sensitive": ["dx"], "require": [{"distinct": 2}], "algorithm": {"name": "bsgi", "select": "bisect"}, "seed": 1,
    "over_time": "independent",
}  # fmt: skip
COLUMNS = {"zip": "VARCHAR", "dx": "VARCHAR"}
ROWS = [(f"{i // 4}", "abcd"[i % 4]) for i in range(8)]


def test_a_hash_depends_on_its_key() -> None:
    assert keyed("one", [1]) == keyed("one", [1])
    assert keyed("one", [1]) != keyed("two", [1]) != keyed("two", [2])


def test_rows_and_requirements_are_in_them(con: Any) -> None:
    fill(con, "visits", COLUMNS, ROWS)
    ldiv_db.run(con, POLICY)
    ldiv_db.run(con, POLICY | {"require": [{"distinct": 3}]})
    con.execute("UPDATE visits SET dx = 'b' WHERE zip = '1' AND dx = 'a'")
    ldiv_db.run(con, POLICY)
    found = con.execute(
        "SELECT s.hash_key, s.rows_hash, s.policy_hash FROM ldiv.run_secret s JOIN ldiv.run r USING (run_id)"
        " ORDER BY r.finished_at"
    ).fetchall()
    (key, first, distinct_2), (_, second, distinct_3), (_, third, again) = found
    assert {row[0] for row in found} == {key}
    assert first == second != third and distinct_2 == again != distinct_3


@pytest.mark.again
def test_a_release_that_was_changed_is_made_anew(con: Any) -> None:
    fill(con, "visits", COLUMNS, ROWS)
    ldiv_db.run(con, POLICY)
    released = con.execute("FROM released").fetchall()
    assert ldiv_db.run(con, POLICY).earlier.unchanged
    con.execute("UPDATE released SET dx = 'e' WHERE dx = 'a'")
    ldiv_db.run(con, POLICY)
    assert con.execute("FROM released").fetchall() == released
