"""`ldiv mcp`: what one report says of a policy and its release, for agents that speak the Model Context Protocol.

An agent chooses one of the tools, which take no argument: no table, value or policy comes from outside. Their answers
are worked out together when the first is asked for, and stay: asking again, after rows have changed, tells nothing of
the change. What is told of the source is what a report tells of it. `ask` alone takes a query, of which only the
release is asked: who has it could answer that as well.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.api import answer_asked, plan, report
from ldiv_db.attacking.question import read_threshold
from ldiv_db.auditing.check import check_request
from ldiv_db.commands.options import Database, DatabaseOptions, OptionsOf, PolicyFile, grouped
from ldiv_db.database.attach import named_databases
from ldiv_db.database.context import working_engine
from ldiv_db.database.errors import InfeasibleError, LdivError, PolicyError, Problem
from ldiv_db.database.questions import EXAMPLE
from ldiv_db.measuring.asking.answer import AskRequest
from ldiv_db.policy.changes import over_earlier
from ldiv_db.policy.quasi_identifiers import open_columns
from ldiv_db.policy.reading import Policy, of_one_table, read_policy
from ldiv_db.reporting.request import ReportRequest, written_policy
from ldiv_db.reporting.risks import before, protection_of, residual_risks
from ldiv_db.requirements.risk import HIGH, bounded_risk
from ldiv_db.running.preview import describe_plan

#: The tools, and what each tells. Those of the source have no place where the release alone may be told of.
_OF_THE_SOURCE = {
    "profile": "How identifying the source's quasi-identifiers are: unique rows, the risk of rows, kept columns.",
    "plan": "Whether the policy can be met, by which algorithm, and how each column would be published.",
    "measure": "What the release lost against its source: per column, of counts, means and correlations.",
}
_OF_THE_RELEASE = {
    "check": "The audit of the release: does every class meet every requirement, by which margin?",
    "attack": "What attackers gain from the release, against what its requirements promise, and what was not tried.",
    "ask": "What the source would answer to a query, by the release alone: low, estimate and high of counts, sums,"
    f" averages and medians, in groups, and whether they are exact. For example: {EXAMPLE}",
    "explain": "The policy in words: what it requires, against whom that protects, which risks are left.",
}
#: The sections of a report that answer.
_SECTIONS = {
    "check": ("statement", "audit", "classes"),
    "attack": ("identifiability", "risks", "attacks", "verdicts", "not_tried"),
}
#: Of a plan what the report on its release says too.
_PLANNED = ("algorithm", "options", "l", "columns", "rows_in", "rows_suppressed")
_TOLD = (
    "What a report says of one policy and its release: counts and shares, no rows, and no values but those that the"
    " policy names. The tools take no argument but `ask`, which takes a query and reads the release alone. Other"
    " answers are of one moment, and stay the same until the server is started again. Publishing is for people: `ldiv"
    " run`."
)


@dataclass(frozen=True)
class Answers:
    """The answer to every tool, worked out once for all of them."""

    database: str
    policy: Policy
    folder: Path
    release: str | None
    told: Mapping[str, Any]
    resources: DatabaseOptions
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _found: dict[str, dict[str, Any] | LdivError] = field(default_factory=dict)

    @property
    def public(self) -> bool:
        """True if nothing is told but what the release itself reveals."""
        return bool(self.told["public"])

    @property
    def tools(self) -> dict[str, str]:
        """The tools by name, and what each tells."""
        return _OF_THE_RELEASE if self.public else _OF_THE_SOURCE | _OF_THE_RELEASE

    def of(self, tool: str) -> dict[str, Any]:
        """The answer; raises what stands in its way. Where a database fails, the next to ask has all tried again."""
        with self._lock:
            if not self._found:
                self._found.update(self._worked_out())
        found = self._found[tool]
        if isinstance(found, LdivError):
            raise found
        return found

    def _worked_out(self) -> Iterator[tuple[str, dict[str, Any] | LdivError]]:
        of_the_source = {} if self.public else {"profile": self._profile, "plan": self._plan}
        for tool, work in (of_the_source | {"explain": self._explain}).items():
            yield tool, _tried(work)
        found = _tried(self._report)
        for tool, sections in _SECTIONS.items():
            yield tool, found if isinstance(found, LdivError) else {key: found[key] for key in sections if key in found}
        if not self.public:
            yield "measure", found if isinstance(found, LdivError) else _lost(found)

    def asked(self, query: str) -> dict[str, Any]:
        """The answer of the release to a query; how many rows it lacks is of the source."""
        with (
            self.resources.open(self.database, True, {"policy": self.policy}) as connection,
            working_engine(connection, None, self.resources.catalog_name) as engine,
        ):
            request = AskRequest(self.release, query, self.policy, folder=self.folder)
            found: dict[str, Any] = json.loads(json.dumps(answer_asked(engine, request, not self.public).as_dict()))
            return found

    def _explain(self) -> dict[str, Any]:
        name, policy = self.policy.algorithm.name, self.policy
        return {
            "policy": written_policy(policy, self.public),
            "require": [{**one.written, "means": one.kind.means()} for one in policy.require],
            "protects_if_its_audit_holds": protection_of(name, policy, True),
            "residual": residual_risks(check_request(policy, folder=self.folder), policy),
        }

    def _profile(self) -> dict[str, Any]:
        with (
            self.resources.open(self.database, True, {"policy": self.policy}) as connection,
            working_engine(connection, None, self.resources.catalog_name) as engine,
            named_databases(engine, self.policy.databases, self.folder),
        ):
            source = open_columns(engine, of_one_table(self.policy), self.folder)
            threshold = self.told["threshold"] or bounded_risk(self.policy.require) or HIGH
            return before(engine, source, self.policy, read_threshold(threshold))

    def _plan(self) -> dict[str, Any]:
        with self.resources.open_planned(self.database, read_only=True) as (opened, catalog):
            found = describe_plan(plan(opened, over_earlier(self.policy), self.folder, catalog=catalog))
        return {key: found[key] for key in _PLANNED if key in found}

    def _report(self) -> dict[str, Any]:
        with self.resources.open(self.database, True, {**self.told, "policy": self.policy}) as connection:
            how = {**self.told, "folder": self.folder, "catalog": self.resources.catalog_name}
            return report(connection, self.release, self.policy, **how).document


def _tried(work: Callable[[], dict[str, Any]]) -> dict[str, Any] | LdivError:
    """What is worked out, as JSON has it, or the reason why the policy or its tables do not allow it."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(work(), default=float))
        return plain
    except (PolicyError, InfeasibleError) as error:
        return error


