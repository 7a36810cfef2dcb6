"""`ldiv measure`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from refusals import codes_told

import ldiv_db
from ldiv_db.measuring import utility

KEYS = {
    "published", "source", "rows_in", "rows_published", "rows_suppressed", "rows_added", "rows_unmatched",
    "rows_uncovered", "cells_suppressed", "classes", "avg_class_size", "l", "loss", "queries",
    "answers",
}  # fmt: skip


def by_hand(bed: Any) -> tuple[Any, ...]:
    """The words that describe the columns without a policy."""
    return ("--qi", "age", "--qi", f"country={bed.folder / 'country.csv'}", "--sensitive", "disease")


@pytest.fixture
def other(bed: Any) -> Any:
    """`t`, another tool's table of some of the 24 patients, without class ids."""
    bed.sql(
        "CREATE TABLE t AS SELECT '[20-59]' AS age, CASE WHEN country IN ('Norway', 'Italy') THEN 'Europe'"
        " ELSE 'Asia' END AS country, disease, ward FROM patients WHERE name <> 'P7'"
    )
    return bed


def test_a_release_loses_what_its_run_said(bed: Any) -> None:
    ran = bed.run("--json", "--kl").json
    found = bed.call("measure", bed.database, "published.patients", "--policy", bed.policy, "--json").json
    assert set(found) == KEYS
    assert found["loss"].pop("cm") is None
    assert found["loss"] == ran["loss"] and ran["loss"]["kl"] > 0
    assert ran["loss"]["stars"] >= 0 and ran["loss"]["counts"]["queries"] >= 100
    for key in ("rows_in", "rows_published", "rows_suppressed", "cells_suppressed", "classes", "avg_class_size"):
        assert found[key] == ran[key]


def test_a_table_of_another_tool_without_a_policy(other: Any) -> None:
    words = (*by_hand(other), "--l", "2", "--class-label", "ward", "--queries", "30", "--seed", "5", "--json")
    found = other.call("measure", other.database, "t", "--source", "patients", *words).json
    assert (found["rows_in"], found["rows_published"], found["rows_suppressed"]) == (24, 23, 1)
    assert (found["classes"], found["rows_unmatched"], found["rows_uncovered"], found["l"]) == (2, 0, 0, 2)
    loss = found["loss"]
    assert loss["cavg"] == 23 / 2 / 2
    # Ages are 20 to 59 of 20 to 57: everything. Two of the four countries: (2 - 1) / (4 - 1), or half the leaves.
    assert loss["lm"] == pytest.approx(24 + 23 / 3 + 1) and loss["ncp"] == pytest.approx(24 + 23 / 2 + 1)
    assert loss["stars"] == 23 and loss["dm"] == 11**2 + 12**2 + 24
    assert found["queries"]["queries"] == 30 and found["queries"]["seed"] == 5


def test_the_table_for_people(other: Any) -> None:
    called = other.call(
        "measure", other.database, "t", "--policy", other.policy, "--queries", 10, "--class-label", "ward"
    )
    texts = ["rows suppressed", "LM, NCP", "LM of age", "fully generalised", "DM", "CAVG for l = 3", "CM", "KL"]
    for text in [*texts, "10 random counts", "precision"]:
        assert text in called.out, called
    assert "Flu" not in called.out and "P7" not in called.out


def test_files_and_no_database(other: Any) -> None:
    for name in ("t", "patients"):
        other.sql(f"COPY {name} TO '{other.folder / name}.csv'")
    files = (other.folder / "t.csv", "--source", other.folder / "patients.csv")
    words = (*by_hand(other), "--queries", 5, "--json")
    found = other.call("measure", ":memory:", *files, *words).json
    assert found["rows_published"] == 23 and found["loss"]["kl"] > 0
    assert found["loss"]["lm"] == pytest.approx(24 + 23 / 3 + 1), "as the tables lose"


def test_kl_may_be_left_out(other: Any) -> None:
    words = ("measure", other.database, "t", "--policy", other.policy, "--no-kl", "--queries", 5)
    found = other.call(*words, "--json").json
    assert found["loss"]["kl"] is None and found["rows_unmatched"] is None


