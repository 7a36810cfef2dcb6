"""The session of Spark's that the environment says. Nothing else of ours makes one."""

from __future__ import annotations

import os
import sys
from typing import Any

from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.spark_failures import sentence

#: What stands in the place of a database.
NAME = "spark"


def environment_session() -> Any:
    """The session of the environment: that of spark-submit, of SPARK_REMOTE, or a local one.

    Raises DatabaseError where pyspark or Java is missing, or Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
    except ImportError:
        raise DatabaseError("pyspark is not installed: pip install 'ldiv-db[spark]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors of this machine, too, run in our environment
    try:
        return SparkSession.builder.getOrCreate()
    except Exception as error:
        if "JAVA" in str(error).upper():
            raise DatabaseError("Spark finds no Java: install Java 17 or later, or set JAVA_HOME") from None
        raise DatabaseError(f"Spark does not start: {sentence(error)}") from None
