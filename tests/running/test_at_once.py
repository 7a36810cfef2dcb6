"""Two runs of one source at the same time: what the second publishes is what it would if the first had come before."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tables
from strategies import some
from there_beds import place, policy, released, rows_of

import ldiv_db
from ldiv_db.running import run as running

PEOPLE = {"id": "INTEGER", "age": "INTEGER", "s": "VARCHAR"}
POLICY = {
    "source": "people", "identifiers": ["id"], "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"],
    "require": [{"unique_distinct": 3}], "algorithm": {"name": "bsgi", "select": "bisect"},
}  # fmt: skip
SERIES = {**{name: value for name, value in POLICY.items() if name != "identifiers"}, "key": "id"}
TRANSPARENT = {**POLICY, "transparent": True, "algorithm": "bsgi"}


@pytest.fixture
def con(tmp_path: Path) -> Any:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        tables.fill(connection, "people", PEOPLE, [(i, 20 + i * 37 % 60, f"d{i * i % 61 % 9}") for i in range(24)])
        yield connection


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], list[Any]]:
    """Has something else done once, after the next run has looked and before it publishes; gives what came of it."""

    def arrange(other: Callable[[], Any]) -> list[Any]:
        done: list[Any] = []

        def work_out(ready: Any, workers: Any) -> Any:
            monkeypatch.setattr(running, "work_out", plain)
            done.append(other())
            return plain(ready, workers)

        plain = running.work_out
        monkeypatch.setattr(running, "work_out", work_out)
        return done

    return arrange


def rows_in(con: Any, folder: Path, target: Any) -> list[Any]:
    """What was published, whatever kind of place that is."""
    if isinstance(target, str):
        return con.execute(f"FROM {target} ORDER BY ALL").fetchall()
    if "table" not in target:
        return con.execute(f"FROM '{folder / target['file']}' ORDER BY ALL").fetchall()
    with duckdb.connect(str(folder / target["file"]), read_only=True) as there:
        return there.execute(f"FROM {target['table']} ORDER BY ALL").fetchall()


@pytest.mark.parametrize("form", some([POLICY, TRANSPARENT], 1), ids=["bsgi", "transparent"])
@pytest.mark.parametrize(
    "targets",
    some(
        [
            ["a", "b"],
            [{"file": "a.parquet"}, {"file": "b.parquet"}],
            [{"file": "a.db", "table": "t"}, {"file": "b.db", "table": "t"}],
        ],
        1,
    ),
    ids=["tables", "parquet", "databases"],
)
@pytest.mark.parametrize("is_first", some([True, False], 1), ids=["new ledger", "used ledger"])
def test_the_second_of_two_equal_runs_publishes_the_release_of_the_first(
    con: Any, tmp_path: Path, meanwhile: Any, form: Any, targets: Any, is_first: bool
) -> None:
    if not is_first:  # whoever published another source has drawn the key of fingerprints already
        tables.fill(con, "others", PEOPLE, [(i, i, f"d{i % 5}") for i in range(20)])
        ldiv_db.run(con, POLICY | {"source": "others", "target": "of_others"})
    with con.cursor() as other:
        done = meanwhile(lambda: ldiv_db.run(other, form | {"target": targets[0]}, tmp_path))
        second = ldiv_db.run(con, form | {"target": targets[1]}, tmp_path)
    assert second.earlier.unchanged == done[0].run_id
    assert rows_in(con, tmp_path, targets[0]) == rows_in(con, tmp_path, targets[1])
    assert [path.name for path in tmp_path.iterdir() if "ldiv" in path.name] == []


def test_another_name_of_the_same_rows_is_the_same_source(con: Any, meanwhile: Any) -> None:
    """As the models of dbt, each of which reads a view of its own."""
    con.execute("CREATE VIEW mine AS FROM people; CREATE VIEW yours AS FROM people")
    with con.cursor() as other:
        done = meanwhile(lambda: ldiv_db.run(other, POLICY | {"source": "mine", "target": "a"}))
        second = ldiv_db.run(con, POLICY | {"source": "yours", "target": "b"})
    assert second.earlier.unchanged == done[0].run_id


def test_another_policy_of_the_same_rows_is_a_draft_that_says_so(con: Any, meanwhile: Any) -> None:
    with con.cursor() as other:
        done = meanwhile(lambda: ldiv_db.run(other, POLICY | {"target": "a"}))
        second = ldiv_db.run(con, POLICY | {"require": [{"unique_distinct": 2}], "target": "b"})
    assert any(done[0].run_id in note and "Hand out only one of the two" in note for note in second.said)


@pytest.mark.parametrize("independent", some([False, True], 1))
def test_rows_that_were_read_before_they_changed_are_read_again(con: Any, meanwhile: Any, independent: bool) -> None:
    asked = POLICY | ({"over_time": "independent"} if independent else {})
    with con.cursor() as other:

        def change() -> Any:
            other.execute("DELETE FROM people WHERE id < 6")
            return ldiv_db.run(other, asked | {"target": "a"})

        done = meanwhile(change)
        second = ldiv_db.run(con, asked | {"target": "b"})
    assert second.loss.rows_published == 18 and second.earlier.unchanged == done[0].run_id


@pytest.mark.parametrize("series_first", some([True, False], 1))
def test_a_series_and_a_run_stop_each_other(con: Any, monkeypatch: pytest.MonkeyPatch, series_first: bool) -> None:
    from ldiv_db.running import release_classes  # noqa: PLC0415

    asked = [POLICY | {"target": "a"}, SERIES | {"target": "b"}]
    first, second = asked[::-1] if series_first else asked
    module, plain = (running, running.work_out) if series_first else (release_classes, release_classes.work_out)
    with con.cursor() as other:

        def work_out(ready: Any, workers: Any) -> Any:
            monkeypatch.setattr(module, "work_out", plain)
            ldiv_db.run(other, first)
            return plain(ready, workers)

        monkeypatch.setattr(module, "work_out", work_out)
        with pytest.raises(ldiv_db.PolicyError, match="published this source"):
            ldiv_db.run(con, second)
    assert con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY 1").fetchall() == [
        *([("b",)] if series_first else [("a",)]), ("people",)
    ]  # fmt: skip


@pytest.mark.slow
def test_within_transactions_of_the_caller_the_second_fails_and_may_run_again(con: Any) -> None:
    ldiv_db.run(con, POLICY | {"target": "before", "over_time": "independent"})  # makes the ledger
    con.execute("UPDATE people SET age = age + 1")
    asked = POLICY | {"over_time": "independent", "require": [{"unique_distinct": 2}]}
    with con.cursor() as one, con.cursor() as other:
        one.begin()
        other.begin()
        first = ldiv_db.run(one, asked | {"target": "a"})
        with pytest.raises(ldiv_db.DatabaseError, match="another run published people at the same time"):
            ldiv_db.run(other, asked | {"target": "b"})
        one.commit()
        other.rollback()
        assert ldiv_db.run(other, asked | {"target": "b"}).earlier.unchanged == first.run_id


def test_others_are_not_held_off(con: Any) -> None:
    tables.fill(con, "others", PEOPLE, [(i, i, f"d{i % 5}") for i in range(20)])
    ldiv_db.run(con, POLICY | {"source": "others", "target": "before"})
    with con.cursor() as one, con.cursor() as other:
        one.begin()
        ldiv_db.run(one, POLICY | {"target": "a"})
        ldiv_db.run(other, POLICY | {"source": "others", "target": "b"})
        one.commit()


@pytest.mark.slow
def test_equal_runs_of_threads_are_one_release(con: Any) -> None:
    found: dict[str, Any] = {}
    ready = threading.Barrier(3)

    def publish(target: str) -> None:
        with con.cursor() as own:
            ready.wait(60)
            found[target] = ldiv_db.run(own, TRANSPARENT | {"target": target})

    threads = [threading.Thread(target=publish, args=(target,)) for target in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(found) == 3 and sum(result.earlier.unchanged is None for result in found.values()) == 1
    rows = [con.execute(f"FROM {target} ORDER BY ALL").fetchall() for target in "abc"]
    assert rows[0] == rows[1] == rows[2]


@pytest.mark.slow
def test_in_a_warehouse_the_second_of_two_runs_counts_again(there: Any, con: Any, meanwhile: Any) -> None:
    """Where tables are taken back the database refuses the second, elsewhere that finds the first in the ledger."""
    place(there, con, rows_of(random.Random(1), 24))
    second = there.another()
    asked = {name: value for name, value in policy().items() if name not in ("seed", "over_time", "target")}
    with closing(second) if second is not there.connection else nullcontext():
        done = meanwhile(lambda: ldiv_db.run(there.connection, asked | {"target": "released"}))
        found = ldiv_db.run(second, asked | {"target": "again"})
    try:
        assert found.earlier.unchanged == done[0].run_id
        again = there.query("SELECT age, town, dose, secret FROM again")
        assert released(there) == sorted(map(repr, map(tuple, again)))
    finally:
        there.drop("again")
        there.connection.commit()