def test_rows_that_miss_each_other_are_counted(other: Any) -> None:
    other.sql("INSERT INTO t SELECT '[90-95]', country, disease, ward FROM t LIMIT 5")
    other.sql("INSERT INTO t SELECT age, country, 'Plague', ward FROM t LIMIT 2")
    # The twelve of Europe have diseases that nobody in Asia has.
    other.sql("UPDATE t SET country = 'Asia' WHERE age = '[20-59]' AND disease <> 'Plague'")
    called = other.call("measure", other.database, "t", "--policy", other.policy, "--queries", 5, "--json")
    found = json.loads(called.out, parse_constant=pytest.fail)
    assert (found["rows_added"], found["rows_suppressed"], found["rows_unmatched"]) == (6, 0, 5 + 2 + 12)
    assert found["rows_uncovered"] == 12 and found["loss"]["kl"] is None
    assert "infinite" in other.call("measure", other.database, "t", "--policy", other.policy, "--queries", 5).out


def test_blank_sensitive_cells_are_counted(other: Any) -> None:
    other.sql("UPDATE t SET disease = NULL WHERE disease = 'Flu'")
    found = other.call("measure", other.database, "t", "--policy", other.policy, "--queries", 5, "--json").json
    assert found["cells_suppressed"] == 6 and found["rows_unmatched"] == 0 and found["loss"]["kl"] > 0


def test_values_that_nothing_knows_are_counted_and_not_shown(other: Any) -> None:
    other.sql("UPDATE t SET country = 'Atlantis' WHERE country = 'Asia'")
    other.sql("UPDATE t SET age = '[59-20]'")
    message = other.fails(2, "measure", other.database, "t", "--policy", other.policy)
    age, country = message.splitlines()
    assert "quasi_identifiers.age: 1 different published values (rows: 23) are no number" in age
    assert "quasi_identifiers.country: 1 different published values (rows: 11)" in country and "country.csv" in country
    assert "Atlantis" not in message and "59" not in message


TABLE = ("--source", "patients", "--sensitive", "disease")
REFUSED = [
    ("qi source", ()),
    ("source", ("--policy", "policy.yml", "--source", "patient")),
    ("qi", ("--source", "patients")),
    ("policy", ("--policy", "policy.yml", "--qi", "age")),
    ("class_label", ("--policy", "policy.yml", "--class-label", "wart")),
    ("class", ("--policy", "policy.yml", "--class", "id")),
    ("sensitive", ("--source", "patients", "--qi", "age", "--sensitive", "illness")),
    ("quasi_identifiers", (*TABLE, "--qi", "country")),
    ("quasi_identifiers.taxonomy", (*TABLE, "--qi", "age", "--qi", "country=no.csv")),
    ("quasi_identifiers.taxonomy", (*TABLE, "--qi", "country=lost")),
]


