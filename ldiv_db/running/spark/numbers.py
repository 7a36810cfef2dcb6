"""The rows of parts become one release: types, numbers of classes and an order that say nothing of the parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.spark_failures import plainly
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.recoding.encoded import Axis, Encoded
from ldiv_db.running.spark.carrying import as_arrow
from ldiv_db.running.spark.kept import kept

#: About how many rows a file of a release in parts has.
FILE_ROWS = 500_000


def _column(name: str) -> Any:
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    return functions.col(f"`{name.replace('`', '``')}`")


def with_types(session: Any, engine: Engine, rows: Any, axes: Sequence[Axis]) -> Any:
    """The rows with values in place of labels for those quasi-identifiers that no class of any part generalises."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    names = rows.columns
    for axis in axes:
        texts = engine.materialise("texts", "running/spark/list_texts", dictionary=axis.dictionary)
        listed = functions.broadcast(session.createDataFrame(as_arrow(engine, texts)).toDF("ldiv_value", "ldiv_label"))
        joined = rows.join(listed, _column(axis.name) == functions.col("ldiv_label"), "left")
        rows = joined.select(*(functions.col("ldiv_value").alias(n) if n == axis.name else _column(n) for n in names))
        engine.drop(texts)
    return rows


def in_order(rows: Any, names: Sequence[str], count: int) -> Any:
    """The `count` rows in files that depend on what is published alone, each sorted by all of it.

    Rows are dealt out by their content, to so many files as their number says: which part had which rows, and how many
    partitions the session has, is in none of them.
    """
    columns = [_column(name) for name in names]
    dealt = rows.repartition(max(1, -(-count // FILE_ROWS)), *columns)
    return dealt.sortWithinPartitions(*(column.asc_nulls_first() for column in columns))


def with_numbers(session: Any, engine: Engine, rows: Any, released: ReleaseColumns, encoded: Encoded) -> Any:
    """The rows with the numbers of their classes over all parts: in the order of labels, then of what they publish."""
    from pyspark.sql import Window, functions  # noqa: PLC0415 - an extra

    labels = [_column(name).alias(f"l{i}") for i, name in enumerate(released.identifying)]
    told = [_column(name).alias(f"v{i}") for i, name in enumerate([*released.sensitive, *released.keep])]
    listed = rows.select("part", "class_id", *labels, *told)
    names = [f"l{i}" for i in range(len(labels))]
    shown = _shown(session, engine, listed, names, len(told), encoded)
    order = [functions.col(name).asc_nulls_first() for name in [*names, "shown"]]
    order += [functions.col("part"), functions.col("class_id")]
    ranged = kept(session, shown.repartitionByRange(*order).withColumn("place", functions.spark_partition_id()))
    try:
        with plainly("number classes"):
            counts = {row[0]: row[1] for row in ranged.groupBy("place").count().collect()}
        first, before = [], 0
        for place in sorted(counts):
            first.append((place, before))
            before += counts[place]
        offsets = functions.broadcast(session.createDataFrame(first, "place INT, before BIGINT"))
        number = functions.row_number().over(Window.partitionBy("place").orderBy(*order))
        numbers = ranged.withColumn("number", number).join(offsets, "place")
        found = numbers.select("part", "class_id", (functions.col("number") + functions.col("before")).alias("number"))
        joined = rows.join(found, ["part", "class_id"])
        return joined.select(
            "part", *(functions.col("number").alias(n) if n == "class_id" else _column(n) for n in released.all)
        )
    finally:
        ranged.unpersist()


def _shown(session: Any, engine: Engine, listed: Any, names: Sequence[str], told: int, encoded: Encoded) -> Any:
    """The classes (part, class_id, labels), and of those of equal labels what they publish: the places of its values.

    As `recoding/publish/number_classes` has them, in the order of values: as text, so that both number classes alike.
    """
    from pyspark.sql import Window, functions  # noqa: PLC0415 - an extra

    classes = listed.groupBy("part", "class_id", *names).agg(functions.count(functions.lit(1)).alias("rows"))
    alike = classes.groupBy(*names).agg(functions.count(functions.lit(1)).alias("alike")).where("alike > 1")
    on = [listed[name].eqNullSafe(alike[name]) for name in names]
    among = listed.join(alike, on, "left_semi")
    values = [f"v{i}" for i in range(told)]
    if not values:
        among = among.withColumn("at", functions.lit(0))
    else:
        order = [functions.col(name).asc_nulls_first() for name in values]
        known = among.select(*values).distinct() if told > 1 or encoded.kept else listed.select("v0").distinct()
        places = known.withColumn("at", functions.dense_rank().over(Window.orderBy(*order)))
        on = [among[name].eqNullSafe(places[name]) for name in values]
        among = among.join(places, on).select(among["part"], among["class_id"], "at")
    texts = functions.transform(functions.sort_array(functions.collect_list("at")), lambda at: at.cast("string"))
    shown = among.groupBy("part", "class_id").agg(functions.concat_ws(",", texts).alias("shown"))
    return classes.join(shown, ["part", "class_id"], "left")
