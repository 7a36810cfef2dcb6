"""A release to another database than the ledger's: written beside, audited there, entered, renamed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from homes import COLUMNS, PATIENTS, TREE, policy_document
from refusals import refuses

import ldiv_db
from ldiv_db.database import files
from ldiv_db.database.context import Listener
from ldiv_db.database.errors import AuditError, PolicyError
from ldiv_db.publishing.draft import RunDraft


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A file with the source, and one, empty, that the release goes to."""
    (tmp_path / "country.csv").write_text(TREE)
    with duckdb.connect(str(tmp_path / "source.duckdb")) as con:
        con.execute(f"CREATE TABLE patients ({COLUMNS}); INSERT INTO patients VALUES {', '.join(map(str, PATIENTS))}")
        con.execute("CREATE TABLE others AS FROM patients LIMIT 12")
    duckdb.connect(str(tmp_path / "other.duckdb")).close()
    return tmp_path


def document(**changes: Any) -> dict[str, Any]:
    target = {"database": "other", "table": "released", "if_exists": "replace"}
    return policy_document(**{"target": target, "databases": {"other": "other.duckdb"}, **changes})


def tables(folder: Path) -> Counter[str]:
    with duckdb.connect(str(folder / "other.duckdb"), read_only=True) as con:
        return Counter(name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall())


def released(folder: Path) -> int:
    with duckdb.connect(str(folder / "other.duckdb"), read_only=True) as con:
        return int(con.execute("SELECT count(*) FROM released").fetchall()[0][0])


def entered(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "source.duckdb"), read_only=True) as con:
        return con.execute("SELECT source, status, target FROM ldiv.run ORDER BY finished_at").fetchall()


def publish(folder: Path, listener: Listener | None = None, **changes: Any) -> Any:
    return ldiv_db.run(str(folder / "source.duckdb"), document(**changes), folder=folder, listener=listener)