def _lost(document: Mapping[str, Any]) -> dict[str, Any] | LdivError:
    if document["source"] is None:
        return PolicyError([Problem("source", "cannot be read", str(document["why_no_source"]))])
    return {"utility": document["source"]["utility"]}


def server_of(answers: Answers) -> Any:
    """The server of the answers, not yet running; raises PolicyError where the SDK is not installed."""
    try:
        from mcp.server.mcpserver import MCPServer  # noqa: PLC0415 - an extra
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - an extra
        from mcp.types import ToolAnnotations  # noqa: PLC0415 - an extra
    except ImportError:
        what = "needs the SDK of the Model Context Protocol"
        raise PolicyError([Problem("mcp", what, "pip install 'ldiv-db[mcp]'")]) from None

    def told(work: Callable[[str], dict[str, Any]], given: str) -> dict[str, Any]:
        try:
            return work(given)
        except (LdivError, OSError) as error:
            said = error.message if isinstance(error, LdivError) else "a file cannot be read"
            raise ToolError(said) from None

    def tool(name: str) -> Callable[..., dict[str, Any]]:
        def asks(query: str) -> dict[str, Any]:
            return told(answers.asked, query)

        def of_name() -> dict[str, Any]:
            return told(answers.of, name)

        return asks if name == "ask" else of_name

    server = MCPServer("ldiv", instructions=_TOLD, log_level="ERROR")
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    for name, said in answers.tools.items():
        server.add_tool(tool(name), name=name, description=said, annotations=hints)
    return server


@grouped
def mcp_command(
    *,
    database: Database,
    policy: PolicyFile,
    release: Annotated[
        str | None, typer.Option(help="The table or file of the release; by default the policy's target.")
    ] = None,
    told: Annotated[dict[str, Any], OptionsOf(ReportRequest, without=("class_column", "individual", "final"))],
    resources: DatabaseOptions,
) -> None:
    """Serve what a report says of a policy to agents, by the Model Context Protocol; read-only.

    The tools profile, plan, check, measure, attack and explain take no argument, and tell together no more than one
    report does, whose options these are; ask takes a query, and reads the release alone, as `ldiv ask` does. Needs `pip
    install 'ldiv-db[mcp]'`.

    \b
    Examples:
      ldiv mcp warehouse.duckdb policy.yml
      ldiv mcp warehouse.duckdb policy.yml --release published.patients --public
    """
    wanted, folder = read_policy(policy), policy.parent
    target = wanted.target
    own = str(folder / target.file) if target.file else target.table  # of several tables a report opens each
    where = release or (None if wanted.tables else own)
    server = server_of(Answers(database, wanted, folder, where, told, resources))
    with suppress(BrokenPipeError):
        server.run()
