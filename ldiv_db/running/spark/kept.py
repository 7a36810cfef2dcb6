"""Frames that executors keep, the way to which is no part of what is planned later: plans do not grow with levels."""

from __future__ import annotations

from typing import Any

from ldiv_db.database.spark_session import is_remote


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
