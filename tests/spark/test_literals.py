"""Literals that Databricks is sent are what Spark, whose SQL that is, reads as the values that they were."""

from __future__ import annotations

from types import SimpleNamespace

from ldiv_db.database.counted import memory_for_counts
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.database.sending import Sent, send_rows

TEXTS = "['it''s ''''', '\\n \\\\ \\', '\"q\" {x} ${y} %s', '', 'Łódź' || chr(10), 'NULL', NULL]"
ROWS = f"""
    SELECT i AS k0, {TEXTS}[1 + i % 7] AS k1, DATE '1950-01-01' + (i * 13)::INTEGER AS k2, i / 8 AS k3,
        TIMESTAMP '2001-02-03 04:05:06.5' + to_minutes(i) AS k4, i % 2 = 0 AS k5, NULL::VARCHAR AS k6,
        i * 100000000000000000000::HUGEINT AS k7
    FROM range(200) AS r (i)"""


def test_spark_reads_what_databricks_is_sent(spark):
    cursor, table = SimpleNamespace(execute=spark.sql), Relation(("literals",))
    with memory_for_counts() as here:
        engine = Engine(here)
        rows = engine.copy("rows", engine.view_of("made", ROWS))
        kinds = "k0 BIGINT, k1 STRING, k2 DATE, k3 DOUBLE, k4 TIMESTAMP_NTZ, k5 BOOLEAN, k6 STRING, k7 DECIMAL(38, 0)"
        spark.sql(f"CREATE TABLE literals ({kinds}) USING parquet")
        try:
            send_rows(Sent(engine, rows, None, cursor, table, "databricks"))
            found = [tuple(row) for row in spark.sql("SELECT * FROM literals").collect()]
        finally:
            spark.sql("DROP TABLE literals")
        expected = engine.columns(rows, *(f"k{i}" for i in range(8)))
    assert sorted(map(comparable, found)) == sorted(map(comparable, expected))


def comparable(row):
    return repr([*row[:7], int(row[7])])
