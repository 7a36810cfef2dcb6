"""Folders for work in progress: made beside what they are for, locked while in use, found again after a crash.

What is being written lies in such a folder until it is whole; it shares the file system of its destination,
so that the last step is one atomic move. A folder that nobody locks was left by a process that died.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_LOCK = "lock"
#: The purpose in the names of folders for a database's overflow, and the most attempts at a new one.
_SPILL, _ATTEMPTS = "spill", 5
#: Only the owner may enter such a folder: its contents are not audited yet.
_OWNER_ONLY = 0o700


def folder_of(parent: Path, name: str, token: str) -> Path:
    """The folder in `parent` for the work on `name` that has this token."""
    return parent / f".{name}.ldiv-{token}"


@contextmanager
def work_folder(parent: Path, name: str, token: str) -> Iterator[Path]:
    """A folder of our own in `parent`, for work on `name`; gone with all it holds at the end. May raise OSError."""
    folder = folder_of(parent, name, token)
    folder.mkdir(mode=_OWNER_ONLY)
    lock = None
    try:
        lock = _lock(folder)
        yield folder
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def abandoned(parent: Path, name: str) -> dict[str, Path]:
    """The folders for work on `name` whose process is gone, by their tokens."""
    form = re.compile(re.escape(f".{name}.ldiv-") + "([0-9a-f]{32})")
    folders = {}
    with suppress(OSError):
        for path in sorted(parent.iterdir()):
            match = form.fullmatch(path.name)
            if match and path.is_dir() and _is_free(path):
                folders[match[1]] = path
    return folders


def sweep(parent: Path, name: str) -> None:
    """Remove the folders that crashed processes left."""
    for folder in abandoned(parent, name).values():
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def spill_folder(parent: Path) -> Iterator[Path]:
    """A folder of our own in `parent` for a database's overflow; what crashed processes left there is removed.

    `parent` is made, with those above it, and removed again, if it was not there. May raise OSError.
    """
    missing = [folder for folder in (*reversed(parent.parents), parent) if not folder.exists()]
    with ExitStack() as stack:
        parent.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            stack.callback(_remove_if_empty, folder)
        sweep(parent, _SPILL)
        yield stack.enter_context(_any_work_folder(parent))


@contextmanager
def _any_work_folder(parent: Path) -> Iterator[Path]:
    """A folder for overflow: another one if someone else swept it away before it was locked."""
    with ExitStack() as stack:
        for attempt in range(_ATTEMPTS):
            try:
                folder = stack.enter_context(work_folder(parent, _SPILL, uuid.uuid4().hex))
                break
            except (FileNotFoundError, BlockingIOError):
                if attempt + 1 == _ATTEMPTS:
                    raise
        yield folder


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def flush(path: Path) -> None:
    """Flush the file to the disk before anybody reports it."""
    _sync(path)


def move(part: Path, final: Path) -> None:
    """Put `part` in place of `final`: at any moment the old file is there, or the whole new one."""
    os.replace(part, final)
    with suppress(OSError):  # not every file system lets a folder be synced
        _sync(final.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(folder: Path) -> int:
    """The handle that holds the folder's lock for as long as it is open; raises OSError if another one does."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    if sys.platform != "win32":  # there, a file that is open cannot be removed: that is lock enough
        import fcntl  # noqa: PLC0415 - not on every platform

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
    return handle


def _is_free(folder: Path) -> bool:
    try:
        os.close(_lock(folder))
    except OSError:
        return False
    return True
