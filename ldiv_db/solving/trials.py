"""Trials: candidates are run, what each would publish is measured, and what loses least is kept.

Budgets are of counted work, never of time: the same table gives the same release on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.templates import Relation
from ldiv_db.solving.choose import Candidate, Checked
from ldiv_db.solving.improve import improved, mean_loss, stages

#: How many times the least loss comes near it: improving was measured to save 7 to 35 %, whoever made the classes.
NEAR = 1.25


class Solver(Protocol):
    """Whoever has an algorithm do a task, perhaps in parts."""

    def solve(self, algorithm: Algorithm, task: Task) -> Plan: ...


@dataclass(frozen=True, eq=False)
class Trial:
    """The trial of a candidate: its plan and the loss of it, or the reason why there is none.

    `loss` is the mean LM of a cell by weights, `left_out` are those of the `rows` that the plan has no class for.
    """

    candidate: Candidate
    rows: int
    plan: Plan | None = None
    loss: float = 0.0
    left_out: int = 0
    failed: str = ""
    #: What failed, where that is a defect of the program.
    defect: AssertionError | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entry on the trial for the result."""
        found: dict[str, Any] = {"algorithm": self.candidate.name, "rows": self.rows}
        if self.plan is None:
            return found | {"failed": self.failed}
        return found | {"loss": self.loss, "rows_left_out": self.left_out}

    def __str__(self) -> str:
        out = f", {self.left_out:,} rows left out" if self.left_out else ""
        failed = "failed" if self.defect else "infeasible"
        return f"{self.candidate.name} ({f'{self.loss:.4f}{out}' if self.plan else failed})"


def within(candidates: Sequence[Checked], budget: int) -> tuple[list[Checked], list[Checked]]:
    """The first candidate and those whose work besides the budget covers, in their order; and the others."""
    taken, left = list(candidates[:1]), list[Checked]()
    for found in candidates[1:]:
        fits = found.candidate.work <= budget
        (taken if fits else left).append(found)
        budget -= found.candidate.work if fits else 0
    return taken, left


def try_all(solver: Solver, task: Task, candidates: Sequence[Checked], budget: int, suppress: bool) -> list[Trial]:
    """The trials of the candidates, with their plans; raises InfeasibleError if no candidate comes to anything.

    Beyond the budget candidates are tried until one has published all rows, or may leave them out (`suppress`).
    """
    trials: list[Trial] = []
    taken, left = within(candidates, budget)
    for number, found in enumerate([*taken, *left]):
        if number >= len(taken) and any(trial.plan and (suppress or not trial.left_out) for trial in trials):
            break
        trials.append(attempt(solver, task, found.candidate))
    if not any(trial.plan for trial in trials):
        defect = next((trial.defect for trial in trials if trial.defect), None)
        raise defect or InfeasibleError("\n".join(dict.fromkeys(trial.failed for trial in trials)))
    return trials


def take_best(task: Task, trials: Sequence[Trial], suppress: bool, improve: bool) -> tuple[Trial, Trial]:
    """The trial that is taken, as it was and after exchanges, if they are to `improve`; the other plans are dropped.

    Those that come near the least are improved as well: one of them may be the least afterwards.
    """
    made = [trial for trial in trials if trial.plan]
    out, loss = min(_rank(trial, suppress) for trial in made)
    near = [trial for trial in made if _rank(trial, suppress) <= (out, loss * NEAR)]
    if improve:
        task.ahead([stage for trial in near for stage in stages(task, trial.candidate.name)])
    after = {trial: _improved(task, trial) if improve and trial in near else trial for trial in made}
    best = min(made, key=lambda trial: _rank(after[trial], suppress))
    for trial in made:
        if trial is not best:
            drop(task, after[trial])
    return best, after[best]


def ranked(
    solver: Solver, part: Task, candidates: Sequence[Checked], budget: int, suppress: bool
) -> tuple[list[Checked], list[Trial]]:
    """The candidates, those first that lose least on a part of the rows, and their trials there; within the budget."""
    taken, left = within(candidates, budget)
    if len(taken) == 1:
        return [*candidates], []
    trials = [attempt(solver, part, found.candidate) for found in taken]
    order = sorted(range(len(taken)), key=lambda i: (trials[i].plan is None, *_rank(trials[i], suppress), i))
    return [*(taken[i] for i in order), *left], trials


def attempt(solver: Solver, task: Task, candidate: Candidate) -> Trial:
    """The candidate run; nothing but its plan is left of it."""
    engine, rows = task.engine, task.encoded.row_count
    with engine.scope() as scope:
        try:
            plan = solver.solve(candidate.algorithm, task)
            left_out = rows - engine.count(plan.assigned)
            task.refuse_left_out(left_out)
        except InfeasibleError as error:
            return Trial(candidate, rows, failed=str(error))
        except AssertionError as error:  # of one algorithm: another may meet the policy
            return Trial(candidate, rows, failed="what the algorithm asserts does not hold", defect=error)
        loss = mean_loss(task, plan)
        trial = Trial(candidate, rows, plan, loss, left_out)
        for table in _tables(trial):
            scope.keep(table)
        return trial


def _improved(task: Task, trial: Trial) -> Trial:
    """The trial after improvements, if it loses less then."""
    assert trial.plan is not None  # noqa: S101 - others are not among those made
    plan, loss = improved(task, trial.candidate.name, trial.plan, trial.loss)
    return replace(trial, plan=plan, loss=loss) if plan is not trial.plan else trial


def drop(task: Task, trial: Trial) -> None:
    """Drop the tables of a plan that is not taken."""
    task.engine.drop(*_tables(trial))


def _tables(trial: Trial) -> list[Relation]:
    """The tables of its plan."""
    plan = trial.plan
    return [table for table in (plan.assigned, plan.classes, plan.blanked) if table is not None] if plan else []


def _rank(trial: Trial, suppress: bool) -> tuple[int, float]:
    """Trials by what they lose; unless rows may be left out, those that leave out fewer come first of all."""
    return (0 if suppress else trial.left_out, trial.loss)
