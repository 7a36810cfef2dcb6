"""Files that are there whole or not at all: what is being written lies in a folder beside, until it is moved there.

Such a folder is locked while in use, and found again after a crash: one that nobody locks was left by a process that
died. It shares the file system of its destination, so that the move is one atomic step.

A file of DuckDB's is written anew where something was dropped or replaced: that stays in its bytes until something
takes their place.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, LdivError
from ldiv_db.database.names import Identifier, literal

_LOCK = "lock"
#: The purpose in the names of folders for a database's overflow, and the most attempts at a new one.
_SPILL, _ATTEMPTS = "spill", 5
#: Only the owner may enter such a folder: its contents are not audited yet.
_OWNER_ONLY = 0o700
#: Whether two folders can change places here, and what Linux takes to do so: relative to where we are, RENAME_EXCHANGE.
CAN_SWAP, _HERE, _EXCHANGE = sys.platform == "linux", -100, 2
#: All that a database holds beside its rows, of which it has the number.
_HELD = """
    SELECT 'table' AS kind, schema_name, table_name AS name, sql, comment, estimated_size AS rows FROM duckdb_tables()
    WHERE database_name = $d
    UNION ALL SELECT 'view', schema_name, view_name, sql, comment, 0 FROM duckdb_views()
    WHERE database_name = $d AND NOT internal
    UNION ALL SELECT 'index', schema_name, index_name, sql, comment, 0 FROM duckdb_indexes() WHERE database_name = $d
    UNION ALL SELECT 'sequence', schema_name, sequence_name, CAST(last_value AS VARCHAR), comment, increment_by
    FROM duckdb_sequences() WHERE database_name = $d
    UNION ALL SELECT 'type', schema_name, type_name, CAST(labels AS VARCHAR), comment, 0 FROM duckdb_types()
    WHERE database_name = $d AND NOT internal
    UNION ALL SELECT 'macro', schema_name, function_name, concat(CAST(parameters AS VARCHAR), macro_definition),
    comment, 0 FROM duckdb_functions() WHERE database_name = $d AND NOT internal
    UNION ALL SELECT 'schema', schema_name, '', '', comment, 0 FROM duckdb_schemas()
    WHERE database_name = $d AND NOT internal
    ORDER BY ALL
"""


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
        ours = [path for path in parent.iterdir() if form.fullmatch(path.name)]  # other programs may have thousands
        for path in sorted(ours):
            if path.is_dir() and _is_free(path):
                folders[path.name[-32:]] = path
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
        for left in reversed(range(_ATTEMPTS)):
            try:
                folder = stack.enter_context(work_folder(parent, _SPILL, uuid.uuid4().hex))
                break
            except (FileNotFoundError, BlockingIOError):  # someone else swept it away before it was locked
                if not left:
                    raise
        yield folder


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def move(part: Path, final: Path) -> None:
    """Put `part` in place of `final`: at any moment the old file is there, or the whole new one."""
    os.replace(part, final)
    _flush_moved(final)


def swap(one: Path, other: Path) -> None:
    """Have two folders change places in one step; raises OSError where the system or the file system has none."""
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if CAN_SWAP else None
    if exchange is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if exchange(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    _flush_moved(other)


def _flush_moved(final: Path) -> None:
    with suppress(OSError):  # not every file system lets a folder be synced
        flush(final.parent)


def flush(path: Path) -> None:
    """Flush the file, or folder, to the disk before anybody reports it."""
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


def free_bytes(engine: Engine, database: str) -> int:
    """The bytes of a database's file that hold nothing any more, and may still be read as what they held."""
    rows = engine.execute(
        "SELECT free_blocks * block_size FROM pragma_database_size() WHERE lower(database_name) = lower($d)",
        {"d": database},
    )
    return int(rows[0][0] or 0) if rows else 0


def metadata_entries(engine: Engine, path: str) -> int:
    """The entries of a Parquet file beside its data, such as who wrote what else into it."""
    return int(engine.execute("SELECT count(*) FROM parquet_kv_metadata($path)", {"path": path})[0][0])


def renew_file(engine: Engine, database: str) -> bool:
    """Write the file of an attached DuckDB database anew, with all that it holds; False if it stays as it is.

    It stays if it is encrypted, if a copy would hold anything else, or if somebody has it open. The database is
    detached, the copy moved into its place and attached under the same name: at any moment one of the two is there.
    """
    path = Path(engine.snapshot[database].file or "").resolve()
    beside = f"{path.name}.anew"
    sweep(path.parent, beside)
    try:
        with work_folder(path.parent, beside, uuid.uuid4().hex) as folder:
            return _is_copied(engine, database, folder / path.name) and _swapped(engine, database, folder, path)
    except (OSError, DatabaseError):
        return False


def _is_copied(engine: Engine, database: str, part: Path) -> bool:
    """Whether a copy was made that holds the same, in a file of the same format."""
    ((version, encrypted, block),) = engine.execute(
        "SELECT d.tags['storage_version'], d.encrypted, s.block_size FROM duckdb_databases() AS d"
        " JOIN pragma_database_size() AS s ON s.database_name = d.database_name WHERE d.database_name = $d",
        {"d": database},
    )
    if encrypted:
        return False
    engine.execute(f"CHECKPOINT {Identifier(database).sql()}")
    options = [f"STORAGE_VERSION {literal(version.rstrip('+'))}"] if version else []
    with engine.attached(part, options=[*options, f"BLOCK_SIZE {int(block)}"]) as copy:
        engine.execute(f"COPY FROM DATABASE {Identifier(database).sql()} TO {Identifier(copy).sql()}")
        return engine.execute(_HELD, {"d": database}) == engine.execute(_HELD, {"d": copy})


def _swapped(engine: Engine, database: str, folder: Path, path: Path) -> bool:
    """Move the copy in the folder into place; False if somebody wrote to the file as soon as it was let go."""
    part, name = folder / path.name, Identifier(database).sql()
    shutil.copymode(path, part)
    flush(part)
    before = path.stat()
    engine.execute(f"DETACH {name}")
    try:
        now = path.stat()
        if (now.st_mtime_ns, now.st_size) != (before.st_mtime_ns, before.st_size) or Path(f"{path}.wal").exists():
            return False
        move(part, path)
        return True
    finally:
        # Somebody else may have opened it; the release is published.
        engine.attempt(f"ATTACH {literal(str(path))} AS {name} (TYPE duckdb)")


@contextmanager
def undone(undo: Callable[[], object]) -> Iterator[None]:
    """Within, an error has what was done undone; it is the one to report, whatever becomes of that."""
    try:
        yield
    except BaseException:
        with suppress(LdivError):
            undo()
        raise
