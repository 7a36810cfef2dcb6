"""What the form of a published table says: the order of rows, numbers of classes, what lies beside it."""

from __future__ import annotations

import random
from itertools import groupby, pairwise
from typing import Any

import duckdb
import pytest
from strategies import draws, search, some
from tables import fill

import ldiv_db


def form(con: Any, table: str, *words: Any, **more: Any) -> Any:
    (attack,) = [attack for attack in ldiv_db.attack(con, table, *words, **more).attacks if attack.name == "form"]
    return attack


def stands_in_order(values: list[tuple[Any, ...]]) -> bool:
    """Whether the values rise or fall, NULL before or after all others."""
    for null in (-1, 99):
        ranks = [tuple(null if part is None else part for part in value) for value in values]
        if ranks in (sorted(ranks), sorted(ranks, reverse=True)):
            return True
    return False


@search(2, draw=draws)
def test_classes_with_an_order_are_those_that_brute_force_finds(draw: random.Random, con: Any) -> None:
    width = draw.choice([1, 2])
    values = [None, 1, 2, 10] if draw.random() < 0.5 else [1, 9, 10]
    rows = [(draw.choice([1, 2, 3, None]), *(draw.choice(values) for _ in range(width))) for _ in range(20)]
    if draw.random() < 0.5:
        rows.sort(key=lambda row: (row[0] or 0, draw.random()))
    names = ["s", "t"][:width]
    fill(con, "published", {"age": "INTEGER", **dict.fromkeys(names, "INTEGER")}, rows)
    classes: dict[Any, list[Any]] = {}
    for age, *shown in rows:
        classes.setdefault(age, []).append(tuple(shown))
    unordered = [shown for shown in classes.values() if not stands_in_order(shown)]
    found = form(con, "published", ["age"], names)
    assert found.figures["classes_with_an_order"] == len(unordered)
    assert found.gains[0].gain == sum(map(len, unordered)) / 20 and found.gains[0].bound is None and found.holds is None


@search(2, draw=draws)
def test_numbers_against_labels_are_those_that_brute_force_finds(draw: random.Random, con: Any) -> None:
    labels = [(draw.choice([None, 1, 2]), draw.choice("ab")) for _ in range(8)]
    rows = [(number, *label, "x") for number, label in enumerate(labels) for _ in range(draw.randint(1, 3))]
    draw.shuffle(rows)
    fill(con, "published", {"class_id": "BIGINT", "age": "INTEGER", "town": "VARCHAR", "s": "VARCHAR"}, rows)
    falls = sum((a or 0, x) > (b or 0, y) for (a, x), (b, y) in pairwise(labels))
    found = form(con, "published", ["age", "town"], "s", class_column="class_id")
    assert found.figures["numbers_against_labels"] == falls


@pytest.mark.slow
@pytest.mark.parametrize("name", some(["rows.parquet", "rows.csv"]))
@pytest.mark.parametrize("threads", some([4, 1]))
def test_rows_of_files_stand_as_they_are_written(name: str, threads: int, tmp_path: Any) -> None:
    """Whatever settings say of orders: with many rows, so that several threads would read them."""
    with duckdb.connect(config={"threads": threads}) as con:
        con.execute("CREATE TABLE t AS SELECT i // 4 AS age, i % 4 AS s FROM range(150000) AS r(i)")
        con.execute(f"COPY t TO '{tmp_path / name}'")
        con.execute(f"COPY (FROM t ORDER BY hash(age, s)) TO '{tmp_path / ('shuffled ' + name)}'")
        con.execute("SET preserve_insertion_order = false")
        assert form(con, str(tmp_path / name), ["age"], "s").gains[0].gain == 0
        assert form(con, str(tmp_path / f"shuffled {name}"), ["age"], "s").gains[0].gain > 0.5


def test_what_lies_beside_a_table_is_counted(tmp_path: Any) -> None:
    """In a file of its own nothing does; in the source's there are the source, the ledger and dropped blocks."""
    path = tmp_path / "release.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE published AS SELECT 1 AS age, 'flu' AS s")
        assert form(con, "published", ["age"], "s").figures == {
            "classes_with_an_order": 0, "other_tables": 0, "free_bytes": 0,
        }  # fmt: skip
        con.execute("CREATE TABLE dropped AS SELECT random() AS x FROM range(200000)")
        con.execute("CREATE VIEW v AS SELECT 1 AS one")
        con.execute("CHECKPOINT")
        con.execute("DROP TABLE dropped")
        con.execute("CHECKPOINT")
        figures = form(con, "published", ["age"], "s").figures
        assert figures["other_tables"] == 1 and figures["free_bytes"] > 1_000_000
        con.execute(f"COPY published TO '{tmp_path / 'a.parquet'}'")
        con.execute(f"COPY published TO '{tmp_path / 'b.parquet'}' (KV_METADATA {{source: 'clinic 7'}})")
        assert form(con, str(tmp_path / "a.parquet"), ["age"], "s").figures["metadata_entries"] == 0
        assert form(con, str(tmp_path / "b.parquet"), ["age"], "s").figures["metadata_entries"] == 1


def test_the_source_in_its_own_order_has_one(con: Any) -> None:
    """The attack itself: rows in the order of the source, of whom everybody's place is known, tell all values."""
    draw = random.Random(1)
    people = [(place, place // 5, draw.choice("abcde")) for place in range(100)]
    fill(con, "published", {"age": "INTEGER", "s": "VARCHAR"}, [row[1:] for row in people])
    assert form(con, "published", ["age"], "s").gains[0].gain > 0.5
    # Who is told by the order of a class's rows: everybody. By sorted values: whoever stands where he would anyway.
    for order, least, most in ((None, 100, 100), ("s", 20, 60)):
        rows = con.execute(f"SELECT age, s FROM published ORDER BY {order or 'rowid'}").fetchall()
        classes = {age: [s for _, s in of] for age, of in groupby(sorted(rows, key=lambda r: r[0]), lambda r: r[0])}
        right = sum(classes[age][place % 5] == value for place, age, value in people)
        assert least <= right <= most
