"""Top-down, Mondrian, peeling and stratified cuts: every published class meets every requirement, on any table."""

import itertools
import json
import random
from collections import Counter
from contextlib import suppress
from fractions import Fraction

import oracle
import pytest
import tables
from hypothesis import reject
from refusals import refuses
from strategies import draws, search, seeded, seeds, some

import ldiv_db
from ldiv_db.algorithms.local import hierarchies, mondrian, peel, stratified
from ldiv_db.algorithms.local.class_checker import ClassChecker
from ldiv_db.algorithms.local.hierarchies import KEY_BITS
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.running.preview import describe_plan
from ldiv_db.running.run import plan
from ldiv_db.solving import auto

pytestmark = pytest.mark.usefixtures("no_remedies")

WAYS = [
    {"name": "stratified"}, {"name": "mondrian", "split": "relaxed"}, {"name": "topdown"},
    {"name": "mondrian", "split": "strict"}, *({"name": "peel", "residue": how} for how in ("suppress", "incorporate")),
]  # fmt: skip
REQUIREMENTS = [
    {"k": 3}, {"distinct": 2}, {"distinct": 3}, {"frequency": 2}, {"frequency": 1.5}, {"entropy": 2}, {"entropy": 1.8},
    {"recursive": {"c": 2, "l": 2}}, {"alpha_k": {"alpha": 0.6, "k": 2}}, {"p_sensitive": {"p": 2, "k": 4}},
    {"threshold": 0.7},
]  # fmt: skip


def prepared(draw, way, largest=20):
    """A random case under random monotone requirements."""
    case = tables.random_case(draw, "bisect", largest)
    case.policy["require"] = draw.sample(REQUIREMENTS, draw.choice([1, 1, 2]))
    case.policy["algorithm"] = dict(way)
    return case


def good(values, require):
    return all(oracle.class_is_good(values, *next(iter(spec.items()))) for spec in require)


def released(case, con, folder):
    """The release, or None where the whole table violates a requirement."""
    try:
        result = ldiv_db.run(con, case.policy, folder=folder)
    except InfeasibleError:
        place = list(case.columns).index("secret")
        assert not good([str(row[place]) for row in case.rows], case.policy["require"])
        return None, []
    return result, tables.published(con, case)


@pytest.mark.parametrize("way", some(WAYS), ids=lambda way: "-".join(way.values()))
@search(1, draw=seeded)
def test_every_class_meets_every_requirement(con, tmp_path, way, draw):
    case = prepared(draw, way)
    case.place(con, tmp_path)
    result, release = released(case, con, tmp_path)
    if result is None:
        reject()
    verify(case, result, release)


def verify(case, result, release):
    names, columns = case.names, list(case.columns)
    original = {row[columns.index("rid")]: row for row in case.rows}
    if case.policy["algorithm"].get("residue") != "suppress":
        assert sorted(row["rid"] for row in release) == sorted(original)
    assert result.loss.rows_suppressed == len(original) - len(release)
    classes = {}
    for row in release:
        assert row["secret"] == original[row["rid"]][columns.index("secret")]
        classes.setdefault(row["class_id"], []).append(row)
    for members in classes.values():
        assert good([str(row["secret"]) for row in members], case.policy["require"])
        for place, (name, scale) in enumerate(zip(names, case.scales, strict=True)):
            values = [original[row["rid"]][place] for row in members]
            for row in members:
                tables.verify_value(row, name, scale, original[row["rid"]][place], values)
    assert result.loss.classes == len(classes)


@pytest.mark.slow
@search(2, draw=draws)
def test_no_more_rows_are_given_back_than_can_be_needed(con, tmp_path, draw):
    """Topdown has a bound on them for rows and different values: without it, the release is the same."""
    case, found = prepared(draw, {"name": "topdown"}), []
    case.policy["require"] = draw.choice([[{"k": 4}], [{"distinct": 3}], [{"k": 3}, {"p_sensitive": {"p": 2, "k": 5}}]])
    for enough in (ClassChecker._enough, lambda self, requirements: 2**14):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ClassChecker, "_enough", enough)
            case.place(con, tmp_path)
            found.append(released(case, con, tmp_path)[1])
    assert found[0] == found[1]


