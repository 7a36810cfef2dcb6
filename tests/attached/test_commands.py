"""Every command that takes a database takes one that DuckDB attaches, by its address."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db

TREES = {"age": {"taxonomy": {"ranges": [5, 10, 20]}}, "country": {"taxonomy": {"file": "country.csv"}}}


def published(home: Any, name: str = "released") -> Counter[tuple[Any, ...]]:
    return Counter(home.sql(f"SELECT class_id, age, country, disease, ward FROM {name}"))


def in_a_file(home: Any) -> Counter[tuple[Any, ...]]:
    """What a run on the same rows in DuckDB itself publishes."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE patients (name VARCHAR, age INTEGER, country VARCHAR, disease VARCHAR, ward VARCHAR)")
        con.executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?)", home.sql("SELECT * FROM patients"))
        ldiv_db.run(con, ldiv_db.read_policy(home.policy), folder=home.folder)
        rows = con.execute("SELECT class_id, age, country, disease, ward FROM released").fetchall()
    return Counter(rows)


def test_a_run_publishes_and_the_commands_answer_as_on_a_file(home: Any) -> None:
    assert home.json("plan", home.policy)["rows_in"] == 24
    result = home.json("run", home.policy)
    assert published(home) == in_a_file(home)
    runs = home.sql(f"SELECT run_id, source, target, rows_published, status FROM {home.table('run')}")
    assert runs == [(result["run_id"], "patients", "released", 24, "published")]
    assert home.json("migrate")["pending"] == []
    asked = ["--qi", "age", "--qi", "country", "--sensitive", "disease"]
    assert home.json("profile", "patients", *asked)["rows"] == 24
    assert home.json("runs")["runs"][0]["run_id"] == result["run_id"]
    assert home.json("check", "released", *asked, "--require", "k:3")["holds"]
    assert home.json("measure", "released", "--policy", home.policy)["rows_published"] == 24
    attacked = home.json("attack", "released", *asked, "--require", "k:3")
    assert attacked["holds"] and attacked["rows"] == 24


def test_a_release_there_is_asked_in_place_and_by_its_own_statement(postgres: Any) -> None:
    postgres.run()
    asked = [
        "released",
        "SELECT disease, count(*) AS n FROM t WHERE age < 40 GROUP BY ALL",
        "--policy",
        postgres.policy,
    ]
    groups = postgres.json("ask", *asked)["groups"]
    called = postgres.call("sql", "ask", postgres.address, *asked, "--dialect", "postgres")
    rows = postgres.sql(called.stdout.rstrip().rstrip(";"))
    told = {group: (low, high) for group, _, figure, low, _, high, _ in rows if figure == 1}
    assert told == {one["by"]["disease"]: (one["figures"]["n"]["low"], one["figures"]["n"]["high"]) for one in groups}


def test_taxonomies_lie_in_the_catalog_there(home: Any) -> None:
    called = home.call("taxonomy", "import", home.address, "country", home.folder / "country.csv")
    assert called.exit_code == 0, called.output
    assert home.sql(f"SELECT count(*) FROM {home.table('taxonomy_node')}") == [(7,)]
    home.run(quasi_identifiers={"age": {"numeric": True}, "country": {"taxonomy": "country"}})
    assert sum(published(home).values()) == 24


def test_a_global_run_is_written_as_sql(home: Any) -> None:
    run_id = home.run(require=[{"k": 3}], algorithm={"name": "incognito"}, quasi_identifiers=TREES)["run_id"]
    called = home.call("sql", "recode", home.address, run_id)
    assert called.exit_code == 0, called.output
    assert "SELECT" in called.stdout and "patients" in called.stdout


def test_releases_of_a_series(home: Any) -> None:
    series = {"key": "name", "target": {"prefix": "shown"}, "algorithm": {"name": "bsgi", "select": "bisect"}}
    home.write_policy(**series, identifiers=None)
    for number in (1, 2):
        called = home.call("run", home.address, home.policy, "--json")
        assert called.exit_code == 0, called.output
        assert home.sql(f"SELECT count(*) FROM {home.table('release')}") == [(number,)]


