"""Transparent releases: what they tell those who know everything but the coins, counted over all worlds and coins."""

import hashlib
import itertools
import random
from collections import Counter
from fractions import Fraction

import pytest
import tables
from posterior import all_runs, folded, releases, seatings, shown, worlds, worst
from refusals import refuses
from strategies import draws, search, seeded, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.algorithms import transparent as splitting
from ldiv_db.algorithms.transparent import lay_out
from ldiv_db.database.engine import Engine

pytestmark = pytest.mark.usefixtures("no_remedies")

AGES = [(22,), (31,), (40,), (53,), (61,), (70,), (90,)]
PAIRS = [(22,), (22,), (40,), (40,), (40,), (61,), (61,)]
#: Two quasi-identifiers, with ties that a rule may break by the names of values.
TIED = [(1, 1), (2, 1), (1, 2), (2, 1), (0, 1), (0, 1)]
GRID = [(0, 0), (0, 1), (0, 2), (0, 2), (2, 1), (1, 0)]


def some_ties(n, count=2):
    draw = random.Random(n)
    return [tuple(draw.sample(range(n), n)) for _ in range(count)]


def posterior(con, people, values, l, ties, change=None):
    """The largest posterior over all worlds and seatings; the order of ties is given away, unless a rule is broken."""
    runs = all_runs(values, ties)
    runs = [change(people, *run) for run in runs] if change else runs
    found = releases(Engine(con), people[: len(values)], values, runs, l)
    return worst(
        (world, release if change else (tie, release)) for (world, _, tie), release in zip(runs, found, strict=True)
    )


@pytest.fixture(params=[1, splitting.SIMPLE], ids=["split", "dealt"])
def simple(request, monkeypatch):
    """Buckets of a few columns are split, as large ones are, and dealt, as what is left of these."""
    monkeypatch.setattr(splitting, "SIMPLE", request.param)


# -- every world, every coin -------------------------------------------------------------------------------


SIX = [("AABBCC", 2), ("AABBCC", 3), ("AAABBC", 2), ("AAABBB", 2), ("AABBCD", 2), ("AABBCD", 3), ("ABCDEF", 3)]
SEVEN = [("AABBCCD", 2), ("AABBCCD", 3), ("AAABBBC", 2), ("AAABBCC", 2)]
SPELLED = [("AaBBC", 2), ("AaBbC", 2), ("aABbCc", 3), ("AABbcD", 2)]
#: Z is harmless.
SPARED = [("ABZZZ", 2), ("AZZZZ", 2), ("AABZZZ", 2), ("ABZZZZ", 3), ("AAzZZZ", 3), ("ABCZZZ", 2)]
#: People, values and l; of the first all orders of ties are tried.
ALL_TIES = [(AGES, "AABB", 2), (PAIRS, "AABBC", 2), (TIED, "AABBC", 2)]
WORLDS = [
    ALL_TIES[0], (TIED, "AABBCC", 2), *ALL_TIES[1:],
    *((people, *six) for people in (AGES, PAIRS, TIED, GRID) for six in SIX),
    *((people, *seven) for people in (AGES, PAIRS) for seven in SEVEN),
    *((people, *other) for people in (AGES, TIED) for other in (*SPELLED, *SPARED)),
]  # fmt: skip


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(("people", "values", "l"), some(WORLDS))
def test_no_posterior_exceeds_its_bound(con, people, values, l):
    """Over all worlds and coins, or over all worlds and some coins; of seven rows a class has a row more."""
    all_ties = (people, values, l) in ALL_TIES
    ties = list(itertools.permutations(range(len(values)))) if all_ties else some_ties(len(values), 8 - len(values))
    found = posterior(con, people, values, l, ties)
    assert found == Fraction(1, l) if all_ties else found <= Fraction(1, l)


@pytest.mark.usefixtures("simple")
def test_ties_by_value_would_tell(con):
    """The same count finds out a rule that breaks ties by the names of values."""
    by_value = lambda people, world, seating, tie: (world, seating, tuple(map(ord, world)))  # noqa: E731
    assert posterior(con, GRID, "AABBCC", 3, [tuple(range(6))], by_value) > Fraction(1, 3)


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(("values", "l"), some([pytest.param("AABBCC", 2), pytest.param("AABBCCD", 3)]))
def test_seats_by_age_would_tell(con, values, l):
    """The same count finds out seats that follow from a quasi-identifier in place of coins."""

    def by_age(people, world, seating, tie):
        ranks = [sum(own == world[p] and q < p for q, own in enumerate(world)) for p in range(len(world))]
        return world, tuple(ranks), tie

    assert posterior(con, AGES, values, l, some_ties(len(values), 1), by_age) > Fraction(1, l)


# -- runs ----------------------------------------------------------------------------------------------------


