"""`ldiv check`: every requirement by its option, suppressed rows, anatomised pairs, violations as rows."""

from __future__ import annotations

from typing import Any

import pytest
from refusals import codes_told

from tests.strategies import some

CATEGORIES = "[[HIV, Cancer], [Hepatitis], [Flu, Cold]]"


@pytest.fixture
def bed3(bed: Any) -> Any:
    """Three classes of four, two and one rows, and a suppressed row."""
    bed.sql(
        "CREATE TABLE t AS FROM (VALUES ('[20-30]', 'EU', 'HIV', 1), ('[20-30]', 'EU', 'Flu', 2),"
        " ('[20-30]', 'EU', 'Cold', 2), ('[20-30]', 'EU', 'Hepatitis', 4), ('40', 'Asia', 'HIV', 5),"
        " ('40', 'Asia', 'HIV', 5), ('40', NULL, 'Flu', 5), ('*', '*', 'Cancer', 6)) v(age, area, disease, salary)"
    )
    return bed


def check(bed: Any, *words: Any, qi: str = "age,area", table: str = "t") -> Any:
    qi_words = ("--qi", qi) if qi else ()
    return bed.call("check", bed.database, table, *qi_words, "--sensitive", "disease", *words)


#: How many classes violate each requirement.
VIOLATED = {
    "k:2": 2, "distinct:2": 3, "unique_distinct:1": 1, "entropy:4": 3, "recursive:c=2,l=2": 3,
    "frequency:2": 3, "threshold:0.5,HIV=0.25": 3, "alpha_k:alpha=0.5,k=2": 3, "p_sensitive:p=2,k=4": 3,
    "distinct_alpha:l=2,alpha=1": 3, "entropy_alpha:l=2,alpha=1": 3, "recursive_alpha:c=3,l=2,alpha=0.5": 3,
    "t_closeness:0.6": 2, "t_closeness:t=0.6,distance=ordered": 0, "t_closeness:t=1,distance=hierarchical": 0,
}  # fmt: skip


def test_every_requirement_has_its_option(bed3: Any) -> None:
    tree = bed3.write("diseases.csv", "HIV;bad;*\nCancer;bad;*\nHepatitis;bad;*\nFlu;mild;*\nCold;mild;*\n")
    asked = [word for requirement in VIOLATED for word in ("--require", requirement)]
    called = check(bed3, *asked, "--categories", CATEGORIES, "--taxonomy", tree, "--json")
    assert called.code == 1, called.err
    found = [one["violating_classes"] for one in called.json["audits"][0]["requirements"]]
    assert dict(zip(VIOLATED, found, strict=True)) == VIOLATED


def test_a_second_reading_is_told(bed3: Any) -> None:
    asked = ("--require", "distinct:2", "--require", "beta_likeness:2", "--twice")
    found = check(bed3, *asked, "--json").json["audits"][0]["requirements"]
    assert [(one["second_reading"], one["read_once"]) for one in found] == [
        (3, None), (None, "the dbt package cannot read it")
    ]  # fmt: skip
    said = check(bed3, *asked).out
    assert "judged again, by other SQL (the dbt package's tests): the same verdict on distinct l=2" in said
    assert "not judged again: beta_likeness" in said


#: The worst that is reached, in which class of how many rows, and how far that is from what is asked.
WORST = {
    "k:3": (1, "rows", 1, 1, -2),
    "distinct:1": (1, "values", 1, 1, 0),
    "p_sensitive:p=1,k=3": (1, "values", 1, 1, -2),
    "frequency:2": (1, "rows / top value's rows", 3, 2, -2),
    "alpha_k:alpha=1,k=2": (1, "largest share", 1, 1, -1),
}


def test_the_worst_class_and_its_margin_are_told(bed3: Any) -> None:
    asked = [word for requirement in WORST for word in ("--require", requirement)]
    called = check(bed3, *asked, "--violations", "--json").json
    told = called["audits"][0]["requirements"]
    keys = ("worst", "worst_is", "worst_class", "worst_class_rows", "margin")
    assert dict(zip(WORST, (tuple(one[key] for key in keys) for one in told), strict=True)) == WORST
    assert {one["classes"] for one in told} == {4}
    first = {one["requirement"]: (one["class_no"], one["missing"]) for one in reversed(called["violations"])}
    assert list(first.values())[::-1] == [(number, -gap) for _, _, number, _, gap in WORST.values() if gap]


