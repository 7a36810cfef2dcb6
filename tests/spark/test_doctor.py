"""The doctor with a session of Spark's, and what a run says of a format that we never wrote."""

from __future__ import annotations

from typing import Any

import pytest

import ldiv_db
from ldiv_db.database.names import Relation
from ldiv_db.database.spark import SparkWarehouse


def test_a_session_is_well_and_as_it_was(spark: Any) -> None:
    schemas = sorted(row[0] for row in spark.sql("SHOW SCHEMAS").collect())
    visit = ldiv_db.doctor(spark)
    assert [check for check in visit.checks if check.problem] == [] and visit.caution == ""
    assert visit.versions["server"].startswith(spark.version)
    assert sorted(row[0] for row in spark.sql("SHOW SCHEMAS").collect()) == schemas


@pytest.mark.parametrize(
    ("provider", "caution", "ends"),
    [
        ("parquet", "", ""),
        ("delta", "Delta: never executed by us", "VACUUM clinic.released RETAIN 0 HOURS"),
        (
            "iceberg",
            "",
            "CALL CATALOG.system.expire_snapshots(table => 'clinic.released', older_than => TIMESTAMP '…')",
        ),
    ],
)
def test_a_format_says_what_was_executed_and_what_ends_its_history(
    spark: Any, monkeypatch: pytest.MonkeyPatch, provider: str, caution: str, ends: str
) -> None:
    there, table = SparkWarehouse(spark), Relation(("clinic", "released"))
    monkeypatch.setattr(there, "described_by_catalog", lambda table: {"Provider": provider})
    facts = there.facts(table, Relation(("clinic", "ldiv_new")))
    assert (facts.caution, facts.history.format(table=table)) == (caution, ends)