def policy_of(l, **changes):
    base = {
        "source": "source", "target": {"table": "released", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["secret"], "keep": ["who"],
        "require": [{"unique_distinct": l}], "seed": 5,
    }  # fmt: skip
    return base | changes


def published_classes(con, people, world, policy):
    """What a run of the product publishes of a world, as `releases` has it."""
    rows = [(*people[p], own, p) for p, own in enumerate(world)]
    fill(con, "source", {"age": "INTEGER", "secret": "VARCHAR", "who": "INTEGER"}, rows)
    ldiv_db.run(con, policy)
    classes = {}
    for class_id, who in con.execute("SELECT class_id, who FROM released").fetchall():
        classes.setdefault(class_id, []).append(who)
    return shown(world, classes.values())


@pytest.mark.slow
@pytest.mark.parametrize("select", ["refine", "bisect"])
def test_other_selections_tell(con, select):
    """Known method, known seed: some release leaves a value more certain than 1/l, by the same count."""
    policy = policy_of(2, algorithm={"name": "bsgi", "select": select})
    found = [(world, published_classes(con, AGES, world, policy)) for world in worlds("AABBC")]
    assert worst(found) > Fraction(1, 2)


def coin(seed, use, row_id):
    return hashlib.md5(f"{seed}:transparent:{use}:{row_id}".encode()).hexdigest()


@pytest.mark.usefixtures("simple")
@search(1, seed=seeds)
def test_a_run_is_one_of_those_counted(con, seed):
    """A run by its seed publishes what is counted for the coins that the seed gives."""
    people, world = PAIRS[:6], random.Random(seed).sample("AaBBcC", 6)
    names = sorted("ABC", key=lambda v: hashlib.md5(f"{seed}:{v.lower()}".encode()).hexdigest())
    by_content = sorted(range(6), key=lambda p: (people[p], names.index(folded(world[p])), world[p], p))
    row_ids = {p: place for place, p in enumerate(by_content, 1)}
    seats = {p: coin(seed, "seat", row_ids[p]) for p in range(6)}
    seating = tuple(
        sum(folded(world[q]) == folded(world[p]) and seats[q] < seats[p] for q in range(6)) for p in range(6)
    )
    drawn = sorted(range(6), key=lambda p: coin(seed, "tie", row_ids[p]))
    assert seating in set(seatings(tuple(world)))
    run = (tuple(world), seating, tuple(map(drawn.index, range(6))))
    policy = policy_of(2, seed=seed, transparent=True, algorithm={"name": "bsgi", "exchange": 2})
    policy["sensitive"] = {"secret": {"same": "casefold"}}
    published = published_classes(con, people, world, policy)
    assert published == releases(Engine(con), people, "AABBCC", [run], 2, "".join(names))[0]


@search(1, draw=seeded)
def test_release_is_what_the_oracle_says(con, tmp_path, draw):
    case = tables.random_case(draw, "refine", 40)
    case.policy |= {"transparent": True, "algorithm": {"name": "bsgi", "residue": "incorporate"}}
    case.place(con, tmp_path)
    tables.verify(case, ldiv_db.run(con, case.policy, folder=tmp_path), tables.published(con, case))


def test_the_result_says_what_was_made_and_what_the_seed_is(con):
    fill(con, "source", {"age": "INTEGER", "secret": "VARCHAR"}, [(i, "ABCDE"[i % 5]) for i in range(23)])
    policy = policy_of(2, keep=[], transparent=True)
    result = ldiv_db.run(con, policy)
    assert result.search["select"] == "transparent" and result.search["columns"] == 11
    assert result.search["buckets"] >= 2 and result.loss.classes == 11
    assert any("seed" in note for note in result.notes)
    release = con.execute("FROM released").fetchall()
    del policy["seed"]
    assert not any("seed" in note for note in ldiv_db.run(con, policy).notes)
    assert con.execute("FROM released").fetchall() != release, "another seed gives another release"


# -- layouts --------------------------------------------------------------------------------------------------


@search(50, draw=draws)
def test_layouts_hold_every_row_once_and_no_value_twice_in_a_column(draw):
    counts = sorted((draw.randint(1, draw.choice([1, 5, 60])) for _ in range(draw.randint(1, 12))), reverse=True)
    columns = draw.randint(counts[0], sum(counts))
    seated = Counter()
    buckets = lay_out(counts, columns)
    for bucket in buckets:
        values = [place for place, _ in bucket.values]
        assert bucket.columns > 0 and len(set(values)) == bucket.size
        assert bucket.size in (sum(counts) // columns, -(-sum(counts) // columns))
        for place, first in bucket.values:
            assert first == seated[place]
            seated[place] += bucket.columns
    assert [seated[place] for place in range(len(counts))] == counts
    assert sum(bucket.columns for bucket in buckets) == columns


def test_a_value_with_more_rows_than_columns_has_no_layout():
    with pytest.raises(ValueError, match="more rows"):
        lay_out([3, 1], 2)


# -- refusals -------------------------------------------------------------------------------------------------


def test_what_the_proof_does_not_cover_is_refused(con):
    columns = {"age": "INTEGER", "secret": "VARCHAR", "who": "INTEGER"}
    fill(con, "source", columns, [(i, "AB"[i % 2], i) for i in range(6)])
    for changes, key in (
        ({"algorithm": "topdown"}, "algorithm.name"),
        ({"algorithm": {"name": "bsgi", "select": "greedy"}}, "algorithm.select"),
        ({"algorithm": {"name": "bsgi", "residue": "suppress"}}, "algorithm.residue"),
        ({"sensitive": ["secret", "who"], "keep": []}, "sensitive"),
        ({"individual": "who", "keep": []}, "individual"),
        ({"key": "who", "keep": [], "target": {"prefix": "out"}}, "key"),
        ({"target": {"table": "released", "if_exists": "append"}}, "target.if_exists"),
        ({"nulls": "suppress"}, "nulls"),
        ({"nulls_sensitive": "suppress"}, "nulls_sensitive"),
        ({"suppressed": "ignore", "nulls_sensitive": "value"}, "suppressed"),
    ):
        with pytest.raises(ldiv_db.PolicyError) as caught:
            ldiv_db.plan(con, policy_of(2, transparent=True) | changes)
        assert key in {problem.key for problem in caught.value.problems if "transparent" in problem.what}
    with refuses("require"):  # which different values do not meet
        ldiv_db.run(con, policy_of(2, transparent=True, require=[{"t_closeness": 0.2}]))
