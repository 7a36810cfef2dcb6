"""Small tables between the driver's own database and Spark: dictionaries, counts and plans, as Arrow; never rows."""

from __future__ import annotations

from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.spark_engine import SparkEngine
from ldiv_db.database.spark_failures import plainly
from ldiv_db.database.templates import Relation


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
