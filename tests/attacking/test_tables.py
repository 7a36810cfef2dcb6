"""Attacks on a release of several tables: who knows one, who knows all, and what they would tell one by one."""

from __future__ import annotations

import functools
import random
from collections import defaultdict
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from refusals import refuses
from strategies import some

import ldiv_db
from tests.running.schemas import CHOICES, drawn, fill, policy_of, published, rows_of

NAMES = ("patients", "stays", "labs")
PAIR = ("patients", "stays")
GOOD: list[Any] = [{"frequency": 2}, {"k": 2}]


def places(tree: Any, path: tuple[Any, ...] = ()) -> Any:
    """What a person's rows show, each with the path to it: rows that no order puts into places are alike."""
    for name, nodes in tree.items():
        for position, (_, label, _, below) in enumerate(nodes):
            place = (*path, name, position if name not in ("patients", "labs") else 0)
            yield name, (place, label)
            yield from places(below, place)


def expected(shown: Any, known: tuple[str, ...], table: str) -> Fraction | None:
    """The largest share of the people alike in the known tables, of those with rows there, who have a value."""
    classes: dict[Any, list[set[str]]] = defaultdict(list)
    for tree in shown.values():
        seen = sorted(map(str, (one for name, one in places(tree) if name in known)))
        values = {value for name, (_, _, value, _) in rows_of(tree) if name == table and value}
        if seen and values:
            classes[tuple(seen)].append(values)
    shares = [
        Fraction(sum(v in own for own in people), len(people)) for people in classes.values() for v in "abcdefghij"
    ]
    return max(shares, default=None)


@functools.cache
def released(names: tuple[str, ...]) -> Any:
    """A clinic's tables with their release, made once."""
    con = duckdb.connect(config={"threads": 1})
    fill(con, names, drawn(random.Random(4), names, 20, 2, values="abcdefghij"))
    ldiv_db.run(con, policy_of(names, require=GOOD))
    return con


@pytest.mark.parametrize("names", some([(PAIR,), (NAMES,), *[(names,) for names in CHOICES if len(names) > 1]]))
def test_posteriors_are_counted_by_what_is_known(names: tuple[str, ...]) -> None:
    con, policy = released(names), policy_of(names, require=GOOD)
    found, shown = ldiv_db.attack(con, policy=policy), published(con, names)
    told = {(one.knows, one.sensitive): one.gains[0] for one in found.attacks if one.name == "posterior"}
    with_labels, with_values = [n for n in names if n != "labs"], [n for n in names if n != "patients"]
    assert set(told) == {(k, f"{v}.value") for k in (*with_labels, "all tables") for v in with_values}
    for (knows, column), gain in told.items():
        share = expected(shown, names if knows == "all tables" else (knows,), column.partition(".")[0])
        assert gain.gain == (None if share is None else float(share))
        assert gain.bound == 0.5 and gain.holds
    assert found.holds and found.finished
    alike = {one.knows: one.gains[0].gain for one in found.attacks if one.name == "prosecutor"}
    assert max(alike.values()) == alike["all tables"] <= 0.5


POLICY = policy_of(NAMES, require=GOOD)


@pytest.mark.slow
def test_a_broken_promise_is_found_by_who_knows_it() -> None:
    con = released(NAMES)
    con.execute("BEGIN")
    con.execute("UPDATE published.stays SET age_min = -stay")  # alone among all who are alike in the other table
    broken = {(one.knows, one.sensitive) for one in ldiv_db.attack(con, policy=POLICY).attacks if one.holds is False}
    con.execute("ROLLBACK")
    assert ("stays", "stays.value") in broken and ("all tables", "stays.value") in broken
    assert ("patients", "stays.value") not in broken


