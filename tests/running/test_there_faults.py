"""Faults of PostgreSQL during a run there: the old release stays, or the new one is there, and one line says why."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from contextlib import nullcontext
from functools import partial

import pytest
import servers
from strategies import some
from there_beds import place, policy, released, rows_of, tables_of, wipe

import ldiv_db
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.publishing.ledger import withdraw_run
from ldiv_db.publishing.ledger_there import ledger_of, make_ledger

pytestmark = [pytest.mark.engines, pytest.mark.xdist_group("postgres")]
psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def postgres():
    if servers.missing("postgres"):
        pytest.skip(servers.missing("postgres"))
    postgres = servers.started("postgres")
    wipe(postgres)
    yield postgres
    wipe(postgres)
    postgres.execute("DROP OWNED BY publisher CASCADE; DROP ROLE publisher") if role(postgres) else None


def role(postgres):
    return postgres.query("SELECT 1 FROM pg_roles WHERE rolname = 'publisher'")


def session(postgres, user="postgres", **settings):
    """Another connection to the server."""
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return psycopg.connect(host=postgres.connection.info.host, user=user, dbname="postgres", options=options)


@pytest.fixture
def old(postgres, con):
    """A release that is there: what it shows, the names of tables beside it, and its ledger."""
    place(postgres, con, rows_of(random.Random(1), 50))
    ldiv_db.run(postgres.connection, policy())
    return state(postgres)


def state(postgres):
    return (
        released(postgres),
        tables_of(postgres),
        postgres.query("SELECT run_id, status FROM ldiv.run ORDER BY run_id"),
    )


OTHER = policy(require=[{"k": 5}])


def fails(connection, says, asked=OTHER):
    """A run that fails with one line, which names neither a value nor our statement."""
    with pytest.raises(ldiv_db.DatabaseError, match=says) as error:
        ldiv_db.run(connection, asked)
    assert len(str(error.value).splitlines()) == 1, error.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "says"), [("statement_timeout", "took too long"), ("lock_timeout", "holds a lock")]
)
def test_a_lock_that_is_not_let_go_ends_the_run(postgres, old, setting, says):
    with session(postgres) as other, session(postgres, **{setting: 200}) as there:
        other.execute("SELECT * FROM released LIMIT 1")
        other.execute("LOCK TABLE released IN ROW EXCLUSIVE MODE")
        fails(there, says)
    assert state(postgres) == old
    assert ldiv_db.run(postgres.connection, OTHER).loss.rows_published == 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rights", "says"),
    [
        ("GRANT SELECT, INSERT, DELETE ON released TO publisher", "GRANT USAGE ON SCHEMA ldiv TO publisher"),
        ("", "GRANT DELETE ON public.released TO publisher"),
        ("ALTER ROLE publisher SET default_transaction_read_only = on", "the session is set to read only"),
    ],
)
@pytest.mark.parametrize("call", [ldiv_db.plan, ldiv_db.run])
def test_rights_that_are_lacking_are_named_before_anything_is_counted(postgres, old, rights, says, call, monkeypatch):
    postgres.execute("CREATE ROLE publisher LOGIN")
    postgres.execute(rights or "SELECT 1")
    monkeypatch.setattr(Warehouse, "fetch", None)
    with session(postgres, "publisher") as there, pytest.raises(ldiv_db.DatabaseError, match=says):
        call(there, OTHER)
    assert state(postgres) == old


def granted(postgres, connect, asked):
    """All that a run as `publisher` asks for, granted as it says; then it runs."""
    found = []
    while True:
        try:
            with connect() as there:
                ldiv_db.run(there, asked)
            return found
        except ldiv_db.DatabaseError as error:
            named = [line.strip() for line in str(error).splitlines()[1:]]
            assert "lacks rights" in str(error) and not set(named) & set(found), error
            if any(line.startswith("ldiv migrate") for line in named):
                make_ledger(Warehouse(postgres.connection))
            found += named
            postgres.execute("; ".join(line for line in named if not line.startswith("ldiv migrate")))


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["psycopg", "adbc"])
@pytest.mark.parametrize(
    "asked",
    [
        OTHER,
        OTHER | {"target": {"table": "released", "if_exists": "append"}},
        policy(algorithm="cuts", identifiers=["rid", "dose", "town"],
               quasi_identifiers={"age": {"taxonomy": {"flat": True}}}, require=[{"threshold": {"default": 0.6}}]),
        {name: value for name, value in policy(key="rid", target={"table": "released"}).items()
         if name not in ("identifiers", "over_time")},
    ],
    ids=["replace", "append", "rules", "key"],
)  # fmt: skip
def test_the_grants_that_are_named_are_those_that_a_run_needs(postgres, con, driver, asked):
    place(postgres, con, rows_of(random.Random(1), 50))
    postgres.execute("CREATE ROLE publisher LOGIN; GRANT SELECT ON people TO publisher")
    if driver == "adbc":
        uri = f"postgresql:///postgres?host={postgres.connection.info.host}&user=publisher"
        connect = partial(pytest.importorskip("adbc_driver_postgresql.dbapi").connect, uri)
    else:
        connect = partial(session, postgres, "publisher")
    first = granted(postgres, connect, asked)
    assert "GRANT INSERT ON ldiv.run TO publisher" in first and "GRANT USAGE ON SCHEMA ldiv TO publisher" in first
    with connect() as there:
        ldiv_db.run(there, asked)
    if "key" not in asked:  # a table of somebody else's
        postgres.execute("ALTER TABLE released OWNER TO postgres; REVOKE ALL ON released FROM publisher")
        second = granted(postgres, connect, asked)
        assert [line for line in second if line.startswith("GRANT") and line.endswith("public.released TO publisher")]
        assert all("public.released" in line for line in second)
    postgres.execute("REVOKE INSERT ON ldiv.run FROM publisher")
    assert granted(postgres, connect, asked) == ["GRANT INSERT ON ldiv.run TO publisher"]


def test_a_ledger_that_somebody_made_is_not_made_again(postgres):
    made = make_ledger(Warehouse(postgres.connection), only_look=True)
    assert made == make_ledger(Warehouse(postgres.connection)) and "ldiv.migration" in made
    assert make_ledger(Warehouse(postgres.connection)) == []
    postgres.execute("DELETE FROM ldiv.migration WHERE number = 11")
    with pytest.raises(ldiv_db.DatabaseError, match="older version"):
        make_ledger(Warehouse(postgres.connection))


DOCUMENTED = (
    "CREATE ROLE publisher LOGIN; GRANT USAGE ON SCHEMA ldiv TO publisher; GRANT USAGE, CREATE ON SCHEMA public TO"
    " publisher; GRANT SELECT, INSERT ON ldiv.run, ldiv.run_secret, ldiv.run_report_secret TO publisher;"
    " GRANT SELECT, UPDATE ON"
    " ldiv.source_lock TO publisher; GRANT INSERT ON"
    " ldiv.run_requirement TO publisher; GRANT SELECT ON ldiv.release, people TO publisher; GRANT SELECT, INSERT,"
    " DELETE ON released TO publisher"
)


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["psycopg", "adbc"])
@pytest.mark.parametrize("table", ["people", "released"])
def test_rows_that_a_policy_hides_are_neither_left_out_nor_left_behind(postgres, old, table, driver):
    """Of the source some would not be counted; of the target the old release's would stay beside the new one's."""
    postgres.execute(f"{DOCUMENTED}; ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    postgres.execute(f"CREATE POLICY seen ON {table} TO publisher USING (CAST(town AS text) < 'P')")
    postgres.connection.commit()
    host = postgres.connection.info.host
    if driver == "adbc":
        uri = f"postgresql:///postgres?host={host}&user=publisher"
        there = pytest.importorskip("adbc_driver_postgresql.dbapi").connect(uri)
    else:
        there = session(postgres, "publisher")
    with there:
        fails(there, f"row level security of table {table} hides rows from this user.*owner.*BYPASSRLS")
        there.rollback()
        assert state(postgres) == old
        postgres.execute("ALTER ROLE publisher BYPASSRLS")
        postgres.connection.commit()
        assert ldiv_db.run(there, OTHER).loss.rows_published == 50
    assert len(released(postgres)) == 50


def test_the_rights_that_are_documented_are_enough_and_fewer_are_refused_before_anything_is_counted(
    postgres, old, monkeypatch
):
    made, granted = DOCUMENTED.split("; ", 1)
    postgres.execute(made)
    lacks = pytest.raises(ldiv_db.DatabaseError, match="GRANT USAGE ON SCHEMA ldiv TO publisher")
    with monkeypatch.context() as patch, session(postgres, "publisher") as there, lacks:
        patch.setattr(Warehouse, "fetch", None)
        ldiv_db.plan(there, OTHER)
    assert state(postgres) == old
    postgres.execute(granted)
    with session(postgres, "publisher") as there:
        found = ldiv_db.run(there, OTHER)
        assert found.loss.rows_published == 50 and len(state(postgres)[2]) == 2
        for more in ("SELECT 1", "GRANT UPDATE ON ldiv.run TO publisher"):
            postgres.execute(more)
            fails = pytest.raises(ldiv_db.DatabaseError, match="denied for table")
            with nullcontext() if "UPDATE" in more else fails, ledger_of(Warehouse(there)) as engine:
                withdraw_run(engine, found.run_id)
    assert (found.run_id, "withdrawn") in state(postgres)[2]


def fails_as_lost(postgres, monkeypatch, step, asked=OTHER):
    """A run that fails as the server ends its connection once that step is done."""
    with session(postgres) as there:
        done, number = getattr(Warehouse, step), there.info.backend_pid

        def lose(self, *args, **kwargs):
            found = done(self, *args, **kwargs)
            postgres.query(f"SELECT pg_terminate_backend({number}, 5000)")
            return found

        with monkeypatch.context() as patch:
            patch.setattr(Warehouse, step, lose)
            fails(there, "the server ended the connection", asked)
        there.close()


STEPS = ("columns", "fetch", "lend", "send", "create", "put")


@pytest.mark.parametrize("step", some(STEPS, 1))
def test_a_connection_that_is_lost_leaves_the_old_release(postgres, old, monkeypatch, step):
    joined = {"identifiers": [], "keep": ["rid"]} if step == "create" else {}
    fails_as_lost(postgres, monkeypatch, step, OTHER | joined)
    assert state(postgres) == old


@pytest.fixture
def own(con):
    """A server of this test's own, which it may stop, with people and a release."""
    if servers.missing("postgres"):
        pytest.skip(servers.missing("postgres"))
    folder = servers._cluster()
    with opened(folder) as there:
        there.execute("CREATE TABLE people (rid integer, age integer, town text, dose double precision, secret text)")
        there.cursor().executemany("INSERT INTO people VALUES (%s, %s, %s, %s, %s)", rows_of(random.Random(1), 50))
    yield folder
    servers._stop_cluster(folder)


