"""Columns on Spark become codes: their values are counted there, numbered by the code of every run, and sent back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, InfeasibleError
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.templates import Relation
from ldiv_db.policy.resolve import Source
from ldiv_db.recoding.encode import encode_counts
from ldiv_db.recoding.encoded import WEIGHT, Axis, Encoded, Renamed, SensitiveAxis
from ldiv_db.recoding.snapshot import loose, names_of, reject_nulls, renamed
from ldiv_db.requirements import ROWS_ALONE
from ldiv_db.running.spark.carrying import as_arrow, collected
from ldiv_db.running.spark.kept import kept

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
    """How often each value of a column occurs."""
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
    """How often sensitive codes occur together, in the driver's database."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    names = [axis.code.name for axis in sensitive]
    total = functions.sum(WEIGHT.name).cast("bigint").alias(WEIGHT.name)
    return collected(engine, "known", cells.groupBy(*names).agg(total))
