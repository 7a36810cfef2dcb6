"""Time and room that a run takes: its stages, the seconds expected of each and those left, memory, and the release.

Seconds are expected by the table of `database/stages.py`, multiplied by how long finished stages took against theirs,
and within a stage by the counted work that is done of it.

The figures of memory were measured on tables of 200,000 to a million rows, one to seven quasi-identifiers and up to
three kept columns; a run needs between half and twice as much. So nothing is refused that would fit by half.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Stages, forming
from ldiv_db.algorithms.neighbours.passes import IMPROVING
from ldiv_db.database.context import Stage
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.stages import timed
from ldiv_db.recoding.encoded import Encoded

READING, MEASURING, WRITING = "reading the source", "measuring what is lost", "writing and auditing the release"
#: Of several tables: who publishes which of their rows.
PLACING = "placing rows of people"
#: The counted share of a stage's work after a quarter, a half and three quarters of its time.
CURVES = {
    forming("bsgi"): (0.4, 0.68, 1.0),
    forming("mondrian"): (0.0, 0.05, 0.9),
    forming("topdown"): (0.004, 0.08, 0.4),
    forming("peel"): (0.88, 0.97, 0.998),
    # Rounds end when they gain too little, most of them before the last that there may be.
    IMPROVING: (0.09, 0.18, 0.27),
}
EVEN = (0.25, 0.5, 0.75)
#: Work that is counted in no more parts than this is done to the end, each part in about the same time.
FEW_PARTS = 12
#: What was expected counts as much as what was found in so great a part of the run.
TRUST = 0.05
#: A stage that takes longer than expected takes so great a part of what it took longer still.
LONGER = 0.25
#: Counted work below this share of a stage says too little.
EARLY = 0.1
#: As long as a run goes on, no more of it is done than this share.
MOST = 0.95
#: Below so many seconds these are few; a stage that is over its time by as many takes longer than expected.
FEW_SECONDS = 10


def expected(work: Stages, cells: int, columns: int) -> tuple[Stage, ...]:
    """The stages of a run of so many cells of quasi-identifiers, whose algorithm goes through stages with this work."""
    stages = [(READING, cells), *work, (MEASURING, cells), (WRITING, cells)]
    return tuple(timed(name, amount, columns) for name, amount in stages)


def unplanned(algorithm: str, cells: int, columns: int, *before: str) -> tuple[Stage, ...]:
    """The stages of a run of which only the algorithm is known, with some `before` it plans."""
    return expected([(name, cells) for name in (*before, forming(algorithm))], cells, columns)


class Pace:
    """The time left of a run, by the stages that it enters and the work that it counts; `clock` gives seconds."""

    def __init__(self, first: str, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._begun = self._since = self._counted = clock()
        self._ahead, self._known = list[Stage](), dict[str, Stage]()
        self._here, self._share, self._most = Stage(first), 0.0, 0.0
        self._took = self._planned = 0.0

    @property
    def stage(self) -> str:
        return self._here.name

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self._clock() - self._begun

    def expect(self, stages: Sequence[Stage]) -> None:
        """These are the stages ahead, perhaps with the present one; told again, of what the present one has in it.

        Then they take the place of those ahead up to the last that they name again, or of the present one's own time:
        of how much they are more, as much longer are others of its kind.
        """
        named, again = {stage.name for stage in stages}, bool(self._known)
        last = max((place for place, stage in enumerate(self._ahead, 1) if stage.name in named), default=0)
        whole = sum(stage.seconds for stage in stages)
        others = self._ahead[last:]
        if again:
            within = not last and self.stage not in named
            known = [self._here] if within else self._ahead[:last]
            before, kinds = sum(stage.seconds for stage in known), {stage.kind for stage in known}
            more = whole / before if before else 1.0
            others = [replace(one, seconds=one.seconds * (more if one.kind in kinds else 1)) for one in others]
            self._here = Stage(self.stage) if within else self._here
        self._ahead = [*stages, *others]
        self._known |= {stage.name: stage for stage in stages}
        if again:
            return
        self._took = self._planned = whole * TRUST
        self._enter_known(self.stage)

    def enter(self, name: str) -> None:
        """A stage begins; those expected before it are left out. Unless it is expected again, it may be told twice."""
        if self._here.seconds and name == self.stage and all(stage.name != name for stage in self._ahead):
            return
        now = self._clock()
        if self._here.seconds:
            self._took += now - self._since
            self._planned += self._here.seconds
        self._since = self._counted = now
        self._share = 0.0
        self._enter_known(name)

    def count(self, done: int, total: int) -> None:
        """Note that so much of the stage's work is done."""
        self._counted = self._clock()
        self._share = _share_of_time(self._here.kind, done, total) if total else 0.0

    @property
    def _whole(self) -> float:
        """The seconds of the stage by what was expected, and by its work as it is counted; 0 if nothing tells."""
        pace = self._took / self._planned if self._planned else 1.0
        whole = self._here.seconds * pace
        if self._share >= (EARLY if whole else 0.001):
            counted = (self._counted - self._since) / self._share
            trusted = self._share**0.5 if whole else 1.0
            whole = whole * (1 - trusted) + counted * trusted
        return whole

    @property
    def left(self) -> float | None:
        """The seconds that are left, None if nothing tells."""
        spent, whole = self._clock() - self._since, self._whole
        pace = self._took / self._planned if self._planned else 1.0
        if not whole and not self._ahead:
            return None
        whole = max(whole, spent * (1 + LONGER))
        if self._here.seconds:
            pace = (self._took + whole) / (self._planned + self._here.seconds)
        return whole - spent + pace * sum(stage.seconds for stage in self._ahead)

    @property
    def share(self) -> float:
        """The share of the run that is done, at most `MOST`, and never less than was said before."""
        left = self.left
        if left is not None:
            self._most = max(self._most, min(MOST, self.seconds / (self.seconds + left or 1.0)))
        return self._most

    @property
    def wait(self) -> str:
        """The time left in words; empty if nothing tells."""
        left = self.left
        if left is None:
            return ""
        late = self._clock() - self._since - self._whole
        return "longer than expected" if late > FEW_SECONDS > left else f"{about(left)} left"

    def __str__(self) -> str:
        """The progress in words: no figure has more digits than somebody knows."""
        wait = self.wait
        if not wait:
            return f"{self.seconds:.0f} s so far"
        return f"about {round(self.share * 20) * 5:.0f} % done in {self.seconds:.0f} s, {wait}"

    def _enter_known(self, name: str) -> None:
        """The stage that is entered, as it was expected to come, or as it was before."""
        self._here = self._known.get(name, Stage(name))
        found = next((number for number, stage in enumerate(self._ahead) if stage.name == name), None)
        if found is not None:
            self._here, self._ahead = self._ahead[found], self._ahead[found + 1 :]


