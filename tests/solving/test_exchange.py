"""Exchanges: loss never rises, classes keep their sizes and their different values, rows are conserved."""

import random
from collections import Counter

import duckdb
import pytest
from refusals import refuses
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.algorithms.bsgi import bisection as boundaries


def random_rows(seed, n):
    """Rows (rid, number, town, secret): numbers and towns with NULLs, a secret value in at most a third."""
    draw = random.Random(seed)
    towns = ["a1", "a2", "a3", "b1", "b2", None]
    return [
        (i, draw.choice([None, *range(30)]), draw.choice(towns), f"s{draw.randrange(9) if i % 3 else i % 7}")
        for i in range(n)
    ]


def policy(l, rounds, tree, **changes):
    base = {
        "source": "source", "target": {"table": "released", "if_exists": "replace"},
        "quasi_identifiers": {"number": {"numeric": True}, "town": {"taxonomy": {"file": tree}, "weight": 2}},
        "sensitive": ["secret"], "keep": ["rid"], "require": [{"unique_distinct": l}],
        "algorithm": {"name": "bsgi", "select": "refine", "exchange": rounds, "residue": "suppress"},
        "output": {"class_id": True}, "seed": 0,
    }  # fmt: skip
    return base | changes


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    path = tmp_path_factory.mktemp("trees") / "town.json"
    path.write_text('{"*": {"A": {"a1": {}, "a2": {}, "a3": {}}, "B": {"b1": {}, "b2": {}}}}')
    return str(path)


def release_of(rows, wanted, threads=2):
    with duckdb.connect(config={"threads": threads}) as con:
        columns = {"rid": "INTEGER", "number": "INTEGER", "town": "VARCHAR", "secret": "VARCHAR"}
        fill(con, "source", columns, rows)
        result = ldiv_db.run(con, wanted)
        released = con.execute("SELECT class_id, rid, number, town, secret FROM released ORDER BY rid").fetchall()
        return result, released


@pytest.mark.parametrize("l", some([3, 2, 4]))
@pytest.mark.parametrize(("seed", "n"), some([(1, 24), (2, 101)]))
def test_classes_stay_distinct_and_rows_are_conserved(tree, l, seed, n):
    rows = random_rows(seed, n)
    plain, before = release_of(rows, policy(l, 0, tree))
    improved, after = release_of(rows, policy(l, 8, tree))
    assert [row[1] for row in after] == [row[1] for row in before], "the same rows are published"
    secrets = {row[0]: row[3] for row in rows}
    classes = {}
    for class_id, rid, _, _, secret in after:
        assert secret == secrets[rid]
        classes.setdefault(class_id, []).append(secret)
    assert all(len(members) == len(set(members)) == l for members in classes.values())
    assert improved.loss.classes == plain.loss.classes == len(classes)
    assert plain.search["exchanges"] == [] and sum(improved.search["exchanges"]) > 0
    assert 1 <= improved.search["exchange_rounds"] == len(improved.search["exchanges"]) <= 8
    # Costs are LM by weight: the town weighs twice.
    lost, lost_before = (
        found.loss.lm_by_column["number"] + 2 * found.loss.lm_by_column["town"] for found in (improved, plain)
    )
    assert lost < lost_before


@pytest.mark.parametrize("n", some([3, 2, 4, 5]))
def test_the_smallest_tables(tree, n):
    rows = [(i, i, "a1", f"s{i}") for i in range(n)]
    result, released = release_of(rows, policy(2, 6, tree, algorithm={"name": "bsgi", "select": "refine"}))
    assert len(released) == n and result.loss.classes == n // 2


def test_rounds_are_a_number_from_zero(tree):
    for wrong in (-1, "many", 1.5):
        with refuses("algorithm.exchange"):
            release_of(random_rows(7, 20), policy(2, wrong, tree))


@pytest.mark.parametrize(("l", "seed"), some([pytest.param(3, 0), pytest.param(2, 1)]))
def test_large_nodes_are_cut_by_counts_into_valid_classes(tree, monkeypatch, l, seed):
    """What large tables go through, on small ones: forced rows are counted, and only cells that are cut are ordered."""
    monkeypatch.setattr(boundaries, "FORCED", 1)
    monkeypatch.setattr(boundaries, "MANY_ROWS", 0)
    monkeypatch.setattr(boundaries, "GRAINS", 4)
    rows = random_rows(seed, 90 + 50 * seed)
    result, released = release_of(rows, policy(l, 0, tree, seed=seed))
    sizes = Counter(row[0] for row in released)
    assert set(sizes.values()) == {l} and len(sizes) == result.loss.classes
    assert len({(row[0], row[4]) for row in released}) == len(released) == l * result.loss.classes
