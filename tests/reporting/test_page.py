"""The page: one file, the same again, for readers of all kinds, and nothing in it that a name could break out of."""

from __future__ import annotations

import copy
import json
import random
import re

import duckdb
import pytest
from hospitals import FEW, HOSTILE, SAID, fill_hospital, hospital_policy, undone
from refusals import refuses
from strategies import some

import ldiv_db
from ldiv_db.policy.reading import parse_policy
from ldiv_db.reporting.page import page_of
from ldiv_db.reporting.verification import question_again, verify_report
from tests.html_pages import Page

HEADINGS = [
    "Statement, scope and recipient", "Context and release model", "The data", "Policy, and why",
    "Algorithm and its guarantee", "Audit", "Identifiability", "Singling out, linkability, inference", "Attacks tried",
    "Utility", "Earlier releases", "Residual risks, and what is not protected", "Roles, sign-off, review date",
    "Guidelines, clause by clause", "Annex",
]  # fmt: skip


@pytest.fixture(scope="module")
def text(report):
    return report.html()


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_sections_are_headed_in_order(page):
    heads = [re.sub(r"^\d+\. | internal$", "", " ".join(one["text"].split())) for one in page.of("h2")]
    assert heads == HEADINGS
    assert len(page.of("h1")) == 1
    links = [one["attrs"]["href"][1:] for one in page.of("a")]
    assert set(links) <= {one["attrs"].get("id") for one in page.elements}


def test_it_asks_for_nothing(text):
    for word in ("http://", "https://", "src=", "url(", "@import", "<script", "<link", "<iframe", "<img", "srcset"):
        assert word not in text.replace("&#34;", '"')
    assert "default-src 'none'" in text


def test_it_is_small(text):
    assert len(text.encode()) <= 1_000_000