def test_another_run_replaces_appends_or_fails(home: Any) -> None:
    home.run()
    called = home.call("run", home.address, home.policy)
    assert called.exit_code == 2 and "released exists" in called.output
    home.run(target={"table": "released", "if_exists": "replace"})
    assert sum(published(home).values()) == 24
    home.run(target={"table": "released", "if_exists": "append"})
    assert sum(published(home).values()) == 48
    assert len({row[0] for row in published(home)}) == 16
    assert home.sql(f"SELECT count(*) FROM {home.table('run')}") == [(3,)]


def test_a_release_to_a_file_is_entered_there(home: Any) -> None:
    home.run(target={"file": "release.parquet"})
    with duckdb.connect() as con:
        assert con.execute(f"SELECT count(*) FROM '{home.folder}/release.parquet'").fetchall() == [(24,)]
    assert home.sql(f"SELECT status FROM {home.table('run')}") == [("published",)]


def test_with_a_catalog_of_its_own_the_database_is_not_written_to(home: Any) -> None:
    home.write_policy(target={"file": "release.parquet"})
    called = home.call("run", home.address, home.policy, "--catalog", home.folder / "ours.duckdb")
    assert called.exit_code == 0, called.output
    with duckdb.connect(str(home.folder / "ours.duckdb")) as con:
        assert con.execute("SELECT count(*) FROM ldiv.run").fetchall() == [(1,)]
    with pytest.raises(Exception, match=r"no such table|does not exist"):
        home.sql(f"SELECT * FROM {home.table('run')}")


def test_a_table_that_is_not_there_is_named_with_the_nearest(home: Any) -> None:
    home.write_policy(source="patient")
    called = home.call("run", home.address, home.policy)
    assert called.exit_code == 2 and "no table or view patient (did you mean 'patients'?)" in called.output


def test_a_database_that_is_not_there(tmp_path: Path, home: Any) -> None:
    if home.kind == "postgres":
        wrong = home.address.rpartition("=")[0] + "=nowhere"
        said = "cannot open the PostgreSQL database: the server has no database of that name"
    else:
        wrong, said = f"{home.kind}:{tmp_path}/none", f"no database file {tmp_path}/none"
    called = home.call("run", wrong, home.policy)
    assert called.exit_code == 3 and said in called.output
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", some(["run", "series", "taxonomy"]))
def test_the_catalog_s_own_tables_are_no_target(name: str, home: Any) -> None:
    home.json("migrate")
    home.write_policy(target={"table": home.table(name), "if_exists": "replace"})
    called = home.call("run", home.address, home.policy)
    assert called.exit_code == 2 and "is the catalog's own" in called.output
    assert home.sql(f"SELECT count(*) FROM {home.table(name)}") == [(0,)]


def test_violations_are_written_there(home: Any) -> None:
    asked = ["--qi", "age", "--sensitive", "disease", "--require", "k:3", "--into", "bad"]
    called = home.call("check", home.address, "patients", *asked)
    assert called.exit_code == 1, called.output
    assert home.sql("SELECT count(*) > 0 FROM bad") in ([(True,)], [(1,)])


def test_a_schema_that_cannot_be_is_refused_by_plan_and_not_proposed(home: Any) -> None:
    said = home.call("profile", home.address, "patients").output.splitlines()
    (proposed,) = [line for line in said if line.startswith("target")]
    assert proposed == ("target: published_patients" if home.kind == "sqlite" else "target: published.patients")
    home.write_policy(target="published.patients")
    planned = home.call("plan", home.address, home.policy)
    assert planned.exit_code == (2 if home.kind == "sqlite" else 0), planned.output
    assert ("SQLite has no schemas" in planned.output) == (home.kind == "sqlite")
