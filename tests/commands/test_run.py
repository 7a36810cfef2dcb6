"""`ldiv run` and `ldiv plan`: what they print and publish, and every refusal, which leaves the file as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from oracle import parse_set
from refusals import codes_told

from tests.strategies import some

RUN_KEYS = {
    "run_id", "algorithm", "source", "target", "rows_in", "rows_published", "rows_suppressed", "cells_suppressed",
    "classes", "classes_made", "avg_class_size", "loss", "requirements", "similarity", "search", "seconds",
    "versions", "notes", "inferred", "unchanged", "answers",
}  # fmt: skip
LOSS_KEYS = {"lm", "lm_mean", "ncp", "ncp_mean", "dm", "cavg", "kl", "stars", "lm_by_column", "precision", "counts"}
REQUIREMENT_KEYS = {
    "name", "parameters", "holds", "worst", "worst_is", "worst_class", "worst_class_rows", "margin", "classes",
    "violating_classes", "violating_rows", "second_reading", "read_once", "sensitive",
}  # fmt: skip
PLAN_KEYS = {
    "source", "target", "algorithm", "options", "l", "largest_l", "rows_in", "rows_suppressed", "most_suppressed",
    "classes_made", "requirements", "columns", "needs", "notes", "inferred", "tries", "unchanged",
}  # fmt: skip
HOSTILE = '"; DROP TABLE patients; --'


def test_run_publishes_says_so_and_leaves_the_source_and_a_row_of_the_ledger(bed: Any) -> None:
    before = bed.sql("FROM patients")
    called = bed.run()
    assert called.code == 0, called.err
    assert "rows published" in called.out and "unique_distinct l=3" in called.out and "yes" in called.out
    assert bed.sql("SELECT count(*), count(DISTINCT class_id) FROM published.patients") == [(24, 8)]
    columns = [row[0] for row in bed.sql("DESCRIBE published.patients")]
    assert columns == ["class_id", "age", "country", "disease", "ward"]
    assert bed.sql("FROM patients") == before
    ((run_id, rows),) = bed.sql("SELECT run_id, rows_in FROM ldiv.run")
    assert run_id in called.out and rows == 24


def test_run_json_has_the_documented_keys_and_a_bound_if_it_is_asked(bed: Any) -> None:
    """The bound stands beside the loss of the run; a plan has nothing to hold it against."""
    planned = bed.call("plan", bed.database, bed.policy, "--bound", "--json").json
    assert set(planned) == PLAN_KEYS | {"bound"} and planned["bound"]["values"] == 3
    called = bed.run("--bound", "--json", "--threads", 1, "--memory-limit", "1GB", "--temp-dir", bed.folder / "spill")
    assert called.code == 0 and called.err == ""
    result = called.json
    assert set(result) == RUN_KEYS | {"bound"}
    assert 0 < planned["bound"]["lm_mean"] <= result["loss"]["lm_mean"]
    assert result["bound"] == planned["bound"] | {"above": result["loss"]["lm_mean"] / planned["bound"]["lm_mean"] - 1}
    assert "bound" not in bed.call("runs", bed.database, "--json").out
    assert set(result["loss"]) == LOSS_KEYS
    assert all(set(requirement) == REQUIREMENT_KEYS for requirement in result["requirements"])
    assert set(result["versions"]) == {"ldiv_db", "duckdb"}
    assert (result["rows_in"], result["rows_published"], result["classes"]) == (24, 24, 8)


def test_plan_says_what_would_happen_and_writes_nothing(bed: Any) -> None:
    before = bed.files()
    called = bed.call("plan", bed.database, bed.policy)
    assert called.code == 0, called.err
    assert "nothing was written" in called.out and "taxonomy country.csv: 4 leaves" in called.out
    quiet = bed.call("plan", bed.database, bed.policy, "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, called.out, "")
    assert bed.files() == before


def test_plan_json_has_the_documented_keys(bed: Any) -> None:
    found = bed.call("plan", bed.database, bed.policy, "--json").json
    assert set(found) == PLAN_KEYS
    assert (found["l"], found["largest_l"], found["classes_made"], found["rows_suppressed"]) == (3, 4, 8, 0)
    assert [one["strictest"] for one in found["requirements"]] == [None]
    assert {(c["column"], c["role"]) for c in found["columns"]} == {
        ("name", "identifier"),
        ("age", "quasi-identifier"),
        ("country", "quasi-identifier"),
        ("disease", "sensitive"),
        ("ward", "keep"),
    }
    assert all(set(column) == {"column", "role", "generalised_by"} for column in found["columns"])


def test_plan_says_what_the_algorithm_that_will_run_could_meet(bed: Any) -> None:
    """Algorithms whose classes may have equal values go as far as the table as one class."""
    bed.write_policy(require=[{"distinct": 2}, {"frequency": 2}, {"k": 3}], algorithm="topdown")
    found = bed.call("plan", bed.database, bed.policy, "--json").json
    (values, most) = bed.sql("SELECT count(DISTINCT disease), max(n) FROM (SELECT disease, count(*) AS n FROM patients"
                             " GROUP BY ALL)")[0]  # fmt: skip
    said = [one["strictest"] for one in found["requirements"]]
    assert (found["largest_l"], said[0], said[2]) == (None, f"l: {values}", "k: 24")
    assert float(said[1].removeprefix("l: ")) == pytest.approx(24 / most, abs=1e-3)
    assert "all rows as one class reach k: 24" in " ".join(bed.call("plan", bed.database, bed.policy).out.split())


def test_plan_shows_its_sql_but_no_value(bed: Any) -> None:
    found = bed.call("plan", bed.database, bed.policy, "--json", "--sql").json
    assert set(found) == PLAN_KEYS | {"statements"}
    steps = {
        "recoding/input/snapshot_source",
        "recoding/input/encode_rows",
        "bsgi/fill_root",
        "recoding/publish/recode_rows",
        "recoding/loss/sum_losses",
    }
    assert steps <= {s["template"] for s in found["statements"]}
    assert any(s["template"].startswith("auditing/") for s in found["statements"]), "all that a run does"
    text = bed.call("plan", bed.database, bed.policy, "--sql").out
    assert '"main"."patients"' in text
    assert "Norway" not in text and "Hepatitis" not in text
    assert not bed.sql("SELECT 1 FROM duckdb_tables() WHERE schema_name IN ('published', 'ldiv')"), "nothing is written"


def test_a_text_among_the_numbers_of_a_file_is_counted_and_not_shown(bed: Any) -> None:
    lines = [f"P{i},{i % 50},Italy,d{i % 5},w" for i in range(30_000)]
    bed.write("people.csv", "\n".join(["name,age,country,disease,ward", *lines, "P,SECRETAGE,Italy,d1,w"]))
    bed.write_policy(source="people.csv")
    error = bed.fails(2, "run", bed.database, bed.policy)
    assert "NULL for 1 other text" in error and "SECRETAGE" not in error


@pytest.mark.slow
def test_a_run_whose_reader_goes_away_is_no_failure_of_the_policy(bed: Any) -> None:
    command = [sys.executable, "-m", "ldiv_db", "run", str(bed.database), str(bed.policy)]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
    assert bed.sql("SELECT status FROM ldiv.run") == [("published",)]


def test_a_threshold_of_no_value_is_an_error_or_noted(bed: Any) -> None:
    thresholds = {"default": "0.5", "Cancr": "0.4", "Cancer": "0.4"}
    bed.write_policy(require=[{"threshold": thresholds}])
    refused = bed.fails(2, "plan", bed.database, bed.policy)
    assert "require.0.threshold: 1 of the values named are in no row: 'Cancr'" in refused
    bed.write_policy(require=[{"threshold": {**thresholds, "absent": "allow"}}])
    notes = bed.call("plan", bed.database, bed.policy, "--json").json["notes"]
    assert [note for note in notes if "value" in note] == [
        "no row has the value 'Cancr', which has a threshold of its own"
    ]


def test_the_hint_writes_a_name_as_a_policy_does(bed: Any) -> None:
    bed.sql('CREATE SCHEMA "my sch"; CREATE TABLE "my sch".tab AS FROM patients')
    bed.write_policy(source='"my sch".tap')
    assert """did you mean '"my sch".tab'?""" in bed.fails(2, "run", bed.database, bed.policy)


QUASI = {"age": {"numeric": True}, "country": {"taxonomy": {"file": "country.csv"}}}
#: What is changed of a policy, and the codes that a plan and a run refuse it by.
REFUSALS: list[tuple[str, dict[str, Any]]] = [
    ("source sensitive", {"sensitive": ["diseese"]}),
    ("require seed sensitiv", {"sensitiv": 1, "require": None, "seed": -1}),
    ("source", {"source": HOSTILE}),
    ("target.table", {"target": HOSTILE}),
    (f"keep.{HOSTILE.partition(' ')[0]}", {"keep": ["ward", HOSTILE]}),
    ("quasi_identifiers.taxonomy", {"quasi_identifiers": {**QUASI, "country": {"taxonomy": HOSTILE}}}),
]


def test_a_refusal_is_that_of_the_plan_has_a_line_each_and_writes_nothing(bed: Any) -> None:
    for codes, changes in REFUSALS:
        bed.write_policy(**changes)
        message = bed.fails(2, "run", bed.database, bed.policy)
        assert codes_told(message) == set(codes.split()) and len(message.splitlines()) == len(codes.split())
        assert bed.fails(2, "plan", bed.database, bed.policy) == message
    bed.write_policy(require=[{"distinct": 5}])
    assert "The largest l of this algorithm is 4" in bed.fails(1, "run", bed.database, bed.policy)


def test_a_value_that_is_too_frequent_is_refused_with_the_largest_l(bed: Any) -> None:
    bed.sql("UPDATE patients SET disease = 'Flu' WHERE name < 'P2'")
    message = bed.fails(1, "run", bed.database, bed.policy)
    assert "The largest l of this algorithm is" in message or "reaches no whole l above 1" in message
    assert "--show-values" in message and "'Flu'" not in message
    assert "'Flu' (" in bed.fails(1, "run", bed.database, bed.policy, "--show-values")


def test_null_sensitive_values_are_refused_unless_the_policy_says_otherwise(bed: Any) -> None:
    bed.sql("UPDATE patients SET disease = NULL WHERE name = 'P1'")
    assert "disease in 1 row" in bed.fails(1, "run", bed.database, bed.policy)
    bed.write_policy(nulls_sensitive="suppress")
    assert bed.call("plan", bed.database, bed.policy).code == 0


def test_values_that_a_taxonomy_lacks_are_named(bed: Any) -> None:
    bed.sql("UPDATE patients SET country = 'Atlantis' WHERE name = 'P1'")
    bed.sql("UPDATE patients SET country = '[/red] Mu' WHERE name = 'P2'")
    assert "no leaf for 2 values" in bed.fails(2, "run", bed.database, bed.policy)
    message = bed.fails(2, "run", bed.database, bed.policy, "--show-values")
    assert "'Atlantis'" in message and "'[/red] Mu'" in message


def test_a_target_that_exists_needs_replace(released: Any) -> None:
    assert "published.patients exists" in released.fails(2, "run", released.database, released.policy)
    released.write_policy(target={"table": "published.patients", "if_exists": "replace"}, require=[{"distinct": 4}])
    assert released.run("--json").json["classes"] == 6


ODD = [f"{HOSTILE} [/red] {{{{ x }}}}, ünï'cødé, $p1 %s", HOSTILE, "[/red] {{ x }}", "select", "ünï'cødé, $p1 %s"]


@pytest.mark.parametrize("name", some(ODD))
def test_names_and_values_that_look_like_something_else(bed: Any, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    bed.sql(f"ALTER TABLE patients RENAME country TO {quoted}")
    bed.sql(f"UPDATE patients SET {quoted} = {_text(name)} WHERE {quoted} = 'Norway'")
    bed.sql(f"UPDATE patients SET disease = {_text(name)} WHERE disease = 'Flu'")
    bed.sql(f"ALTER TABLE patients RENAME TO {quoted}")
    taxonomy = f"  {_yaml(name)}: {{}}\n  Italy: {{}}\nAsia: {{Japan: {{}}, Korea: {{}}}}\n"
    bed.write("country.yml", f"Europe:\n{taxonomy}")
    bed.write_policy(
        source=f"main.{quoted}",
        target=f"published.{quoted}",
        quasi_identifiers={"age": {"numeric": True}, name: {"taxonomy": {"file": "country.yml"}}},
    )
    called = bed.run()
    assert called.code == 0, called.err
    assert bed.sql(f"SELECT count(*) FROM published.{quoted}") == [(24,)]
    assert bed.sql(f"SELECT count(*) FROM main.{quoted} WHERE disease = {_text(name)}") == [(6,)]
    checked = bed.call(
        "check", bed.database, f"published.{quoted}", "--qi", "age", "--qi", name, "--class", "class_id",
        "--sensitive", "disease", "--require", "unique_distinct:3",
    )  # fmt: skip
    assert checked.code == 0, checked.err


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _yaml(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def test_a_taxonomy_file_in_another_encoding(bed: Any) -> None:
    (bed.folder / "country.csv").write_bytes("Köln;*\n".encode("latin-1"))
    assert bed.fails(2, "run", bed.database, bed.policy).startswith("error: ")


def test_a_transparent_release_says_what_its_seed_is_worth(bed: Any) -> None:
    bed.write_policy(transparent=True, seed=7, algorithm="bsgi")
    planned = bed.call("plan", bed.database, bed.policy)
    assert planned.code == 0 and "keep the policy" in planned.out.replace("\n", " ")
    bed.write_policy(transparent=True, algorithm="mondrian")
    assert "transparent" in bed.fails(2, "run", bed.database, bed.policy)


def test_names_alone_are_enough_and_the_plan_says_what_they_became(bed: Any) -> None:
    bed.write_policy(quasi_identifiers=["age", "country"])
    planned = bed.call("plan", bed.database, bed.policy)
    assert planned.code == 0 and "inferred" in planned.out
    assert "taxonomy: {flat: true}" in planned.out and "numeric: true" in planned.out
    called = bed.run("--json")
    found = called.json["inferred"]
    assert [one["column"] for one in found] == ["age", "country"] and all(one["why"] for one in found)
    labels = [row[0] for row in bed.sql("SELECT DISTINCT country FROM published.patients")]
    countries = {member for one in labels for member in (parse_set(one) if one.startswith("{") else [one])}
    assert countries <= {*(row[0] for row in bed.sql("SELECT DISTINCT country FROM patients")), "*"}
