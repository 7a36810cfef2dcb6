"""The part of a class that is good by itself: as large as by trying all, and releases that lose less by it."""

import itertools
import random
from fractions import Fraction

import duckdb
import pytest
import tables
from hypothesis import strategies as st
from strategies import search

import ldiv_db
from ldiv_db.algorithms.local import peel
from ldiv_db.algorithms.local.limits import TRIES, Limits
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


@pytest.mark.parametrize(
    ("share", "difference"), [("1/2", "1"), ("1/3", "1"), ("1", "0.2"), ("1", "0.35"), ("2/5", "0.3")]
)
@search(2, classes=st.lists(st.tuples(*[st.integers(0, 5)] * len(TABLE)), min_size=1, max_size=20))
def test_a_class_keeps_the_most_rows_that_are_good_together(engine, share, difference, classes):
    share, difference = Fraction(share), Fraction(difference)
    table = engine.load("table", {"code": "INTEGER", "rows": "BIGINT"}, list(enumerate(TABLE, 1)))
    bounds = {"share": float(share), "difference": float(difference)}
    shares = engine.materialise("shares", "local/peel/list_shares", dictionary=table, **bounds)
    rows = [(no, code, c) for no, counts in enumerate(classes) for code, c in enumerate(counts, 1) if c]
    columns = {"class_no": "BIGINT", "s1": "INTEGER", "rows": "BIGINT"}
    limits = Limits(shares, float(difference), share < 1, Identifier("s1"))
    bounded = limits.bound(engine.materialise, engine.load("counts", columns, rows), 2)
    fitted = engine.columns(limits.fit(engine.materialise, bounded, 2))
    most = dict(engine.columns(bounded, "class_no", "bound"))
    for no, counts in enumerate(classes):
        assert most.get(no, 0) == bound(counts, share, difference)
        kept = [sum(n for found, at, n in fitted if (found, at) == (no, code)) for code in range(1, len(TABLE) + 1)]
        best = largest(counts, share, difference)
        assert all(k <= c for k, c in zip(kept, counts, strict=True))
        assert not sum(kept) or is_within(kept, share, difference)
        assert sum(kept) == best or bound(counts, share, difference) - best >= TRIES


def made(rows):
    """The result of a run, and how many rows are published."""
    draw, people = random.Random(1), []
    for _ in range(rows):
        sex, town = draw.randrange(2), draw.randrange(6)
        work = draw.randrange(4) if draw.random() < 1 / 3 else 2 * sex + town % 2
        people.append(("mf"[sex], f"town {town}", draw.randrange(30), ("cook", "smith", "nurse", "clerk")[work]))
    policy = {
        "source": "people", "target": {"table": "released"}, "sensitive": ["work"], "seed": 3, "algorithm": "peel",
        "quasi_identifiers": {"sex": {}, "town": {}, "age": {"taxonomy": {"ranges": [5, 10]}}},
        "require": [{"t_closeness": 0.2}],
    }  # fmt: skip
    with duckdb.connect(config={"threads": 1}) as con:
        columns = {"sex": "VARCHAR", "town": "VARCHAR", "age": "INTEGER", "work": "VARCHAR"}
        tables.fill(con, "people", columns, people)
        return ldiv_db.run(con, policy), con.execute("SELECT count(*) FROM released").fetchone()[0]


@pytest.mark.slow
def test_it_loses_less_and_many_rows_ask_a_share_of_the_vectors(monkeypatch):
    rows = 300
    result, published = made(rows)
    assert all(found["holds"] for found in result.requirements) and published == rows
    asked = result.search["vectors"]
    with monkeypatch.context() as patch:
        patch.setattr(peel, "MOST_FITTED", rows * asked // 3)
        fewer, published = made(rows)
    # A third of the vectors and the last, that of all labels at the top, by which any rows can be published.
    assert fewer.search["vectors"] == -(-(asked - 1) // 3) + 1 < asked
    assert all(found["holds"] for found in fewer.requirements) and published == rows
    monkeypatch.setattr(peel.Limits, "of", lambda task: None)
    assert result.loss.lm_mean < 0.9 * made(rows)[0].loss.lm_mean
