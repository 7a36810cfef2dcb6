"""Checks under a policy that leaves it to the source which columns have bounds: the published table shows it."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import some

import ldiv_db
from ldiv_db import PolicyError

COLUMNS = {"quasi_identifiers": {"town": {}, "age": {}}, "sensitive": ["cost"], "target": "released"}
SHARED = {"require": [{"frequency": 2}], "output": {"bounds": True}, "over_time": "independent", "algorithm": "topdown"}
POLICIES = {
    "one": {"source": "people", "identifiers": ["no"], **COLUMNS, **SHARED},
    "several": {"individual": "no", "tables": {"people": {"source": "people", "person": "no", **COLUMNS}}, **SHARED},
}


@pytest.fixture
def published(con: Any) -> Any:
    con.execute(
        "CREATE TABLE people AS"
        " SELECT i AS no, ['Bari', 'Oslo', 'Rome'][1 + i % 3] AS town, i % 7 AS age, i % 4 AS cost FROM range(24) r(i)"
    )
    return con


def checked(con: Any, kind: str) -> list[Any]:
    return list(ldiv_db.check(con, "released" if kind == "one" else None, policy=POLICIES[kind]))


@pytest.mark.parametrize("kind", some(POLICIES))
def test_what_it_cannot_be_is_refused(published: Any, kind: str) -> None:
    ldiv_db.run(published, POLICIES[kind])
    published.execute("ALTER TABLE released ADD age VARCHAR")
    with pytest.raises(PolicyError, match="only its release shows whether age has them"):
        checked(published, kind)
    published.execute("ALTER TABLE released DROP age; ALTER TABLE released DROP age_min")
    with pytest.raises(PolicyError, match=r"has no column '?age"):
        checked(published, kind)
