"""What profiles require is judged by every door: the run, `check`, its statement in all dialects, measures, reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from strategies import some
from what_profiles_write import ASKED, make, starter

import ldiv_db

#: The dialects that a statement is written in for databases that are not here, and what some say they lack for it.
DIALECTS = ("postgres", "snowflake", "bigquery", "databricks", "spark", "redshift", "trino", "clickhouse", "sqlite")
LIMITS = {
    "folds case and blanks in its own way": (("spelt",), DIALECTS),
    "has no exact decimals": (("cost", "small", "weight"), ("sqlite",)),
    "are two values in clickhouse": (("cost", "small"), ("clickhouse",)),
    "points in time are compared by": (("seen",), tuple(set(DIALECTS) - {"postgres"})),
}


@pytest.mark.parametrize(("name", "sensitive"), some(ASKED[1:] + ASKED[:1]))
def test_every_door_judges_what_a_profile_requires(
    con: Any, tmp_path: Path, name: str, sensitive: tuple[str, ...]
) -> None:
    make(con, name)
    con.execute("DELETE FROM events WHERE rowid >= 600")
    qi = [column for column in ("born", "region") if column not in sensitive]
    policy = {"algorithm": "mondrian"} | starter(con, tmp_path, *sensitive, qi=qi).policy | {"seed": 1}
    assert ldiv_db.run(con, policy, folder=tmp_path).loss.rows_published > 0
    table = policy["target"]
    parsed = ldiv_db.parse_policy(policy)
    assert ldiv_db.check(con, table, policy=parsed, folder=tmp_path).holds
    kinds = {column: kind for column, kind, *_ in con.execute(f"DESCRIBE {table}").fetchall()}
    types = {column: kinds[column] for column in sensitive}
    assert not con.execute(ldiv_db.check_sql(table, policy=parsed, types=types)).fetchall()
    for dialect in DIALECTS:
        try:
            assert "SELECT" in ldiv_db.check_sql(table, policy=parsed, types=types, dialect=dialect)
        except ldiv_db.PolicyError as error:
            (lacking,) = [limit for limit in LIMITS if limit in str(error)]
            columns, dialects = LIMITS[lacking]
            assert set(columns) & set(sensitive)
            assert dialect in dialects
    assert ldiv_db.measure(con, table, policy=parsed, folder=tmp_path).loss.rows_published > 0
    if name == "town":  # reports are long, and of people say the same
        assert ldiv_db.report(con, table, policy=parsed, folder=tmp_path, queries=10, tries=10).holds
