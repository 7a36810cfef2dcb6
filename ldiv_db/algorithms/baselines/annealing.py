"""Simulated annealing over cuts (Kirkpatrick et al. 1983): what `cuts` proves, without a proof.

Walks from the most general cut. A step draws one of the cuts that specialise a value of the present one, or generalise
siblings to their parent, and goes there if that costs less, else with probability exp(-difference / temperature); the
temperature falls geometrically. As a step that is not taken leaves the walk where it was, the next steps are drawn
ahead and their costs worked out together; up to the first one taken they are those of a walk step by step.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Any, Literal

from pydantic import Field

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.cuts.branch_and_bound import SearchOutcome
from ldiv_db.algorithms.cuts.cuts import CutOptions, Cuts
from ldiv_db.algorithms.cuts.evaluation import FORBIDDEN, Best, Cut, Evaluator, is_late, neighbours
from ldiv_db.algorithms.cuts.problem import CutProblem
from ldiv_db.algorithms.cuts.search import SearchResult
from ldiv_db.algorithms.cuts.spanned import halved_tree
from ldiv_db.algorithms.cuts.trees import CutTree
from ldiv_db.database import interrupts
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.recoding.encoded import Axis

#: Steps that are drawn ahead: a statement takes hardly longer for so many cuts than for one.
_AHEAD = 16
#: The first temperature, in mean differences of the first neighbours, and the last one in first ones.
_HOT, _COOLED = 0.5, 1e-3


class AnnealingOptions(CutOptions):
    """Those of `cuts`, and how many steps the walk has; there is no proof to wait for."""

    steps: int = Field(default=500, ge=1, le=1_000_000)
    unproved: Literal["publish"] = "publish"


class Annealing(Cuts):
    """The cheapest cut that a random walk comes by, under the requirements, costs and schemes of `cuts`."""

    name = "annealing"
    options_type = AnnealingOptions
    options: AnnealingOptions

    def _search(self, problem: CutProblem, began: float) -> SearchResult:
        evaluator, best = Evaluator(problem), Best(self.options.top)
        walk = Walk(evaluator, best, self.options.steps, random.Random(problem.task.seed))  # noqa: S311
        deadline = None if self.options.time_limit is None else began + self.options.time_limit
        try:
            while walk.done < self.options.steps and walk.go():
                problem.task.progress(walk.done, self.options.steps)
                if is_late(deadline):
                    break
        except KeyboardInterrupt:
            interrupts.settle_twice()
        evaluator.evaluated = len(walk.costs)
        return SearchResult(evaluator, best, SearchOutcome(walk.done, False, 0))

    def _of_numbers(self, engine: Engine, axis: Axis, number: int) -> CutTree:
        return halved_tree(engine, axis, number)

    def _number_problems(self, task: Task) -> Iterator[Problem]:
        yield from ()

    def _report(self, found: SearchResult, chosen: Cut) -> dict[str, Any]:
        report = super()._report(found, chosen)
        named = {"steps" if key == "visited" else key: value for key, value in report.items()}
        return {key: value for key, value in named.items() if key not in ("bound", "gap")}  # nothing is proved


@dataclass
class Walk:
    """A walk over cuts: where it is, how many steps it has done, and the costs of all cuts that it has seen."""

    evaluator: Evaluator
    best: Best
    steps: int
    draw: random.Random
    done: int = 0
    costs: dict[Cut, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cut: Cut = frozenset(self.evaluator.problem.root())
        self._learn([self.cut])
        near = neighbours(self.evaluator.trees, self.cut)
        self._learn(near[: 4 * _AHEAD])
        differences = [abs(self.costs[cut] - self.costs[self.cut]) for cut in near[: 4 * _AHEAD] if self._allowed(cut)]
        self._hottest = max(1.0, _HOT * sum(differences) / len(differences)) if differences else 1.0

    def go(self) -> bool:
        """Draw some steps and take the first that may be; False if there is nowhere to go."""
        near = neighbours(self.evaluator.trees, self.cut)
        if not near:
            return False
        ahead = [(self.draw.choice(near), self.draw.random()) for _ in range(min(_AHEAD, self.steps - self.done))]
        self._learn([cut for cut, _ in ahead])
        for cut, chance in ahead:
            self.done += 1
            if self._taken(cut, chance):
                self.cut = cut
                return True
        return True

    def _taken(self, cut: Cut, chance: float) -> bool:
        if not self._allowed(cut):
            return False
        worse = self.costs[cut] - self.costs[self.cut]
        return worse <= 0 or chance < exp(-worse / (self._hottest * _COOLED ** (self.done / self.steps)))

    def _allowed(self, cut: Cut) -> bool:
        return self.costs[cut] < FORBIDDEN

    def _learn(self, cuts: Sequence[Cut]) -> None:
        unknown = [cut for cut in dict.fromkeys(cuts) if cut not in self.costs]
        for start in range(0, len(unknown), _AHEAD):
            batch = unknown[start : start + _AHEAD]
            for cut, cost in zip(batch, self.evaluator.costs(batch), strict=True):
                self.costs[cut] = cost
                if cost < FORBIDDEN:
                    self.best.offer(cut, cost)
