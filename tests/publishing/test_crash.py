"""Whatever moment a run dies at, the database is as it was, and the next run works."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from strategies import some

KILLED = Path(__file__).with_name("killed.py")
LDIV = [sys.executable, "-m", "ldiv_db"]
TARGETS = {
    "table": {"table": "published.patients"},
    "duckdb": {"file": "release.duckdb", "table": "published.patients"},
    "parquet": {"file": "release.parquet"},
    "csv": {"file": "release.csv"},
}
pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes and limits files")


def killed(*runs: str) -> str:
    """What `killed.py` printed."""
    done = subprocess.run([sys.executable, str(KILLED), *runs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def state(database: Path) -> dict[str, list[Any]]:
    """All tables outside the catalog with their rows, and the ledger."""
    with duckdb.connect(str(database)) as con:
        found = con.execute("SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
        return {f"{s}.{t}": con.execute(f'SELECT COLUMNS(*)::VARCHAR FROM "{s}"."{t}"').fetchall() for s, t in found}


def moments(bed: Any, kind: str) -> list[str]:
    """Some moments before anything is written, some from then on, and those around the move."""
    shutil.copytree(bed.folder, bed.folder / "counted")
    total, publishes = map(int, killed(f"{bed.folder / 'counted'}:count").split())
    shutil.rmtree(bed.folder / "counted")
    early = range(publishes // 2, publishes, publishes // 6 + 1)
    late = range(publishes, total, max((total - publishes) // 2, 1))
    return [*map(str, sorted({*early, *late, total - 1})), *([] if kind == "table" else ["before", "after"])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("csv", ["before", "after"]), *((kind, []) for kind in ("table", "duckdb", "csv"))],
)
def test_a_run_killed_at_any_moment_leaves_everything_as_it_was(bed: Any, kind: str, wanted: list[str]) -> None:
    bed.write_policy(target={**TARGETS[kind], "if_exists": "replace"})
    wanted = wanted or moments(bed, kind)
    beds = {moment: bed.folder / f"killed_{moment}" for moment in wanted}
    files = [path for path in bed.folder.iterdir() if path.is_file()]
    for folder in beds.values():
        folder.mkdir()
        for path in files:
            shutil.copy(path, folder)
    killed(*(f"{folder}:{moment}" for moment, folder in beds.items()))
    before = state(bed.database)
    for moment, folder in beds.items():
        in_place = (folder / TARGETS[kind].get("file", "none")).exists()
        found = state(folder / "hospital.duckdb")
        ledger = found.get("ldiv.run", [])
        assert {name: rows for name, rows in found.items() if not name.startswith("ldiv.")} == before, moment
        assert len(ledger) <= 1 and not [row for row in ledger if row[-1] == "published" and not in_place], moment
        if moment != "before":  # dead between its two steps, the ledger says `written`: the next run settles it
            assert bool(ledger) == in_place, moment
        _next_run_works(bed, folder, kind, {path.name for path in files}, in_place)


def after_a_night(bed: Any) -> None:
    """A series with one release, and as many rows again that are new."""
    bed.write_policy(key="name", target={"table": "over_time"})
    assert bed.run().code == 0
    bed.sql("INSERT INTO patients SELECT name || ' later', age, country, disease, ward FROM patients; CHECKPOINT")


@pytest.mark.slow
def test_a_night_killed_at_any_moment_leaves_table_and_ledger_in_step(bed: Any) -> None:
    """As of the night before; the next night goes on with what this one would have published."""
    after_a_night(bed)
    bed.sql("DELETE FROM patients WHERE name = 'P3'; CHECKPOINT")
    wanted = moments(bed, "table")
    before = state(bed.database)
    beds = {moment: bed.folder.parent / f"{bed.folder.name}_{moment}" for moment in wanted}
    for folder in beds.values():
        shutil.copytree(bed.folder, folder)
    killed(*(f"{folder}:{moment}" for moment, folder in beds.items()))
    for moment, folder in beds.items():
        assert state(folder / "hospital.duckdb") == before, moment
        called = bed.call("run", folder / "hospital.duckdb", folder / "policy.yml", "--json")
        assert (called.code, called.json["release"], called.json["rows_first_published"]) == (0, 2, 24), called.err


def _next_run_works(bed: Any, folder: Path, kind: str, files: set[str], in_place: bool) -> None:
    called = bed.call("run", folder / "hospital.duckdb", folder / "policy.yml")
    assert called.code == 0, called.err
    assert {path.name for path in folder.iterdir()} == files | {TARGETS[kind].get("file", "hospital.duckdb")}
    with duckdb.connect(str(folder / "hospital.duckdb")) as con:
        assert con.execute("SELECT status FROM ldiv.run").fetchall() == [("published",)] * (2 if in_place else 1)


# -- a full disk ----------------------------------------------------------------------------------------------


def limited(limit: int) -> Callable[[], None]:
    """What a child does first: no file of its own grows past the limit, and writing past it is an error."""

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return limit_files


def outside(*words: Any, first: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """What a command did in a process of its own, which compiles no modules for others: Python keeps them cut short."""
    whole = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*LDIV, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=first, env=whole)


@pytest.fixture
def many(bed: Any) -> Any:
    """Enough rows that a release does not fit where the limit is."""
    bed.sql(
        "CREATE OR REPLACE TABLE patients AS SELECT 'P' || i AS name, i % 60 AS age,"
        " ['Norway', 'Italy', 'Japan', 'Korea'][i % 4 + 1] AS country, 'D' || i % 97 AS disease,"
        " md5(i::VARCHAR) AS ward FROM range(4000) AS r(i)"
    )
    bed.sql("CHECKPOINT")
    return bed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "table", "duckdb", "parquet"])
def test_a_full_disk_is_a_database_error_and_changes_nothing(many: Any, kind: str) -> None:
    many.write_policy(target=TARGETS[kind])
    before, names = state(many.database), {path.name for path in many.folder.iterdir()}
    done = outside("run", many.database, many.policy, first=limited(20_000))
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert "\nerror: " in "\n" + done.stderr and "Traceback" not in done.stderr
    assert state(many.database) == before
    assert {path.name for path in many.folder.iterdir()} == names


# -- where things spill, and what files stay ------------------------------------------------------------------


def test_a_spill_folder_of_ours_is_removed_and_one_of_the_users_stays_without_what_crashed_runs_left(bed: Any) -> None:
    before = {path.name for path in bed.folder.iterdir()}
    words = ("check", bed.database, "patients", "--qi", "age", "--sensitive", "disease", "--require", "k:1")
    assert bed.call(*words, "--temp-dir", bed.folder / "deep" / "spill").code == 0
    assert {path.name for path in bed.folder.iterdir()} == before
    spill = bed.folder / "spill"
    left = spill / f".spill.ldiv-{'c' * 32}"
    left.mkdir(parents=True)
    (left / "raw").write_text("raw")
    (spill / "mine").write_text("mine")
    assert bed.call(*words, "--temp-dir", spill).code == 0
    assert [path.name for path in spill.iterdir()] == ["mine"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "run", "plan", "profile"])
def test_what_a_killed_command_spilled_is_removed_by_the_next_one(bed: Any, command: str) -> None:
    """Without --temp-dir, overflow lies beside the database."""
    code = (
        "import os, sys; from ldiv_db.commands.console import open_for_command\n"
        "with open_for_command(sys.argv[1]) as con:\n"
        "    con.execute('SET memory_limit = \"20MB\"'); con.execute('SET threads = 1')\n"
        "    con.execute('CREATE TEMP TABLE t AS SELECT md5(i::VARCHAR) AS x FROM range(700000) AS r(i)')\n"
        "    os.kill(os.getpid(), 9)"
    )
    before = {path.name for path in bed.folder.iterdir()}
    done = subprocess.run([sys.executable, "-c", code, bed.database], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    (left,) = [path for path in bed.folder.iterdir() if path.name not in before and path.is_dir()]
    assert left.name.startswith(".spill.ldiv-") and any("duckdb_temp" in path.name for path in left.iterdir())
    words = {
        "profile": ["patients"],
        "check": ["patients", "--qi", "age", "--sensitive", "disease", "--require", "k:1"],
    }.get(command, [bed.policy])
    assert bed.call(command, bed.database, *words).code == 0
    assert {path.name for path in bed.folder.iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize("where", ["asked", "default"])
def test_a_temp_directory_that_fills_is_a_database_error_and_changes_nothing(bed: Any, where: str) -> None:
    bed.sql(
        "CREATE OR REPLACE TABLE patients AS SELECT 'P' || i AS name, i % 60 AS age, 'Italy' AS country,"
        " 'D' || i % 97 AS disease, md5(i::VARCHAR) || md5((-i)::VARCHAR) AS ward FROM range(200000) AS r(i)"
    )
    bed.sql("CHECKPOINT")
    before = bed.files()
    words = ["--memory-limit", "40MB", "--threads", 2, *(["--temp-dir", bed.folder / "spill"] * (where == "asked"))]
    done = outside("run", bed.database, bed.policy, *words, first=limited(3_000_000))
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert "found no room: give another --temp-dir" in done.stderr and "Traceback" not in done.stderr
    assert bed.files() == before
    assert bed.run().code == 0


def test_a_temp_directory_that_cannot_be_used(bed: Any) -> None:
    bed.write("spill", "a file where a folder is needed")
    message = bed.fails(3, "run", bed.database, bed.policy, "--temp-dir", bed.folder / "spill")
    assert "cannot use the temp directory" in message


@pytest.mark.parametrize("version", some(["v1.0.0", "v1.2.0"]))
@pytest.mark.parametrize("kind", some(["table", "duckdb"]))
def test_the_source_file_keeps_its_storage_version(bed: Any, version: str, kind: str) -> None:
    old = bed.folder / "old.duckdb"
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{bed.database}' AS new (READ_ONLY)")
        con.execute(f"ATTACH '{old}' AS old (STORAGE_VERSION '{version}')")
        con.execute("COPY FROM DATABASE new TO old")
    before = storage_version(old)
    bed.write_policy(target=TARGETS[kind])
    called = bed.call("run", old, bed.policy)
    assert called.code == 0, called.err
    assert storage_version(old) == before


def storage_version(path: Path) -> tuple[Any, bytes]:
    """What the database says, and the version number in the file's header."""
    with duckdb.connect(str(path), read_only=True) as con:
        tags = con.execute("SELECT tags FROM duckdb_databases() WHERE NOT internal").fetchall()
    return tags, path.read_bytes()[12:20]
