"""Every number of a report against another way to work it out."""

from __future__ import annotations

import collections
import hashlib
import itertools
import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hospitals import FEW, HOSTILE, SEED, fill_hospital, hospital_policy, quoted
from strategies import some

import ldiv_db
from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.reporting.release_facts import content_of
from ldiv_db.reporting.table_text import words_in, words_on
from ldiv_db.requirements import ROWS_ALONE
from ldiv_db.requirements.base import REQUIREMENTS
from ldiv_db.requirements.diversity import KAnonymity
from ldiv_db.requirements.risk import LargestRisk

DOCS = Path(__file__).resolve().parents[2] / "docs"
PACKAGE = Path(ldiv_db.__file__).parent


def classes_of(con, table, columns):
    """The rows of each combination, in plain Python."""
    rows = con.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {table}").fetchall()
    return collections.Counter(rows)


def test_the_audit_is_that_of_check(hospital, document):
    (found,) = ldiv_db.check(hospital, "published", ["age", HOSTILE], "disease", [{"frequency": 2}, {"k": 3}])
    (attribute,) = document["audit"]["attributes"]
    assert document["audit"]["holds"] is found.holds is True
    for reported, verdict in zip(attribute["requirements"], found.as_dict()["requirements"], strict=True):
        assert {key: reported[key] for key in verdict} == verdict
    assert [one["requirement"] for one in attribute["requirements"]] == ["frequency l=2", "k k=3"]
    assert "`" not in attribute["requirements"][0]["means"] and "l-diversity" in attribute["requirements"][0]["means"]


def test_attacks_are_those_of_attack(hospital, document):
    people = dict.fromkeys(("known", "population", "targets", "definetti"), "patients")
    asked = {"counting": True, "downcoding": True, "tries": 10}
    found = ldiv_db.attack(hospital, "published", policy=hospital_policy(), **people, **asked).as_dict()
    for attack in found["attacks"]:
        attack["figures"] = {k: v for k, v in attack["figures"].items() if k not in ("other_tables", "free_bytes")}
    assert document["attacks"]["attacks"] == json.loads(json.dumps(found["attacks"], default=float))