def test_the_release_is_in_the_other_database_and_the_ledger_at_home_or_nothing(
    there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = publish(there)
    assert result.target == "other:released" and released(there) == 24 and tables(there) == Counter(["released"])
    assert entered(there) == [("patients", "published", "other:released")]
    publish(there, source="others")
    assert released(there) == 12 and tables(there) == Counter(["released"])

    def fail(*_: Any) -> None:
        raise AuditError("as the test wants it")

    monkeypatch.setattr(RunDraft, "audit", fail)
    with pytest.raises(AuditError):
        publish(there)
    assert released(there) == 12 and tables(there) == Counter(["released"]) and len(entered(there)) == 2


def killed_before(folder: Path, number: int, **changes: Any) -> bool:
    """Whether a run was killed before its statement of that number; it has fewer if not."""
    child = os.fork()
    if not child:
        numbers = iter(range(1, 1_000_000))
        die = Listener(on_statement=lambda _: os.kill(os.getpid(), signal.SIGKILL) if next(numbers) == number else None)
        publish(folder, die, **changes)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
def test_killed_at_any_step_of_publishing_the_next_run_mends_it(there: Path) -> None:
    publish(there)
    publish(there, source="others")  # so that all later runs know that they publish it again, in as many statements
    sent: list[str] = []
    publish(there, Listener(on_statement=lambda statement: sent.append(statement.sql)), source="others")
    first = next(number for number, sql in enumerate(sent, 1) if "ldiv_" in sql and "CREATE OR REPLACE TABLE" in sql)
    steps = [number for number, sql in enumerate(sent, 1) if number >= first]
    seen = Counter[bool]()
    for number in [*steps[:: max(1, len(steps) // 12)], *steps[-8:]]:
        publish(there)
        assert killed_before(there, number, source="others")
        is_new = released(there) == 12
        assert is_new or released(there) == 24
        seen[is_new] += 1
        runs = len(entered(there))
        is_left = tables(there) != Counter(["released"])
        assert any("did not finish" in note for note in publish(there).notes) is is_left
        assert tables(there) == Counter(["released"]) and released(there) == 24
        assert {status for _, status, _ in entered(there)} == {"published"}
        assert len(entered(there)) in (runs, runs + 1)
    assert seen[True] and seen[False]


def test_from_a_server_to_a_file_and_back(home: Any, there: Path) -> None:
    ldiv_db.run(home.address, document(), folder=there)
    assert released(there) == 24
    assert home.sql(f"SELECT status, target FROM {home.table('run')}") == [("published", "other:released")]
    publish(there, databases={"other": home.address})
    publish(there, databases={"other": home.address}, source="others")
    assert home.sql("SELECT count(*) FROM released") == [(12,)]


def test_what_is_granted_on_a_table_of_another_server_is_said_to_be_lost(postgres: Any, there: Path) -> None:
    databases = {"other": postgres.address}
    assert not any("not kept" in note for note in publish(there, databases=databases).notes)
    postgres.sql("GRANT SELECT ON released TO PUBLIC")
    notes = publish(there, databases=databases).notes
    assert any("the grants of other.public.released are not kept" in note for note in notes)


def test_refusals(there: Path) -> None:
    publish(there)
    for changes, code in (
        ({"databases": {"another": "other.duckdb"}}, "target.database"),
        ({"target": {"database": "other", "table": "released"}}, "target"),
        ({"target": {"database": "other", "file": "x.csv"}}, "target.database"),
        ({"target": {"database": "other", "table": "released", "if_exists": "append"}}, "target.database"),
        ({"target": {"database": "other", "table": "ldiv.run"}}, "target"),
    ):
        with refuses(code):
            ldiv_db.run(str(there / "source.duckdb"), {**document(), **changes}, folder=there)
    with pytest.raises(PolicyError, match="is read by the source"):
        publish(there, source="other.released")
    assert released(there) == 24


def bytes_with(folder: Path, text: str) -> int:
    return (folder / "other.duckdb").read_bytes().count(text.encode())


def keep_long_words(folder: Path, word: str) -> None:
    with duckdb.connect(str(folder / "source.duckdb")) as con:
        con.execute("ALTER TABLE patients ADD COLUMN IF NOT EXISTS word VARCHAR")
        con.execute(f"UPDATE patients SET word = '{word}-as-long-as-no-inlined-text-' || rowid")


def test_nothing_of_a_replaced_release_stays_in_the_bytes_of_a_file_for_readers(there: Path) -> None:
    path = there / "other.duckdb"
    path.unlink()
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS other (STORAGE_VERSION 'v1.2.0', BLOCK_SIZE 16384); USE other")
        con.execute(
            "CREATE SCHEMA s; CREATE TABLE s.p (i INTEGER PRIMARY KEY, CHECK (i < 9)); INSERT INTO s.p VALUES (1)"
        )
        con.execute("CREATE TABLE c (i INTEGER DEFAULT 7); CREATE INDEX ix ON c (i); COMMENT ON TABLE c IS 'kept'")
        con.execute("CREATE VIEW v AS SELECT i + 1 AS j FROM s.p; CREATE SEQUENCE q; CREATE MACRO m(a) AS a + 1")
        con.execute("SELECT nextval('q'); CREATE TYPE e AS ENUM ('x')")
    path.chmod(0o640)
    keep_long_words(there, "FIRST")
    publish(there, keep=["ward", "word"], over_time="independent")
    assert bytes_with(there, "FIRST")
    keep_long_words(there, "SECOND")
    result = publish(there, keep=["ward", "word"], over_time="independent")
    assert not bytes_with(there, "FIRST") and bytes_with(there, "SECOND") and released(there) == 24
    assert not any("bytes" in note for note in result.notes) and path.stat().st_mode & 0o777 == 0o640
    assert {file.name for file in there.iterdir()} == {"country.csv", "source.duckdb", "other.duckdb"}
    with duckdb.connect(str(path), read_only=True) as con:
        assert con.execute("SELECT * FROM v, s.p").fetchall() == [(2, 1)]
        assert con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'c'").fetchall() == [("kept",)]
        assert con.execute("SELECT m(1), 'x'::e").fetchall() == [(2, "x")]
        assert con.execute("SELECT count(*) FROM duckdb_indexes()").fetchall() == [(1,)]
        ((version,),) = con.execute(
            "SELECT tags['storage_version'] FROM duckdb_databases() WHERE path = ?", [str(path)]
        ).fetchall()
        assert version.startswith("v1.2.0")
        assert con.execute("SELECT block_size FROM pragma_database_size()").fetchall()[0] == (16384,)
    with duckdb.connect(str(path)) as con:
        assert con.execute("SELECT nextval('q')").fetchall() == [(2,)]


def test_where_a_file_cannot_be_written_anew_the_run_says_so(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(there)
    with monkeypatch.context() as patched:
        patched.setattr(files, "_is_copied", lambda *_: False)
        notes = publish(there).notes
    assert any("other.duckdb may still hold the release that was replaced" in note for note in notes)
    assert not any("bytes" in note for note in publish(there).notes) and released(there) == 24


def test_a_release_in_the_file_of_its_source_says_what_the_file_may_still_hold(there: Path) -> None:
    said = []
    for if_exists in ("fail", "replace", "append"):
        result = publish(there, databases={}, target={"table": "released", "if_exists": if_exists})
        said.append(any("source.duckdb may still hold the release that was replaced" in note for note in result.notes))
    assert said == [False, True, False]
