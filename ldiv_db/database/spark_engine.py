"""Templates run by Spark: every step a view of the session's, kept by its executors, and only counts are read here."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from typing import Any

from ldiv_db.database.engine import Engine, Step
from ldiv_db.database.portable import listed_rows, written_step
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.templates import Relation, Statement, render

DIALECT = "spark"
#: How our statements are to be read, whatever the session's settings are.
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
}


class SparkEngine(Engine):
    """Runs templates, carried over to Spark's dialect, in a session; what it makes is dropped by `close_scratch`."""

    def __init__(self, session: Any, on_step: Callable[[Step], None] | None = None):
        self.session = session
        self.catalog = None
        self.steps = []
        self._on_step = on_step
        self._on_statement = None
        self._render = partial(render, folders=())
        self._scratch = []
        self._counted = {}
        self._given = []
        self._prefix = f"ldiv_{uuid.uuid4().hex[:8]}"
        self._numbers = itertools.count(1)

    def make(self, name: str, statement: Statement) -> Relation:
        """A view of what a statement selects, whose rows executors keep once they are made."""
        return self.keep(name, self._sql(written_step(statement, DIALECT)))

    def view(self, name: str, template: str, **holes: Any) -> Relation:
        """As `materialise`, kept nowhere."""
        return self.keep(name, self._sql(written_step(self._render(template, holes), DIALECT)), kept=False)

    def load(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> Relation:
        """A view of rows of metadata made in Python: `columns` is name to SQL type of our own database."""
        return self.keep(name, self._sql(listed_rows(columns, rows, DIALECT)), kept=False)

    def keep(self, name: str, frame: Any, kept: bool = True) -> Relation:
        """A view of a frame of Spark's."""
        target = self._temp_name(name)
        with plainly("read what was counted"):
            (frame.persist() if kept else frame).createOrReplaceTempView(target.name)
        self._scratch.append(target)
        if self._on_step:
            self._on_step(Step(name, 0, 0.0))
        return target

    def drop(self, *relations: Relation) -> None:
        """Drop views that `materialise`, `view` or `load` made, and what is kept of them."""
        for relation in relations:
            self._forget(relation)
            self._scratch.remove(relation)

    def close_scratch(self) -> None:
        """Drop every view that is left."""
        for relation in reversed(self._scratch):
            with suppress(Exception):  # the session itself may be gone; the first error is the one to report
                self._forget(relation)
        self._scratch.clear()

    @contextmanager
    def settled(self) -> Iterator[None]:
        """Within, the session reads our statements as we mean them; its settings are put back at the end."""
        before = {name: self.session.conf.get(name, None) for name in SETTINGS}
        try:
            for name, value in SETTINGS.items():
                self.session.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                with suppress(Exception):  # the session itself may be gone
                    self.session.conf.unset(name) if old is None else self.session.conf.set(name, old)

    def _forget(self, relation: Relation) -> None:
        # What was kept of it goes with it: a frame of Spark Connect's could not say so once what it reads is dropped.
        self.session.catalog.dropTempView(relation.name)

    def _temp_name(self, name: str) -> Relation:
        return Relation((f"{self._prefix}_{next(self._numbers)}_{name}",))

    def _sql(self, text: str) -> Any:
        with plainly("run a statement"):
            return self.session.sql(text)

    def _execute(self, statement: Statement) -> tuple[list[str], list[tuple[Any, ...]]]:
        frame = self._sql(written_step(statement, DIALECT))
        with plainly("count"):
            rows = frame.collect()
        return list(frame.columns), [tuple(map(_as_ours, row)) for row in rows]


def _as_ours(value: Any) -> Any:
    """A whole number that Spark has as a decimal, as one."""
    return int(value) if isinstance(value, Decimal) and value.as_tuple().exponent == 0 else value
