"""Cuts: what a policy may ask of the search, how it is run, and what is reported of it (Liu & Wang, l+-Optimize)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, ClassVar, Literal

from pydantic import Field

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Stages, Task, Traits, forming
from ldiv_db.algorithms.cuts.branch_and_bound import SearchOutcome
from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best, Cut, Evaluator
from ldiv_db.algorithms.cuts.intervals import interval_tree
from ldiv_db.algorithms.cuts.judged import bounds_shares
from ldiv_db.algorithms.cuts.problem import Cost, CutProblem, codes_of, intervals_of, make_problem, thresholds_of
from ldiv_db.algorithms.cuts.search import Finder, SearchResult, labels_of, number_problems
from ldiv_db.algorithms.cuts.spanned import in_nodes
from ldiv_db.algorithms.cuts.trees import CutTree
from ldiv_db.algorithms.infeasible import cannot_promise, explain, no_cut
from ldiv_db.algorithms.local.class_checker import ClassChecker, refuse_whole
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, Problem, UnprovedError, refuse
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import Axis
from ldiv_db.requirements.values import in_order, shown_value

_BY_CELLS = ("vioSA", "allSA")


class CutOptions(Options):
    """Metric and scheme, the class column of CM, how many cuts one is drawn from, and the limits of the search.

    Without a scheme it is `vioRec` where thresholds are all that is asked, which it can mend; `allRec` where sets are
    published, which would tell whose rows of a class are left out; else `none`.
    """

    metric: Literal["LM", "DM", "CM"] = "LM"
    scheme: Literal["none", "vioSA", "allSA", "vioRec", "allRec"] | None = None
    label: str | None = Field(default=None, alias="class")
    top: int = Field(default=1, ge=1, le=1_000)
    time_limit: float | None = Field(default=None, gt=0, le=10_000_000)
    unproved: Literal["refuse", "publish"] = "refuse"


class Cuts(Algorithm):
    """The cut of least cost that meets all requirements, or leaves out what does not."""

    name = "cuts"
    options_type: ClassVar[type[CutOptions]] = CutOptions
    options: CutOptions
    traits = Traits(
        recodes_globally=True,
        rows_alone=True,
        harmless=True,
        counts=True,
        explains=True,
        foresees_left_out=False,
        suppressing={"scheme": "vioRec"},
        bags=True,
    )

    def seen(self, task: Task) -> Task:
        return in_nodes(task)

    def check(self, task: Task) -> Feasibility:
        """Raises PolicyError for what cuts cannot do, InfeasibleError if not even the most general cut is allowed."""
        scheme = self._scheme(task)
        refuse(
            [
                *self._option_problems(task, scheme),
                *self._number_problems(task),
                *_unjudged_problems(task),
                *([] if bounds_shares(task) else _judged_problems(task, scheme)),
                *_blank_problems(task, scheme),
            ]
        )
        notes = () if self.options.scheme else (f"algorithm.scheme: {scheme}, the default",)
        if not bounds_shares(task):
            if scheme == "none":  # if the whole table as one partition violates, then every cut does
                if failed := _failures_of_whole(task):
                    raise InfeasibleError("\n".join(failed))
                refuse_whole(task)  # what holds for those who know nothing else may fail for those who do
            return Feasibility(ClassChecker(task).least, 1, task.encoded.left_out, notes)
        thetas = thresholds_of(task)
        if scheme == "none":
            _refuse_infeasible(task, thetas)
        return Feasibility(max(1, int(1 / min(thetas.values()))), 1, task.encoded.left_out, notes)

    def _of_numbers(self, engine: Engine, axis: Axis, number: int) -> CutTree:
        """The tree of numbers without a taxonomy: every interval is a value."""
        return interval_tree(engine, axis, number)

    def _scheme(self, task: Task) -> str:
        mending = "allRec" if "set" in task.forms.values() else "vioRec"
        return self.options.scheme or (mending if bounds_shares(task) else "none")

    def stages(self, task: Task, feasible: Feasibility) -> Stages:
        """The work grows with the boxes of nodes, and the more of these have rows: as measured, no bound."""
        nodes = [len(axis.taxonomy.nodes) if axis.taxonomy else axis.leaves**2 for axis in task.encoded.axes]
        return [(forming(self.name), int(min(prod(nodes), 10**18) ** 0.5 * task.encoded.row_count ** (1 / 3)))]

    def run(self, task: Task) -> Plan:
        """The drawn cut, less what its scheme leaves out; raises InfeasibleError if that is every row."""
        feasible, start = self.check(task), time.monotonic()
        label = task.kept_column(self.options.label) if self.options.metric == "CM" else None
        cost = Cost(self.options.metric, self._scheme(task), label)
        found = self._search(make_problem(task, cost, self._of_numbers), start)
        ranked = found.best.ranked()
        rank = random.Random(task.seed).randrange(len(ranked))  # noqa: S311 - a choice that the seed repeats
        chosen, (assigned, classes, blanked) = _publish_any(found.evaluator, [*ranked[rank:], *ranked[:rank]])
        search = self._report(found, chosen)
        notes = _notes(search, found.evaluator.problem)
        return Plan(assigned, feasible.l, notes, search, classes=classes, blanked=blanked)

    def _search(self, problem: CutProblem, began: float) -> SearchResult:
        """The best cuts and how they were found; raises UnprovedError without the proof that the policy wants."""
        deadline = None if self.options.time_limit is None else began + self.options.time_limit
        found = Finder(self.options.top, self.options.unproved == "publish", deadline).find(problem)
        if not found.outcome.proved and self.options.unproved == "refuse":
            raise UnprovedError(_unproved(problem, found.best, found.outcome, deadline is not None))
        return found

    def _report(self, found: SearchResult, chosen: Cut) -> dict[str, Any]:
        """The figures of the search that the result reports; costs in the metric's own units."""
        best, outcome, evaluator = found.best, found.outcome, found.evaluator
        problem, cost = evaluator.problem, best.costs[chosen]
        return {
            "metric": self.options.metric,
            "scheme": problem.cost.scheme,
            "cuts": prod(tree.cuts for tree in problem.trees),
            "visited": outcome.visited,
            "evaluated": evaluator.evaluated,
            "proved": outcome.proved,
            "cost": cost / problem.scale,
            "best_cost": best.ranked()[0][1] / problem.scale,
            # Where `top` asks for more cuts than are allowed, the search has seen them all.
            "bound": None if outcome.bound >= FORBIDDEN else outcome.bound / problem.scale,
            "gap": _optimality_gap(best, outcome),
            "top": len(best.costs),
            "cut": labels_of(problem.trees, chosen),
        }

    def _number_problems(self, task: Task) -> Iterator[Problem]:
        return number_problems(task, self.options.top)

    def _option_problems(self, task: Task, scheme: str) -> Iterator[Problem]:
        options = self.options
        if options.metric != "LM" and scheme in _BY_CELLS:
            yield Problem(
                "algorithm.scheme", f"{options.metric} has no cost for blanked values", "none, vioRec or allRec"
            )
        if scheme == "vioRec" and "set" in task.forms.values():
            yield Problem(
                "algorithm.scheme", "vioRec leaves out some rows of a class, and sets tell which", "allRec, none"
            )
        if options.metric == "CM" and options.label is None:
            yield Problem("algorithm.class", "is required by CM: name the kept column whose labels are predicted")
        elif options.metric == "CM" and task.kept_column(options.label) is None:
            yield Problem("algorithm.class", f"{options.label} is not published as it is", "list it under keep")


