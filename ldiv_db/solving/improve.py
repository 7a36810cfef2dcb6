"""Improvements: passes over the classes of a plan after which they lose less, as far as an effort pays for their work.

Work is counted, not timed, so that the same table gives the same release on any machine.
Near classes trade rows, are regrouped, let rows flow and are split anew (`IMPROVEMENTS`). Then outliers are left out:
rows leave their classes where that loses less, as many as the policy has a budget for.

A row that is left out loses every cell, and its class may become narrower for all others. A round takes of each class
the row whose leaving gains most, of those without which the class still meets every requirement, judged by counts as
other candidates are; of all these, if the budget is for fewer, those that gain most. The classes that lost a row are
looked at again, until no row gains or the budget is spent. So every step lowers the loss, every class stays good, and
none is left out as a whole: its last row costs nothing.

Requirements that compare classes with all rows that are published are left alone, since each row that is left out
changes what every class is compared with; and so are those that are not kept when classes are put together, and those
on people of a population.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from ldiv_db.algorithms.base import Algorithm, Plan, Stages, Task, forming
from ldiv_db.algorithms.costs import COST_UNIT
from ldiv_db.algorithms.local.strata import kind_of
from ldiv_db.algorithms.local.stratified import SPLITS
from ldiv_db.algorithms.neighbours.passes import (
    ASKED,
    IMPROVING,
    ClassState,
    Course,
    Improving,
    Pass,
    Spared,
    improve,
    margins_of,
)
from ldiv_db.algorithms.neighbours.regroup import REGROUP
from ldiv_db.algorithms.neighbours.several import improve_all
from ldiv_db.algorithms.neighbours.trades import FLOWS, TRADES
from ldiv_db.algorithms.priced.priced import needed, priced
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.loss import lost_by_column, priced_by_column
from ldiv_db.recoding.recode import Recoding, plan_recoding

Name = Literal["quick", "normal", "thorough"]


@dataclass(frozen=True)
class Effort:
    """The work of `trials` after the first candidate's, and what improvements are `asked` to gain; None for none.

    Work is in that of the quickest algorithm on the table. A gain is asked of each tenth of it, in millionths of what
    all classes cost. With `every` pass those are tried as well that seldom gain much under what is required.
    `lasting` is how much longer improvements were measured to last than by the normal effort, about. With `priced`
    classes are made by prices of so much work as well.
    """

    trials: int = 0
    asked: int | None = None
    every: bool = False
    lasting: int = 1
    priced: int = 0


#: Nothing but the first candidate.
LEAST = Effort()
#: By its name in a policy.
EFFORTS: dict[Name, Effort] = {
    "quick": LEAST,
    "normal": Effort(asked=2 * ASKED),
    "thorough": Effort(trials=20, asked=40, every=True, lasting=3, priced=300_000_000),
}
#: Classes of so many rows keep them all: what one row of them costs the others is too little to look for.
LARGE = 4096
#: What is done to classes; each is tried in this order.
IMPROVEMENTS = (TRADES, REGROUP, FLOWS, SPLITS)
#: The classes of these have been through trades already.
TRADED = ("peel",)
#: About one in so many of the rounds that there may be is done where little is asked.
FEW_ROUNDS = 5
#: The classes of these are as small as there can be, or have been split anew already.
SPLIT = ("bsgi",)
#: The most cells of a table that is taken through passes of many rounds.
SMALL_CELLS = 1_000_000
#: The fewest rounds of a pass over the classes of a larger table that cost most.
FEWEST_ROUNDS = 6
#: Of more quasi-identifiers rounds take long and gain little: rows that stand next to each other are near in the first
#: few. On more cells than these none is tried, on fewer each must gain more.
MANY_COLUMNS, FEW_CELLS = 32, 100_000


def recode(task: Task, plan: Plan) -> Recoding:
    """The recoding by which the plan's classes are published."""
    return plan_recoding(task.engine, task.encoded, plan, task.forms)


