"""Links between several tables: keys of several columns, and rows that belong to nobody."""

from __future__ import annotations

import copy
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db

SHOP = """
    CREATE SCHEMA published;
    CREATE TABLE customers AS SELECT 1000 + i AS customer, i % 4 AS region FROM range({people}) t(i);
    CREATE TABLE orders AS
    SELECT CAST(1000 + i // 2 AS BIGINT) AS customer, 7 * i AS nr, i AS day FROM range(2 * {people}) t(i);
    CREATE TABLE lines AS
    SELECT 7 * (i // 3) AS nr, i % 3 AS line, chr(CAST(97 + i % 9 AS INT)) AS product FROM range(6 * {people}) t(i);
    CREATE TABLE returns AS
    SELECT CAST(nr AS BIGINT) AS nr, CAST(line AS SMALLINT) AS line, 'r' || nr || line AS reason
    FROM lines WHERE line < 2
"""
POLICY: dict[str, Any] = {
    "individual": "customer",
    "tables": {
        "customers": {"source": "customers", "person": "customer", "quasi_identifiers": {"region": {}}},
        "orders": {"source": "orders", "person": "customer", "key": "nr", "order": "day", "identifiers": ["day"]},
        "lines": {
            "source": "lines", "parent": {"nr": "orders"}, "key": ["nr", "line"], "order": "line", "keep": ["product"],
        },
        "returns": {"source": "returns", "parent": {"line": "lines", "nr": "lines"}, "sensitive": ["reason"]},
    },
    "require": [{"frequency": 2}, {"k": 3}], "algorithm": "topdown", "over_time": "independent", "seed": 7,
}  # fmt: skip
JOINED = """
    SELECT c.region, o.position, l.position, l.product, r.reason
    FROM published.returns r JOIN published.lines l USING ({key})
    JOIN published.orders o USING (nr) JOIN published.customers c USING (customer) ORDER BY ALL
"""


def shop(people: int = 16) -> Any:
    con = duckdb.connect(config={"threads": 1})
    con.execute(SHOP.format(people=people))
    return con


def policy_of(**changes: dict[str, Any]) -> dict[str, Any]:
    policy = copy.deepcopy(POLICY)
    for name, table in policy["tables"].items():
        table.update({"target": {"table": f"published.{name}", "if_exists": "replace"}, **changes.get(name, {})})
    return policy


def test_a_key_of_several_columns_links_as_one_made_by_hand_does() -> None:
    con, by_hand = shop(), shop()
    result = ldiv_db.run(con, policy_of())
    for name in ("lines", "returns"):
        by_hand.execute(f"ALTER TABLE {name} ADD COLUMN code VARCHAR; UPDATE {name} SET code = nr || '-' || line")
    own = {"identifiers": ["nr", "line"], "parent": {"code": "lines"}}
    ldiv_db.run(by_hand, policy_of(lines={"key": "code"}, returns=own))
    joined = con.execute(JOINED.format(key="nr_line")).fetchall()
    assert joined == by_hand.execute(JOINED.format(key="code")).fetchall() and len(joined) == 64
    assert [one.name for one in result.tables] == list(POLICY["tables"])
    numbers = con.execute("SELECT min(nr_line), max(nr_line), count(DISTINCT nr_line) FROM published.lines").fetchone()
    assert numbers == (1, 96, 96)
    assert {name for name, *_ in con.execute("DESCRIBE published.returns").fetchall()} == {"reason", "nr_line"}
    assert ldiv_db.check(con, policy=policy_of()).holds
    (loss,) = [one for one in ldiv_db.measure(con, policy=policy_of()).joins if one.child == "returns"]
    assert (loss.rows_in, loss.rows_published) == (64, 64)


@pytest.mark.parametrize("is_whole", some([False, True]))
def test_a_key_of_several_columns_links_where_one_row_is_known(is_whole: bool) -> None:
    con, policy = shop(8), policy_of() | {"known": 1, "algorithm": "auto"}
    policy["tables"]["orders"] |= {"quasi_identifiers": {"day": {}}, "identifiers": []}  # a number, as is found
    for name in ("orders", "lines"):
        del policy["tables"][name]["order"]
    ldiv_db.run(con, policy)
    rows = JOINED.format(key="nr_line").replace("o.position, l.position", "o.day")
    assert len(con.execute(rows).fetchall()) == 32
    assert ldiv_db.check(con, policy=policy).holds
    worst = max(one.gains[0].gain for one in ldiv_db.attack(con, policy=policy).attacks if one.name == "prosecutor")
    assert worst <= 1 / 3
    if not is_whole:
        return
    assert ldiv_db.report(con, policy=policy).as_dict()["statement"]["largest_risk"] == worst
    told = ldiv_db.explore(con, policy, k=[3], workers=1).done
    assert [one.risk.prosecutor for one in told] == [pytest.approx(worst)]


