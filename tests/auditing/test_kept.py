"""What kept columns tell: held against its definition in plain Python, and told by every call that sees them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import oracle
import pytest
from strategies import draws, search

import ldiv_db
from ldiv_db.auditing.kept import KeptColumn, measure_kept
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation

QI = {"age": {"numeric": True}, "sex": {}, "zip": {"numeric": True}}
POLICY: dict[str, Any] = {
    "source": "people", "target": {"table": "released", "if_exists": "replace"}, "quasi_identifiers": QI,
    "sensitive": ["dx"], "require": [{"frequency": 2}, {"k": 5}], "over_time": "independent", "seed": 1,
}  # fmt: skip
#: Columns that may be kept, as SQL of a person's number and columns; what is told of each, and on the release alone.
KEPT = {
    "weight": ("CAST(i * 1.37 AS DECIMAL(9, 2))", "300 of 300 rows have a value that nobody else has", True),
    "household": ("i // 2", "0 of 300 rows have a value that nobody else has, and 300 one that two have", True),
    "years": ("CAST(age AS VARCHAR) || ' years'", "age follows from it in 100 %", False),
    "decade": ("age // 10", "it follows from age in 100 %", False),
    "region": ("zip // 1000", "it follows from zip in 100 %", False),
    "is_chronic": ("dx IN ('HIV', 'asthma')", "it follows from dx in 100 %", True),
    "code": ("md5(dx)", "dx follows from it in 100 %", True),
    "ward": ("chr(65 + CAST(hash(i * 5) % 6 AS INTEGER))", "", True),
    "shift": ("hash(i * 9) % 3", "", True),
    "constant": ("1", "", True),
}


def make(con: Any) -> None:
    kept = ", ".join(f"{sql} AS {name}" for name, (sql, *_) in KEPT.items())
    con.execute(
        f"CREATE TABLE people AS SELECT p.*, {kept} FROM (SELECT i, CAST(20 + hash(i * 3) % 50 AS INTEGER) AS age,"
        " ['f', 'm'][CAST(1 + hash(i * 7) % 2 AS INTEGER)] AS sex,"
        " CAST(10000 + hash(i * 11) % 40 * 100 AS INTEGER) AS zip,"
        " ['flu', 'HIV', 'ulcer', 'asthma', 'none'][CAST(1 + hash(i * 13) % 5 AS INTEGER)] AS dx"
        " FROM range(300) AS r(i)) AS p"
    )


def policy(*kept: str, **more: Any) -> dict[str, Any]:
    aside = [name for name in KEPT if name not in kept]
    return {**POLICY, "keep": list(kept), "identifiers": ["i", *aside], **more}


def about(name: str, warnings: Any) -> str:
    return " ".join(line for line in warnings if line.startswith(f"{name} is kept"))


def test_one_row_of_ten_is_told() -> None:
    assert KeptColumn("mail", rows=20, different=19, single=0, few=2).singles_out
    assert not KeptColumn("mail", rows=20, different=19, single=1, few=1).singles_out


@pytest.mark.slow
def test_every_call_tells_what_kept_columns_tell(con: Any) -> None:
    make(con)
    asked, qi = policy(*KEPT), list(QI)
    ran = ldiv_db.run(con, asked).notes
    (audit,) = ldiv_db.check(con, "released", policy=asked)
    (plain,) = ldiv_db.check(con, "released", qi=qi, sensitive="dx", require="k:5")
    by_source = (ldiv_db.plan(con, asked).kept, ran, ldiv_db.attack(con, "released", policy=asked).warnings)
    alone = ldiv_db.attack(con, "released", qi=qi, sensitive="dx").warnings
    for name, (_, says, is_of_release) in KEPT.items():
        for found in by_source:
            assert says in about(name, found) and bool(says) == bool(about(name, found))
        expected = says if is_of_release else ""
        for found in (audit.warnings, plain.warnings, alone):
            assert expected in about(name, found) and bool(expected) == bool(about(name, found))


@pytest.mark.slow
def test_a_report_has_red_lines_and_a_public_one_nothing_of_the_source(con: Any) -> None:
    make(con)
    asked = policy("weight", "years", "ward")
    ldiv_db.run(con, asked)
    own = ldiv_db.report(con, "released", policy=asked, queries=5, tries=5)
    assert '<p class="notice alarm">weight is kept' in own.html()
    assert '<p class="notice alarm">years is kept' in own.html() and "age follows from it" in own.html()
    public = ldiv_db.report(con, "released", policy=asked, queries=5, tries=5, public=True)
    assert '<p class="notice alarm">weight is kept' in public.html()
    assert "years is kept" not in public.html() and "ward is kept" not in own.html()


def test_releases_over_time_tell_it_too(con: Any) -> None:
    make(con)
    asked = policy("weight", key="i", algorithm={"name": "bsgi", "select": "bisect"}) | {
        "identifiers": [n for n in KEPT if n != "weight"]
    }
    asked.pop("over_time")
    assert "300 of 300 rows" in about("weight", ldiv_db.run(con, asked).notes)


@pytest.mark.slow
def test_what_people_are_linked_by_is_no_wolf(con: Any) -> None:
    """A pseudonym of people with several rows is published to link them; one of a single row each finds it."""
    make(con)
    con.execute("ALTER TABLE people ADD patient INTEGER; UPDATE people SET patient = i // 3")
    asked = policy("ward") | {"identifiers": [*KEPT.keys() - {"ward"}, "i"]}
    for name in ("individual", "keep"):
        said = {"individual": {"column": "patient", "rows": "together"}, "output": {"person": "number"}}
        more = said if name == "individual" else {"keep": ["ward", "patient"]}
        ldiv_db.run(con, {**asked, **more, "require": [{"k": 5}]})
        (audit,) = ldiv_db.check(con, "released", qi=list(QI), sensitive="dx", require="k:2", individual=None)
        assert not about("patient", audit.warnings)


def test_people_are_counted_where_a_policy_names_them(con: Any) -> None:
    """A value of all rows of one person singles that person out."""
    make(con)
    con.execute("ALTER TABLE people ADD who INTEGER; UPDATE people SET who = i // 3")
    con.execute("ALTER TABLE people ADD card INTEGER; UPDATE people SET card = who * 17")
    more = {"individual": {"column": "who", "rows": "together"}, "require": [{"k": 5}], "identifiers": ["i", *KEPT]}
    notes = ldiv_db.plan(con, policy(**more) | {"keep": ["card"]}).kept
    assert "300 of 300 rows have a value that nobody else has" in about("card", notes)


def test_counts_weigh_what_they_count(con: Any) -> None:
    make(con)
    con.execute("CREATE TABLE counts AS SELECT age, sex, zip, dx, ward, years, 3 AS n FROM people")
    counted = {**POLICY, "source": "counts", "keep": ["ward", "years"], "weight": "n", "require": [{"k": 2}]}
    notes = ldiv_db.plan(con, counted).kept
    assert "age follows from it in 100 %" in about("years", notes) and not about("ward", notes)


@pytest.mark.slow
def test_a_warehouse_counts_whom_it_singles_out_and_says_what_it_does_not(tmp_path: Path) -> None:
    sqlite3 = pytest.importorskip("sqlite3")
    with sqlite3.connect(tmp_path / "there.db") as there:
        there.execute("CREATE TABLE people (age INTEGER, sex TEXT, dx TEXT, w REAL, ward TEXT)")
        draw = random.Random(1)
        rows = [(draw.randint(20, 60), draw.choice("fm"), draw.choice("abc"), i / 7, "AB"[i % 2]) for i in range(200)]
        there.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
        there.commit()
        asked = {
            "source": "people", "target": {"table": "released"}, "quasi_identifiers": ["age", "sex"],
            "sensitive": ["dx"], "keep": ["w", "ward"], "require": [{"k": 5}],
        }  # fmt: skip
        notes = ldiv_db.run(there, asked).notes
    assert "200 of 200 rows have a value that nobody else has" in about("w", notes) and not about("ward", notes)
    assert "what follows from kept columns (w, ward) is not measured in a warehouse" in notes


@search(5, draw=draws)
def test_what_follows_is_what_guesses_get_right(con: Any, draw: random.Random) -> None:
    """Against the definition in plain Python, with NULLs, weights and people."""
    values = [None, *"abcdefghijklmnop"[: draw.randint(1, 16)]]
    rows = [
        (draw.choice(values), draw.choice(values[:4]), draw.choice([None, 1, 2, 3]), draw.randint(1, 3))
        for _ in range(draw.choice([1, 20, 50]))
    ]
    rows = [(k, draw.choice([o, k]), p, n) for k, o, p, n in rows]
    one, other = draw.choice([("k", "o"), ("rows", "pair"), ("pair", "weight")])  # as columns that are made of them
    con.execute(f"CREATE OR REPLACE TABLE t ({one} VARCHAR, {other} VARCHAR, p INTEGER, n INTEGER)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
    weight, person = draw.choice([(None, None), ("n", None), (None, "p")])
    named = {"weight": Identifier(weight) if weight else None, "person": Identifier(person) if person else None}
    (found,) = measure_kept(Engine(con), Relation(("t",)), {"k": Identifier(one)}, {"o": Identifier(other)}, **named)
    told = [(k, o, p, 1) if weight is None else (k, o, None, n) for k, o, p, n in rows]
    whose = [p for _, _, p, _ in rows] if person else None
    assert (found.single, found.few) == tuple(oracle.held_by_at_most(told, whose, most) for most in (1, 2))
    for follows in found.follows:
        assert follows.from_kept == oracle.follows([(k, o, n) for k, o, _, n in told])
        assert follows.from_other == oracle.follows([(o, k, n) for k, o, _, n in told])
