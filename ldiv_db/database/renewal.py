"""A DuckDB file written anew: what was dropped or replaced stays in its bytes until something takes their place."""

from __future__ import annotations

import shutil
import uuid
from contextlib import suppress
from pathlib import Path

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.files import flush, move, sweep, work_folder
from ldiv_db.database.names import Identifier, literal

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
        with suppress(DatabaseError):  # somebody else may have opened it; the release is published
            engine.execute(f"ATTACH {literal(str(path))} AS {name} (TYPE duckdb)")
