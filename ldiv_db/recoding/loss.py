"""Information lost by a recoding: LM, NCP, DM, CAVG, what was suppressed, and what the release tells, in sentences.

All losses are sums over classes; a cell's is an integer in billionths, so no sum depends on its order.

Precision is LM said otherwise (Iyengar 2002): `age is within 4 for nine rows of ten`. A number is read as the middle of
its range, and so is off by half of the width at most, which is the range's LM times that of the whole column; of a
taxonomy with n leaves a node or set with an LM of x has 1 + x (n - 1). Rows that are left out tell nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import OneStatement
from ldiv_db.display import fields_of, per_cent
from ldiv_db.policy.release_columns import Form
from ldiv_db.recoding.encoded import LOSS_UNIT, Axis, Encoded
from ldiv_db.recoding.recode import Assignment, Recoding, label_spans

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
        if self.width is None:
            return f"one of {self._leaves(lm):,} values (of {self.leaves:,})"
        far, unit = lm * self.width / 2, ""
        if self.is_time:
            name, seconds = next(((name, n) for name, n in _TIMES if far >= n), _TIMES[-1])
            far, unit = far / seconds, f" {name}"
        return f"within {far:,.0f}{unit}" if far >= 100 else f"within {far:.3g}{unit}"


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


def measure_precision(
    engine: Engine, axes: Sequence[Axis], told: Sequence[Any], total: int, classes: Relation | None = None
) -> tuple[Precision, ...]:
    """The precision of every axis among `total` rows, those that are left out included, in one statement.

    Each is `told` by the span of `classes`, or without these by a column (values, weights) of a known table.
    """
    params = {"told": _numbered(told), "classes": classes, "total": total, "unit": LOSS_UNIT}
    rows = sorted(engine.rows("recoding/loss/find_precision", **params))
    return tuple(
        Precision(
            *(axis.name, int(exact) / total, int(narrow) / total, half / LOSS_UNIT, most / LOSS_UNIT),
            axis.domain.width if axis.domain else None,
            axis.domain is not None and axis.domain.is_time,
            axis.leaves,
        )
        for axis, (_, exact, narrow, half, most) in zip(axes, rows, strict=True)
    )


@dataclass(frozen=True)
class DivergenceSample:
    """A sample of so many rows by which KL was estimated, and the standard error; None where KL is infinite."""

    rows: int
    error: float | None

    def __str__(self) -> str:
        off = "" if self.error is None else f", standard error {self.error:.4f}"
        return f"of a sample of {self.rows:,} rows{off}"


@dataclass(frozen=True)
class Loss:
    """The loss of a release against the `rows_in` rows of its source; suppressed rows lose every cell.

    `lm` and `ncp` are totals over all cells, their means are per cell (ncp's per unit of weight) and lie in 0..1.
    `classes` and what follows from them (`dm`, `cavg`, sizes) are those that can be told apart in what is published,
    `classes_made` those that an algorithm made, None for a table of which that is not known. `stars` counts the
    published cells that are fully generalised, `kl` is in nats and None if it was not asked for. Sources: LM Iyengar
    2002, NCP Xu et al. 2006, DM Bayardo & Agrawal 2005, CAVG LeFevre et al. 2006.
    """

    classes: int
    rows_published: int
    rows_suppressed: int
    cells_suppressed: int
    smallest_class: int
    largest_class: int
    lm: float
    lm_mean: float
    ncp: float
    ncp_mean: float
    dm: int
    lm_by_column: dict[str, float]
    stars: int
    kl: float | None = None
    #: The sample that it was estimated by; None if all rows were looked at.
    kl_sample: DivergenceSample | None = None
    #: How closely each quasi-identifier is told.
    precision: tuple[Precision, ...] = ()
    #: How far counts over two columns are off, if the table was asked.
    counts: CountErrors | None = None
    classes_made: int | None = None

    @property
    def average_class_size(self) -> float:
        return self.rows_published / self.classes if self.classes else 0.0

    @property
    def divergence(self) -> str:
        """KL in words, with the sample that it was estimated by."""
        sample = f", {self.kl_sample}" if self.kl_sample else ""
        return ("infinite" if self.kl is None else f"{self.kl:.4f} nats") + sample

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on a release of which every cell is fully generalised."""
        cells = self.rows_published * len(self.lm_by_column)
        if not cells or self.stars < cells:
            return ()
        return (
            "every quasi-identifier of every row is fully generalised, so the release says nothing about them: ask for"
            " less, leave a column out, or try another algorithm (ldiv explore compares them)",
        )

    def cavg(self, l: float | None) -> float | None:
        """The average class size in units of the smallest allowed, `(n / classes) / l`; None for no l."""
        return self.average_class_size / l if l else None

    def as_dict(self, l: float | None) -> dict[str, Any]:
        return {
            **fields_of(self, "lm", "lm_mean", "ncp", "ncp_mean", "dm"),
            "cavg": self.cavg(l),
            **fields_of(self, "kl", "stars", "lm_by_column"),
            **({"kl_sample": vars(self.kl_sample)} if self.kl_sample else {}),
            "precision": [one.as_dict() for one in self.precision],
            "counts": self.counts and self.counts.as_dict(),
        }


@dataclass(frozen=True)
class TableLoss:
    """The loss of one of several tables, called `name`, whose quasi-identifiers have so much weight together."""

    name: str
    loss: Loss
    weight: float
    #: Whether everybody has one row there, of tables that are published against who knows one row.
    is_of_people: bool | None = None

    @property
    def rows_in(self) -> int:
        return self.loss.rows_published + self.loss.rows_suppressed

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        figures = fields_of(self.loss, "rows_published", "rows_suppressed", "lm_mean", "kl")
        return {"table": self.name, "rows_in": self.rows_in, **figures}


def loss_of_tables(tables: Sequence[TableLoss], sizes: Sequence[int]) -> Loss:
    """The loss of all tables of a release, whose cells count alike; `sizes` are those of the classes of people."""
    cells = sum(one.rows_in * len(one.loss.lm_by_column) for one in tables)
    weight = sum(one.rows_in * one.weight for one in tables)
    lm, ncp = sum(one.loss.lm for one in tables), sum(one.loss.ncp for one in tables)
    return Loss(
        classes=len(sizes),
        rows_published=sum(one.loss.rows_published for one in tables),
        rows_suppressed=sum(one.loss.rows_suppressed for one in tables),
        cells_suppressed=0,
        smallest_class=min(sizes, default=0),
        largest_class=max(sizes, default=0),
        lm=lm,
        lm_mean=lm / cells if cells else 0.0,
        ncp=ncp,
        ncp_mean=ncp / weight if weight else 0.0,
        dm=sum(one.loss.dm for one in tables),
        lm_by_column={f"{one.name}.{name}": lm for one in tables for name, lm in one.loss.lm_by_column.items()},
        stars=sum(one.loss.stars for one in tables),
        precision=tuple(replace(p, column=f"{one.name}.{p.column}") for one in tables for p in one.loss.precision),
        classes_made=len(sizes),
    )


def nothing_lost(rows_in: int, published: int) -> Loss:
    """The loss of a table without quasi-identifiers, of which so many rows are published."""
    left_out = rows_in - published
    return Loss(1, published, left_out, 0, published, published, 0.0, 0.0, 0.0, 0.0, published**2, {}, 0)


def lost_by_column(engine: Engine, encoded: Encoded, recoding: Recoding) -> dict[str, float]:
    """The LM of a planned recoding by quasi-identifier, each a total over all rows of the source."""
    sums, names = _sums(engine, recoding), [span.axis.name for span in recoding.spans]
    lost = [int(of["lm"] or 0) / LOSS_UNIT + (encoded.rows_in - int(of["rows"] or 0)) for of in sums]
    return dict(zip(names, lost, strict=True))


def priced_by_column(
    engine: Engine, encoded: Encoded, assignment: Assignment, forms: Mapping[str, Form]
) -> dict[str, float]:
    """As `lost_by_column`, of classes whose labels need not be written, in one statement.

    For labels, bounds, and sets that have words; classes that are given have the bits of these.
    """
    if not encoded.axes:
        return {}
    steps: Any = OneStatement(engine)  # nothing is read of such steps
    classes = assignment.classes or encoded.bound_classes(steps, assignment.assigned, "classes", assignment.dealt)
    told = []
    for number, axis in enumerate(encoded.axes):
        is_set, is_bounds = (forms.get(axis.name) == form for form in ("set", "bounds"))
        is_direct = axis.nodes is None or (is_set and axis.sets >= axis.leaves)
        spans = None if is_direct else label_spans(steps, axis, classes).relation
        told.append({"number": number, "axis": axis, "is_set": is_set, "is_bounds": is_bounds, "spans": spans})
    params = {"classes": classes, "told": told, "stars": assignment.stars, "unit": LOSS_UNIT}
    return {
        encoded.axes[number].name: int(lm or 0) / LOSS_UNIT + (encoded.rows_in - int(rows or 0))
        for number, rows, lm in sorted(steps.rows("recoding/loss/price_classes", **params))
    }


def _numbered(told: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"number": number, "by": one} for number, one in enumerate(told)]


