"""TDS: top-down specialisation over cuts under any monotone requirement (Fung, Wang & Yu 2005).

Starts with every quasi-identifier at the root of its taxonomy. Of the values whose replacement by their children leaves
all classes good, each step specialises the one with the best score, gain / (loss of anonymity + 1). The gain is what
LM falls by, or with a class column the information gain on it; the loss of anonymity is what the smallest class shrinks
by. A value that fails fails for ever, as later classes are parts of its own; so the search ends when none is left, and
then no single further specialisation is valid. All candidates of a step are judged together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import log
from typing import Any

from pydantic import Field

from ldiv_db.algorithms.base import Options, Plan, Task
from ldiv_db.algorithms.baselines.monotone_recoding import Codings, MonotoneRecoding, make_codings
from ldiv_db.algorithms.cuts.trees import CutTree, CutValue
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Relation

#: Gains of information are whole numbers of this part of a nat, so that they do not depend on the order of sums.
_FINEST = 10**12
_PLACES = {"axis": "INTEGER", "code": "INTEGER", "candidate": "BIGINT"}


class TdsOptions(Options):
    """The class column on which information is gained; without one LM counts."""

    label: str | None = Field(default=None, alias="class")


class Tds(MonotoneRecoding):
    """A cut that meets all requirements and cannot be specialised on any one value."""

    name = "tds"
    options_type = TdsOptions
    options: TdsOptions

    def _option_problems(self, task: Task) -> Iterator[Problem]:
        if self.options.label is not None and task.kept_column(self.options.label) is None:
            what = f"{self.options.label} is not published as it is"
            yield Problem("algorithm.class", what, "list it under keep")

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        label = task.kept_column(self.options.label)
        codings = make_codings(task, label)
        descent = Descent(codings, by_label=label is not None)
        while descent.step():
            task.progress(descent.steps, 0)
        cut = descent.nodes()
        search = {"specialised": descent.steps, "judged": descent.judged, "cut": codings.labels(cut)}
        assigned, classes = codings.publish(cut)
        return Plan(assigned, feasible.l, (), search, classes=classes)


@dataclass
class Descent:
    """A cut on its way down: its values, those of them that may be specialised yet, and the smallest class."""

    codings: Codings
    by_label: bool
    steps: int = 0
    judged: int = 0

    def __post_init__(self) -> None:
        self._trees = {tree.number: tree for tree in self.codings.trees}
        self.cut = {tree.root for tree in self._trees.values()}
        self.candidates = self._open(self.cut)
        self.smallest = self.codings.task.encoded.row_count

    def step(self) -> bool:
        """Specialise the best value; False if none is valid any more."""
        sizes = self._judge() if self.candidates else {}
        if not self.candidates:
            return False
        lost = {value: self.smallest - min(self.smallest, sizes[value]) for value in self.candidates}
        best = min(self.candidates, key=lambda value: (-Fraction(self._gains[value], lost[value] + 1), value))
        children = set(self._trees[best[0]].specialised(best))
        self.cut = (self.cut - {best}) | children
        self.candidates = sorted({*self.candidates, *self._open(children)} - {best})
        self.smallest = min(self.smallest, sizes[best])
        self.steps += 1
        return True

    def nodes(self) -> list[list[int]]:
        """The nodes of the cut by quasi-identifier."""
        return [sorted(node for number, node in self.cut if number == tree.number) for tree in self.codings.trees]

    def _open(self, values: set[CutValue]) -> list[CutValue]:
        return sorted(value for value in values if self._trees[value[0]].children[value[1]])

    def _judge(self) -> dict[CutValue, int]:
        """The smallest class that specialising each candidate makes; candidates that fail are given up."""
        codings, engine = self.codings, self.codings.engine
        self.judged += len(self.candidates)
        places = self._place()
        counting = "baselines/tds/count_classes"
        histogram, people = codings.count(counting, codings.cells, codings.people(), places=places)
        engine.drop(places)
        sizes = dict(engine.rows("baselines/tds/find_smallest", histogram=histogram, total=codings.total))
        failed = codings.failed(histogram, people)
        numbered = list(enumerate(self.candidates))
        self.candidates = [value for number, value in numbered if number not in failed]
        return {value: sizes.get(number, self.smallest) for number, value in numbered}

    def _place(self) -> Relation:
        """The part of each code in the key of its class (NULL of people of no class), its candidate if it has one, and
        the change by specialising that.
        """
        numbers = {value: number for number, value in enumerate(self.candidates)}
        rows = [
            row
            for tree, stride, nodes in zip(self.codings.trees, self.codings.strides, self.nodes(), strict=True)
            for node in nodes
            for row in self._places_of(tree, node, stride, numbers.get((tree.number, node)))
        ]
        rows += self._outside()
        columns = _PLACES | dict.fromkeys(("part", "shift"), self.codings.key_type)
        return self.codings.engine.load("places", columns, rows)

    def _outside(self) -> Iterator[tuple[int, int, None, None, None]]:
        """The codes of people whose values no value of the cut covers."""
        for tree, nodes in zip(self.codings.trees, self.nodes(), strict=True):
            covered = {code for node in nodes for code in self.codings.inside(tree, node)}
            codes = sorted({*self.codings.inside(tree, 0)} - covered, reverse=True)
            yield from ((tree.number, code, None, None, None) for code in codes)

    def _places_of(self, tree: CutTree, node: int, stride: int, number: int | None) -> Iterator[tuple[int | None, ...]]:
        """The places of each code of a node, which is that candidate if it is one.

        People may have a code of the node that none of its children has, or several: the other children's places are
        of no class under other candidates, as no key has them.
        """
        codings, total = self.codings, self.codings.total
        children = [node] if number is None else tree.children[node]
        of_people = [codings.inside(tree, child) for child in children]
        for child in children:
            yield from (
                (tree.number, code, number, stride * node, stride * (child - node)) for code in tree.codes[child]
            )
        for code in codings.inside(tree, node):
            own = [child for child, codes in zip(children, of_people, strict=True) if code in codes]
            shift = stride * (own[0] - node) if own else None
            yield tree.number, code, number, stride * node, shift
            yield from ((tree.number, code, number, total, stride * child - total) for child in own[1:])

    @cached_property
    def _gains(self) -> dict[CutValue, int]:
        """The gain of specialising each value: LM in the units of the codings, or parts of a nat."""
        gain, known = self._information if self.by_label else self._loss, dict[CutValue, int]()
        for tree, counts in zip(self.codings.trees, self.codings.counts, strict=True):
            for node, children in tree.children.items():
                known[tree.number, node] = gain(tree, node, children, counts) if children else 0
        return known

    def _loss(self, tree: CutTree, node: int, below: Sequence[int], _: Any) -> int:
        whole = self.codings.loss(tree, node)
        return whole - sum(self.codings.loss(tree, child) for child in below)

    def _information(self, tree: CutTree, node: int, below: Sequence[int], counts: Any) -> int:
        """The fall of the entropy of the class column in the rows of the value."""
        whole = _tally(counts, tree.codes[node])
        rows = sum(whole.values())
        parts = [_tally(counts, tree.codes[child]) for child in below]
        left = sum(sum(part.values()) * _entropy(part) for part in parts) / rows if rows else 0.0
        return round((_entropy(whole) - left) * _FINEST)


def _tally(counts: Mapping[int, Mapping[int, int]], codes: Iterable[int]) -> Counter[int]:
    tally: Counter[int] = Counter()
    for code in codes:
        tally.update(counts.get(code, {}))
    return tally


def _entropy(counts: Counter[int]) -> float:
    rows = sum(counts.values())
    return -sum(count / rows * log(count / rows) for _, count in sorted(counts.items()))