def test_what_does_not_fit_is_refused_by_its_code(other: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(other.folder)
    about = ("measure", other.database, "t")
    assert [(" ".join(sorted(codes_told(other.fails(2, *about, *words)))), words) for _, words in REFUSED] == REFUSED
    other.refuses("published", "measure", other.database, "tt", "--policy", other.policy)
    empty = ("--source", "empty", "--qi", "age", "--sensitive", "disease")
    assert "empty is empty" in other.fails(1, *about, *empty)


def test_a_column_that_was_not_published(other: Any) -> None:
    other.sql("ALTER TABLE t DROP age")
    other.sql("ALTER TABLE t DROP disease")
    message = other.fails(2, "measure", other.database, "t", "--policy", other.policy)
    assert "quasi_identifiers.age: the published table has neither age nor age_min and age_max" in message
    assert "sensitive.disease: the published table has no column disease" in message


def test_texts_that_are_one_by_the_policy_are_one_in_the_release_too(con: Any) -> None:
    spelt = "(['Flu', ' flu', 'COLD ', 'cold'])[1 + i % 4]"
    con.execute(f"CREATE TABLE stays AS SELECT i % 40 AS age, {spelt} AS said FROM range(120) AS t(i)")
    policy = {
        "source": "stays",
        "target": "released",
        "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": {"said": {"same": ["trim", "casefold"]}},
        "require": [{"frequency": 2}],
        "algorithm": "mondrian",
    }
    ldiv_db.run(con, policy)
    for table, view in (("stays", "clean_stays"), ("released", "clean_release")):
        con.execute(f"CREATE VIEW {view} AS SELECT * REPLACE (lower(trim(said)) AS said) FROM {table}")
    found = ldiv_db.measure(con, "released", policy, queries=5)
    clean = ldiv_db.measure(con, "clean_release", policy | {"source": "clean_stays", "sensitive": ["said"]}, queries=5)
    assert (found.rows_uncovered, found.rows_unmatched) == (0, 0)
    assert found.loss.kl == clean.loss.kl is not None and found.queries == clean.queries


def test_of_many_pairs_a_sample_is_looked_at_and_says_its_error(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    con.execute(
        "CREATE TABLE stays AS SELECT i * i % 97 AS age, i % 7 AS ward, 'd' || i % 9 AS said FROM range(900) AS t(i)"
    )
    shown = "CASE WHEN age % 3 = 0 THEN '[0-96]' WHEN age < 40 THEN '[0-39]' ELSE '[40-96]' END"
    con.execute(f"CREATE TABLE theirs AS SELECT * REPLACE ({shown} AS age) FROM stays")
    con.execute("CREATE TABLE others AS SELECT * REPLACE ('[0-39]' AS age) FROM theirs")
    con.execute("UPDATE others SET ward = ward % 2")
    asked: dict[str, Any] = {"source": "stays", "qi": ["age", "ward"], "sensitive": ["said"]}
    whole, few = (ldiv_db.measure(con, name, **asked) for name in ("theirs", "others"))
    assert whole.loss.kl_sample is None and few.loss.kl is None and few.rows_uncovered
    monkeypatch.setattr(utility, "_MOST_PAIRS", 1000)
    monkeypatch.setattr(utility, "_LEAST_SAMPLE", 300)
    found = ldiv_db.measure(con, "theirs", **asked)
    sample = found.loss.kl_sample
    assert sample is not None and sample.rows == 300 and sample.error and "300 rows" in str(found)
    assert 0 < abs(found.loss.kl - whole.loss.kl) < 4 * sample.error < whole.loss.kl
    assert (found.rows_uncovered, found.rows_unmatched) == (0, 0)
    con.execute("CREATE TABLE mixed AS FROM theirs ORDER BY hash(age, said)")
    assert ldiv_db.measure(con, "mixed", **asked).loss == found.loss
    again = ldiv_db.measure(con, "others", **asked)
    assert again.loss.kl is None and again.rows_uncovered == pytest.approx(few.rows_uncovered, rel=0.1)
    assert again.rows_unmatched == pytest.approx(few.rows_unmatched, abs=60)


def test_a_measurement_says_what_it_does_and_what_is_before_it(con: Any) -> None:
    con.execute("CREATE TABLE stays AS SELECT i % 40 AS age, 'd' || i % 9 AS said FROM range(120) AS t(i)")
    con.execute("CREATE TABLE theirs AS SELECT * REPLACE ('[0-39]' AS age) FROM stays")
    went, ahead, counted = list[str](), list[Any](), list[tuple[int, int]]()
    listener = ldiv_db.Listener(
        on_stage=went.append,
        on_expected=lambda stages: ahead.append([stage.name for stage in stages if stage.seconds > 0]),
        on_progress=lambda done, total: counted.append((done, total)),
    )
    ldiv_db.measure(con, "theirs", source="stays", qi="age", sensitive="said", queries=5, listener=listener)
    assert went == ahead[0] and ahead[1] == went[-1:] and len(went) == 4 and counted == [(0, 5)]
    went.clear(), ahead.clear()
    ldiv_db.measure(con, "theirs", source="stays", qi="age", sensitive="said", kl=False, listener=listener)
    assert went == ahead[0] and len(went) == 1