def test_what_is_shown_of_the_worst_class_says_which_part_it_is(bed3: Any) -> None:
    """Of p and k only k is violated: the figure is of p, the margin of k."""
    shown = check(bed3, "--require", "p_sensitive:p=1,k=3", "--violations").out
    for text in ("worst reached", "1 (values)", "no. 1, 1 row ", "-2", "3 of 4", "reached (values)"):
        assert text in shown
    assert "reading" not in shown, "none was asked for"


def test_classes_of_who_knows_the_others_are_told_apart(bed3: Any) -> None:
    shown = check(bed3, "--sensitive", "salary", "--require", "disease=distinct:2", "--others-known").out
    assert "5 of 6" in shown and "the 4 classes, split by the other sensitive attributes, are judged" in shown


def test_weights_and_categories_from_a_file(bed3: Any) -> None:
    path = bed3.write("categories.yml", CATEGORIES)
    for weights, worst in (("{sensitivity: 2}", 0), ("[0.25, 0.5, 1]", 0.25)):
        words = ("--require", "distinct_alpha:l=1,alpha=0.1", "--categories", path, "--weights", weights, "--json")
        assert check(bed3, *words).json["audits"][0]["requirements"][0]["worst"] == worst


SCORED = ("--require", "distinct_alpha:l=2,alpha=1", "--categories")
REFUSED = [
    ("sensitive.categories", (*SCORED, "[[HIV], [Flu]]")),
    ("sensitive.categories", (*SCORED, "[[HIV], [HIV]]")),
    ("sensitive.categories", (*SCORED, "[[HIV]]")),
    ("sensitive.categories", ("--require", "k:2", "--categories", CATEGORIES, "--weights", "[0, 1]")),
    ("sensitive.weights", ("--require", "k:2", "--weights", "uniform")),
    ("sensitive.taxonomy", ("--require", "t_closeness:0.2", "--taxonomy", "diseases")),
    ("require.0.entropy_alpha", ("--require", "entropy_alpha:l=2,alpha=1")),
    ("require.recursive", ("--require", "recursive:c=2")),
    ("require.recursive", ("--require", "recursive:c=2,l=2,k=3")),
    ("require.alpha_k", ("--require", "alpha_k:0.5")),
    ("require.t_closeness", ("--require", "t_closeness:t=0.2,distance=near")),
    ("require.0.t_closeness", ("--require", "t_closeness:t=0.2,distance=hierarchical")),
    ("require.t_closeness", ("--require", "t_closeness:2")),
    ("require", ("--require", "salary=k:2")),
    ("sensitive-table", ("--require", "k:2", "--group", "age")),
]


def test_what_is_wrong_is_refused_by_its_code(bed3: Any) -> None:
    about = ("check", bed3.database, "t", "--qi", "age,area", "--sensitive", "disease")
    assert [(" ".join(codes_told(bed3.fails(2, *about, *words))), words) for _, words in REFUSED] == REFUSED


def test_a_value_without_a_leaf_is_counted_not_named(bed3: Any) -> None:
    tree = bed3.write("diseases.csv", "HIV;*\nFlu;*\n")
    called = check(bed3, "--require", "t_closeness:1", "--taxonomy", tree)
    assert called.code == 2 and "no leaf for 3 of the sensitive values" in called.err and "Cancer" not in called.err


# -- several sensitive attributes ---------------------------------------------------------------------


def test_a_requirement_for_one_attribute_alone(bed3: Any) -> None:
    words = ("--sensitive", "salary", "--require", "disease=distinct:2", "--require", "k:1", "--json")
    disease, salary = check(bed3, *words).json["audits"]
    assert [r["name"] for r in disease["requirements"]] == ["distinct", "k"]
    assert [r["name"] for r in salary["requirements"]] == ["k"]


