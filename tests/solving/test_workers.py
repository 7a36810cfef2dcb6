"""Workers: what a process that fails, is killed or is interrupted leaves, and what is said of it."""

import _thread
import os
import pickle
import signal
from pathlib import Path

import duckdb
import pytest
from people_in_parts import COLUMNS, people, policy_of
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, InfeasibleError, PolicyError, Problem
from ldiv_db.solving import workers
from ldiv_db.solving.solve import combined

pytestmark = pytest.mark.usefixtures("no_remedies")

POLICY = policy_of("mondrian", [{"distinct": 2}], 30)


@pytest.fixture
def database(tmp_path, monkeypatch):
    """A database file in a folder of its own, with people in it."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("w.duckdb", config={"threads": 1}) as con:
        fill(con, "source", COLUMNS, people(80))
        yield con
    assert [path.name for path in tmp_path.iterdir()] == ["w.duckdb"]


def tables_of(con):
    return {name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def killing(monkeypatch, times):
    """Has the first workers that are asked be killed; the signals that they died by."""
    asked, killed = workers.Crew._asked, []

    def ask(crew, worker, node):
        if len(killed) < times:
            killed.append(node)
            os.kill(worker.pid, signal.SIGKILL)
            worker.wait()
        return asked(crew, worker, node)

    monkeypatch.setattr(workers.Crew, "_asked", ask)
    return killed


@pytest.mark.slow
def test_the_part_of_a_worker_that_is_killed_is_solved_again(database, monkeypatch):
    ldiv_db.run(database, POLICY, workers=1)
    expected = database.execute("FROM out").fetchall()
    killed = killing(monkeypatch, 1)
    ldiv_db.run(database, POLICY, workers=2)
    assert database.execute("FROM out").fetchall() == expected and len(killed) == 1


def test_workers_that_are_killed_again_end_the_run_and_nothing_is_published(database, monkeypatch):
    killing(monkeypatch, 100)
    with pytest.raises(DatabaseError, match="a worker process died with exit code -9"):
        ldiv_db.run(database, POLICY, workers=2)
    assert tables_of(database) == {"source"}


@pytest.mark.usefixtures("own_handler")
def test_ctrl_c_ends_all_workers(database, monkeypatch):
    crews, asked = [], workers.Crew._asked

    def ask(crew, worker, node):
        if not crews:  # once: a second one would be pytest's
            crews.append(crew)
            _thread.interrupt_main()
        return asked(crew, worker, node)

    monkeypatch.setattr(workers.Crew, "_asked", ask)
    monkeypatch.setattr(workers, "PAUSE", 0.05)
    with pytest.raises(KeyboardInterrupt):
        ldiv_db.run(database, POLICY, workers=2)
    assert all(worker.poll() is not None for worker in crews[0]._workers)
    assert "out" not in tables_of(database)


@pytest.mark.slow
def test_an_error_of_a_worker_is_the_error_of_the_run(database, monkeypatch):
    monkeypatch.setattr(workers, "scatter", lambda engine, rows, column, folder: None)  # no files of rows
    with pytest.raises(DatabaseError, match="No files found"):
        ldiv_db.run(database, POLICY, workers=2)
    assert tables_of(database) == {"source"}


@pytest.mark.parametrize(
    "error",
    [InfeasibleError("too few", 3), PolicyError([Problem("require", "is wrong", "do better")]), DatabaseError("full")],
    ids=lambda error: type(error).__name__,
)
def test_errors_are_carried_whole(error):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error) and str(found) == str(error) and vars(found) == vars(error)


def test_the_folder_of_parts_is_private_and_one_that_was_left_is_removed(database, tmp_path):
    left = tmp_path / (".spill.ldiv-" + 32 * "a")
    left.mkdir()
    (left / "rows.parquet").touch()
    with workers._private_folder(Engine(database)) as folder:
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
        assert not left.exists()


def test_as_many_workers_as_threads_and_no_more_than_parts(con):
    engine = Engine(con)
    assert [workers.workers_for(wanted, engine, 3) for wanted in (None, 1, 2, 9)] == [1, 1, 2, 3]
    con.execute("SET threads = 4")
    assert workers.workers_for(None, Engine(con), 9) == 4


def test_what_parts_say_is_put_together():
    searches = [
        {"select": "refine", "residue_rows": 1, "exchanges": [3, 2], "exchange_rounds": 2, "loss": 0.1},
        {"select": "refine", "residue_rows": 2, "exchanges": [1], "exchange_rounds": 1, "loss": 0.2, "more": 1},
    ]
    assert combined(searches) == {"select": "refine", "residue_rows": 3, "exchanges": [4, 2], "exchange_rounds": 2}


def test_a_worker_ends_with_the_process_that_started_it(tmp_path):
    crew = workers.Crew(tmp_path, b"", [(1, 1)])
    worker = crew._start()
    worker.stdin.close()
    assert worker.wait(60) == 0
    assert list(Path(tmp_path).iterdir()) == []