def test_table_8_of_the_l_alpha_paper(con):
    """Rows 3 and 4 become 435*, rows 1 and 2 keep their zip code."""
    columns = {"zip": "VARCHAR", "disease": "VARCHAR"}
    tables.fill(con, "t", columns, [("4351", "HIV"), ("4351", "Flu"), ("4351", "HIV"), ("4352", "Flu")])
    policy = {
        "source": "t", "target": "out", "quasi_identifiers": {"zip": {"taxonomy": {"prefix": [4, 3, 2, 1]}}},
        "sensitive": {"disease": {"categories": [["HIV"], ["Flu"]]}},
        "require": [{"distinct_alpha": {"l": 2, "alpha": 1}}], "algorithm": "topdown",
    }  # fmt: skip
    ldiv_db.run(con, policy)
    found = Counter(con.execute("SELECT zip, disease FROM out").fetchall())
    assert found == Counter([("4351", "HIV"), ("4351", "Flu"), ("435*", "HIV"), ("435*", "Flu")])


TREE = {"*": {"L": {"a": {}, "b": {}}, "R": {"S": {"c": {}, "d": {}, "e": {}}}}}
NEW = {"table": "out", "if_exists": "replace"}
ARGUMENTS = [
    {"entropy": 2}, {"recursive": {"c": 2, "l": 2}}, {"distinct": 2}, {"k": 3}, {"frequency": 1.5}, {"entropy": 1.7},
]  # fmt: skip
PATHS = {"a": "*La", "b": "*Lb", "c": "*RSc", "d": "*RSd", "e": "*RSe"}


def child_of(value, values):
    """The branch of a value below the lowest common ancestor of all; None if they have one value."""
    for depth in itertools.count(1):
        parts = {PATHS[other][:depth] for other in values}
        if len(parts) > 1:
            return PATHS[value][:depth]
        if depth > 5:
            return None


