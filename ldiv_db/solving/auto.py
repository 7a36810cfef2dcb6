"""`auto` and `fast`: candidates are tried and what loses least is published, or one is taken by rule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Stages, Task, Traits
from ldiv_db.algorithms.local.limits import passes_on
from ldiv_db.algorithms.priced.priced import needed
from ldiv_db.database.errors import SuppressionError, count_phrase
from ldiv_db.recoding.axes import among
from ldiv_db.solving.choose import (
    LARGE,
    MANY_ROWS,
    WORK,
    Candidate,
    candidates_of,
    checked_within,
    fast_candidates,
    leaving,
    shares_decide,
)
from ldiv_db.solving.improve import (
    EFFORTS,
    LEAST,
    Effort,
    Name,
    improvements,
    of_algorithm,
    stages,
    told_of_columns,
)
from ldiv_db.solving.trials import Contest, Solve, Trial, take_best, within

#: Of a table of up to so many cells `topdown` and `peel` are both tried: the mean LM fell by up to 32 %, and of more
#: cells (17,500) it rose once.
SMALL = 5_000
#: The rows of the sample that algorithms are tried on where there are many.
SAMPLE = 50_000


class AutoOptions(Options):
    """With `suppress`, rows are left out where that loses less; `effort` says how much work less loss is worth.

    `quick`: the classes of the most promising algorithm as they are, or of the better of two where classes are compared
    with the whole table; `normal`: improved as long as that gains much for its work, of a large table those that cost
    most; `thorough`: also for little, with classes by prices, or other algorithms are tried.
    """

    residue: Literal["incorporate", "suppress"] = "incorporate"
    effort: Name = "normal"


class Chooser(Algorithm):
    """An algorithm that has others do the work."""

    @abstractmethod
    def choose(self, task: Task, solve: Solve) -> Plan:
        """The plan of the algorithm that is chosen, whatever `solve` makes of it; call after `check`."""

    def choose_all(self, tasks: Sequence[Task], solve: Solve) -> list[Plan]:
        """As `choose`, of several tasks."""
        return [self.choose(task, solve) for task in tasks]

    def tried_on(self, task: Task) -> Sequence[Algorithm]:
        """Those that it has do the task, as far as that is known before any work."""
        return ()

    def run(self, task: Task) -> Plan:
        """As `choose`, without a division into parts."""
        return self.choose(task, lambda algorithm, whole: algorithm.run(whole))


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
        if len(candidates) > 1 or task.cross:
            return self, ""
        return _settled(task, candidates[0])

    def check(self, task: Task) -> Feasibility:
        """As the first candidate that the counts allow, with what will be tried; raises what the first of all says."""
        found = self._checked(task)
        tried, left = within(found, self._trials(task))
        feasible = found[0].feasible
        assert feasible is not None  # noqa: S101 - all of them were checked
        told = told_of_columns(task, self._effort(task))
        notes = (*feasible.notes, _plan_note(tried, left, self._sample(task)), *told)
        return replace(feasible, notes=notes, tries=_names(tried))

    def tried_on(self, task: Task) -> Sequence[Algorithm]:
        return [found.algorithm for found in within(self._checked(task), self._trials(task))[0]]

    def choose(self, task: Task, solve: Solve) -> Plan:
        return self.choose_all([task], solve)[0]

    def choose_all(self, tasks: Sequence[Task], solve: Solve) -> list[Plan]:
        tried = [self._tried(task, solve) for task in tasks]
        best = take_best([(contest, trials, self._effort(contest.task)) for contest, _, trials in tried])
        return [self._taken(*own, *found) for own, found in zip(tried, best, strict=True)]

    def _tried(self, task: Task, solve: Solve) -> tuple[Contest, list[Trial], list[Trial]]:
        """The contest of a task, with the trials of a sample of its rows, and of all."""
        goes_on = task.compares_with_table and bool(improvements(task, "peel", self._effort(task)))
        task = replace(task, goes_on=goes_on)
        found, budget, before = self._checked(task), self._trials(task), list[Trial]()
        suppress = self._suppress or task.suppression is not None
        if (sample := self._sample(task)) and len(within(found, budget)[0]) > 1:
            with task.engine.scope():
                found, before = Contest(solve, _sampled(task, sample), suppress).ranked(found, budget)
            budget = 0
        contest = Contest(solve, task, suppress)
        return contest, before, contest.try_all(found, budget)

    def _taken(
        self, contest: Contest, before: Sequence[Trial], trials: Sequence[Trial], best: Trial, better: Trial
    ) -> Plan:
        """The plan of the trial that is the best, with what is told of all."""
        assert better.plan is not None  # noqa: S101 - the best has one
        task, tried = contest.task, [*before, *trials]
        search = better.plan.search | {"tried": [trial.as_dict() for trial in tried]}
        search["effort"] = "quick" if self._effort(task) is LEAST else self.options.effort
        told = partial(_trials_note, tried, best, better)
        notes = (*better.plan.notes, *told_of_columns(task, self._effort(task)))
        return replace(better.plan, notes=notes, told=told, search=search, algorithm=best.candidate.name)

    def stages(self, task: Task, feasible: Feasibility) -> Stages:
        """The trials, of a sample and then the best of all rows where these are many; then improvements."""
        sample, names, cells = self._sample(task), feasible.tries, task.cell_count
        looked = [(name, sample * len(task.encoded.axes) if sample else cells) for name in names]
        if sample:
            looked = [*(looked if len(looked) > 1 else []), (names[0], cells)]
        tried = [stage for name, work in looked for stage in of_algorithm(task, name, work)]
        return [*tried, *stages(task, names[0], self._effort(task))]

    def _checked(self, task: Task) -> list[Candidate]:
        return checked_within(task, candidates_of(task, self._suppress))

    def _effort(self, task: Task) -> Effort:
        """The effort on this table: the least where there are many rows."""
        many = task.encoded.size >= MANY_ROWS
        return LEAST if many or task.encoded.row_count >= MANY_ROWS else self.effort

    def _sample(self, task: Task) -> int:
        """The rows of the sample that algorithms are tried on; 0 where they are tried on all rows."""
        if task.encoded.row_count < LARGE or task.encoded.size >= MANY_ROWS:
            return 0
        return SAMPLE

    def _trials(self, task: Task) -> int:
        """The work of trials after the first; enough for `topdown` where its loss may well be the least.

        None where classes are made by prices through trees: these do not depend on the classes that there are.
        """
        effort, compared = self._effort(task), task.compares_with_table and not passes_on(task)
        is_small = effort.asked is not None and task.cell_count <= SMALL
        trees = all(axis.tree for axis in task.encoded.axes)
        if effort.priced and trees and not is_small and needed(task) is not None:
            return 0
        is_open = compared or (effort.asked is not None and not self._sample(task) and shares_decide(task))
        trials = max(effort.trials, WORK["topdown"]) if is_open else effort.trials
        return max(trials, WORK["topdown"] + WORK["peel"]) if is_small else trials


class Rule(Chooser):
    """One of several algorithms by rule; it makes no classes of its own."""

    def check(self, task: Task) -> Feasibility:
        """As the algorithm that is chosen."""
        return self.chosen(task)[0].check(task)

    def choose(self, task: Task, solve: Solve) -> Plan:
        """As the algorithm that is chosen."""
        return solve(self.chosen(task)[0], task)


class Fast(Rule):
    """The quickest algorithm that can meet the policy."""

    name = "fast"
    traits = Traits(outliers=True, any_class=True, harmless=True, rows_alone=True, bags=True)

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The quickest that the counts allow, or that says what is wrong, and the reason."""
        candidates = fast_candidates(task)
        if len(candidates) == 1:
            return _settled(task, candidates[0])
        try:
            found = checked_within(task, candidates)[0]
        except SuppressionError:
            found = leaving()
        return found.algorithm, found.reason