def mean_loss(task: Task, plan: Plan) -> float:
    """The mean LM of a cell, by the weights of quasi-identifiers, of what a plan would publish of the task's rows."""
    weights = {axis.name: axis.weight for axis in task.encoded.axes}
    total = sum(weights.values())
    if not total:
        return _unweighted(task, plan)
    return sum(weights[name] * (lm / task.encoded.rows_in) for name, lm in _lost(task, plan).items()) / total


def published_loss(task: Task, plan: Plan, loss: float) -> float:
    """The mean LM of a published cell, all alike; `loss` is that by the weights of the task's quasi-identifiers."""
    engine, units = task.engine, task.units
    if units is None:
        is_even = len({axis.weight / axis.cells for axis in task.encoded.axes}) == 1 and not task.cross
        return loss if is_even else _unweighted(task, plan)
    with engine.scope():
        assigned = engine.copy("assigned", plan.assigned)
        by_unit = replace(plan, assigned=assigned).in_rows(engine)
        plan = replace(by_unit, assigned=units.assign_rows(engine, by_unit.assigned))
        return _unweighted(replace(task, encoded=units.rows), plan)


def _unweighted(task: Task, plan: Plan) -> float:
    cells, lost = {axis.name: axis.cells for axis in task.encoded.axes}, _lost(task, plan)
    if task.cross:  # beside what varies within its cells
        cells, lost = cells | dict.fromkeys(task.cross.lost, 1), {**lost, **task.cross.lost}
    return sum(cells[name] * lm for name, lm in lost.items()) / (task.encoded.rows_in * sum(cells.values()))


def _lost(task: Task, plan: Plan) -> dict[str, float]:
    """The LM of what a plan would publish by quasi-identifier; its labels are written where they must be."""
    engine, encoded = task.engine, task.encoded
    sets = [axis for axis in encoded.axes if task.forms.get(axis.name) == "set"]
    priced = {"label", "bounds", *(["set"] if plan.classes is None and all(axis.words for axis in sets) else [])}
    with engine.scope():
        if priced.issuperset(task.forms.values()):
            return priced_by_column(engine, encoded, plan, task.forms)
        return lost_by_column(engine, encoded, recode(task, plan))


def improvements(task: Task, algorithm: str, effort: Effort) -> tuple[Pass, ...]:
    """The passes that an algorithm's classes are taken through: none where all that is left has been done already."""
    if effort.asked is None or told_of_columns(task, effort):
        return ()
    small = task.cell_count <= SMALL_CELLS
    first = (priced(effort.priced),) if effort.priced and needed(task) is not None else ()
    passes = tuple(
        step
        for step in (*first, *(IMPROVEMENTS if effort.every else _paying(task)))
        if (small or not step.small_only) and (step is not SPLITS or algorithm not in SPLIT)
    )
    return () if algorithm in TRADED and passes == (TRADES,) else passes


def _paying(task: Task) -> tuple[Pass, ...]:
    """The passes that gained most for their work under such requirements."""
    if task.compares_with_table:
        return (FLOWS, SPLITS, TRADES)
    if all(requirement.more_is_better for requirement in task.requirements):
        return (TRADES, REGROUP)
    return (TRADES, REGROUP, SPLITS)


def told_of_columns(task: Task, effort: Effort) -> tuple[str, ...]:
    """A note on classes that are not improved, as they have many quasi-identifiers and cells; none if they may be."""
    columns, cells = len(task.encoded.axes), task.cell_count
    if effort.asked is None or effort.every or columns <= MANY_COLUMNS or cells <= FEW_CELLS:
        return ()
    what = f"classes by more than {MANY_COLUMNS} quasi-identifiers are not improved in tables of {cells:,} cells"
    return (f"{what}: rounds would take long and gain little; `effort: thorough` tries them",)


