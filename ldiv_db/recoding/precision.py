"""What a release tells, in sentences: `age is within 4 for nine rows of ten`, and how far counts are off.

Precision is LM said otherwise (Iyengar 2002). A number is read as the middle of its range, and so is off by half of
the width at most, which is the range's LM times that of the whole column; of a taxonomy with n leaves a node or set
with an LM of x has 1 + x (n - 1). Rows that are left out tell nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.display import per_cent
from ldiv_db.recoding.encoded import LOSS_UNIT, Axis

_HALF, _NINE_TENTHS = 0.5, 0.9
#: Units of time by their seconds, largest first.
_TIMES = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))


@dataclass(frozen=True)
class Precision:
    """The shares of the rows that tell a quasi-identifier exactly, and at all, and the largest LM of half and of 9/10.

    `width` is that of the column's numbers, in seconds of times; None where it has a taxonomy of so many `leaves`.
    """

    column: str
    exact: float
    told: float
    half: float
    nine_tenths: float
    width: float | None
    is_time: bool
    leaves: int

    def __str__(self) -> str:
        if self.exact == 1:
            return f"{self.column} is exact"
        quantiles = ((self.nine_tenths, _NINE_TENTHS, "nine rows of ten"), (self.half, _HALF, "half"))
        said = [f"{self._near(lm)} for {rows}" for lm, share, rows in quantiles if self.exact < share and lm < 1]
        said += [f"exact for {per_cent(self.exact)}"] if self.exact else []
        said += [f"not told for {per_cent(1 - self.told)}"] if self.nine_tenths == 1 else []
        return f"{self.column} is {', '.join(said)}"

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON has them: `within` of numbers and seconds, `values` of a taxonomy's leaves."""
        by = {"half": self.half, "nine_tenths": self.nine_tenths}
        if self.width is None:
            found: Mapping[str, Any] = {"values": {key: self._leaves(lm) for key, lm in by.items()}}
        else:
            found = {"within": {key: lm * self.width / 2 for key, lm in by.items()}}
        return {"column": self.column, "exact": self.exact, "told": self.told, **found, "text": str(self)}

    def _leaves(self, lm: float) -> int:
        return round(1 + lm * (self.leaves - 1))

    def _near(self, lm: float) -> str:
        """How near that LM is."""
        if self.width is None:
            return f"one of {self._leaves(lm):,} values (of {self.leaves:,})"
        far = lm * self.width / 2
        if not self.is_time:
            return f"within {far:,.0f}" if far >= 100 else f"within {far:.3g}"
        unit, seconds = next(((unit, n) for unit, n in _TIMES if far >= n), _TIMES[-1])
        return f"within {far / seconds:,.3g} {unit}"


@dataclass(frozen=True)
class CountErrors:
    """The relative errors of `queries` random counts over two columns each: their median, and that of nine of ten."""

    queries: int
    median: float
    nine_tenths: float

    def __str__(self) -> str:
        return f"a count over two columns is off by {self.median:.1%} (median), {self.nine_tenths:.1%} (nine of ten)"

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "text": str(self)}


@dataclass(frozen=True)
class Told:
    """What tells a quasi-identifier: the `span` of a class, or a `column` (values, weights) of a known table."""

    number: int
    span: Any = None
    column: Any = None


def measure_precision(
    engine: Engine, axes: Sequence[Axis], told: Sequence[Told], total: int, classes: Relation | None = None
) -> tuple[Precision, ...]:
    """The precision of every axis among `total` rows, those that are left out included, in one statement.

    `classes` are those of the spans, if these tell it.
    """
    params = {"told": told, "classes": classes, "total": total, "unit": LOSS_UNIT}
    rows = sorted(engine.rows("recoding/loss/find_precision", **params))
    return tuple(
        Precision(
            *(axis.name, int(exact) / total, int(narrow) / total, half / LOSS_UNIT, most / LOSS_UNIT),
            *(axis.width, axis.is_time, axis.leaves),
        )
        for axis, (_, exact, narrow, half, most) in zip(axes, rows, strict=True)
    )
