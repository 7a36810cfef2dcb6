"""What a plan by counts publishes of each combination of codes is, row by row, what the release of that plan is."""

import random

import pytest
from cells_here import publish_counts
from tables import fill

from ldiv_db.database.engine import Engine
from ldiv_db.recoding.recode import PUBLISHED, published_rows

TREE = {"taxonomy": {"flat": True}}
CASES = {
    "vioRec": ({"name": "cuts"}, {"threshold": 0.5}),
    "vioSA": ({"name": "cuts", "scheme": "vioSA"}, {"threshold": 0.5}),
    "allRec": ({"name": "cuts", "scheme": "allRec"}, {"threshold": 0.6}),
    "tds": ({"name": "tds"}, {"threshold": 0.7}),
    "tp": ({"name": "tp"}, {"frequency": 2}),
    "tp_plus": ({"name": "tp_plus"}, {"frequency": 2}),
}


def source(con, seed, rows=60):
    draw = random.Random(seed)
    found = [(draw.choice([1, 2, 3, None]), draw.choice(["é", "x"]), draw.choice("aabbc")) for _ in range(rows)]
    fill(con, "source", {"age": "INTEGER", "town": "VARCHAR", "s": "VARCHAR"}, found)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_combinations_publish_what_rows_do(con, name, seed):
    source(con, seed)
    algorithm, required = CASES[name]
    policy = {"source": "source", "target": "never", "quasi_identifiers": {"age": TREE, "town": TREE}, "nulls": "value"}
    policy |= {"sensitive": ["s"], "algorithm": algorithm, "require": [required], "seed": seed}
    engine = Engine(con)
    encoded, recoding, found = publish_counts(engine, policy)
    with published_rows(engine, encoded, recoding) as params:
        release = engine.materialise("release", PUBLISHED, **params)
    expected = con.execute(f"SELECT age, town, s FROM {release.sql()} ORDER BY ALL").fetchall()
    names = "q1_label, q2_label, t_s1"
    told = f"SELECT {names} FROM {found.sql()}, range(high - low + 1) AS u(i) ORDER BY ALL"
    assert con.execute(told).fetchall() == expected
    assert len(expected) > 0
    whole = f"SELECT count(*) FROM {found.sql()} WHERE whole AND (q1, q2, s1) IN (SELECT (q1, q2, s1) FROM"
    whole += f" {found.sql()} GROUP BY q1, q2, s1 HAVING count(*) > 1)"
    assert con.execute(whole).fetchone() == (0,)
