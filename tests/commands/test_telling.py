"""What commands tell programs: JSON by the published schema, and a log of lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ldiv_db.commands import cli, telling
from tests.beds import Bed
from tests.docs import output_schema
from tests.docs.reference import FOLDER

jsonschema = pytest.importorskip("jsonschema")


def test_every_command_has_its_place_in_the_schema_and_all_places_are_of_commands() -> None:
    leaves = []
    for name in cli.COMMANDS:
        found = cli.command_of(name)
        inner = [f"{name} {inner}" for inner in found.commands] if hasattr(found, "commands") else []
        leaves += inner or [name] * any(option.name == "json" for option in found.params)
    assert sorted(leaves) == sorted([*output_schema.COMMANDS, "policy schema"])  # which is a schema itself


def test_a_command_prints_the_schema(bed: Bed) -> None:
    text = bed.call("--json-schema").out
    assert text == (FOLDER / "output.schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_results_and_errors_say_the_version_of_their_form_first(bed: Bed) -> None:
    done = json.loads(bed.run("--json").out)
    assert next(iter(done.items())) == ("schema_version", telling.SCHEMA_VERSION)
    failed = bed.call("run", bed.database, "none.yml", "--json")
    assert list(json.loads(failed.out)) == ["schema_version", "error"] and failed.code == 2
    output_schema.validators()["run"].validate(done)
    with pytest.raises(jsonschema.ValidationError):
        output_schema.validators()["run"].validate(done | {"another": 1})
    with pytest.raises(jsonschema.ValidationError):
        output_schema.validators()["run"].validate({key: done[key] for key in done if key != "rows_in"})


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_log_has_a_line_an_event_and_nothing_else_goes_to_stderr(bed: Bed) -> None:
    quiet = bed.call("--log", "json", "plan", bed.database, bed.policy, "--quiet")
    assert [line["event"] for line in lines(quiet.err)] == ["start", "end"]
    done = bed.call("--log", "json", "run", bed.database, bed.policy, "--json")
    told = lines(done.err)
    assert {line["command"] for line in told} == {"run"} and all(line["at"].endswith("+00:00") for line in told)
    assert [line["event"] for line in told if line["event"] != "progress"] == [
        "start",
        *["stage"] * sum(line["event"] == "stage" for line in told),
        "end",
    ]
    assert (told[-1]["exit_code"], told[-1]["run_id"], told[-1]["rows_published"]) == (0, done.json["run_id"], 24)


def test_a_log_has_failures_in_place_of_their_lines(bed: Bed) -> None:
    bed.write_policy(require=[{"distinct": 5}])
    failed = bed.call("--log", "json", "run", bed.database, bed.policy, "--json")
    *_, error, end = lines(failed.err)
    assert (failed.code, end["exit_code"], end["event"]) == (1, 1, "end")
    assert {key: error[key] for key in ("kind", "problems", "remedies")} == failed.json["error"]
    assert error["kind"] == "infeasible" and not any(name in failed.err for name in ("Flu", "Cancer", "P1"))
    usage = bed.call("--log", "json", "run", bed.database, bed.policy, "--no-such")
    assert usage.code == 2 and [line["event"] for line in lines(usage.err)] == ["start", "error", "end"]
    missing = bed.call("--log", "json", "check", bed.database, "patients", "--qi", "age", "--require", "k:30")
    assert (missing.code, lines(missing.err)[-1]["holds"]) == (1, False)


def test_a_log_takes_no_values(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDIV_LOG", "json")
    refused = bed.run("--show-values", "--json")
    assert refused.code == 2 and "no values" in refused.json["error"]["problems"][0]["what"]
    assert [line["event"] for line in lines(refused.err)] == ["start", "error", "end"]


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "rows"), [("recoding/input/encode_rows", 3_000_000), ("recoding/publish/recode_rows", 60_000)]
)
def test_sigterm_ends_a_run_with_json_and_leaves_nothing(bed: Bed, moment: str, rows: int) -> None:
    bed.sql(
        "CREATE VIEW endless AS SELECT 'P' || i AS name, i % 60 AS age, 'Norway' AS country, 'D' || i % 97 AS disease,"
        f" md5(md5(i::VARCHAR)) AS ward FROM range({rows}) AS r(i)"
    )
    bed.write_policy(source="endless")
    before = bed.files()
    script = str(Path(__file__).with_name("interrupted.py"))
    words = ["--log", "json", "run", str(bed.database), str(bed.policy), "--json"]
    done = subprocess.run(
        [sys.executable, script, moment, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "LDIV_TEST_SIGNAL": str(int(signal.SIGTERM))},
    )
    assert done.returncode == 143, done.stderr
    assert json.loads(done.stdout)["error"]["kind"] == "terminated"
    output_schema.refuse_unknown(words, done.stdout)
    *_, error, end = lines(done.stderr)
    assert (error["kind"], end["exit_code"]) == ("terminated", 143) and bed.files() == before


@pytest.mark.slow
def test_every_command_prints_what_the_schema_says(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bed.folder)
    where, seen = bed.database, set()

    def call(*words: Any, code: int = 0) -> Any:
        done = bed.call(*words, "--json")
        assert done.code == code, done
        seen.add(output_schema.command_of([str(word) for word in words]))
        return done.json

    judged = ("--qi", "age,country", "--sensitive", "disease", "--require", "distinct:2")
    call("dbt", "path")
    call("demo")
    call("migrate", where)
    call("taxonomy", "import", where, "country", bed.folder / "country.csv")
    call("taxonomy", "build", where, "age", "--ranges", "5,10", "--from", 0, "--to", 99)
    call("taxonomy", "new", where, "patients", "country", "--file", bed.folder / "drawn.csv")
    call("taxonomy", "show", where, "country", "--table", "patients", "--column", "country")
    call("taxonomy", "list", where)
    call("taxonomy", "check", where, "age", "--table", "patients", "--column", "ward", "--show-values", code=2)
    call("taxonomy", "check", where, "country", "--table", "patients", "--column", "ward", "--show-values", code=1)
    call("profile", where, "patients", "--sensitive", "disease", "--population-size", 1_000)
    call("plan", where, bed.policy, "--sql")
    call("explore", where, bed.policy, "--l", "2..4", "--algorithm", "bsgi")
    run = call("run", where, bed.policy, "--show-seed")
    call("check", where, "published.patients", *judged, "--violations", "--labels", "--twice")
    call("check", where, "patients", *judged, "--violations", "--labels", "--show-values", code=1)
    call("attack", where, "published.patients", "--policy", bed.policy, "--show-values", "--known", "patients")
    call("measure", where, "published.patients", "--policy", bed.policy, "--queries", 10, "--kl")
    report = bed.folder / "r.json"
    call("report", where, "published.patients", "--policy", bed.policy, "--out", report)
    call("report", where, "published.patients", "--policy", bed.policy, "--public")
    verified = call("report", where, "published.patients", "--policy", bed.policy, "--verify", report)
    printed = bed.call("report", where, "published.patients", "--policy", bed.policy, "--json").out
    report.write_text(printed)
    assert call("report", where, "published.patients", "--policy", bed.policy, "--verify", report) == verified
    assert verified["holds"] and verified["differences"] == []
    call("ask", where, "published.patients", "SELECT count(*) FROM t", "--policy", bed.policy)
    call("sql", "ask", where, "published.patients", "SELECT count(*) FROM t", "--policy", bed.policy)
    call("sql", "expand", where, "published.patients", "--policy", bed.policy, "--columns", "country")
    call("sql", "check", "published.patients", *judged)
    call("sql", "counts", bed.policy)
    call("sql", "contract", bed.policy)
    bed.write_policy(
        algorithm="incognito",
        target="published.coarse",
        identifiers=["name", "age"],
        quasi_identifiers={"country": {"taxonomy": {"file": "country.csv"}}},
        require=[{"distinct": 2}],
    )
    coarse = call("run", where, bed.policy)["run_id"]
    call("sql", "recode", where, coarse)
    call("runs", where, "--show-seed")
    call("runs", "withdraw", where, run["run_id"])
    series = {"key": "name", "identifiers": None, "keep": ["ward"], "target": {"prefix": "published.series"}}
    grouped = {"name": "decomposition_plus", "primary": "disease", "starvation": 2}
    limited = {
        "require": None,
        "algorithm": grouped,
        "sensitive": {"disease": {"l": 2}, "ward": {"l": 2}},
        "keep": None,
    }
    decomposed = {"quasi_identifiers": ["age", "country"], "target": {"prefix": "published.groups"}} | limited
    for name, changes in (("first", {}), ("second", decomposed)):  # no source is published in two ways
        bed.sql(f"CREATE TABLE {name} AS FROM patients")
        bed.write_policy(**series | changes | {"source": f"main.{name}"})
        call("plan", where, bed.policy)
        call("run", where, bed.policy)
        call("run", where, bed.policy, "--show-seed")
    call("doctor", where)
    call("policy", "check", bed.policy)
    call("release", "list", where)
    call("release", "show", where, "published.series")
    call("release", "diff", where, "published.series", 1, 2)
    call("release", "check", where, "published.series")
    assert seen == set(output_schema.COMMANDS)


def test_the_exit_code_1_is_explained_for_commands_that_there_are() -> None:
    page = (FOLDER / "result.md").read_text(encoding="utf-8")
    said = page.split("\n- 1: ")[1].split("\n- ")[0]
    named = {command for command in output_schema.COMMANDS if f"`{command}`" in said.replace("\n  ", " ")}
    assert said.count("`") == 2 * len(named)
    fails = {"run", "demo", "plan", "profile", "explore", "check", "report", "attack", "release check", "doctor"}
    assert named == fails | {"taxonomy check"}