def _sums(engine: Engine, recoding: Recoding) -> list[dict[str, Any]]:
    """What the classes lose of every quasi-identifier."""
    params = {"classes": recoding.classes, "told": _numbered(recoding.spans), "unit": LOSS_UNIT}
    return sorted(engine.records("recoding/loss/sum_losses", **params), key=itemgetter("number"))


def _blanked(engine: Engine, encoded: Encoded, recoding: Recoding) -> int:
    """The sensitive values that are published as NULL though they are not."""
    if recoding.blanked is None:
        return 0
    params = {"rows": encoded.members(recoding.dealt), "assigned": recoding.assigned, "dealt": recoding.dealt}
    asked = {"blanked": recoding.blanked, "sensitive": encoded.sensitive[0].code}
    return int(engine.scalar("recoding/publish/count_blanked", **asked, **params))


def measure_recoding(engine: Engine, encoded: Encoded, recoding: Recoding, class_id: bool) -> Loss:
    """The loss of a planned recoding, by its classes; `class_id` says whether their numbers are published."""
    if not recoding.spans:
        return nothing_lost(encoded.rows_in, engine.count(recoding.assigned))
    sums, spans = _sums(engine, recoding), recoding.spans
    sizes = engine.record("recoding/loss/sum_sizes", classes=recoding.classes, spans=spans, class_id=class_id)
    precision = measure_precision(engine, encoded.axes, spans, encoded.rows_in, recoding.classes)
    lost = loss_of(encoded.axes, sums, sizes, encoded.rows_in, int(sums[0]["rows"] or 0))
    blanked = _blanked(engine, encoded, recoding)
    return replace(lost, cells_suppressed=blanked, precision=precision, classes_made=sums[0]["classes"])


