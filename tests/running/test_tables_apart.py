"""Tables without links: what who has all of them learns of anybody, and that all are published or none."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db

pytestmark = pytest.mark.usefixtures("no_remedies")


def policy(**changes: Any) -> dict[str, Any]:
    """Two tables of the same people, who have one row in each, by equal quasi-identifiers under other names."""
    tables = {
        name: {
            "source": {"query": f"SELECT who, age AS age_{name}, {name}, no AS no_{name} FROM people"},
            "person": "who",
            "quasi_identifiers": {f"age_{name}": {"numeric": True}},
            "sensitive": [name],
            "keep": [f"no_{name}"],
            "target": {"table": name, "if_exists": "replace"},
        }
        for name in ("illness", "income")
    }
    individual = {"column": "who", "rows": "apart"}
    known = {"require": [{"frequency": 2}], "algorithm": "topdown", "over_time": "independent", "seed": 7}
    return {"individual": individual, "tables": tables, **known, **changes}


def filled(people: int, ages: int, rng: random.Random) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE people(who INT, age INT, illness VARCHAR, income VARCHAR, no INT)")
    rows = [(who, who % ages, rng.choice("abcd"), rng.choice("abcd"), who) for who in range(people)]
    con.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
    return con


@pytest.mark.parametrize("seed", some([3, 5, 6, 9, 10], 2))
def test_nobody_is_surer_by_all_tables_in_all_worlds(seed: int) -> None:
    """Every world of both tables at once: who stands behind which row of each, by the labels and classes."""
    with filled(5, 3, random.Random(seed)) as con:
        ldiv_db.run(con, policy())
        ages = dict(con.execute("SELECT who, age FROM people").fetchall())
        shown = [con.execute(f"SELECT age_{name}, {name} FROM {name}").fetchall() for name in ("illness", "income")]
    ways = [
        [way for way in itertools.permutations(rows) if all(covers(row[0], ages[w]) for w, row in enumerate(way))]
        for rows in shown
    ]
    worlds = list(itertools.product(*ways))
    counts = Counter((who, place, world[place][who][1]) for world in worlds for who in ages for place in (0, 1))
    assert max(counts.values()) * 2 <= len(worlds)


def covers(label: str, age: int) -> bool:
    if label == "*":
        return True
    low, _, high = label.strip("[]").partition(" .. ")
    return int(low) <= age <= int(high or low)


def test_no_number_links_rows_of_two_tables() -> None:
    """Rows in their order have numbers of people, of one table each, also where its rows and values are another's."""
    with filled(60, 1, random.Random(3)) as con:
        con.execute("UPDATE people SET income = illness")
        asked = policy(require=[{"frequency": 2}])
        for name, table in asked["tables"].items():
            table["order"] = f"no_{name}"
        ldiv_db.run(con, asked)
        one, other = (dict(con.execute(f"SELECT no_{n}, person FROM {n}").fetchall()) for n in ("illness", "income"))
        assert len(one) == 60 and sum(one[no] == other[no] for no in one) < 10


def test_all_tables_are_published_or_none() -> None:
    with filled(30, 4, random.Random(1)) as con:
        con.execute("UPDATE people SET income = 'a'")
        with pytest.raises(ldiv_db.InfeasibleError, match="income: frequency l=2"):
            ldiv_db.run(con, policy())
        assert con.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall() == [("people",)]


def test_tables_of_one_source_are_no_drafts_of_each_other() -> None:
    """Rows that another table read in the same run are no earlier release, under whatever name they are given."""
    with filled(30, 4, random.Random(1)) as con:
        asked = policy(over_time=None)
        for name, table in asked["tables"].items():
            table |= {"source": "people", "quasi_identifiers": {"age": {"numeric": True}}, "keep": []}
            table["identifiers"] = ["no", *({"illness", "income"} - {name})]
        assert not [note for note in ldiv_db.run(con, asked).notes if "draft" in note]
        for name, table in asked["tables"].items():
            table |= {"source": con.execute(f"SELECT who, age, {name} FROM people").df(), "identifiers": []}
        with duckdb.connect(config={"threads": 1}) as other:
            assert not [note for note in ldiv_db.run(other, asked).notes if "draft" in note]


@pytest.mark.parametrize("rows", ["apart", "together"])
def test_two_spellings_are_no_two_tables(rows: str) -> None:
    with filled(30, 4, random.Random(1)) as con:
        asked = policy()
        asked["individual"]["rows"] = rows
        for table in asked["tables"].values():
            table["keep"], table["identifiers"] = [], table["keep"]
        asked["tables"]["income"]["target"] = {"table": "main.Illness", "if_exists": "replace"}
        with pytest.raises(ldiv_db.PolicyError, match="is that of illness already"):
            ldiv_db.run(con, asked)


def test_no_order_tells_of_what_is_sensitive_in_another_table() -> None:
    asked = policy()
    asked["tables"]["income"]["order"] = "illness"
    with (
        duckdb.connect(config={"threads": 1}) as con,
        pytest.raises(ldiv_db.PolicyError, match="is sensitive in illness"),
    ):
        ldiv_db.plan(con, asked)
