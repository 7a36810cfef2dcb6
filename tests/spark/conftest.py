"""Runs on Spark: one session for all tests of a process, with settings that a user may have."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import FOR_SMALL_TABLES

pytest.register_assert_rewrite("alike", "drivers")
#: How the session is set: not as we would have it.
SETTINGS = FOR_SMALL_TABLES | {
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.driver.memory": "1g",
}
ROOT = str(Path(__file__).resolve().parents[2])


def missing() -> str | None:
    """Why there is no Spark here; None if there is."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    return None if shutil.which("java") else "Java is not installed"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
    # What kills takes longest, and is begun first.
    items.sort(key=lambda item: "killed" not in item.name or Path(item.path).parent != Path(__file__).parent)


@pytest.fixture(autouse=True, scope="session")
def has_spark() -> None:
    why = missing()
    if why and not os.environ.get("LDIV_TEST_SPARK"):
        pytest.skip(why)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@pytest.fixture(scope="session")
def spark(has_spark: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    warehouse = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    session = SparkSession.builder.master("local[2]").config(map=SETTINGS | warehouse).getOrCreate()
    yield session
    session.stop()
