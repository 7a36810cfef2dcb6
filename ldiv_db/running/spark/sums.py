"""What a release in parts lost, as one release: sums over its parts, and the classes that a reader can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.spark_failures import plainly
from ldiv_db.distributing.solving import combined
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.loss import Loss
from ldiv_db.running.spark.part import PartTold


@dataclass(frozen=True)
class Sums:
    """What is lost, and what the parts say of their work together."""

    loss: Loss
    search: dict[str, Any]


def summed(rows: Any, identifying: Sequence[str], encoded: Encoded, parts: Sequence[PartTold]) -> Sums:
    """The sums of the parts; `rows` are all that are published, in which equal `identifying` columns are a class."""
    sizes = _sizes(rows, identifying)
    losses = [part.loss for part in parts]
    published = sum(loss.rows_published for loss in losses)
    suppressed, rows_in, axes = encoded.rows_in - published, encoded.rows_in, encoded.axes
    weights = sum(axis.weight for axis in axes)
    lost = {axis.name: _lost(axis.name, parts) + encoded.left_out for axis in axes}
    lm, ncp = sum(lost.values()), sum(loss.ncp for loss in losses) + encoded.left_out * weights
    loss = Loss(
        classes=sizes["classes"],
        rows_published=published,
        rows_suppressed=suppressed,
        cells_suppressed=sum(loss.cells_suppressed for loss in losses),
        smallest_class=sizes["smallest"] or 0,
        largest_class=sizes["largest"] or 0,
        lm=lm,
        lm_mean=lm / (rows_in * len(axes)),
        ncp=ncp,
        ncp_mean=ncp / (rows_in * weights) if weights else 0.0,
        dm=int(sizes["dm"] or 0) + suppressed * rows_in,
        lm_by_column={name: value / rows_in for name, value in lost.items()},
        stars=sum(loss.stars for loss in losses),
        classes_made=sum(loss.classes_made or 0 for loss in losses),
    )
    return Sums(loss, {"parts": len(parts), **combined([part.search for part in parts])})


def _lost(name: str, parts: Sequence[PartTold]) -> float:
    """What the rows of the parts lose in one column."""
    return sum(part.loss.lm_by_column[name] * part.rows for part in parts)


def _sizes(rows: Any, identifying: Sequence[str]) -> Any:
    """How many classes can be told apart, their smallest and largest, and the sum of their squares: one row."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    names = [functions.col(f"`{name.replace('`', '``')}`") for name in identifying]
    size = functions.col("size")
    found = rows.groupBy(*names).agg(functions.count(functions.lit(1)).alias("size"))
    sums = {
        "classes": functions.count(functions.lit(1)),
        "smallest": functions.min(size),
        "largest": functions.max(size),
        "dm": functions.sum(size.cast("decimal(38,0)") * size),
    }
    with plainly("count classes"):
        return found.agg(*(value.alias(name) for name, value in sums.items())).collect()[0]
