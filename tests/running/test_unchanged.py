"""A run that has the same to publish: nothing is planned if the release stands, and it is made anew if it does not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tables
from strategies import some
from there_beds import place, policy, released, rows_of

import ldiv_db
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.publishing import ledger
from ldiv_db.running import run

pytestmark = pytest.mark.again

POLICY = {
    "source": "people", "target": {"table": "released", "if_exists": "replace"}, "identifiers": ["id"],
    "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": {"flat": True}}}, "sensitive": ["secret"],
    "keep": ["ward"], "require": [{"frequency": 2}], "algorithm": "topdown", "individual": "id",
}  # fmt: skip
#: What tells two runs of one release apart.
OWN = {"run_id", "seconds", "notes", "unchanged", "snapshot"}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that were planned."""
    found, plans = [], run.work_out
    monkeypatch.setattr(run, "work_out", lambda ready, workers: (found.append(ready), plans(ready, workers))[1])
    return found


def fill(con: Any) -> Any:
    draw = random.Random(7)
    rows = [(n, draw.randrange(40), draw.choice("ab"), draw.choice("uvwxyz"), draw.choice("st")) for n in range(24)]
    types = {"id": "INTEGER", "age": "INTEGER", "town": "VARCHAR", "secret": "VARCHAR", "ward": "VARCHAR"}
    tables.fill(con, "people", types, rows)
    return con


@pytest.fixture
def people(con: Any) -> Any:
    return fill(con)


INDEPENDENT = {**POLICY, "individual": None, "over_time": "independent"}


@pytest.fixture(scope="module")
def published() -> Iterator[tuple[Any, Any]]:
    with duckdb.connect(config={"threads": 1}) as con:
        yield fill(con), ldiv_db.run(con, INDEPENDENT)


