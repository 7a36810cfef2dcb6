"""The part of a class that is good by itself: as large as by trying all, and releases that lose less by it."""

import itertools
import random
from fractions import Fraction

import duckdb
import pytest
import tables
from times import seeds

import ldiv_db
from ldiv_db.algorithms.local import peel
from ldiv_db.algorithms.local.limits import TRIES, Limits
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier

TABLE = (8, 5, 4, 3)


def is_within(kept, share, difference):
    """The shares of a class of `kept` rows of each value are at most `share`, and in all near those of the table."""
    size, whole = sum(kept), sum(TABLE)
    shares = [(Fraction(rows, size), Fraction(n, whole)) for rows, n in zip(kept, TABLE, strict=True)]
    exceeds = sum(max(0, found - there) for found, there in shares)
    return exceeds <= difference and all(found <= min(share, there + difference) for found, there in shares)


def largest(counts, share, difference):
    ways = itertools.product(*(range(rows + 1) for rows in counts))
    return max((sum(kept) for kept in ways if sum(kept) > 1 and is_within(kept, share, difference)), default=0)


def bound(counts, share, difference):
    """As `largest`, were there parts of rows: by trying sizes, the most that each value may have."""
    whole, found = sum(TABLE), 0
    for size in range(2, sum(counts) + 1):
        tops = [min(c, min(share, Fraction(n, whole) + difference) * size) for c, n in zip(counts, TABLE, strict=True)]
        near = sum(min(c, Fraction(n, whole) * size) for c, n in zip(counts, TABLE, strict=True))
        if sum(tops) >= size and near >= (1 - difference) * size:
            found = size
    return found


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize(
    ("share", "difference"), [("1/2", "1"), ("1/3", "1"), ("1", "0.2"), ("1", "0.35"), ("2/5", "0.3")]
)
def test_a_class_keeps_the_most_rows_that_are_good_together(seed, share, difference):
    share, difference, draw = Fraction(share), Fraction(difference), random.Random(seed)
    classes = [[draw.randint(0, 5) for _ in TABLE] for _ in range(40)]
    with duckdb.connect() as con:
        engine = Engine(con)
        table = engine.load("table", {"code": "INTEGER", "rows": "BIGINT"}, list(enumerate(TABLE, 1)))
        bounds = {"share": float(share), "difference": float(difference)}
        shares = engine.materialise("shares", "local/peel/list_shares", dictionary=table, **bounds)
        rows = [(no, code, c) for no, counts in enumerate(classes) for code, c in enumerate(counts, 1) if c]
        columns = {"class_no": "BIGINT", "s1": "INTEGER", "rows": "BIGINT"}
        limits = Limits(shares, float(difference), Identifier("s1"))
        fitted = engine.columns(limits.fit(engine, engine.load("counts", columns, rows), 2))
    for no, counts in enumerate(classes):
        kept = [sum(n for found, at, n in fitted if (found, at) == (no, code)) for code in range(1, len(TABLE) + 1)]
        best = largest(counts, share, difference)
        assert all(k <= c for k, c in zip(kept, counts, strict=True))
        assert not sum(kept) or is_within(kept, share, difference)
        assert sum(kept) == best or bound(counts, share, difference) - best >= TRIES


def made(con, threads, order, rows=1500):
    con.execute(f"SET threads = {threads}")
    draw, people = random.Random(1), []
    for _ in range(rows):
        sex, town = draw.randrange(2), draw.randrange(6)
        work = draw.randrange(4) if draw.random() < 1 / 3 else 2 * sex + town % 2
        people.append(("mf"[sex], f"town {town}", draw.randrange(30), ("cook", "smith", "nurse", "clerk")[work]))
    tables.fill(con, "all_people", {"sex": "VARCHAR", "town": "VARCHAR", "age": "INTEGER", "work": "VARCHAR"}, people)
    con.execute(f"CREATE TABLE people AS FROM all_people ORDER BY {order}")
    policy = {
        "source": "people", "target": {"table": "released"}, "sensitive": ["work"], "seed": 3, "algorithm": "peel",
        "quasi_identifiers": {"sex": {}, "town": {}, "age": {"taxonomy": {"ranges": [5, 10]}}},
        "require": [{"t_closeness": 0.2}],
    }  # fmt: skip
    return ldiv_db.run(con, policy), con.execute("FROM released ORDER BY ALL").fetchall()


def test_it_loses_less_and_publishes_the_same_in_any_order(monkeypatch):
    with duckdb.connect() as con, duckdb.connect() as other:
        result, rows = made(con, 1, "age, town")
        assert all(found["holds"] for found in result.requirements) and len(rows) == 1500
        assert made(other, 2, "work, hash(age)")[1] == rows
    monkeypatch.setattr(peel.Limits, "of", lambda task: None)
    with duckdb.connect() as con:
        assert result.loss.lm_mean < 0.8 * made(con, 1, "age")[0].loss.lm_mean


def test_many_rows_ask_a_share_of_the_vectors(monkeypatch):
    rows = 300
    with duckdb.connect() as con:
        whole = made(con, 1, "age", rows)[0]
    asked = whole.search["vectors"]
    monkeypatch.setattr(peel, "MOST_FITTED", rows * asked // 3)
    with duckdb.connect() as con:
        result, published = made(con, 1, "age", rows)
    # A third of the vectors and the last, that of all labels at the top, by which any rows can be published.
    assert result.search["vectors"] == -(-(asked - 1) // 3) + 1 < asked
    assert all(found["holds"] for found in result.requirements) and len(published) == rows
