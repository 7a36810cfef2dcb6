"""The problem of a cut search: trees, requirements, metric and scheme, and the table of cells with its counts.

A cell is a combination of leaves that occurs; its counts are columns, one a sensitive value, so that a statement
over partitions is one aggregation. Where nothing but the shares of one attribute's values is bounded, the values have
thresholds; otherwise `judged` says whose counts are judged.

Counts are packed, several to a column of DOUBLE, whose sums of whole numbers are exact below 2^53 in any order: a third
of the columns to add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import lcm

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.cuts.intervals import IntervalTree, interval_tree
from ldiv_db.algorithms.cuts.judged import JudgedAttributes, Pack, PackedCount, Tally, bounds_shares, judged_together
from ldiv_db.algorithms.cuts.spanned import TreeOfNumbers, trees_of
from ldiv_db.algorithms.cuts.trees import CutTree, loss_unit
from ldiv_db.database.errors import refused
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements.parameters import UNIT, units
from ldiv_db.requirements.values import Named

#: The column of a partition's rows.
ROWS = Identifier("n")
#: The bits of the whole numbers that DOUBLE adds exactly.
_EXACT_BITS = 53
#: More columns of counts than this are refused.
MOST_COLUMNS = 500
#: Cells times nodes that are evaluated together, about, and the most nodes.
_AT_ONCE, _MOST_NODES = 400_000, 48
#: Thresholds over a common denominator beyond this are refused: their products with counts would not fit an integer.
_FINEST = 10**10


@dataclass(frozen=True)
class SensitiveValue:
    """A sensitive value: the column of its rows, its threshold `over / under`, and its columns by label."""

    code: int
    theta: Fraction
    both: tuple[Identifier, ...] = ()

    rows = NamedAfter("c{0.code}")

    @property
    def over(self) -> int:
        return self.theta.numerator

    @property
    def under(self) -> int:
        return self.theta.denominator


@dataclass(frozen=True)
class Label:
    """A label of the class column: the column of its rows, and of its rows by sensitive value."""

    code: int
    both: tuple[Identifier, ...] = ()

    rows = NamedAfter("k{0.code}")
    #: The rows of the label that are left if it is the one to be kept.
    left = NamedAfter("k{0.code}_left")


@dataclass(frozen=True)
class Unit:
    """The costs of suppressing a row and of blanking a sensitive value."""

    row: int
    cell: int


@dataclass(frozen=True)
class Cost:
    """A metric and a scheme of suppression; `label` is the class column, for CM alone."""

    metric: str
    scheme: str
    label: Renamed | None = None

    @property
    def both(self) -> bool:
        """True if counts by sensitive value and label are needed: which rows of a value go matters for CM alone."""
        return self.metric == "CM" and self.scheme == "vioRec"


@dataclass(frozen=True)
class CutProblem:
    """A table of cells, and everything that the cost of a cut depends on; it has `values` or `judged`."""

    task: Task
    cost: Cost
    trees: tuple[CutTree, ...]
    values: tuple[SensitiveValue, ...]
    judged: tuple[JudgedAttributes, ...]
    labels: tuple[Label, ...]
    label_codes: Relation | None
    #: The columns of counts that a cell has besides its rows.
    tallies: Sequence[Tally]
    cells: Relation
    cell_count: int
    loss_unit: int

    @property
    def batch(self) -> int:
        """The number of nodes that are evaluated together: few where there are many cells, for memory's sake."""
        return max(1, min(_MOST_NODES, _AT_ONCE // max(1, self.cell_count)))

    @property
    def rows(self) -> int:
        return self.task.encoded.row_count

    @cached_property
    def packs_by_judge(self) -> list[list[Pack]]:
        """The columns of counts that are judged, a list for all that is judged together, the rows of partitions in the
        first; at last the rows of labels."""
        counts = [[tally.column for tally in one.tallies] for one in self.judged]
        packs: list[list[Pack]] = []
        for of_one in [[ROWS, *counts[0]], *counts[1:], [label.rows for label in self.labels]]:
            packs.append(self._packed(of_one, 1 + sum(map(len, packs))))
        return packs

    @cached_property
    def packs(self) -> list[Pack]:
        """The columns of counts that no others sum up to, as many together as a pack can hold."""
        if self.judged:
            return [pack for of_one in self.packs_by_judge for pack in of_one]
        both = self.cost.both
        return self._packed([tally.column for tally in self.tallies if not both or (tally.held and tally.label)], 1)

    def _packed(self, columns: Sequence[Identifier], first: int) -> list[Pack]:
        """The columns in packs, numbered from the first."""
        bits = max(1, self.rows.bit_length())
        together = _EXACT_BITS // bits
        packs: list[Pack] = []
        for number, start in enumerate(range(0, len(columns), together), first):
            packed = enumerate(columns[start : start + together])
            counts = tuple(PackedCount(column, bits * place) for place, column in packed)
            packs.append(Pack(Identifier(f"pack_{number}"), counts, 2**bits - 1, number))
        return packs

    @property
    def unit(self) -> Unit:
        """Costs as integers: LM in parts of a cell's loss, DM and CM in their own units."""
        cells = sum(not tree.is_free for tree in self.trees) * self.loss_unit
        row = {"LM": 2 * cells, "DM": self.rows, "CM": 1}[self.cost.metric]
        return Unit(row, cells)

    @property
    def scale(self) -> int:
        """The divisor of integer costs."""
        return self.loss_unit if self.cost.metric == "LM" else 1

    @property
    def refused(self) -> int:
        """More than any cut costs: the cost of a partition that is not allowed."""
        return self.rows * self.unit.row + 1

    def root(self) -> tuple[tuple[int, int], ...]:
        return tuple(tree.root for tree in self.trees)


def make_problem(task: Task, cost: Cost, of_numbers: TreeOfNumbers = interval_tree) -> CutProblem:
    """The problem of a task that `Cuts.check` has let through; its tables are TEMP."""
    engine, encoded = task.engine, task.encoded
    trees = trees_of(engine, encoded.axes, of_numbers)
    counted = _count_cells(task, cost)
    label_codes, labels = _labels(task, cost, counted)
    by_shares = bounds_shares(task)
    values = _values(task, labels if cost.both else ()) if by_shares else ()
    judged = () if by_shares else judged_together(task)
    code = encoded.sensitive[0].code
    tallies = [tally for one in judged for tally in one.tallies]
    tallies += [Tally(value.rows, ((code, value.code),)) for value in values]
    tallies += [Tally(label.rows, label=label.code) for label in labels]
    tallies += [
        Tally(_pair_column(value.code, label.code), ((code, value.code),), label.code)
        for value, label in (product(values, labels) if cost.both else ())
    ]
    if len(tallies) > MOST_COLUMNS:
        what = f"would count {len(tallies):,} columns a cell, more than {MOST_COLUMNS}: too many sensitive values"
        raise refused("algorithm.name", f"cuts {what}")
    cells = engine.materialise("cells", "cuts/spread_cells", cells=counted, axes=encoded.axes, tallies=tallies)
    engine.drop(counted)
    count, unit = engine.count(cells), loss_unit(trees)
    return CutProblem(task, cost, trees, values, judged, labels, label_codes, tallies, cells, count, unit)


def _pair_column(value: int, label: int) -> Identifier:
    return Identifier(f"x{value}_{label}")


def _count_cells(task: Task, cost: Cost) -> Relation:
    """The cells by sensitive values and, in order from 1, by the labels of the class column, NULL first."""
    engine, encoded = task.engine, task.encoded
    named = [cost.label.alias.name] if cost.label else []
    cells = encoded.count_cells(engine, *(axis.code.name for axis in encoded.sensitive), *named)
    if not named:
        return cells
    numbered = engine.number_groups("cells", cells, *named, number="label", columns=())
    engine.drop(cells)
    return numbered


def _labels(task: Task, cost: Cost, cells: Relation) -> tuple[Relation | None, tuple[Label, ...]]:
    """The table of the class column's labels (value, code), and their columns."""
    if cost.label is None:
        return None, ()
    columns = ((cost.label.alias.name, "value"), ("label", "code"))
    codes = task.engine.select("label_codes", cells, *columns, distinct=True)
    count = task.engine.count(codes)
    values = range(1, task.encoded.sensitive[0].distribution.distinct + 1) if cost.both else ()
    return codes, tuple(
        Label(code, tuple(_pair_column(value, code) for value in values)) for code in range(1, count + 1)
    )


def _values(task: Task, labels: Sequence[Label]) -> tuple[SensitiveValue, ...]:
    thetas = thresholds_of(task)
    if lcm(*(theta.denominator for theta in thetas.values())) > _FINEST:
        raise refused("require", "cuts: write the thresholds with fewer digits: their products overflow")
    return tuple(
        SensitiveValue(code, theta, tuple(_pair_column(code, label.code) for label in labels))
        for code, theta in sorted(thetas.items())
    )


def thresholds_of(task: Task) -> dict[int, Fraction]:
    """The threshold of every sensitive value by its code, the least of what all requirements say."""
    (axis,) = task.encoded.sensitive
    # Of a level people may have some of all codes.
    thetas = dict.fromkeys(sorted(task.engine.column(axis.dictionary, "code")), Fraction(1))
    for requirement in task.requirements:
        promise = requirement.promise()
        codes = codes_of(task, [value for value, _ in promise.shares])
        for code in thetas:
            theta = promise.shares[codes[code]][1] if code in codes else promise.share
            thetas[code] = min(thetas[code], theta)
    if lcm(*(theta.denominator for theta in thetas.values())) > _FINEST:  # those of a base: a little less is safe
        return {code: Fraction(units(theta), UNIT) for code, theta in thetas.items()}
    return thetas


def codes_of(task: Task, values: Sequence[Named]) -> dict[int, int]:
    """By the code of each sensitive value that is listed its place in the list."""
    (axis,) = task.encoded.sensitive
    columns = {"value": "VARCHAR", "place": "INTEGER"}
    listed = task.engine.load("thetas", columns, [(value, place) for place, value in enumerate(values)])
    codes = dict(task.engine.rows("cuts/list_thresholds", dictionary=axis.dictionary, thetas=listed))
    task.engine.drop(listed)
    return codes


def intervals_of(problem: CutProblem) -> list[IntervalTree]:
    """The quasi-identifiers without a taxonomy."""
    return [tree for tree in problem.trees if isinstance(tree, IntervalTree)]
