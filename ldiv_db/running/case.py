"""A policy that cannot be met, and changes of it: what a run under the policy so changed would leave out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.algorithms.infeasible import Failure, failures
from ldiv_db.auditing.audit import refuse_unknown
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError
from ldiv_db.policy.changes import Place, changed
from ldiv_db.policy.document import Policy
from ldiv_db.policy.policy import problems_of
from ldiv_db.policy.problems import Problems
from ldiv_db.policy.required import Required, collect_required
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.named import Named
from ldiv_db.running.choices import make_algorithm

#: What is required of each attribute, with what the values of the encoded table make of it; raises PolicyError.
Reader = Callable[[Engine, Required, Encoded], tuple[Mapping[str, Sequence[Requirement]], Sequence[Named]]]


@dataclass(frozen=True)
class Change:
    """Keys of a policy as they would be, what is said of them, and whether they name values of the data.

    `least` rows are known to be left out then, whatever counts say.
    """

    keys: Mapping[str, Any]
    costs: str
    values: int = 0
    least: int = 0

    def by(self, algorithm: str) -> Change:
        """The same with another algorithm as well."""
        return Change({**self.keys, "algorithm": algorithm}, self.costs, self.values)


@dataclass(frozen=True)
class Case:
    """A policy that may not be met: `task` is what its algorithm was given."""

    policy: Policy
    task: Task
    resolved: Resolved
    read: Reader
    show_values: bool = False

    @cached_property
    def places(self) -> dict[Place, Requirement]:
        """The requirements by their number in the policy and their attribute."""
        return {
            (number, name): requirement
            for name, wanted in self.task.wanted.items()
            for number, requirement in zip(self._numbers(name), wanted, strict=True)
        }

    def _numbers(self, attribute: str) -> list[int]:
        """The numbers of the requirements on an attribute."""
        return [number for number, spec in enumerate(self.policy.require) if spec.concerns(attribute)]

    @cached_property
    def failures(self) -> list[tuple[Place, Failure]]:
        """The requirements that the whole table violates, each with its place."""
        found = []
        for axis in self.task.encoded.sensitive:
            name = axis.column.name
            places = {id(r): place for place, r in self.places.items() if place[1] == name}
            failed = failures(self.task.engine, axis, self.task.wanted[name])
            found += [(places[id(failure.requirement)], failure) for failure in failed if failure.is_of_table]
        return found

    def attempt(self, change: Change) -> tuple[Algorithm, Task]:
        """The algorithm of the policy so changed, which has not been asked yet, and its task; raises PolicyError."""
        policy = changed(self.policy, change.keys)
        engine, problems = self.task.engine, Problems(problems_of(policy))
        required = collect_required(engine, policy.require, self.resolved.required.attributes, problems)
        problems.refuse()
        wanted, _ = self.read(engine, required, self.task.encoded)
        every, share = [found for own in wanted.values() for found in own], policy.left_out_at_most
        task = replace(self.task, wanted=wanted, requirements=every, suppression=share)
        refuse_unknown(self.resolved.suppressed, task.requirements)
        return make_algorithm(policy), task

    def rows_left_out(self, change: Change) -> int | None:
        """The rows that a run leaves out under the policy so changed; None if it is refused."""
        engine = self.task.engine
        with engine.scope():
            try:
                algorithm, task = self.attempt(change)
                algorithm = algorithm.chosen(task)[0]
                algorithm.refuse_unfit(task)
                feasible = algorithm.checked(task)
                if not _is_left_open(task):
                    return feasible.rows_suppressed
                left_out = task.encoded.row_count - engine.count(algorithm.run(task).assigned)
                task.refuse_left_out(left_out)
                return task.encoded.left_out + left_out
            except (InfeasibleError, PolicyError):
                return None


def _is_left_open(task: Task) -> bool:
    """Whether counts alone do not tell how many rows find a class, so that classes have to be made."""
    return len(task.encoded.keys) > 1 or task.transparent
