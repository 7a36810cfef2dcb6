"""Cells of counts that lie in Spark, counted and moved by the steps of a division: it plans on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.portable import written_step
from ldiv_db.database.spark_engine import DIALECT, SparkEngine
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.templates import Identifier, Relation, render
from ldiv_db.distributing.positions import Grained
from ldiv_db.recoding.encoded import WEIGHT, Axis, Encoded
from ldiv_db.running.spark.carrying import as_arrow, collected, sent
from ldiv_db.running.spark.kept import kept

#: How cells are moved in place of rows.
MOVES = {"bsgi/split_cells": "running/spark/split_cells", "distributing/move_rows": "running/spark/move_cells"}


@dataclass(frozen=True)
class Layout:
    """The columns of cells: what tells them apart in the order in which rows are numbered, and what is kept."""

    order: list[Identifier]
    kept: list[Identifier]


def layout_of(encoded: Encoded, numbering: Sequence[Axis]) -> Layout:
    """The layout of the cells of an encoded table; `numbering` are the axes in the order that rows have."""
    kept = [column.alias for column in encoded.kept]
    codes = [*(axis.code for axis in numbering), *(axis.code for axis in encoded.sensitive)]
    return Layout([*codes, *kept], kept)


class CellsThere:
    """Cells in Spark; once all is settled the `node` of each is its part."""

    def __init__(self, spark: SparkEngine, engine: Engine, layout: Layout, cells: Any):
        self._spark = spark
        self._engine = engine
        self._layout = layout
        self._cells = cells
        self._settled: list[int] = []
        self._nodes = self._named()

    def count(self, name: str, template: str, **holes: Any) -> Relation:
        """What a template counts of the cells that are not settled, in the driver's database."""
        active = self._active()
        there, made = self._there(holes)
        try:
            statement = render(template, {**there, "nodes": active, "weight": WEIGHT})
            with plainly("count"):
                frame = self._spark.session.sql(written_step(statement, DIALECT))
            return collected(self._engine, name, frame)
        finally:
            self._spark.drop(active, *made)

    def move(self, template: str, **holes: Any) -> None:
        """Have the cells of nodes that are split be in others."""
        there, made = self._there(holes)
        more = {"nodes": self._nodes, "weight": WEIGHT, "order": self._layout.order, "kept": self._layout.kept}
        with plainly("move rows"):
            split = self._spark.session.sql(written_step(render(MOVES[template], {**there, **more}), DIALECT))
            moved = kept(self._spark.session, split)
            moved.count()
        self._spark.drop(self._nodes, *made)
        self._cells.unpersist()
        self._cells = moved
        self._nodes = self._named()

    def settle(self, nodes: Sequence[int]) -> None:
        """These nodes are parts: their cells are not counted or moved any more."""
        self._settled += nodes

    def by_part(self, names: Sequence[str]) -> Any:
        """The cells grouped by their `node`, once all are settled: as far as Spark can, a task a part.

        Left to itself Spark deals parts out by a hash, and puts several small ones into one task, where one waits for
        the other.
        """
        from pyspark.sql import functions  # noqa: PLC0415 - an extra

        cells, nodes = self._cells, sorted(self._settled)
        if hasattr(cells, "repartitionById"):
            pairs = [functions.lit(value) for pair in zip(nodes, range(len(nodes)), strict=True) for value in pair]
            place = functions.create_map(*pairs)[functions.col("node")].cast("int")
            cells = cells.withColumn("place", place).repartitionById(len(nodes), functions.col("place"))
            return cells.select("place", *names).groupBy("place")
        return cells.select(functions.col("node").alias("place"), *names).groupBy("place")

    def close(self) -> None:
        """Let go of the cells."""
        self._spark.drop(self._nodes)
        self._cells.unpersist()

    def _named(self) -> Relation:
        return self._spark.keep("nodes", self._cells, kept=False)

    def _active(self) -> Relation:
        """A view of the cells that are not settled."""
        from pyspark.sql import functions  # noqa: PLC0415 - an extra

        if not self._settled:
            return self._spark.keep("active", self._cells, kept=False)
        listed = self._spark.session.createDataFrame([(node,) for node in self._settled], "node BIGINT")
        active = self._cells.join(functions.broadcast(listed), "node", "left_anti")
        return self._spark.keep("active", active, kept=False)

    def _there(self, holes: dict[str, Any]) -> tuple[dict[str, Any], list[Relation]]:
        """The holes with the driver's tables sent to Spark, and what was made of them there."""
        made = {
            name: sent(self._spark, self._engine, name, hole)
            for name, hole in holes.items()
            if isinstance(hole, Relation)
        }
        return {**holes, **made}, list(made.values())


def started(session: Any, engine: Engine, cells: Any, positions: Sequence[Grained], classes: int | None = None) -> Any:
    """The cells, all in the first node, with the grains that wide columns are counted in."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    frame = cells.withColumn("node", functions.lit(1).cast("bigint"))
    if classes is not None:
        frame = frame.withColumn("classes", functions.lit(classes).cast("bigint"))
    for position in positions:
        if position.grains is not None and position.coarse is not None:
            listed = session.createDataFrame(as_arrow(engine, position.grains))
            names = {"code": position.axis.code.name, "grain": position.coarse.name}
            listed = functions.broadcast(listed.select("code", "grain").withColumnsRenamed(names))
            frame = frame.join(listed, position.axis.code.name)
    return kept(session, frame)
