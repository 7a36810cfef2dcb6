"""Trials: candidates are run, what each would publish is measured, and what loses least is kept.

Budgets are of counted work, never of time: the same table gives the same release on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan, Stages, Task
from ldiv_db.algorithms.costs import lm_measures
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.algorithms.neighbours.flows import flow
from ldiv_db.algorithms.neighbours.moves import trade, trade_rounds
from ldiv_db.algorithms.neighbours.resplit import resplit
from ldiv_db.algorithms.neighbours.rounds import FLOWING, SPLITTING, TRADING
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.templates import Relation
from ldiv_db.solving.choose import Candidate, Checked

#: Those whose classes have been through these exchanges already.
POLISHED = ("peel",)
#: How many times the least loss comes near it: polishing was measured to save 7 to 35 %, whoever made the classes.
NEAR = 1.25
#: The classes of these are as small as there can be, or have been split anew; others are in so many rounds.
SPLIT, SPLIT_ROUNDS = ("bsgi", "stratified"), 16
#: The most cells of a table whose neighbouring classes are split anew, and between whose classes rows flow.
SMALL_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class Trial:
    """What came of a candidate: its plan and what that would lose, or why there is none.

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
        """What the result says of it."""
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


def try_all(task: Task, candidates: Sequence[Checked], budget: int, suppress: bool) -> list[Trial]:
    """The trials of the candidates, with their plans; raises InfeasibleError if no candidate comes to anything.

    Beyond the budget candidates are tried until one has published all rows, or may leave them out (`suppress`).
    """
    trials: list[Trial] = []
    taken, left = within(candidates, budget)
    for number, found in enumerate([*taken, *left]):
        if number >= len(taken) and any(trial.plan and (suppress or not trial.left_out) for trial in trials):
            break
        trials.append(attempt(task, found.candidate))
    if not any(trial.plan for trial in trials):
        defect = next((trial.defect for trial in trials if trial.defect), None)
        raise defect or InfeasibleError("\n".join(dict.fromkeys(trial.failed for trial in trials)))
    return trials


def take_best(task: Task, trials: Sequence[Trial], suppress: bool, polish: bool) -> tuple[Trial, Trial]:
    """The trial that is taken, as it was and after exchanges, if they are to `polish`; the other plans are dropped.

    Those that come near the least are polished as well: one of them may be the least afterwards.
    """
    made = [trial for trial in trials if trial.plan]
    out, loss = min(_rank(trial, suppress) for trial in made)
    near = [trial for trial in made if _rank(trial, suppress) <= (out, loss * NEAR)]
    if polish:
        task.ahead([stage for trial in near for stage in improvements(task, trial.candidate.name)])
    after = {trial: polished(task, trial) if polish and trial in near else trial for trial in made}
    best = min(made, key=lambda trial: _rank(after[trial], suppress))
    for trial in made:
        if trial is not best:
            drop(task, after[trial])
    return best, after[best]


def ranked(part: Task, candidates: Sequence[Checked], budget: int, suppress: bool) -> tuple[list[Checked], list[Trial]]:
    """The candidates, those first that lose least on a part of the rows, and their trials there; within the budget."""
    taken, left = within(candidates, budget)
    if len(taken) == 1:
        return [*candidates], []
    trials = [attempt(part, found.candidate) for found in taken]
    order = sorted(range(len(taken)), key=lambda i: (trials[i].plan is None, *_rank(trials[i], suppress), i))
    return [*(taken[i] for i in order), *left], trials


def attempt(task: Task, candidate: Candidate) -> Trial:
    """The candidate run; nothing but its plan is left of it."""
    engine, rows = task.engine, task.encoded.row_count
    with engine.scope() as scope:
        try:
            plan = task.solve(candidate.algorithm, task)
            left_out = rows - engine.count(plan.assigned)
            task.refuse_left_out(left_out)
        except InfeasibleError as error:
            return Trial(candidate, rows, failed=str(error))
        except AssertionError as error:  # of one algorithm: another may meet the policy
            return Trial(candidate, rows, failed="what the algorithm asserts does not hold", defect=error)
        loss = task.loss(task.encoded, plan)
        trial = Trial(candidate, rows, plan, loss, left_out)
        for table in _tables(trial):
            scope.keep(table)
        return trial


def improved(task: Task, algorithm: Algorithm) -> Plan:
    """The algorithm's plan, after exchanges between neighbouring classes if that loses less."""
    plan = algorithm.run(task)
    trial = Trial(Candidate(algorithm, ""), task.encoded.row_count, plan, task.loss(task.encoded, plan))
    return polished(task, trial).plan or plan


def polished(task: Task, trial: Trial) -> Trial:
    """The trial after neighbouring classes were split anew and exchanged rows, if that loses less as it is published.

    Those of a plan in parts have been through them.
    """
    plan, engine = trial.plan, task.engine
    splits = _splits(task, trial.candidate.name)
    if plan is None or plan.parts > 1 or (trial.candidate.name in POLISHED and not splits):
        return trial
    with engine.scope() as scope:
        checker, measures, search = ClassChecker(task), lm_measures(task), dict(plan.search)
        assigned = engine.copy("assigned", plan.assigned)
        if splits:
            assigned, search["resplit"] = resplit(task, checker, measures, assigned, splits)
        if _is_small(task):
            assigned, search["flows"] = flow(task, checker, measures, assigned)
        assigned, search["polish"] = trade(task, checker, measures, assigned)
        better = replace(plan, assigned=assigned, search=search)
        loss = task.loss(task.encoded, better)
        if loss >= trial.loss:
            return trial
        scope.keep(assigned)
    engine.drop(plan.assigned)
    return replace(trial, plan=better, loss=loss)


def improvements(task: Task, algorithm: str) -> Stages:
    """The stages in which an algorithm's classes become better, where they are whole, each with its work."""
    splits, cells = _splits(task, algorithm), task.cell_count
    if algorithm in POLISHED and not splits:
        return []
    flows = [(FLOWING, cells)] if _is_small(task) else []
    return [*([(SPLITTING, cells)] if splits else []), *flows, (TRADING, cells * trade_rounds(task))]


def _splits(task: Task, algorithm: str) -> int:
    """The rounds in which neighbouring classes are split anew."""
    return SPLIT_ROUNDS if algorithm not in SPLIT and _is_small(task) else 0


def _is_small(task: Task) -> bool:
    """Whether the table is small enough for what takes many rounds."""
    return task.cell_count <= SMALL_CELLS


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
