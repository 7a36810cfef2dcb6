"""The method of releases of classes, in one table: by `run`, or the first of a series of `bsgi`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.base import Algorithm
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.publishing.series_draft import Start
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.recode import PUBLISHED, Recoding, keep_types, published_rows
from ldiv_db.requirements import Requirement
from ldiv_db.running.preparation import Listener, Ready, make_task, resolve_requirements
from ldiv_db.running.release_classes import plan_encoded
from ldiv_db.running.replaying.method import ROW_NO, Compared, Made, Method
from ldiv_db.running.run import Beside, work_out

Wanted = Mapping[str, Sequence[Requirement]]
_CLASS_ID = Identifier("class_id")


@dataclass
class ClassesMethod(Method):
    """What is read of the source once: its codes, and what the policy requires of its values."""

    coding: Coding
    #: Whether the release is a file of texts.
    texts: bool

    def coded(self, seed: int) -> Coding:
        """The codes by another seed."""
        return self.coding if seed == self.coding.source.seed else self.coding.reseeded(seed)

    def shown(self, encoded: Encoded, recoding: Recoding, class_id: bool) -> Made:
        """The release of an encoded world, whose classes are recoded."""
        engine, names = self.engine, self.resolved.released.all
        with published_rows(engine, encoded, recoding, class_id, texts=self.texts) as holes:
            release = engine.materialise("release", PUBLISHED, **holes)
            labels = engine.copy("labels", holes["labels"])
        columns = [Identifier(name) for name in names]
        return Made(
            encoded.rows,
            recoding.assigned,
            _CLASS_ID,
            [Compared(release, columns)],
            labels,
            holes["shown"],
            recoding.blanked,
        )


@dataclass
class RunMethod(ClassesMethod):
    """The method of a run."""

    algorithm: Algorithm
    beside: Beside

    def make(self, world: Relation, seed: int) -> Made:
        engine, coding = self.engine, self.coded(seed)
        encoded = coding.encode(world, [ROW_NO])
        task = make_task(engine, encoded, self._wanted(encoded), seed, Listener(), self.resolved.transparent)
        task = replace(task, suppression=self.resolved.suppression)
        algorithm, _ = self.algorithm.chosen(task)
        algorithm.checked(task)
        _, recoding = work_out(Ready(self.resolved, algorithm, task), self.beside)
        shown = keep_types(self.engine, recoding, self.resolved.typed)
        return self.shown(encoded, shown, self.resolved.released.has_class_ids)

    def _wanted(self, encoded: Encoded) -> Wanted:
        return resolve_requirements(self.engine, self.resolved.required, encoded)[0]


@dataclass
class SeriesMethod(ClassesMethod):
    """The method of the first release of a series of classes."""

    start: Start

    def make(self, world: Relation, seed: int) -> Made:
        encoded = self.coded(seed).encode(world, [ROW_NO])
        draft = plan_encoded(reseeded(self.start, seed), encoded, Listener())
        return self.shown(draft.encoded, draft.recoding, True)


def reseeded(start: Start, seed: int) -> Start:
    """The start of the same release by another seed."""
    source = replace(start.resolved.source, seed=seed)
    return replace(start, resolved=replace(start.resolved, source=source))
