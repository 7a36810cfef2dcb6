"""Several tasks in one series of statements: their rows stand in one table, each task's as a stratum of its own.

Classes never have rows of two strata. A round of statements takes about as long for few rows as for many, so that the
people of all levels, who publish different numbers of rows, are solved in the time of one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import UNPAYABLE, Measure, full_costs, lm_measures
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.bags import Bags, person_units
from ldiv_db.recoding.cross_tables import STRATUM
from ldiv_db.recoding.encoded import Axis, SensitiveAxis
from ldiv_db.recoding.units import by_bags

#: The codes of a stratum's bags follow so many others: no table has as many different bags. Who has no row of the
#: table that an attribute is of has the code before them, of no bag.
_CODES = 2**31


@dataclass(frozen=True)
class Stratum:
    """One of several tasks: its rows follow `before` others, and `codes` are its own columns of quasi-identifiers."""

    number: int
    task: Task
    before: int
    codes: Mapping[Identifier, Identifier]

    @property
    def rows(self) -> Relation:
        return self.task.encoded.rows

    @property
    def last(self) -> int:
        """The number of its last row among all."""
        return self.before + self.task.encoded.row_count

    @property
    def sensitive(self) -> dict[Identifier, SensitiveAxis]:
        """Its sensitive attributes by their codes."""
        return {axis.code: axis for axis in self.task.encoded.sensitive}

    @property
    def shift(self) -> int:
        """What its codes of bags are raised by, so that no two strata have one in common."""
        return self.number * _CODES


@dataclass(frozen=True)
class Strata:
    """The `task` of all, whose rows have the number of their stratum in `column`; None where there is one.

    `each` is a task of its own, or one task has several `cells` as strata.
    """

    task: Task
    each: Sequence[Stratum]
    column: Identifier | None = None
    cells: int = 1

    @property
    def count(self) -> int:
        return len(self.each) * self.cells

    def full_costs(self) -> list[tuple[int, Axis, int]]:
        """(stratum, quasi-identifier under its code in all, cost of full generalisation) of all that a stratum has."""
        return [
            (stratum.number + cell, replace(axis, code=shared.code), full)
            for stratum in self.each
            for cell in range(self.cells)
            for axis, full in zip(stratum.task.encoded.axes, full_costs(stratum.task.encoded.axes), strict=True)
            for shared in self.task.encoded.axes
            if stratum.codes.get(shared.code) == axis.code
        ]

    def measures(self) -> tuple[Measure, ...]:
        """All quasi-identifiers of strata that are filled, and the stratum: no class can afford to be of two."""
        *axes, stratum = self.task.encoded.axes
        of_rows = lm_measures(replace(self.task, encoded=replace(self.task.encoded, axes=tuple(axes))))
        return (*of_rows, Measure(stratum, (), UNPAYABLE * stratum.scale))

    def stacked(self, assigned: Sequence[Relation]) -> Relation:
        """What is assigned of each stratum as of the rows of all, in classes of numbers that no two have in common."""
        both = [{"stratum": one, "assigned": own} for one, own in zip(self.each, assigned, strict=True)]
        return self.task.engine.materialise("assigned", "local/stack_classes", strata=both, many=len(both))

    def parted(self, assigned: Relation) -> list[Relation]:
        """What is assigned of each stratum, by the row ids of its own task."""
        if len(self.each) == 1:
            return [assigned]
        engine = self.task.engine
        return [
            engine.materialise("assigned", "local/part_strata", assigned=assigned, before=one.before, last=one.last)
            for one in self.each
        ]


def kind_of(task: Task) -> Hashable | None:
    """What tasks have in common that can be strata of one; None for a task that is solved by itself.

    That is the first sensitive attribute, of which all is asked that is asked of rows alone: others, which some strata
    lack, have the same rows. Classes that are compared with a whole table are those of one table, and cells are dealt
    out by it; of requirements that are not monotone one task may find no classes where others do. In all, a value is a
    bag, which not every requirement reads.
    """
    encoded, checker = task.encoded, ClassChecker(task)
    first, *others = encoded.sensitive
    asked = task.wanted[first.column.name]
    elsewhere = any(r.rows_only and r not in asked for axis in others for r in task.wanted[axis.column.name])
    judged = any(axis.judged or axis.spared or (axis.bags and not axis.bags.scale) for axis in encoded.sensitive)
    judged = judged or any(requirement.on_people is None for requirement in task.requirements)
    alike = len({axis.name for axis in encoded.axes}) < len(encoded.axes)
    if not asked or elsewhere or judged or alike or encoded.cells or task.compares_with_table or not checker.monotone:
        return None
    return first.code, checker.least, checker.more_is_better


def joined(tasks: Sequence[Task], filled: bool = False) -> Strata:
    """The tasks as strata of one; of one task it is that.

    If they are `filled` the rows of a stratum have one code of each quasi-identifier that it lacks, at no cost. What
    weighs differently in several is as many, and the stratum is one as well, as `measures` have it.
    """
    first, shared = tasks[0], dict[Hashable, Axis]()

    def key(axis: Axis) -> Hashable:
        return (axis.name, axis.weight) if filled else axis.name

    if len(tasks) == 1:
        one = Stratum(1, first, 0, {axis.code: axis.code for axis in first.encoded.axes})
        return _cells_of(first, one, filled) if first.cross else Strata(first, [one])
    for axis in (axis for task in tasks for axis in task.encoded.axes):
        shared.setdefault(key(axis), replace(axis, code=Identifier(f"q{len(shared) + 1}")))
    each, before = list[Stratum](), 0
    for number, task in enumerate(tasks, 1):
        own = {shared[key(axis)].code: axis.code for axis in task.encoded.axes}
        each.append(Stratum(number, task, before, own))
        before = each[-1].last
    engine = first.engine
    told = list(dict.fromkeys(code for stratum in each for code in stratum.sensitive))
    params = {"codes": [axis.code for axis in shared.values()], "sensitive": told, "filled": filled}
    rows = engine.materialise("stacked", "local/stack_strata", strata=each, **params)
    bags = tuple(_joined_bags(engine, each, code) for code in told)
    axes = (*shared.values(), *([_axis(rows, len(each))] if filled else []))
    encoded = replace(first.encoded, rows=rows, axes=axes, sensitive=bags, rows_in=before, left_out=0)
    wanted = {name: own for task in tasks for name, own in task.wanted.items()}
    every = [requirement for own in wanted.values() for requirement in own]
    return Strata(replace(first, encoded=encoded, wanted=wanted, requirements=every), each, STRATUM)


def _cells_of(task: Task, one: Stratum, filled: bool) -> Strata:
    """The cells of cross-tables as strata of one task, whose rows have the numbers of theirs."""
    assert task.cross is not None  # noqa: S101 - the caller has looked
    encoded, count = task.encoded, task.cross.count
    axes = (*encoded.axes, *([_axis(encoded.rows, count)] if filled else []))
    return Strata(replace(task, encoded=replace(encoded, axes=axes)), [one], STRATUM, count)


def _axis(rows: Relation, strata: int) -> Axis:
    """The stratum as an axis of its rows."""
    return Axis(STRATUM, STRATUM, rows, strata, None, 0.0)


def _joined_bags(engine: Engine, strata: Sequence[Stratum], code: Identifier) -> SensitiveAxis:
    """A sensitive attribute of the strata that have it, by the codes of bags: a value alone is a bag as well."""
    having = [(stratum, stratum.sensitive[code]) for stratum in strata if code in stratum.sensitive]
    own = [axis for _, axis in having]
    listed = engine.materialise("listed", "local/stack_bags", strata=having)
    scale = person_units([axis.bags.scale for axis in own if axis.bags])
    whole = engine.materialise("counted", "recoding/input/count_members", listed=listed, scale=scale)
    dictionary = engine.select("dictionary", listed, ("code", "value"), "rows", "code", distinct=True)
    bags = Bags.of(engine, listed, scale, whole)
    return by_bags(engine, own[0], dictionary, bags, engine.total(dictionary, "rows"))


def batches(tasks: Iterable[Task], most: int) -> list[list[Task]]:
    """The tasks that can be strata of one, in lists of at most so many rows, each with several of them."""
    found: dict[Hashable, list[list[Task]]] = {}
    for task in tasks:
        key, rows = kind_of(task), task.encoded.row_count
        if key is None or rows > most:
            continue
        own = found.setdefault(key, [[]])
        if sum(one.encoded.row_count for one in own[-1]) + rows > most:
            own.append([])
        own[-1].append(task)
    return [batch for own in found.values() for batch in own if len(batch) > 1]
