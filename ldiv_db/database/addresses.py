"""What stands for a database: a file, or what DuckDB attaches, as `postgres:service=clinic` or `sqlite:crm.db`.

An address may hold a password. It is shown by its kind alone, and what is said where it cannot be opened is ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ldiv_db.database.errors import PolicyError, Problem

MEMORY = ":memory:"


@dataclass(frozen=True)
class Kind:
    """A kind of database: what it is called, DuckDB's type and extension for it, and whether it is a local file."""

    name: str
    type: str
    extension: str | None = None
    is_file: bool = False
    #: Whether DuckDB may make a table in it and take that back: MySQL commits every CREATE by itself.
    takes_back: bool = True
    #: What ATTACH has before the text, in place of a type.
    prefix: str = ""


DUCKDB = Kind("DuckDB", "duckdb", is_file=True)
POSTGRES = Kind("PostgreSQL", "postgres", "postgres_scanner")
#: The kinds by the word before the colon.
KINDS = {
    "postgres": POSTGRES,
    "postgresql": POSTGRES,
    "sqlite": Kind("SQLite", "sqlite", "sqlite_scanner", is_file=True),
    "ducklake": Kind("DuckLake", "ducklake", "ducklake", is_file=True, prefix="ducklake:"),
    "mysql": Kind("MySQL", "mysql", "mysql_scanner", takes_back=False),
    "md": Kind("MotherDuck", "motherduck", "motherduck", prefix="md:"),
    "motherduck": Kind("MotherDuck", "motherduck", "motherduck", prefix="md:"),
}
_WORD = re.compile(rf"({'|'.join(KINDS)}):(.*)", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"\$\{(\w*)\}")
#: What a connection to PostgreSQL is opened with, unless it says otherwise: a server that is silent or a table that
#: somebody holds is waited for so long.
#: To its administrator it is known by our name, unless the address, its service or PGAPPNAME give another.
_WAITS = {
    "connect_timeout": "15",
    "options": "-c lock_timeout=60s",
    "fallback_application_name": "ldiv_db",
}


@dataclass(frozen=True)
class Address:
    """A database by its kind, and the text with which DuckDB attaches it, which may hold a secret."""

    kind: Kind
    text: str = field(repr=False)

    def __str__(self) -> str:
        return self.text if self.kind.is_file and not _is_nested(self.text) else f"the {self.kind.name} database"

    @property
    def path(self) -> Path | None:
        """The file, None if there is none of its own."""
        return Path(self.text) if self.kind.is_file and not _is_nested(self.text) and self.text != MEMORY else None

    @property
    def attached(self) -> str:
        """The text that ATTACH takes."""
        return f"{self.kind.prefix}{self.text}"

    def waiting(self) -> Address:
        """The same, by which a server is not waited for without end, unless it says itself how long."""
        if self.kind is not POSTGRES:
            return self
        missing = {key: value for key, value in _WAITS.items() if not re.search(rf"\b{key}\s*=", self.text)}
        if "://" not in self.text:
            return replace(self, text=" ".join([self.text, *(f"{key}='{value}'" for key, value in missing.items())]))
        words = "&".join(f"{key}={value.replace(' ', '%20').replace('=', '%3D')}" for key, value in missing.items())
        return replace(self, text=f"{self.text}{'&' if '?' in self.text else '?'}{words}") if words else self

    def beside(self, folder: Path) -> Address:
        """The same with a relative file taken from the folder."""
        path = self.path
        return self if path is None else replace(self, text=str(folder / path))


def address_of(text: str, key: str = "database", environment: Mapping[str, str] | None = None) -> Address:
    """The database that a text names, with its `${VARIABLES}`; raises PolicyError for one that is not set."""
    match = _WORD.fullmatch(text)
    if match is None:
        return Address(DUCKDB, text)
    word, rest = match.groups()
    kind = KINDS[word.lower()]
    if kind is POSTGRES and rest.startswith("//"):
        rest = f"postgresql:{rest}"
    return Address(kind, _expanded(rest, key, os.environ if environment is None else environment))


def is_attached(text: str) -> bool:
    """Whether the text names a database that is no DuckDB file."""
    return _WORD.fullmatch(text) is not None


def _is_nested(text: str) -> bool:
    """Whether the text of a DuckLake is the address of another database, which holds what it knows."""
    return _WORD.fullmatch(text) is not None


def _expanded(text: str, key: str, environment: Mapping[str, str]) -> str:
    missing = [name for name in _VARIABLE.findall(text) if name not in environment]
    if missing:
        what = f"the environment has no variable {missing[0]}"
        raise PolicyError([Problem(key, what, f"set {missing[0]} before the command")])
    return _VARIABLE.sub(lambda match: environment[match[1]], text)
