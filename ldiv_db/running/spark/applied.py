"""A plan by counts applied to rows that lie in Spark: codes become what is published of them, one row a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.spark_types import arrow_schema
from ldiv_db.database.templates import Relation
from ldiv_db.distributing.parts import row_columns
from ldiv_db.recoding.encoded import WEIGHT, Encoded, Renamed
from ldiv_db.recoding.recode import Spans
from ldiv_db.running.spark.carrying import as_arrow
from ldiv_db.running.spark.columns import BROADCAST
from ldiv_db.running.spark.resolve import SparkChoices
from ldiv_db.running.spark.types import own_types

#: A count becomes its rows in so many at a time: a long list would be one value in memory.
_AT_ONCE = 10_000
_PLACES = ("class_id", "low", "high")


@dataclass(frozen=True)
class Publication:
    """What is published of each combination of codes (`running/spark/list_published`), and of the kept columns.

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