def test_other_attributes_may_be_known(bed3: Any) -> None:
    """Of the class [20-30], EU only the two rows of salary 2 stay together once the salary is known."""
    words = ("--sensitive", "salary", "--require", "disease=distinct:2", "--json")
    plain = check(bed3, *words).json["audits"][0]["requirements"][0]
    known = check(bed3, *words, "--others-known").json["audits"][0]["requirements"][0]
    assert (plain["violating_classes"], plain["violating_rows"]) == (3, 4)
    assert (known["violating_classes"], known["violating_rows"]) == (5, 6)
    assert known["parameters"] == {"l": 2, "others_known": True}


# -- suppressed rows -----------------------------------------------------------------------------------


def test_suppressed_rows_are_judged_or_left_out_and_always_counted(bed3: Any) -> None:
    bed3.sql("INSERT INTO t VALUES (NULL, NULL, 'Flu', 1), ('*', NULL, 'Flu', 1), ('40', 'Asia', NULL, 1)")
    judged = check(bed3, "--require", "k:2", "--json").json["audits"][0]
    assert (judged["rows"], judged["suppressed_rows"], judged["ignored_rows"]) == (11, 4, 0)
    assert judged["requirements"][0]["violating_classes"] == 4
    left = check(bed3, "--require", "k:2", "--suppressed", "ignore", "--json").json["audits"][0]
    assert (left["rows"], left["suppressed_rows"], left["ignored_rows"], left["classes"]) == (7, 4, 4, 3)
    assert left["requirements"][0]["violating_rows"] == 1


def test_it_is_told_how_suppressed_rows_are_taken(bed3: Any) -> None:
    bed3.sql("INSERT INTO t VALUES ('40', 'Asia', NULL, 1)")
    for taken, says in (
        ("judge", "2 suppressed rows, judged like any others"),
        ("ignore", "2 suppressed rows, left out"),
        ("unknown", "2 suppressed rows, counted in their classes, a NULL sensitive value as no value"),
    ):
        assert f"disease: {says}\n" in check(bed3, "--require", "frequency:1", "--suppressed", taken).out


def test_class_ids_do_not_hide_suppressed_rows(bed3: Any) -> None:
    bed3.sql("CREATE TABLE n AS SELECT *, row_number() OVER () AS id FROM t")
    words = ("--class", "id", "--require", "k:1", "--json")
    assert check(bed3, *words, table="n").json["audits"][0]["suppressed_rows"] == 1


# -- anatomised pairs ------------------------------------------------------------------------------------


@pytest.fixture
def pair(bed: Any) -> Any:
    bed.sql("CREATE TABLE q AS FROM (VALUES (20, 1), (21, 1), (22, 1), (50, 2), (51, 2)) v(age, g)")
    bed.sql("CREATE TABLE s AS FROM (VALUES (1, 'Flu'), (1, 'HIV'), (1, 'Cold'), (2, 'Flu'), (2, 'Flu')) v(g, disease)")
    bed.sql("CREATE TABLE c AS SELECT g, disease, count(*) AS n FROM s GROUP BY g, disease")
    return bed


@pytest.mark.parametrize("words", some([("--sensitive-table c --count n",), ("--sensitive-table s",)]))
def test_a_pair_is_judged_by_its_groups(pair: Any, words: str) -> None:
    asked = ("--group", "g", "--require", "distinct:2", "--require", "k:2", "--json")
    audit = check(pair, *words.split(), *asked, qi="", table="q").json["audits"][0]
    assert (audit["classes"], audit["rows"], audit["unmatched_groups"]) == (2, 5, 0)
    assert [r["violating_classes"] for r in audit["requirements"]] == [1, 0]


@pytest.mark.parametrize(
    ("change", "groups"),
    some([
        ("DELETE FROM q WHERE age = 20; INSERT INTO q VALUES (1, 3), (9, NULL); INSERT INTO s VALUES (4, 'Flu')", 4),
        ("DELETE FROM q WHERE age = 20", 1), ("INSERT INTO q VALUES (1, 3)", 1), ("INSERT INTO s VALUES (4, 'Flu')", 1),
        ("DELETE FROM q", 2), ("INSERT INTO q VALUES (9, NULL)", 1),
    ]),
)  # fmt: skip
def test_a_pair_whose_tables_differ_fails(pair: Any, change: str, groups: int) -> None:
    pair.sql(change)
    called = check(pair, "--sensitive-table", "s", "--group", "g", "--require", "k:1", "--json", qi="", table="q")
    assert called.code == 1 and called.json["audits"][0]["unmatched_groups"] == groups


