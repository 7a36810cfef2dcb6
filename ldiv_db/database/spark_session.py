"""Sessions of Spark's: which object is one, and of which kind."""

from __future__ import annotations

from typing import Any


def is_session(value: Any) -> bool:
    """Whether it is a session of Spark's, classic or of Spark Connect; told without importing either."""
    return any(kind.__name__ == "SparkSession" and kind.__module__.startswith("pyspark.") for kind in type(value).mro())


def is_remote(session: Any) -> bool:
    """Whether it is a session of Spark Connect, behind which no Java machine can be reached."""
    return type(session).__module__.startswith("pyspark.sql.connect")