def opened(folder):
    return psycopg.connect(host=folder, user="postgres", dbname="postgres")


def shown(folder):
    """The release, the ids and statuses of the runs in the ledger, and what runs left beside them."""
    with opened(folder) as there:
        asked = [
            "SELECT age, town, dose, secret FROM released",
            "SELECT run_id, status FROM ldiv.run",
            "SELECT relname FROM pg_class WHERE relname LIKE 'ldiv_%' AND relnamespace = 'public'::regnamespace",
        ]
        return [sorted(map(repr, there.execute(sql).fetchall())) for sql in asked]


@contextlib.contextmanager
def struck(monkeypatch, number, act):
    """Within, `act` is done before the statement of that number that a run sends, or the end of a transaction."""
    sent, signed, end = [], Warehouse._signed, Warehouse._end

    def count(plain):
        def counted(self, text):
            sent.append(text)
            if len(sent) == number:
                act()
            return plain(self, text)

        return counted

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "_signed", count(signed))
        patch.setattr(Warehouse, "_end", count(end))
        yield sent


def killed(folder, asked):
    """A run in a process of its own, which is killed."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException), opened(folder) as there:
            ldiv_db.run(there, asked)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def lost(folder, asked):
    """A run that loses its connection."""
    there, says = opened(folder), r"the server ended the connection|no server answers"
    with contextlib.closing(there), pytest.raises(ldiv_db.DatabaseError, match=says):
        ldiv_db.run(there, asked)


def end_backends(folder):
    with opened(folder) as there:
        there.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


def restart(folder):
    settings = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    words = ["-m", "immediate", "-w", "-l", f"{folder}/log", "-o", settings, "restart"]
    servers._unprivileged([str(servers._program("pg_ctl")), "-D", f"{folder}/data", *words])


FAULTS = {
    "killed": (killed, lambda folder: os.kill(os.getpid(), signal.SIGKILL)),
    "ended": (lost, end_backends),
    "restarted": (lost, restart),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_either_transaction_leaves_the_old_release_and_the_next_run_settles(own, monkeypatch, fault):
    run, act = FAULTS[fault]
    with opened(own) as there:
        ldiv_db.run(there, policy())
        with struck(monkeypatch, 0, None) as sent:
            ldiv_db.run(there, OTHER)
        ends = [place for place, text in enumerate(sent, 1) if text == "COMMIT"]
        ldiv_db.run(there, policy())
    rights, counted, published = ends
    before, within = shown(own), random.Random(7).sample(range(counted + 1, published), 4)
    for number in (rights, (rights + counted) // 2, counted, *within, published):
        with struck(monkeypatch, number, lambda: act(own)):
            run(own, OTHER)
        assert shown(own) == before, number
    with opened(own) as there:
        ldiv_db.run(there, OTHER)
    rows, runs, left = shown(own)
    assert (rows != before[0], len(runs), left) == (True, 4, [])


def at_once(postgres, *policies):
    """The errors of runs at the same time, each in a thread of its own."""
    errors, gate = [], threading.Barrier(len(policies))

    def run(asked):
        with session(postgres) as there:
            gate.wait()
            try:
                ldiv_db.run(there, asked)
            except ldiv_db.LdivError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=run, args=(asked,)) for asked in policies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.slow
@pytest.mark.parametrize("if_exists", ["replace", "append"])
def test_of_two_runs_at_once_to_one_target_the_second_waits(postgres, old, if_exists):
    target = {"table": "released", "if_exists": if_exists}
    asked = [policy(target=target, require=[{"k": k}], output={"class_id": True}) for k in (4, 4)]
    postgres.execute("DROP TABLE released")
    ldiv_db.run(postgres.connection, asked[0])
    assert at_once(postgres, *asked) == []
    ((rows, classes, labels),) = postgres.query(
        "SELECT count(*), count(DISTINCT class_id), count(DISTINCT (class_id, age, town, dose)) FROM released"
    )
    assert rows == (50 if if_exists == "replace" else 150) and classes == labels
    assert {status for _, status in state(postgres)[2]} == {"published"} and len(state(postgres)[2]) == 4


@pytest.mark.slow
def test_a_run_to_a_table_that_another_makes_meanwhile_begins_anew(postgres, con, monkeypatch):
    place(postgres, con, rows_of(random.Random(2), 50))
    postgres.execute(
        "DROP TABLE IF EXISTS others; CREATE TABLE others AS SELECT rid, age + 1 AS age, town, dose, secret FROM people"
    )
    gate, lend = [], Warehouse.lend

    def overtaken(self, *args, **more):
        if not gate:
            gate.append(True)
            with session(postgres) as other:
                ldiv_db.run(other, OTHER)
        lend(self, *args, **more)

    ldiv_db.run(postgres.connection, policy(target={"table": "elsewhere", "if_exists": "replace"}))  # makes a ledger
    monkeypatch.setattr(Warehouse, "lend", overtaken)
    with session(postgres) as there:
        assert ldiv_db.run(there, policy(source="others", target={"table": "released", "if_exists": "replace"}))
    assert len(state(postgres)[0]) == 50 and len(state(postgres)[2]) == 3
    postgres.execute("DROP TABLE elsewhere, others")


def nightly(**more):
    return {name: value for name, value in policy(**{"target": {"table": "released"}, "key": "rid"} | more).items()
            if name not in ("identifiers", "over_time")}  # fmt: skip


@pytest.mark.slow
def test_of_two_nights_at_once_each_publishes_other_people(postgres, con):
    rows = rows_of(random.Random(3), 60)
    place(postgres, con, rows[:40])
    ldiv_db.run(postgres.connection, nightly())
    place(postgres, con, rows)
    errors = at_once(postgres, nightly(), nightly())
    published = postgres.query("SELECT key_hash, count(*) FROM ldiv.release_member WHERE group_id > 0 GROUP BY 1")
    assert [count for _, count in published] == [1] * len(published) and len(published) == len(released(postgres))
    assert len(errors) <= 1 and all("\n" not in error for error in errors), errors
    assert postgres.query("SELECT count(*) FROM ldiv.release") == [(3 - len(errors),)]


@pytest.mark.slow
def test_a_night_beside_one_that_holds_no_lock_begins_anew(postgres, con, monkeypatch):
    """As where the table was made between a look for it and the beginning of the transaction."""
    place(postgres, con, rows_of(random.Random(3), 40))
    ldiv_db.run(postgres.connection, nightly())
    monkeypatch.setattr(Warehouse, "_beforehand", lambda self, written: list(self.traits.settings))
    place(postgres, con, rows_of(random.Random(3), 60))
    with session(postgres) as other:
        gate, fetch = [], Warehouse.fetch

        def overtaken(self, *args):
            if not gate:
                gate.append(True)
                found = fetch(self, *args)
                ldiv_db.run(other, nightly())
                return found
            return fetch(self, *args)

        monkeypatch.setattr(Warehouse, "fetch", overtaken)
        with session(postgres) as there:
            assert ldiv_db.run(there, nightly()).figures["release"] == 3
    assert postgres.query("SELECT max(release) FROM ldiv.release") == [(3,)] and len(released(postgres)) <= 60
