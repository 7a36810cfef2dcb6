"""Columns that name people or their rows beside the links: refused if they would be published, else said."""

from __future__ import annotations

import copy
from typing import Any

import duckdb
import pytest

import ldiv_db

#: Keys 1, 2, 3 … have all small numbers among them; `code` of people is a key that no accident hits.
SHOP = """
    CREATE TABLE people AS
    SELECT i AS person, 'P' || CAST(i * 7919 % 10007 AS VARCHAR) AS code, i % 4 AS region,
        1 + i // 9 AS manager FROM range(1, 41) t(i);
    CREATE TABLE orders AS
    SELECT 1 + i // 2 AS buyer, 1 + i * 7 % 23 AS seller_id, 1 + i % 20 AS lot_id, 1 + i % 5 AS ward_id,
        i + 1 AS order_nr, i AS day, 1 + i * 3 % 31 AS for_person, 80 - i AS replies_to,
        'P' || CAST((1 + i % 40) * 7919 % 10007 AS VARCHAR) AS paid, i % 3 + 18 AS age
    FROM range(80) t(i);
    CREATE TABLE lines AS
    SELECT 1 + i // 3 AS order_nr, 1 + i * 11 % 80 AS ship_order_nr, 1 + i % 9 AS product_id FROM range(240) t(i);
    CREATE TABLE products AS SELECT 1 + i AS product_id, 'p' || i AS title, 1 + i AS made_by FROM range(9) t(i)
"""
COLUMNS = {
    "people": ["code", "manager"],
    "orders": ["seller_id", "lot_id", "ward_id", "day", "for_person", "paid", "replies_to", "age"],
    "lines": ["ship_order_nr", "product_id"],
    "products": ["product_id", "title", "made_by"],
}
POLICY: dict[str, Any] = {
    "individual": "person",
    "tables": {
        "people": {"person": "person", "quasi_identifiers": {"region": {}}},
        "orders": {"person": "buyer", "key": "order_nr", "order": "day"},
        "lines": {"parent": {"order_nr": "orders"}, "rows": "together"},
        "products": {"public": True},
    },
    "require": [{"k": 3}], "algorithm": "topdown", "seed": 7, "over_time": "independent",
}  # fmt: skip


def shop() -> Any:
    con = duckdb.connect(config={"threads": 1})
    con.execute(SHOP)
    return con


def policy_of(*kept: str, role: str = "keep") -> dict[str, Any]:
    """The policy that publishes the columns `TABLE.COLUMN`."""
    policy = copy.deepcopy(POLICY)
    for name, table in policy["tables"].items():
        mine = [one.partition(".")[2] for one in kept if one.startswith(f"{name}.")]
        table |= {"source": name, "target": f"shown_{name}"}
        table["identifiers"] = [column for column in COLUMNS[name] if column not in mine]
        if mine:
            table[role] = {**table.get(role, {}), **{one: {} for one in mine}} if role != "keep" else mine
    if role == "sensitive":
        policy["require"] = [{"frequency": 2}]
    return policy


NAMING = {
    "orders.seller_id": "23 values are keys of people (people.person)",
    "orders.for_person": "31 values are keys of people (people.person)",
    "orders.replies_to": "80 values are keys of rows of orders (orders.order_nr)",
    "people.manager": "5 values are keys of people (people.person)",
    "lines.ship_order_nr": "80 values are keys of rows of orders (orders.order_nr)",
}


@pytest.mark.parametrize("role", ["keep", "quasi_identifiers", "sensitive"])
def test_what_names_people_or_rows_is_refused_by_name(role: str) -> None:
    con, named = shop(), [tuple(column.split(".")) for column in NAMING]
    with pytest.raises(ldiv_db.PolicyError) as error:
        ldiv_db.plan(con, policy_of(*NAMING, role=role))
    found = [line.strip() for line in str(error.value).splitlines()]
    for (table, name), whose in zip(named, NAMING.values(), strict=True):
        assert any(line.startswith(f"tables.{table}.{role}.{name}: {whose}") for line in found), found
    assert all("list it under identifiers" in line for line in found)
    for table, name in named:
        con.execute(f"ALTER TABLE {table} ALTER {name} TYPE VARCHAR")  # something else than a key
    ldiv_db.plan(con, policy_of(*NAMING, role=role))


def test_a_column_of_a_public_table_names_nobody_either() -> None:
    with pytest.raises(ldiv_db.PolicyError, match=r"tables\.products\.keep\.made_by: 9 values are keys of people"):
        ldiv_db.plan(shop(), policy_of("products.product_id", "products.made_by"))


def test_values_alone_tell_keys_that_lie_thinly() -> None:
    con, policy = shop(), policy_of("orders.paid")
    ldiv_db.plan(con, policy)
    policy["individual"] = policy["tables"]["people"]["person"] = "code"
    policy["tables"]["people"]["identifiers"] = ["person", "manager"]
    policy["tables"]["orders"]["source"] = {"query": "SELECT o.*, code FROM orders o JOIN people ON buyer = person"}
    policy["tables"]["orders"] |= {
        "person": "code",
        "identifiers": [*COLUMNS["orders"][:5], "replies_to", "age", "buyer"],
    }
    with pytest.raises(ldiv_db.PolicyError, match=r"orders\.keep\.paid: 40 values are keys of people \(people\.code\)"):
        ldiv_db.plan(con, policy)


def test_a_declared_reference_is_one_whatever_its_name_is() -> None:
    con = shop()
    con.execute("""
        CREATE TABLE given (person INTEGER PRIMARY KEY, code INTEGER, region INTEGER, manager INTEGER);
        INSERT INTO given SELECT person, NULL, region, manager FROM people;
        CREATE TABLE referring (order_nr INTEGER, ship_order_nr INTEGER, product_id INTEGER REFERENCES given(person));
        INSERT INTO referring SELECT * FROM lines
    """)
    policy = policy_of("lines.product_id")
    ldiv_db.plan(con, policy)
    policy["tables"]["people"]["source"], policy["tables"]["lines"]["source"] = "given", "referring"
    with pytest.raises(ldiv_db.PolicyError, match=r"lines\.keep\.product_id: 9 values are keys of people"):
        ldiv_db.plan(con, policy)


def test_what_is_left_out_and_what_may_be_a_reference_is_said() -> None:
    con = shop()
    said = ldiv_db.plan(con, policy_of("orders.lot_id", "orders.ward_id", "orders.age", "lines.product_id")).notes
    named = {line.split()[0]: line for line in said if " of people (" in line or " of rows of " in line}
    left_out = ["people.manager", "orders.seller_id", "orders.for_person", "lines.ship_order_nr", "products.made_by"]
    left_out.append("orders.replies_to")
    assert named.keys() == {*left_out, "orders.lot_id"}
    assert all("is left out" in named[name] for name in left_out)
    assert "rows are those of buyer" in named["orders.seller_id"]
    assert "if it refers to them, list it under identifiers" in named["orders.lot_id"]


def test_what_refers_to_a_public_table_joins_it_in_the_release() -> None:
    con, policy = shop(), policy_of("lines.product_id", "products.product_id", "products.title")
    said = ldiv_db.run(con, policy).said
    assert not any(line.startswith("lines.product_id") for line in said)
    joined = con.execute("SELECT count(*) FROM shown_lines JOIN shown_products USING (product_id)").fetchone()
    assert joined == (240,)
