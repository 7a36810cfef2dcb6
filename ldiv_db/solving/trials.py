"""Trials of candidates: each is run, what it would publish is measured, and what loses least is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.database.errors import InfeasibleError, rows_phrase
from ldiv_db.database.names import Relation
from ldiv_db.solving.choose import Candidate
from ldiv_db.solving.improve import Effort, Improvable, improved, mean_loss, published_loss, stages

#: How many times the least loss comes near it: improving was measured to save 7 to 35 %, whoever made the classes.
NEAR = 1.25
#: Has an algorithm do a task, perhaps in parts.
Solve = Callable[[Algorithm, Task], Plan]


@dataclass(frozen=True, eq=False)
class Trial:
    """The trial of a candidate: its plan and the loss of it, or the reason why there is none.

    `loss` is the mean LM of a cell by weights, `told` that of a published one, all alike, where these differ, as where
    people are planned; `left_out` are those of the `rows` that the plan has no class for.
    """

    candidate: Candidate
    rows: int
    plan: Plan | None = None
    loss: float = 0.0
    told: float = 0.0
    left_out: int = 0
    failed: str = ""
    #: What failed, where that is a defect of the program.
    defect: AssertionError | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entry on the trial for the result."""
        found: dict[str, Any] = {"algorithm": self.candidate.name, "rows": self.rows, "work": self.candidate.work}
        if self.plan is None:
            return found | {"failed": self.failed}
        return found | {"loss": self.told, "rows_left_out": self.left_out}

    def __str__(self) -> str:
        out = f", {rows_phrase(self.left_out)} left out" if self.left_out else ""
        failed = "failed" if self.defect else "infeasible"
        return f"{self.candidate.name} ({f'{self.told:.4f}{out}' if self.plan else failed})"

    @property
    def tables(self) -> list[Relation]:
        """The tables of its plan."""
        plan = self.plan
        return [table for table in (plan.assigned, plan.classes, plan.blanked) if table is not None] if plan else []


def within(candidates: Sequence[Candidate], budget: int) -> tuple[list[Candidate], list[Candidate]]:
    """The first candidate and those whose work besides the budget covers, in their order; and the others."""
    taken, left = list(candidates[:1]), list[Candidate]()
    for found in candidates[1:]:
        fits = found.work <= budget
        (taken if fits else left).append(found)
        budget -= found.work if fits else 0
    return taken, left


@dataclass(frozen=True)
class Contest:
    """Trials of a task; with `suppress` rows may be left out, else what leaves out fewer comes first of all."""

    solve: Solve
    task: Task
    suppress: bool

    def try_all(self, candidates: Sequence[Candidate], budget: int) -> list[Trial]:
        """The trials of the candidates, with their plans; raises InfeasibleError if none comes to anything.

        Beyond the budget candidates are tried until one has published all rows, or may leave them out.
        """
        trials: list[Trial] = []
        taken, left = within(candidates, budget)
        for number, candidate in enumerate([*taken, *left]):
            if number >= len(taken) and any(one.plan and (self.suppress or not one.left_out) for one in trials):
                break
            trials.append(self._attempt(candidate))
        if not any(trial.plan for trial in trials):
            defect = next((trial.defect for trial in trials if trial.defect), None)
            raise defect or InfeasibleError("\n".join(dict.fromkeys(trial.failed for trial in trials)))
        return trials

    def ranked(self, candidates: Sequence[Candidate], budget: int) -> tuple[list[Candidate], list[Trial]]:
        """The candidates, those within the budget first that lose least, and their trials."""
        taken, left = within(candidates, budget)
        trials = [self._attempt(candidate) for candidate in taken]
        order = sorted(range(len(taken)), key=lambda i: (trials[i].plan is None, *self._rank(trials[i]), i))
        return [*(taken[i] for i in order), *left], trials

    def near(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials that come near the least, one of those that lose the same: one may be the least once improved."""
        made = [trial for trial in trials if trial.plan]
        out, loss = min(map(self._rank, made))
        first = {self._rank(trial): trial for trial in reversed(made)}
        return [trial for rank, trial in first.items() if rank <= (out, loss * NEAR)]

    def best(self, trials: Sequence[Trial], after: Mapping[Trial, Trial]) -> tuple[Trial, Trial]:
        """The trial that is taken, as it was and `after` improvements; the other plans are dropped."""
        made = [trial for trial in trials if trial.plan]
        best = min(made, key=lambda trial: self._rank(after.get(trial, trial)))
        for trial in made:
            if trial is not best:
                self.task.engine.drop(*after.get(trial, trial).tables)
        return best, after.get(best, best)

    def _attempt(self, candidate: Candidate) -> Trial:
        """The candidate run; nothing but its plan is left of it."""
        task, rows = self.task, self.task.encoded.row_count
        with task.engine.scope() as scope:
            try:
                plan = self.solve(candidate.algorithm, task)
                left_out = rows - plan.row_count(task.engine)
                task.refuse_left_out(left_out)
            except InfeasibleError as error:
                return Trial(candidate, rows, failed=str(error))
            except AssertionError as error:  # of one algorithm: another may meet the policy
                return Trial(candidate, rows, failed="what the algorithm asserts does not hold", defect=error)
            loss = mean_loss(task, plan)
            trial = Trial(candidate, rows, plan, loss, published_loss(task, plan, loss), left_out)
            for table in trial.tables:
                scope.keep(table)
            return trial

    def improvable(self, trial: Trial, effort: Effort) -> Improvable:
        """The plan of a trial, to be improved by an effort."""
        assert trial.plan is not None  # noqa: S101 - others are not among those made
        return Improvable(self.task, trial.candidate.name, trial.plan, effort, trial.loss)

    def improved(self, trial: Trial, plan: Plan, loss: float) -> Trial:
        """The trial with its plan after improvements, which loses that."""
        if plan is trial.plan:
            return trial
        return replace(trial, plan=plan, loss=loss, told=published_loss(self.task, plan, loss))

    def _rank(self, trial: Trial) -> tuple[int, float]:
        return (0 if self.suppress else trial.left_out, trial.loss)


def take_best(tried: Sequence[tuple[Contest, Sequence[Trial], Effort]]) -> list[tuple[Trial, Trial]]:
    """Of the trials of each contest that which is taken, as it was and after improvements by an effort.

    Those that come near the least are improved, of all contests at once.
    """
    near = [(contest, trial, effort) for contest, trials, effort in tried for trial in contest.near(trials)]
    ahead = [stage for contest, trial, effort in near for stage in stages(contest.task, trial.candidate.name, effort)]
    tried[0][0].task.ahead(ahead)
    better = improved([contest.improvable(trial, effort) for contest, trial, effort in near])
    after = {trial: c.improved(trial, *found) for (c, trial, _), found in zip(near, better, strict=True)}
    return [contest.best(trials, after) for contest, trials, _ in tried]
