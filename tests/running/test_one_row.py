"""Releases of random schemas against who knows one row: all their worlds keep what is promised."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError
from tests import one_row
from tests.running.schemas import drawn, fill

pytestmark = pytest.mark.usefixtures("no_remedies")

CHOICES = (
    ("patients", "stays", "labs"), ("patients", "stays", "scans"), ("patients", "stays"), ("patients", "visits"),
    ("patients", "orders"), ("stays", "labs"), ("stays", "scans"), ("visits",), ("patients", "stays", "visits"),
)  # fmt: skip


def released(seed: int) -> tuple[Any, Any, Any, bool]:
    """The people of a random schema, what is published of them, the largest share promised, and whether of each row."""
    rng = random.Random(seed)
    names, values = rng.choice(CHOICES), "abcdefghijkl"[: rng.randrange(4, 13)]
    people = drawn(rng, names, rng.randrange(4, 9), most=rng.randrange(1, 4), values=values)
    con = duckdb.connect(config={"threads": 1})
    fill(con, names, people)
    each, l = rng.random() < 0.3, rng.choice((2, 2, 3))
    required = {"frequency": l} | ({"each": "row"} if each else {})
    policy = one_row.policy_of(names, require=[required, {"k": 2}], seed=seed)
    ldiv_db.run(con, policy)
    assert ldiv_db.check(con, policy=policy, twice=True).holds
    return people, one_row.published(con, names), Fraction(1, l), each


#: Seeds of unlike schemas that can be released, three of them judged by each row or by tables of nobody's own.
UNLIKE = (4, 5, 9, 19, 36)


@pytest.mark.parametrize("seed", some([*UNLIKE, *sorted({*range(300)} - {*UNLIKE})], len(UNLIKE)))
def test_no_world_makes_anybody_surer_than_is_promised(seed: int) -> None:
    try:
        people, shown, bound, each = released(seed)
    except (InfeasibleError, PolicyError):
        return
    of_people = ["patients"] if all("patients" in tree for tree in shown.values()) else []
    found = one_row.surest(people, shown, of_people)
    sure = {column: share for column, share in found.items() if (column[0] == "each") is each}
    assert max(sure.values(), default=Fraction(0)) <= bound