def _blank_problems(task: Task, scheme: str) -> Iterator[Problem]:
    """Blanked values are NULL, which must not be a value already."""
    if scheme not in _BY_CELLS:
        return
    (axis, *_) = task.encoded.sensitive
    if task.engine.count(axis.dictionary, Where("value", None)):
        yield Problem("nulls_sensitive", f"{scheme} publishes NULL for a blanked value: NULL cannot be a value too")


def _unjudged_problems(task: Task) -> Iterator[Problem]:
    if task.encoded.leaves_unjudged:
        what = "ignore leaves rows with NULL unjudged, and cuts judges all rows of a partition"
        yield Problem("suppressed", what, "suppressed: judge, or nulls_sensitive: suppress")


def _judged_problems(task: Task, scheme: str) -> Iterator[Problem]:
    """The problems where classes are judged by more than thresholds on the values of one attribute."""
    if scheme not in ("none", "allRec"):
        what = f"{scheme} mends shares of one sensitive attribute's values (frequency, threshold), and more is required"
        yield Problem("algorithm.scheme", what, "none or allRec")
    for requirement in dict.fromkeys(task.requirements):  # one for several attributes is one
        if not requirement.monotone:
            yield cannot_promise("cuts", requirement, "the union of good classes may be bad", "distinct or frequency")
        if requirement.compares_with_table and scheme == "allRec":
            what = f"allRec leaves out rows, and {requirement.label} compares classes with all that are published"
            yield Problem("algorithm.scheme", what, "none")


