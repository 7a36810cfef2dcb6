"""Targets: where a policy has a release go, and columns as it lists them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ldiv_db.database.errors import Problem
from ldiv_db.policy.parts import PolicyPart

#: What the table of a release is called where it is the only one.
ONLY = ""
#: The endings of files that a release may go to, and their formats.
TARGET_FILES = {".duckdb": "duckdb", ".db": "duckdb", ".ddb": "duckdb", ".parquet": "parquet", ".csv": "csv"}
#: Those that hold one table alone.
FLAT = ("csv", "parquet")


class Target(PolicyPart):
    """The release's place: a table of the source's database, or of another that the policy names, or a file."""

    table: str | None = None
    database: str | None = None
    file: str | None = None
    prefix: str | None = Field(default=None, description="how the names of the tables of each release begin")
    if_exists: Literal["fail", "replace", "append"] = "fail"
    lose: tuple[Literal["row policies"], ...] = Field(default=(), description="what a table made anew may be without")

    def __str__(self) -> str:
        return ":".join(part for part in (self.database, self.file, self.table or self.prefix) if part)

    @property
    def format(self) -> str | None:
        """The file's format by its ending, None for one that we do not write."""
        return TARGET_FILES.get(Path(self.file or "").suffix.lower())

    @property
    def begins(self) -> str:
        """How the names of the tables of releases begin: the prefix, or the name of the table or file."""
        return self.prefix or self.table or Path(self.file or "").stem

    @property
    def is_elsewhere(self) -> bool:
        """True if it is a file, or in another database than the source's."""
        return self.file is not None or self.database is not None

    @property
    def folder(self) -> Path | None:
        """The folder of a file, None of what is in a database."""
        return Path(self.file).parent if self.file else None

    @property
    def home(self) -> str | Path:
        """The database that it names, the DuckDB file, or the folder of another file; '' of the source's database."""
        file = Path(self.file or "")
        return file if self.format == "duckdb" else self.folder if self.folder is not None else self.database or ""

    def problems(self) -> list[Problem]:
        if "\0" in (self.file or ""):
            return [Problem("target.file", "holds a character that no file's name has")]
        is_named = self.table is not None or self.prefix is not None
        if self.database is not None and (not is_named or self.file is not None or self.if_exists == "append"):
            return [Problem("target.database", "goes with `table:`, and if_exists: fail or replace")]
        if self.prefix is not None:
            what = "goes with tables: the names of files begin as that of `file` does"
            return [Problem("target.prefix", what, "leave it out")] if self.format in FLAT else []
        if self.file is None:
            return [] if self.table else [Problem("target", "takes `table:`, `file:` or both")]
        found = []
        if self.format is None:
            found.append(Problem("target.file", f"{self.file} has none of the endings {', '.join(TARGET_FILES)}"))
        elif self.format == "duckdb" and not self.table:
            found.append(Problem("target.table", "is required: the name of the table in the file"))
        elif self.format != "duckdb" and self.table:
            found.append(Problem("target.table", "goes with a DuckDB file, this one holds one table without a name"))
        if self.if_exists == "append":
            found.append(Problem("target.if_exists", "append goes with a table of the source's database", "or replace"))
        return found


def named_target(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return {"file" if Path(value).suffix.lower() in TARGET_FILES else "table": value}


GivenTarget = Annotated[Target, BeforeValidator(named_target, json_schema_input_type=str | Target)]


def listed_columns(value: Any) -> Any:
    if isinstance(value, str):
        return {value: {}}
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return {name: {} for name in value}
    if isinstance(value, Mapping):
        return {name: {} if settings is None else settings for name, settings in value.items()}
    return value