def of_algorithm(task: Task, algorithm: str, work: int) -> Stages:
    """The stage in which an algorithm forms classes, with its work, and that of the trades which are its own."""
    rounds = TRADES.work(task) * work // max(task.cell_count, 1) // FEW_ROUNDS
    return [(forming(algorithm), work), *([(IMPROVING, rounds)] if algorithm in TRADED else [])]


def stages(task: Task, algorithm: str, effort: Effort) -> Stages:
    """The stage in which an algorithm's classes become better, where they are whole, with its work; or none."""
    work = sum(step.work(task) for step in improvements(task, algorithm, effort))
    return [(IMPROVING, work * effort.lasting)] if work else []


@dataclass(frozen=True)
class Improvable:
    """An algorithm's plan of a task, what it loses, and the effort by which it may be improved."""

    task: Task
    algorithm: str
    plan: Plan
    effort: Effort
    loss: float

    @property
    def is_large(self) -> bool:
        """Whether passes look at some of the classes, those that cost most: of many rows, hardly two of them equal."""
        return self.task.cell_count > SMALL_CELLS and self.task.encoded.cells is None

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """What the plan is taken through: none if it was made in parts, whose classes have been through passes."""
        found = improvements(self.task, self.algorithm, self.effort) if self.plan.parts == 1 else ()
        if self.task.compares_with_table and self.plan.row_count(self.task.engine) < self.task.encoded.row_count:
            return ()  # classes were judged by all rows, and would be by those that are published
        return found

    def asked_of(self, task: Task) -> int:
        """What its passes must gain with the rows of a task; rounds take longer with more quasi-identifiers."""
        asked, compared = self.effort.asked or 0, self.effort.every and task.compares_with_table
        # Compared with the whole table a round gains little, for many rounds: flows wait for what others give back.
        return (asked // 2 if compared else asked) * (1 + (len(task.encoded.axes) - 1) // MANY_COLUMNS)

    def after(self, assigned: Relation, search: Mapping[str, Any]) -> tuple[Plan, float]:
        """The plan with other classes, and what it loses, if that is less; the classes of the other are dropped."""
        if assigned == self.plan.assigned:
            return self.plan, self.loss
        better = replace(self.plan, assigned=assigned, search={**self.plan.search, **search})
        less = mean_loss(self.task, better)
        worse = assigned if less >= self.loss else self.plan.assigned
        self.task.engine.drop(worse)
        return (self.plan, self.loss) if worse is assigned else (better, less)


def improved(plans: Sequence[Improvable]) -> list[tuple[Plan, float]]:
    """The plans after improvements that gain what the effort asks, if they lose less then, and their losses.

    Those of tasks that can be strata of one are improved at once.
    """
    found = [(one.plan, one.loss) for one in plans]
    alike = dict[Hashable, list[int]]()
    for i, one in enumerate(plans):
        kind = None if one.is_large or not all(step in IMPROVEMENTS for step in one.passes) else kind_of(one.task)
        if one.passes:
            alike.setdefault((kind, one.effort) if kind else i, []).append(i)
    for numbers in alike.values():
        for i, better in zip(numbers, _improved([plans[i] for i in numbers]), strict=True):
            found[i] = better
    return found


def _improved(plans: Sequence[Improvable]) -> Iterator[tuple[Plan, float]]:
    """The plans of tasks that can be strata of one after the passes of any."""
    engine, wanted = plans[0].task.engine, {step for one in plans for step in one.passes}
    passes = plans[0].passes if len(plans) == 1 else tuple(step for step in IMPROVEMENTS if step in wanted)
    ready = [replace(one, plan=one.plan.in_rows(engine)) for one in plans]
    tasks, starts = [one.task for one in ready], [one.plan.assigned for one in ready]
    large = ready[0].is_large
    found = [_dearest(ready[0])] if large else improve_all(passes, tasks, starts, plans[0].asked_of)
    for one, (classes, courses) in zip(ready, found, strict=True):
        search: dict[str, Any] = {course.step.name: course.changes for course in courses if course.changes}
        search["improved"] = [course.as_dict() for course in courses if course.changes]
        yield one.after(classes, search)


def _dearest(one: Improvable) -> tuple[Relation, list[Course]]:
    """The classes of a large table after passes over those that cost most a row, as many as a small table has.

    Of 300,000 unlike rows a tenth of the classes had half of what all cost, and of what trades save.
    """
    task, assigned, engine = one.task, one.plan.assigned, one.task.engine
    rounds = max(FEWEST_ROUNDS, *(step.rounds(task) for step in one.passes))
    with engine.scope() as scope:
        state = Improving.of(task)
        classes = ClassState(state.task, state.measures, assigned, Spared(1))
        listed = classes.step("dearest", "neighbours/list_dearest", most=SMALL_CELLS // len(task.encoded.axes))
        some = engine.select_among("dearest", assigned, listed, "class_id")
        classes.drop("members", "measured")  # all the rows, while some are improved
        better, courses = improve(one.passes, state, some, one.asked_of(task), rounds)
        return assigned if better == some else scope.keep(engine.reassign(assigned, better)), courses


def without_outliers(task: Task, algorithm: Algorithm, plan: Plan) -> Plan:
    """The algorithm's plan without rows whose leaving loses less, within what is left of the budget.

    `search` has the rows left out in each round, as `outliers`, where rows were looked for. A plan in parts has been
    through it part by part.
    """
    if task.suppression is None or not algorithm.traits.outliers or plan.parts > 1 or task.compares_with_table:
        return plan
    if not all(found.monotone and not found.named_population for found in task.requirements):
        return plan
    plan = plan.in_rows(task.engine)
    engine, none = task.engine, replace(plan, search=plan.search | {"outliers": []})
    spare = (task.most_left_out or 0) - (task.encoded.row_count - plan.row_count(engine))
    if spare <= 0:
        return none
    with engine.scope() as scope:
        assigned, rounds = _left_out(Improving.of(task), plan.assigned, spare)
        better = replace(plan, assigned=assigned, search=plan.search | {"outliers": rounds})
        if not rounds or mean_loss(task, better) >= mean_loss(task, plan):
            return none
        scope.keep(assigned)
    engine.drop(plan.assigned)
    return better


def told_of_outliers(search: Mapping[str, Any]) -> tuple[str, ...]:
    """A note on rows left out where that loses less, if any were."""
    rows = sum(search.get("outliers", ()))
    what = count_phrase(rows, "row is", "rows are")
    return (f"{what} left out of classes that lose less without them, as `suppression` allows",) if rows else ()


def _left_out(search: Improving, assigned: Relation, spare: int) -> tuple[Relation, list[int]]:
    """The assignment (row_id, class_id) after all rounds, and the rows left out in each."""
    engine, rounds = search.task.engine, list[int]()
    kept = engine.copy("assigned", assigned)
    looked_at = assigned
    while spare:
        chosen = _round(search, looked_at, spare)
        found = engine.count(chosen)
        if not found:
            break
        rounds.append(found)
        spare -= found
        engine.delete_listed(kept, Identifier("row_id"), chosen)
        remaining = engine.select_among("remaining", kept, chosen, "class_id")
        engine.drop(chosen, *([looked_at] if looked_at is not assigned else []))
        looked_at = remaining
    return kept, rounds


def _round(search: Improving, assigned: Relation, most: int) -> Relation:
    """The rows (row_id, class_id, gain) that are left out of these classes, one of each, `most` of all."""
    task = search.task
    weights = [axis.weight for axis in task.encoded.axes]
    price = sum(round(COST_UNIT * weight / (max(weights) or 1.0)) for weight in weights)  # of all cells of a row
    with task.engine.scope() as scope:
        classes = ClassState(task, search.measures, assigned, Spared(1, LARGE), folder="local/outliers")
        classes.rests()
        outliers = classes.step("outliers", "find_outliers", price=price)
        classes.know(margins=margins_of(search, outliers, assigned))
        return scope.keep(classes.step("chosen", "choose_outliers", most=most))
