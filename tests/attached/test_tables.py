"""Several tables as one release in databases that are attached: all of them and the ledger at once, or nothing."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

import ldiv_db
from ldiv_db.database.errors import AuditError
from ldiv_db.publishing import tables_draft

TABLES: dict[str, Any] = {
    "people": {"person": "who", "quasi_identifiers": {"age": {"numeric": True}}},
    "stays": {
        **{"person": "who", "key": "stay", "order": "day", "identifiers": ["day"]},
        **{"quasi_identifiers": {"unit": {"numeric": True}}, "sensitive": ["disease"]},
    },
    "labs": {"parent": {"stay": "stays"}, "sensitive": ["result"]},
}
POLICY: dict[str, Any] = {
    "individual": "who",
    "tables": {
        name: {**table, "source": name, "target": {"table": f"open_{name}", "if_exists": "replace"}}
        for name, table in TABLES.items()
    },
    "require": [{"frequency": 2}],
    "algorithm": "topdown",
    "seed": 4,
}


def write(home: Any) -> None:
    home.sql("CREATE TABLE people (who integer, age integer)")
    home.sql("CREATE TABLE stays (stay integer, who integer, day integer, unit integer, disease varchar(9))")
    home.sql("CREATE TABLE labs (stay integer, result varchar(9))")
    people = [(who, 20 + who * 7 % 40) for who in range(24)]
    stays = [(2 * who + n, who, n, who % 5, f"d{(who + n) % 7}") for who in range(24) for n in range(1 + who % 2)]
    labs = [(2 * who, f"r{who % 6}") for who in range(24)]
    for name, rows in (("people", people), ("stays", stays), ("labs", labs)):
        home.sql(f"INSERT INTO {name} VALUES {', '.join(map(str, rows))}")
    home.policy.write_text(yaml.safe_dump(POLICY, sort_keys=False))


def test_all_tables_and_the_ledger_are_one_transaction(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home)
    found = home.json("run", home.policy)
    published = {one["table"]: one["rows_published"] for one in found["tables"]}
    assert published == {"people": 24, "stays": 36, "labs": 24}
    join = "SELECT count(*) FROM {0}people p JOIN {0}stays s ON s.who = p.who JOIN {0}labs l ON l.stay = s.stay"
    assert home.sql(join.format("open_")) == home.sql(join.format("")) == [(24,)]
    assert home.sql(f"SELECT source, rows_published FROM {home.table('run')}") == [("people & stays & labs", 84)]
    checked, attacked, measured = (home.json(name, "--policy", home.policy) for name in ("check", "attack", "measure"))
    assert checked["holds"] and [one["sensitive"] for one in checked["audits"]] == [
        "stays.disease",
        "labs.result",
        None,
    ]
    assert attacked["holds"] and {one["knows"] for one in attacked["attacks"]} == {"people", "stays", "all tables"}
    assert measured["rows_published"] == 84 and [(one["parent"], one["child"]) for one in measured["joins"]] == [
        ("people", "stays"),
        ("stays", "labs"),
        ("people", "labs"),
    ]
    before = [sorted(home.sql(f"SELECT * FROM open_{name}")) for name in TABLES]

    def fail(*_: Any, **__: Any) -> None:
        raise AuditError("as the test wants it")

    monkeypatch.setattr(tables_draft, "audit_tables", fail)
    home.policy.write_text(yaml.safe_dump(POLICY | {"seed": 5}))
    called = home.call("run", home.address, home.policy)
    assert called.exit_code == 1 and "as the test wants it" in called.output, called.output
    assert [sorted(home.sql(f"SELECT * FROM open_{name}")) for name in TABLES] == before


def test_what_a_table_made_anew_loses_is_said_by_plan_and_run(postgres: Any) -> None:
    write(postgres)
    postgres.json("run", postgres.policy)
    postgres.sql("COMMENT ON TABLE open_stays IS 'for research'; COMMENT ON TABLE open_labs IS 'for research'")
    postgres.sql("ALTER TABLE open_people ENABLE ROW LEVEL SECURITY; CREATE VIEW shown AS SELECT * FROM open_labs")
    stays = {**POLICY["tables"]["stays"], "identifiers": ["day", "unit"], "quasi_identifiers": {}}
    policy = {**POLICY, "tables": {**POLICY["tables"], "stays": stays}, "over_time": "independent"}
    postgres.policy.write_text(yaml.safe_dump(policy, sort_keys=False))
    for command in ("plan", "run"):
        said = [note for note in postgres.json(command, postgres.policy)["notes"] if "not kept" in note]
        assert said == ["the comments of open_stays are not kept, as its columns are others now"], command
    assert postgres.sql("SELECT obj_description('open_labs'::regclass)") == [("for research",)]


def test_declared_keys_of_the_server_link_tables(postgres: Any) -> None:
    """That `code` names rows of clients is told by the declared key alone."""
    postgres.sql("CREATE SCHEMA care; CREATE TABLE care.clients (nr integer PRIMARY KEY, age integer)")
    postgres.sql("CREATE TABLE care.notes (code integer REFERENCES care.clients, said varchar(9))")
    postgres.sql("INSERT INTO care.clients SELECT g, 20 + g * 7 % 40 FROM generate_series(1, 60) g")
    postgres.sql("INSERT INTO care.notes SELECT g * 7 % 20 + 1, 'n' || g % 5 FROM generate_series(1, 80) g")
    said = postgres.call("profile", postgres.address, "care.clients", "care.notes").output
    assert "# its code names clients (declared as a foreign key)" in said, said


def test_from_a_server_to_a_file_and_back(home: Any, tmp_path: Path) -> None:
    write(home)
    tables = copy.deepcopy(POLICY["tables"])
    for name, table in tables.items():
        table["target"] = {"file": str(tmp_path / "whole.duckdb"), "table": name, "if_exists": "replace"}
    for seed in (4, 4, 5):
        ldiv_db.run(home.address, POLICY | {"tables": tables, "seed": seed})
    assert ldiv_db.check(home.address, policy=POLICY | {"tables": tables}).holds
    for name, table in tables.items():
        table["target"] = {"database": "other", "table": f"there_{name}", "if_exists": "replace"}
    duckdb.connect(str(tmp_path / "beside.duckdb")).close()
    there = POLICY | {"tables": tables, "databases": {"other": str(tmp_path / "beside.duckdb")}}
    ldiv_db.run(home.address, there)
    shown = {name: released(tmp_path, f"there_{name}") for name in TABLES}
    assert {name: len(rows) for name, rows in shown.items()} == {"people": 24, "stays": 36, "labs": 24}
    assert ldiv_db.check(home.address, policy=there).holds
    back = there | {"databases": {"other": home.address}}
    for name, table in tables.items():
        table["source"] = f"{name}_here"
    with duckdb.connect(str(tmp_path / "beside.duckdb")) as con:
        con.execute("CREATE TABLE people_here AS SELECT n AS who, 20 + n AS age FROM range(3) AS r(n)")
        con.execute(
            "CREATE TABLE stays_here AS SELECT *, who AS stay, 1 AS day, 'd' || who AS disease FROM people_here"
        )
        con.execute("ALTER TABLE stays_here RENAME age TO unit")
        con.execute("CREATE TABLE labs_here AS SELECT stay, 'r' || stay AS result FROM stays_here")
    for _ in range(2):
        ldiv_db.run(str(tmp_path / "beside.duckdb"), back)
    assert [home.sql(f"SELECT count(*) FROM there_{name}") for name in TABLES] == [[(3,)]] * 3


def released(folder: Path, name: str) -> list[Any]:
    with duckdb.connect(str(folder / "beside.duckdb"), read_only=True) as con:
        return con.execute(f"FROM {name}").fetchall()
