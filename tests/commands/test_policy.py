"""`ldiv policy`: a policy checked without a database, in the words of a run, and the schema that editors take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ldiv_db.commands.policy import problems_in
from tests.beds import Bed
from tests.docs.reference import FOLDER

jsonschema = pytest.importorskip("jsonschema")
AGE = {"age": {"numeric": True}}


def problems(bed: Bed, *words: Any) -> list[dict[str, str]]:
    ends = bed.call(*words, "--json")
    assert ends.code == 2
    return list(json.loads(ends.out)["error"]["problems"])


@pytest.mark.parametrize(
    "changes",
    [
        {"sorce": "t", "require": [{"distict": 3}, {"k": 0}], "suppression": 2},
        {"algorithm": "bsgy"},
        {"algorithm": {"name": "bsgi", "select": "best", "exchang": 1}},
        {"quasi_identifiers": AGE | {"country": {"taxonomy": {"file": "none.csv"}}}},
        {"quasi_identifiers": AGE | {"country": {"taxonomy": {"file": "ragged.csv"}}}, "keep": ["ward", "age"]},
        {"key": "name", "identifiers": [], "algorithm": "cuts"},
        {"transparent": True, "weight": "age", "quasi_identifiers": {"country": {}}},
    ],
)
def test_what_is_wrong_is_said_as_a_plan_says_it(bed: Bed, changes: dict[str, Any]) -> None:
    bed.write("ragged.csv", "Norway;Europe;*\nItaly;*\nJapan;Asia;Far;*\nKorea;*\n")
    bed.write_policy(**changes)
    told = problems(bed, "policy", "check", bed.policy)
    assert told and told == problems(bed, "plan", bed.database, bed.policy)


def test_each_table_of_several_is_named(bed: Bed) -> None:
    a = {
        "source": "patients",
        "target": "p.a",
        "person": "name",
        "quasi_identifiers": {"age": {"taxonomy": {"file": "x"}}},
    }
    bed.write_policy(
        **dict.fromkeys(("source", "target", "identifiers", "quasi_identifiers", "sensitive", "keep")),
        tables={"a": a},
        individual="name",
        require=[{"k": 2}],
    )
    told = problems(bed, "policy", "check", bed.policy)
    assert [problem["key"] for problem in told] == ["tables.a.quasi_identifiers.age.taxonomy"]


def test_a_good_policy_is_good_whatever_the_database_is(bed: Bed) -> None:
    ends = bed.call("policy", "check", bed.policy)
    assert ends.code == 0 and ends.out == f"{bed.policy}: good as it is written\n"
    assert json.loads(bed.call("policy", "check", bed.policy, "--json").out)["policies"] == [str(bed.policy)]


def test_problems_of_several_files_name_theirs(bed: Bed) -> None:
    other = bed.write("other.yml", "source: t\n")
    told = bed.fails(2, "policy", "check", bed.policy, other, "none.yml")
    assert f"error: {other}: quasi_identifiers: is required\n" in told
    assert "error: none.yml: policy: cannot read none.yml" in told and f"{bed.policy}: " not in told


def test_the_schema_is_printed_and_takes_what_profile_writes(bed: Bed, tmp_path: Path) -> None:
    text = bed.call("policy", "schema").out
    assert text == (FOLDER / "policy.schema.json").read_text(encoding="utf-8")
    (bed.folder / "country.csv").unlink()  # profile writes its own
    written = tmp_path / "new.yml"
    assert bed.call("profile", bed.database, "patients", "--sensitive", "disease", "--policy", written).code == 0
    assert problems_in(written) == []
    first = written.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=policy.schema.json ")
