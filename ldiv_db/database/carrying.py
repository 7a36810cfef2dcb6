"""Small tables carried from one database to another, as bytes: the same names, columns, types and rows there.

The files are Parquet. Types that it has no equal of are carried as texts, and cast back.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import FileRelation, Identifier, Relation, literal

#: The types that Parquet gives back as they were.
_KEPT = re.compile(r"U?(TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|BOOLEAN|VARCHAR|BLOB|DECIMAL\(.*\)")


@dataclass(frozen=True)
class Packed:
    """A table: the names and types of its columns, and its rows as a Parquet file."""

    columns: tuple[tuple[str, str], ...]
    data: bytes


def pack(engine: Engine, relations: Iterable[Relation], folder: Path | None = None) -> dict[Relation, Packed]:
    """The TEMP tables of these names, written to a private folder on the way, in `folder` if it is given."""
    packed = {}
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside, "table.parquet")
        for relation in dict.fromkeys(relations):
            columns = tuple((column.name, column.type) for column in columns_of(engine, relation))
            written = ", ".join(_written(Identifier(name).sql(), kind) for name, kind in columns)
            engine.execute(f"COPY (SELECT {written} FROM {relation.sql()}) TO {literal(str(path))} (FORMAT parquet)")
            packed[relation] = Packed(columns, path.read_bytes())
    return packed


def unpack(engine: Engine, packed: Mapping[Relation, Packed], folder: Path | None = None) -> None:
    """Make the TEMP tables in a database that has none of them; they live as long as the connection."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside, "table.parquet")
        for relation, table in packed.items():
            path.write_bytes(table.data)
            read = ", ".join(
                f"CAST({Identifier(n).sql()} AS {kind}) AS {Identifier(n).sql()}" for n, kind in table.columns
            )
            engine.execute(
                f"CREATE TEMP TABLE {relation.sql()} AS SELECT {read} FROM read_parquet({literal(str(path))})"
            )


def _written(name: str, kind: str) -> str:
    return name if _KEPT.fullmatch(kind) else f"CAST({name} AS VARCHAR) AS {name}"


def scatter(engine: Engine, rows: Relation, column: str, folder: Path) -> None:
    """Write rows into a folder of Parquet files for each value of a column, `<column>=<value>` in `folder`."""
    options = f"FORMAT parquet, COMPRESSION zstd, PARTITION_BY ({Identifier(column).sql()}), OVERWRITE_OR_IGNORE"
    engine.execute(f"COPY {rows.sql()} TO {literal(str(folder))} ({options})")


def scattered(folder: Path, column: str, value: int) -> FileRelation:
    """The rows that were written for a value; the folder's name is no pattern."""
    return FileRelation("read_parquet", str(folder / f"{column}={value}" / "*.parquet"))
