"""Combinations of sensitive values: published where they tell no pairings, and never in two releases."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from fractions import Fraction

import pytest
import sequences
from older_ledger import make_older
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.publishing import earlier_releases as releases
from ldiv_db.publishing import ledger


def policy(**algorithm):
    return sequences.policy_of_pairs(**algorithm) | {"seed": 1}


def tables_of(con):
    return {
        name for (name,) in con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'pub'").fetchall()
    }


def told(groups, combined, ls):
    """By (known attribute, other): of how many rows too much is told, and the best share, in plain Python."""
    found = defaultdict(lambda: [0, Fraction(0)])
    for columns in groups:
        for i, known in enumerate(columns):
            for j, others in enumerate(columns):
                for value, rows in Counter(known).items() if i != j else ():
                    weights = Counter(row[j] for row in combined if row[i] == value and row[j] in others)
                    share = Fraction(max(weights.values()), weights.total())
                    if share * ls[j] > 1:
                        found[i, j][0] += rows
                        found[i, j][1] = max(found[i, j][1], share)
    return {pair: (rows, float(best)) for pair, (rows, best) in found.items()}


def read(con, table, names):
    """The columns of values of every group."""
    rows = con.execute(f"SELECT group_id, {', '.join(names)} FROM {table}").fetchall()
    return {g: list(zip(*(row[1:] for row in rows if row[0] == g), strict=True)) for g in {row[0] for row in rows}}


@pytest.mark.parametrize("seed", some(range(1, 5)))
def test_combinations_are_published_where_they_tell_nothing(con, seed):
    """What they would tell is as the definition has it; with it they are left out, unless the policy insists."""
    con.execute("SET threads = 1")
    found = sequences.random_sequence(seed)
    if seed % 2:  # all combinations of two values each, equally often: nothing is told
        found.ls, found.domains = [2, 2], [["a", "b"], ["p", "q"]]
        found.rows = {i: (0, "ab"[i % 2], "pq"[i // 2 % 2]) for i in range(16)}
    found.place(con)
    base = found.policy() | {"seed": seed}
    algorithm = base["algorithm"]
    first = ldiv_db.run(con, base | {"algorithm": algorithm | {"combinations": "first"}})
    _, sa, marginals = first.figures["tables"]
    combined = con.execute(f"SELECT {', '.join(found.names)} FROM {marginals}").fetchall()
    expected = told(read(con, sa, found.names).values(), combined, found.ls)
    place, shown = found.names.index, first.figures["combinations"]
    assert (shown["option"], shown["published"]) == ("first", True)
    assert {(place(c["known"]), place(c["attribute"])): (c["keys"], c["best"]) for c in shown["told"]} == expected
    assert {(place(c.known), place(c.attribute)) for c in first.inference.allowed} == set(expected)
    assert first.inference.holds
    assert any("the table of combinations reveals" in note for note in first.notes) == bool(expected)
    assert bool(expected) != bool(seed % 2)
    for option, published in [("checked", not expected)] + [("none", False)] * (1 - seed % 2):
        changed = {"algorithm": algorithm | {"combinations": option}, "target": {"prefix": f"pub.{option}"}}
        changed["over_time"] = "independent"
        result = ldiv_db.run(con, base | changed)
        suffixes = ("qid", "sa", "marginals")[: 2 + published]
        assert result.figures["tables"] == [f"pub.{option}_1_{suffix}" for suffix in suffixes]
        assert (f"{option}_1_marginals" in tables_of(con)) == published
        assert result.figures["combinations"]["published"] == published and result.inference.holds
        assert any("there is no table of combinations" in note for note in result.notes) == (
            option == "checked" and bool(expected))  # fmt: skip
        assert releases.check_series(Engine(con), f"pub.{option}").holds
        assert con.execute(f"FROM pub.{option}_1_sa").fetchall() == con.execute(f"FROM {sa}").fetchall()
    again = releases.check_series(Engine(con), "pub.p")
    assert again.holds and len(again.allowed) == len(expected)


def one_group_more(con, s2="xyz"):
    """Releases of six people, and of three more, who are the only new group, with these values of s2."""
    fill(con, "people", sequences.COLUMNS, [(i, i, "abc"[i % 3], "pqr"[i // 2 % 3]) for i in range(6)])
    ldiv_db.run(con, policy(combinations="first"))
    con.execute("INSERT INTO people VALUES (20, 20, 'a', ?), (21, 21, 'b', ?), (22, 22, 'c', ?)", list(s2))
    return ldiv_db.run(con, policy(combinations="first"))


@pytest.mark.slow
def test_the_difference_of_two_releases_tells_no_pairing(con):
    """Whatever is paired with what in a new group, all that is published is the same."""
    published = []
    for s2 in list(itertools.permutations("xyz"))[::2]:  # a swap and a turn of the first
        second = one_group_more(con, s2)
        assert second.figures["groups_new"] == 1 and second.figures["tables"] == ["pub.p_2_qid", "pub.p_2_sa"]
        assert second.figures["combinations"] == {"option": "first", "published": False, "told": []}
        assert second.inference.holds and not second.inference.allowed
        published.append({name: con.execute(f"FROM pub.{name}").fetchall() for name in sorted(tables_of(con))})
        con.execute("DROP SCHEMA pub CASCADE")
        con.execute("DROP SCHEMA ldiv CASCADE")
        con.execute("DROP TABLE people")
    assert set(published[0]) == {"p_1_qid", "p_1_sa", "p_1_marginals", "p_2_qid", "p_2_sa"}
    assert all(tables == published[0] for tables in published)


def as_made_before(con):
    """A series as older versions left it: combinations in both releases, and no word of how groups were formed."""
    one_group_more(con)
    con.execute("CREATE TABLE pub.p_2_marginals AS FROM (FROM pub.p_1_marginals UNION ALL SELECT s1, s2 FROM people"
                " WHERE id >= 20) ORDER BY ALL")  # fmt: skip
    con.execute(
        "UPDATE ldiv.release SET grouped_by = NULL, report = json_merge_patch(report, '{\"combinations\": null}')"
    )


@pytest.mark.parametrize("older", some([False, True]), ids=["not noted", "no such column"])
def test_a_series_made_before_is_told_by_its_check_and_not_gone_on_with(con, older, snapshot):
    as_made_before(con)
    found = releases.check_series(Engine(con), "pub.p")
    assert not found.holds and found.ordered == ("release 1", "release 2") and not found.keys_exposed
    pairs = [c for c in found.channels if c.releases == ("release 1", "release 2")]
    assert {(c.known, c.attribute, c.keys, c.best) for c in pairs} == {("s1", "s2", 3, 1.0), ("s2", "s1", 3, 1.0)}
    names = ["s1", "s2"]
    groups, combined = read(con, "pub.p_1_sa", names), con.execute("FROM pub.p_1_marginals").fetchall()
    expected = told(groups.values(), combined, [3, 2])
    assert {(names.index(c.known), names.index(c.attribute)): (c.keys, c.best)
            for c in found.channels if c.releases == ("release 1",)} == expected  # fmt: skip
    if older:
        make_older(con, 6)
    before = snapshot(con)
    with pytest.raises(ldiv_db.PolicyError, match=r"formed in the order of the quasi-id.*under another target"):
        ldiv_db.run(con, policy())
    assert snapshot(con) == before
    listed = ledger.releases(Engine(con))
    assert [entry.release for entry in listed if entry.warning] == [1, 2]


def test_anatomy_has_no_combinations(con):
    fill(con, "people", sequences.COLUMNS, [(i, i, "abc"[i % 3], "p") for i in range(9)])
    one = policy() | {"sensitive": {"s1": {"l": 3}}, "identifiers": ["s2"]}
    with pytest.raises(ldiv_db.PolicyError, match="anatomy has one attribute, and no combinations"):
        ldiv_db.run(con, one | {"algorithm": {"name": "anatomy", "combinations": "first"}})
    result = ldiv_db.run(con, one | {"algorithm": "anatomy"})
    assert result.figures["combinations"] is None
    with pytest.raises(ldiv_db.PolicyError, match=r"algorithm\.combinations"):
        ldiv_db.run(con, policy(combinations="always"))
