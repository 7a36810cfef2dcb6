"""What the dbt package calls: a release within a transaction that dbt opened, and ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ldiv_db.database.errors import LdivError
from ldiv_db.running import dbt_model
from ldiv_db.running.dbt_model import no_rows, prepare, publish

POLICY = {
    "identifiers": ["id"], "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["disease"],
    "require": [{"unique_distinct": 3}], "algorithm": {"name": "bsgi", "select": "bisect"},
}  # fmt: skip
SERIES = {"key": "id", **{name: value for name, value in POLICY.items() if name != "identifiers"}}
SOURCE = ("temp", "main", "model.shop.people")
DISEASES = "CASE i % 3 WHEN 0 THEN 'flu' WHEN 1 THEN 'HIV' ELSE 'asthma' END"


class Session:
    """A cursor in the adapter's wrapping: `execute` of its own, the rest passed on."""

    def __init__(self, cursor: Any):
        self._cursor = cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def execute(self, sql: str, bindings: Any = None) -> Any:
        return self._cursor.execute(sql) if bindings is None else self._cursor.execute(sql, bindings)


@pytest.fixture(autouse=True)
def adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of dbt-duckdb that is installed, for tests beside which there is none."""
    monkeypatch.setattr(dbt_model, "version", lambda name: "1.11.1")


@pytest.fixture
def con(tmp_path: Path) -> Any:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT i AS id, 20 + i AS age, {DISEASES} AS disease FROM range(12) t(i)"
        )
        connection.execute("CREATE SCHEMA dev")
        yield connection


def settings(policy: Any = POLICY, folder: Path = Path(), **changes: Any) -> str:
    source = f'temp.main."{SOURCE[-1]}"'
    model = {"name": SOURCE[-1], "source": source, "target": "shop.dev.people", "policy": policy}
    return json.dumps({**model, "folders": [str(folder)], "full_refresh": False, **changes})


def build(con: Any, given: str, sql: str = "FROM people") -> Any:
    """A model as the materialization builds it, up to the commit; what was done."""
    prepare(Session(con), given)
    con.begin()
    con.execute(f'CREATE OR REPLACE TEMP VIEW "{SOURCE[-1]}" AS ({sql})')
    outcome = publish(Session(con), given)
    con.execute(f'DROP VIEW temp.main."{SOURCE[-1]}"')
    return outcome


def test_a_release_is_there_when_dbt_commits(con: Any, snapshot: Any) -> None:
    told = {"unchanged": None, "warnings": []}
    assert build(con, settings()) == {"rows": 12, "suppressed": 0, "classes": 4, "tables": 0} | told
    con.commit()
    assert con.execute("SELECT count(*) FROM dev.people").fetchone() == (12,)
    assert con.execute("SELECT source, target, status FROM ldiv.run").fetchall() == [
        ('temp.main."model.shop.people"', "shop.dev.people", "published")
    ]
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'temp'").fetchone() == (0,)
    before = snapshot(con)
    build(con, settings())
    con.rollback()
    assert snapshot(con) == before


def test_a_build_of_what_is_unchanged_says_so_and_another_stops(con: Any) -> None:
    build(con, settings())
    con.commit()
    before = con.execute("FROM dev.people").fetchall()
    ((first,),) = con.execute("SELECT run_id FROM ldiv.run").fetchall()
    again = build(con, settings())
    con.commit()
    assert (again["unchanged"], again["warnings"]) == (first, [])
    assert con.execute("FROM dev.people").fetchall() == before
    with pytest.raises(LdivError, match=r"run .* have changed since.*over_time: independent"):
        build(con, settings(), "FROM people WHERE id > 2")
    con.rollback()
    assert con.execute("FROM dev.people").fetchall() == before
    con.execute('DROP VIEW IF EXISTS temp.main."model.shop.people"')
    independent = settings(policy=POLICY | {"over_time": "independent"})
    later = build(con, independent, "FROM people WHERE id > 2")
    con.commit()
    assert later["unchanged"] is None and "published this source before" in later["warnings"][0]


@pytest.mark.slow
def test_a_model_counts_people_as_a_run_does(con: Any) -> None:
    """Two people are too few for k = 3, however many rows they have."""
    policy = POLICY | {
        "individual": {"column": "who", "rows": "together"}, "output": {"person": "person_no"}, "require": [{"k": 3}],
        "over_time": "independent", "algorithm": "topdown",
    }  # fmt: skip
    build(con, settings(policy), "SELECT *, id // 2 AS who FROM people")
    con.commit()
    ((least,),) = con.execute(
        "SELECT min(n) FROM (SELECT count(DISTINCT person_no) AS n FROM dev.people GROUP BY age)"
    ).fetchall()
    assert least >= 3
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE database_name = 'temp'").fetchone() == (0,)
    with pytest.raises(LdivError, match=r"(?s)k k=3.*a run accepts, the least costly first:\n  1\. "):
        build(con, settings(policy), "SELECT *, id % 2 AS who FROM people")
    con.rollback()


def test_a_release_that_fails_leaves_what_was_there(con: Any, snapshot: Any) -> None:
    build(con, settings())
    con.commit()
    before = snapshot(con)
    with pytest.raises(LdivError) as failed:
        build(con, settings(), "SELECT id, age, 'HIV' AS disease FROM people")
    con.rollback()
    assert "HIV" not in str(failed.value)
    assert snapshot(con) == before


def test_the_ledger_is_made_once(con: Any) -> None:
    prepare(Session(con), settings())
    numbers = con.execute("SELECT number, CAST(applied_at AS VARCHAR) FROM ldiv.migration ORDER BY ALL").fetchall()
    prepare(Session(con.cursor()), settings(SERIES))
    assert (
        con.execute("SELECT number, CAST(applied_at AS VARCHAR) FROM ldiv.migration ORDER BY ALL").fetchall() == numbers
    )


def test_no_rows_have_the_columns_of_a_release_and_a_series_begins_in_their_place(con: Any) -> None:
    """As with `--empty`: the policy is held against the columns of the source, whose rows are left out."""
    con.execute(f'CREATE TEMP VIEW "{SOURCE[-1]}" AS FROM people WHERE false')
    bounds = SERIES | {"output": {"bounds": True}}
    for policy, ages in ((SERIES, ["age"]), (bounds, ["age_min", "age_max"])):
        shown = no_rows(Session(con), settings(policy))[""]
        con.execute(f"CREATE OR REPLACE TABLE dev.people AS {shown}")
        found = con.execute("SELECT column_name, column_type FROM (DESCRIBE dev.people)").fetchall()
        kind = "VARCHAR" if ages == ["age"] else "BIGINT"
        assert found == [("class_id", "BIGINT"), *((age, kind) for age in ages), ("disease", "VARCHAR")]
        assert con.execute("SELECT count(*) FROM dev.people").fetchone() == (0,)
    con.execute(f'DROP VIEW temp.main."{SOURCE[-1]}"')
    with pytest.raises(LdivError, match="exists, and no release made it"):
        build(con, settings(bounds))
    con.rollback()
    con.execute(f'DROP VIEW IF EXISTS temp.main."{SOURCE[-1]}"')
    assert build(con, settings(bounds, vacant=True))["first"] == 12
    con.commit()
    assert con.execute("SELECT count(*) FROM dev.people").fetchone() == (12,)
    con.execute(f'CREATE TEMP VIEW "{SOURCE[-1]}" AS SELECT id, age FROM people')
    with pytest.raises(LdivError, match=r"sensitive\.disease: .*column"):
        no_rows(Session(con), settings())


def test_releases_over_time(con: Any) -> None:
    assert build(con, settings(SERIES)) == {"rows": 12, "first": 12, "release": 1}
    con.commit()
    con.execute(f"INSERT INTO people SELECT i, 20 + i, {DISEASES} FROM range(12, 18) t(i)")
    found = build(con, settings(SERIES))
    assert (found["rows"], found["first"], found["release"]) == (18, 6, 2)
    con.commit()
    with pytest.raises(LdivError, match="full_refresh: a series cannot be restarted"):
        build(con, settings(SERIES, full_refresh=True))
    con.rollback()


def test_what_is_no_table_is_refused(con: Any) -> None:
    anatomy = {"quasi_identifiers": ["age"], "sensitive": {"disease": {"l": 2}}, "algorithm": "anatomy"}
    for policy in (anatomy | {"identifiers": ["id"]}, anatomy | {"key": "id"}):
        with pytest.raises(LdivError, match="anatomy"):
            build(con, settings(policy))
        con.rollback()


def test_a_connection_without_a_transaction_is_refused(con: Any) -> None:
    prepare(Session(con), settings())
    con.execute(f'CREATE TEMP VIEW "{SOURCE[-1]}" AS FROM people')
    with pytest.raises(LdivError, match="remove disable_transactions from the profile"):
        publish(Session(con), settings())
    assert con.execute("SELECT count(*) FROM ldiv.run").fetchone() == (0,)


@pytest.mark.parametrize("found", ["1.10.1", "1.9.6", "1.11"])
def test_an_old_adapter_is_refused(con: Any, monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(dbt_model, "version", lambda name: found)
    if found == "1.11":
        prepare(Session(con), settings())
        return
    with pytest.raises(LdivError, match=f"dbt-duckdb {found} cannot roll back .* install 1.11 or later"):
        prepare(Session(con), settings())


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("", "policy: is empty"),
        ("[1]", "policy: is not a mapping"),
        ("source: people", "source: is not set by the policy in dbt"),
        ("target: {table: x}", "target: is not set by the policy in dbt"),
        (None, "policy: no file people.policy in"),
    ],
)
def test_a_policy_in_a_file(con: Any, tmp_path: Path, document: str | None, said: str) -> None:
    if document is not None:
        (tmp_path / "people.policy").write_text(document)
    with pytest.raises(LdivError, match=said):
        prepare(Session(con), settings("people.policy", tmp_path))
    assert con.execute("SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'ldiv'").fetchone() == (0,)


def test_a_policy_is_read_where_its_model_is_first(con: Any, tmp_path: Path) -> None:
    for name, k in (("models", 3), ("project", 100)):
        (tmp_path / name).mkdir()
        text = json.dumps({**POLICY, "require": [{"unique_distinct": 3}, {"k": k}]})
        (tmp_path / name / "people.policy").write_text(text)
    folders = [str(tmp_path / "models"), str(tmp_path / "project")]
    assert build(con, settings("people.policy", folders=folders))["rows"] == 12
    con.commit()
    with pytest.raises(LdivError):
        build(con, settings("people.policy", folders=folders[1:]))
