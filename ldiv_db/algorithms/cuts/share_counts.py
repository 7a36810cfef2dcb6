"""How counts travel in boxes, and how thresholds are read off them: the parameters of the templates of boxes.

Counts are packed, several to a column of DOUBLE, whose sums of whole numbers are exact below 2^53 in any order: a third
of the columns to add up. Values with the same threshold share one product of rows and threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ldiv_db.algorithms.cuts.asked import Pack, PackedCount
from ldiv_db.algorithms.cuts.problem import ROWS, CutProblem, Label, SensitiveValue
from ldiv_db.database.templates import Identifier, Value

#: The bits of the whole numbers that DOUBLE adds exactly.
_EXACT_BITS = 53
#: Steps towards the l-eligible core in the first statement, and in those for the boxes that need more.
_STEPS, _MORE_STEPS = 2, 6


@dataclass(frozen=True)
class Sum:
    """A column of counts that is the sum of others."""

    column: Identifier
    parts: tuple[Identifier, ...]


@dataclass(frozen=True)
class Cap:
    """How many rows a threshold allows a value to have: the column of that, and of that in what is kept."""

    column: Identifier
    over: Value
    under: Value

    @property
    def last(self) -> Identifier:
        return Identifier(f"last_{self.column.name}")


@dataclass(frozen=True)
class Share:
    """A sensitive value's rows, and the column of how many its threshold allows."""

    rows: Identifier
    of: Cap

    @property
    def cap(self) -> Identifier:
        return self.of.column

    @property
    def last(self) -> Identifier:
        return self.of.last


@dataclass(frozen=True)
class CoreStep:
    """A step towards the l-eligible core: from how many rows to how many."""

    before: Identifier
    kept: Identifier
    caps: list[Cap]
    shares: list[Share]


def packs_of(problem: CutProblem) -> list[Pack]:
    """The columns of counts that no others sum up to, as many together as a pack can hold."""
    columns = [tally.column for tally in problem.tallies if not problem.cost.both or (tally.held and tally.label)]
    return _packed(problem, columns, 1)


def judged_packs(problem: CutProblem) -> list[list[Pack]]:
    """The same for counts that are judged, a list for all that is judged together, the rows of partitions in the first;
    at last the rows of labels."""
    counts = [[tally.column for tally in one.tallies] for one in problem.asked]
    columns = [[ROWS, *counts[0]], *counts[1:], [label.rows for label in problem.labels]]
    packs: list[list[Pack]] = []
    for of_one in columns:
        packs.append(_packed(problem, of_one, 1 + sum(map(len, packs))))
    return packs


def _packed(problem: CutProblem, columns: Sequence[Identifier], first: int) -> list[Pack]:
    """The columns in packs, numbered from the first."""
    bits = max(1, problem.rows.bit_length())
    together = _EXACT_BITS // bits
    packs: list[Pack] = []
    for number, start in enumerate(range(0, len(columns), together), first):
        packed = enumerate(columns[start : start + together])
        counts = tuple(PackedCount(column, Value(bits * place)) for place, column in packed)
        packs.append(Pack(Identifier(f"pack_{number}"), counts, Value(2**bits - 1), Value(number)))
    return packs


def sums_of(problem: CutProblem) -> list[Sum]:
    """The rows of sensitive values and of labels, where those that have both are counted."""
    if not problem.cost.both:
        return []
    sums: list[SensitiveValue | Label] = [*problem.values, *problem.labels]
    return [Sum(sensitive.rows, sensitive.both) for sensitive in sums]


def shares_of(problem: CutProblem) -> list[Share]:
    """The sensitive values with their caps, of which each threshold has one."""
    places = {theta: place for place, theta in enumerate(dict.fromkeys(value.theta for value in problem.values))}
    return [
        Share(value.rows, Cap(Identifier(f"cap_{places[value.theta]}"), value.over, value.under))
        for value in problem.values
    ]


def caps_of(shares: Sequence[Share]) -> list[Cap]:
    return list(dict.fromkeys(share.of for share in shares))


def steps_of(shares: Sequence[Share], again: bool) -> list[CoreStep]:
    """Steps from all rows, or from those that steps before have left."""
    names = [
        Identifier("so_far" if again else "n"),
        *(Identifier(f"kept_{place}") for place in range(_MORE_STEPS if again else _STEPS)),
    ]
    steps = []
    for place, (before, kept) in enumerate(pairwise(names)):
        of_step = [Share(s.rows, Cap(Identifier(f"{s.cap.name}_{place}"), s.of.over, s.of.under)) for s in shares]
        steps.append(CoreStep(before, kept, caps_of(of_step), of_step))
    return steps