def _share_of_time(name: str, done: int, total: int) -> float:
    """The share of a stage's time that has passed when so much of its work is counted, between measured points."""
    curve = CURVES.get(name, EVEN) if total > FEW_PARTS else EVEN
    points = [(0.0, 0.0), *zip(curve, EVEN, strict=True), (1.0, 0.97)]
    for (low, before), (high, after) in pairwise(points):
        if done <= high * total:
            return before + (after - before) * (done / total - low) / max(high - low, 1e-9)
    return points[-1][1]


def about(seconds: float) -> str:
    """A time for people, to one figure or two: nobody knows it better."""
    if seconds < FEW_SECONDS:
        return "a few seconds"
    if seconds < 95:
        return f"about {round(seconds, -1):.0f} s"
    if seconds < 5700:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.0f} h"


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
        """The seconds that the stages are expected to take, on two cores that have nothing else to do."""
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
        """Notes for the user."""
        notes = []
        if self.overflow:
            needed = f"about {size(self.memory)} of memory are needed and {size(self.memory_limit)} allowed"
            where = self.temp_directory or "no temp directory"
            notes.append(f"{needed}: about {size(self.overflow)} will go to {where}")
        if self.temp_free is not None and self.overflow > self.temp_free:
            notes.append(f"only {size(self.temp_free)} are free there")
        if self.disk_free is not None and self.release > self.disk_free:
            free = f"only {size(self.disk_free)} are free on its disk"
            notes.append(f"the release takes about {size(self.release)}, and {free}")
        return notes

    def require_room(self) -> None:
        """Raise DatabaseError if not even half of what is expected would fit."""
        if self.temp_free is not None and self.memory // 2 > self.memory_limit + self.temp_free:
            what = f"there is too little room: {self.notes[0]}, where only {size(self.temp_free)} are free"
            raise DatabaseError(f"{what}. Give another --temp-dir or --memory-limit")
        if self.disk_free is not None and self.release // 2 > self.disk_free:
            raise DatabaseError(f"there is too little room: {self.notes[-1]}")


def estimate_run(
    engine: Engine, tables: Sequence[Encoded], folder: Path | None, stages: tuple[Stage, ...] = ()
) -> Estimate:
    """The estimate of a run on encoded tables; `folder` is where the release goes, None if into memory."""
    memory = release = 0
    for encoded in tables:
        widths, rows, axes = _widths(engine, encoded), encoded.row_count, len(encoded.axes)
        memory += rows * (_ROW + _AXIS * axes + sum(_KEPT + _CHARACTER * width for width in widths))
        release += rows * (_PUBLISHED + _LABEL * axes + sum(widths))
    found = engine.snapshot
    free = free_bytes(Path(found.temp_directory)) if found.temp_directory else 0
    return Estimate(
        memory=memory,
        memory_limit=found.memory_limit,
        overflow=max(memory - found.memory_limit, 0),
        temp_directory=found.temp_directory,
        temp_free=free if found.temp_limit is None or free is None else min(free, found.temp_limit),
        release=release,
        disk_free=None if folder is None else free_bytes(folder),
        stages=stages,
    )


def _widths(engine: Engine, encoded: Encoded) -> list[int]:
    if not encoded.kept:
        return []
    step = 1 if encoded.cells else max(encoded.row_count // _SAMPLE, 1)
    found = engine.record("recoding/input/measure_widths", rows=encoded.counted, columns=encoded.kept, step=step)
    return [round(float(found[column.alias.name] or 0)) for column in encoded.kept]


def free_bytes(folder: Path) -> int | None:
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
