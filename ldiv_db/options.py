"""Options that several commands share, and what their words mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ldiv_db.attach import CATALOG
from ldiv_db.engine import Settings

_SIZE = re.compile(r"\d+(\.\d+)?\s*(B|[KMGT]i?B)", re.IGNORECASE)


def _size(text: str | None) -> str | None:
    """The size as the database takes it; refused if it is none."""
    if text is None or (_SIZE.fullmatch(text.strip()) and float(re.split("[a-zA-Z ]", text.strip())[0]) > 0):
        return text
    raise typer.BadParameter(f"{text!r} is no size, write e.g. 500MB or 4GB")


Database = Annotated[str, typer.Argument(help="The DuckDB file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads the database may use; all if not given.")]
Memory = Annotated[
    str | None, typer.Option(callback=_size, help="Memory the database may use, e.g. 4GB; most of it if not given.")
]
TempDir = Annotated[
    Path | None,
    typer.Option(
        help="Where the database puts what does not fit into memory; beside it, or where that may not be written in"
        " the system's folder, if not given.",
        show_default=False,
    ),
]
Catalog = Annotated[
    Path | None,
    typer.Option(
        help="The file of the catalog (taxonomies, runs) if it is not the database, which is then not written to.",
        show_default=False,
    ),
]


def settings(threads: int | None, memory_limit: str | None, temp_dir: Path | None) -> Settings:
    """The settings of a database that these options ask for."""
    return Settings(threads, memory_limit, None if temp_dir is None else str(temp_dir))


def catalog_name(catalog: Path | None) -> str | None:
    """The name under which the file is attached."""
    return None if catalog is None else CATALOG
