"""Attacks on the caller's connection: against brute force, and on tables each broken by exactly one of them."""

import json
import math
import random
from collections import Counter
from fractions import Fraction

import duckdb
import oracle
import pytest
import tables
from strategies import draws, search, seeded, some
from tables import fill

import ldiv_db
from ldiv_db.attacking import matching
from ldiv_db.database.errors import PolicyError

GROUPS = [["a", "b"], ["c"], ["d", "e"]]
CATEGORY = {value: number for number, group in enumerate(GROUPS) for value in group} | {None: 0}


def found(result, name, sensitive=None):
    (attack,) = [a for a in result.attacks if a.name == name and (sensitive is None or a.sensitive == sensitive)]
    return attack


def gains(result, name):
    return [gain.gain for gain in found(result, name).gains]


def near(number, fraction):
    return number is not None and abs(number - float(fraction)) < 1e-8


@search(4, draw=draws)
def test_every_gain_is_what_brute_force_finds(con, table, draw):
    values = draw.choice(["abc", "abcde", "a", ["a", None], ["a", "b", None, "d"]])
    n, m = draw.randint(1, 24), draw.randint(0, 3)
    rows = [(draw.choice([1, 2, None]), draw.choice("xy"), draw.choice(values)) for _ in range(n)]
    threshold = draw.choice([0, 0.2, 0.25, 0.5, 1])
    table("t", {"a": "INTEGER", "b": "VARCHAR", "s": "VARCHAR"}, rows)
    result = ldiv_db.attack(con, "t", ["a", "b"], {"s": {"categories": GROUPS}}, m=m, threshold=threshold)
    classes = [((a, b), s) for a, b, s in rows]
    assert (result.rows, result.classes, result.holds) == (n, len(oracle.group(classes)), None)
    assert found(result, "homogeneity").figures["rows"] == oracle.single(classes)
    assert found(result, "similarity").figures["rows"] == oracle.single([(k, CATEGORY[v]) for k, v in classes])
    ratio, difference = oracle.skewness(classes)
    assert near(gains(result, "skewness")[0], ratio) and near(gains(result, "skewness")[1], difference)
    best, certain = oracle.background(classes, m)
    assert near(gains(result, "background knowledge")[0], best)
    assert found(result, "background knowledge").figures["rows"] == certain
    each = oracle.posteriors(classes)
    assert near(gains(result, "posterior")[0], each[-1])
    figures = found(result, "posterior").figures
    assert near(figures["mean"], sum(each) / n)
    assert figures["deciles"] == [float(each[math.ceil(j * n / 10) - 1]) for j in range(1, 11)]
    sizes = [len(values) for values in oracle.group(classes).values()]
    risks = found(result, "prosecutor")
    assert near(gains(result, "prosecutor")[0], Fraction(1, min(sizes))) and near(risks.figures["mean"], len(sizes) / n)
    high = sum(size for size in sizes if Fraction(1, size) > Fraction(str(threshold)))
    assert risks.figures["rows_above_threshold"] == high
    assert near(gains(result, "marketer")[0], Fraction(len(sizes), n))


# -- known people ------------------------------------------------------------------------------------


def label_of(row, case):
    """What a published row says of its people: a label, or two bounds, for every quasi-identifier."""
    return tuple((row[f"{name}_min"], row[f"{name}_max"]) if f"{name}_min" in row else row[name] for name in case.names)


def covering(case):
    """`covers(label, person)` of the case's quasi-identifiers, by the oracle."""

    def covers_one(label, value, scale):
        if isinstance(label, tuple):
            low, high = label
            return low is None or (value is not None and low <= value <= high)
        return scale.covers(label, value)

    def covers(label, person):
        return all(covers_one(*each) for each in zip(label[0], person, case.scales, strict=True))

    return covers


def people_of(draw, case, count):
    """People as the table has them, and such as mix the values of several rows."""
    width = len(case.names)
    drawn = [draw.choice(case.rows)[:width] for _ in range(count)]
    return drawn + [tuple(draw.choice(case.rows)[i] for i in range(width)) for _ in range(count)]


