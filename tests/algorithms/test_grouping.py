"""Decomposition: groups, noise and the three tables, on the paper's tables, on Adult and on random tables."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict

import duckdb
import oracle
import pytest
import sequences
from hypothesis import strategies as st
from refusals import refuses
from strategies import search, seeds
from tables import fill

import ldiv_db
from ldiv_db.algorithms.decomposition.grouping import largest_l_quotas
from tests.benchmarks.command import engine_on
from tests.benchmarks.decomposition import TABLE_7A, make_people

pytestmark = pytest.mark.usefixtures("no_remedies")

WORKCLASS = [22286, 2499, 2067, 1279, 1074, 943, 14]
GROUPS_7A = {7: 14, 6: 957, 5: 1655, 4: 2625, 3: 3938, 2: 7876, 1: 30162}


def test_rows_left_over_are_those_of_the_papers_table():
    for l, left in TABLE_7A.items():
        groups, quotas = largest_l_quotas(WORKCLASS, l)
        assert groups == GROUPS_7A[l]
        assert tuple(n - quota for n, quota in zip(WORKCLASS, quotas, strict=True) if n > quota) == left


@search(50, counts=st.lists(st.integers(1, 30), min_size=1, max_size=9), data=st.data())
def test_quotas_are_those_of_taking_from_the_largest_buckets(counts, data):
    counts.sort(reverse=True)
    l = data.draw(st.integers(1, len(counts)))
    groups, quotas = largest_l_quotas(counts, l)
    assert groups == len(oracle.draws(counts, l))
    assert sum(quotas) == groups * l and all(0 <= q <= min(n, groups) for q, n in zip(quotas, counts, strict=True))
    # Fewer than l values are left, so no further group could be made; one row each where no value is too frequent.
    left = [n - q for n, q in zip(counts, quotas, strict=True)]
    assert sum(n > 0 for n in left) < l or not groups
    if counts[0] * l <= sum(counts):
        assert max(left) <= 1


# -- the paper's table 1 ---------------------------------------------------------------------------------


def paper_policy(**changes):
    return {
        "source": "people", "target": {"prefix": "pub.people"}, "key": "tuple", "identifiers": ["name"],
        "quasi_identifiers": ["gender", "zipcode", "birthday"],
        "sensitive": {"occupation": {"l": 4}, "salary": {"l": 4}},
        "algorithm": {"name": "decomposition_plus", "primary": "occupation", "combinations": "first"},
    } | changes  # fmt: skip


@pytest.fixture
def paper(con, fixtures):
    with (fixtures / "papers" / "decomposition_table1.csv").open() as file:
        rows = [(int(r["tuple"]), *list(r.values())[1:6], int(r["salary"])) for r in csv.DictReader(file)]
    names = ["tuple", "name", "gender", "zipcode", "birthday", "occupation", "salary"]
    types = dict.fromkeys(names, "VARCHAR") | {"tuple": "INTEGER", "birthday": "DATE", "salary": "INTEGER"}
    fill(con, "people", types, rows)
    return rows


def columns(con, table):
    return [row[0] for row in con.execute(f"DESCRIBE {table}").fetchall()]


def test_table_1_gives_two_groups_of_four(con, paper):
    result = ldiv_db.run(con, paper_policy())
    qid, sa, marginals = result.figures["tables"]
    assert columns(con, qid) == ["group_id", "gender", "zipcode", "birthday"]
    assert columns(con, sa) == ["group_id", "occupation", "salary"]
    assert columns(con, marginals) == ["occupation", "salary"]
    for table in (qid, sa):
        counted = con.execute(f"SELECT group_id, count(*) FROM {table} GROUP BY 1 ORDER BY 1").fetchall()
        assert counted == [(1, 4), (2, 4)]
    for number in (1, 2):
        found = con.execute(f"SELECT occupation, salary FROM {sa} WHERE group_id = {number}").fetchall()
        assert all(len({row[i] for row in found}) == 4 for i in (0, 1))
    assert result.figures["residual"] == []


# -- everything that must be true ----------------------------------------------------------------------


def verify(con, source, policy, result):
    """Assert all that must be true of a first release: `source` is the secrets by person."""
    names = list(policy["sensitive"])
    ls = [setting["l"] for setting in policy["sensitive"].values()]
    qid, sa, marginals = result.figures["tables"]
    people = con.execute(f"SELECT group_id, person FROM {qid}").fetchall()
    values = con.execute(f"SELECT group_id, {', '.join(names)} FROM {sa}").fetchall()
    combined = con.execute(f"SELECT {', '.join(names)} FROM {marginals}").fetchall()
    groups, published = defaultdict(list), defaultdict(list)
    for group, person in people:
        groups[group].append(person)
    for group, *row in values:
        published[group].append(row)
    assert len({person for _, person in people}) == len(people) and set(groups) == set(published)
    primary = [list(policy["sensitive"]).index(policy["algorithm"]["primary"])]
    links = defaultdict(set)
    for row in source.values():
        for i in range(len(names)):
            links[row[primary[0]], i].add(row[i])
    changed = Counter()
    for group, members in groups.items():
        assert len(members) == len(published[group])
        for i, l in enumerate(ls):
            shown, true = Counter(row[i] for row in published[group]), Counter(source[m][i] for m in members)
            assert max(shown.values()) * l <= len(members)
            assert len(shown) >= l
            assert [row[i] for row in published[group]] == sorted(row[i] for row in published[group])
            added = shown - true
            changed[i] += added.total()
            allowed = set().union(*(links[source[m][primary[0]], i] for m in members)) - set(true)
            assert set(added) <= allowed and all(n == 1 for n in added.values())
            # No more than what stands too often was changed.
            most = len(members) // l
            assert added.total() == sum(max(0, n - most) for n in true.values())
    assert not changed[primary[0]]
    for i, name in enumerate(names):
        assert Counter(row[i] for row in combined) == Counter(row[i + 1] for row in values)
        if i != primary[0]:
            (noise,) = (n for n in result.figures["noise"] if n["attribute"] == name)
            assert noise["changed"] == changed[i]
    assert combined == sorted(combined)


@search(1, seed=seeds)
def test_random_tables(seed):
    found = sequences.random_sequence(seed, 24)
    policy = found.policy(combinations="first")
    with duckdb.connect(config={"threads": 1}) as con:
        found.place(con)
        result = ldiv_db.run(con, policy)
        verify(con, {key: row[1:] for key, row in found.rows.items()}, policy, result)
    refused = {part["attribute"] for part in result.figures["refused"]}
    counts = sorted(Counter(row[1] for row in found.rows.values()).values(), reverse=True)
    most = len(oracle.draws(counts, found.ls[0]))
    assert result.figures["groups"] == most or refused
    assert result.figures["rows_waiting"] == len(found.rows) - result.figures["rows_published"]


@pytest.mark.slow
def test_adult_with_the_papers_parameters(con, fixtures):
    engine = engine_on(con)
    make_people(engine, 30_162)
    con.execute("ALTER TABLE people RENAME fnlwgt TO person")
    con.execute("UPDATE people SET person = id")
    policy = {
        "source": "people",
        "target": {"prefix": "pub.people"},
        "key": "id",
        "identifiers": ["occupation", "native_country"],
        "quasi_identifiers": ["age", "person", "marital_status", "race", "sex"],
        "sensitive": {
            "workclass": {"l": 7},
            "education": {"l": 3, "taxonomy": {"file": "taxonomies/education.csv"}},
            "hours_per_week": {"l": 2},
            "relationship": {"l": 3},
        },
        "algorithm": {"name": "decomposition_plus", "primary": "workclass", "combinations": "first"},
    }
    result = ldiv_db.run(con, policy, fixtures / "adult")
    assert (result.figures["groups"], tuple(result.figures["residual"])) == (14, TABLE_7A[7])
    rows = con.execute("SELECT id, workclass, education, hours_per_week, relationship FROM people").fetchall()
    verify(con, {key: tuple(row) for key, *row in rows}, policy, result)


def noisy_table(con):
    """Four groups of two, all rows of one other value, so that half of the rows get noise."""
    rows = [(i, "ab"[i % 2], "p") for i in range(8)] + [(8, "a", "q"), (9, "a", "x")]
    fill(con, "people", {"id": "INTEGER", "s1": "VARCHAR", "s2": "VARCHAR"}, rows)
    return {
        "source": "people", "target": {"prefix": "pub.p"}, "key": "id", "quasi_identifiers": ["town"],
        "sensitive": {"s1": {"l": 2}, "s2": {"l": 2, "taxonomy": {"file": "s2.yml"}}},
    }  # fmt: skip


def test_noise_is_the_nearest_value_of_the_taxonomy(con, tmp_path):
    (tmp_path / "s2.yml").write_text("{any: {near: {p: {}, x: {}}, far: {q: {}}}}")
    policy = noisy_table(con) | {"seed": 1}
    con.execute("ALTER TABLE people ADD COLUMN town INTEGER")
    found = {}
    for noise in ("nearest", "random"):
        algorithm = {"name": "decomposition_plus", "noise": noise}
        target = {"target": {"prefix": f"pub.{noise}"}, "algorithm": algorithm}
        result = ldiv_db.run(con, policy | target | {"over_time": "independent"}, tmp_path)
        (found[noise],) = result.figures["noise"]
    assert found["nearest"]["changed"] == found["random"]["changed"] > 0
    assert found["nearest"]["distance"] == 0.5
    assert found["random"]["distance"] == found["nearest"]["random_distance"] >= 0.5


def test_groups_that_cannot_reach_l_are_refused(con, tmp_path):
    (tmp_path / "s2.yml").write_text("{any: {near: {p: {}, x: {}}, far: {q: {}}}}")
    policy = noisy_table(con)
    con.execute("ALTER TABLE people ADD COLUMN town INTEGER")
    con.execute("UPDATE people SET s2 = 'p'")
    policy["algorithm"] = {"name": "decomposition_plus", "primary": "s1"}
    with pytest.raises(ldiv_db.InfeasibleError, match="4 groups cannot reach l = 2 of s2; the largest is 1"):
        ldiv_db.run(con, policy, tmp_path)
    con.execute("UPDATE people SET s2 = 'q' WHERE id IN (0, 1)")
    policy["algorithm"]["noise"] = "none"
    result = ldiv_db.run(con, policy, tmp_path)
    (refused,) = result.figures["refused"]
    assert (refused["attribute"], refused["largest_l"]) == ("s2", 1)
    assert result.figures["groups"] + refused["groups"] == 4 and "cannot reach l = 2 of s2" in result.notes[0]


def test_a_primary_attribute_of_too_few_values_says_what_is_feasible(con, paper):
    policy = paper_policy(sensitive={"occupation": {"l": 6}, "salary": {"l": 2}})
    with pytest.raises(ldiv_db.InfeasibleError, match="The largest feasible l is 5"):
        ldiv_db.run(con, policy)


def test_anatomy_has_one_attribute_and_counts(con, paper):
    policy = paper_policy(
        sensitive={"occupation": {"l": 3}}, identifiers=["name", "salary"], algorithm={"name": "anatomy"}
    )
    result = ldiv_db.run(con, policy)
    qit, st = result.figures["tables"]
    assert (qit, st) == ("pub.people_1_qit", "pub.people_1_st")
    assert columns(con, st) == ["group_id", "occupation", "n"]
    # 8 rows in two groups of three; the other two join a group that lacks their value.
    assert result.figures["groups"] == 2 and result.figures["rows_published"] == 8
    rows = con.execute(f"SELECT group_id, n FROM {st}").fetchall()
    assert all(n == 1 for _, n in rows) and len(rows) == 8


def test_decomposition_keeps_no_row_back_that_fits(con, paper):
    policy = paper_policy(sensitive={"occupation": {"l": 3}, "salary": {"l": 2}}, algorithm={"name": "decomposition"})
    result = ldiv_db.run(con, policy)
    assert (result.figures["rows_published"], result.figures["rows_placed"]) == (8, 2)


def test_only_anatomy_has_a_column_of_counts(con, paper):
    con.execute("CREATE TABLE counted AS SELECT *, occupation AS n FROM people")
    policy = paper_policy(source="counted", sensitive={"n": {"l": 3}}, identifiers=["name", "salary", "occupation"])
    assert ldiv_db.plan(con, policy | {"algorithm": {"name": "decomposition_plus"}})
    with pytest.raises(ldiv_db.PolicyError, match="n: is the name of a column that anatomy adds"):
        ldiv_db.run(con, policy | {"algorithm": {"name": "anatomy"}})


UNDECOMPOSED = {"algorithm": "bsgi", "quasi_identifiers": {"gender": {"numeric": True}}}


def test_a_policy_that_does_not_fit_is_refused():
    for changes, key in (
        ({"require": [{"k": 2}]}, "require"),
        ({"sensitive": {"occupation": {"l": 4}, "salary": {}}}, "sensitive.salary.l"),
        ({"sensitive": {"occupation": {"l": 2}, "salary": {"l": 3}}}, "sensitive.salary.l"),
        ({"algorithm": {"name": "decomposition_plus", "primary": "salry"}}, "algorithm.primary"),
        ({"algorithm": {"name": "anatomy"}}, "sensitive"),
        (UNDECOMPOSED, "require"),
        (UNDECOMPOSED | {"require": [{"k": 2}], "algorithm": "topdown"}, "sensitive.occupation.l"),
        (UNDECOMPOSED | {"require": [{"k": 2}], "key": None}, "key"),
        (UNDECOMPOSED | {"require": [{"k": 2}]}, "sensitive.salary.l"),
        ({"target": {"file": "x.csv"}}, "target.file"),
        ({"target": {"file": "out/x.csv", "prefix": "p"}}, "target.prefix"),
    ):
        document = {k: v for k, v in paper_policy(**changes).items() if v is not None}
        with pytest.raises(ldiv_db.PolicyError) as caught:
            ldiv_db.parse_policy(document)
        assert key in [problem.key for problem in caught.value.problems]


def test_options_are_checked(con, paper):
    for option, words in (("nois", "did you mean 'noise'"), ("starvation", "has no row wait")):
        with refuses(f"algorithm.{option}") as told:
            ldiv_db.run(con, paper_policy(algorithm={"name": "decomposition", "primary": "occupation", option: 1}))
        assert words in str(told.value)


def test_rows_without_a_key_of_their_own_are_refused(con, paper):
    con.execute("UPDATE people SET tuple = 1 WHERE tuple = 2")
    con.execute("UPDATE people SET tuple = NULL WHERE tuple = 3")
    with pytest.raises(ldiv_db.InfeasibleError, match="1 row has none, and 2 rows share theirs"):
        ldiv_db.run(con, paper_policy())
