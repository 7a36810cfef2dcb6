"""A source that was published before: the same release again, another draft of the same rows, or none."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
import tables
from beds import Bed
from strategies import some

import ldiv_db

pytestmark = pytest.mark.again

AGAIN = {"target": {"table": "published.patients", "if_exists": "replace"}, "seed": None}


def published(bed: Any, **changes: Any) -> dict[str, Any]:
    """A run under the policy without a seed, with other changes: what its JSON says."""
    bed.write_policy(**{**AGAIN, **changes})
    called = bed.run("--json", "--show-seed")
    assert called.code == 0, called.err
    return called.json


@pytest.fixture(scope="module")
def release(first_bed: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("again")
    shutil.copytree(first_bed, folder, dirs_exist_ok=True)
    return folder, published(Bed(folder))


@pytest.fixture
def first(release: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    """What the first run has said, by the policy without a seed."""
    return release[1]


@pytest.fixture
def bed(release: tuple[Path, dict[str, Any]], tmp_path: Path) -> Bed:
    """A bed in which that run was made."""
    shutil.copytree(release[0], tmp_path, dirs_exist_ok=True)
    return Bed(tmp_path)


@pytest.fixture
def fresh(first_bed: Path, tmp_path: Path) -> Bed:
    """A bed in which nothing was run."""
    shutil.copytree(first_bed, tmp_path, dirs_exist_ok=True)
    return Bed(tmp_path)


def rows(bed: Any, table: str = "published.patients") -> list[Any]:
    return bed.sql(f"FROM {table}")


@pytest.mark.parametrize(
    "change",
    some(
        [
            "UPDATE patients SET age = age + 1 WHERE name = 'P3'",
            "UPDATE patients SET ward = 'W9' WHERE name = 'P3'",
            "DELETE FROM patients WHERE name = 'P3'",
            "INSERT INTO patients SELECT 'P99', age, country, disease, ward FROM patients WHERE name = 'P3'",
        ],
        1,
    ),
)
def test_changed_rows_stop_the_run_and_name_three_ways_on(bed: Any, first: Any, change: str) -> None:
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
    some(
        [
            {"require": [{"unique_distinct": 2}]},
            {"quasi_identifiers": {"country": {"taxonomy": {"file": "country.csv"}}, "age": {"numeric": True}}},
            {"quasi_identifiers": {"age": {"numeric": True}}, "identifiers": ["name", "country"]},
            {"keep": [], "identifiers": ["name", "ward"]},
            {"seed": 5},
            "taxonomy",
        ],
        1,
    ),
    ids=str,
)
def test_the_same_rows_under_another_policy_are_a_draft(bed: Any, first: Any, change: Any) -> None:
    if change == "taxonomy":
        bed.write("country.csv", (bed.folder / "country.csv").read_text().replace("Europe", "The Occident"))
    later = published(bed, **(change if isinstance(change, dict) else {}))
    assert later["unchanged"] is None and later["seed"] != first["seed"]
    (told,) = [note for note in later["notes"] if first["run_id"] in note]
    assert later["run_id"] in told and "Hand out only one of the two" in told


@pytest.mark.slow
def test_a_draft_of_other_columns_hides_no_changed_rows(bed: Any, first: Any) -> None:
    """A run is held against every earlier one, in the columns that this one read."""
    other = {"sensitive": ["ward"], "keep": [], "identifiers": ["name", "disease"], "target": "draft"}
    other["require"] = [{"unique_distinct": 2}]
    draft = published(bed, **other)
    bed.sql("UPDATE patients SET disease = 'new' WHERE name = 'P3'")
    bed.write_policy(**{**AGAIN, "target": "later"})
    message = " ".join(bed.fails(2, "run", bed.database, bed.policy).split())
    assert f"run {first['run_id']} published this source, and its rows have changed since" in message
    again = published(bed, **{**other, "target": "again"})  # which never read what has changed
    assert again["unchanged"] == draft["run_id"]
    bed.call("runs", "withdraw", bed.database, first["run_id"])
    assert any(again["run_id"] in note for note in published(bed, target="later")["notes"])


@pytest.mark.slow
def test_a_run_beside_a_series_is_not_hidden_by_a_draft(bed: Any, first: Any) -> None:
    published(bed, key="name", identifiers=[], target="series", over_time="independent")
    assert published(bed)["unchanged"] == first["run_id"]
    bed.write_policy(**{**AGAIN, "target": "other", "require": [{"unique_distinct": 2}]})
    message = " ".join(bed.fails(2, "run", bed.database, bed.policy).split())
    assert "release 1 of " in message and "it is not known whether its rows have changed" in message


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some(["bsgi", "topdown"], 1))
@pytest.mark.parametrize("target", some(["out", "out.parquet"], 1))
def test_what_independent_releases_tell_together_is_shown(
    con: Any, tmp_path: Path, algorithm: str, target: str
) -> None:
    """As `attack` has it, by the release before, of which there is a copy."""
    draw = random.Random(algorithm)
    people = [(number, draw.randrange(60), draw.choice("abcdef")) for number in range(60)]
    tables.fill(con, "people", {"id": "INTEGER", "age": "INTEGER", "s": "VARCHAR"}, people)
    require = {"unique_distinct" if algorithm == "bsgi" else "frequency": 3}
    policy = {
        "source": "people", "target": {"file" if "." in target else "table": target, "if_exists": "replace"},
        "identifiers": ["id"], "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"],
        "require": [require], "algorithm": algorithm, "over_time": "independent",
    }  # fmt: skip
    name = str(tmp_path / target) if "." in target else target
    assert "compared" not in ldiv_db.run(con, policy, tmp_path).as_dict()
    con.execute(f"CREATE TABLE before AS FROM '{name}'")
    con.execute("DELETE FROM people WHERE id % 9 = 0")
    later = ldiv_db.run(con, policy, tmp_path)
    (shown,) = later.as_dict()["compared"]
    attacks = ldiv_db.attack(con, name, policy=policy, known="people", also="before").attacks
    assert shown == next(attack.as_dict() for attack in attacks if attack.name == "composition")
    figures = shown["figures"]
    assert figures["above_promise_of_one"] > 9, "releases of changed rows tell more than one"
    certain = f"certain of the s of {figures['one_value']} of {figures['people']} people"
    assert any(certain in note and str(figures["above_promise_of_one"]) in note for note in later.said)


@pytest.mark.parametrize(
    ("change", "why"),
    some(
        [
            ("DROP TABLE out", "no table"),
            ("DELETE FROM out WHERE class_id = 1", "out has not the 12 rows of that release"),
            ("ALTER TABLE out RENAME s TO t", "the release out has no column 's'"),
            ("UPDATE ldiv.run SET target = 'elsewhere'; DROP TABLE out", "no table"),
            ("CREATE TABLE others AS SELECT id, age + 1 AS age, s FROM people", "another took its place"),
        ],
        1,
    ),
)
def test_what_cannot_be_compared_is_published_and_said(con: Any, change: str, why: str) -> None:
    tables.fill(
        con, "people", {"id": "INTEGER", "age": "INTEGER", "s": "VARCHAR"}, [(n, n, "abc"[n % 3]) for n in range(12)]
    )
    policy = {
        "source": "people", "target": {"table": "out", "if_exists": "replace"}, "identifiers": ["id"],
        "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"], "require": [{"unique_distinct": 3}],
        "algorithm": "bsgi", "over_time": "independent",
    }  # fmt: skip
    ldiv_db.run(con, policy)
    con.execute(change)
    if "others" in change:
        ldiv_db.run(con, policy | {"source": "others"})
    con.execute("DELETE FROM people WHERE id < 3")
    later = ldiv_db.run(con, policy)
    assert "compared" not in later.as_dict() and later.loss.rows_published == 9
    assert any("what both reveal together was not measured: " in note and why in note for note in later.said), (
        later.said
    )


def test_a_release_that_was_withdrawn_is_held_against_nothing(bed: Any, first: Any) -> None:
    bed.sql("DELETE FROM patients WHERE name = 'P3'")
    assert "no run" in bed.fails(2, "runs", "withdraw", bed.database, "nothing")
    found = bed.call("runs", "withdraw", bed.database, first["run_id"][:8], "--json").json["run"]
    assert (found["run_id"], found["status"]) == (first["run_id"], "withdrawn")
    listed = bed.call("runs", bed.database, "--json").json["runs"]
    assert [run["status"] for run in listed] == ["withdrawn"] and listed == bed.call(
        "runs", "list", bed.database, "--json"
    ).json["runs"]
    assert not any(first["run_id"] in note for note in published(bed)["notes"])


@pytest.mark.parametrize("later", some(["main.PATIENTS", '"patients"', "./patients.csv"], 1))
def test_a_source_is_known_again_by_another_name_for_it(bed: Any, later: str) -> None:
    """Of a table in any spelling, of a file by any path: changed rows are not published as those of a new source."""
    export = f"COPY patients TO '{bed.folder}/patients.csv'"
    bed.sql(export)
    if "csv" in later:
        published(bed, source="patients.csv")
    bed.sql(f"DELETE FROM patients WHERE name = 'P3'; {export}")
    key = {"key": "name", "identifiers": [], "target": "published.series"}
    for changes, said in (({}, "have changed since"), (key, "published this source without a key")):
        bed.write_policy(**{**AGAIN, **changes, "source": later})
        assert said in " ".join(bed.fails(2, "run", bed.database, bed.policy).split())


def test_a_run_whose_ledger_has_another_source_says_nothing(bed: Any, first: Any) -> None:
    bed.sql("CREATE TABLE others AS SELECT name, age + 1 AS age, country, disease, ward FROM patients")
    later = published(bed, source="others", target="published.others")
    assert not any(first["run_id"] in note for note in later["notes"])


@pytest.mark.slow
def test_a_release_that_rests_on_other_tables_is_never_called_unchanged(fresh: Any) -> None:
    fresh.sql("CREATE TABLE people AS SELECT age, country FROM patients, range(3)")
    asked = {
        "require": [{"distinct": 2}, {"k_map": {"k": 3, "population": "people"}}],
        "algorithm": "auto",
        "quasi_identifiers": {
            "age": {"taxonomy": {"ranges": [10, 40]}},
            "country": {"taxonomy": {"file": "country.csv"}},
        },
    }
    first = published(fresh, **asked)
    later = published(fresh, **asked)
    assert later["unchanged"] is None
    assert any(first["run_id"] in note and "same rows" in note for note in later["notes"])


@pytest.mark.slow
def test_fingerprints_are_the_same_in_every_process(bed: Any, first: Any) -> None:
    words = [sys.executable, "-m", "ldiv_db", "run", str(bed.database), str(bed.policy), "--json"]
    again = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert again["unchanged"] == first["run_id"]


def test_who_reads_what_was_published_finds_no_seed_and_nothing_of_the_source(bed: Any, first: Any) -> None:
    """Equal hashes would say that a source is unchanged, or which one it is to who can guess it."""
    seeds = [first["seed"], published(bed)["seed"]]
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
    listed, _ = bed.call("runs", bed.database, "--json", "--show-seed").json["runs"]
    assert listed["seed"] in "".join(bed.run("--show-seed").out.split())
    assert listed["seed"] not in bed.call("runs", bed.database, "--json").out


def test_rows_that_a_null_left_out_are_no_change(fresh: Any) -> None:
    """Of the same rows another policy may read more: the first release is held against what it read itself."""
    fresh.sql("UPDATE patients SET disease = NULL WHERE name = 'P3'")
    first = published(fresh, nulls_sensitive="suppress")
    later = published(fresh, nulls_sensitive="value")
    assert later["unchanged"] is None and any(first["run_id"] in note for note in later["notes"])
    fresh.sql("UPDATE patients SET disease = NULL WHERE name = 'P5'")
    assert "have changed since" in " ".join(fresh.fails(2, "run", fresh.database, fresh.policy).split())


# -- a ledger in memory ---------------------------------------------------------------------------------

FORGETS = "the ledger is in memory, and ends with the connection"
TRANSPARENT = {
    "identifiers": ["id"], "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["s"],
    "require": [{"unique_distinct": 3}], "algorithm": "bsgi", "transparent": True,
}  # fmt: skip


def people() -> pd.DataFrame:
    rows = [(i, 20 + i * 37 % 60, f"d{i * i % 61 % 9}") for i in range(30)]
    return pd.DataFrame(rows, columns=["id", "age", "s"])


@pytest.mark.parametrize("given", some(["frame", "objects", "csv", "query"], 1))
def test_what_no_later_run_can_know_of_is_said_and_promises_nothing_of_others(tmp_path: Path, given: str) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    source = {"csv": "people.csv", "query": {"query": f"SELECT * FROM '{tmp_path}/people.csv'"}}.get(given)
    policy = {**TRANSPARENT, "target": {"file": "out.parquet", "if_exists": "replace"}}
    frames = {"frame": people(), "objects": people().astype({"s": object})}  # of which a copy is read

    def publish(**changes: Any) -> Any:
        if given in frames:
            return ldiv_db.run(frames[given], policy | changes, tmp_path)
        with duckdb.connect(config={"threads": 1}) as own:
            return ldiv_db.run(own, policy | {"source": source} | changes, tmp_path)

    with pytest.raises(ldiv_db.PolicyError, match=r"transparent: .*ends with the connection.*over_time: independent"):
        publish()
    assert sum(FORGETS in note for note in publish(over_time="independent").said) == 1
    assert sum(FORGETS in note for note in publish(transparent=False).said) == 1
    if given not in frames:
        with pytest.raises(ldiv_db.PolicyError, match=r"key: .*ends with the connection"):
            publish(transparent=False, key="id", identifiers=[], target={"file": "series.duckdb", "table": "s"})


def test_a_frame_has_a_ledger_in_a_file_as_catalog(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.duckdb")
    with pytest.raises(ldiv_db.DatabaseError, match="no catalog file"):
        ldiv_db.plan(people(), TRANSPARENT, catalog=ledger)
    results = [ldiv_db.run(people(), TRANSPARENT, catalog=ledger) for _ in range(2)]
    assert results[1].earlier.unchanged == results[0].run_id and not any(FORGETS in note for note in results[0].said)
    assert results[0].table().fetchall() == results[1].table().fetchall()
    changed = people()
    changed.loc[3, "s"] = "new"
    with pytest.raises(ldiv_db.PolicyError, match="its rows have changed since"):
        ldiv_db.run(changed, TRANSPARENT, catalog=ledger)
    assert ldiv_db.plan(people(), TRANSPARENT, catalog=ledger).earlier.unchanged == results[1].run_id


@pytest.mark.parametrize("other", some(["release", "policy"], 1))
def test_a_new_version_is_told_from_another_policy(bed: Any, first: Any, other: str) -> None:
    older = json.dumps({**first["versions"], "ldiv_db": "0.0.9"})
    bed.sql(f"UPDATE ldiv.run SET versions = '{older}'")
    if other == "policy":
        bed.sql("UPDATE ldiv.run_secret SET policy_hash = 'of another form'")
    planned, before = bed.call("plan", bed.database, bed.policy, "--json").json, rows(bed)
    again = published(bed)
    assert planned["unchanged"] is again["unchanged"] is None
    for said, is_made in ((planned, False), (again, True)):
        (note,) = [note for note in said["notes"] if first["run_id"] in note]
        assert "the version is another now" in note and "by ldiv_db 0.0.9" in note and "another policy" not in note
        assert ("says if its release is the same" in note) != is_made
    assert (again["seed"] == first["seed"]) == (other == "release")
    is_same = rows(bed) == before
    assert is_same or other == "policy"
    assert ("and its release is the same" in note, "is another draft of it" in note) == (is_same, not is_same)
    assert published(bed)["unchanged"] == again["run_id"]
