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

import duckdb
import pytest

from ldiv_db.commands.lineage import _named, is_wanted, namespace_of
from ldiv_db.policy.reading import read_policy
from ldiv_db.reporting.request import policy_hash, written_policy
from tests.beds import Bed
from tests.strategies import some

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
    called = bed.run("--json", "--quiet")
    done = called.json
    start, complete = sent(events)
    assert called.err == ""
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


def test_events_hold_no_address_that_a_policy_misplaces(bed: Bed, events: Path) -> None:
    bed.write_policy(target={"database": "postgres:password=geheim", "table": "release"})
    assert bed.run().code == 2
    start, failed = sent(events)
    assert (start["outputs"][0]["name"], start["job"]["name"]) == ("release", "ldiv.run.release")
    assert failed["eventType"] == "FAIL" and "geheim" not in events.read_text()


def test_a_release_in_another_database_is_told_to_be_there(bed: Bed, events: Path) -> None:
    other = bed.folder / "other.duckdb"
    duckdb.connect(str(other)).close()
    bed.write_policy(databases={"other": str(other)}, target={"database": "other", "table": "release"})
    assert bed.run().code == 0
    (target,) = sent(events)[1]["outputs"]
    assert (target["namespace"], target["name"]) == (f"duckdb://{other.resolve()}", "release")


@pytest.mark.parametrize("pseudonym", some(["who", None]))
def test_figures_on_people_are_told_if_the_release_tells_people_apart(
    bed: Bed, events: Path, pseudonym: str | None
) -> None:
    bed.write_policy(
        individual={"column": "name", "rows": "together"},
        identifiers=None,
        require=[{"distinct": 2}],
        output={"person": pseudonym} if pseudonym else None,
    )
    done = bed.run("--json")
    assert done.code == 0, done
    reached = sent(events)[1]["run"]["facets"]["ldiv_privacy"]["reached"]
    assert reached and all(one["holds"] and ("worst" in one) == bool(pseudonym) for one in reached)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("main.patients", "main.patients"),
        ("https://me:geheim@host/a.csv?token=geheim", "https://host/a.csv"),
        ("s3://bucket/a/*.parquet", "s3://bucket/a/*.parquet"),
        ("s3://me:ge/heim@bucket/a.parquet", "s3"),
        ("https://host/a.csv?token=x@geheim", "https"),
    ],
)
def test_a_source_is_named_without_what_may_be_a_secret(source: str, name: str) -> None:
    assert _named(source) == name


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
        ("postgres:password=a\\ host=geheim", "postgres"),
        ("postgres://me:12/geheim@db.example/clinic", "postgres"),
        ("postgres:service=clinic", "postgres"),
        ("postgres:host=/run/postgresql", "postgres"),
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
