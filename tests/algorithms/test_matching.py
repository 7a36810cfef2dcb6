"""`matching`: the fewest stars for two sensitive values and l = 2, against every perfect matching."""

import itertools
import random
import sys

import oracle
import pytest
from refusals import refuses
from strategies import search, seeded
from tables import fill

import ldiv_db
from ldiv_db.algorithms.tp import matching
from ldiv_db.algorithms.tp.matching import Surplus, match, number_pairs

pytestmark = pytest.mark.usefixtures("no_remedies")

COLUMNS = {"a": "INTEGER", "b": "INTEGER", "c": "INTEGER", "secret": "VARCHAR", "rid": "INTEGER"}


def policy(name="matching", l=2):
    return {
        "source": "source", "target": {"table": "released", "if_exists": "replace"}, "keep": ["rid"],
        "quasi_identifiers": {name: {"numeric": True} for name in "abc"}, "sensitive": ["secret"],
        "require": [{"frequency": l}], "algorithm": name, "output": {"class_id": True}, "seed": 0,
    }  # fmt: skip


def draw_rows(draw, pairs, values=3):
    points = [tuple(draw.choice((*range(values), None)) for _ in "abc") for _ in range(2 * pairs)]
    return [(*point, "uv"[i % 2], i) for i, point in enumerate(points)]


def fewest_stars(rows):
    """By trying every perfect matching."""
    ours, theirs = ([row[:3] for row in rows if row[3] == value] for value in "uv")
    weights = [[2 * sum(x != y for x, y in zip(a, b, strict=True)) for b in theirs] for a in ours]
    return min(
        sum(row[i] for row, i in zip(weights, order, strict=True)) for order in itertools.permutations(range(len(ours)))
    )


def publish(con, rows, name="matching"):
    fill(con, "source", COLUMNS, rows)
    result = ldiv_db.run(con, policy(name))
    return result, con.execute("SELECT class_id, a, b, c, secret, rid FROM released").fetchall()


@search(1, draw=seeded)
def test_stars_are_the_fewest(con, draw):
    pytest.importorskip("networkx")
    rows = draw_rows(draw, draw.randint(1, 6), draw.choice([2, 3, 4]))
    result, release = publish(con, rows)
    assert result.loss.stars == result.search["stars"] == fewest_stars(rows) and result.search["optimal"]
    assert sorted(row[4:] for row in release) == sorted(row[3:] for row in rows)
    assert not oracle.violations([(row[0], row[4]) for row in release], "frequency", 2)
    assert not oracle.violations([(row[1:4], row[4]) for row in release], "frequency", 2)


def test_large_groups_are_matched_by_their_counts(con):
    """Thousands of rows in few groups; equal rows pair off, and the optimum is that of the rest."""
    pytest.importorskip("networkx")
    counts = {(0, 0, 0): (500, 100), (0, 0, 1): (100, 300), (0, 1, 1): (50, 150), (1, 1, 1): (0, 100)}
    rows = [(*p, v, 0) for p, n in counts.items() for v, m in zip("uv", n, strict=True) for _ in range(m)]
    rows = [(*row[:4], i) for i, row in enumerate(rows)]
    result, release = publish(con, rows)
    assert result.loss.stars == 2 * (200 * 1 + 100 * 2 + 100 * 3)
    assert len(release) == len(rows) and result.search["matched_groups"] == 4


@pytest.mark.slow
def test_the_seed_draws_and_order_does_not_matter(con):
    pytest.importorskip("networkx")
    rows = draw_rows(random.Random(8), 6)
    first = sorted(publish(con, rows)[1])
    assert sorted(publish(con, rows[::-1])[1]) == first


def test_pairs_have_classes_of_their_own():
    assert number_pairs([(1, 3, 2), (1, 4, 1), (2, 4, 2)], 9) == [
        (1, 0, 1, 10), (3, 0, 1, 10), (1, 2, 2, 12), (4, 0, 0, 12), (2, 0, 1, 13), (4, 1, 2, 13),
    ]  # fmt: skip
    assert match([]) == []


def test_what_it_cannot_do_is_refused(con):
    pytest.importorskip("networkx")
    fill(con, "source", COLUMNS, [(i, 0, 0, "uvw"[i % 3], i) for i in range(12)])
    for l in (2, 3):
        with refuses("algorithm.name") as told:
            ldiv_db.run(con, policy(l=l))
        assert f"takes l = 2 and two sensitive values, these are l = {l} and 3" in str(told.value)


def test_a_size_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(matching, "MOST_PAIRS", 3)
    groups = [Surplus(i, i % 2, 1, (i,)) for i in range(1, 5)]
    with pytest.raises(ldiv_db.InfeasibleError, match="at most 3 pairs of groups to be matched, these are 4"):
        match(groups)


def test_without_the_library_it_says_what_to_install(con, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    fill(con, "source", COLUMNS, draw_rows(random.Random(1), 3))
    with pytest.raises(ldiv_db.PolicyError, match=r"needs networkx.*ldiv-db\[matching\]"):
        ldiv_db.run(con, policy())
