"""Checking candidate classes: every requirement on all of them at once, by the statements that the audit uses too.

Candidates may overlap; they are given by counts alone, so that a thousand ways to generalise cost a few
statements. A requirement is monotone if the union of two good classes is good: only then is it known that an algorithm
may put together what is left of the classes that it splits. Others are kept as far as every class that is made is
checked: the union of two good classes may be bad, and so may the whole table where parts of it are good. Whatever is
split, joined or exchanged is judged before it is done, so that good classes stay good; a search that starts with a
class that is bad may end with one: there are no good ones for all rows, or it did not find them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

from ldiv_db.algorithms.base import Algorithm, Feasibility, Plan, Task, Traits
from ldiv_db.algorithms.infeasible import cannot_promise, fails_for_those_who_know
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, refuse
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.steps import OneStatement, Steps
from ldiv_db.recoding.encoded import DEALT, Encoded, SensitiveAxis
from ldiv_db.requirements import Classes, Requirement, judge

#: The columns of candidates and of assignments that say which class a row is of.
CLASS_NO, CLASS_ID = Identifier("class_no"), Identifier("class_id")
#: Of the margins of classes, those that violate nothing.
GOOD = Where("margin", 0, ">=")


class ClassChecker:
    """Checks candidate classes by the requirements of a task; `least` is the fewest rows that a good class can have.

    If `more_is_better` a good class with any more rows is good. If a class can be made good by rows of others, it can
    by `enough`, the values that it lacks coming first.
    """

    def __init__(self, task: Task):
        self._engine = task.engine
        self._axes = task.encoded.sensitive
        self._asked = list(self._once(task))
        self.least = max([1, *(requirement.least_rows for requirement in task.requirements)])
        self.monotone = all(requirement.monotone for requirement in task.requirements)
        self.more_is_better = all(r.more_is_better and not r.others_known and not r.harmless for r in task.requirements)
        self.enough = self._enough(task.requirements)

    def _enough(self, requirements: Sequence[Requirement]) -> int:
        """`sys.maxsize` where more is asked for than rows and different values of one attribute."""
        plain = self.more_is_better and all(r.tallies_only for r in requirements)
        if not plain or len(self._axes) > 1 or self._axes[0].bags is not None or self._axes[0].judged is not None:
            return sys.maxsize
        return max([1, *(r.unique_class_size() or 1 for r in requirements)])

    def _once(self, task: Task) -> Iterator[tuple[SensitiveAxis, list[Requirement], list[Requirement]]]:
        """What is asked of each attribute, and what even for those who know the others, apart.

        Of rows alone it is asked of the first one, as others have the same rows.
        """
        counted = set[Requirement]()
        for axis in self._axes:
            asked = task.wanted[axis.column.name]
            refined = [r for r in asked if r.others_known and len(self._axes) > 1]
            own = [r for r in asked if r not in refined]
            yield axis, [r for r in own if axis.judged or r not in counted], refined
            counted |= {r for r in own if r.rows_only and not axis.judged}

    def margins(self, counts: Relation, steps: OneStatement | None = None) -> Relation:
        """The TEMP table (class_no, margin) of the candidates: how far each is from violating; negative violates.

        `counts` is (class_no, the code of each sensitive attribute, rows), a part of `steps` if these are given.
        """
        with self._engine.scope() as scope:
            steps = steps or OneStatement(self._engine)
            margins = self.measured(steps, counts)
            return scope.keep(steps.keep("margins", "database/list_rows", rows=margins, columns=[]))

    def good(self, counts: Relation, steps: OneStatement | None = None) -> Relation:
        """As `margins`, the TEMP table (class_no) of the candidates that violate nothing."""
        with self._engine.scope() as scope:
            steps = steps or OneStatement(self._engine)
            return scope.keep(steps.keep("good", "local/list_good", margins=self.measured(steps, counts)))

    def measured(self, steps: Steps, counts: Relation) -> Relation:
        """As `margins`, a relation of `steps`, which may run with others in one statement."""
        listed = [one for axis, own, _ in self._asked if own for one in self._measure(steps, counts, axis, own)]
        for axis, _, refined in self._asked:
            if refined:
                listed += self._measure(steps, counts, axis, refined, is_refined=True)
        every = counts if any(axis.judged for axis in self._axes) else None  # some may have no row to be judged
        if len(listed) == 1 and every is None:
            return listed[0]
        return steps.materialise("worst", "local/take_worst", margins=listed, counts=every)

    def _measure(
        self,
        steps: Steps,
        counts: Relation,
        axis: SensitiveAxis,
        asked: Sequence[Requirement],
        is_refined: bool = False,
    ) -> list[Relation]:
        """The margins of the classes, a relation a requirement; if refined for those who know the other attributes."""
        if is_refined:
            known = [other for other in self._axes if other is not axis]
            counts = steps.materialise("refined", "local/refine_counts", counts=counts, key=axis.code, known=known)
        classes, margins = self._classes(steps, counts, axis, asked), []
        for requirement, read in ((one, read) for one in asked for read in one.readings(classes)):
            measures = requirement.measure(steps, read)
            params = {"measures": measures, "refined": counts if is_refined else measures, "is_refined": is_refined}
            margins.append(steps.materialise("margins", "local/list_margins", **params))
        return margins

    def _classes(
        self, steps: Steps, counts: Relation, axis: SensitiveAxis, requirements: Sequence[Requirement]
    ) -> Classes:
        """The candidates as the requirements see them, which counts alone may tell."""
        params = {"counts": counts, "key": axis.code, "summed": len(self._axes) > 1}
        as_codes = axis.bags is not None or (
            axis.judged is None and all(r.counts_only and not r.harmless for r in requirements)
        )
        if as_codes and axis.bags is None and all(r.tallies_only for r in requirements):
            return Classes.tallied(steps, steps.materialise("tallies", "local/tally_classes", **params))
        histogram = steps.materialise(
            "histogram", "local/list_histogram", dictionary=axis.reference, as_codes=as_codes, **params
        )
        return axis.classes(steps, histogram)


@dataclass(frozen=True)
class ClassedRows:
    """Rows, and which class each is of: the column `number` of `placed`, or without that of the rows, says it.

    None is for one class of all rows. Rows may be cells: `weight` is their column of counts, `dealt` that of `placed`
    of how many of each.
    """

    rows: Relation
    placed: Relation | None = None
    number: Identifier | None = CLASS_NO
    _: KW_ONLY
    weight: Identifier | None = None
    dealt: Identifier | None = None


def count_classes(steps: Steps, sensitive: Sequence[SensitiveAxis], members: ClassedRows, least: int = 1) -> Relation:
    """(class_no, the code of each sensitive attribute, rows) of the classes of at least so many rows."""
    params = {"rows": members.rows, "members": members.placed, "number": members.number, "sensitive": sensitive}
    cells = {"weight": members.weight, "dealt": members.dealt}
    return steps.materialise("counts", "local/count_classes", **params, **cells, least=least, large_only=least > 1)


class LocalAlgorithm(Algorithm):
    """Classes of any rows: what the whole table as one class meets can be met."""

    traits = Traits(any_class=True, rows_alone=True, harmless=True, outliers=True, divides=True, bags=True)

    def check(self, task: Task) -> Feasibility:
        """Feasibility by counts; raises PolicyError for what classes cannot promise, InfeasibleError if the table as
        one class, the best there can be for monotone requirements, violates one.

        Of others a note says what the whole table does not tell.
        """
        refuse(
            [
                cannot_promise(self.name, r, "two classes that meet it may not meet it together", "bsgi can")
                for r in dict.fromkeys(task.requirements)
                if not r.monotone and r.unique_class_size() is not None
            ]
        )
        refuse_whole(task)
        unsure, size = nonmonotone(task), max(2, ClassChecker(task).least)
        notes = (
            (f"{unsure}: every class is checked, and only the run shows whether there are classes",) if unsure else ()
        )
        return Feasibility(size, task.encoded.row_count // size, task.encoded.left_out, notes)


def nonmonotone(task: Task) -> str:
    """The requirements that are not monotone, in words; empty if all are."""
    return ", ".join(dict.fromkeys(r.label for r in task.requirements if not r.monotone))


def refuse_whole(task: Task) -> None:
    """Raise InfeasibleError if the table as one class violates one of the requirements that are monotone."""
    sure = [requirement for requirement in task.requirements if requirement.monotone]
    wanted = {attribute: [r for r in asked if r.monotone] for attribute, asked in task.wanted.items()}
    if sure:
        asked = task.encoded.sensitive, sure, wanted
        find = partial(_find_reasons, replace(task, requirements=sure, wanted=wanted))
        if reasons := task.engine.remembered(task.encoded.counted, find, *asked):
            raise InfeasibleError("\n".join(reasons))


def _find_reasons(task: Task) -> list[str]:
    """Why the table as one class violates one of the requirements; nothing if it does not."""
    with task.engine.scope():
        encoded = task.encoded
        every = ClassedRows(encoded.counted, number=None, weight=encoded.weight)
        steps = OneStatement(task.engine)
        margins = ClassChecker(task).measured(steps, count_classes(steps, encoded.sensitive, every))
        if steps.least(margins, "margin") >= 0:
            return []
        said = f"no table of all these {encoded.noun} meets the policy"
        return [*_known_failures(task, count_classes(task.engine, encoded.sensitive, every)), said]


def _known_failures(task: Task, whole: Relation) -> list[str]:
    """A line for every requirement that the whole table violates for those who know the other sensitive attributes."""
    engine, axes, lines = task.engine, task.encoded.sensitive, []
    for axis in axes:
        known = [other for other in axes if other is not axis]
        for requirement in (r for r in task.wanted[axis.column.name] if r.others_known and known):
            refined = engine.materialise("refined", "local/refine_counts", counts=whole, key=axis.code, known=known)
            params = {"counts": refined, "dictionary": axis.reference, "key": axis.code}
            histogram = engine.materialise("histogram", "local/list_histogram", **params, summed=True, as_codes=False)
            verdict = judge(engine, requirement, Classes(engine, histogram, axis.reference))
            if not verdict.holds:
                lines.append(fails_for_those_who_know(requirement, axis, known, verdict))
    return lines


def nothing_found(task: Task, name: str, what: str, hint: str) -> InfeasibleError:
    """The error of a search without good classes, though there may be some, with what the table meets."""
    found = f"{name} found no classes of all rows that meet {nonmonotone(task)}: {what}; {hint}"
    return InfeasibleError("\n".join([found, *_nearest(task)]))


def _nearest(task: Task) -> list[str]:
    """The nearest values that the whole table as one class meets, of each nonmonotone requirement that it violates."""
    engine, lines = task.engine, []
    for axis in task.encoded.sensitive:
        with engine.scope():
            whole = axis.whole_table(engine)
            for requirement in (r for r in task.wanted[axis.column.name] if not r.monotone):
                verdict = judge(engine, requirement, whole)
                nearest = requirement.nearest_whole(verdict.worst, axis.judged_distribution)
                if not verdict.holds:
                    lines.append(
                        f"{requirement.label} on {axis.column.name}: the whole table as one class meets {nearest}"
                    )
    return lines


def start_plan(engine: Engine, encoded: Encoded, feasible: Feasibility, cells: bool = True) -> Plan:
    """A plan without classes yet, of cells where the table has them and the algorithm deals these out."""
    dealt = DEALT if encoded.cells and cells else None
    columns = {"row_id": "BIGINT", "class_id": "BIGINT"} | ({dealt.name: "BIGINT"} if dealt else {})
    return Plan(engine.load("assigned", columns, []), feasible.l, feasible.notes, dealt=dealt)


def require_good(task: Task, name: str, assigned: Relation, dealt: Identifier | None = None) -> None:
    """Raise InfeasibleError if a class of an assignment is bad; monotone requirements need no such look."""
    if not nonmonotone(task):
        return
    engine = task.engine
    with engine.scope():
        encoded = task.encoded
        members = ClassedRows(encoded.members(dealt), assigned, CLASS_ID, dealt=dealt)
        steps = OneStatement(engine)
        margins = ClassChecker(task).margins(count_classes(steps, encoded.sensitive, members), steps)
        classes = engine.count(margins)
        bad = classes - engine.count(margins, GOOD)
    if bad:
        what = "the whole table does not, and no part of it was split off" if classes == 1 else f"{bad:,} do not"
        raise nothing_found(task, name, what, "algorithm: peel looks for others")