def test_columns_that_are_kept_are_told_of_with_their_table() -> None:
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE SCHEMA published")
    con.execute(
        "CREATE TABLE published.patients AS SELECT i AS nr, 'a' || i // 4 AS age, i AS no FROM range(16) AS r(i)"
    )
    con.execute("CREATE TABLE published.stays AS SELECT i AS nr, 'd' || i % 4 AS diagnosis FROM range(16) AS r(i)")
    tables = {
        "patients": {"source": "p", "person": "nr", "quasi_identifiers": ["age"], "keep": ["no"]},
        "stays": {"source": "s", "person": "nr", "sensitive": ["diagnosis"]},
    }
    named = {name: {**one, "target": f"published.{name}"} for name, one in tables.items()}
    policy = {"individual": "nr", "require": [{"frequency": 4}, {"k": 4}], "tables": named}
    found, (checked, *_) = ldiv_db.attack(con, policy=policy), ldiv_db.check(con, policy=policy)
    assert found.holds and "patients: no is kept as it is: 16 of 16 rows" in found.warnings[-1] == checked.warnings[-1]
    assert "similarity, skewness and background knowledge" in found.warnings[0]


def test_what_is_said_of_one_table_is_refused() -> None:
    con, policy = released(PAIR), policy_of(PAIR, require=GOOD)
    with refuses("table", "known", "counting"):
        ldiv_db.attack(con, "published.stays", policy=policy, known="patients", counting=True)
    with refuses("threshold"):
        ldiv_db.attack(con, policy=policy, threshold=2)


# -- one by one, and together ----------------------------------------------------------------------------

#: A clinic's patients, and what their insurer is sent: nobody sees both of somebody's rows but who knows them.
MADE = """
    CREATE TABLE patients AS SELECT i AS nr, 20 + i * 37 % 60 AS age, 'w' || i % 5 AS ward,
    'd' || i * i % 997 % 15 AS diagnosis FROM range(600) AS r(i);
    CREATE TABLE claims AS SELECT nr, (nr * 53) % 97 AS zip, (nr * 29) % 12 AS month, diagnosis FROM patients;
    CREATE VIEW people AS SELECT p.nr, age, ward, zip, month FROM patients AS p JOIN claims USING (nr);
    CREATE SCHEMA alone; CREATE SCHEMA published
"""
KEYS: dict[str, dict[str, Any]] = {
    "patients": {"age": {"numeric": True}, "ward": {"taxonomy": {"flat": True}}},
    "claims": {"zip": {"numeric": True}, "month": {"numeric": True}},
}
REQUIRED: dict[str, Any] = {"require": [{"frequency": 3}, {"k": 4}], "algorithm": "topdown", "seed": 1}


@pytest.mark.slow
def test_tables_that_are_good_one_by_one_break_together() -> None:
    """The figures of docs/explanation/attacks.md, by the same steps."""
    con = duckdb.connect(config={"threads": 1})
    con.execute(MADE)
    alone = {
        name: {"source": name, "target": f"alone.{name}", "identifiers": ["nr"], "sensitive": "diagnosis", **REQUIRED}
        | {"quasi_identifiers": keys}
        for name, keys in KEYS.items()
    }
    for name, policy in alone.items():
        assert all(audit.holds for audit in ldiv_db.run(con, policy).audits)
        (posterior,) = [a for a in ldiv_db.attack(con, f"alone.{name}", policy=policy).attacks if a.name == "posterior"]
        assert posterior.gains[0].gain == pytest.approx(1 / 3) and posterior.holds
    knowing = {"known": "people", "also": "alone.claims", "also_policies": [alone["claims"]]}
    (both,) = [
        attack
        for attack in ldiv_db.attack(con, "alone.patients", policy=alone["patients"], **knowing).attacks
        if attack.name == "composition"
    ]
    assert both.gains[0].gain == 1
    assert (both.figures["one_value"], both.figures["above_promise_of_one"], both.figures["people"]) == (138, 501, 600)
    tables = {
        name: {"source": name, "person": "nr", "target": f"published.{name}", "sensitive": ["diagnosis"]}
        | {"quasi_identifiers": keys}
        for name, keys in KEYS.items()
    }
    together = {"individual": "nr", "tables": tables, "over_time": "independent", **REQUIRED}
    ldiv_db.run(con, together)
    found = ldiv_db.attack(con, policy=together)
    posteriors = [attack.gains[0].gain for attack in found.attacks if attack.name == "posterior"]
    assert found.holds and len(posteriors) == 6 and max(posteriors) == pytest.approx(1 / 3)
