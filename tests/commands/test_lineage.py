"""OpenLineage events of runs: what they say, and what they keep to themselves."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ldiv_db.commands.lineage import is_wanted, namespace_of
from ldiv_db.policy.reading import read_policy
from ldiv_db.reporting.request import policy_hash, written_policy
from tests.beds import Bed

pytest.importorskip("openlineage.client")


@pytest.fixture
def events(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where events go: a file, a line each."""
    place = bed.folder.parent / f"events-{uuid.uuid4().hex}.jsonl"
    transport = {"type": "file", "log_file_path": str(place), "append": True}
    config = bed.folder.parent / f"openlineage-{uuid.uuid4().hex}.yml"
    config.write_text(json.dumps({"transport": transport}))
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    return place


def sent(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []


def test_a_run_that_publishes_sends_start_and_complete(bed: Bed, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = str(uuid.uuid4())
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "nightly")
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/dag.task/{parent}")
    done = bed.run("--json").json
    start, complete = sent(events)
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["run"]["facets"]["parent"]["run"]["runId"] == parent
    assert start["run"]["facets"]["parent"]["job"]["name"] == "dag.task"
    assert (start["job"]["namespace"], start["job"]["name"]) == ("nightly", "ldiv.run.published.patients")
    (source,), (target,) = complete["inputs"], complete["outputs"]
    assert (source["namespace"], source["name"]) == (f"duckdb://{bed.database.resolve()}", "main.patients")
    assert (target["name"], target["outputFacets"]["outputStatistics"]["rowCount"]) == ("published.patients", 24)
    privacy = complete["run"]["facets"]["ldiv_privacy"]
    assert privacy["policySha256"] == policy_hash(written_policy(read_policy(bed.policy)))
    assert privacy["requirements"] == [{"name": "unique_distinct", "sensitive": []}]
    assert (privacy["runId"], privacy["algorithm"]) == (done["run_id"], "bsgi")
    (reached,), (judged,) = privacy["reached"], done["requirements"]
    assert (reached["holds"], reached["sensitive"], reached["worst"]) == (True, "disease", judged["worst"])
    assert "reached" not in start["run"]["facets"]["ldiv_privacy"]


def test_the_hash_of_a_policy_is_of_no_seed(bed: Bed) -> None:
    hashes = set()
    for seed in (1, 2):
        bed.write_policy(seed=seed)
        hashes.add(policy_hash(written_policy(read_policy(bed.policy))))
    assert len(hashes) == 1


def test_events_hold_no_values_messages_or_seeds(bed: Bed, events: Path) -> None:
    bed.write_policy(seed=987654321, require=[{"threshold": {"default": 0.5, "Cancer": 0.1}}])
    assert bed.run().code == 1
    bed.write_policy(seed=987654321, sorce="x")
    assert bed.run().code == 2
    bed.write_policy(seed=987654321, require=[{"threshold": {"default": 0.5, "Cancer": 0.4}}])
    assert bed.run().code == 0
    assert bed.run().code == 2  # the target is there
    told = sent(events)
    states = [event["eventType"] for event in told]
    assert states == ["START", "FAIL", "START", "FAIL", "START", "COMPLETE", "START", "FAIL"]
    failed = [event["run"]["facets"]["errorMessage"]["message"] for event in told if event["eventType"] == "FAIL"]
    assert failed[0] == "infeasible" and all(text.startswith("policy: ") for text in failed[1:])
    text = events.read_text()
    hidden = ("Cancer", "Flu", "Norway", "987654321", hashlib.sha256(b"987654321").hexdigest(), "P1")
    assert not [word for word in hidden if word in text]


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a server that refuses whatever it is sent."""

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(400)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://user:geheim@127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_that_refuses_is_said_once_and_ends_no_run(
    bed: Bed, refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", refusing)
    done = bed.call("--log", "json", "run", bed.database, bed.policy, "--quiet")
    told = [json.loads(line) for line in done.err.splitlines()]
    assert done.code == 0 and [line["event"] for line in told] == ["start", "note", "end"]
    assert "no OpenLineage event was sent" in told[1]["text"] and "geheim" not in done.err + done.out


def test_events_are_wanted_where_a_variable_says_where_they_go() -> None:
    assert is_wanted({"OPENLINEAGE_URL": "http://x"}) and is_wanted({"OPENLINEAGE__TRANSPORT__TYPE": "file"})
    assert not is_wanted({"OPENLINEAGE_NAMESPACE": "x", "PATH": "y"}) and not is_wanted({"OPENLINEAGE_URL": ""})
    assert not is_wanted({"OPENLINEAGE_URL": "http://x", "OPENLINEAGE_DISABLED": "true"})


@pytest.mark.parametrize(
    ("database", "namespace"),
    [
        (":memory:", "duckdb"),
        ("postgres:host=db.example port=5433 user=me password='geheim host=x'", "postgres://db.example:5433"),
        ("postgres:password='a host=geheim' host=db.example", "postgres://db.example:5432"),
        ("postgres:password = 'a\\' host=geheim' port=1", "postgres"),
        ("postgres:password=geheim host=db.example", "postgres://db.example:5432"),
        ("postgres://me:geheim@db.example/clinic?password=geheim", "postgres://db.example:5432"),
        ("postgres:service=clinic", "postgres"),
        ("adbc:postgresql://me:geheim@db.example:6000/clinic", "postgres://db.example:6000"),
        ("adbc:flightsql:grpc://me:geheim@host", "flightsql"),
        ("md:clinic?motherduck_token=geheim", "md"),
        ("mysql:host=h password=geheim", "mysql"),
        ("snowflake:geheim", "snowflake"),
        ("spark", "spark"),
    ],
)
def test_a_namespace_is_a_kind_and_a_server_alone(database: str, namespace: str) -> None:
    assert namespace_of(database) == namespace and "geheim" not in namespace


def test_without_the_client_a_run_says_what_is_missing(bed: Bed, events: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openlineage.client", None)
    done = bed.run()
    assert done.code == 0 and "ldiv-db[openlineage]" in done.err and sent(events) == []
