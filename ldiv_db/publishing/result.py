"""Results of runs and releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.addresses import Place
from ldiv_db.database.connections import ClientRelation
from ldiv_db.database.errors import DatabaseError
from ldiv_db.display import Shown
from ldiv_db.measuring.answers import Answer
from ldiv_db.policy.quasi_identifiers import Inferred
from ldiv_db.publishing.earlier import Earlier
from ldiv_db.publishing.inference import Inference
from ldiv_db.recoding.loss import Loss
from ldiv_db.recoding.rules import GlobalRecoding

#: What classes are called on every screen: those with different labels or published ids, which readers can tell apart,
#: and those that an algorithm made, of which several may be published with equal labels.
DISTINCT_CLASSES, CLASSES_MADE = "distinct classes", "classes made"


@dataclass(frozen=True)
class Similarity:
    """The rows whose category the similarity attack infers, in the source and in the release."""

    sensitive: str
    rows_before: int
    rows_after: int


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """Result of a run: the object that `ldiv run --json` prints."""

    run_id: str
    algorithm: str
    source: str
    target: str
    l: int | float | None
    loss: Loss
    search: dict[str, Any]
    seed: int
    versions: dict[str, str]
    audits: Sequence[Audit] = ()
    seconds: float = 0.0
    notes: Sequence[str] = field(default_factory=tuple)
    similarity: Sequence[Similarity] = ()
    recoding: GlobalRecoding | None = None
    #: What `cavg` is in units of.
    smallest_class: int | None = None
    #: How quasi-identifiers generalise of which the policy does not say it.
    inferred: Sequence[Inferred] = ()
    #: Where the release is.
    place: Place | None = field(default=None, repr=False, compare=False)
    #: What counting rows hides where people have several and the policy names no individual; it is among the notes.
    people: str = field(default="", repr=False)
    #: The number of the snapshot that release and ledger row are, in a database that numbers them.
    snapshot: int | None = None
    #: What the ledger knows of earlier releases of the source.
    earlier: Earlier = field(default_factory=Earlier)
    #: What the policy's queries (`preserve`) answer of the release.
    answers: Sequence[Answer] = ()

    def table(self) -> ClientRelation:
        """The release as a relation of DuckDB's, which has `.df()`, `.pl()` and `.arrow()`.

        Raises DatabaseError where it cannot be read from here: after a run on an address its database is closed.
        """
        if self.place is None:
            raise DatabaseError(f"{self.target} is not read from here: read it in its own database")
        return self.place.read()

    @property
    def requirements(self) -> list[dict[str, Any]]:
        return [{**v.as_dict(), "sensitive": audit.sensitive or None} for audit in self.audits for v in audit.verdicts]

    def as_dict(self, show_seed: bool = False) -> dict[str, Any]:
        """The result as JSON has it, keys as in the reference; the seed, a secret, is named on request."""
        compared = self.earlier.compared
        return {
            "run_id": self.run_id,
            "algorithm": self.algorithm,
            "source": self.source,
            "target": self.target,
            "rows_in": self.loss.rows_published + self.loss.rows_suppressed,
            "rows_published": self.loss.rows_published,
            "rows_suppressed": self.loss.rows_suppressed,
            "cells_suppressed": self.loss.cells_suppressed,
            "classes": self.loss.classes,
            "classes_made": self.loss.classes_made,
            "avg_class_size": self.loss.average_class_size,
            "loss": self.loss.as_dict(self.smallest_class),
            "requirements": self.requirements,
            "similarity": [vars(attack) for attack in self.similarity],
            "answers": [answer.as_dict() for answer in self.answers],
            "search": self.search,
            "inferred": [inferred.as_dict() for inferred in self.inferred],
            "seconds": self.seconds,
            **({"seed": self.seed} if show_seed else {}),
            "unchanged": self.earlier.unchanged,
            "versions": self.versions,
            "notes": self.said,
            **({} if isinstance(compared, str) else {"compared": [attack.as_dict() for attack in compared]}),
            **({} if self.snapshot is None else {"snapshot": self.snapshot}),
        }

    @property
    def said(self) -> list[str]:
        """The notes, with what is known of earlier releases and what the audit warns of."""
        return [
            *self.earlier.told(self.run_id),
            *self.notes,
            *(warning for audit in self.audits for warning in audit.warnings),
        ]


@dataclass(frozen=True, repr=False)
class Released(Shown):
    """Result of a release of a series: the object that `ldiv run --json` prints under a policy with a `key`."""

    figures: dict[str, Any]
    audits: Sequence[Audit] = ()
    inference: Inference | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    #: What its groups were drawn by, a secret.
    seed: int | None = field(default=None, repr=False)

    def as_dict(self, show_seed: bool = False) -> dict[str, Any]:
        """The result as JSON has it, keys as in the reference; the seed, a secret, is named on request."""
        return {
            **self.figures,
            **({"seed": self.seed} if show_seed else {}),
            "requirements": [{**v.as_dict(), "sensitive": a.sensitive} for a in self.audits for v in a.verdicts],
            "inference": self.inference.as_dict() if self.inference else None,
            "notes": list(self.notes),
        }