def loss_of(
    axes: Sequence[Axis], sums: Sequence[Mapping[str, Any]], sizes: Mapping[str, Any], rows_in: int, published: int
) -> Loss:
    """The loss of so many published rows by what they lose of each quasi-identifier, and the sizes of their classes."""
    suppressed, total = max(0, rows_in - published), max(rows_in, published)
    lm = {axis.name: int(of["lm"] or 0) / LOSS_UNIT + suppressed for axis, of in zip(axes, sums, strict=True)}
    ncp, weights = 0.0, sum(axis.weight for axis in axes)
    for axis, of in zip(axes, sums, strict=True):
        ncp += axis.weight * (int(of["ncp"] or 0) / LOSS_UNIT + suppressed)
    return Loss(
        classes=sizes["classes"],
        rows_published=published,
        rows_suppressed=suppressed,
        cells_suppressed=0,
        smallest_class=int(sizes["smallest"] or 0),
        largest_class=int(sizes["largest"] or 0),
        lm=sum(lm.values()),
        lm_mean=sum(lm.values()) / (total * len(axes)),
        ncp=ncp,
        ncp_mean=ncp / (total * weights) if weights else 0.0,
        dm=int(sizes["dm"] or 0) + suppressed * rows_in,
        lm_by_column={name: value / total for name, value in lm.items()},
        stars=sum(int(of["stars"] or 0) for of in sums),
    )