def half_of(value, values):
    low, high = min(values), max(values)
    return None if low == high else int(value > (low + high) // 2)


def choices(values):
    """Every class that some of these values could be, as counts."""
    counts = Counter(values)
    for picked in itertools.product(*(range(most + 1) for most in counts.values())):
        if any(picked):
            yield Counter(dict(zip(counts, picked, strict=True)))


def further_splits(members, argument):
    """What rows of one child along one quasi-identifier could leave the class: they and the rest are good."""
    whole = Counter(row[3] for row in members)
    for place, part in ((0, child_of), (1, child_of), (2, half_of)):
        parts = {}
        for row in members:
            parts.setdefault(part(row[place], [other[place] for other in members]), []).append(row[3])
        for values in parts.values() if len(parts) > 1 else ():
            for chosen in choices(values):
                if good(list(chosen.elements()), [argument]) and good(list((whole - chosen).elements()), [argument]):
                    yield place, chosen


@search(1, seed=seeds)
def test_topdown_is_locally_minimal(con, tmp_path, seed):
    """No class can be specialised along one quasi-identifier for any of its rows, by brute force."""
    draw = random.Random(seed)
    rows = [(draw.choice("abcde"), draw.choice("abcde"), draw.randint(0, 9), draw.choice("xyz"), i) for i in range(18)]
    columns = {"p": "VARCHAR", "q": "VARCHAR", "n": "INTEGER", "s": "VARCHAR", "rid": "INTEGER"}
    tables.fill(con, "t", columns, rows)
    argument = ARGUMENTS[seed % len(ARGUMENTS)]
    tree = {"taxonomy": {"file": "tree.json"}}
    policy = {
        "source": "t", "target": NEW, "keep": ["rid"], "sensitive": ["s"], "require": [argument],
        "algorithm": "topdown", "output": {"class_id": True},
        "quasi_identifiers": {"p": tree, "q": tree, "n": {"numeric": True}},
    }  # fmt: skip
    (tmp_path / "tree.json").write_text(json.dumps(TREE))
    ldiv_db.run(con, policy, folder=tmp_path)
    by_id = {row[4]: row for row in rows}
    classes = {}
    for class_id, rid in con.execute("SELECT class_id, rid FROM out").fetchall():
        classes.setdefault(class_id, []).append(by_id[rid])
    assert len(classes) > 1
    for members in classes.values():
        assert not list(further_splits(members, argument))


@pytest.mark.slow
@pytest.mark.parametrize("split", ["relaxed", "strict"])
def test_what_is_tried_at_once_splits_as_what_is_tried_in_turn(con, split, monkeypatch):
    draw = random.Random(0)
    rows = [(rid, *(draw.randint(0, 9) for _ in "abcd"), draw.choice("wwxyz")) for rid in range(80)]
    tables.fill(con, "t", dict.fromkeys(["rid", *"abcd"], "INTEGER") | {"s": "VARCHAR"}, rows)
    policy = {
        "source": "t", "target": NEW, "keep": ["rid"], "sensitive": ["s"],
        "quasi_identifiers": {name: {"numeric": True} for name in "abcd"}, "require": [{"frequency": 2}, {"k": 4}],
        "algorithm": {"name": "mondrian", "split": split}, "output": {"class_id": True},
    }  # fmt: skip
    found, rounds = [], []
    for looked_at in (mondrian._LOOKED_AT, 300, 1):  # all at once, two and then more, one after another
        monkeypatch.setattr(mondrian, "_LOOKED_AT", looked_at)
        rounds.append(ldiv_db.run(con, policy).search["rounds"])
        found.append(con.execute("SELECT list(rid ORDER BY rid) FROM out GROUP BY class_id ORDER BY 1").fetchall())
    assert found[0] == found[1] == found[2] and len(found[0]) > 4
    assert rounds[0] < rounds[1] < rounds[2]


def test_rows_that_fit_nowhere_are_one_class_with_those_that_have_most_slack(con, monkeypatch):
    """Five rows are alike in all, and five like nobody: the first are no class without some of the others."""
    monkeypatch.setattr(peel, "PLACES", 1)
    monkeypatch.setattr(peel, "LAST_ROUNDS", 0)
    rows = [(0, "00", "a")] * 5 + [(99, "99", value) for value in "bcdef"]
    tables.fill(con, "t", {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR"}, rows)
    policy = {
        "source": "t", "target": "out", "sensitive": ["s"], "require": [{"frequency": 2}], "algorithm": "peel",
        "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [2, 1]}}},
    }  # fmt: skip
    ldiv_db.run(con, policy)
    found = con.execute("SELECT age, zip, s FROM out").fetchall()
    assert len(found) == 10 and not oracle.violations([((age, zip_), s) for age, zip_, s in found], "frequency", 2)


def simple(con, algorithm, require, **more):
    """A policy for 30 rows with two sensitive attributes."""
    rows = [(i % 20, "abc"[i % 3], "uvw"[i * 5 % 7 % 3], i // 2) for i in range(30)]
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR", "u": "VARCHAR", "who": "INTEGER"}, rows)
    return {
        "source": "t", "target": "out", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s", "u"],
        "identifiers": ["who"], "require": require, "algorithm": algorithm,
    } | more  # fmt: skip


@pytest.mark.parametrize("algorithm", some(["peel", "mondrian", "topdown"]))
def test_several_sensitive_attributes_and_others_known(con, algorithm):
    require = [{"distinct": 3, "sensitive": "s"}, {"distinct": 2, "sensitive": "u", "others_known": True}]
    ldiv_db.run(con, simple(con, algorithm, require))
    rows = con.execute("SELECT age, s, u FROM out").fetchall()
    assert not oracle.violations([(age, s) for age, s, _ in rows], "distinct", 3)
    assert not oracle.violations([((age, s), u) for age, s, u in rows], "distinct", 2)


@pytest.mark.parametrize("algorithm", some(["mondrian", "peel", "topdown"]))
def test_what_cannot_be_promised_is_refused(con, algorithm):
    with refuses("require"):
        plan(con, simple(con, algorithm, [{"unique_distinct": 2}]))
    with pytest.raises(InfeasibleError, match="the nearest it meets is l: 3"):
        plan(con, simple(con, algorithm, [{"distinct": 4}]))
    known = {"k": 30, "sensitive": "s", "others_known": True}
    with pytest.raises(InfeasibleError, match="of 3 classes for those who know u 3 violate it, the worst reaches"):
        plan(con, simple(con, algorithm, [known]))


def test_rows_that_nobody_takes_are_merged_or_left_out(con):
    """Five of ten rows have one value and stand apart: the others can bear them only together."""
    rows = [(0, "a")] * 5 + [(100 + i, "bcdef"[i]) for i in range(5)]
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {"source": "t", "target": "out", "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"],
              "require": [{"frequency": 2}], "algorithm": "peel"}  # fmt: skip
    result = ldiv_db.run(con, policy)
    assert result.loss.rows_published == 10
    values = oracle.group(con.execute("SELECT age, s FROM out").fetchall())
    assert all(Fraction(Counter(found).most_common(1)[0][1], len(found)) <= Fraction(1, 2) for found in values.values())


@pytest.mark.slow
def test_the_result_counts_rows_open_to_the_similarity_attack(con):
    """Values that differ but are all of one category tell that category; weights make classes of several."""
    rows = [(i // 4, "abcd"[i % 4] if i < 16 else "ab"[i % 2]) for i in range(32)]
    tables.fill(con, "t", {"age": "INTEGER", "s": "VARCHAR"}, rows)
    policy = {"source": "t", "target": NEW, "algorithm": "topdown",
              "quasi_identifiers": {"age": {"numeric": True}},
              "sensitive": {"s": {"categories": [["a", "b"], ["c", "d"]]}}}  # fmt: skip
    plain = ldiv_db.run(con, policy | {"require": [{"distinct": 2}]}).similarity[0]
    assert (plain.rows_before, plain.rows_after) == (16, 16)
    weighed = ldiv_db.run(con, policy | {"require": [{"entropy_alpha": {"l": 1.5, "alpha": 1}}]}).similarity[0]
    assert (weighed.rows_before, weighed.rows_after) == (16, 0)


def test_a_plan_shows_weights(con):
    policy = simple(con, "topdown", [{"distinct_alpha": {"l": 2, "alpha": 1}, "sensitive": "s"}])
    policy["sensitive"] = {"s": {"categories": [["a"], ["b"], ["c"]], "weights": {"sensitivity": 2}}, "u": {}}
    document = describe_plan(plan(con, policy))
    assert document["requirements"][0]["parameters"]["weights"] == [0, 0.8, 1]


def test_stratified_cuts_divide_where_no_split_along_the_values_is_good(con):
    """Whoever is young is ill with A, whoever is old with B: only both together are good."""
    rows = [(age, "AB"[age // 10]) for age in range(20)]
    tables.fill(con, "people", {"age": "INTEGER", "disease": "VARCHAR"}, rows)
    policy = {
        "source": "people", "target": {"table": "released", "if_exists": "replace"}, "seed": 0,
        "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": "disease", "require": [{"t_closeness": 0.05}],
    }  # fmt: skip
    assert ldiv_db.run(con, policy | {"algorithm": "stratified"}).loss.classes == 10
    pairs = con.execute("SELECT age, string_agg(disease, '' ORDER BY disease) FROM released GROUP BY age").fetchall()
    assert {values for _, values in pairs} == {"AB"}


@pytest.mark.slow
@search(2, draw=draws)
def test_what_is_split_anew_never_costs_more(con, tmp_path, draw):
    """With rounds of `resplit` the loss is at most that without."""
    case = prepared(draw, {"name": "stratified"}, largest=40)
    case.policy["target"] = NEW
    case.place(con, tmp_path)
    losses = []
    for rounds in (0, 6):
        with pytest.MonkeyPatch.context() as patch, suppress(InfeasibleError):
            patch.setattr(stratified, "ROUNDS", rounds)
            losses.append(ldiv_db.run(con, case.policy, folder=tmp_path).loss.lm_mean)
    assert losses == [] or losses[1] <= losses[0] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 9])
def test_classes_of_wide_numbers_are_regrouped(con, seed, monkeypatch):
    """Where no row is left over, peeling numbers classes by their values: they went beyond what the search bears."""
    monkeypatch.setattr(auto, "SMALL", 0)
    draw = random.Random(seed)
    draws = [[draw.choice([0, 1]) * 1e9 + draw.random() * draw.choice([1, 1, 1e8]) for _ in "abc"] for _ in range(60)]
    rows = [(*drawn, "xyz"[i % 3]) for i, drawn in enumerate(draws)]
    tables.fill(con, "t", {"a": "DOUBLE", "b": "DOUBLE", "c": "DOUBLE", "s": "VARCHAR"}, rows)
    policy = {"source": "t", "target": "released", "quasi_identifiers": {c: {"numeric": True} for c in "abc"}}
    result = ldiv_db.run(con, policy | {"sensitive": ["s"], "require": [{"k": 3}], "algorithm": "auto", "seed": 1})
    assert result.algorithm == "peel" and result.loss.rows_published == 60


@pytest.mark.parametrize(("count", "bits"), some([pytest.param(5, 17), pytest.param(64, KEY_BITS)]))
def test_peel_ends_on_tables_of_many_columns(con, count, bits, monkeypatch):
    """Quasi-identifiers of which no level fits into a key need no bit of it: with one each, they would never fit."""
    monkeypatch.setattr(hierarchies, "KEY_BITS", bits)
    columns = [f"q{number}" for number in range(count)]
    made = ", ".join(f"(i * {number + 3}) % {5 + number % 7} AS q{number}" for number in range(count))
    con.execute(f"CREATE TABLE t AS SELECT {made}, 'abcd'[1 + i % 4] AS s FROM range(8) AS r(i)")
    policy = {"source": "t", "target": "o", "sensitive": ["s"], "require": [{"k": 3}], "algorithm": "peel", "seed": 1}
    ldiv_db.run(con, policy | {"quasi_identifiers": {name: {"numeric": True} for name in columns}})
    counted = f"SELECT min(n), sum(n) FROM (SELECT count(*) AS n FROM o GROUP BY {', '.join(columns)})"
    smallest, rows = con.execute(counted).fetchone()
    assert (smallest >= 3, rows) == (True, 8)
