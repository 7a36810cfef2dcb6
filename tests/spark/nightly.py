"""A night in a session of its own, whose catalog in memory has forgotten the one before: `python nightly.py FOLDER`."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("recoding", "spark", ".")]

import duckdb  # noqa: E402
from alike import small, to_spark  # noqa: E402
from conftest import SETTINGS  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import ldiv_db  # noqa: E402


def main(folder: str) -> None:
    settings = SETTINGS | {"spark.sql.warehouse.dir": folder}
    session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    con = duckdb.connect()
    target = {"table": "clinic.released", "if_exists": "replace"}
    policy = {**small(con), "source": to_spark(session, con, "source"), "target": target}
    try:
        ldiv_db.run(session, policy)
        print("published")
    except ldiv_db.PolicyError as error:
        print(error)
    finally:
        print(session.read.parquet(f"{folder}/clinic.db/released").count())
        session.stop()


main(sys.argv[1])
