"""A division of cells of counts is that of their rows: what Spark moves ends in the parts that it would have here."""

import random
from collections import Counter

import pytest
from cells_here import divide_cells
from tables import fill
from times import seeds

from ldiv_db.solving import divide as division
from ldiv_db.solving import nodes as positions

COLUMNS = {
    "age": "INTEGER",
    "zip": "VARCHAR",
    "pay": "DECIMAL(8, 2)",
    "s": "VARCHAR",
    "u": "VARCHAR",
    "note": "VARCHAR",
}
CASES = {
    "refine": ("bsgi", [{"unique_distinct": 2}]),
    "strict": ("mondrian", [{"distinct": 2}, {"k": 3}]),
    "relaxed": ({"name": "mondrian", "split": "relaxed"}, [{"distinct": 2}]),
    "topdown": ("topdown", [{"entropy": 1.2}]),
    "t-closeness": ("peel", [{"t_closeness": 0.5}]),
}


def people(draw, n):
    """Many equal rows, some but for what is kept, and one combination in half of them."""
    usual = (30, "1001", 10, "flu", "x")

    def row():
        other = (
            draw.choice([None, 20, 30, 31, 40]),
            draw.choice(["1001", "1002", "2001"]),
            draw.choice([None, 10, 20.5, draw.randint(0, 99)]),
            draw.choice(["flu", "cold", "HIV"]),
            draw.choice("xy"),
        )
        if draw.random() < 0.4:
            other = (*usual[:3], *other[3:])
        return (*other, draw.choice([None, "a", "é"]))

    return [row() for _ in range(n)]


@pytest.mark.heavy
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("seed", seeds(3, 30))
def test_cells_end_in_the_parts_of_their_rows(name, wide, seed, con, engine, monkeypatch):
    draw = random.Random(f"{name} {seed} {wide}")
    monkeypatch.setattr(positions, "GRAINS", 3 if wide else 1024)
    algorithm, require = CASES[name]
    fill(con, "source", COLUMNS, people(draw, draw.randint(40, 120)))
    policy = {
        "source": "source",
        "target": "never",
        "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [4, 2]}}, "pay": {}},
        "sensitive": ["s"] if name == "refine" or draw.random() < 0.5 else ["s", "u"],
        "require": [{**one, "sensitive": "s"} for one in require],
        "algorithm": algorithm,
        "seed": seed,
        "nulls": draw.choice(["value", "suppress"]),
    }
    policy["keep"] = ["note"] if "u" in policy["sensitive"] else ["u", "note"]
    part_rows = draw.choice([12, 25])
    task, made, cells = divide_cells(engine, policy, part_rows)
    found, encoded = division.divide(task, made, part_rows), task.encoded
    content = ", ".join(f"r.{column.name}" for column in cells.layout.order)
    theirs = con.execute(
        f"SELECT p.node, {content} FROM {found.rows.sql()} AS p JOIN {encoded.rows.sql()} AS r USING (row_id)"
    ).fetchall()
    ours = con.execute(f"SELECT r.weight, r.node, {content} FROM {cells.nodes.sql()} AS r").fetchall()
    counted = Counter()
    for weight, *cell in ours:
        assert weight > 0
        counted[tuple(cell)] += weight
    assert counted == Counter(theirs)
    assert len({node for node, *_ in theirs}) > 1 or name in ("strict", "t-closeness")
