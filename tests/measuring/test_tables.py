"""The loss of a release of several tables: each table's is the run's, and joins are measured as one table is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db import PolicyError
from ldiv_db.measuring.tables import _sides
from ldiv_db.policy.reading import load_policy
from tests.running.schemas import drawn, fill, policy_of

NAMES = ("patients", "stays", "labs")
POLICY = policy_of(NAMES, require=[{"k": 2}])
PAIRS = [("patients", "stays"), ("stays", "labs"), ("patients", "labs")]


def clinic() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": 1})
    fill(con, NAMES, drawn(random.Random(4), NAMES, 24, values="abcdefghij"))
    return con


@pytest.mark.slow
def test_a_join_is_measured_as_one_table_is() -> None:
    con = clinic()
    con.execute("DELETE FROM stays WHERE stay NOT IN (SELECT stay FROM labs)")
    con.execute("DELETE FROM patients WHERE who NOT IN (SELECT who FROM stays)")
    ldiv_db.run(con, POLICY)
    found = {(one.parent, one.child): one for one in ldiv_db.measure(con, policy=POLICY, kl=False, seed=5).joins}
    assert [*found] == PAIRS
    joins = "FROM {0}patients p JOIN {0}stays s ON s.who = p.who JOIN {0}labs l ON l.stay = s.stay"
    con.execute(f"CREATE TABLE flat AS SELECT p.age, l.value {joins.format('')}")
    con.execute(f"CREATE TABLE shown AS SELECT p.age_min, p.age_max, l.value {joins.format('published.')}")
    flat = ldiv_db.measure(con, "shown", source="flat", qi=["age"], sensitive="value", kl=False, seed=5)
    one = found["patients", "labs"]
    assert (one.counts, one.rows_in, one.rows_published) == (flat.loss.counts, flat.rows_in, flat.loss.rows_published)


def test_joins_of_what_is_published_as_it_is_lose_nothing_until_numbers_are_wrong() -> None:
    con = clinic()
    con.execute("""
        CREATE TABLE published.patients AS SELECT no, who, age AS age_min, age AS age_max FROM patients;
        CREATE TABLE published.stays AS SELECT no, who, stay, day AS position, age AS age_min, age AS age_max, value
        FROM stays;
        CREATE TABLE published.labs AS FROM labs
    """)
    found = ldiv_db.measure(con, policy=POLICY)
    assert [(one.parent, one.child, one.counts.nine_tenths) for one in found.joins] == [(*pair, 0) for pair in PAIRS]
    assert found.as_dict()["lm_mean"] == 0
    con.execute("UPDATE published.patients SET who = 59 - who")
    after = ldiv_db.measure(con, policy=POLICY)
    errors = {(one.parent, one.child): one.counts.nine_tenths for one in after.joins}
    assert errors["stays", "labs"] == 0 < min(errors["patients", "stays"], errors["patients", "labs"])
    assert after.as_dict()["lm_mean"] == 0  # each table by itself is what it was


#: How columns generalise by their values, and a file that says the same of all values.
TREES = {
    "town": ({}, "p;*\nq;*\nr;*\n"),
    "ward": ({"taxonomy": {"prefix": [2, 1]}}, "aa;a*;*\nab;a*;*\nb;b*;*\nba;b*;*\n"),
    "zip": ({"numeric": False}, "7;*\n8;*\n9;*\n"),
    "born": ({"taxonomy": {"dates": ["day", "year"]}}, "1980-05-01;1980;*\n1980-05-07;1980;*\n1981-06-01;1981;*\n"),
}


def test_the_values_of_a_column_are_those_of_its_whole_table(tmp_path: Path) -> None:
    """Of people without rows elsewhere, too: joins are measured as one table is by trees that name every value."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("""
        CREATE SCHEMA published; CREATE TABLE stays AS SELECT i AS who, 'xyx'[i] AS illness FROM range(1, 4) r(i);
        CREATE TABLE people (who INT, town VARCHAR, ward VARCHAR, zip INT, born DATE);
        INSERT INTO people VALUES (1, 'p', 'aa', 7, '1980-05-01'), (2, 'r', 'aa', 7, '1980-05-01'),
            (3, 'p', 'ba', 8, '1981-06-01'), (4, 'q', 'ab', 9, '1980-05-07'), (5, NULL, 'b', 9, '1981-06-01');
        CREATE TABLE published.stays AS FROM stays;
        CREATE TABLE published.people (who INT, town VARCHAR, ward VARCHAR, zip VARCHAR, born VARCHAR);
        INSERT INTO published.people VALUES (1, '{p, q}', 'a*', '{7, 9}', '1980'), (2, '{r, NULL}', 'a*', '*', '1980'),
            (3, '{p, q}', 'b*', '*', '*'), (4, '{p, q}', 'a*', '{7, 9}', '1980'), (5, '{r, NULL}', 'b*', '*', '*');
        CREATE TABLE flat AS FROM people JOIN stays USING (who);
        CREATE TABLE shown AS FROM published.people JOIN published.stays USING (who)
    """)
    for known, columns in ((1, [*TREES]), ("all", ["ward", "zip", "born"])):
        own = {"quasi_identifiers": {c: TREES[c][0] for c in columns}, "identifiers": list(set(TREES) - {*columns})}
        people = {"source": "people", "target": "published.people", "person": "who", **own}
        stays = {"source": "stays", "target": "published.stays", "person": "who", "sensitive": ["illness"]}
        policy = {"tables": {"people": people, "stays": stays}, "individual": "who", "require": [{"k": 2}]}
        (joined,) = ldiv_db.measure(con, policy={"known": known, **policy}, kl=False).joins
        if "town" in columns:  # whose NULL no file names
            assert joined.counts and joined.counts.nine_tenths > 0
            continue
        for column in columns:
            (tmp_path / f"{column}.csv").write_text(TREES[column][1])
        files = {column: {"taxonomy": {"file": f"{column}.csv"}} for column in columns}
        flat = ldiv_db.measure(con, "shown", source="flat", qi=files, sensitive="illness", kl=False, folder=tmp_path)
        assert joined.counts == flat.loss.counts


def test_counts_are_over_a_column_of_each() -> None:
    def sides(parent: dict[str, Any], child: dict[str, Any]) -> Any:
        tables = {"p": {"person": "who", **parent}, "c": {"person": "who", "order": "o", **child}}
        named = {name: {"source": name, "target": f"out.{name}", **one} for name, one in tables.items()}
        policy = {"individual": "who", "tables": named, "require": [{"k": 2}]}
        return _sides("p", "c", load_policy(policy).tables)

    keys, value = {"quasi_identifiers": ["a", "b"]}, {"sensitive": ["v"]}
    assert sides(keys, keys | value) == ([("p", "a"), ("p", "b")], [("c", "v")])
    assert sides(keys | value, {"quasi_identifiers": ["d"]}) == ([("c", "d")], [("p", "v")])
    assert sides(keys, {"quasi_identifiers": ["d"]}) == ([("p", "a"), ("c", "d")], [])
    assert sides(keys, {}) == ([], [])


def test_what_is_not_there_or_of_one_table_is_refused() -> None:
    con = clinic()
    with pytest.raises(PolicyError) as error:
        ldiv_db.measure(con, policy=POLICY)
    assert [problem.key for problem in error.value.problems] == [f"tables.{name}.target" for name in NAMES]
    with pytest.raises(PolicyError) as error:
        ldiv_db.measure(con, "published.stays", policy=POLICY, source="stays", class_label="value")
    assert {problem.key for problem in error.value.problems} == {"published", "source", "class_label"}
