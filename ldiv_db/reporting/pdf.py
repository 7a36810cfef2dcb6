"""A page as PDF, by a converter that the system has: a browser or WeasyPrint. Nothing is installed for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ldiv_db.database.errors import PolicyError, Problem

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OTHERS = ("weasyprint",)
#: A page is converted in a second or two; a browser that hangs is given up.
_SECONDS = 120


def converter() -> str | None:
    """The path of the first converter that is installed, None if none is."""
    return next((path for name in (*_BROWSERS, *_OTHERS) if (path := shutil.which(name))), None)


def write_pdf(page: str, target: Path) -> None:
    """Write the page to a PDF file; raises PolicyError if no converter is installed, or if it fails."""
    program = converter()
    if program is None:
        names = ", ".join((_BROWSERS[0], *_OTHERS))
        raise PolicyError([Problem("out", "no program that converts to PDF is installed", f"one of {names}")])
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(page, encoding="utf-8")
        call = _call(program, source, made, Path(folder))
        try:
            done = subprocess.run(call, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - a path of ours
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PolicyError([Problem("out", f"{program} did not convert the page: {type(error).__name__}")]) from None
        if done.returncode or not made.is_file():
            raise PolicyError([Problem("out", f"{program} did not convert the page, exit code {done.returncode}")])
        shutil.copyfile(made, target)


def _call(program: str, source: Path, made: Path, folder: Path) -> list[str]:
    """The command; a browser gets a profile of its own, and no sandbox where it runs as root, which it refuses."""
    if Path(program).name in _OTHERS:
        return [program, str(source), str(made)]
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    options = ["--headless", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={folder / 'profile'}", *root]
    return [program, *options, f"--print-to-pdf={made}", source.as_uri()]