@search(1, draw=seeded)
def test_known_people_are_matched_as_brute_force_matches_them(con, tmp_path, draw):
    """Also where pairs are made one by one, or by nodes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "_FEW", draw.choice([matching._FEW, 0, 10**9]))
        match_known_people(con, tmp_path, draw)


def match_known_people(con, tmp_path, draw):
    case = tables.random_case(draw, "bisect", largest=20)
    case.place(con, tmp_path)
    case.policy["output"]["class_id"] = True
    ldiv_db.run(con, case.policy, folder=tmp_path)
    release = tables.published(con, case)
    people = people_of(draw, case, 6)
    fill(con, "people", {name: case.columns[name] for name in case.names}, people)
    words = {"policy": case.policy, "folder": tmp_path, "known": "people", "population": "source"}
    result = ldiv_db.attack(con, "out.released", **words)
    classes = oracle.group(((label_of(row, case), row["class_id"]), row["secret"]) for row in release)
    told = oracle.linked(people, classes, covering(case))
    figures = found(result, "linking").figures
    assert (figures["people"], figures["no_class"]) == (len(people), sum(not labels for labels, _ in told))
    assert figures["one_class"] == sum(len(labels) == 1 for labels, _ in told)
    assert figures["one_value"] == sum(len(set(values)) == 1 for _, values in told)
    best = [Fraction(max(Counter(values).values()), len(values)) for _, values in told if values]
    assert near(gains(result, "linking")[0], max(best)) and near(figures["mean"], sum(best) / len(best))
    # The population: how many of the source every class covers, at least those that it holds.
    everybody = [row[: len(case.names)] for row in case.rows]
    covered = Counter(label for labels, _ in oracle.linked(everybody, classes, covering(case)) for label in labels)
    people_alike = {label: max(covered[label], len(values)) for label, values in classes.items()}
    assert near(gains(result, "journalist")[0], Fraction(1, min(people_alike.values())))
    share = sum(Fraction(len(values), people_alike[label]) for label, values in classes.items()) / len(release)
    assert near(gains(result, "marketer")[0], share)
    assert found(result, "journalist").figures["rows_beyond_population"] == 0
    assert result.holds, "an audited release keeps what its policy promises"


def test_a_quasi_identifier_that_is_not_known_rules_nobody_out(con, tmp_path):
    policy = hospital(con)
    con.execute("DELETE FROM t WHERE zip = '*'")
    fill(con, "people", {"zip": "VARCHAR"}, [("123",), ("124",), ("999",)])
    result = ldiv_db.attack(con, "t", policy=policy, known="people")
    figures = found(result, "linking").figures
    assert (figures["people"], figures["no_class"], figures["one_class"]) == (3, 1, 1)
    assert found(result, "linking").shown is None and "Flu" not in str(result.as_dict())  # people are not shown


#: A set of ranges that overlap, which covers a value once.
TWENTIES = "{[20 .. 30], 25, [24 .. 26)}"


def hospital(con):
    """A release with ranges, a prefix and a date level, by another tool."""
    columns = {"age": "VARCHAR", "zip": "VARCHAR", "day": "VARCHAR", "s": "VARCHAR"}
    rows = [
        (TWENTIES, "12*", "2020", "Flu"), *[(TWENTIES, "12*", "2020", "HIV")] * 2,
        ("[31 .. 40)", "123", "{2020-01, 2020-03}", "Flu"), ("[31 .. 40)", "123", "{2020-01, 2020-03}", "Flu"),
        ("-5", "*", None, "Cold"), ("[-9 .. -2]", "*", "*", "Cold"), ("[-9 .. -2]", "*", "*", "HIV"),
    ]  # fmt: skip
    fill(con, "t", columns, rows)
    keys = {
        "age": {"numeric": True},
        "zip": {"taxonomy": {"prefix": [3, 2]}},
        "day": {"taxonomy": {"dates": ["month", "year"]}},
    }
    return {"source": "x", "target": "y", "quasi_identifiers": keys, "sensitive": ["s"], "require": [{"k": 1}]}


#: How many classes of the hospital's release cover somebody, and how many values these have.
COVERED = [
    ((25, "123", "2020-07-01"), 1, 2), ((30, "129", "2020-12-31"), 1, 2), ((30, "13", "2020-12-31"), 0, 0),
    ((35, "123", "2020-03-31"), 1, 1), ((35, "123", "2020-02-01"), 0, 0), ((40, "123", "2020-03-31"), 0, 0),
    ((-5, "9", None), 2, 2), ((-5, "9", "1999-01-01"), 1, 2), ((-9, None, None), 1, 2), ((None, None, None), 0, 0),
]  # fmt: skip


def test_labels_cover_values(con):
    policy = hospital(con)
    people = [person for person, *_ in [*COVERED, COVERED[3]]]
    fill(con, "people", {"age": "INTEGER", "zip": "VARCHAR", "day": "DATE"}, people)
    linking = found(ldiv_db.attack(con, "t", policy=policy, known="people", show_values=True), "linking")
    shown = {(row["age"], row["zip"], row["day"]): row["classes"] for row in linking.shown}
    assert shown == {person: classes for person, classes, _ in COVERED if classes}
    expected = {"age": 35, "zip": "123", "people": 2, "classes": 1, "rows": 2, "value": "Flu", "posterior": 1.0}
    assert expected | {"day": "2020-03-31"} in [{key: row[key] for key in [*expected, "day"]} for row in linking.shown]
    assert json.loads(json.dumps(linking.shown)) == linking.shown
    assert linking.figures["no_class"] == sum(not classes for _, classes, _ in COVERED)
    assert linking.figures["one_class"] == sum(classes == 1 for _, classes, _ in COVERED) + 1
    assert linking.figures["one_value"] == sum(values == 1 for _, _, values in COVERED) + 1


def test_sets_are_read_as_they_are_written(con, tmp_path):
    """Quoted members, NULL and the text NULL, members that overlap: each covers what it covers, a class counts once."""
    leaves = ['say "x"', "a, b", "NULL", "{c}", "plain word", ""]
    (tmp_path / "tree.json").write_text(json.dumps({"any": {leaf: {} for leaf in leaves}}))
    labels = {'{"say ""x""", "a, b"}': 2, '{"NULL", "{c}"}': 2, "{plain word, NULL}": 2, '{"", any}': 6, '{"{c}"}': 1}
    fill(con, "t", {"q": "VARCHAR", "s": "VARCHAR"}, [(label, "x") for label in labels])
    fill(con, "people", {"q": "VARCHAR"}, [(value,) for value in [*leaves, None]])
    keys = {"q": {"taxonomy": {"file": "tree.json"}}}
    policy = {"source": "x", "target": "y", "quasi_identifiers": keys, "sensitive": ["s"], "require": [{"k": 1}]}
    words = {"policy": policy, "folder": tmp_path, "known": "people", "show_values": True}
    shown = found(ldiv_db.attack(con, "t", **words), "linking").shown
    classes = {row["q"]: row["classes"] for row in shown}
    assert classes == {'say "x"': 2, "a, b": 2, "NULL": 2, "{c}": 3, "plain word": 2, "": 1, None: 1}
    assert sum(labels.values()) == sum(classes.values())


