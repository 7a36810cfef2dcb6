"""The commands and a policy of several tables: those that take it, and those that refuse it with a way out."""

from __future__ import annotations

import json
import random
from typing import Any

import duckdb
import pytest
import yaml
from refusals import codes_told

import ldiv_db
from ldiv_db import PolicyError
from tests.running.schemas import drawn, fill, policy_of

NAMES = ("patients", "stays", "labs")


@pytest.fixture
def clinic(bed: Any) -> Any:
    bed.sql("DROP TABLE patients")
    with duckdb.connect(str(bed.database)) as con:
        fill(con, NAMES, drawn(random.Random(4), NAMES, 24, values="abcdefghij"))
    bed.policy.write_text(yaml.safe_dump(policy_of(NAMES, require=[{"k": 2}]), sort_keys=False))
    return bed


def test_plan_tells_of_every_table_and_writes_nothing(clinic: Any) -> None:
    before = clinic.files()
    called = clinic.call("plan", clinic.database, clinic.policy)
    assert called.code == 0, called.err
    assert "nothing was written" in called.out and "publish their rows in" in called.out
    plan = json.loads(clinic.call("plan", clinic.database, clinic.policy, "--json").out)
    assert clinic.files() == before
    assert plan["people"] == 24 and [one["table"] for one in plan["tables"]] == list(NAMES)
    assert plan["rows_in"] == sum(one["rows_in"] for one in plan["tables"])
    run = json.loads(clinic.run("--json").out)
    assert run["classes_made"] <= plan["classes_made"] and run["rows_suppressed"] == plan["rows_suppressed"]
    assert [one["rows_published"] for one in run["tables"]] == [one["rows_published"] for one in plan["tables"]]


def test_run_and_check_tell_of_every_table(clinic: Any) -> None:
    ran = clinic.run()
    assert ran.code == 0 and "lost per cell" in ran.out and "audit of stays.value" in ran.out, ran.err
    (listed,) = json.loads(clinic.call("runs", clinic.database, "--json").out)["runs"]
    assert listed["source"] == "patients & stays & labs"
    called = clinic.call("check", clinic.database, "--policy", clinic.policy)
    assert called.code == 0 and "audit of stays.value" in called.out, called.err
    words = ("check", clinic.database, "--policy", clinic.policy, "--require", "frequency:40", "--violations", "--json")
    called = clinic.call(*words, "--labels")
    found = json.loads(called.out)
    assert called.code == 1 and found["holds"] is False
    assert found["table"] == "published.patients, published.stays, published.labs"
    assert {one["sensitive"] for one in found["violations"]} >= {"stays.value", None}
    clinic.sql("UPDATE published.stays SET who = NULL WHERE who = (SELECT min(who) FROM published.stays)")
    assert "of stays belong to nobody" in clinic.fails(1, "check", clinic.database, "--policy", clinic.policy)


@pytest.mark.slow
def test_explore_attack_measure_and_report_read_all_tables_of_the_policy(clinic: Any) -> None:
    assert clinic.run().code == 0
    explored = json.loads(clinic.call("explore", clinic.database, clinic.policy, "--k", "2,3", "--json").out)
    assert [variant["status"] for variant in explored["variants"]] == ["done", "done"], explored
    attacked = json.loads(clinic.call("attack", clinic.database, "--policy", clinic.policy, "--json").out)
    measured = clinic.call("measure", clinic.database, "--policy", clinic.policy)
    assert measured.code == 0 and "patients with stays: a count over two columns" in measured.out, measured.err
    assert "all tables" in {one["knows"] for one in attacked["attacks"]} and attacked["holds"]
    pages = [clinic.folder / name for name in ("r.html", "r.json")]
    reported = clinic.call("report", clinic.database, "--policy", clinic.policy, "--out", pages[0], "--out", pages[1])
    assert reported.code == 0 and "meets its requirements" in reported.out and pages[0].exists(), reported.err
    words = ("report", clinic.database, "--policy", clinic.policy, "--verify", pages[1])
    assert "the report is of the policy's tables" in clinic.call(*words).out


OF_ONE_TABLE = [
    ("rehearse", ("plan", "POLICY", "--sql")),
    ("vary", ("explore", "POLICY", "--vary", "columns")),
    ("by", ("explore", "POLICY", "--by", "utility")),
    ("table", ("check", "published.stays", "--policy", "POLICY")),
    ("qi", ("check", "--policy", "POLICY", "--qi", "age")),
    ("published", ("measure", "published.stays", "--policy", "POLICY")),
    ("table", ("attack", "published.stays", "--policy", "POLICY")),
    ("known", ("attack", "--policy", "POLICY", "--known", "patients")),
    ("table", ("report", "published.stays", "--policy", "POLICY", "--out", "report.html")),
    ("kl", ("run", "POLICY", "--kl")),
    ("bound", ("run", "POLICY", "--bound")),
    ("bound", ("plan", "POLICY", "--bound")),
]


def test_other_commands_refuse_it_by_name(clinic: Any) -> None:
    told = []
    for _, asked in OF_ONE_TABLE:
        command, *rest = (clinic.policy if word == "POLICY" else word for word in asked)
        told.append((" ".join(codes_told(clinic.fails(2, command, clinic.database, *rest))), asked))
    assert told == OF_ONE_TABLE


def test_statements_for_other_databases_are_of_one_table(clinic: Any) -> None:
    for words in (("check", "t", "--policy"), ("counts",), ("contract",)):
        assert clinic.fails(2, "sql", *words, clinic.policy).startswith("error: tables: several tables are one release")


def test_frames_are_sources_of_a_database_that_stays() -> None:
    con = duckdb.connect()
    fill(con, NAMES, drawn(random.Random(4), NAMES, 24, values="abcdefghij"))
    frames = {name: con.sql(f"SELECT * FROM {name}").df() for name in NAMES}
    policy = policy_of(NAMES, require=[{"k": 2}])
    with pytest.raises(PolicyError, match="tables: are written into one database"):
        ldiv_db.run(frames, policy)
    for name, frame in frames.items():
        policy["tables"][name]["source"] = frame
    con.execute("DROP TABLE patients; DROP TABLE stays; DROP TABLE labs")
    assert {one.name for one in ldiv_db.run(con, policy).tables} == set(NAMES)