def test_a_pair_tells_no_other_sensitive_values(pair: Any) -> None:
    words = ("--sensitive-table", "c", "--group", "g", "--sensitive", "n", "--require", "k:1", "--others-known")
    assert "a pair does not show" in check(pair, *words, qi="", table="q").err


# -- violations --------------------------------------------------------------------------------------------


def test_violations_say_which_classes_how_far_and_what_mends_them(bed3: Any) -> None:
    words = ("--require", "frequency:2", "--require", "entropy:3", "--violations", "--json")
    found = check(bed3, *words).json["violations"]
    assert found[0] == {
        "sensitive": "disease", "requirement": "frequency l=2", "class_no": 3, "rows": 2, "reached": 1.0,
        "missing": 2.0, "suppress": 2,
    }  # fmt: skip
    assert [row["class_no"] for row in found if row["requirement"] == "frequency l=2"] == [3, 1, 2]
    assert len([row for row in found if row["requirement"] == "entropy l=3"]) == 3


def test_the_core_is_what_has_to_be_suppressed(bed: Any) -> None:
    bed.sql("CREATE TABLE m AS SELECT 1 AS age, unnest(['a', 'a', 'a', 'b', 'c']) AS disease")
    words = ("--require", "threshold:0.5", "--require", "unique_distinct:3", "--require", "t_closeness:0")
    found = check(bed, *words, "--violations", "--json", qi="age", table="m").json["violations"]
    assert {row["requirement"]: row["suppress"] for row in found} == {
        "threshold default=0.5": 1, "unique_distinct l=3": 2,
    }  # fmt: skip


def test_values_and_labels_are_shown_on_request_alone(bed3: Any) -> None:
    words = ("--require", "threshold:0.5,HIV=0.1", "--violations")
    plain = check(bed3, *words)
    for secret in ("HIV", "Cancer", "Asia"):
        assert secret not in plain.out.replace("threshold default=0.5, HIV=0.1", ""), "the requirement is the caller's"
    labelled = check(bed3, *words, "--labels", "--json").json["violations"]
    assert {(row["age"], row["area"]) for row in labelled} >= {("40", "Asia"), ("40", None), ("*", "*")}
    assert all("HIV" not in str(row) for row in labelled)
    shown = check(bed3, *words, "--show-values", "--json").json["violations"]
    assert "HIV (2)" in {row["values"] for row in shown}


def test_known_attributes_are_no_labels(bed3: Any) -> None:
    words = ("--sensitive", "salary", "--require", "disease=k:2", "--others-known", "--violations", "--labels")
    assert all("salary" not in row for row in check(bed3, *words, "--json").json["violations"])


def test_violations_go_into_a_table(bed3: Any) -> None:
    words = ("--require", "k:2", "--require", "distinct:2", "--labels", "--into", "audit.bad", "--most", "1")
    called = check(bed3, *words)
    assert called.code == 1 and "written to audit.bad" in called.out
    rows = bed3.sql("SELECT requirement, class_no, age, rows, suppress FROM audit.bad ORDER BY ALL")
    assert rows == [
        ("distinct l=2", 1, "*", 1, 1), ("distinct l=2", 2, "40", 1, 1), ("distinct l=2", 3, "40", 2, 2),
        ("k k=2", 1, "*", 1, 1), ("k k=2", 2, "40", 1, 1),
    ]  # fmt: skip
    assert "exists" in check(bed3, "--require", "k:2", "--into", "audit.bad").err
    assert check(bed3, "--require", "k:1", "--into", "none_bad").code == 0
    assert bed3.sql("FROM none_bad") == []


def test_a_label_may_be_called_like_a_column_of_the_violations(bed: Any) -> None:
    bed.sql("CREATE TABLE o AS SELECT 1 AS rows, 'Flu' AS disease")
    words = ("--require", "k:2", "--violations", "--labels", "--json")
    assert check(bed, *words, qi="rows", table="o").json["violations"][0]["rows_"] == 1
