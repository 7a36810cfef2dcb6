"""A warehouse for the tests of runs there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import servers
from there_beds import wipe

#: The servers whose connections are those of a warehouse; others are skipped.
THERE = ("postgres", "sqlite", "snowflake", "clickhouse", "bigquery", "duckdb")

#: What tests are run on in each pass, and those that are about PostgreSQL.
OF_EVERY_PASS = ("sqlite",)
ABOUT_POSTGRES = ("test_default_privileges_grant_nobody_the_secrets_of_the_ledger",)

duckdb_there = cache(servers.DuckDBThere)


@pytest.fixture
def there(server: Any) -> Iterator[Any]:
    """A server with nothing in it but what a test makes."""
    if server.dialect not in THERE:
        pytest.skip(f"{server.dialect} is no warehouse here")
    if server.dialect == "duckdb":
        pytest.importorskip("adbc_driver_manager")
        server = duckdb_there()
    wipe(server)
    yield server
    wipe(server)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of every pass is SQLite alone, unless a test is about another server; a whole run has all that are installed."""
    for item in items:
        called = getattr(item, "callspec", None)
        if not called or "there" not in getattr(item, "fixturenames", ()):
            continue
        server = called.params.get("server")
        if server not in OF_EVERY_PASS and (server, item.originalname) not in {("postgres", n) for n in ABOUT_POSTGRES}:
            item.add_marker(pytest.mark.slow)