def _publish_any(
    evaluator: Evaluator, cuts: Sequence[tuple[Cut, int]]
) -> tuple[Cut, tuple[Relation, Relation, Relation | None]]:
    """The first of the cuts that does not leave out every row; raises InfeasibleError, with reasons, if all do.

    No search need be told: a cut that leaves out every row costs no less than any other, and the most general cut is
    the first to be offered, so that the best one leaves out every row only where all do.
    """
    task = evaluator.problem.task
    for cut, _ in cuts:
        published = evaluator.publish(cut)
        if task.engine.count(published[0]):
            return cut, published
    scheme, rows = evaluator.problem.cost.scheme, task.encoded.row_count
    what = f"the best cut found leaves out all {rows:,} rows (scheme: {scheme})"
    raise InfeasibleError("\n".join([*_failures_of_whole(task), what]))


def _failures_of_whole(task: Task) -> list[str]:
    """A line for every requirement that the whole table as one partition violates."""
    axes = task.encoded.sensitive
    return [line for axis in axes for line in explain(task.engine, axis, task.wanted[axis.column.name], True)]


def _refuse_infeasible(task: Task, thetas: dict[int, Any]) -> None:
    """Raise InfeasibleError if the whole table as one partition violates a threshold: then every cut does."""
    (axis,) = task.encoded.sensitive
    counts = dict(task.engine.columns(axis.dictionary, "code", "rows"))
    rows = axis.distribution.rows
    over = {code: counts[code] for code, theta in thetas.items() if counts[code] > theta * rows}
    if over:
        raise InfeasibleError(no_cut(over, thetas, rows, _named_codes(task)))


def _named_codes(task: Task) -> dict[int, str]:
    """The values that the policy names, by code; others are data, which an error may not show."""
    values = {value for requirement in task.requirements for value in requirement.named}
    named = sorted(values, key=in_order)
    return {code: shown_value(named[place]) for code, place in codes_of(task, named).items()}


def _optimality_gap(best: Best, outcome: SearchOutcome) -> float:
    """The share of the best cost by which the bound falls short of it."""
    cost = best.ranked()[0][1]
    return max(0.0, (cost - outcome.bound) / cost) if cost else 0.0


def _unproved(problem: CutProblem, best: Best, outcome: SearchOutcome, is_limited: bool) -> str:
    cost, bound = best.ranked()[0][1] / problem.scale, min(outcome.bound, FORBIDDEN) / problem.scale
    hint = "Raise algorithm.time_limit, or set" if is_limited else "Set"
    return (
        f"the search stopped before it finished: the best cut so far costs {cost:,.6g}, and none can cost less than"
        f" {bound:,.6g} (gap {_optimality_gap(best, outcome):.1%}). {hint} algorithm.unproved: publish"
    )


def _notes(search: dict[str, Any], problem: CutProblem) -> tuple[str, ...]:
    notes = [
        f"{tree.axis.name}: of its {tree.values:,} values some were put together before the search,"
        f" {len(tree.stretches):,} were left: all intervals would have made too many partitions"
        for tree in intervals_of(problem)
        if tree.is_coarse
    ]
    if "gap" in search and not search["proved"]:
        stopped = "" if notes else "the search was stopped: "
        notes.append(f"{stopped}the cut is within {search['gap']:.1%} of the best")
    if search["scheme"] in _BY_CELLS:
        notes.append("blanked sensitive values are NULL; they count in the size of their class (suppressed: unknown)")
    return tuple(notes)
