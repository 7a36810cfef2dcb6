"""`auto` and `fast`: candidates are tried and what loses least is published, or the quickest is taken.

Candidates are run, what each would publish is measured, and what loses least is kept.

Effort is counted work, never time: the same table gives the same release on any machine.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Stages, Task, Traits, forming
from ldiv_db.database.errors import InfeasibleError, SuppressionError, count_phrase, rows_phrase
from ldiv_db.database.templates import Relation
from ldiv_db.solving.choose import (
    LARGE,
    MANY_ROWS,
    SAMPLE,
    WORK,
    Candidate,
    Checked,
    candidates_of,
    checked_within,
    fast_candidates,
    leaving,
    sampled,
    shares_decide,
)
from ldiv_db.solving.effort import EFFORTS, LEAST, Effort, Name
from ldiv_db.solving.improve import improved, mean_loss, published_loss, stages

#: How many times the least loss comes near it: improving was measured to save 7 to 35 %, whoever made the classes.
NEAR = 1.25
#: Of a table of up to so many cells `peel` is tried too: on 40 random ones the mean LM went from .280 to .260.
TINY = 100


class Solver(Protocol):
    """Whoever has an algorithm do a task, perhaps in parts."""

    def solve(self, algorithm: Algorithm, task: Task) -> Plan: ...


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


def take_best(task: Task, trials: Sequence[Trial], suppress: bool, effort: Effort) -> tuple[Trial, Trial]:
    """The trial that is taken, as it was and after improvements by that effort; the other plans are dropped.

    Those that come near the least are improved as well, one of those that lose the same: one may be the least then.
    """
    made = [trial for trial in trials if trial.plan]
    out, loss = min(_rank(trial, suppress) for trial in made)
    first = {_rank(trial, suppress): trial for trial in reversed(made)}
    near = [trial for rank, trial in first.items() if rank <= (out, loss * NEAR)]
    task.ahead([stage for trial in near for stage in stages(task, trial.candidate.name, effort)])
    after = {trial: _improved(task, trial, effort) if trial in near else trial for trial in made}
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
    trials = [attempt(solver, part, found.candidate) for found in taken]
    order = sorted(range(len(taken)), key=lambda i: (trials[i].plan is None, *_rank(trials[i], suppress), i))
    return [*(taken[i] for i in order), *left], trials


def attempt(solver: Solver, task: Task, candidate: Candidate) -> Trial:
    """The candidate run; nothing but its plan is left of it."""
    engine, rows = task.engine, task.encoded.row_count
    with engine.scope() as scope:
        try:
            plan = solver.solve(candidate.algorithm, task)
            left_out = rows - plan.row_count(engine)
            task.refuse_left_out(left_out)
        except InfeasibleError as error:
            return Trial(candidate, rows, failed=str(error))
        except AssertionError as error:  # of one algorithm: another may meet the policy
            return Trial(candidate, rows, failed="what the algorithm asserts does not hold", defect=error)
        loss = mean_loss(task, plan)
        trial = Trial(candidate, rows, plan, loss, published_loss(task, plan, loss), left_out)
        for table in _tables(trial):
            scope.keep(table)
        return trial


def _improved(task: Task, trial: Trial, effort: Effort) -> Trial:
    """The trial after improvements, if it loses less then."""
    assert trial.plan is not None  # noqa: S101 - others are not among those made
    plan, loss = improved(task, trial.candidate.name, trial.plan, effort, trial.loss)
    if plan is trial.plan:
        return trial
    return replace(trial, plan=plan, loss=loss, told=published_loss(task, plan, loss))


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


class AutoOptions(Options):
    """With `suppress`, rows are left out where that loses less; `effort` says how much work less loss is worth.

    `quick`: the classes of the most promising algorithm as they are, or where classes are compared with the whole table
    of the better of two; `normal`: improved as long as that gains much for its work; `thorough`: also for little, and
    other algorithms are tried.
    """

    residue: Literal["incorporate", "suppress"] = "incorporate"
    effort: Name = "normal"


class Chooser(Algorithm):
    """An algorithm that has others do the work."""

    @abstractmethod
    def choose(self, task: Task, solver: Solver) -> Plan:
        """The plan of the algorithm that is chosen, whatever the solver makes of it; call after `check`."""

    def run(self, task: Task) -> Plan:
        """As `choose`, without a division into parts."""
        return self.choose(task, Whole())


class Whole:
    """A solver that divides nothing."""

    def solve(self, algorithm: Algorithm, task: Task) -> Plan:
        """The algorithm's plan of the task."""
        return algorithm.run(task)