def _settled(task: Task, only: Candidate) -> tuple[Algorithm, str]:
    """The algorithm of the only candidate as it does the task, and why."""
    algorithm, more = only.algorithm.chosen(task)
    return algorithm, "; ".join(part for part in (only.reason, more) if part)


def _names(candidates: list[Candidate]) -> tuple[str, ...]:
    return tuple(found.name for found in candidates)


def _sampled(task: Task, most: int) -> Task:
    """The task of some rows, the same for any order of rows and number of threads; keys are compared as in all rows.

    How much an algorithm loses depends on the number of rows, which loses least on how values are distributed. For
    tasks without an individual.
    """
    rows = task.engine.materialise("sample", "solving/draw_sample", rows=task.encoded.rows, seed=task.seed, most=most)
    return replace(task, encoded=among(task.engine, task.encoded, rows), units=None)


def _plan_note(tried: list[Candidate], left: list[Candidate], sample: int) -> str:
    fails = "it fails" if len(tried) == 1 else "they fail"
    then = f"; if {fails}, {', '.join(_names(left))}" if left else ""
    where = f" on a sample of {sample:,} rows" if sample and len(tried) > 1 else ""
    first = tried[0]
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
    return f"auto tried (in brackets what a cell loses of 1, LM): {listed}; it took {best.candidate.name}{after}{rows}"
