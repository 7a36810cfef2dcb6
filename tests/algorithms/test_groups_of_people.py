"""Groups of people with several rows, of values that are written differently, and of harmless ones."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from fractions import Fraction

import duckdb
import oracle
import pytest
from hypothesis import strategies as st
from strategies import search, seeds, some
from tables import fill
from test_transparent_groups import groups_of_places

import ldiv_db
from ldiv_db.algorithms.decomposition.grouping import largest_l_quotas

pytestmark = pytest.mark.usefixtures("no_remedies")


@search(50, counts=st.lists(st.integers(1, 12), min_size=1, max_size=7), data=st.data())
def test_harmless_rows_are_seated_as_if_each_had_a_value_of_its_own(counts, data):
    counts.sort(reverse=True)
    l = data.draw(st.integers(1, len(counts)))
    free = data.draw(st.sets(st.integers(0, len(counts) - 1), max_size=2))
    groups, quotas = largest_l_quotas(counts, l, free=free)
    alone = sorted([n for i, n in enumerate(counts) if i not in free] + [1] * sum(counts[i] for i in free))[::-1]
    assert groups == len(oracle.draws(alone, l)) and sum(quotas) == groups * l
    for i, (quota, n) in enumerate(zip(quotas, counts, strict=True)):
        assert 0 <= quota <= (n if i in free else min(n, groups))


@pytest.mark.parametrize("values", some([[1, 1, 2, 2, 3], [1, 2, 2, 3, 3]]))
def test_nobodys_row_is_surer_than_its_share_where_groups_with_two_rows_of_a_person_are_given_up(con, values):
    """All ways to give the values to the rows of people, and all orders in which coins deal these."""
    whose = (0, 0, 1, 1, 2)
    rows, worlds = range(len(values)), sorted(set(itertools.permutations(values)))
    formed = {placed: groups_of_places(con, placed, 2) for placed in worlds}
    told: defaultdict[tuple[object, ...], Counter[tuple[int, int]]] = defaultdict(Counter)
    often: Counter[tuple[object, ...]] = Counter()
    for order, placed in itertools.product(itertools.permutations(rows), worlds):
        groups = [(number, [order[place] for place in places], places) for number, places in formed[placed]]
        kept = [one for one in groups if len({whose[row] for row in one[1]}) == len(one[1])]
        release = tuple(
            sorted((tuple(sorted(own)), tuple(sorted(placed[place] for place in places))) for _, own, places in kept)
        )
        often[release] += 1
        for _, own, places in kept:
            told[release].update((row, placed[place]) for row, place in zip(own, places, strict=True))
    shares = [(Fraction(n, often[release]), Fraction(1, 2)) for release, found in told.items() for n in found.values()]
    assert shares and all(share <= most for share, most in shares)
    assert any(len(release) < len(values) // 2 for release in often)


SPELLED = ["flu", "Flu", "hiv", "HIV ", "cold", "gout", "none", "None", "none", "none", "none"]


@search(1, seed=seeds)
def test_random_tables_of_people(seed):
    draw, con = random.Random(seed), duckdb.connect(config={"threads": 1})
    rows = [
        (i, i // draw.choice([2, 3]), draw.randrange(60), draw.choice(SPELLED), draw.choice("xXyz"))
        for i in range(draw.randrange(40, 90))
    ]
    types = {"id": "INTEGER", "who": "INTEGER", "age": "INTEGER", "dx": "VARCHAR", "job": "VARCHAR"}
    fill(con, "stays", types, rows)
    policy = {
        "source": "stays", "target": "pub", "key": "id", "quasi_identifiers": ["age"], "keep": [],
        "individual": {"column": "who", "rows": "apart"}, "seed": seed,
        "sensitive": {
            "dx": {"l": 3, "same": ["casefold", "trim"], "harmless": ["none"]}, "job": {"l": 2, "same": "casefold"}
        },
        "algorithm": {"name": "decomposition_plus", "primary": "dx"},
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    assert (
        result.figures["combinations"]["published"] is False
    )  # a spelling would tell which of a group's rows it is of
    groups = defaultdict(list)
    for group, dx, job in con.execute("SELECT group_id, dx, job FROM pub_1_sa").fetchall():
        groups[group].append((dx, job))
    for found in groups.values():
        ills, jobs = (Counter(value.strip().lower() for value in column) for column in zip(*found, strict=True))
        assert all(n * 3 <= len(found) for value, n in ills.items() if value != "none")
        assert all(n * 2 <= len(found) for n in jobs.values())
    ages = con.execute("SELECT group_id, age FROM pub_1_qid").fetchall()
    assert len(ages) == result.figures["rows_published"] == sum(map(len, groups.values()))
    shown, true = Counter(dx for found in groups.values() for dx, _ in found), Counter(row[3] for row in rows)
    assert not shown - true and {job for found in groups.values() for _, job in found} <= set("xXyz")
    assert ldiv_db.check(con, "pub_1_qid", policy=policy).holds
    assert all(one.holds is not False for one in ldiv_db.attack(con, "pub_1_qid", policy=policy).attacks)


@search(1, seed=seeds)
def test_random_tables_of_sets(seed):
    """No member stands in more than 1/l of a group's sets, and most rows are published; harmless ones may."""
    draw, con = random.Random(seed), duckdb.connect(config={"threads": 1})
    rows = [
        (i, draw.randrange(60), ",".join(draw.choice("aabcdefghz") for _ in range(draw.choice([1, 1, 2, 3]))))
        for i in range(draw.randrange(60, 120))
    ]
    fill(con, "stays", {"id": "INTEGER", "age": "INTEGER", "dx": "VARCHAR"}, rows)
    policy = {
        "source": "stays", "target": "pub", "key": "id", "quasi_identifiers": ["age"], "seed": seed,
        "sensitive": {"dx": {"l": 2, "set": ",", "harmless": ["z"]}}, "algorithm": "decomposition_plus",
    }  # fmt: skip
    for night in (1, 2):
        result = ldiv_db.run(con, policy)
        groups = defaultdict(list)
        for group, dx in con.execute(f"SELECT group_id, dx FROM pub_{night}_sa").fetchall():
            groups[group].append({*dx.split(",")} - {"z"})
        counted = (Counter(itertools.chain(*found)) for found in groups.values())
        assert all(n * 2 <= len(found) for found, c in zip(groups.values(), counted, strict=True) for n in c.values())
        assert sum(map(len, groups.values())) == result.figures["rows_of_table"] > 0.8 * len(rows)
        assert ldiv_db.check(con, f"pub_{night}_qid", policy=policy).holds
        con.execute("INSERT INTO stays SELECT id + 1000, age, dx FROM stays WHERE id < 40")
