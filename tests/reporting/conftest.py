"""A hospital's table and its release, which reports are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import ldiv_db
from tests.reporting.hospitals import fill_hospital, hospital_policy


@pytest.fixture(scope="module")
def hospital() -> Iterator[Any]:
    """A connection to both, for the tests of one module."""
    with duckdb.connect(config={"threads": 1}) as con:
        fill_hospital(con)
        ldiv_db.run(con, hospital_policy())
        yield con
