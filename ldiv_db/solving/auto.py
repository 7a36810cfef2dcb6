"""`auto` tries candidates and publishes what loses least; `fast` takes the quickest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Literal

from pydantic import Field

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Stages, Task, Traits, forming
from ldiv_db.database.errors import SuppressionError
from ldiv_db.solving.choose import (
    LARGE,
    MANY_ROWS,
    SAMPLE,
    Candidate,
    Checked,
    candidates_of,
    checked_within,
    fast_candidates,
    leaving,
    sampled,
)
from ldiv_db.solving.improve import stages
from ldiv_db.solving.trials import Solver, Trial, ranked, take_best, try_all, within

#: Enough for `topdown` and `bsgi` beside whichever comes first, and not for `peel`, which is the slowest by far.
BUDGET = 5


class AutoOptions(Options):
    """With `suppress`, rows are left out where that loses less; `budget` bounds the work of trials after the first.

    Work is in that of the quickest algorithm on the table; with 0 nothing else is tried, and classes stay as they are.
    """

    residue: Literal["incorporate", "suppress"] = "incorporate"
    budget: int = Field(default=BUDGET, ge=0, le=1_000)


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
    traits = Traits(outliers=True, any_class=True, harmless=True, rows_alone=True)
    options_type = AutoOptions
    options: AutoOptions

    @property
    def improves(self) -> bool:
        """True if classes are split anew and exchange rows, which is work after the first trial."""
        return self.options.budget > 0

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
        tried, left = within(found, self._budget(task))
        notes = (*found[0].feasible.notes, _plan_note(tried, left, _is_large(task)))
        return replace(found[0].feasible, notes=notes, tries=_names(tried))

    def choose(self, task: Task, solver: Solver) -> Plan:
        found, budget, before = self._checked(task), self._budget(task), list[Trial]()
        suppress = self._may_leave_out(task)
        if _is_large(task):
            with task.engine.scope():
                found, before = ranked(solver, sampled(task, SAMPLE), found, budget, suppress)
            budget = 0
        trials = try_all(solver, task, found, budget, suppress)
        best, better = take_best(task, trials, suppress, improve=self.improves and task.encoded.row_count < MANY_ROWS)
        assert better.plan is not None  # noqa: S101 - the best has one
        tried = [*before, *trials]
        search = better.plan.search | {"tried": [trial.as_dict() for trial in tried], "loss": better.loss}
        notes = (*better.plan.notes, _trials_note(tried, best, better))
        return replace(better.plan, notes=notes, search=search, algorithm=best.candidate.name)

    def stages(self, task: Task, feasible: Feasibility) -> Stages:
        """The trials, of a sample and then the best of all rows where these are many; then improvements."""
        large, names, cells = _is_large(task), feasible.tries, task.cell_count
        tried = [(forming(name), SAMPLE * len(task.encoded.axes) if large else cells) for name in names]
        if large:
            tried = [*(tried if len(tried) > 1 else []), (forming(names[0]), cells)]
        return [*tried, *(stages(task, names[0]) if self.improves and task.encoded.row_count < MANY_ROWS else [])]

    def _checked(self, task: Task) -> list[Checked]:
        return checked_within(task, candidates_of(task, self._suppress))

    def _may_leave_out(self, task: Task) -> bool:
        """True if rows may be left out where that loses less."""
        return self._suppress or task.suppression is not None

    def _budget(self, task: Task) -> int:
        return 0 if task.encoded.row_count >= MANY_ROWS else self.options.budget


class FastOptions(Options):
    """None."""


class Fast(Chooser):
    """The quickest algorithm that can meet the policy, by rule."""

    name = "fast"
    traits = Traits(outliers=True, any_class=True, harmless=True, rows_alone=True)
    options_type = FastOptions
    options: FastOptions

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
    return LARGE <= task.encoded.row_count < MANY_ROWS


def _plan_note(tried: list[Checked], left: list[Checked], on_sample: bool) -> str:
    """A note that lists the trials to come."""
    fails = "it fails" if len(tried) == 1 else "they fail"
    then = f"; if {fails} {', '.join(_names(left))}" if left else ""
    where = f" on a sample of {SAMPLE:,} rows" if on_sample and len(tried) > 1 else ""
    first = tried[0].candidate
    return f"auto tries {', '.join(_names(tried))}{where}{then}, and takes what loses least. {first.name}: {first.why}"


def _trials_note(trials: list[Trial], best: Trial, better: Trial) -> str:
    """A note that lists the trials and their results."""
    listed = ", ".join(map(str, trials))
    after = f"; changes of neighbouring classes brought that to {better.loss:.4f}" if better.loss < best.loss else ""
    rows = f"; {best.left_out:,} rows are left out" if best.left_out else ""
    return f"auto tried, with the mean LM of a cell: {listed}; algorithm {best.candidate.name} is taken{after}{rows}"