class Auto(Chooser):
    """The least loss that the candidates within the budget come to, after exchanges between neighbouring classes."""

    name = "auto"
    traits = Traits(outliers=True, any_class=True, harmless=True, rows_alone=True, bags=True)
    options_type = AutoOptions
    options: AutoOptions

    def by_effort(self, name: Name) -> Auto:
        """The same by another effort."""
        return Auto({**self.options.model_dump(exclude_unset=True), "effort": name})

    @property
    def effort(self) -> Effort:
        """The effort that the policy asks for."""
        return EFFORTS[self.options.effort]

    @property
    def _suppress(self) -> bool:
        return self.options.residue == "suppress"

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The one candidate, and why, where no other can do the task; itself where there is something to try."""
        candidates = candidates_of(task, self._suppress)
        if len(candidates) > 1:
            return self, ""
        return _settled(task, candidates[0])

    def check(self, task: Task) -> Feasibility:
        """As the first candidate that the counts allow, with what will be tried; raises what the first of all says."""
        found = self._checked(task)
        tried, left = within(found, self._trials(task))
        notes = (*found[0].feasible.notes, _plan_note(tried, left, _is_large(task)))
        return replace(found[0].feasible, notes=notes, tries=_names(tried))

    def choose(self, task: Task, solver: Solver) -> Plan:
        found, budget, before = self._checked(task), self._trials(task), list[Trial]()
        suppress = self._suppress or task.suppression is not None
        if _is_large(task) and len(within(found, budget)[0]) > 1:
            with task.engine.scope():
                found, before = ranked(solver, sampled(task, SAMPLE), found, budget, suppress)
            budget = 0
        trials = try_all(solver, task, found, budget, suppress)
        best, better = take_best(task, trials, suppress, self._effort(task))
        assert better.plan is not None  # noqa: S101 - the best has one
        tried = [*before, *trials]
        search = better.plan.search | {"tried": [trial.as_dict() for trial in tried]}
        search["effort"] = "quick" if self._effort(task) is LEAST else self.options.effort
        told = partial(_trials_note, tried, best, better)
        return replace(better.plan, told=told, search=search, algorithm=best.candidate.name)

    def stages(self, task: Task, feasible: Feasibility) -> Stages:
        """The trials, of a sample and then the best of all rows where these are many; then improvements."""
        large, names, cells = _is_large(task), feasible.tries, task.cell_count
        tried = [(forming(name), SAMPLE * len(task.encoded.axes) if large else cells) for name in names]
        if large:
            tried = [*(tried if len(tried) > 1 else []), (forming(names[0]), cells)]
        return [*tried, *stages(task, names[0], self._effort(task))]

    def _checked(self, task: Task) -> list[Checked]:
        return checked_within(task, candidates_of(task, self._suppress))

    def _effort(self, task: Task) -> Effort:
        """The effort on this table: the least where there are many rows."""
        many = task.encoded.size >= MANY_ROWS
        return LEAST if many or task.encoded.row_count >= MANY_ROWS else self.effort

    def _trials(self, task: Task) -> int:
        """The work of trials after the first; enough for `topdown` where its loss may well be the least."""
        effort, compared = self._effort(task), any(found.compares_with_table for found in task.requirements)
        is_open = compared or (effort.asked is not None and shares_decide(task))
        trials = max(effort.trials, WORK["topdown"]) if is_open else effort.trials
        is_tiny = effort.asked is not None and task.cell_count <= TINY
        return max(trials, WORK["topdown"] + WORK["peel"]) if is_tiny else trials


class Fast(Chooser):
    """The quickest algorithm that can meet the policy, by rule."""

    name = "fast"
    traits = Traits(outliers=True, any_class=True, harmless=True, rows_alone=True, bags=True)

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The quickest that the counts allow, or that says what is wrong, and the reason."""
        candidates = fast_candidates(task)
        if len(candidates) == 1:
            return _settled(task, candidates[0])
        try:
            found = checked_within(task, candidates)[0].candidate
        except SuppressionError:
            found = leaving()
        return found.algorithm, found.reason

    def check(self, task: Task) -> Feasibility:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].check(task)

    def choose(self, task: Task, solver: Solver) -> Plan:
        """As the algorithm that is chosen."""
        return solver.solve(self.chosen(task)[0], task)


def _settled(task: Task, only: Candidate) -> tuple[Algorithm, str]:
    """The algorithm of the only candidate as it does the task, and why."""
    algorithm, more = only.algorithm.chosen(task)
    return algorithm, "; ".join(part for part in (only.reason, more) if part)


def _names(candidates: list[Checked]) -> tuple[str, ...]:
    return tuple(found.candidate.name for found in candidates)


def _is_large(task: Task) -> bool:
    return task.encoded.row_count >= LARGE and task.encoded.size < MANY_ROWS


def _plan_note(tried: list[Checked], left: list[Checked], on_sample: bool) -> str:
    """A note that lists the trials to come."""
    fails = "it fails" if len(tried) == 1 else "they fail"
    then = f"; if {fails}, {', '.join(_names(left))}" if left else ""
    where = f" on a sample of {SAMPLE:,} rows" if on_sample and len(tried) > 1 else ""
    first = tried[0].candidate
    most = "; what loses least is published" if len(tried) > 1 else ""
    return f"auto tries {', '.join(_names(tried))}{where}{then}{most}. {first.name}: {first.why}"


def _trials_note(trials: list[Trial], best: Trial, better: Trial, published: float) -> str:
    """A note that lists the trials and their results; `published` is the mean LM of the release."""
    listed, after = ", ".join(map(str, trials)), ""
    if better is not best and published < best.told:
        after = f"; exchanges between neighbouring classes lowered that to {published:.4f}"
    elif f"{published:.4f}" != f"{best.told:.4f}":  # people are mended, or outliers left out, after the trials
        after = f"; what is published loses {published:.4f}"
    rows = f"; {count_phrase(best.left_out, 'row is', 'rows are')} left out" if best.left_out else ""
    return f"auto tried (mean LM in brackets): {listed}; it took {best.candidate.name}{after}{rows}"
