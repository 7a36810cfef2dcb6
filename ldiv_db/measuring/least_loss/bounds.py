"""What a class must have at least by its requirements, and what is said of a bound that was proved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.database.errors import rows_phrase
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements import Distribution, Requirement, promised_by
from ldiv_db.requirements.guarantees import ONE, Guarantee

#: Rows that differ, at most: their codes and counts are held in memory.
MOST_CELLS = 500_000
#: Whose rows are dear is said by the fewest that have so much of all prices.
DEAREST = 0.3


@dataclass(frozen=True)
class Need:
    """What a class must have: rows, different values, and of each value no more than one row in `parts`.

    The values are those of the attribute `sensitive`.
    """

    rows: int = 1
    values: int = 1
    parts: int = 1
    sensitive: str = field(default="", compare=False)

    @property
    def least(self) -> tuple[int, int]:
        """The fewest rows and different values."""
        values = max(self.values, self.parts)
        return max(self.rows, values), values

    @property
    def counted(self) -> str:
        """The attribute whose values are told apart; empty if rows alone count."""
        return self.sensitive if self.least[1] > 1 else ""

    def __str__(self) -> str:
        said = [f"{self.rows:,} rows"] if self.rows > 1 else []
        said += [f"{self.values} values of {self.sensitive}"] if self.values > 1 else []
        said += [f"no {self.sensitive} in more than 1 of {self.parts} rows"] if self.parts > 1 else []
        return " and ".join(said) or "any rows"


@dataclass(frozen=True)
class Wanted:
    """The requirements on the classes of a table, by sensitive attribute, and how they are judged.

    Up to `left_out` rows may be missing. Rows of NULLs are taken as `suppressed` says.
    """

    encoded: Encoded
    requirements: Mapping[str, Sequence[Requirement]]
    of_people: bool = False
    suppressed: str = "judge"
    left_out: int = 0


def need_of(wanted: Wanted) -> tuple[Need, list[str]]:
    """What every class that meets the requirements has, and the requirements that ask for more than that.

    Rows count for people where these are counted. Of several sensitive attributes that which asks most is taken, with
    the most rows that any asks for. Any number of the rows that are blanked may be missing where these are ignored.
    """
    axes = {axis.column.name: axis for axis in wanted.encoded.sensitive}
    of_people, suppressed, left_out = wanted.of_people, wanted.suppressed, wanted.left_out
    missing = wanted.encoded.row_count if suppressed == "ignore" else left_out
    judged = {name: own for name, own in wanted.requirements.items() if name in axes}
    asked = [_asked(axes[name], own, of_people, suppressed, missing) for name, own in judged.items()]
    most = max(asked, key=lambda need: (need.least[1], need.parts, need.rows))
    need = replace(most, rows=max(need.rows for need in asked))
    every = [(name, requirement) for name, own in wanted.requirements.items() for requirement in own]
    left = f"up to {left_out:,} rows are" if left_out else "no row is"
    said = {True: f" (where {left} left out)", False: ""}
    weaker = [r.label + said[r.compares_with_table] for name, r in every if not _is_all(axes[name], r, need, of_people)]
    return need, list(dict.fromkeys(weaker))


def _asked(
    axis: SensitiveAxis, requirements: Sequence[Requirement], of_people: bool, suppressed: str, left_out: int
) -> Need:
    found = promised_by(requirements)
    promised = found.of_rows if of_people else found
    if axis.bags:  # whose codes are no values
        return Need(promised.size)
    largest = max([promised.share, *(share for _, share in promised.shares)]) or ONE
    if suppressed == "unknown":  # NULL counts as a row, and as no value
        return Need(max(promised.size, math.ceil(1 / largest)))
    parts = 1 if axis.judged else math.floor(1 / largest)
    values = max(promised.values, _fewest_within(found, axis.judged_distribution, left_out))
    return Need(promised.size, values, parts, axis.column.name)


def _fewest_within(promised: Guarantee, table: Distribution, left_out: int) -> int:
    """The fewest values of a class that differs from the table by so much at most: the others make up no more.

    Of these, which are rare, rows are left out that make up the least of what is left.
    """
    missing, values = (table.rows - left_out) * (1 - promised.difference), 0
    for count in table.counts:
        if missing <= 0:
            break
        missing, values = missing - count, values + 1
    return max(values, 1)


def _is_all(axis: SensitiveAxis, requirement: Requirement, need: Need, of_people: bool) -> bool:
    """True if a class that has what is needed meets the requirement."""
    counted = requirement.tallies_only and requirement.monotone and not requirement.harmless
    if not counted or of_people or axis.judged or requirement.others_known or (axis.bags and not requirement.rows_only):
        return False
    promised = requirement.promise()
    of_values = need.sensitive == axis.column.name and promised.values <= need.values
    of_values &= need.parts * promised.share >= 1
    least = max(promised.size, requirement.least_rows) <= need.least[0]  # a mean asks less of a class than it is given
    return least and (requirement.rows_only or of_values)


@dataclass(frozen=True)
class LossBound:
    """What no local recoding through these taxonomies loses less than: the mean LM of a cell, rounded down.

    It is proved for all whose classes have what is needed; `weaker` are the requirements that ask for more, `grouped`
    the numbers that were taken in groups, each as if it were one value, and what has sets. A search that was
    `interrupted` might have proved more. `proof` has the cells and their prices. Of the table's `rows` the `dearest`,
    as few as can be, have `DEAREST` of all prices.
    """

    lm_mean: float
    need: Need
    weaker: Sequence[str] = ()
    grouped: Sequence[str] = ()
    interrupted: bool = False
    rows: int = 0
    dearest: int = 0
    proof: Any = field(default=None, repr=False, compare=False)

    def above(self, lm_mean: float) -> float | None:
        """The part by which a recoding may lose more than the least."""
        return max(lm_mean / self.lm_mean - 1, 0.0) if self.lm_mean else None

    def as_dict(self, lm_mean: float | None = None) -> dict[str, Any]:
        """The bound as JSON has it; `above` is of a recoding that loses so much."""
        more = {} if lm_mean is None else {"above": self.above(lm_mean)}
        need = {"rows": self.need.rows, "values": self.need.values, "parts": self.need.parts}
        listed = {"weaker": list(self.weaker), "grouped": list(self.grouped), "interrupted": self.interrupted}
        return {"lm_mean": self.lm_mean, **more, **need, **listed, "dearest_rows": self.dearest}

    def said(self, lm_mean: float | None = None) -> Iterator[str]:
        """What is proved, of a recoding that loses so much, and of which classes, in lines."""
        least = (
            f"no local recoding through these taxonomies loses less than {math.floor(self.lm_mean * 10**4) / 10**4:.4f}"
        )
        least += " (mean LM)"
        above = None if lm_mean is None else self.above(lm_mean)
        if above is not None:
            per_cent = math.ceil(above * 1000) / 10
            least += f"; this one loses {lm_mean:.4f}: at most {per_cent:.1f} % more than the least"
        yield least
        if 0 < self.dearest < DEAREST * self.rows:
            told = f"{self.dearest:,} of {rows_phrase(self.rows)} have {DEAREST:.0%} of the prices that prove it"
            yield f"{told}: rows unlike others, which cost most"
        if self.weaker:
            yield f"proved for classes of {self.need}, which is less than {', '.join(self.weaker)}"
        if self.grouped:
            yield f"lowered, as values are taken as one: {'; '.join(self.grouped)}"
        if self.interrupted:
            yield "Ctrl-C ended the search for more"