def test_classes_are_counted(hospital, document):
    sizes = collections.Counter(classes_of(hospital, "published", ["age", HOSTILE]).values())
    found = document["classes"]["sizes"]
    binned = collections.Counter()
    for size, classes in sizes.items():
        binned[found["least"] + (size - found["least"]) // found["width"] * found["width"]] += classes
    assert {one["from"]: one["classes"] for one in found["bins"]} == binned
    assert (found["least"], found["most"]) == (min(sizes), max(sizes))
    assert sum(one["rows"] for one in found["bins"]) == 48


def test_largest_shares_are_counted(hospital, document):
    values = collections.defaultdict(collections.Counter)
    for (*label, disease), rows in classes_of(hospital, "published", ["age", HOSTILE, "disease"]).items():
        values[tuple(label)][disease] += rows
    bins = [0] * 20
    for counts in values.values():
        share = Fraction(max(counts.values()), counts.total())
        bins[next(i for i in range(20) if Fraction(i, 20) < share <= Fraction(i + 1, 20))] += 1
    assert document["classes"]["largest_shares"] == {"disease": bins}


def test_identifiability_by_hand(hospital, document):
    sizes = classes_of(hospital, "published", ["age", HOSTILE])
    before = classes_of(hospital, "patients", ["age", HOSTILE])
    prosecutor = document["identifiability"]["risks"][0]
    assert prosecutor["largest"] == pytest.approx(1 / min(sizes.values()))
    assert prosecutor["mean"] == pytest.approx(len(sizes) / 48)
    assert prosecutor["rows_above"] == sum(rows for rows in sizes.values() if rows < 5)
    assert prosecutor["verdict"] == ("above the threshold" if min(sizes.values()) < 5 else "within the threshold")
    was = document["source"]["risk_before"]
    assert (was["largest"], was["mean"]) == (1 / min(before.values()), pytest.approx(len(before) / 48))
    assert document["statement"]["largest_risk"] == prosecutor["largest"]


def test_uniqueness_by_hand(hospital, document):
    before = classes_of(hospital, "patients", ["age", HOSTILE])
    found = document["source"]["uniqueness"]
    assert found["combinations"] == len(before)
    assert found["unique_rows"] == sum(rows == 1 for rows in before.values())
    assert found["rare_rows"] == sum(rows for rows in before.values() if rows < 5)
    for left, other in (("age", HOSTILE), (HOSTILE, "age")):
        alone = classes_of(hospital, "patients", [other])
        assert found["unique_without"][left] == sum(rows == 1 for rows in alone.values())


def test_utility_is_that_of_measure(hospital, document):
    found = ldiv_db.measure(hospital, "published", hospital_policy(), queries=FEW["queries"], kl=False).as_dict()
    utility = document["source"]["utility"]
    expected = json.loads(json.dumps(found, default=float))
    assert {key: utility[key] for key in utility if key != "spreads"} == {
        k: expected[k] for k in utility if k != "spreads"
    }


def test_distributions_by_hand(hospital, document):
    spreads = {spread["column"]: spread for spread in document["source"]["utility"]["spreads"]}
    ages = collections.Counter(row[0] for row in classes_of(hospital, "patients", ["age"]).elements())
    values, bins = sorted(ages), spreads["age"]["edges"]
    before = [sum(ages[value] for value in values[low:high]) for low, high in itertools.pairwise(bins)]
    assert spreads["age"]["before"] == before
    after, lost = [0.0] * len(before), [0.0] * len(before)
    for (label, other), rows in classes_of(hospital, "published", ["age", HOSTILE]).items():
        low, _, high = re.fullmatch(r"\[?(\d+)( \.\. (\d+)\])?", label).groups()
        covered = [place for place, value in enumerate(values) if int(low) <= value <= int(high or low)]
        loss = (int(high or low) - int(low)) / (values[-1] - values[0]) / 2 + (other == "*") / 2
        for place in covered:
            bin_ = next(b for b in range(len(before)) if bins[b] <= place < bins[b + 1])
            after[bin_] += rows / len(covered)
            lost[bin_] += loss * rows / len(covered)
    assert spreads["age"]["after"] == pytest.approx(after, abs=1e-6)
    paid = [total / rows if rows else None for total, rows in zip(lost, after, strict=True)]
    assert spreads["age"]["lost"] == pytest.approx(paid, abs=1e-6)
    diseases = sorted(collections.Counter(classes_of(hospital, "patients", ["disease"])).values(), reverse=True)
    assert spreads["disease"]["before"] == spreads["disease"]["after"] == diseases
    for spread in spreads.values():
        assert sum(spread["before"]) == 48 and sum(spread["after"]) == pytest.approx(48, abs=1e-6)


def test_three_risks_are_decided_by_their_intervals(document):
    names = ["singling out by one column", "singling out by several columns", "linkability", "inference"]
    assert [risk["risk"] for risk in document["risks"]] == names
    for risk in document["risks"]:
        if risk["number"] is None:
            assert risk["verdict"] == "nothing to try"
        else:
            assert risk["verdict"] == ("within the threshold" if risk["interval"][1] <= 0.2 else "undecided")


@pytest.mark.slow
def test_with_a_control_the_risk_beyond_it_decides(hospital):
    asked = {"control": "others", "queries": 0, "tries": 30, "threshold": "0.9"}
    document = ldiv_db.report(hospital, "published", hospital_policy(), **asked).document
    inference = document["risks"][-1]
    assert inference["control"] and inference["measure"] == "risk beyond the control"
    assert inference["number"] == 0 and inference["success_rate"] > 0
    assert inference["verdict"] == "within the threshold"


# -- hashes ----------------------------------------------------------------------------------------------


def test_the_hash_is_of_rows_in_any_order(con):
    con.execute("CREATE TABLE a AS SELECT i % 7 AS x, 'v' || i AS y FROM range(5000) AS t(i)")
    con.execute("CREATE TABLE b AS FROM a ORDER BY y DESC")
    con.execute("CREATE TABLE c AS SELECT x, CASE WHEN y = 'v77' THEN 'v78' ELSE y END AS y FROM a")
    con.execute("CREATE TABLE d AS FROM a UNION ALL SELECT 0, 'v0'")
    digests = {name: digest_of(con, name) for name in "abcd"}
    assert digests["a"] == digests["b"]
    assert len(set(digests.values())) == 3


def digest_of(con, table):
    return content_of(Engine(con), Relation((table,)))["sha256"]


def test_values_that_join_to_the_same_text_are_told_apart(con):
    pairs = [
        ("'ab', 'c'", "'a', 'bc'"),
        ("NULL, ''", "'', NULL"),
        ("'NULL', 'x'", "NULL, 'x'"),
        ("'-', ''", "NULL, ''"),
    ]
    for number, (one, other) in enumerate(pairs):
        con.execute(f"CREATE TABLE one{number} (x VARCHAR, y VARCHAR)")
        con.execute(f"CREATE TABLE other{number} (x VARCHAR, y VARCHAR)")
        con.execute(f"INSERT INTO one{number} VALUES ({one})")
        con.execute(f"INSERT INTO other{number} VALUES ({other})")
        assert digest_of(con, f"one{number}") != digest_of(con, f"other{number}")


def test_the_hash_by_hand(con):
    con.execute("CREATE TABLE t (x VARCHAR, y INTEGER)")
    con.execute("INSERT INTO t VALUES ('a', 1), (NULL, 22)")
    rows = sorted(hashlib.sha256(text.encode()).hexdigest() for text in ("1:a1:1", "-:2:22"))
    parts = collections.defaultdict(list)
    for row in rows:
        parts[row[:3]].append(row)
    inner = "".join(hashlib.sha256("".join(parts[part]).encode()).hexdigest() for part in sorted(parts))
    whole = json.dumps([["x", "y"], hashlib.sha256(inner.encode()).hexdigest()])
    asked = {"qi": ["x"], "sensitive": ["y"], "require": ["k:1"]}
    reported = ldiv_db.report(con, "t", **asked).document["annex"]["release"]["sha256"]
    assert reported == digest_of(con, "t") == hashlib.sha256(whole.encode()).hexdigest()


def test_the_policys_hash_is_without_its_seed_and_its_form(hospital, public):
    other = hospital_policy(seed=1, sensitive={"disease": {}})
    harder = hospital_policy(require=[{"frequency": 2}, {"k": 2}])
    reports = [public, *(ldiv_db.report(hospital, "published", policy, public=True) for policy in (other, harder))]
    hashes = [report.document["annex"]["policy_sha256"] for report in reports]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_audit_as_sql_finds_no_class(hospital, document):
    assert hospital.execute(document["annex"]["audit"]["sql"]).fetchall() == []


# -- what is said beside the numbers -----------------------------------------------------------------------


def test_guarantees_are_those_of_the_documentation():
    rows = [
        line for line in (DOCS / "explanation" / "guarantees.md").read_text().splitlines() if line.startswith("| `")
    ]
    plain = [line.split("|") for line in rows if "transparent" not in line.split("|")[1]]
    said = {name.strip(" `"): cells for _, names, *cells, _ in plain for name in names.split(",") if "with" not in name}
    written = parse_document(read_text(PACKAGE / "reporting" / "risks.yml", POLICY_BYTES))
    for name, protection in written["algorithms"].items():
        told = [written["words"][word] for word in protection]
        people, method, seed, releases = said[name]
        assert ("1/l, proved" in people) == ("1/l, proved" in told[0])
        assert ("[counterexample]" in method) == ("in a counterexample" in told[1])
        for words in ("no bound", "no counterexample"):
            assert (words in method) == (words in told[1])
        assert ("counterexample" in seed) <= ("counterexample" in told[2])
        assert told[3] == "nothing" and (releases.strip().startswith("nothing") or "`key`" in releases)


@pytest.mark.parametrize(
    ("table", "changes", "words"),
    some(
        [
            pytest.param(
                "published",
                {"sensitive": {"disease": {"harmless": ["zzflu"]}}, "require": [{"frequency": 1}]},
                "harmless values of disease: 1",
            ),
            pytest.param("published", {}, "mean much the same"),
            pytest.param("named", {"keep": ["name"], "identifiers": None}, "Columns are published as they are"),
        ]
    ),
)
def test_residual_risks_follow_from_the_policy(hospital, table, changes, words):
    document = ldiv_db.report(hospital, table, hospital_policy(**changes), public=True).document
    assert any(words in line for line in document["residual"])


def test_a_report_speaks_of_people_where_people_are_counted(con):
    con.execute(
        "CREATE TABLE visits AS SELECT i // 2 AS person, i // 4 AS age, 'd' || i % 3 AS disease FROM range(60) t(i)"
    )
    policy = {"source": "visits", "target": "published", "quasi_identifiers": {"age": {"numeric": True}},
              "sensitive": ["disease"], "require": [{"k": 3}], "algorithm": "topdown", "seed": 1,
              "individual": {"column": "person", "rows": "together"}, "output": {"person": "who"}}  # fmt: skip
    ldiv_db.run(con, policy)
    report = ldiv_db.report(con, "published", policy, queries=0, tries=1, worlds=2)
    document = json.loads(report.json())
    people = dict(con.execute("SELECT age, count(DISTINCT who) FROM published GROUP BY age").fetchall())
    assert report.holds and document["audit"]["attributes"][0]["of_people"]
    assert document["classes"]["sizes"]["least"] == min(people.values()) and document["statement"]["rows"] == 60
    said = " ".join(document["residual"])
    assert "what all rows of a person reveal" in said and "Each row is taken for a different person" not in said
    assert document["data"]["people"].endswith("they bound what all rows of a person reveal.")
    assert "look for rows" in document["not_tried"][-1] and document["statement"]["promises_hold"]
    assert document["statement"]["largest_risk"] == 1 / min(people.values())
    assert document["source"]["risk_before"]["largest"] == 0.5  # two people of four rows
    assert f"smallest class: {min(people.values())} people" in report.html()
    verdicts = {one["attack"]: one for one in document["verdicts"]}
    assert verdicts["linking"]["why"] == "the requirements promise for people, and attacks count rows"
    assert "counts people" in verdicts["replay"]["why"]
    assert verdicts["linkability"]["verdict"] == "nothing to try"  # of one quasi-identifier
    assert "reasons.person" in document["blanks"]


@pytest.mark.slow
def test_a_report_speaks_of_rows_apart_where_people_have_several(con):
    con.execute("CREATE TABLE apart AS SELECT i // 4 AS age, 'd' || i % 3 AS disease FROM range(24) t(i)")
    policy = {"source": "visits", "target": "apart", "quasi_identifiers": {"age": {"numeric": True}},
              "sensitive": ["disease"], "require": [{"k": 3}], "individual": "person"}  # fmt: skip
    said = ldiv_db.report(con, "apart", policy, public=True).document
    assert "m times as sure" in " ".join(said["residual"]) and said["statement"]["holds"] is None


@pytest.mark.slow
def test_earlier_releases_are_those_of_the_same_source_before(con):
    fill_hospital(con)
    ldiv_db.run(con, hospital_policy())
    con.execute("CREATE TABLE elsewhere AS FROM patients")
    ids = [ldiv_db.run(con, hospital_policy(target=f"out{i}")).run_id for i in range(2)]
    ldiv_db.run(con, hospital_policy(source="elsewhere", target="other"))
    few = {"queries": 0, "tries": 1}
    first = ldiv_db.report(con, "out0", hospital_policy(target="out0"), **few).document["earlier"]
    last = ldiv_db.report(con, ids[1], hospital_policy(target="out1"), **few).document["earlier"]
    assert [run["target"] for run in first["runs"]] == ["published"]
    assert [run["target"] for run in last["runs"]] == ["published", "out0"]


@pytest.mark.usefixtures("remembered")
def test_no_seed_no_value_and_no_address_is_in_it(hospital, document, tmp_path):
    duckdb.connect(str(tmp_path / "other.duckdb")).close()
    policy = hospital_policy(databases={"other": str(tmp_path / "other.duckdb")})
    attached = ldiv_db.report(hospital, "published", policy, **FEW)
    for text in (json.dumps(document), json.dumps(attached.document), attached.html()):
        assert str(SEED) not in text and "other.duckdb" not in text
        assert "zz" not in text


# -- a series, and words -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("untried")
def test_a_release_of_a_series_is_known(con):
    con.execute("CREATE TABLE people AS SELECT i AS id, i // 3 AS age, 'd' || i % 3 AS disease FROM range(30) t(i)")
    policy = {"source": "people", "target": "out", "key": "id", "quasi_identifiers": {"age": {"numeric": True}},
              "sensitive": ["disease"], "require": [{"frequency": 3}], "algorithm": "topdown"}  # fmt: skip
    ldiv_db.run(con, policy)
    con.execute("DELETE FROM people WHERE id < 2")
    con.execute("INSERT INTO people SELECT 100 + i, 5, 'd' || i % 3 FROM range(6) t(i)")
    released = ldiv_db.run(con, policy)
    found = ldiv_db.report(con, released.figures["run_id"], policy, queries=0, tries=1)
    said, text = found.document["statement"], found.html()
    rows = con.execute("SELECT count(*) FROM out").fetchone()[0]
    assert (rows, said["rows"], said["run"]["rows_published"], released.figures["rows_of_table"]) == (36,) * 4
    assert said["run"]["run_id"] == released.figures["run_id"] and found.document["algorithm"]["name"] == "topdown"
    assert [one["rows"] for one in found.document["earlier"]["releases"]] == [30, 36]
    assert "How the table was made is not known" not in text and "no bound of this report covers" not in text
    assert "at most 1/3 is allowed" in text and "release of a series" in text
    once = {"key": None, "identifiers": ["id"], "target": "once", "over_time": "independent", "require": [{"k": 3}]}
    ldiv_db.run(con, policy | once)
    again = ldiv_db.report(con, "out", policy, queries=0, tries=1).html()
    assert "no bound of this report covers" in again


def test_every_requirement_has_words():
    written = words_in("requirements.yml")
    assert set(REQUIREMENTS) <= set(written)
    assert words_on(KAnonymity(3))["means"].startswith("Every class has at least 3 rows")
    assert words_on(KAnonymity(3), "people")["margin_unit"] == "people"
    risk = LargestRisk.build({"average": Decimal("0.1")}, ROWS_ALONE, False)
    assert "right about at most 0.1 of the rows" in words_on(risk)["means"]
