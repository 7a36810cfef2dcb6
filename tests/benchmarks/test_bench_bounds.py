"""The bound that the benchmarks print beside losses, against brute force over all regions."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from times import seeds

import ldiv_db
from ldiv_db.policy.reading import parse_policy
from ldiv_db.policy.resolve import resolve
from ldiv_db.recoding.encode import read_source
from tests.benchmarks.bounds import lower_bounds
from tests.benchmarks.command import engine_on

#: Two trees as level files, leaf to root; a leaf of the second stands higher than the others.
TREES = {"city": ["a;ab;*", "b;ab;*", "c;cd;*", "d;cd;*"], "job": ["p;pq;*", "q;pq;*", "r;*"]}
ASKED = [("distinct", 3), ("entropy", 2), ("frequency", 2.5), ("k", 4), ("t_closeness", 0.3)]


def place(con: Any, folder: Path, seed: int) -> list[tuple[Any, ...]]:
    """Rows of the tables, of which every leaf occurs."""
    draw = random.Random(seed)
    rows = [(draw.randrange(8), draw.choice("abcd"), draw.choice("pqr"), draw.choice("xyzw")) for _ in range(14)]
    rows += [(0, "a", "p", "x"), (7, "b", "q", "y"), (3, "c", "r", "z"), (4, "d", "r", "x")]
    con.execute("CREATE TABLE source (age INTEGER, city VARCHAR, job VARCHAR, s VARCHAR)")
    con.executemany("INSERT INTO source VALUES (?, ?, ?, ?)", rows)
    for name, lines in TREES.items():
        (folder / f"{name}.csv").write_text("\n".join(lines))
    return rows


def policy() -> dict[str, Any]:
    trees = {name: {"taxonomy": {"file": f"{name}.csv"}} for name in TREES}
    columns = {"age": {"numeric": True}, **trees}
    return {"source": "source", "target": "released", "quasi_identifiers": columns, "sensitive": ["s"],
            "require": [{"distinct": 2}], "seed": 1}  # fmt: skip


def nodes(name: str) -> list[frozenset[str]]:
    """The leaves of every node."""
    lines = [line.split(";") for line in TREES[name]]
    labels = {label for line in lines for label in line}
    return [frozenset(line[0] for line in lines if label in line) for label in labels]


def meets(asked: tuple[str, float], inside: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> bool:
    name, argument = asked
    found = {row[3] for row in inside}
    if name == "k":
        return len(inside) >= argument
    if name == "t_closeness":
        share = Fraction(sum(row[3] in found for row in rows), len(rows))
        return share >= 1 - Fraction(str(argument))
    return len(found) >= argument


def brute_force(asked: tuple[str, float], rows: list[tuple[Any, ...]]) -> float:
    """The mean over rows of the least loss of any region that is good enough."""
    ages = sorted({row[0] for row in rows})
    ranges = [(low, high) for low in ages for high in ages if low <= high]
    best = dict.fromkeys(rows, 1.0)
    for (low, high), city, job in product(ranges, nodes("city"), nodes("job")):
        inside = [row for row in rows if low <= row[0] <= high and row[1] in city and row[2] in job]
        if meets(asked, inside, rows):
            loss = ((high - low) / (ages[-1] - ages[0]) + (len(city) - 1) / 3 + (len(job) - 1) / 2) / 3
            for row in inside:
                best[row] = min(best[row], loss)
    return sum(best[row] for row in rows) / len(rows)


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(8))
def test_the_bound_is_that_of_the_cheapest_regions(con: Any, tmp_path: Path, seed: int) -> None:
    rows = place(con, tmp_path, seed)
    engine = engine_on(con)
    encoded = read_source(engine, resolve(engine, parse_policy(policy()), tmp_path).source).encode()
    found = lower_bounds(engine, encoded, ASKED)
    assert found == pytest.approx([brute_force(asked, rows) for asked in ASKED])
    engine.close_scratch()


@pytest.mark.heavy
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked[0])
def test_no_release_loses_less(con: Any, tmp_path: Path, asked: tuple[str, float]) -> None:
    rows = place(con, tmp_path, 1)
    engine = engine_on(con)
    encoded = read_source(engine, resolve(engine, parse_policy(policy()), tmp_path).source).encode()
    (bound,) = lower_bounds(engine, encoded, [asked])
    engine.close_scratch()
    result = ldiv_db.run(con, policy() | {"require": [{asked[0]: asked[1]}], "recode": "tree"}, folder=tmp_path)
    assert 0 < bound <= result.loss.lm_mean and len(rows) == result.loss.rows_published
