"""Frames that executors keep, the way to which is no part of what is planned later: plans do not grow with levels.

Small tables between the driver's own database and Spark: dictionaries, counts and plans, as Arrow; never rows.

Columns on Spark become codes: their values are counted there, numbered by the code of every run, and sent back.

The rows of parts become one release: types, numbers of classes and an order that say nothing of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, InfeasibleError
from ldiv_db.database.spark import SparkEngine, is_remote, plainly
from ldiv_db.database.templates import Relation
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.policy.resolve import Source
from ldiv_db.recoding.axes import encode_counts
from ldiv_db.recoding.encoded import WEIGHT, Axis, Encoded, Renamed, SensitiveAxis
from ldiv_db.recoding.snapshot import loose, names_of, reject_nulls, renamed
from ldiv_db.requirements import ROWS_ALONE


def kept(session: Any, frame: Any) -> Any:
    """The frame, kept once it is worked out, in no more partitions than the session's shuffles have.

    Planned anew it is one leaf: `persist` alone keeps all that it was made of in every later plan. Its lineage is kept,
    so that what a lost executor held is worked out again; through Spark Connect there is none, and it is held twice.
    The rows are those of the plan itself. Those of `toJavaRDD` know how they were planned, and Spark 4.3 repeats that
    in what it tells its listeners of every later plan, as often as that reads the frame: three to the power of levels.
    """
    frame = frame.coalesce(int(session.conf.get("spark.sql.shuffle.partitions")))
    if is_remote(session):
        from pyspark import StorageLevel  # noqa: PLC0415 - an extra

        return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.MEMORY_AND_DISK_2)
    rows = frame._jdf.queryExecution().executedPlan().execute()
    there = session._jsparkSession.internalCreateDataFrame(rows, frame._jdf.schema(), False)
    return type(frame)(there, session).persist()


def collected(engine: Engine, name: str, frame: Any) -> Relation:
    """A TEMP table of the driver's with what a frame of Spark's counts."""
    with plainly("count"):
        table = frame.toArrow()
    with engine.scope() as scope:
        return scope.keep(engine.copy(name, engine.register(name, table)))


def as_arrow(engine: Engine, table: Relation) -> Any:
    """A table of the driver's as a table of Arrow's."""
    return engine.reader(table).read_all()


def sent(spark: SparkEngine, engine: Engine, name: str, table: Relation) -> Relation:
    """A view in Spark of a table of the driver's."""
    with plainly("send a plan to its executors"):
        return spark.keep(name, _there(spark.session, as_arrow(engine, table)), kept=False)


def _there(session: Any, table: Any) -> Any:
    """The table as a frame; Spark Connect takes the types of one without rows from a schema alone."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - an extra

    return session.createDataFrame(table, None if table.num_rows else from_arrow_schema(table.schema))


#: Dictionaries of up to so many values are sent to every executor; longer ones are joined as tables are.
BROADCAST = 500_000


@dataclass(frozen=True)
class EncodedThere:
    """A source encoded where it lies: `cells` is a frame of (codes, kept columns, weight), equal rows once.

    Of `encoded` only the counts are in the driver's database: its `rows` and `cells` have sensitive codes alone.
    """

    encoded: Encoded
    cells: Any


@dataclass(frozen=True)
class _Taken:
    """The columns of a source that are read (c0, c1, …) under their working names; `rows_in` counts those before."""

    frame: Any
    coded: list[Renamed]
    kept: list[Renamed]
    rows_in: int
    rows: int


def encode_there(
    session: Any, engine: Engine, source: Source, frame: Any, rows_in: int, show_values: bool
) -> EncodedThere:
    """The source's columns counted and encoded, and its equal rows counted; raises as `encode` does."""
    taken = _taken(source, frame, rows_in)
    counts = {column.alias.name: _counts(engine, taken, column) for column in taken.coded}
    _reject(engine, source, taken, counts)
    if not source.sensitive:
        counts["s1"] = engine.load("alone", {"s1": "INTEGER", WEIGHT.name: "BIGINT"}, [(1, taken.rows)])
    axes, sensitive = encode_counts(engine, source, counts, show_values)
    engine.drop(*counts.values())
    cells = _cells(session, engine, taken, axes, sensitive)
    known = _known(engine, sensitive, cells)
    kept = tuple(loose(source, taken.kept))
    encoded = Encoded(known, axes, sensitive, kept, rows_in, rows_in - taken.rows, cells=known)
    made = engine.total(known, WEIGHT.name)
    if made != taken.rows:
        raise AuditError(f"encoding made {made:,} rows of {taken.rows:,}: a value has several codes or none")
    return EncodedThere(encoded, cells)