@pytest.mark.slow
def test_a_wide_table_stays_small(con):
    names = [f"c{i}" for i in range(60)]
    con.execute(f"CREATE TABLE wide AS SELECT {', '.join(f'i % {n % 5 + 2} AS {c}' for n, c in enumerate(names))},"
                " 's' || i % 9 AS s FROM range(90) AS t(i)")  # fmt: skip
    policy = {"source": "wide", "target": "out", "quasi_identifiers": names, "sensitive": "s", "require": [{"k": 2}],
              "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy)
    assert len(ldiv_db.report(con, "out", policy, **FEW).html().encode()) <= 1_000_000


def test_names_and_texts_of_others_are_only_text(page, text):
    assert not page.of("b") and not page.of("script")
    assert "\u202e" not in text
    assert any("<script>alert('x')</script>" in one["text"] for one in page.of("th"))


def test_a_screen_reader_has_all_of_it(page):
    assert page.of("html")[0]["attrs"]["lang"] == "en"
    assert page.of("title")[0]["text"]
    for table in page.of("table"):
        assert table["text"].strip()
    assert len(page.of("caption")) == len(page.of("table"))
    assert all(one["attrs"].get("scope") in ("col", "row") for one in page.of("th"))
    charts = page.of("svg")
    assert len(charts) >= 7
    for chart in charts:
        assert chart["attrs"]["role"] == "img" and len(chart["attrs"]["aria-label"]) > 20
        assert "figure" in chart["inside"]
    assert all(one["text"] for one in page.of("figcaption"))
    for region in (one for one in page.elements if one["attrs"].get("role") == "region"):
        assert region["attrs"]["aria-label"]


def test_charts_have_marks(page):
    for number in range(len(page.of("svg"))):
        chart = page.of("svg")[number]
        start = page.elements.index(chart)
        marks = []
        for one in page.elements[start + 1 :]:
            if "svg" not in one["inside"]:
                break
            marks += [one] if one["tag"] in ("rect", "path") else []
        assert marks


def test_the_word_that_nobody_may_sign_is_not_there(text):
    assert "anonymous" not in text.lower()


def test_ids_are_unique(page):
    ids = [one["attrs"]["id"] for one in page.elements if "id" in one["attrs"]]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
@pytest.mark.parametrize("threads", some([2, 1]))
def test_the_page_is_the_same_for_any_order_of_rows_number_of_threads_and_time_zone(report, threads):
    with duckdb.connect(config={"threads": threads}) as con:
        con.execute("SET TimeZone = 'Asia/Kolkata'")
        fill_hospital(con)
        ldiv_db.run(con, hospital_policy())
        for name in ("patients", "published"):
            rows = con.execute(f"FROM {name}").fetchall()
            random.Random(threads).shuffle(rows)
            con.execute(f"TRUNCATE {name}")
            con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        again = ldiv_db.report(con, "published", hospital_policy(), **FEW, **SAID).document
        assert without_order(again) == without_order(report.document)


def without_order(document):
    """The document without what the order of rows tells, and without the run, which is another."""
    found = copy.deepcopy(document)
    next(one for one in found["attacks"]["attacks"] if one["attack"] == "form").clear()
    return found | {"statement": {}}


def test_the_page_is_made_of_the_document_alone(report, text):
    assert page_of(json.loads(report.json())) == text


# -- a public report ---------------------------------------------------------------------------------------


def test_a_public_report_depends_on_the_release_alone(hospital, public):
    alone = {"qi": ["age", HOSTILE], "sensitive": "disease", "require": "k:3"}
    before = ldiv_db.report(hospital, "published", public=True, **alone)
    with undone(hospital):
        hospital.execute("DELETE FROM patients WHERE age < 50; UPDATE patients SET disease = 'other', age = age + 1")
        after = ldiv_db.report(hospital, "published", hospital_policy(), public=True)
        assert (after.html(), after.json()) == (public.html(), public.json())
        hospital.execute("DROP TABLE patients; DROP SCHEMA ldiv CASCADE")
        assert ldiv_db.report(hospital, "published", public=True, **alone).json() == before.json()


def test_a_public_report_leaves_out_what_the_release_does_not_tell(public):
    document, text = public.document, public.html()
    assert document["source"] is None and document["earlier"] is None and document["risks"] == []
    assert set(document["policy"]) <= {"quasi_identifiers", "sensitive", "require", "algorithm", "keep"}
    assert {one["attack"] for one in document["attacks"]["attacks"]}.isdisjoint({"linking", "journalist", "inference"})
    assert "patients" not in text and "rows_suppressed" not in json.dumps(document)
    assert "Uniqueness before" not in text and "internal</span>" not in text
    Page(text)


# -- tables of every kind ----------------------------------------------------------------------------------


def test_a_table_of_another_tool_without_ledger_or_policy(con):
    con.execute("CREATE TABLE theirs AS SELECT i % 3 AS age, 'd' || i % 4 AS disease FROM range(24) AS t(i)")
    found = ldiv_db.report(con, "theirs", qi="age", sensitive="disease", require=["distinct:3", "k:8"])
    assert found.holds and found.document["algorithm"]["name"] is None
    assert "meets its requirements" in str(found)
    text = found.html()
    Page(text)
    assert "How the table was made is not known" in text and "no policy was given" in text
    assert found.document["earlier"] == {"runs": [], "releases": []}


def test_a_table_that_fails_says_so(con):
    con.execute("CREATE TABLE theirs AS SELECT i AS age, 'd' AS disease FROM range(4) AS t(i)")
    found = ldiv_db.report(con, "theirs", qi="age", sensitive="disease", require="distinct:2")
    assert not found.holds
    assert set(found.document["algorithm"]["protection"].values()) == {"nothing: the audit failed"}
    text = found.html()
    assert "does not meet" in text and "✗ not met" in text and "✗ no" in text
    Page(text)


def test_rows_do_not_judge_what_is_asked_of_people(con):
    con.execute("CREATE TABLE theirs AS SELECT '*' AS age, 'd' || i AS disease, 1 AS class_id FROM range(6) AS t(i)")
    policy = {"source": "source", "target": "out", "quasi_identifiers": ["age"], "sensitive": "disease",
              "require": [{"k": 3}], "algorithm": "topdown", "individual": "person"}  # fmt: skip
    found = ldiv_db.report(con, "theirs", policy, public=True)
    assert not found.holds and found.document["statement"]["holds"] is None
    assert set(found.document["algorithm"]["protection"].values()) == {
        "not known: nothing here identifies people, and people are to be counted"
    }
    assert "is not judged" in str(found) and "`--individual COLUMN`" in str(found)
    text = found.html()
    assert "not judged" in text and "✓ met" not in text and "✗ not met" not in text
    Page(text)
    con.execute("ALTER TABLE theirs ADD COLUMN who INTEGER")
    for people, holds in ((2, False), (3, True)):
        con.execute(f"UPDATE theirs SET who = rowid % {people}")
        told = ldiv_db.report(con, "theirs", policy, public=True, individual="who").document
        assert told["statement"]["holds"] is holds and told["classes"]["sizes"]["least"] == people
    read = json.loads(json.dumps(told))
    assert verify_report(con, read, question_again(read, "theirs", parse_policy(policy))).holds


def test_a_promise_that_an_attack_breaks_fails_the_report(con):
    """Rows without labels are left out of the audit, and tell their values all the same."""
    con.execute("CREATE TABLE theirs AS SELECT '*' AS age, 'd' AS disease FROM range(4)")
    con.execute("INSERT INTO theirs SELECT '[1-9]', 'd' || i FROM range(4) AS t(i)")
    policy = {"source": "source", "target": "out", "quasi_identifiers": ["age"], "sensitive": "disease",
              "require": [{"distinct": 2}], "suppressed": "ignore"}  # fmt: skip
    found = ldiv_db.report(con, "theirs", policy, public=True)
    assert found.document["statement"]["holds"] and not found.holds
    assert "✗ broken" in found.html()


def test_rows_alone(con):
    con.execute("CREATE TABLE source AS SELECT i % 5 AS age FROM range(20) AS t(i)")
    policy = {"source": "source", "target": "out", "quasi_identifiers": ["age"], "require": [{"k": 4}],
              "algorithm": "mondrian"}  # fmt: skip
    ldiv_db.run(con, policy)
    found = ldiv_db.report(con, "out", policy, **FEW)
    assert found.holds and found.document["classes"]["largest_shares"] == {}
    assert any("No attribute is named as sensitive" in line for line in found.document["residual"])
    verdicts = {one["attack"]: one for one in found.document["verdicts"]}
    assert {one["why"] for one in list(verdicts.values())[:9]} == {"no attribute is named as sensitive"}
    assert verdicts["downcoding"]["number"] is not None
    Page(found.html())


def test_nulls_one_row_and_no_rows(con):
    for number, rows in enumerate(["(1, 'a'), (NULL, 'a'), (NULL, NULL)", None]):
        con.execute(f"CREATE TABLE t{number} (age INTEGER, disease VARCHAR)")
        if rows:
            con.execute(f"INSERT INTO t{number} VALUES {rows}")
        found = ldiv_db.report(con, f"t{number}", qi="age", sensitive="disease", require=["k:1"])
        assert found.document["statement"]["rows"] == (len(rows.split("(")) - 1 if rows else 0)
        Page(found.html())


def test_a_pair_of_tables_is_refused(con):
    policy = hospital_policy(algorithm="anatomy", require=[], key="name", identifiers=None, target={"prefix": "p"})
    policy["sensitive"] = {"disease": {"l": 2}}
    with refuses("algorithm.name"):
        ldiv_db.report(con, "p_qi", policy)


@pytest.mark.usefixtures("untried")
def test_rows_of_a_source_of_counts_are_no_people(con):
    con.execute("CREATE TABLE counts AS SELECT lpad(CAST(i % 8 AS VARCHAR), 2, '0') AS zip, 'abc'[i % 3 + 1] AS s,"
                " i % 3 + 1 AS n FROM range(24) AS t(i)")  # fmt: skip
    policy = {"source": "counts", "weight": "n", "target": "out", "sensitive": ["s"], "algorithm": "cuts",
              "quasi_identifiers": {"zip": {"taxonomy": {"prefix": [2, 1]}}},
              "require": [{"frequency": 2}]}  # fmt: skip
    ldiv_db.run(con, policy)
    found = ldiv_db.report(con, "out", policy, **FEW)
    assert found.document["risks"] == [] and found.document["source"]["uniqueness"] is None
    assert found.document["source"]["utility"]["rows_in"] == 48
    assert "the source holds counts of rows" in found.html()


def test_a_source_that_is_named_must_be_there(hospital):
    with refuses("source"):
        ldiv_db.report(hospital, "published", hospital_policy(), source="nowhere")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"require": "k:2"}, "qi"),
        ({"qi": "age", "require": "k:2", "known": "patients"}, "known"),
        ({"policy": hospital_policy(), "qi": "age"}, "qi"),
        ({"policy": hospital_policy(), "threshold": "much"}, "threshold"),
        ({"policy": hospital_policy(), "context": {"receiver": "x"}}, "context.receiver"),
        ({"policy": hospital_policy(), "release_model": "free"}, "context.release_model"),
    ],
)
def test_questions_that_are_none(hospital, asked, code):
    with refuses(code):
        ldiv_db.report(hospital, "published", **asked)


def test_a_misspelt_argument_is_refused_by_its_name(hospital):
    with pytest.raises(TypeError, match="receiver"):
        ldiv_db.report(hospital, "published", hospital_policy(), receiver="x")