UNREADABLE = ['{a"b, c}', '{a, "b}', '{a, "b"c"}', "{a, }", "{a, {b}", "{a, b", "{}", "{a, x}"]


@pytest.mark.parametrize("taxonomy", some([{"file": "tree.json"}, {"prefix": [5]}, None]))
def test_what_is_no_label_is_none_for_whoever_reads_it(taxonomy, con, tmp_path):
    """A set is unreadable for its loss and for its attackers alike; `x` is a label of levels made of values alone."""
    (tmp_path / "tree.json").write_text(json.dumps({"any": {leaf: {} for leaf in ["a", "b", "c"]}}))
    number, values = taxonomy is None, ["1", "2", "3"] if taxonomy is None else ["a", "b", "c"]
    labels = [label.translate(str.maketrans("abc", "123")) if number else label for label in UNREADABLE]
    fill(con, "x", {"q": "INTEGER" if number else "VARCHAR", "s": "VARCHAR"}, [(v, "x") for v in values])
    fill(con, "t", {"q": "VARCHAR", "s": "VARCHAR"}, [(label, "x") for label in [*labels, values[0], "*"]])
    key = {"numeric": True} if number else {"taxonomy": taxonomy}
    policy = {"source": "x", "target": "y", "quasi_identifiers": {"q": key}, "sensitive": ["s"], "require": [{"k": 1}]}
    with pytest.raises(PolicyError, match=f"q: {len(labels)} different published values"):
        ldiv_db.measure(con, "t", policy=policy, folder=tmp_path)
    told = len(labels) - (taxonomy == {"prefix": [5]})
    with pytest.raises(PolicyError, match=f"q: {told} of its labels are"):
        ldiv_db.attack(con, "t", policy=policy, folder=tmp_path, known="x")


