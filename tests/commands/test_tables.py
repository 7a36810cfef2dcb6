"""The commands and a policy of several tables: those that take it, and those that refuse it with a way out."""

from __future__ import annotations

import json
import random
from pathlib import Path

import duckdb
import pytest
import yaml
from refusals import codes_told, refuses

import ldiv_db
from tests.beds import Bed
from tests.running.schemas import drawn, fill, policy_of

NAMES = ("patients", "stays")


@pytest.fixture(scope="module")
def first_clinic(first_bed: Path, tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """A folder with two tables and a policy of both, of which a plan was made before the run."""
    bed = Bed(tmp_path_factory.mktemp("clinic"))
    with duckdb.connect(str(bed.database)) as con:
        fill(con, NAMES, drawn(random.Random(4), NAMES, 12, values="abcdefghij"))
    bed.policy.write_text(yaml.safe_dump(policy_of(NAMES, require=[{"k": 2}]), sort_keys=False))
    before = bed.files()
    planned = bed.call("plan", bed.database, bed.policy, "--json")
    assert planned.code == 0 and bed.files() == before, planned.err
    bed.write("plan.json", planned.out)
    ran = bed.run()
    assert ran.code == 0, ran.err
    bed.write("run.txt", ran.out)
    return bed


@pytest.fixture
def clinic(first_clinic: Bed, tmp_path: Path) -> Bed:
    return first_clinic.copied(tmp_path)


def test_plan_tells_of_every_table_what_a_run_publishes(first_clinic: Bed) -> None:
    plan = json.loads((first_clinic.folder / "plan.json").read_text())
    assert plan["people"] == 12 and [one["table"] for one in plan["tables"]] == list(NAMES)
    assert plan["rows_in"] == sum(one["rows_in"] for one in plan["tables"])
    counts = [first_clinic.sql(f"SELECT count(*) FROM published.{name}") for name in NAMES]
    assert [[(one["rows_published"],)] for one in plan["tables"]] == counts
    assert sum(number for ((number,),) in counts) == plan["rows_in"] - plan["rows_suppressed"]


def test_run_and_check_tell_of_every_table(clinic: Bed) -> None:
    said = (clinic.folder / "run.txt").read_text()
    assert "lost per cell" in said and "audit of stays.value" in said
    (listed,) = json.loads(clinic.call("runs", clinic.database, "--json").out)["runs"]
    assert listed["source"] == "patients & stays"
    words = ("check", clinic.database, "--policy", clinic.policy)
    called = clinic.call(*words, "--require", "frequency:40", "--violations", "--labels", "--json")
    found = json.loads(called.out)
    assert called.code == 1 and found["holds"] is False and found["table"] == "published.patients, published.stays"
    assert {one["sensitive"] for one in found["violations"]} >= {"stays.value", None}
    assert all(one["labels"].startswith('001:/"') for one in found["violations"])  # texts, and no numbers of them
    clinic.sql("UPDATE published.stays SET who = NULL WHERE who = (SELECT min(who) FROM published.stays)")
    assert "of stays belong to nobody" in clinic.fails(1, *words)


@pytest.mark.slow
def test_explore_attack_measure_and_report_read_all_tables_of_the_policy(clinic: Bed) -> None:
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
    ("vary", ("explore", "POLICY", "--vary", "columns")),
    ("by", ("explore", "POLICY", "--by", "utility")),
    ("table", ("check", "published.stays", "--policy", "POLICY")),
    ("qi", ("check", "--policy", "POLICY", "--qi", "age")),
    ("published", ("measure", "published.stays", "--policy", "POLICY")),
    ("table", ("attack", "published.stays", "--policy", "POLICY")),
    ("known", ("attack", "--policy", "POLICY", "--known", "patients")),
    ("table", ("report", "published.stays", "--policy", "POLICY", "--out", "report.html")),
    ("bound", ("run", "POLICY", "--bound")),
    ("bound", ("plan", "POLICY", "--bound")),
]


def test_other_commands_refuse_it_by_name(clinic: Bed) -> None:
    told = []
    for _, asked in OF_ONE_TABLE:
        command, *rest = (clinic.policy if word == "POLICY" else word for word in asked)
        told.append((" ".join(codes_told(clinic.fails(2, command, clinic.database, *rest))), asked))
    assert told == OF_ONE_TABLE


def test_statements_for_other_databases_are_of_one_table(clinic: Bed) -> None:
    for words in (("check", "t", "--policy"), ("counts",), ("contract",)):
        assert clinic.fails(2, "sql", *words, clinic.policy).startswith("error: tables: several tables are one release")


def test_frames_are_several_tables_by_their_names() -> None:
    with duckdb.connect(config={"threads": 1}) as con:
        fill(con, NAMES, drawn(random.Random(2), NAMES, 8, 2))
        frames, policy = {name: con.sql(f"FROM {name}") for name in NAMES}, policy_of(NAMES)
        ldiv_db.run(con, policy)
        for table in policy["tables"].values():
            del table["source"], table["target"]
        result = ldiv_db.run(frames, policy)
        for name in NAMES:
            expected = con.execute(f"FROM published.{name} ORDER BY ALL").fetchall()
            assert result.table(name).order("ALL").fetchall() == expected
    for asked in (result.table, lambda: result.table("others")):
        with refuses("name"):
            asked()
    with refuses("tables"):
        ldiv_db.run(frames[NAMES[0]], policy)
