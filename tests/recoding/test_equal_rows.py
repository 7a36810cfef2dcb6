"""Equal rows as one, with their weight: what becomes of them is what becomes of the rows one by one."""

import random
from types import SimpleNamespace

from strategies import draws, search

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.recoding.encoded import WEIGHT

AXES = [SimpleNamespace(code=Identifier(name), null_code=None) for name in ("q1", "q2")]
POSITIONS = [SimpleNamespace(axis=a, number=Value(i), grain=None, coarse=None) for i, a in enumerate(AXES, 1)]
SENSITIVE = SimpleNamespace(code=Identifier("s1"))
CODES = [*(axis.code for axis in AXES), SENSITIVE.code]
PARAMS = {"positions": POSITIONS, "sensitive": SENSITIVE}
NODE = dict.fromkeys(("row_id", "q1", "q2", "s1", "node", "classes"), "BIGINT")


def random_nodes(draw: random.Random, l: int) -> list[tuple[int, ...]]:
    """The rows of some nodes: k classes, l * k rows, no value in more than k of them, many of them equal."""
    rows, number = [], 0
    for node in range(1, draw.randint(1, 4) + 1):
        classes = draw.randint(1, 9)
        values = [value for _ in range(classes) for value in draw.sample(range(1, l + 3), l)]
        rows += [(draw.randint(0, 2), draw.randint(0, 1), value, node, classes) for value in values]
    numbered = []
    for row in sorted(rows) if draw.random() < 0.7 else rows:
        number += draw.choice([1, 1, 1, 2])
        numbered.append((number, *row))
    return numbered


def expanded(con, nodes: Relation) -> list[tuple[int, int, int]]:
    """(row_id, node, classes) of all that weighted rows stand for."""
    found = con.execute(f"SELECT row_id, weight, node, classes FROM {nodes.sql()}").fetchall()
    return sorted((row_id + i, node, classes) for row_id, weight, node, classes in found for i in range(weight))


def grouped(engine: Engine, rows: list[tuple[int, ...]]) -> Relation:
    """The nodes' rows, equal ones as one."""
    made = []
    for node in {row[4] for row in rows}:
        own = engine.load("rows", NODE, [row for row in rows if row[4] == node])
        classes = next(row[5] for row in rows if row[4] == node)
        found = engine.materialise("grouped", "bsgi/group_rows", rows=own, codes=CODES, classes=Value(classes))
        columns = ("row_id", "q1", "q2", "s1", "weight", "classes")
        made += [(*row, node) for row in engine.columns(found, *columns)]
    types = {**NODE, "weight": "BIGINT"}
    order = ("row_id", "q1", "q2", "s1", "weight", "classes", "node")
    return engine.load("nodes", {name: types[name] for name in order}, made)


def splits_of(draw: random.Random, engine: Engine, rows: list[tuple[int, ...]]) -> dict[int, tuple[int, int, int]]:
    """For each node of two classes or more its axis, its classes and those of its left side."""
    sizes = {row[4]: row[5] for row in rows}
    return {node: (draw.randint(1, 2), k, draw.randint(1, k - 1)) for node, k in sizes.items() if k > 1}


def loaded(engine: Engine, splits: dict[int, tuple[int, int, int]]) -> Relation:
    columns = {"node": "BIGINT", "axis": "INTEGER", "classes": "BIGINT", "left_classes": "BIGINT"}
    return engine.load("splits", columns, [(node, *split) for node, split in splits.items()])


def halves(rows: list[tuple[int, ...]], l: int, splits: dict[int, tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Clipped bisection row by row, by its definition."""
    found = []
    for node, (axis, classes, left) in splits.items():
        own = sorted((row for row in rows if row[4] == node), key=lambda row: (row[axis], row[0]))
        sided = []
        for row in own:
            bucket = [other for other in own if other[3] == row[3]]
            place = bucket.index(row) + 1
            side = 0 if place <= len(bucket) - (classes - left) else 2 if place > left else 1
            sided.append((side, row[axis], row[0]))
        for place, (_, _, row_id) in enumerate(sorted(sided), 1):
            goes_left = place <= l * left
            found.append((row_id, 2 * node + (not goes_left), left if goes_left else classes - left))
    return sorted(found)


@search(5, draw=draws)
def test_equal_rows_stand_for_themselves(con, draw):
    """Whatever the numbers of rows, every row is stood for once, by a row with its codes."""
    engine = Engine(con)
    rows = random_nodes(draw, 3)
    found = engine.columns(grouped(engine, rows), "row_id", "q1", "q2", "s1", "weight")
    stood_for = sorted((first + i, *codes) for first, *codes, weight in found for i in range(weight))
    assert stood_for == sorted(row[:4] for row in rows)


@search(5, draw=draws)
def test_nodes_split_as_row_by_row(con, draw):
    engine = Engine(con)
    l = draw.randint(2, 4)
    rows = random_nodes(draw, l)
    splits = splits_of(draw, engine, rows)
    params = {
        "nodes": grouped(engine, rows), "splits": loaded(engine, splits), "l": Value(l), "weight": WEIGHT, "others": (),
        "wanting": (), "cells": None, "width": Value(0), **PARAMS,
    }  # fmt: skip
    split = engine.materialise("split", "bsgi/split_nodes", **params)
    assert expanded(con, split) == halves(rows, l, splits)


@search(5, draw=draws)
def test_cells_split_as_row_by_row(con, draw):
    """Sides have their classes' rows, no value has more of them than classes, and weights change nothing."""
    engine = Engine(con)
    l = draw.randint(2, 4)
    rows = random_nodes(draw, l)
    splits = splits_of(draw, engine, rows)
    scales = engine.load("scales", {"axis": "INTEGER"}, [(1,), (2,)])
    found = []
    for nodes, weight in ((grouped(engine, rows), WEIGHT), (engine.load("nodes", NODE, rows), None)):
        params = {"nodes": nodes, "weight": weight, **PARAMS}
        counts = engine.materialise(
            "counts", "bsgi/count_positions", scales=scales, by_bucket=True, simple=Value(1), **params
        )
        cells = engine.materialise("cells", "bsgi/cut_cells", counts=counts, splits=loaded(engine, splits), l=Value(l))
        split = engine.materialise("split", "bsgi/split_cells", cells=cells, splits=loaded(engine, splits), **params)
        found.append(expanded(con, split) if weight else sorted(engine.columns(split, "row_id", "node", "classes")))
    assert found[0] == found[1]
    values = {row[0]: row[3] for row in rows}
    sides: dict[tuple[int, int], list[int]] = {}
    for row_id, node, classes in found[0]:
        sides.setdefault((node, classes), []).append(values[row_id])
    for (_, classes), own in sides.items():
        assert len(own) == l * classes and max(map(own.count, own)) <= classes
