"""What this machine has of all that some of the program needs, and how to get the rest; asks no network.

`machine.toml` lists extensions, packages and programs.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.connections import extensions_here, open_database, ways_to_install
from ldiv_db.database.engine import Engine
from ldiv_db.display import Part, Printed, facts_of, fields_of, table_of
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.reporting.page import converter
from ldiv_db.running.estimate import free_bytes, size


@dataclass(frozen=True)
class Item:
    """A thing that may be on the machine: `here` is its version or its path, empty where it is not there."""

    kind: str
    name: str
    used_for: str
    here: str
    #: How to get it, where it is not there.
    get: str


@dataclass(frozen=True)
class Machine(Printed):
    """The versions of what takes part, what DuckDB takes by default, and what is there of all that may be needed."""

    versions: Mapping[str, str]
    threads: int
    memory_bytes: int
    free_bytes: int | None
    items: Sequence[Item]

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        own = fields_of(self, "versions", "threads", "memory_bytes", "free_bytes")
        return own | {"items": [vars(item) for item in self.items]}

    def text(self, **how: Any) -> Iterator[Part]:
        facts = [*self.versions.items(), ("threads", str(self.threads)), ("memory", size(self.memory_bytes))]
        free = [] if self.free_bytes is None else [("free for what does not fit into it", size(self.free_bytes))]
        yield facts_of("this machine", [*facts, *free])
        there = [(item.name, item.kind, item.here, item.used_for) for item in self.items if item.here]
        if there:
            yield table_of("here", ("name", "kind", "version or path", "for"), there)
        for item in self.items:
            if not item.here:
                yield f"not here: {item.name}, for {item.used_for}: {item.get}"


def look_around() -> Machine:
    """What is on this machine."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    with open_database(MEMORY) as connection:
        snapshot, extensions = Engine(connection).snapshot, extensions_here(connection)
    items = [
        Item("extension", name, used_for, versions()["duckdb"] if name in extensions else "", ways_to_install(name))
        for name, used_for in listed["extension"].items()
    ]
    for name, said in listed["package"].items():
        wanted = f"'ldiv-db[{said['extra']}]'" if "extra" in said else name
        items.append(Item("package", name, said["for"], _version_of(name), f"pip install {wanted}"))
    for name, said in listed["program"].items():
        items.append(Item("program", name, said["for"], _path_of(name), said["get"]))
    items.append(Item("program", "chromium", "reports as PDF", converter() or "", "install Chromium, or weasyprint"))
    found = {**versions(), "python": platform.python_version()}
    return Machine(found, snapshot.threads, snapshot.memory_limit, free_bytes(Path(tempfile.gettempdir())), items)


def _version_of(package: str) -> str:
    """The version of a package that is installed, else an empty text."""
    with suppress(PackageNotFoundError):
        return version(package)
    return ""


def _path_of(program: str) -> str:
    """The path of a program, else an empty text; Debian has PostgreSQL's server in folders that no search looks in."""
    beside = map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *beside])) or ""
