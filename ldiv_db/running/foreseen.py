"""What is known of a run of one table or of several before any work, once its policy can be met."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, Task
from ldiv_db.auditing.people_names import LikelyPeople
from ldiv_db.policy.sensitive import smallest_class
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.publishing.history import Watch
from ldiv_db.publishing.result import Earlier, Result
from ldiv_db.recoding.loss import Loss
from ldiv_db.requirements import Requirement
from ldiv_db.running.estimate import Estimate
from ldiv_db.running.run_spec import l_of


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """What is known of a run before any work, once its policy can be met."""

    task: Task
    algorithm: Algorithm
    feasibility: Feasibility
    estimate: Estimate
    #: Why this algorithm runs, if the policy left that open, and what of the policy bears on nothing.
    reasons: Sequence[str] = ()
    #: What a reader takes for one value where requirements count several; the audit says it of the release.
    warnings: Sequence[str] = ()
    #: What kept columns tell beyond classes.
    kept: Sequence[str] = ()
    #: By what people may have several rows, where the policy names no individual.
    people: LikelyPeople | None = None
    #: What the ledger knows of earlier releases of the source, and the watch over it until one more is published.
    earlier: Earlier = field(default_factory=Earlier)
    watch: Watch | None = None
    #: What tables that it replaces lose.
    lost: Sequence[str] = ()
    #: What was tried in a rehearsal, as the result of a run would have it.
    tried: Sequence[Mapping[str, Any]] = ()

    @property
    def notes(self) -> list[str]:
        """All that a plan says."""
        said = (self.reasons, self.feasibility.notes, self.warnings, self.kept, self.estimate.notes, self.lost)
        return [*self.earlier.told(), *(line for lines in said for line in lines)]


class Prepared(Foreseen, ABC):
    """A run that can be published, of one table or of several."""

    @property
    @abstractmethod
    def replaces(self) -> bool:
        """Whether it takes the place of what is where it goes."""

    @property
    @abstractmethod
    def queries(self) -> Sequence[str]:
        """What its release answers."""

    @property
    @abstractmethod
    def named(self) -> dict[str, Any]:
        """What results say of the policy and its sources: names, the seed, and how columns generalise."""

    @property
    def is_there(self) -> bool:
        """Whether the rows lie in a warehouse."""
        return False

    def let_go(self) -> None:
        """Let go of what is open while a run reads, and is closed before it plans."""

    @property
    def judged(self) -> Mapping[str, Sequence[Requirement]]:
        """What the audit judges of each sensitive column."""
        return self.task.wanted

    def drafted(self, plan: Plan, loss: Loss, notes: Iterable[str], **more: Any) -> Result:
        """The result of a plan that loses so much, as far as it is known before its audit."""
        assert self.watch  # noqa: S101 - what is published has looked back
        algorithm, requirements = plan.algorithm or self.algorithm.name, self.task.requirements
        return Result(
            **self.named,
            run_id=self.watch.run_id,
            algorithm=algorithm,
            l=l_of(algorithm, requirements, plan.l),
            loss=loss,
            versions=versions(),
            notes=tuple(dict.fromkeys([*self.reasons, *notes])),
            smallest_class=smallest_class(requirements),
            earlier=self.earlier,
            **more,
        )
