"""Ctrl-C in the middle of a statement, while a file is written, or lost by the client: nothing is left of the run."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ldiv_db.database import interrupts
from tests.strategies import some

INTERRUPTED = Path(__file__).with_name("interrupted.py")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends a signal")


@pytest.fixture
def slow(bed: Any) -> Any:
    """Enough rows that every statement over them takes a while, and a view that takes long to read."""
    bed.sql(
        "CREATE OR REPLACE TABLE patients AS SELECT 'P' || i AS name, i % 60 AS age,"
        " ['Norway', 'Italy', 'Japan', 'Korea'][i % 4 + 1] AS country, 'D' || i % 97 AS disease,"
        " md5(i::VARCHAR) AS ward FROM range(60000) AS r(i)"
    )
    bed.sql(
        "CREATE VIEW endless AS SELECT 'P' || i AS name, i % 60 AS age, 'Norway' AS country, 'D' || i % 97 AS disease,"
        " md5(md5(i::VARCHAR)) AS ward FROM range(100000000) AS r(i)"
    )
    bed.sql("CHECKPOINT")
    return bed


def interrupted(bed: Any, moment: str, *words: Any) -> None:
    """Run under the policy, be interrupted, and leave every file as it was."""
    before = bed.files()
    command = [sys.executable, str(INTERRUPTED), moment, "run", str(bed.database), str(bed.policy), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted" and "Traceback" not in done.stderr
    assert bed.files() == before


MODULES = ["socket", "ldiv_db.commands.cli", "typer", "duckdb", "rich.console", "ldiv_db.running.run"]


@pytest.mark.parametrize("moment", some(["duckdb!", *MODULES, "jinja2!"]))
def test_while_the_program_starts(moment: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("starting.py")
    command = [sys.executable, str(script), moment, "demo", "--directory", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_starts_in_the_background_goes_on(tmp_path: Path) -> None:
    """There a shell has Ctrl-C, which is meant for others, ignored."""
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import ldiv_db.__main__ as m; m.main()"
    words = ["-c", code, "--version"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("ldiv "), done.stderr


@pytest.mark.slow
def test_in_the_middle_of_a_statement(slow: Any) -> None:
    slow.write_policy(source="endless")
    interrupted(slow, "recoding/input/estimate_cells")
    slow.write_policy()
    interrupted(slow, "recoding/publish/recode_rows", "--temp-dir", slow.folder / "spill")
    assert not (slow.folder / "spill").exists()
    assert slow.run().code == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["release.csv", "release.duckdb"])
def test_while_a_file_is_written(slow: Any, name: str) -> None:
    slow.write_policy(target={"file": name, "table": "t"} if name.endswith("duckdb") else name)
    interrupted(slow, f"file:{slow.folder}/.{name}.ldiv-*/{name}*")
    assert slow.run().code == 0
    assert slow.sql("SELECT status FROM ldiv.run") == [("published",)]


@pytest.mark.parametrize(
    "moment", some(["recoding/publish/recode_rows!", "recoding/input/encode_rows!", "auditing/number_values!"])
)
def test_an_interrupt_that_the_client_lost_ends_the_run_at_the_next_statement(bed: Any, moment: str) -> None:
    interrupted(bed, moment)


def test_a_lost_interrupt_is_raised_once_and_not_in_what_cleans_up() -> None:
    with interrupts.listening():
        interrupts.work.pending = True
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
        interrupts.work.pending = True
        with pytest.raises(KeyboardInterrupt, match="first"):
            try:
                raise KeyboardInterrupt("first")
            finally:
                interrupts.check()
        interrupts.check()


def test_who_keeps_what_is_done_on_ctrl_c_begins_nothing_more_on_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    with interrupts.listening():
        interrupts.settle()
        interrupts.check()
        monkeypatch.setattr(interrupts.work, "number", signal.SIGTERM)
        interrupts.settle()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        assert interrupts.ended() == (143, "terminated")


@pytest.mark.usefixtures("own_handler")
def test_what_the_client_works_at_is_stopped() -> None:
    """Python hears of no signal while it is in one long call, as of a client that looks for none."""
    stopped = threading.Event()
    sender = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt), interrupts.listening(), interrupts.stopping(stopped.set):
        interrupts.work.statement = "long"
        sender.start()
        hashlib.pbkdf2_hmac("sha256", b"", b"", 700_000)
    assert stopped.is_set()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler and signal.set_wakeup_fd(-1) == -1
