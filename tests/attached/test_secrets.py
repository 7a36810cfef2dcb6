"""No password of an address is in what is printed, written or raised; what cannot be opened is said in a sentence."""

from __future__ import annotations

import socket
import traceback
from pathlib import Path
from typing import Any

import pytest

import ldiv_db
from ldiv_db.database.addresses import address_of
from ldiv_db.database.errors import DatabaseError, PolicyError
from ldiv_db.database.failures import sentence_of

SECRET = "hUsh 'quoted"
ESCAPED = SECRET.replace("'", "\\'")


def everything(home: Any) -> str:
    """All that stands in the files of the folder, and in the ledger."""
    files = [path.read_bytes().decode(errors="replace") for path in home.folder.rglob("*") if path.is_file()]
    return "\n".join([*files, *map(str, home.sql("SELECT run::text FROM ldiv.run"))])


def test_a_password_of_the_environment_is_nowhere(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC_PASSWORD", ESCAPED)
    address = f"{postgres.address} password='${{CLINIC_PASSWORD}}'"
    printed = []
    for words in (
        ["plan", address, postgres.policy, "--sql"],
        ["run", address, postgres.policy, "--json"],
        ["run", address, postgres.policy],
        ["runs", address],
        ["check", address, "released", "--qi", "age", "--require", "k:3"],
        ["profile", address, "nowhere", "--json"],
        ["migrate", address],
    ):
        printed.append(postgres.call(*words).output)
    text = "\n".join([*printed, everything(postgres)])
    assert "rows published" in text and SECRET not in text and ESCAPED not in text and "hUsh" not in text


def test_what_cannot_be_opened_is_said_without_its_address(postgres: Any) -> None:
    for wrong, said in (
        (f"host=127.0.0.1 port=1 password='{ESCAPED}'", "no server answers"),
        (f"host=no.such.host.invalid password='{ESCAPED}'", "the server's host name cannot be resolved"),
        (f"service=nowhere password='{ESCAPED}'", "no service file defines the service"),
        (f"host=h pass word='{ESCAPED}'", "the server's client cannot read the address"),
        ("postgresql://ana:hUsh/x@host/db", ""),
        ("postgresql://ana:p@hUsh@127.0.0.1:1/db", ""),
    ):
        with pytest.raises(DatabaseError) as raised:
            ldiv_db.run(f"postgres:{wrong}", ldiv_db.read_policy(postgres.policy))
        assert said in str(raised.value) and "cannot open the PostgreSQL database" in str(raised.value)
        shown = "".join(traceback.format_exception(raised.value))
        assert "hUsh" not in shown


def test_a_server_that_is_silent_is_not_waited_for(postgres: Any) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        called = postgres.call("run", f"postgres:host=127.0.0.1 port={port} connect_timeout=2", postgres.policy)
    assert called.exit_code == 3 and "the server does not answer in time" in called.output


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(PolicyError, match="there is no environment variable NO_SUCH_ONE"):
        address_of("postgres:password=${NO_SUCH_ONE}")


def test_an_address_is_shown_by_its_kind() -> None:
    address = address_of("postgres:password=hUsh")
    assert "hUsh" not in f"{address} {address!r}" and str(address) == "the PostgreSQL database"
    assert str(address_of("sqlite:crm.db")) == "crm.db"
    assert str(address_of("ducklake:postgres:password=hUsh")) == "the DuckLake database"
    assert address_of("ducklake:sqlite:meta.db").path is None and address_of("w.duckdb").path == Path("w.duckdb")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (
            "postgres:dbname=c",
            "dbname=c connect_timeout='15' options='-c lock_timeout=60s -c row_security=off'"
            " fallback_application_name='ldiv_db'",
        ),
        (
            "postgres:dbname=c connect_timeout=1",
            "dbname=c connect_timeout=1 options='-c lock_timeout=60s -c row_security=off'"
            " fallback_application_name='ldiv_db'",
        ),
        (
            "postgres://h/c",
            "postgresql://h/c?connect_timeout=15&options=-c%20lock_timeout%3D60s%20-c%20row_security%3Doff"
            "&fallback_application_name=ldiv_db",
        ),
        (
            "postgresql://h/c?options=x",
            "postgresql://h/c?options=x&connect_timeout=15&fallback_application_name=ldiv_db",
        ),
        ("mysql:database=c", "database=c"),
    ],
)
def test_a_server_is_not_waited_for_without_end(address: str, words: str) -> None:
    assert address_of(address).waiting().text == words


def test_words_of_a_server_that_quote_a_row_are_withheld() -> None:
    assert sentence_of('ERROR:  invalid input syntax for type integer: "Cancer"') is None
    assert sentence_of("ERROR:  permission denied for table patients\n") == "permission denied for table patients"