@pytest.mark.parametrize(("recode", "covered"), some([("set", {"a": 2, "b": 1}), ("tree", {"a": 1, "b": 1, "{a}": 1})]))
def test_a_label_that_looks_like_a_set_is_read_alike(recode, covered, con, tmp_path):
    """It is that of a node first, or of a set where the policy writes sets."""
    (tmp_path / "tree.json").write_text(json.dumps({"any": {leaf: {} for leaf in ["a", "b", "{a}"]}}))
    fill(con, "x", {"q": "VARCHAR", "s": "VARCHAR"}, [(v, "x") for v in ["a", "b", "{a}"]])
    fill(con, "t", {"q": "VARCHAR", "s": "VARCHAR"}, [("{a}", "x"), ("{a, b}", "x")])
    policy = {"source": "x", "target": "y", "sensitive": ["s"], "require": [{"k": 1}]}
    policy["quasi_identifiers"] = {"q": {"taxonomy": {"file": "tree.json"}}}
    words = {"policy": policy | {"recode": recode}, "folder": tmp_path}
    shown = found(ldiv_db.attack(con, "t", known="x", show_values=True, **words), "linking").shown
    assert {row["q"]: row["classes"] for row in shown} == covered
    assert ldiv_db.measure(con, "t", **words).rows_uncovered == 3 - len(covered)


# -- each attack's own table ---------------------------------------------------------------------------

SIX = {"x": "aabbcc", "y": "abcabc"}
#: A table that breaks one promise and no other: classes, categories, m, what is promised, and the attacks that fail.
BROKEN = [
    ({"x": "aabbcc", "y": "aaa"}, 1, "distinct:2", {"homogeneity"}),
    ({"x": "aabcd", "y": "aab"}, 1, "distinct:3", {"background knowledge"}),
    ({"x": "aabbb", "y": "cccdd"}, 0, "frequency:2", {"posterior", "background knowledge"}),
    ({"x": "abbb", "y": "abcd"}, 1, "frequency:2", {"posterior"}),
    ({"x": "aabbb", "y": "aaabb"}, 1, "frequency:2", {"posterior", "skewness"}),
    ({"x": "aabb", "y": "ab"}, 0, "k:3", {"prosecutor"}),
    ({"x": "ab", "y": "cd"}, 0, "k:3", {"prosecutor", "marketer"}),
    ({"x": "aabb", "y": "bbcc"}, 0, "threshold:1,a=0.4", {"posterior"}),
    (SIX, 0, "frequency:3", set()),
]


@pytest.mark.parametrize(("classes", "m", "require", "broken"), some(BROKEN, 5))
def test_a_table_is_broken_by_its_attack(classes, m, require, broken, con, table):
    table("t", {"q": "VARCHAR", "s": "VARCHAR"}, [(q, s) for q, values in classes.items() for s in values])
    result = ldiv_db.attack(con, "t", "q", "s", [require], m=m)
    assert {attack.name for attack in result.attacks if attack.holds is False} == broken
    assert result.holds is (not broken)


def test_skewness_is_found_where_nothing_else_is_told(con, table):
    """A value of every fiftieth row is half of one class of four values in three categories."""
    rows = [("x", value) for value in "zzab"] + [("y", value) for value in "abcd" * 24]
    table("t", {"q": "VARCHAR", "s": "VARCHAR"}, rows)
    result = ldiv_db.attack(con, "t", "q", {"s": {"categories": [["z", "d"], ["a", "b"], ["c"]]}}, ["distinct:3"])
    assert gains(result, "skewness") == [25.0, 0.48] and result.holds
    assert [gains(result, name)[0] for name in ("homogeneity", "similarity")] == [0.0, 0.0]
    assert gains(result, "background knowledge")[1] == 0.0 and gains(result, "posterior") == [0.5]


