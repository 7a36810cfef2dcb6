"""Progress of the commands that work long, on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

from ldiv_db.commands import telling
from ldiv_db.database.context import Listener
from ldiv_db.database.queries import Step
from ldiv_db.display import printer
from ldiv_db.running.estimate import Pace

#: Seconds between two lines of progress where there is no terminal.
_PAUSE = 5.0


class _Line(Progress):
    """A live line that is `told` of anew whenever it is drawn, during long statements as well."""

    def __init__(self, told: Callable[[], dict[str, Any]], *columns: Any, **how: Any) -> None:
        self._told = told
        super().__init__(*columns, **how)

    def get_renderables(self) -> Iterable[RenderableType]:
        for task in self.task_ids:
            self.update(task, **self._told())
        yield from super().get_renderables()


class ProgressDisplay:
    """Progress of long work on stderr, by its stages: a live line on a terminal, elsewhere a line every few seconds.

    A line has the name of the stage, the share of the work that is done and the time that is left, where that can be
    told. `quiet` shows nothing. Where the command keeps a log, stages and progress are lines of it.
    """

    def __init__(self, quiet: bool = False, first_stage: str = "reading the source") -> None:
        self._console = printer(stderr=True)
        self._quiet = quiet
        self._pace, self._found = Pace(first_stage), ""
        self._printed = time.monotonic()
        self._live = _Line(
            self._shown,
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            transient=True,
            disable=quiet or telling.log.get() is not None or not self._console.is_terminal,
        )
        self._live.add_task(first_stage, total=None, left="")

    def __enter__(self) -> Listener:
        self._live.start()
        return Listener(
            on_step=self._step,
            on_progress=self._pace.count,
            on_search=self._search,
            on_stage=self._next_stage,
            on_expected=self._pace.expect,
        )

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def _next_stage(self, text: str) -> None:
        self._pace.enter(text)
        self._found = ""
        if not self._quiet:
            telling.write("stage", stage=text)

    def _search(self, text: str) -> None:
        self._found = f" ({text})"

    def _step(self, step: Step) -> None:
        now = time.monotonic()
        if self._quiet or not self._live.disable or now - self._printed < _PAUSE:
            return
        self._printed = now
        left = self._pace.left
        if not telling.write("progress", stage=self._pace.stage, seconds_left=left and round(left)):
            self._console.print(f"{self._pace.stage}{self._found}: {self._pace}")

    def _shown(self) -> dict[str, Any]:
        share = {"total": None} if self._pace.left is None else {"total": 1.0, "completed": self._pace.share}
        return {"description": self._pace.stage + self._found, "left": self._pace.wait, **share}
