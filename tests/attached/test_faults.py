"""Processes, backends and servers that die in the middle, locks, refusals: the old release is there or the new."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import servers
from homes import SQL, policy_document
from strategies import some

import ldiv_db
from ldiv_db.database.context import Listener
from ldiv_db.database.errors import DatabaseError, LdivError
from ldiv_db.running.estimate import Estimate

REPLACED = {"table": "released", "if_exists": "replace"}


def at_statement(number: int, act: Callable[[], Any]) -> Listener:
    """Acts once, before the statement of that number is sent."""
    numbers = iter(range(1, 1_000_000))
    return Listener(on_statement=lambda _: act() if next(numbers) == number else None)


def statements_of(home: Any, **changes: Any) -> list[str]:
    """The statements of a run, in their order."""
    sent: list[str] = []
    listener = Listener(on_statement=lambda statement: sent.append(statement.sql))
    ldiv_db.run(home.address, policy_document(target=REPLACED, **changes), folder=home.folder, listener=listener)
    return sent


def first(sent: list[str], word: str) -> int:
    """The number of the first statement with the word."""
    return next(number for number, sql in enumerate(sent, 1) if word in sql)


def state(home: Any) -> tuple[list[Any], list[Any]]:
    return sorted(home.sql("SELECT * FROM released")), sorted(home.sql(f"SELECT run_id FROM {home.table('run')}"))


@pytest.mark.parametrize("word", some(["COMMIT", "INSERT INTO", "snapshot", "BEGIN", "DELETE FROM", "run_requirement"]))
def test_a_backend_that_is_ended_is_an_error_and_nothing_else(word: str, published: Any) -> None:
    sent = statements_of(published)
    before = state(published)

    def end() -> None:
        published.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    listener = at_statement(first(sent, word), end)
    policy = policy_document(target=REPLACED, seed=9)
    try:
        ldiv_db.run(published.address, policy, folder=published.folder, listener=listener)
    except DatabaseError as error:
        assert "the server ended the connection" in str(error), str(error)
        assert state(published) == before
    assert len(published.run(target=REPLACED)["run_id"]) == 32


@pytest.fixture
def own_server(postgres: Any) -> Iterator[Any]:
    """A server of this test's own, which it may stop."""
    folder = servers._cluster()
    words = f"host={folder} user=postgres dbname=postgres"
    address = f"postgres:{words}"
    sql = SQL["postgres"](address)
    sql("CREATE TABLE patients (name text, age int, country text, disease text, ward text)")
    for row in postgres.sql("SELECT * FROM patients"):
        sql(f"INSERT INTO patients VALUES {row}")
    postgres.address, postgres.sql, postgres.server = address, sql, folder
    yield postgres
    servers._stop_cluster(folder)


def control(folder: Path, *words: str) -> None:
    servers._unprivileged(
        [str(servers._program("pg_ctl")), "-D", f"{folder}/data", "-w", "-l", f"{folder}/log", *words]
    )


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle(own_server: Any) -> None:
    sent = statements_of(own_server)
    before = state(own_server)
    settings = f"-c listen_addresses='' -c unix_socket_directories={own_server.server}"
    for word in ("snapshot", "INSERT INTO", "COMMIT"):
        listener = at_statement(first(sent, word), lambda: control(own_server.server, "-m", "immediate", "stop"))
        with pytest.raises(DatabaseError, match=r"the server ended the connection|no server answers"):
            ldiv_db.run(
                own_server.address, policy_document(target=REPLACED), folder=own_server.folder, listener=listener
            )
        control(own_server.server, "-o", settings, "start")
        assert state(own_server) == before
    own_server.run(target=REPLACED)
    assert len(state(own_server)[1]) == 2


#: What a role may not do, and what it is told.
REVOKED = {
    "REVOKE ALL ON patients FROM {role}": "permission denied for table patients",
    "REVOKE INSERT ON ldiv.run FROM {role}": "GRANT INSERT ON ldiv.run TO",
    "REVOKE CREATE ON DATABASE {database} FROM {role}": "ldiv migrate (on this database, as its owner)",
    "REVOKE CREATE ON SCHEMA public FROM {role}, public": "GRANT CREATE ON SCHEMA public TO",
    "REVOKE ALL ON SCHEMA ldiv FROM {role}": "GRANT USAGE ON SCHEMA ldiv TO",
}


@pytest.mark.parametrize("revoked", some(REVOKED))
def test_what_is_not_permitted_is_said_and_nothing_written(revoked: str, postgres: Any) -> None:
    database = postgres.address.rpartition("=")[2]
    role = f"ana_{database}"
    postgres.sql(
        f"CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {database} TO {role};"
        f" GRANT ALL ON SCHEMA public TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}"
    )
    if "ldiv" in revoked:
        postgres.json("migrate")
        postgres.sql(f"GRANT ALL ON SCHEMA ldiv TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA ldiv TO {role}")
    postgres.sql(revoked.format(role=role, database=database))
    hers = postgres.address.replace("user=postgres", f"user={role}")
    called = postgres.call("run", hers, postgres.policy)
    assert called.exit_code == 3 and REVOKED[revoked] in called.output, called.output
    assert postgres.sql("SELECT to_regclass('released')") == [(None,)]
    if "ldiv" in revoked:
        assert postgres.sql("SELECT count(*) FROM ldiv.run") == [(0,)]
    else:
        assert postgres.sql("SELECT to_regclass('ldiv.run')") == [(None,)]