def test_similar_values_break_the_promise_of_more_values_than_a_category_has(con, table):
    table(
        "t",
        {"q": "VARCHAR", "s": "VARCHAR"},
        [("x", "HIV"), ("x", "Cancer"), ("y", "Flu"), ("y", "HIV"), ("y", "Cold")],
    )
    words = {"qi": "q", "sensitive": {"s": {"categories": [["HIV", "Cancer"], "Flu", "Cold"]}}}
    broken = ldiv_db.attack(con, "t", require=["distinct:3"], **words)
    assert not found(broken, "similarity").holds and found(broken, "homogeneity").holds
    kept = ldiv_db.attack(con, "t", require=["distinct:2"], **words)
    assert found(kept, "similarity").gains[0].bound is None and kept.holds


def test_known_people_break_a_promise(con, tmp_path):
    policy = hospital(con) | {"require": [{"distinct": 2}]}
    fill(con, "people", {"age": "INTEGER"}, [(35,), (25,)])
    linking = found(ldiv_db.attack(con, "t", policy=policy, known="people"), "linking")
    assert [(gain.bound, gain.holds) for gain in linking.gains] == [(None, None), (0.0, False)]
    assert linking.gains[1].gain == 0.5


def test_a_population_lowers_the_risk_of_small_classes(con):
    policy = hospital(con) | {"require": [{"k": 2}]}
    people = [(age, "123", "2020-01-31") for age in range(20, 40)] + [(-5, "9", None)] * 10
    fill(con, "everybody", {"age": "INTEGER", "zip": "VARCHAR", "day": "DATE"}, people)
    result = ldiv_db.attack(con, "t", policy=policy, population="everybody")
    assert not found(result, "prosecutor").holds and gains(result, "prosecutor") == [1.0]
    # Classes of 3, 2, 1 and 2 rows cover 11, 9, 10 and 10 people.
    assert found(result, "journalist").holds and near(gains(result, "journalist")[0], Fraction(1, 9))
    assert near(gains(result, "marketer")[0], (Fraction(3, 11) + Fraction(2, 9) + Fraction(3, 10)) / 8)


def test_a_population_that_lacks_the_published_is_no_help(con):
    policy = hospital(con) | {"require": [{"k": 1}]}
    fill(con, "strangers", {"age": "INTEGER"}, [(99,), (25,)])
    result = ldiv_db.attack(con, "t", policy=policy, population="strangers")
    assert gains(result, "journalist") == gains(result, "prosecutor") == [1.0]
    assert near(gains(result, "marketer")[0], Fraction(4, 8))
    assert found(result, "journalist").figures["rows_beyond_population"] == 8


def test_several_sensitive_attributes_and_a_class_column(con, table):
    rows = [(1, "x", "a", 1), (1, "x", "b", 1), (2, "x", "a", 1), (2, "x", "a", 2)]
    table("t", {"id": "INTEGER", "q": "VARCHAR", "s": "VARCHAR", "u": "INTEGER"}, rows)
    result = ldiv_db.attack(con, "t", "q", {"s": {"categories": ["a", "b"]}, "u": {}}, class_column="id")
    assert result.classes == 2
    assert [found(result, "homogeneity", name).figures["rows"] for name in ("s", "u")] == [2, 2]
    assert [attack.sensitive for attack in result.attacks if attack.name == "similarity"] == ["s"]


def test_an_empty_table_gives_nobody_anything(con, table):
    table("t", {"q": "VARCHAR", "s": "VARCHAR"}, [])
    result = ldiv_db.attack(con, "t", "q", {"s": {"categories": ["a", "b"]}}, ["distinct:2"])
    assert (result.rows, result.classes, result.holds) == (0, 0, True)
    assert {gain.gain for attack in result.attacks for gain in attack.gains} == {None}


CATEGORIES = [["HIV", "Cancer"], ["Phthisis", "Hepatitis"], ["Obesity", "Asthma"], ["Flu", "Indigestion"]]


