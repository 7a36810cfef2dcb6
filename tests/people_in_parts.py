"""A table of people and its policy, for what divides tables."""

import random

COLUMNS = {"rid": "INTEGER", "age": "INTEGER", "zip": "VARCHAR", "pay": "DOUBLE", "s": "VARCHAR", "u": "VARCHAR"}


def people(n, seed=1):
    """Rows with NULLs, ties and equal rows, and a column whose values all differ."""
    draw = random.Random(seed)
    return [
        (
            rid,
            draw.choice([None, *range(20, 60)]),
            draw.choice(["1001", "1002", "1101", "2001", "2002"]),
            draw.choice([None, draw.random() * 1000]),
            draw.choice(["flu", "flu", "cold", "HIV", "ü", ""]),
            draw.choice("xyz"),
        )
        for rid in range(n)
    ]


def policy_of(algorithm, require, part_rows, **more):
    return {
        "source": "source",
        "target": {"table": "out", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [4, 2]}}, "pay": {}},
        "sensitive": ["s"],
        "keep": ["rid", "u"],
        "require": require,
        "algorithm": algorithm,
        "output": {"class_id": True},
        "seed": 3,
        "part_rows": part_rows,
    } | more