def _taken(source: Source, frame: Any, rows_in: int) -> _Taken:
    """The columns under their working names, without the rows that a NULL leaves out."""
    identifying = renamed("q", [qi.name for qi in source.quasi_identifiers])
    sensitive = renamed("s", names_of(source.sensitive))
    kept = renamed("k", names_of(source.keep))
    columns = [*identifying, *sensitive, *kept]
    frame = frame.toDF(*(column.alias.name for column in columns))
    required = (identifying if source.nulls == "suppress" else []) + (
        sensitive if source.nulls_sensitive == "suppress" else []
    )
    rows = rows_in
    if required:
        frame = frame.dropna(subset=[column.alias.name for column in required])
        with plainly("count"):
            rows = frame.count()
        if rows == 0:
            raise InfeasibleError(f"every one of the {rows_in:,} rows has a NULL that the policy suppresses")
    return _Taken(frame, [*identifying, *sensitive], kept, rows_in, rows)


def _counts(engine: Engine, taken: _Taken, column: Renamed) -> Relation:
    """The rows of each value of a column."""
    name = column.alias.name
    return collected(engine, name, taken.frame.groupBy(name).count().withColumnRenamed("count", WEIGHT.name))


def _reject(engine: Engine, source: Source, taken: _Taken, counts: dict[str, Relation]) -> None:
    """Raise InfeasibleError for NULLs that the policy rejects."""
    treated = {"q": source.nulls, "s": source.nulls_sensitive}
    rejected = [column for column in taken.coded if treated[column.alias.name[0]] == "reject"]
    template = "recoding/input/count_nulls"
    found = {
        column.column.name: engine.record(template, rows=counts[column.alias.name], columns=[column], weight=WEIGHT)[
            column.alias.name
        ]
        for column in rejected
    }
    reject_nulls(found)


def _cells(
    session: Any, engine: Engine, taken: _Taken, axes: Sequence[Axis], sensitive: Sequence[SensitiveAxis]
) -> Any:
    """Equal rows with their number: codes in place of values, and kept columns."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    types = {field.name: field.dataType for field in taken.frame.schema.fields}
    frame = taken.frame
    if len(sensitive) == 1 and sensitive[0].column.name == ROWS_ALONE.name:
        frame = frame.withColumn("s1", functions.lit(1))
    coded: list[Axis | SensitiveAxis] = [*axes, *sensitive]
    for axis in coded:
        if axis.code.name in types:
            frame = _coded(session, engine, frame, axis, types[axis.code.name])
    names = [axis.code.name for axis in coded] + [column.alias.name for column in taken.kept]
    weight = functions.count(functions.lit(1)).alias(WEIGHT.name)
    return kept(session, frame.groupBy(*names).agg(weight))


def _coded(session: Any, engine: Engine, frame: Any, axis: Axis | SensitiveAxis, kind: Any) -> Any:
    """The frame with codes in place of the values of a column."""
    from pyspark.sql import functions, types  # noqa: PLC0415 - an extra

    name = axis.code.name
    listed = as_arrow(engine, engine.copy("listed", axis.dictionary, "value", "code"))
    schema = types.StructType([types.StructField("value", kind), types.StructField("code", types.IntegerType())])
    dictionary = session.createDataFrame(listed, schema)
    if listed.num_rows <= BROADCAST:
        dictionary = functions.broadcast(dictionary)
    joined = frame.join(dictionary, frame[name].eqNullSafe(dictionary["value"]))
    return joined.drop(name, "value").withColumnRenamed("code", name)


def _known(engine: Engine, sensitive: Sequence[SensitiveAxis], cells: Any) -> Relation:
    """The rows of each combination of sensitive codes, in the driver's database."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    names = [axis.code.name for axis in sensitive]
    total = functions.sum(WEIGHT.name).cast("bigint").alias(WEIGHT.name)
    return collected(engine, "known", cells.groupBy(*names).agg(total))


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
