"""Who knows several rows of a person: against all ways to seat these, on made tables and on releases of ours."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st
from refusals import refuses
from strategies import draws, search, some
from tables import fill

import ldiv_db
from ldiv_db.attacking import matching
from ldiv_db.attacking.attacks import UNCOUNTED

#: A class: its bounds, its rows (value, pseudonym).
Classes = dict[tuple[int, int], list[tuple[str, Any]]]
POLICY: dict[str, Any] = {
    "source": "visits",
    "quasi_identifiers": {"age": {"numeric": True}},
    "sensitive": ["value"],
    "require": [{"frequency": 2}],
    "output": {"bounds": True},
    "target": {"table": "release", "if_exists": "replace"},
    "seed": 1,
}
TOGETHER = {"column": "person", "rows": "together"}
WORDS = {2: "two", 3: "three", 0: "all"}


def attacked(con: Any, individual: Any, **more: Any) -> Any:
    policy = {**POLICY, "individual": individual, **more}
    (found,) = [a for a in ldiv_db.attack(con, "release", policy=policy).attacks if a.name == "several rows"]
    return found


def worst(known: list[int], classes: Classes, together: bool, linked: bool, every: bool) -> Fraction | None:
    """The largest share, over values, of the ways to seat the known rows in which one has the value; by trying all."""
    seats = [(bounds, number, *row) for bounds, rows in classes.items() for number, row in enumerate(rows)]
    open_to = [[seat for seat in seats if seat[0][0] <= age <= seat[0][1]] for age in known]
    sizes = Counter((seat[0], seat[3]) for seat in seats)
    told: Counter[str] = Counter()
    ways = 0
    for way in itertools.product(*open_to):
        if len({seat[:2] for seat in way}) < len(way) or (together and len({seat[0] for seat in way}) > 1):
            continue
        if linked and (len({seat[3] for seat in way}) > 1 or (every and sizes[way[0][0], way[0][3]] != len(way))):
            continue
        ways += 1
        told.update({seat[2] for seat in way})
    return Fraction(max(told.values()), ways) if ways else None


def expected(people: dict[Any, list[int]], classes: Classes, together: bool, linked: bool) -> dict[int, list[Fraction]]:
    """Of two, three and all (0) rows of everybody the worst posterior."""
    found = defaultdict(list)
    for ages in people.values():
        fitting = [bounds for bounds in classes if all(bounds[0] <= age <= bounds[1] for age in ages)]
        seen = {bounds: classes[bounds] for bounds in fitting} if together else classes
        covered = [age for age in ages if any(low <= age <= high for low, high in seen)]
        if len(covered) < 2:
            continue
        for known in (2, 3, 0):
            sets = itertools.combinations(covered, known or len(covered))
            each = [worst(list(chosen), seen, together, linked, not known) for chosen in sets]
            if told := [posterior for posterior in each if posterior is not None]:
                found[known].append(max(told))
    return found


def compare(attack: Any, told: dict[int, list[Fraction]], bound: Fraction) -> None:
    figures = attack.figures
    for gain, (known, word) in zip(attack.gains, WORDS.items(), strict=True):
        if not told.get(known):
            assert gain.gain is None
            assert f"{word}_rows_people" not in figures
            continue
        assert gain.gain == pytest.approx(float(max(told[known])), abs=2e-9)
        assert figures[f"{word}_rows_people"] == len(told[known])
        assert figures[f"{word}_rows_mean"] == pytest.approx(float(sum(told[known]) / len(told[known])), abs=2e-9)
        assert figures[f"{word}_rows_above"] == sum(posterior > bound for posterior in told[known])
        assert gain.bound is None
        assert gain.holds is None


def place(con: Any, people: dict[Any, list[int]], classes: Classes) -> None:
    """The source and the release as tables."""
    rows = [(person, age) for person, ages in people.items() for age in ages]
    fill(con, "visits", {"person": "VARCHAR", "age": "INTEGER"}, [*rows, (None, 1), (None, 1)])
    columns = {"age_min": "INTEGER", "age_max": "INTEGER", "value": "VARCHAR", "nr": "INTEGER"}
    fill(con, "release", columns, [(*bounds, *row) for bounds, rows in classes.items() for row in rows])


@search(4, mode=st.sampled_from(["linked", "together", "apart"]), draw=draws)
def test_posteriors_are_those_of_all_ways_to_seat_the_rows(con, mode, draw):
    spans = [(0, 9), (10, 19), (20, 29)] if mode == "apart" else [(0, 12), (8, 19), (0, 29)]
    classes = {
        bounds: [(draw.choice("abcd"), draw.randint(1, 3)) for _ in range(draw.randint(3, 6))]
        for bounds in spans[: draw.randint(1, 3)]
    }
    people = {number: [draw.randrange(32) for _ in range(draw.randint(1, 4))] for number in range(5)}
    place(con, people, classes)
    linked = mode == "linked"
    individual, more = ("person", {}) if mode == "apart" else (TOGETHER, {})
    if linked:
        more = {"output": {"bounds": True, "person": "nr"}}
    told = expected(people, classes, mode != "apart", linked)
    compare(attacked(con, individual, **more), told, Fraction(1, 2))


@search(2, draw=draws)
def test_where_classes_overlap_posteriors_are_wrong_by_what_is_said_at_most(con, draw):
    spans = [(0, 19), (10, 29), (0, 29)]
    classes = {bounds: [(draw.choice("abc"), None) for _ in range(draw.randint(3, 6))] for bounds in spans}
    ages = [draw.randrange(30) for _ in range(3)]
    place(con, {1: ages}, classes)
    pools = [{bounds for bounds in spans if bounds[0] <= age <= bounds[1]} for age in ages]
    sizes = [sum(len(classes[bounds]) for bounds in pool) for pool in pools]
    pairs = [(i, j) for i, j in itertools.combinations(range(3), 2) if pools[i] != pools[j] and pools[i] & pools[j]]
    wrong = sum(1 / max(sizes[i], sizes[j]) for i, j in pairs)
    exact = worst(ages, classes, together=False, linked=False, every=True)
    assert exact is not None
    assert attacked(con, "person").gains[2].gain == pytest.approx(float(exact), abs=wrong + 2e-9)


def visits(draw: random.Random, people: int = 30) -> list[tuple[Any, ...]]:
    """Rows (person, age, value): most people have one, some several."""
    return [
        (person, age + draw.randrange(3), draw.choice("aabbccddeeffgghh"))
        for person, age in enumerate(draw.randrange(20, 60) for _ in range(people))
        for _ in range(draw.choice([1, 1, 2, 3, 4]))
    ]


def by_formula(ages: list[int], known: int, classes: Classes) -> float:
    """The worst posterior of `known` rows by binomials, pool by pool: the definition where a pool has many rows."""
    pools = Counter(frozenset(bounds for bounds in classes if bounds[0] <= age <= bounds[1]) for age in ages)
    counts = {pool: Counter(value for bounds in pool for value, _ in classes[bounds]) for pool in pools}
    best = Fraction(0)
    for chosen in {tuple(sorted(one, key=str)) for one in itertools.combinations(pools.elements(), known)}:
        for value in {value for pool in chosen for value in counts[pool]}:
            missed = Fraction(1)
            for pool, drawn in Counter(chosen).items():
                whole = counts[pool].total()
                missed *= Fraction(math.comb(whole - counts[pool][value], drawn), math.comb(whole, drawn))
            best = max(best, 1 - missed)
    return float(best)


@pytest.mark.parametrize("algorithm", some(["topdown", "bsgi"]))
def test_releases_of_rows_apart(con, algorithm):
    rows = visits(random.Random(algorithm), 20)
    fill(con, "visits", {"person": "INTEGER", "age": "INTEGER", "value": "VARCHAR"}, rows)
    made = ldiv_db.run(con, {**POLICY, "individual": "person", "algorithm": algorithm})
    found = attacked(con, "person", algorithm=algorithm)
    assert any(f"{found.figures['all_rows_people']} people have several rows" in note for note in made.notes)
    classes = defaultdict(list)
    for low, high, value in con.execute("SELECT age_min, age_max, value FROM release").fetchall():
        classes[low, high].append((value, None))
    people = defaultdict(list)
    for person, age, _ in rows:
        people[person].append(age)
    for gain, (known, word) in zip(found.gains, WORDS.items(), strict=True):
        several = [ages for ages in people.values() if len(ages) >= max(known, 2)]
        told = [by_formula(ages, known or len(ages), classes) for ages in several]
        assert gain.gain == pytest.approx(max(told), abs=2e-9)
        assert found.figures[f"{word}_rows_people"] == len(told)
        assert found.figures[f"{word}_rows_mean"] == pytest.approx(sum(told) / len(told), abs=2e-9)
        assert found.figures[f"{word}_rows_above"] == sum(share > 0.5 + 1e-9 for share in told)


@pytest.mark.parametrize(
    ("algorithm", "whose", "shares"),
    some([("topdown", TOGETHER, False), ("bsgi", "person", True), ("topdown", "person", True)]),
)
def test_what_is_promised_of_people_alone_bounds_no_share_of_rows(con, algorithm, whose, shares):
    rows = [(i // 3, i // 3 % 10, "abcde"[i // 3 % 5]) for i in range(60)] + [(20, 3, "f")]
    fill(con, "visits", {"person": "INTEGER", "age": "INTEGER", "value": "VARCHAR"}, rows)
    policy = {**POLICY, "individual": whose, "algorithm": algorithm}
    ldiv_db.run(con, policy)
    found = ldiv_db.attack(con, "release", policy=policy)
    bounds = {(attack.name, gain.measure): gain.bound for attack in found.attacks for gain in attack.gains}
    assert found.holds is (True if algorithm == "bsgi" else None)  # the others may have several rows of a person
    assert bounds["homogeneity", "share of rows in classes of one value"] == 0
    assert bounds["prosecutor", f"1 / people alike{'' if found.holds else ', at least'}"] == 0.5
    assert (bounds["posterior", "posterior"] is not None) == shares


def test_without_a_bound_on_shares_nobody_is_above(con):
    place(con, {1: [1, 1]}, {(0, 9): [("a", None), ("b", None)]})
    figures = attacked(con, "person", require=[{"k": 2}]).figures
    assert not [name for name in figures if "above" in name or "promised" in name]
    assert figures["two_rows_one_class"] == 1


def test_harmless_values_are_above_nothing(con):
    place(con, {1: [1, 1]}, {(0, 9): [("a", None), ("a", None), ("a", None), ("b", None)]})
    spared = {"sensitive": {"value": {"harmless": ["a"]}}}
    assert attacked(con, "person", **spared).figures["two_rows_above"] == 0  # and 1 where nothing is harmless


def test_what_the_budget_leaves_out_is_said(con, monkeypatch):
    people = {number: [number, number + 1] for number in range(200)}
    place(con, people, {(low, low + 30): [("a", None), ("b", None)] for low in range(0, 200, 2)})
    monkeypatch.setattr(matching, "_AT_ONCE", 500)
    policy = {**POLICY, "individual": "person"}
    (found,) = [a for a in ldiv_db.attack(con, "release", policy=policy, budget=30_000).attacks if "several" in a.name]
    assert found.untried is not None
    assert 0 < found.figures["two_rows_people"] == found.untried.tried < found.untried.whole == 200


@pytest.mark.parametrize("kind", some(["csv", "query", "frame"]))
def test_a_source_of_any_kind_says_whose_rows_are(con, tmp_path, kind):
    place(con, {"01": [1, 1, 5], "1": [1, 5]}, {(0, 9): [("a", None), ("b", None), ("c", None)]})
    con.execute(f"COPY visits TO '{tmp_path}/visits.csv'")
    source = {"csv": f"{tmp_path}/visits.csv", "query": {"query": "FROM visits"}, "frame": con.sql("FROM visits")}
    told = attacked(con, "PERSON", source=source[kind]).figures
    assert (told["two_rows_people"], told["three_rows_people"]) == (2, 1)


@pytest.mark.parametrize("gone", some(["ALTER TABLE visits DROP person", "DROP TABLE visits"]))
def test_without_the_source_it_is_said_that_nothing_was_tried(con, gone):
    place(con, {1: [1, 1]}, {(0, 9): [("a", None), ("b", None)]})
    policy = {**POLICY, "individual": "person"}
    assert ldiv_db.attack(con, "release", policy=policy).warnings == (UNCOUNTED,)
    con.execute(gone)
    found = ldiv_db.attack(con, "release", policy=policy)
    assert "several rows" not in [attack.name for attack in found.attacks]
    assert found.warnings[1:] == ("several rows of a person: not tried, as person of visits is not there",)


# -- whose risk is counted ---------------------------------------------------------------------------------


def recognised(found: Any) -> dict[str, Any]:
    return {one.name: one for one in found.attacks if one.name in ("prosecutor", "journalist", "marketer")}


@pytest.mark.parametrize("rows", some(["aligned", "together"]))
def test_the_risk_is_that_of_people_where_these_are_counted(con, rows):
    """Classes of three people, of two rows each: a person is found with 1/3, whatever rows there are."""
    con.execute(
        "CREATE TABLE visits AS SELECT i AS person, i // 3 * 10 AS age, n AS visit, 'abcde'[1 + (i + n) % 5] AS value"
        " FROM range(6) AS p(i), range(2) AS v(n)"
    )
    whose = {"column": "person", "rows": rows} | ({"order": "visit"} if rows == "aligned" else {})
    beside = {} if rows == "aligned" else {"identifiers": ["visit"]}
    policy = {**POLICY, **beside, "individual": whose, "require": [{"risk": "1/3"}], "algorithm": "topdown"}
    policy["output"] = {"person": "nr"}
    ldiv_db.run(con, policy)
    found = recognised(ldiv_db.attack(con, "release", policy=policy, population="visits"))
    for attack in found.values():
        assert attack.of_people and attack.gains[0].gain == attack.gains[0].bound == 1 / 3 and attack.holds
    assert found["prosecutor"].figures["rows_above_threshold"] == 0
    con.execute("DELETE FROM release WHERE nr = (SELECT min(nr) FROM release)")
    broken = recognised(ldiv_db.attack(con, "release", policy=policy))["prosecutor"]
    assert broken.gains[0].gain == 0.5 and broken.holds is False and broken.figures["rows_above_threshold"] == 2


def test_people_are_counted_by_a_column_that_is_named(con):
    con.execute("CREATE TABLE theirs AS SELECT '*' AS age, 'd' || i AS value, i % 2 AS who FROM range(8) AS t(i)")
    asked = {"qi": "age", "sensitive": "value", "require": [{"k": 3}]}
    assert recognised(ldiv_db.attack(con, "theirs", **asked))["prosecutor"].gains[0].gain == 1 / 8
    found = recognised(ldiv_db.attack(con, "theirs", **asked, individual="who"))["prosecutor"]
    assert found.gains[0].gain == 0.5 and found.holds is False
    with refuses("individual"):
        ldiv_db.attack(con, "theirs", **asked, individual="nobody")


def test_rows_do_not_show_the_risk_of_people(con):
    con.execute("CREATE TABLE release AS SELECT 1 AS age_min, 9 AS age_max, 'v' || i AS value FROM range(6) AS t(i)")
    policy = {**POLICY, "individual": TOGETHER, "require": [{"k": 3}], "algorithm": "topdown"}
    found = ldiv_db.attack(con, "release", policy=policy)
    assert found.holds is None and found.undecided and UNCOUNTED in found.warnings
    assert recognised(found)["prosecutor"].at_least and "not known" in str(found)