def test_similarity_on_the_tables_of_its_paper(con, fixtures):
    """Of the (l,alpha) paper: Table 5, 2-diverse, tells the category of two classes; Tables 6 and 7 tell none."""
    rows = [(1, v) for v in ("HIV", "HIV", "Cancer", "Cancer")]
    rows += [(2, v) for v in ("Hepatitis", "Phthisis", "Asthma", "Obesity")]
    rows += [(3, v) for v in ("Flu", "Flu", "Flu", "Indigestion")]
    fill(con, "t", {"q": "INTEGER", "s": "VARCHAR"}, rows)
    similar = found(ldiv_db.attack(con, "t", "q", {"s": {"categories": CATEGORIES}}, ["distinct:2"]), "similarity")
    assert similar.figures == {"classes": 2, "rows": 8} and near(similar.gains[0].gain, Fraction(2, 3))
    for number in (6, 7):
        path = str(fixtures / "papers" / f"l_alpha_table{number}.csv")
        result = ldiv_db.attack(con, path, ["age", "country", "zip_code"], {"disease": {"categories": CATEGORIES}})
        assert found(result, "similarity").figures == {"classes": 0, "rows": 0}


# -- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "people", "says"),
    [
        ("SELECT 1", "SELECT 1 AS other", "known: has none of the quasi-identifiers"),
        ("SELECT 1", "SELECT 'x' AS age", "known: age takes numbers or times, it is VARCHAR"),
        ("SELECT 1", "SELECT 'x' AS day, 1 AS age", "known: day takes times"),
        ("UPDATE t SET age = 'old' WHERE s = 'Cold'", "SELECT 1 AS age", "age: 1 of its labels are neither"),
        ("UPDATE t SET age = '[1-2' WHERE s = 'Cold'", "SELECT 1 AS age", "age: 1 of its labels are neither"),
        ("ALTER TABLE t DROP age", "SELECT 1 AS age", "quasi_identifiers.age: the published table has neither age"),
        ("UPDATE t SET sex = 'F' WHERE s = 'HIV'", "SELECT 'm' AS sex", "sex: 2 of its labels are not in the taxonomy"),
    ],
)
def test_labels_and_people_that_cannot_be_read(change, people, says, con, tmp_path):
    policy = hospital(con)
    con.execute("ALTER TABLE t ADD sex VARCHAR DEFAULT 'any'")
    (tmp_path / "sex.csv").write_text("m;any\nf;any\n")
    policy["quasi_identifiers"]["sex"] = {"taxonomy": {"file": "sex.csv"}}
    con.execute("UPDATE t SET sex = '{x}' WHERE age = '-5'" if "sex" in change else "SELECT 1")
    con.execute(change)
    con.execute(f"CREATE TABLE people AS {people}")
    with pytest.raises(PolicyError, match=says):
        ldiv_db.attack(con, "t", policy=policy, folder=tmp_path, known="people")


def test_a_policy_says_what_is_missing(con):
    policy = hospital(con)
    policy["quasi_identifiers"]["zip"] = {"taxonomy": "towns"}
    policy["quasi_identifiers"]["day"] = {"taxonomy": {"file": "none.csv"}}
    with pytest.raises(PolicyError, match=r"(?s)zip\.taxonomy.*the catalog has no taxonomy.*day\.taxonomy.*no file"):
        ldiv_db.attack(con, "t", policy=policy)


def test_a_policy_says_the_categories(con):
    policy = hospital(con) | {"sensitive": {"s": {"categories": [["HIV", "Flu"], ["Cold"]]}}}
    policy["require"] = [{"entropy_alpha": {"l": 2, "alpha": 0}}]
    similarity = found(ldiv_db.attack(con, "t", policy=policy), "similarity")
    assert similarity.figures == {"classes": 3, "rows": 6} and similarity.gains[0].bound == 0 and not similarity.holds


def test_a_requirement_promises_for_its_own_attribute(con, table):
    table("t", {"q": "VARCHAR", "s": "VARCHAR", "u": "VARCHAR"}, [("x", "a", "c"), ("x", "b", "c"), ("y", "a", "c")])
    result = ldiv_db.attack(con, "t", "q", ["s", "u"], ["s=frequency:2", {"k": 1, "sensitive": "u"}])
    assert [found(result, "posterior", name).gains[0].bound for name in ("s", "u")] == [0.5, None]
    assert found(result, "prosecutor").gains[0].bound == 0.5


