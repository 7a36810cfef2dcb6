"""What says whose a row is where people have several rows: no policy that a profile writes publishes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from strategies import some
from what_profiles_write import ASKED, EVENTS, make, profiled, starter

import ldiv_db
from ldiv_db.auditing.people_names import tells_one, tells_somebody
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.measuring.profile import profile_table

NAMES = (
    "user", "username", "ip", "ip_address", "login", "customer", "account", "patient_nr", "kundennummer", "mac",
    "license_plate", "vorname", "nachname", "user_id", "device_id", "iban", "phone", "email", "clientIp", "KundenNr",
    "Prénom", "apellido1", "usuario", "nome_completo", "kullanıcı_adı", "имя", "Фамилия", "姓名", "顧客番号", "이름",
    "اسم", "ग्राहक", "Straße", "numéro_client", "gebruikersnaam", "nomor_pelanggan", "hidden",
)  # fmt: skip


@pytest.mark.parametrize("name", some(NAMES))
def test_whose_a_row_is_stays_unpublished_whatever_it_is_called(con: Any, tmp_path: Path, name: str) -> None:
    make(con, name, more="")
    skeleton = starter(con, tmp_path, "event")
    assert skeleton.policy["individual"] == name and f"individual: {name}" in skeleton.text
    assert list(skeleton.policy["quasi_identifiers"]) == ["born", "region", "seen", "cost", "weight"]
    planned = ldiv_db.plan(con, skeleton.policy, folder=tmp_path)
    assert planned.resolved.source.individual is not None and planned.algorithm.name == "bsgi"


@pytest.mark.parametrize(
    "value",
    some(["CAST(md5(CAST(p AS VARCHAR)) AS UUID)", "hash(p) % 1000000007", "'x' || hash(p)", "'u' || 10000 + p"]),
)
def test_what_belongs_together_is_somebodys_whatever_its_type(con: Any, value: str) -> None:
    con.execute(EVENTS.format(name="hidden").replace("'h' || p", value))
    found = profiled(con).columns[0]
    assert found.role == "identifier" and profiled(con).individual == found


def test_what_does_not_belong_together_is_nobodys(con: Any, tmp_path: Path) -> None:
    """A place of many people stays; where it has few rows it is asked whether it names people."""
    make(con, "town", more="")
    town = profiled(con).columns[0]
    assert town.role == "quasi-identifier" and "DOES IT NAME PEOPLE?" in town.reason
    skeleton = starter(con, tmp_path, "event")
    assert "DOES IT NAME PEOPLE?" in skeleton.text and "individual" not in skeleton.policy


@pytest.mark.parametrize(
    "value",
    some([
        "'10.0.' || p % 5 || '.' || p", "'fe80::' || p % 9", "'00:1b:44:11:3a:' || 10 + p % 40", "'@h' || p % 40",
        "'h' || p % 40 || '@example.org'", "'+49 30 ' || 100000 + p % 40", "'DE89370400440532' || 100000 + p % 40",
    ], 2),
)  # fmt: skip
def test_addresses_are_known_by_their_form(con: Any, value: str) -> None:
    con.execute(EVENTS.format(name="x").replace("'h' || p", value))
    found = profiled(con).columns[0]
    assert (found.role, found.reason) == ("identifier", "its values look like addresses or numbers of people")


def test_what_only_mentions_people_names_nobody() -> None:
    names = ["customer_type", "product_name", "user_agent", "city", "paid", "hostname", "number"]
    assert not any(map(tells_somebody, names))


def test_a_name_that_people_share_is_no_ones_own() -> None:
    assert tells_somebody("last_name") and not tells_one("last_name")


def test_the_person_is_the_coarsest_of_what_tells_one(con: Any, tmp_path: Path) -> None:
    """Somebody has several addresses, and no address several people."""
    con.execute(EVENTS.format(name="customer").replace("AS born", "AS born, '10.0.' || p || '.' || i % 2 AS ip"))
    skeleton = starter(con, tmp_path, "event")
    assert skeleton.policy["individual"] == "customer" and skeleton.policy["identifiers"] == ["ip"]


def test_measures_are_ranges_and_what_is_dropped_has_its_reason(con: Any, tmp_path: Path) -> None:
    make(con, more="")
    con.execute("ALTER TABLE events ADD tags VARCHAR[]; ALTER TABLE events ADD number BIGINT")
    con.execute("UPDATE events SET tags = [event, region], number = rowid")
    found = {column.column.name: column for column in profiled(con).columns}
    assert {found[name].role for name in ("seen", "cost", "weight")} == {"quasi-identifier"}
    skeleton = starter(con, tmp_path, "event")
    for name in skeleton.policy["identifiers"]:
        assert f"- {name}  # {found[name].reason}" in skeleton.text
    assert skeleton.policy["identifiers"] == ["tags", "number"]


@pytest.mark.parametrize(("name", "sensitive"), some(ASKED))
def test_every_policy_of_a_profile_is_one_that_plans(
    con: Any, tmp_path: Path, name: str, sensitive: tuple[str, ...]
) -> None:
    """Where no sensitive value is to be had, or one is too frequent, the policy says that requirements count rows."""
    make(con, name)
    skeleton = starter(con, tmp_path, *sensitive)
    planned = ldiv_db.plan(con, skeleton.policy, folder=tmp_path)
    apart = planned.resolved.source.individual is not None
    assert (
        apart == ("individual" in skeleton.policy) == (name == "user" and sensitive != () and "rare" not in sensitive)
    )
    assert ("REQUIREMENTS COUNT ROWS" in skeleton.text) is (name == "user" and not apart)


def test_who_has_most_of_the_rows_is_nobody_to_keep_apart(con: Any, tmp_path: Path) -> None:
    make(con, more="")
    con.execute("UPDATE events SET \"user\" = 'root' WHERE rowid % 5 > 1")
    skeleton = starter(con, tmp_path, "event")
    assert "individual" not in skeleton.policy and "REQUIREMENTS COUNT ROWS" in skeleton.text
    ldiv_db.plan(con, skeleton.policy, folder=tmp_path)


def test_a_column_is_looked_at_by_one_statement(con: Any) -> None:
    """And only those that may name people, however many columns there are."""
    make(con, "hidden", more="")
    con.execute(
        "CREATE TABLE wide AS SELECT *, "
        + ", ".join(f"hash(seen, {i}) % 200 AS n{i}" for i in range(6))
        + " FROM events"
    )
    statements: list[Any] = []
    profile_table(Engine(con, on_statement=statements.append), Relation.parse("wide"))
    asked = [s for s in statements if s.template == "measuring/profile/hold_together"]
    assert len(asked) == 1 + 6, "hidden, and the six"
