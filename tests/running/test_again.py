"""A source that was published before: the same release again, another draft of the same rows, or none."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

AGAIN = {"target": {"table": "published.patients", "if_exists": "replace"}, "seed": None}


def published(bed: Any, **changes: Any) -> dict[str, Any]:
    """A run under the policy without a seed, with other changes: what its JSON says."""
    bed.write_policy(**{**AGAIN, **changes})
    called = bed.run("--json", "--show-seed")
    assert called.code == 0, called.err
    return called.json


def rows(bed: Any, table: str = "published.patients") -> list[Any]:
    return bed.sql(f"FROM {table}")


def test_an_unchanged_source_is_published_by_the_same_seed(bed: Any) -> None:
    first = published(bed)
    before = rows(bed)
    assert first["unchanged"] is None and not any(first["run_id"] in note for note in first["notes"])
    bed.sql(
        "CREATE TABLE other AS FROM patients ORDER BY hash(name); DROP TABLE patients;"
        "ALTER TABLE other RENAME TO patients"
    )
    planned = bed.call("plan", bed.database, bed.policy, "--json").json
    assert planned["unchanged"] == first["run_id"]
    again = published(bed)
    assert (again["unchanged"], again["seed"]) == (first["run_id"], first["seed"])
    assert rows(bed) == before, "whatever the order of the source's rows is"
    text = bed.run()
    assert "unchanged: source and policy are those of run " + again["run_id"] in " ".join(text.out.split())


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "again", "identifiers": ["name"]},
        {"nulls": "value", "source": "patients"},
        {"target": "again.parquet"},
    ],
)
def test_what_bears_on_no_cell_changes_nothing(bed: Any, changes: dict[str, Any]) -> None:
    first = published(bed)
    again = published(bed, **changes)
    # Of a file labels have types of their own, so that another format is another release.
    assert (again["seed"] == first["seed"]) == (changes["target"] != "again.parquet" if "target" in changes else True)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE patients SET age = age + 1 WHERE name = 'P3'",
        "UPDATE patients SET ward = 'W9' WHERE name = 'P3'",
        "DELETE FROM patients WHERE name = 'P3'",
        "INSERT INTO patients SELECT 'P99', age, country, disease, ward FROM patients WHERE name = 'P3'",
    ],
)
def test_changed_rows_stop_the_run_and_name_three_ways_on(bed: Any, change: str) -> None:
    first = published(bed)
    bed.sql(change)
    before = rows(bed)
    message = " ".join(bed.fails(2, "run", bed.database, bed.policy).split())
    assert first["run_id"] in message and "have changed since" in message
    assert all(way in message for way in ("key: …", "over_time: independent", f"withdraw DATABASE {first['run_id']}"))
    assert rows(bed) == before and len(bed.sql("SELECT run_id FROM ldiv.run")) == 1
    planned = bed.call("plan", bed.database, bed.policy, "--json").json
    assert any("have changed since" in note for note in planned["notes"])
    later = published(bed, over_time="independent")
    (told,) = [note for note in later["notes"] if first["run_id"] in note]
    assert later["run_id"] in told and later["seed"] != first["seed"] and later["unchanged"] is None
    again = published(bed)  # of the run that the policy took for independent
    assert again["unchanged"] == later["run_id"]


@pytest.mark.parametrize(
    "change",
    [
        {"require": [{"unique_distinct": 2}]},
        {"quasi_identifiers": {"country": {"taxonomy": {"file": "country.csv"}}, "age": {"numeric": True}}},
        {"quasi_identifiers": {"age": {"numeric": True}}, "identifiers": ["name", "country"]},
        {"keep": [], "identifiers": ["name", "ward"]},
        {"seed": 5},
        "taxonomy",
        "ALTER TABLE patients ALTER age TYPE BIGINT",
    ],
    ids=str,
)
def test_the_same_rows_under_another_policy_are_a_draft(bed: Any, change: Any) -> None:
    first = published(bed)
    if change == "taxonomy":
        bed.write("country.csv", (bed.folder / "country.csv").read_text().replace("Europe", "The Occident"))
    elif isinstance(change, str):
        bed.sql(change)
    later = published(bed, **(change if isinstance(change, dict) else {}))
    assert later["unchanged"] is None and later["seed"] != first["seed"]
    (told,) = [note for note in later["notes"] if first["run_id"] in note]
    assert later["run_id"] in told and "Hand out only one of the two" in told


def test_a_release_that_was_withdrawn_is_held_against_nothing(bed: Any) -> None:
    first = published(bed)
    bed.sql("DELETE FROM patients WHERE name = 'P3'")
    assert "no run" in bed.fails(2, "runs", "withdraw", bed.database, "nothing")
    found = bed.call("runs", "withdraw", bed.database, first["run_id"][:8], "--json").json["run"]
    assert (found["run_id"], found["status"]) == (first["run_id"], "withdrawn")
    listed = bed.call("runs", bed.database, "--json").json["runs"]
    assert [run["status"] for run in listed] == ["withdrawn"] and listed == bed.call(
        "runs", "list", bed.database, "--json"
    ).json["runs"]
    assert not any(first["run_id"] in note for note in published(bed)["notes"])


def test_a_run_whose_ledger_has_another_source_says_nothing(bed: Any) -> None:
    first = published(bed)
    bed.sql("CREATE TABLE others AS SELECT name, age + 1 AS age, country, disease, ward FROM patients")
    later = published(bed, source="others", target="published.others")
    assert not any(first["run_id"] in note for note in later["notes"])


def test_a_release_that_rests_on_other_tables_is_never_called_unchanged(bed: Any) -> None:
    bed.sql("CREATE TABLE people AS SELECT age, country FROM patients, range(3)")
    asked = {
        "require": [{"distinct": 2}, {"k_map": {"k": 3, "population": "people"}}],
        "algorithm": "auto",
        "quasi_identifiers": {
            "age": {"taxonomy": {"ranges": [10, 40]}},
            "country": {"taxonomy": {"file": "country.csv"}},
        },
    }
    first = published(bed, **asked)
    later = published(bed, **asked)
    assert later["unchanged"] is None
    assert any(first["run_id"] in note and "same rows" in note for note in later["notes"])


def test_fingerprints_are_the_same_in_every_process(bed: Any) -> None:
    first = published(bed)
    words = [sys.executable, "-m", "ldiv_db", "run", str(bed.database), str(bed.policy), "--json"]
    again = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert again["unchanged"] == first["run_id"]


def test_who_reads_what_was_published_finds_no_seed_and_nothing_of_the_source(bed: Any) -> None:
    """Equal hashes would say that a source is unchanged, or which one it is to who can guess it."""
    seeds = [published(bed)["seed"], published(bed)["seed"]]
    secret = bed.sql("SELECT seed, hash_key, rows_hash, policy_hash FROM ldiv.run_secret")
    assert [int(row[0]) for row in secret] == seeds and all(map(all, secret))
    tables = bed.sql(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ldiv' AND table_name NOT LIKE '%_secret'"
    )
    open_text = repr([bed.sql(f"SELECT COLUMNS(*)::VARCHAR FROM ldiv.{name}") for (name,) in tables])
    assert not any(value in open_text for row in secret for value in row)


def test_seeds_are_named_on_request(bed: Any) -> None:
    bed.write_policy(**AGAIN)
    assert "seed" not in bed.run("--json").json
    (listed,) = bed.call("runs", bed.database, "--json", "--show-seed").json["runs"]
    assert listed["seed"] in "".join(bed.run("--show-seed").out.split())
    assert listed["seed"] not in bed.call("runs", bed.database, "--json").out


def test_rows_that_a_null_left_out_are_no_change(bed: Any) -> None:
    """Of the same rows another policy may read more: the first release is held against what it read itself."""
    bed.sql("UPDATE patients SET disease = NULL WHERE name = 'P3'")
    first = published(bed, nulls_sensitive="suppress")
    later = published(bed, nulls_sensitive="value")
    assert later["unchanged"] is None and any(first["run_id"] in note for note in later["notes"])
    bed.sql("UPDATE patients SET disease = NULL WHERE name = 'P5'")
    assert "have changed since" in " ".join(bed.fails(2, "run", bed.database, bed.policy).split())
