"""MySQL as a database to read: what is there is published to a file, and is compared as DuckDB compares it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import mysql_server
import pytest
import yaml
from homes import COLUMNS, PATIENTS, TREE, policy_document
from typer.testing import CliRunner

import ldiv_db
from ldiv_db.commands.cli import app
from ldiv_db.database.addresses import address_of
from ldiv_db.database.attach import open_address
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError

TYPED = COLUMNS.replace("varchar", "varchar(40)")
#: Texts that are one to MySQL, and five to us.
ALIKE = ("flu", "Flu", "flu ", "flú", "FLU")


@pytest.fixture
def name(needs: Callable[[str], None]) -> str:
    """A new database of the server, with the patients, and `wards` of which texts differ in little."""
    needs("mysql")
    name = f"clinic_{uuid.uuid4().hex[:8]}"
    mysql_server.ask(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    mysql_server.ask(
        f"CREATE TABLE patients ({TYPED}); CREATE TABLE wards (zip int, disease varchar(40), n tinyint(1))", name
    )
    mysql_server.ask(f"INSERT INTO patients VALUES {', '.join(map(str, PATIENTS))}", name)
    rows = [(zip_, text, 5) for zip_ in (1, 2) for text in ALIKE]
    mysql_server.ask(f"INSERT INTO wards VALUES {', '.join(map(str, rows))}", name)
    return name


@pytest.fixture
def address(name: str) -> str:
    return f"mysql:socket={mysql_server.started()} user=root database={name}"


def call(*words: Any) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="ldiv")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def written(folder: Path, **changes: Any) -> Path:
    (folder / "country.csv").write_text(TREE)
    policy = folder / "policy.yml"
    policy.write_text(yaml.safe_dump(policy_document(**{"target": {"file": "released.parquet"}, **changes})))
    return policy


def released(folder: Path) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as con:
        return Counter(con.execute(f"SELECT age, country, disease, ward FROM '{folder}/released.parquet'").fetchall())


@pytest.fixture
def expected(tmp_path: Path) -> Counter[tuple[Any, ...]]:
    """What the same rows in DuckDB itself give."""
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE patients ({COLUMNS}); INSERT INTO patients VALUES {', '.join(map(str, PATIENTS))}")
        ldiv_db.run(con, ldiv_db.read_policy(written(tmp_path)), folder=tmp_path)
    rows = released(tmp_path)
    (tmp_path / "released.parquet").unlink()
    return rows


def test_a_run_publishes_to_a_file_what_it_publishes_of_a_file(
    address: str, name: str, tmp_path: Path, expected: Counter[tuple[Any, ...]]
) -> None:
    for source in ("patients", f"{name}.patients"):
        policy = written(tmp_path, source=source, target={"file": "released.parquet", "if_exists": "replace"})
        called = call("run", address, policy, "--catalog", tmp_path / "ledger.duckdb")
        assert called.exit_code == 0, called.output
        assert released(tmp_path) == expected
    assert mysql_server.ask("SHOW TABLES", name) == [("patients",), ("wards",)]


def test_a_policy_names_it_to_read(address: str, tmp_path: Path, expected: Counter[tuple[Any, ...]]) -> None:
    policy = written(tmp_path, source="crm.patients", databases={"crm": address})
    called = call("run", ":memory:", policy)
    assert called.exit_code == 0, called.output
    assert released(tmp_path) == expected


def holds(con: Any, qi: str, require: str) -> bool:
    sensitive = [] if require.startswith("k:") else ["disease"]
    return all(audit.holds for audit in ldiv_db.check(con, "wards", qi=[qi], sensitive=sensitive, require=[require]))


def test_texts_that_are_one_to_the_server_are_not_to_us(address: str) -> None:
    assert holds(address, "zip", "distinct:5") and holds(address, "zip", "k:5")
    assert holds(address, "disease", "k:2") and not holds(address, "disease", "k:3")


def test_a_connection_that_has_it_attached_compares_as_well(address: str) -> None:
    with open_address(address_of(address), read_only=True) as con:
        for setting in ("mysql_aggregate_pushdown_enabled", "mysql_experimental_filter_pushdown"):
            con.execute(f"SET {setting} = true")
        assert len(con.execute("SELECT disease, count(*) FROM wards GROUP BY ALL").fetchall()) == 1
        assert holds(con, "zip", "distinct:5") and not holds(con, "disease", "k:3")
        assert len(con.execute("SELECT disease, count(*) FROM wards GROUP BY ALL").fetchall()) == 5


def test_a_small_number_is_no_boolean(address: str) -> None:
    with open_address(address_of(address), read_only=True) as con:
        assert con.execute("SELECT DISTINCT n FROM wards").fetchall() == [(5,)]


def test_a_run_reads_one_state(address: str, name: str) -> None:
    with open_address(address_of(address), read_only=True) as con:
        engine = Engine(con)
        with engine.transaction():
            before = engine.execute("SELECT count(*) FROM patients")
            mysql_server.ask("DELETE FROM patients", name)
            assert engine.execute("SELECT count(*) FROM patients") == before == [(24,)]
        assert engine.execute("SELECT count(*) FROM patients") == [(0,)]


def test_it_is_not_written(address: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="MySQL commits every table by itself"):
        ldiv_db.run(address, ldiv_db.read_policy(written(tmp_path)), folder=tmp_path)
    policy = written(tmp_path, target={"table": "released"})
    assert call("run", address, policy, "--catalog", tmp_path / "ledger.duckdb").exit_code != 0
    assert mysql_server.ask("SHOW TABLES", name) == [("patients",), ("wards",)]


def test_what_cannot_be_opened_is_said_without_its_address(address: str) -> None:
    for wrong, said in (
        ("host=127.0.0.1 port=1 user=ana password=hUsh", "no server answers"),
        ("host=no.such.host.invalid user=ana password=hUsh", "the server's host name cannot be resolved"),
        (address.partition(":")[2].partition(" database")[0], "its address names no database"),
    ):
        with pytest.raises(DatabaseError) as raised:
            ldiv_db.profile(f"mysql:{wrong}", "patients")
        assert said in str(raised.value) and "hUsh" not in str(raised.value)
