"""Cells of counts that lie in Spark, counted and moved by the steps of a division: it plans on the driver.

A plan by counts applied to rows that lie in Spark: codes become what is published of them, one row a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.dialects import written_step
from ldiv_db.database.engine import Engine
from ldiv_db.database.spark import DIALECT, SparkEngine, arrow_schema, plainly
from ldiv_db.database.templates import Identifier, Relation, render
from ldiv_db.recoding.encoded import WEIGHT, Axis, Encoded, Renamed
from ldiv_db.recoding.recode import Spans
from ldiv_db.running.spark.columns import BROADCAST, as_arrow, collected, kept, sent
from ldiv_db.running.spark.resolve import SparkChoices, own_types
from ldiv_db.solving.nodes import Grained
from ldiv_db.solving.parts import row_columns

#: How cells are moved in place of rows.
MOVES = {"bsgi/split_cells": "running/spark/split_cells", "solving/move_rows": "running/spark/move_cells"}


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

    def count(self, name: str, template: str, **params: Any) -> Relation:
        """The counts that a template takes of the cells that are not settled, in the driver's database."""
        active = self._active()
        there, made = self._there(params)
        try:
            statement = render(template, {**there, "nodes": active, "weight": WEIGHT})
            with plainly("count"):
                frame = self._spark.session.sql(written_step(statement, DIALECT))
            return collected(self._engine, name, frame)
        finally:
            self._spark.drop(active, *made)

    def move(self, template: str, **params: Any) -> None:
        """Have the cells of nodes that are split be in others."""
        there, made = self._there(params)
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

    def _there(self, params: dict[str, Any]) -> tuple[dict[str, Any], list[Relation]]:
        """The parameters with the driver's tables sent to Spark, and what was made of them there."""
        made = {
            name: sent(self._spark, self._engine, name, param)
            for name, param in params.items()
            if isinstance(param, Relation)
        }
        return {**params, **made}, list(made.values())


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


#: A count becomes its rows in so many at a time: a long list would be one value in memory.
_AT_ONCE = 10_000
_PLACES = ("class_id", "low", "high")


@dataclass(frozen=True)
class Publication:
    """The published labels of each combination of codes (`running/spark/list_published`), and the kept columns.

    `encoded` are the counts; of all `kept` columns it has those that rows were counted by.
    """

    published: Relation
    encoded: Encoded
    spans: tuple[Spans, ...]
    kept: tuple[Renamed, ...]

    @property
    def columns(self) -> dict[str, str]:
        """The published columns that Spark does not have, by their working names."""
        labels = {shown.alias.name: shown.column.name for span in self.spans for shown in span.shown}
        return labels | {attribute.table.name: attribute.column.name for attribute in self.encoded.told}


def applied(
    session: Any, engine: Engine, publication: Publication, cells: Any, choices: SparkChoices, fields: Any
) -> Any:
    """The published rows: `part` (one for all), the columns of the release, class ids as the plan has them.

    `cells` is the frame of (codes, kept columns, weight), `fields` are those of the source.
    """
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    keys = [column.name for column in row_columns(publication.encoded)]
    plan = _sent(session, engine, publication, cells, choices, fields)
    every = functions.col(WEIGHT.name)
    whole = _joined(cells, plan.where("whole"), keys).withColumn("rows", every)
    some = plan.where("NOT whole")
    parts = _joined(_placed(cells, some, keys, publication), some, keys)
    first = functions.greatest("low", functions.col("upto") - every + 1)
    parts = parts.withColumn("rows", functions.least("high", "upto") - first + 1).where("rows > 0")
    names = [*publication.columns, "class_id", *(column.alias.name for column in publication.kept), "rows"]
    rows = _repeated(whole.select(*names).unionAll(parts.select(*names)))
    return _named(rows, publication, choices)


def _sent(
    session: Any, engine: Engine, publication: Publication, cells: Any, choices: SparkChoices, fields: Any
) -> Any:
    """The plan as a frame: the codes and columns that rows are known by as `by_…`."""
    from pyspark.sql import functions, types  # noqa: PLC0415 - an extra

    there = {field.name: field.dataType for field in cells.schema.fields}
    own, valued = own_types(choices, fields), _valued(publication)
    keys = [column.name for column in row_columns(publication.encoded)]
    kinds = {name: there[name] for name in keys}
    for alias, name in publication.columns.items():
        kinds[alias] = own[name.lower()] if alias in valued else types.StringType()
    kinds |= dict.fromkeys(_PLACES, types.LongType())
    schema = types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])
    schema.add("whole", types.BooleanType())
    zone = session.conf.get("spark.sql.session.timeZone")
    table = as_arrow(engine, publication.published).select(schema.names).cast(arrow_schema(schema, zone))
    frame = session.createDataFrame(table, schema)
    frame = frame.withColumnsRenamed({name: f"by_{name}" for name in keys})
    return functions.broadcast(frame) if table.num_rows <= BROADCAST else frame


def _valued(publication: Publication) -> set[str]:
    """The working names of columns that are published as values in their own types, not as labels."""
    spans = [span for span in publication.spans if span.form in ("value", "bounds")]
    labels = {shown.alias.name for span in spans for shown in span.shown}
    return labels | {attribute.table.name for attribute in publication.encoded.told}


def _joined(cells: Any, plan: Any, keys: list[str], how: str = "inner") -> Any:
    """Cells with what is planned of their codes."""
    return cells.join(plan, [cells[name].eqNullSafe(plan[f"by_{name}"]) for name in keys], how)


def _placed(cells: Any, some: Any, keys: list[str], publication: Publication) -> Any:
    """The cells of combinations not all of whose rows are in one class, with the place of the last row of each."""
    from pyspark.sql import Window, functions  # noqa: PLC0415 - an extra

    order = [functions.col(column.alias.name).asc_nulls_first() for column in publication.kept]
    window = Window.partitionBy(*keys).orderBy(*(order or [functions.col(keys[0])]))
    upto = functions.sum(WEIGHT.name).over(window.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return _joined(cells, some, keys, "left_semi").withColumn("upto", upto)


def _repeated(rows: Any) -> Any:
    """Each row as often as `rows` says."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    number, least = functions.col("rows").cast("bigint"), functions.lit(_AT_ONCE).cast("bigint")
    pieces = functions.sequence(functions.lit(0).cast("bigint"), number - 1, least)
    rows = rows.withColumn("piece", functions.explode(pieces))
    left = functions.least(number - functions.col("piece"), least).cast("int")
    return rows.withColumn("piece", functions.explode(functions.array_repeat(functions.lit(1), left)))


def _named(rows: Any, publication: Publication, choices: SparkChoices) -> Any:
    """The columns under the names that they are published by, in the order of the release."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    released = choices.resolved.released
    names = {name.lower(): alias for alias, name in publication.columns.items()}
    names |= {column.column.name.lower(): column.alias.name for column in publication.kept}
    names |= dict.fromkeys(released.class_ids, "class_id")
    found = [functions.col(names[name.lower()]).alias(name) for name in released.all]
    return rows.select(functions.lit(0).cast("bigint").alias("part"), *found)
