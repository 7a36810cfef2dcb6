"""What a reader takes for one value: the figures of the warnings, against plain Python on random tables."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import defaultdict
from fractions import Fraction
from typing import Any

from strategies import search, seeded

import ldiv_db
from ldiv_db.requirements import Attribute, RequirementSpec
from ldiv_db.requirements.reading import warn_of_values

TEXTS = [None, "Flu", "flu", " FLU\t", "HIV", "hiv\u00a0", "É", "e\u0301", "cold"]
NUMBERS = [None, 0, 1, 2, 50, 51, 99, 100, 300]


def folded(value: str | None) -> str | None:
    """Without blanks at its ends, in small letters, composed."""
    return None if value is None else unicodedata.normalize("NFC", re.sub(r"^\s+|\s+$", "", value).lower())


def table_of(con: Any, kind: str, rows: list[tuple[int, Any]]) -> dict[int, list[Any]]:
    con.execute(f"CREATE OR REPLACE TABLE t (q INTEGER, s {kind})")
    con.executemany("INSERT INTO t VALUES (?, ?)", rows)
    classes = defaultdict(list)
    for key, value in rows:
        classes[key].append(value)
    return classes


def warnings(con: Any, require: Any = "distinct:2") -> str:
    (audit,) = ldiv_db.check(con, "t", ["q"], "s", [require])
    assert audit.as_dict()["warnings"] == list(audit.warnings)
    return "\n".join(audit.warnings)


def drawn(draw: random.Random, pool: list[Any]) -> list[tuple[int, Any]]:
    some = draw.sample(pool, draw.randint(2, len(pool)))
    return [(draw.randint(0, 5), draw.choice(some)) for _ in range(draw.randint(1, 20))]


@search(1, draw=seeded)
def test_spellings_are_counted(con: Any, draw: random.Random) -> None:
    rows = drawn(draw, TEXTS)
    classes, said = table_of(con, "VARCHAR", rows), warnings(con)
    groups = defaultdict(set)
    for _, value in rows:
        groups[folded(value)].add(value)
    several = {key: values for key, values in groups.items() if key is not None and len(values) > 1}
    found = re.search(r"s: (\d+) of its values, in (\d+) rows, are (\d+) if case, blanks and dashes are ignored", said)
    assert bool(found) == bool(several)
    if found:
        spellings, counted, values = map(int, found.groups())
        assert spellings == sum(map(len, several.values())) and values == len(several)
        assert counted == sum(folded(value) in several for _, value in rows)
    alone = [
        [value for value in members if value is not None]
        for members in classes.values()
        if len({value for value in members if value is not None}) > 1
        and len({folded(value) for value in members if value is not None}) == 1
    ]
    in_words = f", and {sum(map(len, alone)):,} rows are in classes of one of these alone" if alone else ";"
    assert not found or in_words in said


@search(1, draw=seeded)
def test_lone_values_and_near_ones_are_counted(con: Any, draw: random.Random) -> None:
    rows, kind = drawn(draw, NUMBERS), draw.choice(["INTEGER", "DECIMAL(9,2)", "DOUBLE"])
    classes, said = table_of(con, kind, rows), warnings(con)
    lone = [values for values in classes.values() if None in values and len(set(values)) == 2]
    numbers = [value for _, value in rows if value is not None]
    width = Fraction(max(numbers, default=0) - min(numbers, default=0), 100)
    near = []
    for values in classes.values():
        there = [value for value in values if value is not None]
        if len(set(there)) > 1 and max(there) - min(there) <= width:
            near.append(there)
    for members, words in ((lone, "classes of one value beside NULL"), (near, "classes whose values lie within 1/100")):
        line = f"{sum(map(len, members))} of {len(rows)} rows are in {words}"
        assert (line in said) == bool(members) == (words in said), (rows, said)
    assert "1/100" not in warnings(con, "range:k=1,e=1")
    assert not warnings(con, "k:2")


def test_what_values_alone_tell(engine: Any, con: Any) -> None:
    con.execute("CREATE TABLE v AS SELECT * FROM (VALUES ('A ', 3), ('a', 2), (NULL, 9)) AS v(value, rows)")
    values = engine.copy("values", ldiv_db.database.names.Relation(("v",)))
    required = [RequirementSpec("distinct", 2).resolve(None, Attribute("s"))]
    assert warn_of_values(engine, values, Attribute("s"), required) == [
        "s: NULL, in 9 of 14 rows, is judged as a value like any other",
        "s: 2 of its values, in 5 rows, are 1 if case, blanks and dashes are ignored;"
        " `same: [trim, casefold]` counts them as one",
    ]
    con.execute("CREATE TABLE w AS SELECT unnest([1, 2, 4, 40]) AS value, 1 AS rows")
    values = engine.copy("values", ldiv_db.database.names.Relation(("w",)))
    (line,) = warn_of_values(engine, values, Attribute("s", is_number=True, type="INTEGER"), required)
    assert line.startswith(
        "s: its 4 values count as different however near they are, half of the neighbouring ones 2 apart"
    )


def test_a_plan_and_a_run_say_it_and_of_which_column_nothing_is_required(con: Any) -> None:
    con.execute("CREATE TABLE t (q INTEGER, s VARCHAR, other VARCHAR)")
    rows = [(i, ["Flu", "flu", "HIV", "hiv "][i % 4]) for i in range(12)]
    con.executemany("INSERT INTO t VALUES (?, ?, 'HIV')", rows)
    policy = {"source": "t", "target": "o", "quasi_identifiers": {"q": {"numeric": True}}, "sensitive": ["s", "other"]}
    policy |= {"require": [{"distinct": 2, "sensitive": ["s"]}], "algorithm": "topdown", "seed": 1}
    nothing = "other: nothing is required of it, and a class may tell its values for certain"
    alike = "s: 4 of its values, in 12 rows, are 2 if case, blanks and dashes are ignored"
    result = ldiv_db.run(con, policy | {"target": "p"})
    for said in (ldiv_db.plan(con, policy).warnings, result.as_dict()["notes"]):
        assert len(said) == 2 and nothing in said and any(line.startswith(alike) for line in said)
    assert "audit of s" in str(result) and "audit of other" not in str(result)


def test_of_yes_and_no_nothing_is_said_to_be_near(con: Any) -> None:
    """Two values are as far apart as any: no reader takes them for one."""
    for values, told in (("[0, 1]", False), ("[0, 1, NULL]", False), ("[1, 2, 3]", True)):
        value = f"{values}[i % len({values}) + 1]"
        con.execute(f"CREATE OR REPLACE TABLE t AS SELECT i % 7 AS q, {value} AS s FROM range(42) AS r(i)")
        policy = {"source": "t", "target": "o", "quasi_identifiers": {"q": {"numeric": True}}, "sensitive": ["s"]}
        found = ldiv_db.plan(con, policy | {"require": [{"distinct": 2}], "nulls_sensitive": "value"}).warnings
        assert any("however near" in line for line in found) == told