def test_a_key_of_several_columns_tells_over_time_which_row_is_which() -> None:
    con = shop(40)
    con.execute("DROP TABLE orders; CREATE TABLE orders AS SELECT DISTINCT nr, 1000 + nr // 14 AS customer FROM lines")
    two = {name: copy.deepcopy(POLICY["tables"][name]) for name in ("customers", "lines")}
    two["customers"]["target"] = "published.customers"
    joined = "SELECT customer, nr, line, product FROM lines JOIN orders USING (nr)"
    two["lines"] |= {"source": {"query": joined}, "parent": {}, "person": "customer", "target": "published.lines"}
    nights = {key: POLICY[key] for key in ("individual", "algorithm", "over_time")}
    policy = nights | {"tables": two, "require": [{"k": 2}], "nights": "apart"}
    ldiv_db.run(con, policy)
    con.execute("INSERT INTO customers SELECT 40 + customer, region FROM customers WHERE customer < 1020")
    con.execute("INSERT INTO lines SELECT 560 + nr, line, product FROM lines WHERE nr < 280")
    con.execute("INSERT INTO orders SELECT 560 + nr, 40 + customer FROM orders WHERE nr < 280")
    night = ldiv_db.run(con, policy).as_dict()
    assert (night["rows_kept"], night["rows_new"], night["rows_published"]) == (280, 140, 420)
    con.execute("INSERT INTO lines SELECT nr, line, product FROM lines LIMIT 1")
    with pytest.raises(ldiv_db.PolicyError, match=r"2 rows share their nr, line with another"):
        ldiv_db.run(con, policy)


@pytest.mark.parametrize(
    ("change", "orphans", "message"),
    [
        ("UPDATE lines SET line = NULL WHERE nr = 0", (), r"lines\.key: nr, line is NULL in 3 rows"),
        ("UPDATE lines SET line = 0 WHERE nr = 0", (), r"lines\.key: 3 rows share their nr, line with another"),
        ("UPDATE returns SET line = NULL WHERE nr = 0", (), r"returns\.parent: line, nr is NULL in 2 rows"),
        ("INSERT INTO returns VALUES (7, 9, 'a')", (), r"returns\.parent: 1 row.* 1 values? of line, nr that no row"),
        ("ALTER TABLE returns ALTER line TYPE VARCHAR", (), r"line is VARCHAR, and line of lines is BIGINT"),
        ("ALTER TABLE returns RENAME line TO row", (), r"returns\.parent: the source has no column line"),
        ("UPDATE orders SET customer = NULL WHERE nr = 0", ("lines",), r"orders\.person: customer is NULL in 1 row"),
        ("UPDATE orders SET customer = NULL WHERE nr = 0", ("orders",), r"lines\.parent: 3 rows have 1 values of nr"),
        ("DELETE FROM customers WHERE customer < 1010", (), r"10 people are not in customers, who have 20 rows"),
    ],
)  # fmt: skip
def test_rows_of_nobody_are_refused_with_a_count(change: str, orphans: tuple[str, ...], message: str) -> None:
    con = shop()
    con.execute(change)
    with pytest.raises(ldiv_db.PolicyError, match=message) as error:
        ldiv_db.run(con, policy_of(**{name: {"orphans": "leave_out"} for name in orphans}))
    assert all(line.endswith(")") for line in str(error.value).splitlines()), "a way out is missing"


def test_a_query_that_stands_as_a_name_is_told_where_it_belongs() -> None:
    with pytest.raises(ldiv_db.PolicyError, match=r'no table or view SELECT \* FROM lines \(\{query: "SELECT …"\}\)'):
        ldiv_db.plan(shop(), policy_of(lines={"source": "SELECT * FROM lines"}))


@pytest.mark.parametrize(
    ("change", "gone"),
    some(
        [
            (
                "INSERT INTO orders VALUES (NULL, 999, 1), (77, 998, 1); INSERT INTO lines VALUES (999, 0, 'a');"
                " INSERT INTO returns VALUES (NULL, 1, 'a'), (7, NULL, 'a'), (7, 77, 'a')",
                (2, 1, 3),
            ),
            ("DELETE FROM customers WHERE customer >= 1008", (16, 48, 32)),
        ]
    ),
)
def test_rows_of_nobody_are_left_out_as_a_policy_says_and_counted(change: str, gone: tuple[int, int, int]) -> None:
    con = shop()
    con.execute(change)
    policy = policy_of(**{name: {"orphans": "leave_out"} for name in ("orders", "lines", "returns")})
    counts = dict(zip(("orders", "lines", "returns"), gone, strict=True))
    for said in (ldiv_db.plan(con, policy).notes, (result := ldiv_db.run(con, policy)).said):
        told = {name: [line for line in said if line.startswith(f"{name}: ")] for name in counts}
        assert {name: int(lines[0].split()[1]) if lines else 0 for name, lines in told.items()} == counts
    lost = {one.name: one.loss.rows_suppressed for one in result.tables}
    assert {name: lost[name] for name in counts} == counts
    measured = {one.name: one.loss.rows_suppressed for one in ldiv_db.measure(con, policy=policy).losses}
    assert measured == lost
    left = con.execute(JOINED.format(key="nr_line")).fetchall()
    assert len(left) == con.execute("SELECT count(*) FROM published.returns").fetchone()[0] and left
    assert ldiv_db.check(con, policy=policy).holds
