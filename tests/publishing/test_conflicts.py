"""Runs at the same time on one database: they make the same schemas, and none of them sees a conflict."""

from __future__ import annotations

import threading
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db.database.errors import ConflictError

TABLES = ("a", "b")


@pytest.fixture
def con(tmp_path: Any) -> Any:
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as con:
        for number, name in enumerate(TABLES):
            con.execute(
                f"CREATE TABLE {name} AS SELECT i % 5 + {number} AS age, 'd' || i % 9 AS s FROM range(20) AS r(i)"
            )
        yield con


def policy(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "source": name, "target": f"published.{name}", "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": ["s"], "require": [{"distinct": 3}], "algorithm": "mondrian", **changes,
    }  # fmt: skip


def together(con: Any, joins: bool = False, **changes: Any) -> list[BaseException]:
    """The errors of runs that all begin before any of them publishes."""
    errors: list[BaseException] = []
    ready = threading.Barrier(len(TABLES))

    def work(name: str) -> None:
        with con.cursor() as own:
            try:
                if joins:
                    own.begin()
                ready.wait(60)
                ldiv_db.run(own, policy(name, **changes))
                if joins:
                    own.commit()
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in TABLES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return errors


def published(con: Any) -> list[str]:
    found = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'published' ORDER BY 1").fetchall()
    return [name for (name,) in found]


def test_all_of_them_publish(con: Any) -> None:
    assert together(con) == []
    assert published(con) == list(TABLES)
    assert con.execute("SELECT count(*) FROM ldiv.run").fetchall() == [(2,)]


@pytest.mark.slow
def test_inside_transactions_schemas_are_made_before(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the caller's transactions can wait: the error says so; once schemas and ledger are there it is none."""
    # The key of fingerprints decides which locks the sources have: under this one they share none.
    monkeypatch.setattr("ldiv_db.publishing.history.secrets.token_hex", lambda size: "a" * 2 * size)
    for error in together(con, joins=True):
        assert isinstance(error, ConflictError)
    con.execute("DROP SCHEMA IF EXISTS published CASCADE")
    con.execute("CREATE SCHEMA published")
    ldiv_db.run(con, policy("a", target="published.before"))  # the first run draws the key of fingerprints
    assert together(con, joins=True) == []
    assert set(published(con)) == {*TABLES, "before"}
    assert together(con, target={"table": "published.one", "if_exists": "replace"}) == []


def test_a_run_waits_for_a_transaction_of_somebody_else(con: Any) -> None:
    with con.cursor() as other:
        other.execute("BEGIN")
        other.execute("CREATE SCHEMA published")
        errors: list[BaseException] = []

        def work() -> None:
            try:
                with con.cursor() as own:
                    ldiv_db.run(own, policy("a"))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(1.5)
        assert thread.is_alive(), "it waits"
        other.execute("COMMIT")
        thread.join(60)
    assert errors == [] and published(con) == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("nights", [1, 0])
def test_of_two_nights_at_once_one_is_published_and_the_other_may_try_again(con: Any, nights: int) -> None:
    con.execute("ALTER TABLE a ADD COLUMN id INTEGER; UPDATE a SET id = rowid")
    night = policy("a", key="id", target="published.nights")
    if nights:
        ldiv_db.run(con, night)
        con.execute("INSERT INTO a SELECT age, s, id + 1000 FROM a")
    errors: list[BaseException] = []

    def work() -> None:
        with con.cursor() as own:
            try:
                ldiv_db.run(own, night)
            except ldiv_db.LdivError as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    listed = con.execute("SELECT release, status FROM ldiv.release ORDER BY release").fetchall()
    assert listed == [(number + 1, "published") for number in range(nights + 2 - len(errors))]
    rows = 20 * (nights + 1)
    assert con.execute("SELECT count(*) FROM published.nights").fetchone() == (rows,)
    assert con.execute("SELECT count(*), count(DISTINCT key_hash) FROM ldiv.release_member").fetchone() == (rows, rows)
    assert all("another release was published in the meantime" in str(error) for error in errors)
    assert ldiv_db.run(con, night).figures["rows_first_published"] == 0
