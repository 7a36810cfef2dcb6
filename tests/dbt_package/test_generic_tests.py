"""The generic tests as a project writes them: their arguments, what they return, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt_projects import Done, Project

import ldiv_db

pytest.importorskip("dbt.adapters.duckdb", reason="dbt-duckdb is not installed: pip install '.[dbt]'")
pytestmark = pytest.mark.dbt

MODELS = "models/models.yml"
#: A test on the release `patients` by its name: which, its arguments, and the requirement that it is.
ON_PATIENTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "k_holds": ("k_anonymous", {"k": 2}, "k:2"),
    "k_fails": ("k_anonymous", {"k": 5}, "k:5"),
    "distinct": ("l_diverse", {"l": 4}, "distinct:4"),
    "entropy": ("l_diverse", {"l": 3.5, "kind": "entropy"}, "entropy:3.5"),
    "recursive": ("l_diverse", {"l": 2, "c": 0.75, "kind": "recursive"}, "recursive:c=0.75,l=2"),
    "frequency": ("l_diverse", {"l": 3, "kind": "frequency"}, "frequency:3"),
    "unique": ("l_diverse", {"l": 3, "kind": "unique"}, "unique_distinct:3"),
    "equal": ("t_close", {"t": 0.4}, "t_closeness:0.4"),
    "ordered": ("t_close", {"t": 0.15, "distance": "ordered"}, "t_closeness:t=0.15,distance=ordered"),
    "policy": ("meets_policy", {"require": [{"alpha_k": {"alpha": 0.4, "k": 3}}]}, "alpha_k:alpha=0.4,k=3"),
    "written": ("meets_policy", {"policy": "{quasi_identifiers: [age], require: [{k: 9}]}"}, "k:9"),
}
#: What is refused, and what is said of it.
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "proximity": (
        "meets_policy",
        {"require": [{"proximity": {"epsilon": 5, "m": 2}}]},
        "cannot judge the requirement proximity",
    ),
    "range": ("meets_policy", {"require": [{"range": {"k": 2, "e": 5}}]}, "range needs a sensitive column of numbers"),
    "auto": ("l_diverse", {"l": "auto"}, "l takes a whole number from 1, not auto"),
    "alpha": ("meets_policy", {"require": [{"alpha_k": {"alpha": 2, "k": 3}}]}, "alpha takes a number above 0 up to 1"),
    "named": ("meets_policy", {"require": [{"threshold": {"default": 0.5, "flu": 0.1}}]}, "threshold with flu"),
    "kind": ("l_diverse", {"l": 2, "kind": "best"}, "there is no kind best"),
    "lacks": ("l_diverse", {"l": 2, "kind": "recursive"}, "recursive lacks c"),
    "column": ("k_anonymous", {"k": 2, "quasi_identifiers": ["height"]}, "the table has no column height"),
    "other": ("meets_policy", {"require": [{"distinct": 2, "sensitive": "age"}]}, "age is not sensitive"),
    "tree": ("t_close", {"t": 0.2, "distance": "hierarchical"}, "cannot judge t_closeness with the hierarchical"),
    "spared": (
        "meets_policy",
        {
            "policy": {
                "quasi_identifiers": ["age"],
                "sensitive": {"disease": {"harmless": ["flu"]}},
                "require": [{"k": 2}],
            }
        },
        "cannot judge sensitive.disease.harmless",
    ),
    "ignored": (
        "meets_policy",
        {"policy": {"quasi_identifiers": ["age"], "suppressed": "ignore", "require": [{"k": 2}]}},
        "cannot judge suppressed: ignore",
    ),
    "people": (
        "meets_policy",
        {"policy": {"quasi_identifiers": ["age"], "individual": "person", "require": [{"k": 2}]}},
        "cannot judge individual: the policy counts people",
    ),
}


def with_tests(project: Project, tests: dict[str, tuple[str, dict[str, Any], str]], config: str = "") -> None:
    """The project with these tests on `patients` in place of its own."""
    lines = [
        f"      - ldiv.{kind}: {{name: {name}, arguments: {json.dumps(arguments)}{config}}}\n"
        for name, (kind, arguments, _) in tests.items()
    ]
    text = (project.folder / MODELS).read_text()
    project.write(MODELS, text.replace("      - ldiv.meets_policy\n", "".join(lines), 1))


def failures(done: Done) -> dict[str, int]:
    return {result.node.name: result.failures for result in done.results}


def test_tests_count_the_classes_that_violate(built: Project) -> None:
    with_tests(built, ON_PATIENTS)
    done = built.run("test", "--select", "patients")
    columns = {name: ["age"] if name == "written" else ["age", "sex", "zip"] for name in ON_PATIENTS}
    with built.database() as connection:
        verdicts = {
            name: ldiv_db.check(connection, "dev.patients", columns[name], "disease", [requirement])[0].verdicts[0]
            for name, (_, _, requirement) in ON_PATIENTS.items()
        }
    assert failures(done) == {name: verdict.violating_classes for name, verdict in verdicts.items()}
    assert {name for name, status in done.statuses.items() if status == "pass"} == {
        name for name, verdict in verdicts.items() if verdict.holds
    }
    assert 0 < sum(verdict.holds for verdict in verdicts.values()) < len(verdicts)


def test_tests_return_counts_and_no_values(built: Project) -> None:
    with_tests(built, {"distinct": ("l_diverse", {"l": 6}, "")})
    failed = built.run("test", "--select", "patients", "--store-failures")
    assert failed.statuses == {"distinct": "fail"}
    with built.database() as connection:
        kept = connection.execute('SELECT * FROM dev_dbt_test__audit."distinct"')
        assert [column[0] for column in kept.description] == ["requirement", "class_rows", "reached", "margin"]
        rows = kept.fetchall()
    assert rows and {row[0] for row in rows} == {"distinct l=6 on disease"}
    assert all(margin == reached - 6 < 0 for _, _, reached, margin in rows)


def test_a_part_of_a_table(built: Project) -> None:
    with_tests(built, {"part": ("k_anonymous", {"k": 1000}, "")}, config=", config: {where: \"sex = 'F'\"}")
    done = built.run("test", "--select", "patients")
    (classes,) = built.query("SELECT count(*) FROM (SELECT DISTINCT age, sex, zip FROM dev.patients WHERE sex = 'F')")
    assert failures(done) == {"part": classes[0]}


def test_what_cannot_be_judged_is_an_error_that_names_it(built: Project) -> None:
    with_tests(built, REFUSED)
    done = built.run("test", "--select", "patients")
    assert set(done.statuses.values()) == {"error"}
    for name, (_, _, said) in REFUSED.items():
        assert said in done.message(name), name


def test_a_table_without_a_policy_takes_arguments(built: Project) -> None:
    tests = [
        {"ldiv.k_anonymous": {"name": "fails", "arguments": {"k": 2, "quasi_identifiers": ["age", "zip"]}}},
        {"ldiv.k_anonymous": {"name": "lacks", "arguments": {"k": 2}}},
    ]
    built.write("seeds/seeds.yml", json.dumps({"seeds": [{"name": "admissions", "data_tests": tests}]}))
    done = built.run("test", "--select", "admissions")
    assert done.statuses == {"fails": "fail", "lacks": "error"}
    assert "quasi_identifiers is missing" in done.message("lacks")


def test_a_source_of_others_is_tested_by_arguments(built: Project) -> None:
    tests = [{"ldiv.l_diverse": {"name": "theirs", "arguments": {
        "l": 2, "quasi_identifiers": ["sex"], "sensitive": "disease"}}}]  # fmt: skip
    tables = [{"name": "admissions", "data_tests": tests}]
    built.write("models/sources.yml", json.dumps({"sources": [{"name": "theirs", "schema": "dev", "tables": tables}]}))
    assert built.run("test", "--select", "source:theirs").statuses == {"theirs": "pass"}
