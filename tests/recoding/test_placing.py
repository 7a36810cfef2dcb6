"""People's places once some have given up rows: as if the places of all who are left were found anew."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import pytest

import ldiv_db
from ldiv_db.recoding.placing import _options, shapes_of, shapes_without
from ldiv_db.recoding.shapes import Shapes
from ldiv_db.solving import level_search


def drawn(con: duckdb.DuckDBPyConnection) -> None:
    """Twenty people with up to three stays each and up to two values of a stay, of which most are `x`."""
    chance = random.Random(1)
    con.execute("CREATE TABLE people (person INT, age INT)")
    con.execute("CREATE TABLE stays (stay INT, person INT, day INT, ill TEXT)")
    con.execute("CREATE TABLE labs (stay INT, found TEXT)")
    for person in range(20):
        con.execute("INSERT INTO people VALUES (?, ?)", [person, 20 + person])
        for turn in range(1 + chance.randrange(3)):
            stay = 3 * person + turn
            con.execute("INSERT INTO stays VALUES (?, ?, ?, ?)", [stay, person, turn, chance.choice("xxxabc")])
            for _ in range(chance.randrange(3)):
                con.execute("INSERT INTO labs VALUES (?, ?)", [stay, chance.choice("xxuv")])


POLICY = {
    "individual": "person",
    "tables": {
        "people": {
            "source": "people",
            "person": "person",
            "quasi_identifiers": {"age": {"numeric": True}},
            "target": "out.people",
        },
        "stays": {
            "source": "stays",
            "person": "person",
            "key": "stay",
            "order": "day",
            "sensitive": ["ill"],
            "target": "out.stays",
        },
        "labs": {"source": "labs", "parent": {"stay": "stays"}, "sensitive": ["found"], "target": "out.labs"},
    },
    "require": [{"frequency": 2}, {"k": 2}],
    "seed": 1,
    "algorithm": "topdown",
}


#: After so many rounds in which rows are given up a run is ended: the others are like these, and take seconds.
ROUNDS = 4


class Enough(Exception):
    """All rounds that are compared were."""


def places(engine: Any, shapes: Shapes) -> tuple[Any, ...]:
    """The rows of each person with the paths to them, and how many rows people of each shape may keep."""
    needs = ", ".join(need.column.sql() for need in shapes.needs)
    placed, paths, of_people = (one.sql() for one in (shapes.at.placed, shapes.at.paths, shapes.at.of_people))
    rows = engine.execute(
        f"SELECT p.person, row_id, member, {needs}, path FROM {placed} AS p JOIN {paths} USING (place)"
    )
    shaped: dict[int, set[int]] = {}
    for person, shape in engine.execute(f"SELECT person, shape_no FROM {of_people}"):
        shaped.setdefault(shape, set()).add(person)
    kept = Counter(option.kept for own in shapes.options.values() for option in own)
    options = [
        (sorted(shaped[shape]), sorted((one.rows, one.weight, kept[one.kept]) for one in own))
        for shape, own in shapes.options.items()
    ]
    assert all(shapes.people[shape] == len(shaped[shape]) for shape in shapes.options)
    return sorted(rows), sorted(options)


def test_rows_that_are_given_up_leave_the_places_that_all_others_would_be_found_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds = list[int]()

    def watched(engine: Any, stack: Any, shapes: Shapes, rows: Any) -> Shapes:
        found = shapes_without(engine, stack, shapes, rows)
        left = engine.select_among("left", stack.encoded.rows, found.at.placed, "row_id")
        of_left = replace(stack, encoded=replace(stack.encoded, rows=left))
        anew = shapes_of(engine, of_left, shapes.secret, shapes.most, shapes.busiest)
        # There may be fewer numbers of rows to keep now, where nobody has the most any more.
        options, _ = _options(engine, stack, anew.at.spots, shapes.caps, shapes.needs)
        anew = replace(anew, options=options)
        assert places(engine, found) == places(engine, anew)
        rounds.append(engine.count(shapes.at.placed) - engine.count(found.at.placed))
        if len(rounds) == ROUNDS:
            raise Enough
        return found

    monkeypatch.setattr(level_search, "shapes_without", watched)
    con = duckdb.connect(config={"threads": 1})
    drawn(con)
    with pytest.raises(Enough):
        ldiv_db.run(con, POLICY)
    assert all(rounds)
