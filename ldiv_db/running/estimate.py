"""What a run will need, before it starts: time, memory, room for what does not fit into it, room for the release.

The figures of memory were measured on tables of 200,000 to a million rows, one to seven quasi-identifiers and up to
three kept columns; a run needs between half and twice as much. So nothing is refused that would fit by half.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.database import catalog
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.templates import Value
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.running.pace import Stage

#: Bytes of working memory a row: of itself, a quasi-identifier, a kept column beside its characters, a character.
_ROW, _AXIS, _KEPT, _CHARACTER = 150, 60, 32, 2
#: Bytes of the release a row: of itself, and of a label.
_PUBLISHED, _LABEL = 16, 8
#: So many rows are looked at to learn how wide kept columns are.
_SAMPLE = 10_000
_UNITS = ("bytes", "KB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Estimate:
    """Bytes that a run is expected to need, and those there are; None where there is no limit.

    `overflow` is what memory cannot hold and goes to the temp directory, where `temp_free` bytes are free;
    `disk_free` are those where the release goes.
    """

    memory: int
    memory_limit: int
    overflow: int
    temp_directory: str
    temp_free: int | None
    release: int
    disk_free: int | None
    stages: tuple[Stage, ...] = ()

    @property
    def seconds(self) -> float:
        """What the stages of the run are expected to take, on two cores that have nothing else to do."""
        return sum(stage.seconds for stage in self.stages)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it, keys with their unit."""
        return {
            "seconds": self.seconds,
            "memory_bytes": self.memory,
            "memory_limit_bytes": self.memory_limit,
            "overflow_bytes": self.overflow,
            "temp_free_bytes": self.temp_free,
            "release_bytes": self.release,
            "disk_free_bytes": self.disk_free,
        }

    @property
    def notes(self) -> list[str]:
        """What the user should hear."""
        return list(self._notes())

    def _notes(self) -> Iterator[str]:
        if self.overflow:
            yield (
                f"about {size(self.memory)} of memory are needed and {size(self.memory_limit)} allowed: about"
                f" {size(self.overflow)} will go to {self.temp_directory or 'no temp directory'}"
            )
        if self.temp_free is not None and self.overflow > self.temp_free:
            yield f"only {size(self.temp_free)} are free there"
        if self.disk_free is not None and self.release > self.disk_free:
            yield f"the release takes about {size(self.release)}, and only {size(self.disk_free)} are free on its disk"

    def require_room(self) -> None:
        """Raise DatabaseError if not even half of what is expected would fit."""
        if self.temp_free is not None and self.memory // 2 > self.memory_limit + self.temp_free:
            raise DatabaseError(
                f"there is too little room: {self.notes[0]}, where only {size(self.temp_free)} are free."
                " Give another --temp-dir or --memory-limit"
            )
        if self.disk_free is not None and self.release // 2 > self.disk_free:
            raise DatabaseError(f"there is too little room: {self.notes[-1]}")


def estimate_run(engine: Engine, encoded: Encoded, folder: Path | None, stages: tuple[Stage, ...] = ()) -> Estimate:
    """What a run on the encoded table will need; `folder` is where the release goes, None if into memory."""
    widths = _widths(engine, encoded)
    rows, axes = encoded.row_count, len(encoded.axes)
    memory = rows * (_ROW + _AXIS * axes + sum(_KEPT + _CHARACTER * width for width in widths))
    found = catalog.resources(engine)
    free = _free(Path(found.temp_directory)) if found.temp_directory else 0
    return Estimate(
        memory=memory,
        memory_limit=found.memory_limit,
        overflow=max(memory - found.memory_limit, 0),
        temp_directory=found.temp_directory,
        temp_free=free if found.temp_limit is None or free is None else min(free, found.temp_limit),
        release=rows * (_PUBLISHED + _LABEL * axes + sum(widths)),
        disk_free=None if folder is None else _free(folder),
        stages=stages,
    )


def _widths(engine: Engine, encoded: Encoded) -> list[int]:
    """The mean number of characters of every kept column."""
    if not encoded.kept:
        return []
    step = 1 if encoded.cells else max(encoded.row_count // _SAMPLE, 1)
    found = engine.record("recoding/input/measure_widths", rows=encoded.counted, columns=encoded.kept, step=Value(step))
    return [round(float(found[column.alias.name] or 0)) for column in encoded.kept]


def _free(folder: Path) -> int | None:
    """The bytes that are free where the folder is, or will be; None if that cannot be told."""
    for path in (folder.absolute(), *folder.absolute().parents):
        try:
            return shutil.disk_usage(path).free
        except OSError:
            continue
    return None


def size(count: int) -> str:
    """A number of bytes for people."""
    power = min((len(str(count)) - 1) // 3, len(_UNITS) - 1)
    amount = count / 1000**power
    return f"{amount:,.0f} {_UNITS[power]}" if amount >= 100 else f"{amount:.3g} {_UNITS[power]}"
