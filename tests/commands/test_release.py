"""`ldiv release` from the command line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import yaml
from beds import Bed
from refusals import codes_told


@pytest.fixture(scope="module")
def first_census(tmp_path_factory):
    """A table that is published over time, and its policy."""
    bed = Bed(tmp_path_factory.mktemp("census"))
    bed.sql("CREATE TABLE census AS SELECT i AS id, 20 + i AS age, 'ward' || i % 4 AS ward,"
            " 'd' || i % 5 AS disease, 'job' || i % 3 AS job FROM range(21) t(i)")  # fmt: skip
    document = {
        "source": "main.census",
        "target": {"prefix": "published.census"},
        "key": "id",
        "quasi_identifiers": ["age"],
        "keep": ["ward"],
        "sensitive": {"disease": {"l": 4}, "job": {"l": 2}},
        "algorithm": {"name": "decomposition_plus", "primary": "disease", "starvation": 2},
    }
    bed.policy.write_text(yaml.safe_dump(document))
    return bed


@pytest.fixture
def census(first_census, tmp_path):
    return first_census.copied(tmp_path)


@pytest.fixture(scope="module")
def first_series(first_census, tmp_path_factory):
    """The first release of it."""
    bed = first_census.copied(tmp_path_factory.mktemp("series"))
    first = bed.run("--json")
    assert first.code == 0, first.err
    assert (first.json["release"], first.json["groups"], first.json["rows_waiting"]) == (1, 5, 1)
    assert all(part["holds"] for part in first.json["requirements"]) and first.json["inference"]["holds"]
    return bed


@pytest.fixture
def series(first_series, tmp_path):
    return first_series.copied(tmp_path)


def test_release_after_release(series):
    series.sql("INSERT INTO census SELECT 100 + i, 30, 'ward1', 'd' || i % 5, 'job' || i % 3 FROM range(8) t(i)")
    series.sql("DELETE FROM census WHERE id = 3")
    second = series.call("run", series.database, series.policy)  # the same, by another name
    assert second.code == 0 and "what was lost to noise" in second.out and "waiting for a later release" in second.out
    listed = series.call("release", "list", series.database, "--json").json["releases"]
    assert [(entry["release"], entry["status"]) for entry in listed] == [(1, "published"), (2, "published")]
    assert listed[1]["rows_published"] + listed[1]["rows_waiting"] == 28
    assert "published.census" in series.call("release", "list", series.database).out
    shown = series.call("release", "show", series.database, "published.census", "--json").json
    assert shown["release"] == 2 and shown["counterfeits"] == 1
    difference = series.call("release", "diff", series.database, "published.census", 1, 2, "--json").json
    assert difference["groups_new"] == difference["figures"]["groups"][1] - difference["figures"]["groups"][0]
    assert difference["rows_first_published"] == listed[1]["rows_first_published"]
    assert "groups new" in series.call("release", "diff", series.database, "published.census", 1, 2).out
    checked = series.call("release", "check", series.database, "published.census", "--json")
    assert checked.code == 0 and checked.json["releases"] == ["release 1", "release 2"]


@pytest.mark.slow
def test_rows_that_join_a_group_have_waited_in_decomposition_plus_alone(census):
    policy, text = census.policy, census.policy.read_text()
    for name, words in (
        ("decomposition_plus", "put into a group after waiting too long"),
        ("decomposition", "left over, put into a group"),
    ):
        document = yaml.safe_load(text)
        document |= {"target": {"prefix": name}, "algorithm": {"name": name, "primary": "disease"}}
        document["over_time"] = "independent"
        policy.write_text(yaml.safe_dump(document))
        called = census.call("run", census.database, policy)
        assert called.code == 0 and words in called.out
        assert ("waiting too long" in called.out) == (name == "decomposition_plus")


def test_a_series_that_was_tampered_with_fails_its_check(series):
    series.sql("UPDATE published.census_1_sa SET disease = 'd0' WHERE group_id = 1")
    called = series.call("release", "check", series.database, "published.census")
    assert called.code == 1 and "NO" in called.out and "4 keys, up to 1.000" in called.out


def test_a_series_made_before_groups_came_from_coins_is_warned_of(series):
    assert "order of the quasi" not in series.call("release", "list", series.database).out
    series.sql("UPDATE ldiv.release SET grouped_by = NULL")
    said = "groups were formed in the order of the quasi-identifiers, which may reveal nearly everybody's value"
    words = [series.database, "published.census"]
    checked = series.call("release", "check", *words)
    assert checked.code == 1 and said in " ".join(checked.out.split()) and "withdraw what was published" in checked.out
    found = series.call("release", "check", *words, "--json")
    assert (found.code, found.json["holds"], found.json["ordered"]) == (1, False, ["release 1"])
    for command in (["list", series.database], ["show", *words]):
        assert said in " ".join(series.call("release", *command).out.split())
    (listed,) = series.call("release", "list", series.database, "--json").json["releases"]
    shown = series.call("release", "show", *words, "--json").json
    assert said in listed["warning"] and shown["warning"] == listed["warning"]
    assert said in series.fails(2, "run", series.database, series.policy)


@pytest.mark.slow
def test_combinations_that_tell_pairings_are_named(census):
    document = yaml.safe_load(census.policy.read_text())
    for option, words in (("checked", "there is no table of combinations: it would reveal"),
                          ("first", "the table of combinations reveals")):  # fmt: skip
        document["algorithm"]["combinations"] = option
        census.policy.write_text(yaml.safe_dump(document | {"target": {"prefix": option}, "over_time": "independent"}))
        called = census.call("run", census.database, census.policy)
        assert called.code == 0 and words in " ".join(called.out.split())
        assert (f"{option}_1_marginals" in called.out) == (option == "first")
        checked = census.call("release", "check", census.database, option)
        assert checked.code == 0 and ("as the policy allows" in " ".join(checked.out.split())) == (option == "first")


def test_any_tables_with_a_key_are_checked(bed):
    bed.sql("CREATE TABLE jan AS SELECT i AS id, i // 2 AS g, 'v' || i % 4 AS disease FROM range(8) t(i)")
    bed.sql("CREATE TABLE feb AS SELECT i AS id, i % 4 AS g, 'v' || i % 4 AS disease FROM range(8) t(i)")
    words = ["--table", "jan", "--key", "id", "--group", "g", "--sensitive", "disease:2"]
    alone = bed.call("release", "check", bed.database, *words)
    assert alone.code == 0 and "group after group" not in alone.out
    assert (
        "all of its keys together; several groups at once may"
        in bed.call("release", "check", bed.database, *words, "--table", "feb").out
    )
    called = bed.call("release", "check", bed.database, *words, "--table", "feb", "--json")
    assert called.code == 1
    assert (called.json["keys_exposed"], called.json["attributes"]["disease"]["best"]) == (8, 1.0)
    bed.sql("INSERT INTO jan VALUES (7, 0, 'v0')")
    assert "1 key is in several groups of one release" in bed.fails(1, "release", "check", bed.database, *words)
    bed.sql("DELETE FROM jan WHERE g = 0 AND id = 7")
    assert {tuple(channel["releases"]) for channel in called.json["channels"]} == {("feb",), ("jan", "feb")}


PEOPLE = ["check", "--table", "patients", "--key"]
REFUSED = [
    ("group key sensitive table", ["check"]),
    ("table", ["check", "main.x", "--table", "patients"]),
    ("count", ["check", "main.x", "--count", "n"]),
    ("series", ["check", "published.nothing"]),
    ("table", [*PEOPLE, "x", "--group", "age", "--sensitive", "disease:2"]),
    ("table", ["check", "--table", "patient", "--key", "x", "--group", "age", "--sensitive", "disease:2"]),
    ("sensitive", [*PEOPLE, "name", "--group", "age", "--sensitive", "x"]),
    ("series", ["show", "published.nothing"]),
    ("release", ["diff", "published.nothing", 2, 1]),
]


def test_wrong_questions_are_refused_by_their_codes(bed):
    told = [
        (" ".join(sorted(codes_told(bed.fails(2, "release", verb, bed.database, *words)))), [verb, *words])
        for _, (verb, *words) in REFUSED
    ]
    assert told == REFUSED


def test_releases_of_a_database_without_any(bed):
    assert bed.call("release", "list", bed.database, "--json").json == {"releases": []}


# -- bsgi, files, and the catalog in a file --------------------------------------------------------------

SERIES = "out.duckdb:wards"


@pytest.fixture
def classes(census):
    """The same table, published as classes to a file."""
    document = {
        "source": "main.census",
        "target": {"file": "out.duckdb", "prefix": "wards"},
        "key": "id",
        "quasi_identifiers": {"age": {"numeric": True}},
        "keep": ["ward"],
        "sensitive": ["disease"],
        "identifiers": ["job"],
        "require": [{"unique_distinct": 4}],
    }
    census.policy.write_text(yaml.safe_dump(document))
    return census


def read(path, sql):
    with duckdb.connect(str(path), read_only=True) as con:
        return con.execute(sql).fetchall()


@pytest.mark.slow
def test_classes_go_to_a_file_and_the_catalog_to_another(classes):
    before, ours, out = classes.database.read_bytes(), classes.folder / "ours.duckdb", classes.folder / "out.duckdb"
    words = (classes.database, classes.policy, "--catalog", ours)
    first = classes.call("run", *words)
    assert first.code == 0 and "out.duckdb:wards_1" in first.out, first.err
    second = classes.call("run", *words, "--json").json
    assert (second["release"], second["groups"], second["groups_new"], second["rows_waiting"]) == (2, 5, 0, 0)
    assert read(out, "FROM wards_2") == read(out, "FROM wards_1") and len(read(out, "FROM wards_1")) == 21
    assert classes.database.read_bytes() == before
    assert {path.name for path in classes.folder.iterdir()} == {
        "hospital.duckdb", "policy.yml", "ours.duckdb", "out.duckdb"
    }  # fmt: skip
    beside = ("--catalog", ours, "--json")
    listed = classes.call("release", "list", classes.database, *beside).json["releases"]
    assert [(entry["series"], entry["status"]) for entry in listed] == [(SERIES, "published")] * 2
    assert classes.call("release", "show", classes.database, SERIES, *beside).json["release"] == 2
    assert classes.call("release", "diff", classes.database, SERIES, 1, 2, *beside).json["groups_new"] == 0
    assert classes.call("release", "check", classes.database, SERIES, *beside).json["holds"]
    with duckdb.connect(str(out)) as con:
        con.execute("UPDATE wards_1 SET disease = 'd0' WHERE class_id = 1")
    assert classes.call("release", "check", classes.database, SERIES, "--catalog", ours).code == 1
    refused, published = classes.call("run", *words), out.read_bytes()
    assert refused.code == 1 and "too much can be inferred of" in refused.err
    assert out.read_bytes() == published
    assert read(ours, "SELECT release, status FROM ldiv.release") == [(1, "published"), (2, "published")]
    out.unlink()
    assert "with the last release is gone" in classes.fails(2, "run", *words)
    assert "no file" in classes.fails(2, "release", "check", classes.database, SERIES, "--catalog", ours)


@pytest.mark.slow
def test_a_series_is_the_same_in_any_spelling(classes):
    publish = ("run", classes.database, classes.policy)
    text, out = classes.policy.read_text(), classes.folder / "out.duckdb"
    assert classes.call(*publish).code == 0
    for number, spelling in enumerate(["./out.duckdb", out, f"../{classes.folder.name}/out.duckdb"], 2):
        classes.policy.write_text(text.replace("out.duckdb", str(spelling)).replace("wards", "Main.Wards"))
        done = classes.call(*publish, "--json")
        assert (done.code, done.json["release"], done.json["series"]) == (0, number, SERIES), done.err
    for name in ("./out.duckdb:WARDS", f"{out}:main.wards"):
        assert classes.call("release", "show", classes.database, name, "--json").json["release"] == 4
        assert classes.call("release", "check", classes.database, name).code == 0
        assert len(classes.call("release", "list", classes.database, name, "--json").json["releases"]) == 4
    assert "no releases of o.duckdb:wards" in classes.fails(2, "release", "show", classes.database, "o.duckdb:wards")


def test_names_of_tables_have_no_case(series):
    series.policy.write_text(series.policy.read_text().replace("published.census", """'"PUBLISHED".Census'"""))
    done = series.run("--json")
    assert (done.code, done.json["release"], done.json["series"]) == (0, 2, "published.census"), done.err
    words = ("release", "diff", series.database, "Published.CENSUS", 1, 2, "--json")
    assert series.call(*words).json["rows_first_waiting"] == 0
    assert series.call("release", "check", series.database, "PUBLISHED.census").code == 0


def test_a_file_that_no_release_made_is_refused(classes):
    classes.write("out.duckdb", "")
    assert "no release made it" in classes.fails(2, "run", classes.database, classes.policy)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills processes")
def test_a_release_to_a_file_killed_at_any_step_is_finished_or_rolled_back_by_the_next_command(classes):
    files = [path for path in classes.folder.iterdir() if path.is_file()]
    moments = {"folder": "started", "write": "started", "record": "started", "move": "written", "settle": "written"}
    wanted = [(1, "start"), (1, "folder"), (1, "write"), (1, "move"), (2, "start"), (2, "record"), (2, "settle")]
    beds = {(number, moment): classes.folder / f"{number}_{moment}" for number, moment in wanted}
    for (number, _), folder in beds.items():
        if number == 2 and not (classes.folder / "out.duckdb").exists():
            assert classes.call("run", classes.database, classes.policy).code == 0
            files.append(classes.folder / "out.duckdb")
        folder.mkdir()
        for path in files:
            shutil.copy(path, folder)
    script = Path(__file__).parents[1] / "publishing" / "killed.py"
    words = [f"{folder}:{moment}" for (_, moment), folder in beds.items()]
    done = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (number, moment), folder in beds.items():
        database = folder / "hospital.duckdb"
        published = number if moment == "settle" else number - 1
        if moment == "start":  # nobody would know of a folder
            assert not [path for path in folder.iterdir() if path.name.startswith(".")]
        else:
            assert read(database, "SELECT status FROM ldiv.release ORDER BY release")[-1] == (moments[moment],)
        if moment in ("write", "settle"):  # the next command is another one, or a release
            listed = classes.call("release", "list", database, "--json").json["releases"]
            assert [entry["status"] for entry in listed] == ["published"] * published
        called = classes.call("run", database, folder / "policy.yml", "--json")
        assert called.code == 0, called.err
        assert (called.json["release"], called.json["groups"]) == (published + 1, 5)
        kept = read(database, "SELECT count(*), count(DISTINCT key_hash) FROM ldiv.release_member")
        assert kept == [(21, 21)]
        assert len(read(folder / "out.duckdb", "FROM duckdb_tables()")) == published + 1
        assert {path.name for path in folder.iterdir()} == {path.name for path in files} | {"out.duckdb"}


def test_runs_says_that_there_are_releases(series):
    told = series.call("runs", series.database)
    assert told.code == 0 and "1 release of a series: `ldiv release list" in told.out and "no runs" not in told.out
    assert series.call("runs", series.database, "--json").json["releases"] == 1
