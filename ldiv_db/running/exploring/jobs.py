"""What is to be done for each variant: its policy held against the source, and the codes that it shares with others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ldiv_db.algorithms.base import Algorithm
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.templates import Relation
from ldiv_db.policy.policy import Examined, problems_of
from ldiv_db.policy.resolve import Findings, Resolved, Source, resolve
from ldiv_db.recoding.encode import Coding, read_source
from ldiv_db.recoding.moved import moved
from ldiv_db.running.choices import make_algorithm
from ldiv_db.running.exploring.variants import Variant


@dataclass(frozen=True)
class Job:
    """A variant that can be rehearsed; `refused` says why it cannot, if so, and then it has no codes."""

    variant: Variant
    resolved: Resolved | None = None
    algorithm: Algorithm | None = None
    coding: Coding | None = None
    refused: str = ""

    def moved(self, move: Callable[[Relation], Relation]) -> Job:
        """The same with its codes where `move` takes them."""
        return replace(self, coding=self.coding and moved(self.coding, move))


class Codes:
    """The codes of a source, which is read once for all variants that have the same rows."""

    def __init__(self, engine: Engine, show_values: bool = False):
        self._engine = engine
        self._show_values = show_values
        self._read: dict[tuple[str, ...], Coding] = {}

    def of(self, source: Source) -> Coding:
        """The codes of the source as it generalises; the first that is asked for has all columns of the others."""
        # Where a NULL leaves out its row, rows depend on which columns are quasi-identifiers.
        names = () if source.nulls == "value" else tuple(qi.name for qi in source.quasi_identifiers)
        if names not in self._read:
            self._read[names] = read_source(self._engine, source, show_values=self._show_values, counted=True)
        return self._read[names].generalising(source)


def job_of(engine: Engine, variant: Variant, folder: Path, codes: Codes) -> Job:
    """The variant ready to be rehearsed, or refused with the reason."""
    try:
        resolved, algorithm = resolve_variant(engine, variant, folder)
        return Job(variant, resolved, algorithm, codes.of(resolved.source))
    except PolicyError as error:
        return Job(variant, refused=error.message)


def resolve_variant(engine: Engine, variant: Variant, folder: Path) -> tuple[Resolved, Algorithm]:
    """The variant's policy held against its source, but for its target, and its algorithm; raises PolicyError."""
    algorithms: list[Algorithm] = []

    def judge_algorithm(found: Findings) -> None:
        algorithms.append(make_algorithm(found.policy))

    written = Examined(variant.policy, problems_of(variant.policy))
    resolved = resolve(engine, written, folder, {"algorithm": judge_algorithm})
    return resolved, algorithms[0]
