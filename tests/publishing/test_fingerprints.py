"""Fingerprints of rows and policies: equal for what publishes the same, and worth nothing without their key."""

from __future__ import annotations

from typing import Any

import pytest
from visits import POLICY, place

import ldiv_db
from ldiv_db.publishing.fingerprints import keyed

AGAIN = POLICY | {"over_time": "independent"}


def test_a_hash_depends_on_its_key() -> None:
    assert keyed("one", [1]) == keyed("one", [1])
    assert keyed("one", [1]) != keyed("two", [1]) != keyed("two", [2])


def test_rows_and_requirements_are_in_them(con: Any) -> None:
    place(con)
    ldiv_db.run(con, AGAIN)
    ldiv_db.run(con, AGAIN | {"require": [{"distinct": 3}]})
    con.execute("UPDATE visits SET dx = 'b' WHERE zip = '1' AND dx = 'a'")
    ldiv_db.run(con, AGAIN)
    found = con.execute(
        "SELECT s.hash_key, s.rows_hash, s.policy_hash FROM ldiv.run_secret s JOIN ldiv.run r USING (run_id)"
        " ORDER BY r.finished_at"
    ).fetchall()
    (key, first, distinct_2), (_, second, distinct_3), (_, third, again) = found
    assert {row[0] for row in found} == {key}
    assert first == second != third and distinct_2 == again != distinct_3


@pytest.mark.again
def test_a_release_that_was_changed_is_made_anew(con: Any) -> None:
    place(con)
    ldiv_db.run(con, AGAIN)
    released = con.execute("FROM released").fetchall()
    assert ldiv_db.run(con, AGAIN).earlier.unchanged
    con.execute("UPDATE released SET dx = 'e' WHERE dx = 'a'")
    ldiv_db.run(con, AGAIN)
    assert con.execute("FROM released").fetchall() == released
