"""Ledgers as older versions left them."""

from __future__ import annotations

from typing import Any

#: The columns of series before their secrets stood in a table of their own, in their order.
_SERIES = "series, secret, algorithm, source, created_at, key_name, key_kind"
#: Columns by the migration that added them.
_ADDED = {
    "series.key_name": 5,
    "series.key_kind": 5,
    "release.grouped_by": 6,
    "run.inferred": 8,
    "run.tables_of_people": 13,
}


def make_older(con: Any, number: int) -> None:
    """Have the ledger as it was before the migration of that number, 5 or later, and before seeds were noted."""
    joined = "ldiv.series JOIN ldiv.series_secret USING (series)"
    con.execute(f"CREATE OR REPLACE TABLE ldiv.series AS SELECT {_SERIES} FROM {joined}")
    for name in ("run_secret", "series_secret", "release_secret", "run_report_secret"):
        con.execute(f"DROP TABLE ldiv.{name}")
    con.execute("DROP TABLE ldiv.source_lock")
    for column, since in _ADDED.items():
        if since >= number:
            con.execute("ALTER TABLE ldiv.{} DROP COLUMN {}".format(*column.split(".")))
    con.execute("DELETE FROM ldiv.migration WHERE number >= $1", [number])
