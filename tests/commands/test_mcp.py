"""`ldiv mcp`, asked by the client of the official SDK: what it tells, and what it never tells."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from beds import DISEASES, PATIENTS
from strategies import some

from tests.running.schemas import drawn, fill, policy_of

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

FEW = ("--queries", "5", "--tries", "10")
TOOLS = ["ask", "attack", "check", "explain", "measure", "plan", "profile"]
#: The arguments of tools: of all but this one none.
QUERY = {"ask": {"query": "SELECT disease, count(*) FROM t WHERE age < 40 GROUP BY ALL"}}


def asked(bed: Any, *words: Any, tools: Any = (), between: Any = lambda: None) -> dict[str, Any]:
    """What the tools answer to a client of a server that is a process of its own, and `tools`, those that it lists."""
    line = ["-m", "ldiv_db", "mcp", bed.database, bed.policy, *FEW, *words]
    server = mcp.StdioServerParameters(command=sys.executable, args=[str(word) for word in line])

    async def ask() -> dict[str, Any]:
        found: dict[str, Any] = {}
        async with mcp.Client(mcp.stdio_client(server)) as client:
            listed = (await client.list_tools()).tools
            found["tools"] = sorted(tool.name for tool in listed)
            assert all(tool.annotations.read_only_hint for tool in listed)
            taken = {tool.name: [*tool.input_schema.get("properties", {})] for tool in listed}
            assert {name: keys for name, keys in taken.items() if keys} == {"ask": ["query"]}
            for tool in tools or found["tools"]:
                answer = await client.call_tool(tool, QUERY.get(tool, {}))
                text = "".join(part.text for part in answer.content)
                found[tool] = text if answer.is_error else answer.structured_content
                between()
        return found

    return anyio.run(ask)


@pytest.fixture
def released(released: Any) -> Any:
    released.write_policy(target={"table": "published.patients", "if_exists": "replace"})
    return released


def report_on(bed: Any, *words: Any) -> Any:
    return bed.call("report", bed.database, "published.patients", "--policy", bed.policy, "--json", *FEW, *words).json


def test_all_tools_together_tell_what_one_report_does(released: Any) -> None:
    """No value of the source is among it; the database is read while somebody else reads it too."""
    before, document = released.files(), report_on(released)
    with duckdb.connect(str(released.database), read_only=True):  # keeps out who would write
        found = asked(released)
    assert found["tools"] == TOOLS and released.files() == before
    source = document["source"]
    assert found["profile"] == {key: source[key] for key in ("uniqueness", "risk_before", "kept")}
    assert found["measure"] == {"utility": source["utility"]}
    told = found["check"] | found["attack"]
    assert told == {key: document[key] for key in told} and told["statement"]["holds"] is True
    assert {"audit", "attacks", "verdicts", "not_tried"} <= set(told)
    plan, explained = found["plan"], found["explain"]
    assert (plan["rows_in"], plan["rows_suppressed"]) == (len(PATIENTS), source["utility"]["rows_suppressed"])
    assert explained["policy"] == document["policy"] and explained["residual"] == document["residual"]
    assert explained["protects_if_its_audit_holds"] == document["algorithm"]["protection"]
    assert found["ask"]["left_out"] == 0 and {one["by"]["disease"] for one in found.pop("ask")["groups"]} <= {*DISEASES}
    secrets = [*DISEASES, *(row[0] for row in PATIENTS), *(row[2] for row in PATIENTS)]
    assert [word for word in secrets if re.search(rf"\b{word}\b", json.dumps(found))] == []


def test_public_answers_need_no_source(released: Any) -> None:
    """They are those of a report on a release whose source was still there."""
    document = report_on(released, "--public")
    released.sql("DROP TABLE patients")
    found = asked(released, "--public")
    assert found["tools"] == ["ask", "attack", "check", "explain"]
    assert found["ask"]["left_out"] == 0 and "under the policy" in found["ask"]["notes"][0] and found["ask"]["groups"]
    told = found["check"] | found["attack"]
    assert told == {key: document[key] for key in told} and "source" not in found["explain"]["policy"]


def test_changes_between_two_questions_are_not_told(released: Any) -> None:
    """Else their difference would be of the one row that came in between."""

    def add() -> None:
        released.sql("INSERT INTO patients VALUES ('P99', 3, 'Japan', 'Flu', 'W0')")

    found = asked(released, tools=["profile", "plan", "measure"], between=add)
    rows = [found["profile"]["uniqueness"]["rows"], found["plan"]["rows_in"], found["measure"]["utility"]["rows_in"]]
    assert rows == [len(PATIENTS)] * 3
    assert released.sql("SELECT count(*) FROM patients") == [(len(PATIENTS) + 3,)]


@pytest.mark.parametrize("changes", some([{"target": {"file": "out.parquet"}}, {}]))
def test_a_release_that_is_there_does_not_stand_in_the_way_of_its_plan(bed: Any, changes: dict[str, Any]) -> None:
    bed.write_policy(**changes)
    assert bed.run("--json").code == 0
    assert asked(bed, tools=["plan"])["plan"]["rows_in"] == len(PATIENTS)


def test_several_tables_are_told_of_as_a_report_tells(bed: Any) -> None:
    names = ("patients", "stays")
    bed.sql("DROP TABLE patients")
    with duckdb.connect(str(bed.database)) as con:
        fill(con, names, drawn(random.Random(4), names, 30, values="abcdefghij"))
    bed.policy.write_text(json.dumps(policy_of(names, require=[{"k": 2}])))
    assert bed.run("--json").code == 0
    found = asked(bed, tools=["check", "profile"])
    assert found["check"]["statement"]["table"] == "published.patients, published.stays"
    assert found["check"]["statement"]["holds"] is True and "several tables are one release" in found["profile"]


def test_before_a_release_there_is_what_the_source_tells(bed: Any) -> None:
    found = asked(bed)
    assert found["profile"]["uniqueness"]["rows"] == found["plan"]["rows_in"] == len(PATIENTS)
    assert all("published.patients" in found[tool] for tool in ("check", "measure", "attack"))
    bed.write_policy(require=[{"distinct": 40}])
    assert "distinct" in asked(bed, tools=["plan"])["plan"]


def test_what_fails_once_is_tried_again(released: Any) -> None:
    hidden = Path(f"{released.database}.away")
    released.database.rename(hidden)

    def back() -> None:
        if hidden.exists():
            hidden.rename(released.database)

    found = asked(released, tools=["plan", "check"], between=back)
    assert "no database file" in found["plan"] and found["check"]["statement"]["holds"] is True
