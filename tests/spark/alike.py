"""The same run embedded and on Spark, to compare."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path
from typing import Any

import pytest
import there_cases
from servers import DuckDB

import ldiv_db

_NUMBERS = itertools.count(1)


def to_spark(session: Any, con: Any, table: str) -> str:
    """A view in Spark of a table of DuckDB, its rows in another order and several partitions."""
    found = con.sql(f"FROM {table}")
    frame = session.createDataFrame(found.to_arrow_table() if hasattr(found, "to_arrow_table") else found.arrow())
    # Arrow's times without a zone become points in time of the session's zone.
    for column, kind in zip(found.columns, found.types, strict=True):
        if str(kind) == "TIMESTAMP":
            frame = frame.withColumn(column, frame[f"`{column}`"].cast("timestamp_ntz"))
    name = f"source_{next(_NUMBERS)}"
    frame.repartition(3).createOrReplaceTempView(name)
    return name


def run_both(session: Any, con: Any, policy: dict[str, Any], folder: Path, table: str = "source") -> tuple[Any, Any]:
    """The results of both runs; the release is `out.released` in DuckDB, and in Spark the target of the result.

    Nothing is kept beside but a column that the algorithm looks at: of rows that are equal but for what is kept beside
    others may come into a class.
    """
    con.execute("DROP TABLE IF EXISTS out.released") if _has_schema(con) else None
    algorithm = policy.get("algorithm")
    label = algorithm.get("class") if isinstance(algorithm, dict) else None
    aside = [name for name in policy.get("keep", []) if name != label]
    policy = {**policy, "keep": [label] if label else [], "identifiers": [*policy.get("identifiers", []), *aside]}
    embedded = ldiv_db.run(con, {**policy, "source": table, "target": "out.released"}, folder)
    target = f"released_{next(_NUMBERS)}"
    source = to_spark(session, con, table)
    found = ldiv_db.run(session, {**policy, "source": source, "target": target}, folder)
    return embedded, found


def run_random(session: Any, seed: int, folder: Path) -> None:
    """Hold the run of a random policy on a random table against the embedded one."""
    expected, server, target = there_cases.embedded(seed), DuckDB(), f"released_{next(_NUMBERS)}"
    expected.case.place(server, folder)
    policy = {**expected.case.policy, "source": to_spark(session, server.connection, '"my source"'), "target": target}
    if expected.error:
        with pytest.raises(expected.error):
            ldiv_db.run(session, policy, folder)
        return
    found = ldiv_db.run(session, policy, folder)
    assert rules_of(found) == rules_of(expected.result)
    checked = there_cases.checks(session, target, policy, folder)
    expected.assert_same([tuple(row) for row in session.table(target).collect()], found, checked)


def rules_of(result: Any) -> Any:
    """The rules of a global recoding, column by column; None of a local one."""
    return result.recoding and [(column.name, column.role, column.rules) for column in result.recoding.columns]


def _has_schema(con: Any) -> bool:
    return bool(con.execute("SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'out'").fetchone()[0])


def small(con: Any, rows: int = 40) -> dict[str, Any]:
    """A small table `source`, and a policy that it meets."""
    con.execute(
        "CREATE OR REPLACE TABLE source AS SELECT i % 7 AS age, chr((97 + i % 3)::INTEGER) AS town,"
        f" chr((65 + i % 4)::INTEGER) AS disease, 'secret ' || i AS note FROM range({rows}) AS t(i)"
    )
    return {
        "quasi_identifiers": ["age", "town"],
        "sensitive": ["disease"],
        "keep": ["note"],
        "require": [{"k": 3}],
        "algorithm": "mondrian",
        "seed": 1,
    }


def names(session: Any) -> set[str]:
    """The names of the tables of the default schema and of the ledger's."""
    shown = session.sql("SHOW TABLES").collect()
    if session.catalog.databaseExists("ldiv"):
        shown += session.sql("SHOW TABLES IN ldiv").collect()
    return {row["tableName"] for row in shown if not row["isTemporary"]}


def written(table: Any) -> list[str]:
    """The rows of a table of Arrow's as text that tells -0.0 from 0.0, points in time in UTC."""
    return [repr([_in_utc(value) for value in row.values()]) for row in table.to_pylist()]


def _in_utc(value: Any) -> Any:
    is_instant = isinstance(value, datetime.datetime) and value.tzinfo is not None
    return value.astimezone(datetime.UTC) if is_instant else value


def read_once(said: Any) -> Any:
    """What is said, without the second reading of the audit, for which Spark is not asked."""
    if isinstance(said, dict):
        return {key: read_once(value) for key, value in said.items() if key not in {"second_reading", "read_once"}}
    return [read_once(value) for value in said] if isinstance(said, list) else said


def assert_alike(session: Any, con: Any, embedded: Any, found: Any) -> None:
    """The releases are the same row for row, and so is all that is said of them."""
    theirs = con.sql("FROM out.released")
    theirs = theirs.to_arrow_table() if hasattr(theirs, "to_arrow_table") else theirs.arrow()
    ours = session.table(found.target).toArrow()
    assert ours.column_names == theirs.column_names
    for mine, other in zip(sorted(written(ours)), sorted(written(theirs)), strict=True):
        assert mine == other
    assert [read_once(audit.as_dict()) for audit in found.audits] == [
        read_once(audit.as_dict()) for audit in embedded.audits
    ]
    differing = {"run_id", "source", "target", "seconds", "notes", "search", "people", "unchanged"}
    said = [{k: v for k, v in read_once(one.as_dict()).items() if k not in differing} for one in (found, embedded)]
    losses = [one.pop("loss") for one in said]
    assert said[0] == said[1]
    by_column = [loss.pop("lm_by_column") for loss in losses]
    told = [[entry["text"] for entry in loss.pop("precision")] for loss in losses]
    assert told[0] == told[1]
    counts = [loss.pop("counts") for loss in losses]
    assert counts[0] == counts[1]
    assert losses[0] == pytest.approx(losses[1])
    assert by_column[0] == pytest.approx(by_column[1])