@pytest.mark.slow
def test_the_same_for_any_order_and_number_of_threads(tmp_path):
    draw = random.Random(3)
    case = tables.random_case(draw, "bisect", largest=60)
    people = people_of(draw, case, 20)
    results = []
    for threads, step in ((2, 1), (1, 1), (2, -1)):
        with duckdb.connect(config={"threads": threads}) as con:
            case.place(con, tmp_path, [*range(len(case.rows))][::step])
            ldiv_db.run(con, case.policy, folder=tmp_path)
            fill(con, "people", {name: case.columns[name] for name in case.names}, people[::step])
            words = {"policy": case.policy, "folder": tmp_path, "known": "people", "show_values": True}
            words |= dict.fromkeys(("population", "targets", "control", "definetti"), "source") | {"tries": 50}
            found = ldiv_db.attack(con, "out.released", downcoding=True, counting=True, **words)
            results.append(found.as_dict())
    assert results[0] == results[1] == results[2]


def overlapping(con, people=200):
    """A release whose classes all cover most people, and the people."""
    rows = [(f"[{low}-{low + 300}]", value) for low in range(60) for value in "ab"]
    fill(con, "t", {"age": "VARCHAR", "s": "VARCHAR"}, rows)
    fill(con, "people", {"age": "INTEGER", "s": "VARCHAR"}, [(age, "a") for age in range(people)])
    return overlapping_policy()


@pytest.mark.parametrize("people", some(["known", "population", "targets"]))
def test_what_a_budget_leaves_untried_is_said_and_promises_nothing(people, con, monkeypatch):
    monkeypatch.setattr(matching, "_AT_ONCE", 500)
    policy = overlapping(con)
    part = ldiv_db.attack(con, "t", policy=policy, budget=1_000, **{people: "people"})
    whole = ldiv_db.attack(con, "t", policy=policy, **{people: "people"})
    assert whole.finished and whole.holds
    left = [attack for attack in part.attacks if attack.untried]
    assert left and not part.finished
    assert all(attack.holds is None and 0 <= attack.untried.tried < attack.untried.whole for attack in left)
    assert all(not attack.as_dict()["finished"] for attack in left)
    assert (part.holds is None) == part.undecided


def test_pairs_are_made_once_for_all_who_ask(con, monkeypatch):
    made, paired = [], matching.Prefixes.paired
    monkeypatch.setattr(matching.Prefixes, "paired", lambda prefixes: made.append(1) or paired(prefixes))
    policy = overlapping(con)
    words = {"policy": policy, "known": "people", "population": "people"}
    once = ldiv_db.attack(con, "t", **words).as_dict()
    assert len(made) == 1
    monkeypatch.setattr(matching, "_AT_ONCE", 500)
    monkeypatch.setattr(matching, "_SETTLED", 0)
    assert ldiv_db.attack(con, "t", **words).as_dict() == once


def test_ranges_are_matched_without_the_pairs_that_they_do_not_cover(con):
    """The work of 3,000 ages and 1,000 narrow ranges grows with what they cover, and not with their product."""
    fill(
        con, "t", {"age": "VARCHAR", "s": "VARCHAR"}, [(f"[{3 * i}-{3 * i + 2}]", v) for i in range(1000) for v in "ab"]
    )
    fill(con, "people", {"age": "INTEGER"}, [(age,) for age in range(3000)])
    policy = overlapping_policy()
    result = ldiv_db.attack(con, "t", policy=policy, known="people", budget=5_000)
    assert result.finished and found(result, "linking").figures["one_class"] == 3000


def overlapping_policy():
    keys = {"quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"], "require": [{"distinct": 2}]}
    return {"source": "x", "target": "y", **keys}


@pytest.mark.parametrize(
    ("require", "given", "threshold"),
    [(["risk:0.25", "k:2"], None, 0.25), (["risk:0.25"], 0, 0), ([{"risk": {"average": 0.25}}], None, 0.2)],
)
def test_the_threshold_is_that_of_the_policy(con, require, given, threshold):
    con.execute("CREATE TABLE t AS SELECT i // 3 AS a, 'v' || i % 3 AS s FROM range(9) AS r(i)")
    found = ldiv_db.attack(con, "t", ["a"], ["s"], require, threshold=given)
    (risks,) = (attack for attack in found.attacks if attack.name == "prosecutor")
    assert risks.figures["threshold"] == threshold
    assert risks.figures["rows_above_threshold"] == (9 if threshold < 1 / 3 else 0)
