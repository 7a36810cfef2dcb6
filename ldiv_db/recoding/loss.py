"""Information lost by a recoding: LM, NCP, DM, CAVG, and what was suppressed.

All are sums over classes; a cell's loss is an integer in billionths, so no sum depends on its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.recoding.encoded import LOSS_UNIT, Encoded
from ldiv_db.recoding.precision import CountErrors, Precision, Told, measure_precision
from ldiv_db.recoding.recode import Recoding


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
    #: How closely each quasi-identifier is told.
    precision: tuple[Precision, ...] = ()
    #: How far counts over two columns are off, if the table was asked.
    counts: CountErrors | None = None
    classes_made: int | None = None

    @property
    def average_class_size(self) -> float:
        return self.rows_published / self.classes if self.classes else 0.0

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
            "lm": self.lm,
            "lm_mean": self.lm_mean,
            "ncp": self.ncp,
            "ncp_mean": self.ncp_mean,
            "dm": self.dm,
            "cavg": self.cavg(l),
            "kl": self.kl,
            "stars": self.stars,
            "lm_by_column": self.lm_by_column,
            "precision": [one.as_dict() for one in self.precision],
            "counts": self.counts and self.counts.as_dict(),
        }


def lost_by_column(engine: Engine, encoded: Encoded, recoding: Recoding) -> dict[str, float]:
    """The LM of a planned recoding by quasi-identifier, each a total over all rows of the source."""
    params = {"classes": recoding.classes, "spans": recoding.spans}
    return _by_column(encoded, recoding, engine.record("recoding/loss/sum_losses", unit=LOSS_UNIT, **params))


def _by_column(encoded: Encoded, recoding: Recoding, sums: Mapping[str, Any]) -> dict[str, float]:
    suppressed = encoded.rows_in - int(sums["rows"] or 0)
    return {span.axis.name: int(sums[span.lm.name] or 0) / LOSS_UNIT + suppressed for span in recoding.spans}


def _blanked(engine: Engine, encoded: Encoded, recoding: Recoding) -> int:
    """The sensitive values that are published as NULL though they are not."""
    if recoding.blanked is None:
        return 0
    params = {"rows": encoded.members(recoding.dealt), "assigned": recoding.assigned, "dealt": recoding.dealt}
    asked = {"blanked": recoding.blanked, "sensitive": encoded.sensitive[0].code}
    return int(engine.scalar("recoding/publish/count_blanked", **asked, **params))


def measure_recoding(engine: Engine, encoded: Encoded, recoding: Recoding, class_id: bool) -> Loss:
    """The loss of a planned recoding, by its classes; `class_id` says whether their numbers are published."""
    params = {"classes": recoding.classes, "spans": recoding.spans}
    sums = engine.record("recoding/loss/sum_losses", unit=LOSS_UNIT, **params)
    sizes = engine.record("recoding/loss/sum_sizes", class_id=class_id, **params)
    rows_in, published = encoded.rows_in, int(sums["rows"] or 0)
    suppressed = rows_in - published
    weights = sum(axis.weight for axis in encoded.axes)
    told = [Told(number, span=span) for number, span in enumerate(recoding.spans)]
    lm_by_column = _by_column(encoded, recoding, sums)
    ncp = 0.0
    for span in recoding.spans:
        ncp += span.axis.weight * (int(sums[span.ncp.name] or 0) / LOSS_UNIT + suppressed)
    lm = sum(lm_by_column.values())
    return Loss(
        classes=sizes["classes"],
        rows_published=published,
        rows_suppressed=suppressed,
        cells_suppressed=_blanked(engine, encoded, recoding),
        smallest_class=sizes["smallest"] or 0,
        largest_class=sizes["largest"] or 0,
        lm=lm,
        lm_mean=lm / (rows_in * len(encoded.axes)),
        ncp=ncp,
        ncp_mean=ncp / (rows_in * weights) if weights else 0.0,
        dm=int(sizes["dm"] or 0) + suppressed * rows_in,
        lm_by_column={name: value / rows_in for name, value in lm_by_column.items()},
        stars=int(sums["stars"] or 0),
        precision=measure_precision(engine, encoded.axes, told, rows_in, recoding.classes),
        classes_made=sums["classes"],
    )