@pytest.fixture
def release(published: tuple[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """A connection and the run that was made on it, as it was whatever a test does."""
    published[0].begin()
    yield published
    published[0].rollback()


def assert_again(first: Any, again: Any) -> None:
    assert again.earlier.unchanged == first.run_id != again.run_id
    ours, theirs = (
        {k: v for k, v in found.as_dict(show_seed=True).items() if k not in OWN} for found in (first, again)
    )
    assert ours == theirs and again.text() and again.recoding == first.recoding
    assert again.audits == first.audits and again.loss == first.loss


TARGETS = [
    {"file": "released.parquet"}, {"table": "released"}, {"file": "released.csv"},
    {"file": "released.duckdb", "table": "released"}, {"database": "other", "table": "released"},
]  # fmt: skip


@pytest.mark.parametrize("more", some([{}, {"algorithm": "bsgi", "require": [{"unique_distinct": 3}]}], 1), ids=str)
@pytest.mark.parametrize("target", some(TARGETS, 1), ids=str)
def test_a_release_that_stands_is_not_planned(
    people: Any, planned: list[Any], tmp_path: Path, target: Any, more: Any
) -> None:
    asked = POLICY | more | {"target": target | {"if_exists": "replace"}}
    if "database" in target:
        duckdb.connect(str(tmp_path / "other.duckdb")).close()
        asked |= {"databases": {"other": "other.duckdb"}}
    first = ldiv_db.run(people, asked, tmp_path)
    file = tmp_path / target["file"] if "file" in target else None
    before = file.stat() if file else None
    for _ in range(2):  # the second time it is the release of a run that planned nothing either
        again = ldiv_db.run(people, asked, tmp_path)
        assert_again(first, again)
        first = again
    assert len(planned) == 1
    assert file is None or (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert people.execute("SELECT count(*), count(DISTINCT run_id) FROM ldiv.run").fetchall() == [(3, 3)]


@pytest.mark.parametrize(
    "change",
    some(
        [
            "UPDATE released SET ward = 'q' WHERE rowid = 3",
            "UPDATE released SET secret = 'q' WHERE rowid = 3",
            "DELETE FROM released WHERE rowid = 3",
            "INSERT INTO released FROM released LIMIT 1",
            "DELETE FROM released",
            "ALTER TABLE released ADD COLUMN more INTEGER",
            "ALTER TABLE released RENAME COLUMN ward TO station",
            "ALTER TABLE released ALTER ward TYPE BLOB",
            "DROP TABLE released",
        ],
        1,
    ),
)
def test_a_release_that_somebody_changed_is_made_again(release: Any, planned: list[Any], change: str) -> None:
    con, first = release
    before = con.execute("DESCRIBE released").fetchall(), con.execute("FROM released").fetchall()
    con.execute(change)
    assert_again(first, ldiv_db.run(con, INDEPENDENT))
    assert len(planned) == 1
    assert before == (con.execute("DESCRIBE released").fetchall(), con.execute("FROM released").fetchall())


def _withdrawn(con: Any, first: Any, again: Callable[..., Any]) -> Any:
    ledger.withdraw_run(run.Engine(con), first.run_id)
    return again()


CHANGES: dict[str, tuple[Callable[..., Any], bool]] = {
    "withdrawn": (_withdrawn, False),
    "append": (lambda con, _, again: again(target={"table": "released", "if_exists": "append"}), True),
    "row": (lambda con, _, again: (con.execute("UPDATE people SET age = 41 WHERE id = 3"), again())[1], False),
    "taxonomy": (lambda con, _, again: again(quasi_identifiers={"age": {"numeric": True}, "town": {}}), False),
    "requirement": (lambda con, _, again: again(require=[{"frequency": 3}]), False),
    "elsewhere": (lambda con, _, again: again(target={"table": "elsewhere", "if_exists": "replace"}), True),
    "answers": (
        lambda con, _, again: again(preserve=["SELECT town, avg(age) AS mean FROM source GROUP BY 1"]), True),
    "no report": (lambda con, _, again: (con.execute("DELETE FROM ldiv.run_report_secret"), again())[1], True),
}  # fmt: skip


@pytest.mark.parametrize("change", some(CHANGES, 2))
def test_what_is_not_the_same_is_planned(release: Any, planned: list[Any], change: str) -> None:
    con, first = release
    act, is_unchanged = CHANGES[change]
    again = act(con, first, lambda **more: ldiv_db.run(con, INDEPENDENT | more))
    assert len(planned) == 1 and (again.earlier.unchanged == first.run_id) == is_unchanged
    assert is_unchanged or again.seed != first.seed


def test_what_was_not_measured_is_planned(release: Any, planned: list[Any]) -> None:
    con, _ = release
    measured = ldiv_db.run(con, INDEPENDENT, kl=True)
    assert len(planned) == 1 and measured.earlier.unchanged
    assert_again(measured, ldiv_db.run(con, INDEPENDENT, kl=True))
    assert len(planned) == 1


@pytest.mark.slow
@pytest.mark.parametrize("keep", some([[], ["rid"]], 1), ids=str)
def test_a_release_in_a_warehouse_is_counted_and_not_planned(
    there: Any, con: Any, planned: list[Any], keep: Any
) -> None:
    place(there, con, rows_of(random.Random(5), 24))
    asked = policy(identifiers=[] if keep else ["rid"], keep=keep, over_time=None)
    columns = ", ".join(["age", "town", "dose", "secret", *keep])
    first = ldiv_db.run(there.connection, asked)
    before = released(there, columns)
    second = ldiv_db.run(there.connection, asked)
    assert_again(first, second)
    if keep and not Warehouse(there.connection).traits.hashed:  # no function of its own hashes rows
        assert len(planned) == 2
        return
    assert released(there, columns) == before and len(planned) == 1
    values, where = ("rid = 0", "rid = 3") if keep else ("secret = NULL", "age IS NULL")
    there.execute(Warehouse(there.connection).traits.update.format(table="released", values=values, where=where))
    there.connection.commit()
    assert_again(second, ldiv_db.run(there.connection, asked))
    assert released(there, columns) == before and len(planned) == 2
