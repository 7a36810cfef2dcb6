"""What tests catch, measured: one-line mistakes, each put into a copy of the checkout, and the pass run on it.

`python3 -m tests.mutants` tries each mistake of `mistakes.toml`: first the tests that most likely catch it, and only if
they pass the whole default pass. It fails if fewer than 95 % are caught. On two quiet cores it takes an hour or so.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutants.mistakes import ROOT, Mistake, read_mistakes

#: The share of the mistakes that tests must catch: 57 of 60.
LEAST = 0.95
#: Seconds after which a pass has no end; a mistake that only hangs is not caught.
PATIENCE = 3_600
ALL = ("-n", "auto", "--dist", "worksteal")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="one mistake; may be given again")
    parser.add_argument("--named", action="store_true", help="run the tests that each mistake names, and no others")
    parser.add_argument("--list", action="store_true", help="show the mistakes and run nothing")
    asked = parser.parse_args(words)
    mistakes = [mistake for mistake in read_mistakes() if not asked.only or mistake.name in asked.only]
    unknown = {*(asked.only or ())} - {mistake.name for mistake in mistakes}
    if unknown:
        parser.error(f"no mistake is called {min(unknown)}")
    if asked.list:
        for mistake in mistakes:
            print(f"{mistake.name}\n    {mistake.file}\n    {mistake.promise}")
        return 0
    caught = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = copied(Path(folder) / "checkout")
        for mistake in mistakes:
            began = time.monotonic()
            by = try_mistake(copy, mistake, asked.named)
            caught += by is not None
            told = by or f"survived{': ' + mistake.why if mistake.why else ''}"
            print(f"{mistake.name:<44} {time.monotonic() - began:5.0f} s  {told}", flush=True)
    print(f"{caught} of {len(mistakes)} mistakes are caught")
    return 0 if caught >= LEAST * len(mistakes) else 1


def copied(copy: Path) -> Path:
    """A copy of the files that git knows, as they are now; its modules and templates are those that tests import."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
            (copy / name).chmod((ROOT / name).stat().st_mode)
    code = "import ldiv_db.database.templates as t; print(t.__file__, t.resource_folder('sql'))"
    words = [sys.executable, "-c", code]
    found = subprocess.run(words, cwd="/", env=environment(copy), capture_output=True, text=True, check=True).stdout
    if found.split() != [str(copy / "ldiv_db/database/templates.py"), str(copy / "sql")]:
        raise SystemExit(f"tests would import another checkout: {found}")
    return copy


def environment(copy: Path) -> dict[str, str]:
    """The variables under which all processes import the copy, wherever they run."""
    return {**os.environ, "PYTHONPATH": str(copy)}


def try_mistake(copy: Path, mistake: Mistake, only_named: bool) -> str | None:
    """The first test that fails by the mistake, None if none does."""
    with made(copy, mistake):
        named = [name for name in mistake.tests if (copy / name).exists()]
        failed = first_failed(copy, *named) if named else None
        if failed is None and not only_named:
            failed = first_failed(copy, *ALL)
    if failed is not None and first_failed(copy, failed) is not None:
        raise SystemExit(f"{failed} fails without any mistake: mend the pass first")
    return failed


@contextmanager
def made(copy: Path, mistake: Mistake) -> Iterator[None]:
    """The mistake is in the copy."""
    path = copy / mistake.file
    before = path.read_text(encoding="utf-8")
    try:
        write(path, mistake.applied(before))
        yield
    finally:
        write(path, before)


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    if path.suffix == ".py":  # two versions of a second that have the same size are one to Python
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


def first_failed(copy: Path, *words: str) -> str | None:
    """The first test that fails in a pass of these, None if none does."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--color=no", *words]
    done = subprocess.run(
        command, cwd=copy, env=environment(copy), capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    if done.returncode == 0:
        return None
    failed = _FAILED.findall(done.stdout)
    if done.returncode not in (1, 2) or not failed:
        raise SystemExit(f"pytest {' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return str(failed[0])


if __name__ == "__main__":
    sys.exit(main())
