"""Frames that are kept: what Spark says of a plan does not grow with the levels before it."""

from __future__ import annotations

from typing import Any

from ldiv_db.running.spark.columns import kept


def described(info: Any) -> int:
    """How many operators Spark's listeners are told of."""
    children = info.children()
    return 1 + sum(described(children.apply(place)) for place in range(children.size()))


def operators(spark: Any, frame: Any) -> int:
    plan = frame._jdf.queryExecution().executedPlan()
    return described(spark._jvm.org.apache.spark.sql.execution.SparkPlanInfo.fromSparkPlan(plan))


def test_a_level_tells_as_much_as_the_one_before(spark: Any) -> None:
    """Each level reads the one before three times, as cells that are cut, moved and left are."""
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    frame, told = kept(spark, spark.range(100).withColumn("node", functions.lit(1))), []
    frame.count()
    for _ in range(4):
        parts = [frame.filter(functions.col("id") % 3 == rest) for rest in range(3)]
        level = parts[0].union(parts[1]).union(parts[2]).withColumn("node", functions.col("node") + 1)
        told.append(operators(spark, level))
        moved = kept(spark, level)
        assert moved.count() == 100
        frame.unpersist()
        frame = moved
    assert len(set(told)) == 1
    assert frame.select("node").distinct().collect()[0][0] == 5
    assert sorted(row.id for row in frame.select("id").collect()) == list(range(100))
    frame.unpersist()