def test_leave_to_make_schemas_is_not_asked_for_where_they_are_there(postgres: Any) -> None:
    role = f"ben_{postgres.address.rpartition('=')[2]}"
    postgres.json("migrate")
    postgres.sql(
        f"CREATE ROLE {role} LOGIN; GRANT USAGE, CREATE ON SCHEMA public TO {role};"
        f" GRANT SELECT ON patients TO {role}; GRANT USAGE ON SCHEMA ldiv TO {role};"
        f" GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA ldiv TO {role}; GRANT UPDATE ON ldiv.source_lock TO {role}"
    )
    called = postgres.call("run", postgres.address.replace("user=postgres", f"user={role}"), postgres.policy)
    assert called.exit_code == 0, called.output


@pytest.mark.parametrize("locked", some(["released", "patients"]))
def test_a_lock_of_another_session_is_waited_for_so_long(locked: str, published: Any) -> None:
    before = state(published)
    hurried = f"{published.address} options='-c lock_timeout=300ms'"
    with psycopg.connect(published.address.partition(":")[2]) as other:
        other.execute(f"LOCK TABLE {locked} IN ACCESS EXCLUSIVE MODE")
        published.write_policy(target=REPLACED)
        called = published.call("run", hurried, published.policy)
    assert called.exit_code == 3 and "another session holds a lock" in called.output, called.output
    assert state(published) == before


@pytest.mark.slow
def test_a_reader_sees_the_old_release_or_the_new(published: Any) -> None:
    sizes: set[int] = set()
    done = threading.Event()

    def read() -> None:
        with psycopg.connect(published.address.partition(":")[2], autocommit=True) as connection:
            while not done.is_set():
                sizes.add(connection.execute("SELECT count(*) FROM released").fetchall()[0][0])

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(4):
        source = ("others", "patients")[number % 2]
        ldiv_db.run(published.address, policy_document(source=source, target=REPLACED), folder=published.folder)
        time.sleep(0.05)
    done.set()
    reader.join()
    assert sizes == {12, 24}


def test_two_runs_at_once_to_one_target(home: Any) -> None:
    """One after the other, or one of them is told of the other: what stands there is one's of the ledger."""
    home.run()

    def publish(source: str) -> str | None:
        try:
            policy = policy_document(source=source, target=REPLACED)
            return ldiv_db.run(home.address, policy, folder=home.folder).run_id
        except LdivError as error:
            return f"error: {error}"

    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(publish, ["patients", "others"]))
    good = [run_id for run_id in ended if run_id and not run_id.startswith("error")]
    assert good, ended
    ((source, last),) = home.sql(f"SELECT source, run_id FROM {home.table('run')} ORDER BY finished_at DESC LIMIT 1")
    assert last in good
    assert home.sql("SELECT count(*) FROM released") == [(24 if source == "patients" else 12,)]


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 20 MB that a server of another user's finds; the test is skipped where nobody may mount one."""
    disk = Path(tempfile.mkdtemp(prefix="small", dir="/tmp"))
    disk.chmod(0o755)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", disk], check=False).returncode:
        pytest.skip("no leave to mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)
    disk.rmdir()


@pytest.mark.slow
def test_a_full_disk_of_the_server_s(small_disk: Path, postgres: Any) -> None:
    space = small_disk / "space"
    space.mkdir()
    subprocess.run(["chown", "-R", "nobody", small_disk], check=True)
    name = f"small_{postgres.address.rpartition('_')[2]}"
    servers.started("postgres").execute(f"CREATE TABLESPACE {name} LOCATION '{space}'")
    servers.started("postgres").execute(f"CREATE DATABASE {name} TABLESPACE {name}")
    postgres.address = f"{postgres.address.rpartition('=')[0]}={name}"
    postgres.sql = SQL["postgres"](postgres.address)
    postgres.sql(
        "CREATE TABLE patients AS SELECT 'P' || i AS name, i % 90 AS age,"
        " (ARRAY['Norway', 'Italy'])[i % 2 + 1] AS country,"
        " 'D' || i % 10 AS disease,"
        " (SELECT string_agg(md5((1000 * i + j)::text), '') FROM generate_series(1, 100) j) AS ward"
        " FROM generate_series(1, 2500) i"
    )
    postgres.write_policy(require=[{"k": 3}], algorithm={"name": "mondrian"})
    called = postgres.call("run", postgres.address, postgres.policy)
    assert called.exit_code == 3 and "there is no room on the disk of the server" in called.output, called.output
    assert postgres.sql("SELECT to_regclass('released'), to_regclass('ldiv.run')") == [(None, None)]
    servers.started("postgres").execute(f"DROP DATABASE {name} WITH (FORCE)")
    servers.started("postgres").execute(f"DROP TABLESPACE {name}")


@pytest.mark.parametrize("place", some(["released.csv", "released.parquet"]))
def test_a_full_disk_of_this_machine_s(
    small_disk: Path, postgres: Any, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fills up after the run has seen that there is room; the server of the source has nothing to do with it."""
    monkeypatch.setattr(Estimate, "require_room", lambda _: None)
    with (small_disk / "fill").open("wb") as fill, suppress(OSError):
        while True:
            fill.write(bytes(1 << 16))
            fill.flush()
    postgres.write_policy(target={"file": str(small_disk / place)})
    called = postgres.call("run", postgres.address, postgres.policy)
    assert called.exit_code == 3 and "server" not in called.output, called.output
    assert "No space left on device" in called.output or "no room on the local disk" in called.output
    assert [path.name for path in small_disk.iterdir()] == ["fill"]
