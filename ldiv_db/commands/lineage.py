"""OpenLineage events of `ldiv run`, where the variables `OPENLINEAGE_…` say where they go; the client reads these.

Events say who made which table of which, under which policy, and what its audit reached. They hold no value of the
data, no seed, no message and no address: of these the kind and the server. A server that does not answer, or takes
nothing, is said and ends no run.
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
from urllib.parse import urlsplit

from ldiv_db.commands import telling
from ldiv_db.commands.cli import kind_of
from ldiv_db.database.addresses import MEMORY, address_of
from ldiv_db.database.counted import names_warehouse
from ldiv_db.database.errors import PolicyError
from ldiv_db.database.interrupts import WORDS
from ldiv_db.policy.reading import Policy
from ldiv_db.publishing.result import Released, Result
from ldiv_db.reporting.request import policy_hash, written_policy

_PRODUCER = "https://pypi.org/project/ldiv-db"
#: The variables of which one says where events go.
_PLACES = re.compile("OPENLINEAGE_(URL|CONFIG|_TRANSPORT.*)")
#: The host and port in the words of a connection to PostgreSQL.
_PASSWORD = re.compile(r"\w*password\s*=\s*('(?:[^'\\]|\\.)*'?|\S*)")
_WORD = r"(?:^|\s){}\s*=\s*'?([\w.:-]+)"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """True if the variables say where events go, and do not turn them off."""
    off = environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true"
    return not off and any(value and _PLACES.fullmatch(name) for name, value in environment.items())


@contextmanager
def told(database: str, policy: Policy) -> Iterator[Callable[[Result | Released], None]]:
    """Tell of a run that it begins, and how it ended; what is yielded takes its result."""
    if not is_wanted(os.environ):
        yield lambda result: None
        return
    events = _Events(database, policy)
    events.send("START")
    results: list[Result | Released] = []
    try:
        yield results.append
    except (KeyboardInterrupt, Exception) as error:
        kind = kind_of(error)
        events.send("ABORT" if kind in WORDS.values() else "FAIL", failed=f"{kind}{_where(error)}")
        raise
    for result in results:
        events.send("COMPLETE", result)


def _where(error: BaseException) -> str:
    """The parts of the policy that are wrong; a whole key may name a value of the data."""
    keys = [problem.key.split(".")[0] for problem in error.problems] if isinstance(error, PolicyError) else []
    return f": {', '.join(dict.fromkeys(keys))}" if keys else ""


class _Events:
    """The events of one run, each whole; once one was not sent, no other is tried."""

    def __init__(self, database: str, policy: Policy):
        self._policy, self._namespace = policy, namespace_of(database)
        self._run, self._client = str(uuid.uuid4()), None
        for name in ("openlineage", "urllib3"):  # what they warn of is said by us, once
            logging.getLogger(name).addHandler(logging.NullHandler())
        try:
            self._client = import_module("openlineage.client").OpenLineageClient()
        except ImportError:
            telling.say("note: OpenLineage events need its client: pip install 'ldiv-db[openlineage]'")
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._client = None
        telling.say(f"note: no OpenLineage event was sent: {type(error).__name__} (its words may quote a secret)")

    def send(self, state: str, result: Result | Released | None = None, failed: str = "") -> None:
        if self._client is None:
            return
        try:
            self._client.emit(self._event(state, result, failed))
            if state != "START" and not self._client.close(10.0):
                telling.say("note: not all OpenLineage events were sent in 10 seconds")
        except Exception as error:
            self._give_up(error)

    def _event(self, state: str, result: Result | Released | None, failed: str) -> Any:
        events, facets = import_module("openlineage.client.event_v2"), import_module("openlineage.client.facet_v2")
        target = _named(self._policy.target)
        run = {"ldiv_privacy": facets.RunFacet(producer=_PRODUCER).with_additional_properties(**self._privacy(result))}
        if failed:
            run["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(failed, "PYTHON", producer=_PRODUCER)
        if parent := os.environ.get("OPENLINEAGE_PARENT_ID"):
            run["parent"] = _parent(facets.parent_run, parent)
        job = facets.job_type_job.JobTypeJobFacet("BATCH", "LDIV", "COMMAND", producer=_PRODUCER)
        rows = {} if result is None else {"outputStatistics": _rows(facets, result)}
        return events.RunEvent(
            eventType=events.RunState[state],
            eventTime=datetime.now(UTC).isoformat(),
            run=events.Run(self._run, run),
            job=events.Job(
                os.environ.get("OPENLINEAGE_NAMESPACE") or "default", f"ldiv.run.{target}", {"jobType": job}
            ),
            inputs=[events.InputDataset(self._namespace, _named(self._policy.source))],
            outputs=[events.OutputDataset(self._namespace, target, outputFacets=rows)],
            producer=_PRODUCER,
        )

    def _privacy(self, result: Result | Released | None) -> dict[str, Any]:
        """The policy by its hash, which a report has too, its requirements by name, and what the audit says of them."""
        policy = self._policy
        asked: dict[str, Any] = {
            "policySha256": policy_hash(written_policy(policy)),
            "algorithm": policy.algorithm.name,
            "requirements": [{"name": spec.name, "sensitive": list(spec.sensitive)} for spec in policy.require],
        }
        if result is None:
            return asked
        reached = [
            {
                "requirement": verdict.requirement.label,
                "sensitive": audit.sensitive or None,
                "holds": verdict.holds,
                "worst": verdict.worst,
                "worstIs": verdict.requirement.reaches,
            }
            for audit in result.audits
            for verdict in audit.verdicts
        ]
        return asked | {"runId": result.as_dict().get("run_id"), "reached": reached}


def _named(place: Any) -> str:
    """A table, file or query by its name; of a URL its scheme, host and path, as the rest may be a secret."""
    text = str(place)
    if "://" not in text:
        return text
    found = urlsplit(text)
    return f"{found.scheme}://{found.netloc.rpartition('@')[2]}{found.path}"


def _rows(facets: Any, result: Result | Released) -> Any:
    rows = result.as_dict()["rows_published"]
    return facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)


def _parent(parents: Any, text: str) -> Any:
    """The run that started this one, which schedulers write `namespace/job/run`."""
    namespace, job, run = text.rsplit("/", 2)
    return parents.ParentRunFacet(parents.Run(run), parents.Job(namespace, job), producer=_PRODUCER)


def namespace_of(database: str) -> str:
    """The namespace of a database's tables: its kind and, where the address says it plainly, its file or server.

    An address may hold a password: no other part of it is told.
    """
    if not names_warehouse(database) and (path := address_of(database).path):
        return f"duckdb://{path.resolve()}"
    if database == MEMORY:
        return "duckdb"
    kind, _, rest = database.partition(":")
    if kind.lower() == "adbc":
        kind, _, rest = rest.partition(":")
    if kind.lower() not in ("postgres", "postgresql"):
        return kind.lower()
    host, port = _server(rest)
    return f"postgres://{host}:{port}" if host else "postgres"


def _server(text: str) -> tuple[str, str]:
    if text.startswith("//"):
        try:
            found = urlsplit(f"postgres:{text}")
            return found.hostname or "", str(found.port or 5432)
        except ValueError:
            return "", ""
    open_text = _PASSWORD.sub(" ", text)
    host, port = (re.search(_WORD.format(name), open_text) for name in ("host", "port"))
    return host[1] if host else "", port[1] if port else "5432"
