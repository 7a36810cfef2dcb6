"""OpenLineage events of `ldiv run`, where the variables `OPENLINEAGE_…` say where they go; the client reads these.

Events say who made which table of which, under which policy, and what its audit reached. They hold no value of the
data, no seed, no message, no figure on people whom the release does not tell apart, and of addresses the kind and the
server alone. A server that does not answer, or takes nothing, is said and ends no run.
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from ldiv_db.commands import telling
from ldiv_db.commands.cli import kind_of
from ldiv_db.database.addresses import MEMORY, address_of
from ldiv_db.database.counted import names_warehouse
from ldiv_db.database.interrupts import WORDS
from ldiv_db.policy.reading import Policy
from ldiv_db.publishing.result import Result

_PRODUCER = "https://pypi.org/project/ldiv-db"
#: The variables of which one says where events go.
_PLACES = re.compile("OPENLINEAGE_(URL|CONFIG|_TRANSPORT.*)")
#: A key of a connection to PostgreSQL and its value; the server and the path of a URL, whose password holds no other @.
_KEY = re.compile(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'?|(?:\\.|\S)*)")
_URL = re.compile(r"(?:\w+:)?//(?:[^@/?#]*@)?([\w.-]+(?::\d+)?)(/[^@?#]*)?(?:[?#][^@]*)?")


def is_wanted(environment: Mapping[str, str]) -> bool:
    """True if the variables say where events go, and do not turn them off."""
    off = environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true"
    return not off and any(value and _PLACES.fullmatch(name) for name, value in environment.items())


def telling_of(database: str, policy: Policy, work: Callable[[], Result]) -> Result:
    """The result of a run, which is told to begin, and how it ended."""
    if not is_wanted(os.environ) or policy.tables:
        if policy.tables and is_wanted(os.environ):
            telling.say("note: no OpenLineage event was sent: a run of several tables has none")
        return work()
    events = _Events(database, policy)
    events.send("START")
    try:
        result = work()
    except (KeyboardInterrupt, Exception) as error:
        kind = kind_of(error)  # and which parts of a policy are wrong: a whole key may name a value of the data
        parts = ", ".join(dict.fromkeys(problem.key.split(".")[0] for problem in getattr(error, "problems", ())))
        events.send("ABORT" if kind in WORDS.values() else "FAIL", failed=f"{kind}: {parts}" if parts else kind)
        raise
    events.send("COMPLETE", result)
    return result


class _Events:
    """The events of one run, each whole; once one was not sent, no other is tried."""

    def __init__(self, database: str, policy: Policy):
        self._policy, self._run, self._client = policy, str(uuid.uuid4()), None
        there = policy.target.database
        self._source = namespace_of(database)
        self._target = self._source if there is None else namespace_of(policy.databases.get(there, MEMORY))
        for name in ("openlineage", "urllib3"):  # what they warn of is said by us, once
            logging.getLogger(name).addHandler(logging.NullHandler())
        with self._trying():
            self._client = import_module("openlineage.client").OpenLineageClient()

    @contextmanager
    def _trying(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._client = None
            more = "pip install 'ldiv-db[openlineage]'" if isinstance(error, ImportError) else "it may quote a secret"
            telling.say(f"note: no OpenLineage event was sent: {type(error).__name__} ({more})")

    def send(self, state: str, result: Result | None = None, failed: str = "") -> None:
        if self._client is None:
            return
        with self._trying():
            self._client.emit(self._event(state, result, failed))
            if state != "START" and not self._client.close(10.0):
                telling.say("note: not all OpenLineage events were sent in 10 seconds")

    def _event(self, state: str, result: Result | None, failed: str) -> Any:
        events, facets = import_module("openlineage.client.event_v2"), import_module("openlineage.client.facet_v2")
        own: dict[str, Any] = {"producer": _PRODUCER}
        target, counts = self._policy.target, {}
        name = _named(target.table or target.prefix or target.file)
        run = {"ldiv_privacy": facets.RunFacet(**own).with_additional_properties(**self._privacy(result))}
        if failed:
            run["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(failed, "PYTHON", **own)
        if parent := os.environ.get("OPENLINEAGE_PARENT_ID"):  # schedulers write `namespace/job/run`
            *job, number = parent.rsplit("/", 2)
            parents = facets.parent_run
            run["parent"] = parents.ParentRunFacet(parents.Run(number), parents.Job(*job), **own)
        if result is not None:
            told = result.as_dict()
            counted = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
            counts["outputStatistics"] = counted(rowCount=told.get("rows_of_table", told["rows_published"]))
        kind = facets.job_type_job.JobTypeJobFacet("BATCH", "LDIV", "COMMAND", **own)
        jobs, at = os.environ.get("OPENLINEAGE_NAMESPACE") or "default", datetime.now(UTC).isoformat()
        own |= {"job": events.Job(jobs, f"ldiv.run.{name}", {"jobType": kind}), "run": events.Run(self._run, run)}
        inputs = [events.InputDataset(self._source, _named(self._policy.source))]
        outputs = [events.OutputDataset(self._target, name, outputFacets=counts)]
        return events.RunEvent(eventType=events.RunState[state], eventTime=at, inputs=inputs, outputs=outputs, **own)

    def _privacy(self, result: Result | None) -> dict[str, Any]:
        """The policy by its hash, which a report has too, its requirements by name, and what the audit says of them."""
        from ldiv_db.reporting.request import policy_hash, written_policy  # noqa: PLC0415 - few runs tell a server

        policy = self._policy
        asked: dict[str, Any] = {
            "policySha256": policy_hash(written_policy(policy)),
            "algorithm": policy.algorithm.name,
            "requirements": [{"name": spec.name, "sensitive": list(spec.sensitive)} for spec in policy.require],
        }
        if result is None:
            return asked
        shown = policy.individual is None or policy.output.person  # readers of the release can count the worst figure
        reached: list[dict[str, Any]] = [
            {"requirement": one.requirement.label, "sensitive": audit.sensitive or None, "holds": one.holds}
            | ({"worst": one.worst, "worstIs": one.requirement.reaches} if shown else {})
            for audit in result.audits
            for one in audit.verdicts
        ]
        return asked | {"runId": result.as_dict().get("run_id"), "reached": reached}


def _named(place: Any) -> str:
    """A table, file or query by its name; of a URL no part that may be a secret."""
    kind, is_url, _ = (text := str(place)).partition("://")
    found = _URL.fullmatch(text)
    return f"{kind}://{found[1]}{found[2] or ''}" if found else kind if is_url else text


def namespace_of(database: str) -> str:
    """The namespace of a database's tables: its kind and, where the address says it plainly, its file or server."""
    if not names_warehouse(database) and (path := (found := address_of(database)).path):
        return f"{found.kind.name.lower()}://{path.resolve()}"
    kind, _, rest = re.sub("^adbc:", "", database, flags=re.IGNORECASE).partition(":")
    if kind.lower() not in ("postgres", "postgresql"):
        return kind.lower() or "duckdb"
    if url := _URL.fullmatch(rest):
        server = url[1]
    else:
        keys = {} if rest.startswith("//") else {key: value.strip("'") for key, value in _KEY.findall(rest)}
        server = f"{keys.get('host', '')}:{keys.get('port', 5432)}"
    if not re.fullmatch(r"[\w.-]+(:\d+)?", server):
        return "postgres"
    return f"postgres://{server}" if ":" in server else f"postgres://{server}:5432"
