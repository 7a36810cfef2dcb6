"""Facts that anybody with the release can work out: hashes, audit and classes; and its entries in the ledger.

The hash of a table does not depend on the order of its rows: by it a release is known again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ldiv_db.attacking.columns import with_people
from ldiv_db.auditing.audit import Audit, hold_together
from ldiv_db.auditing.check import CheckRequest, check_request
from ldiv_db.auditing.check_tables import PublishedTables, open_published
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.subject import Subject, counted
from ldiv_db.database.attach import named_databases
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Listener
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem, refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.quasi_identifiers import open_columns, read_columns
from ldiv_db.policy.reading import Policy, names_of, read_requirements, read_sensitive
from ldiv_db.policy.schema import open_each
from ldiv_db.publishing import ledger
from ldiv_db.publishing.history import known_as
from ldiv_db.publishing.ledger_there import bring_ledger
from ldiv_db.reporting.request import ReportQuestion
from ldiv_db.reporting.table_text import words_on
from ldiv_db.requirements.risk import HIGH, bounded_risk

Table = Relation | FileRelation


def in_words(error: PolicyError | InfeasibleError) -> str:
    """The reason of an error, without the keys that it is about."""
    return "; ".join(problem.what for problem in error.problems) if isinstance(error, PolicyError) else error.message


def content_of(engine: Engine, table: Relation | FileRelation) -> dict[str, Any]:
    """The rows of a table, its columns, and SHA-256 of both names and rows; values count as the texts that they are.

    An attacker who holds all of a table but one row can check a guess at that row by the table's hash: they may not
    see the hash of a source, which is for those who may read the source.
    """
    names = [column.name for column in columns_of(engine, table)]
    found = engine.record("reporting/hash_rows", source=table, columns=[Identifier(name) for name in names])
    whole = json.dumps([names, found["digest"]], ensure_ascii=False)
    return {"rows": int(found["rows"]), "columns": names, "sha256": hashlib.sha256(whole.encode()).hexdigest()}


_SHOWN = ("run_id", "algorithm", "target", "rows_published", "rows_suppressed", "classes")


@dataclass(frozen=True)
class ReportedTable:
    """The table that a report is of, and its row in the ledger if it has one."""

    table: str
    run: dict[str, Any] | None

    @property
    def about(self) -> dict[str, Any] | None:
        """The run as a report has it."""
        return None if self.run is None else _shown(self.run)


def find_run(engine: Engine, name: str) -> ReportedTable:
    """The table that is named, or that the run of that id published; raises PolicyError for a run to a file."""
    bring_ledger(engine)
    runs = [*_published(engine), *_latest_of_series(engine)]
    for run in runs:
        if run["run_id"] == name.lower():
            if ":" in run["target"] or "/" in run["target"]:
                what = f"run {name} was published to {run['target']}"
                raise PolicyError([Problem("table", what, "name the file or the table, and its database")])
            return ReportedTable(run["target"], run)
    same = [run for run in runs if name.lower() in (run["target"].lower(), *map(str.lower, run.get("tables", ())))]
    return ReportedTable(name, same[-1] if same else None)


def _latest_of_series(engine: Engine) -> Iterator[dict[str, Any]]:
    """The releases of series that are published, as runs are entered; the target is the table of each."""
    for one in ledger.releases(engine):
        if one.status == ledger.PUBLISHED and (tables := one.report.get("tables")):
            told = {"target": tables[0], "rows_published": one.rows, "rows_suppressed": one.count("rows_left_out")}
            told |= {"classes": one.count("groups"), "finished_at": one.released_at}
            yield {**told, **{key: one.report.get(key) for key in ("run_id", "algorithm", "source", "tables")}}


@dataclass(frozen=True)
class Reported:
    """The release that a report is of, the question about it, and why its source cannot be read if it cannot."""

    engine: Engine
    listener: Listener
    question: CheckRequest
    asked: ReportQuestion
    noted: ReportedTable
    why_not: str | None

    @property
    def algorithm(self) -> str | None:
        """The policy's algorithm, possibly a choice among several; else the ledger's; None if unknown."""
        if self.asked.policy is not None and (self.noted.run or self.asked.policy.names_algorithm):
            return self.asked.policy.algorithm.name
        return self.noted.run["algorithm"] if self.noted.run else None


@dataclass(frozen=True)
class TablesSubject(Reported):
    """A release of several tables, and the tables that it was made of; None where one is not there."""

    released: PublishedTables
    targets: Mapping[str, Table]
    sources: Mapping[str, Table] | None


@dataclass(frozen=True)
class ReportSubject(Reported):
    """A release of one table, and its source."""

    table: Table
    source: Table | None

    @property
    def people(self) -> Table | None:
        """The source, if its rows are people: the rows of one that holds counts are not."""
        counts = self.asked.policy is not None and self.asked.policy.weight is not None
        return None if counts else self.source


@contextmanager
def opened(
    engine: Engine, listener: Listener, name: str | None, asked: ReportQuestion
) -> Iterator[ReportSubject | TablesSubject]:
    """Yield the subject of a report: a table, the output of the run of that id, or the tables of a policy of several.

    Databases that the policy names are attached.

    Raises PolicyError for what does not exist or does not fit, and for a source that is named and is not there.
    """
    asked.refuse()
    places = asked.policy.places if asked.policy else ""
    noted = find_run(engine, name or places)
    if asked.public:  # who has the release and the policy has no ledger
        noted = replace(noted, run=None)
    with ExitStack() as stack:
        if asked.policy is not None and not asked.public:
            stack.enter_context(named_databases(engine, asked.policy.databases, asked.folder))
        if asked.policy is not None and asked.policy.tables:
            if noted.table.lower() != places.lower():
                raise refused("table", "is one table, and the policy names several", "name their run, or leave it out")
            yield _several(engine, listener, asked, asked.policy, noted)
            return
        table = resolve_source(engine, noted.table, Path(), "table")
        source, why_not = _source(engine, asked)
        question = question_about(engine, table, asked)
        yield ReportSubject(engine, listener, question, _with_threshold(asked, question), noted, why_not, table, source)


def _with_threshold(asked: ReportQuestion, question: CheckRequest) -> ReportQuestion:
    return replace(asked, threshold=asked.threshold or str(bounded_risk(question.require) or HIGH))


def _several(
    engine: Engine, listener: Listener, asked: ReportQuestion, policy: Policy, noted: ReportedTable
) -> TablesSubject:
    targets = open_each(engine, policy, asked.folder, "target", policy.tables)
    sources, why_not = None, _NOT_FOR_ALL if asked.public else None
    if not asked.public:
        try:
            sources = open_each(engine, policy, asked.folder, "source", policy.tables)
        except PolicyError as error:
            why_not = in_words(error)
    person = policy.individual.column if policy.individual else None
    columns = list(policy.quasi_identifiers), policy.sensitive, policy.require
    question = CheckRequest(*columns, folder=asked.folder, individual=person, protects_people=True, counts_people=True)
    released = open_published(engine, policy, asked.folder)
    asked = _with_threshold(asked, question)
    return TablesSubject(engine, listener, question, asked, noted, why_not, released, targets, sources)


_NOT_FOR_ALL = "this report is for those who may not read the source"


def _source(engine: Engine, asked: ReportQuestion) -> tuple[Table | None, str | None]:
    if asked.public:
        return None, _NOT_FOR_ALL
    if asked.policy is None:
        return None, "no policy was given, which says what the columns of the source are"
    if asked.source is not None:
        return read_columns(engine, asked.policy, resolve_source(engine, asked.source, Path(), "source")), None
    try:
        return open_columns(engine, asked.policy, asked.folder), None
    except PolicyError as error:
        return None, in_words(error)


def question_about(engine: Engine, table: Table, asked: ReportQuestion) -> CheckRequest:
    """The check that the table must pass; class ids count where it has them."""
    if asked.policy is None:
        require, sensitive = read_requirements(asked.require), read_sensitive(asked.sensitive)
        question = CheckRequest(names_of(list(asked.qi)), sensitive, require, asked.class_column, folder=asked.folder)
        return replace(question, individual=asked.individual)
    names = [column.name for column in columns_of(engine, table)]
    policy = asked.policy.settled_by(names)
    question = check_request(policy, folder=asked.folder, individual=asked.individual)
    ids = policy.released.class_ids_among(names)
    return with_people(engine, table, replace(question, class_column=next(iter(ids), None)), policy)


def earlier_releases(subject: Reported) -> dict[str, Any]:
    """The runs and the releases of series of the same source, up to this one; all of them for a table without a run.

    Who has several releases can compare them, so that each of them is named.
    """
    is_source = _is_source(subject)
    releases = [
        {
            **{"series": one.series, "release": one.release, "released_at": _utc(one.released_at)},
            **{"rows": one.rows, "warning": one.warning},
            "own": subject.noted.table in one.report.get("tables", ()),
            "inference": one.report.get("inference"),
        }
        for one in ledger.releases(subject.engine)
        if one.status == ledger.PUBLISHED and is_source(one.report.get("source", ""))
    ]
    return {"runs": [_shown(one) for one in _earlier_runs(subject)], "releases": releases}


def _is_source(subject: Reported) -> Callable[[str], bool]:
    run, policy = subject.noted.run, subject.asked.policy
    named = run["source"] if run else "" if policy is None else policy.reads
    return known_as(subject.engine, named, subject.asked.folder)


def _earlier_runs(subject: Reported) -> list[dict[str, Any]]:
    run, is_source = subject.noted.run, _is_source(subject)
    listed = [one for one in _published(subject.engine) if is_source(one["source"])]
    ids = [one["run_id"] for one in listed]
    return listed[: ids.index(run["run_id"])] if run and run["run_id"] in ids else listed


def _published(engine: Engine) -> list[dict[str, Any]]:
    return [run for run in ledger.runs(engine) if run["status"] == ledger.PUBLISHED]


def earlier_tables(subject: ReportSubject) -> list[str]:
    """The other tables that earlier runs of the source published and no later run has replaced."""
    latest = {run["target"].lower(): run["run_id"] for run in _published(subject.engine)}
    kept = [run["target"] for run in _earlier_runs(subject) if latest[run["target"].lower()] == run["run_id"]]
    return [name for name in kept if name.lower() != subject.noted.table.lower()]


def _shown(run: dict[str, Any]) -> dict[str, Any]:
    return {"finished_at": _utc(run["finished_at"])} | {key: run[key] for key in _SHOWN}


def _utc(written: str) -> str:
    """A moment of the ledger in UTC, to the second, whatever the zone of the connection."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


#: Bins of class sizes at most, and bins of shares: a bound of 1/2, 1/4, 1/5 or 1/10 stands between two of these.
SIZE_BINS, SHARE_BINS = 24, 20
#: The audit as SQL is printed up to so many characters.
MOST_SQL = 200_000


def audit_document(audits: Sequence[Audit]) -> dict[str, Any]:
    """The audits as a report has them: each requirement with its bound, worst class and margin."""
    return {"holds": hold_together(audits), "attributes": [_attribute(found) for found in audits]}


def _attribute(found: Audit) -> dict[str, Any]:
    asked = [verdict.requirement for verdict in found.verdicts]
    words = [{"requirement": str(one), **words_on(one, found.unit)} for one in asked]
    whole = found.as_dict()
    requirements = [{**said, **one} for said, one in zip(words, whole.pop("requirements"), strict=True)]
    return {**whole, "requirements": requirements}


def classes_of(
    engine: Engine, names: Iterable[str], read: Callable[[str], AbstractContextManager[Subject]]
) -> dict[str, Any]:
    """Histograms of class sizes and of the largest share in each class, by sensitive attribute: counts alone.

    `read` gives the classes of an attribute. They are of people where it is said whose a row is.
    """
    sizes: dict[str, Any] = {}
    shares = {}
    for name in names:
        with read(name) as subject, counted(engine, subject, name) as counts:
            sizes = sizes or _sizes(engine, counts.listed)
            if name:
                summary = counts.classes.summary
                rows = dict(engine.rows("reporting/count_largest_shares", summary=summary, bins=SHARE_BINS))
                shares[name] = [rows.get(place, 0) for place in range(SHARE_BINS)]
    return {"sizes": sizes, "largest_shares": shares}


def _sizes(engine: Engine, classes: Relation) -> dict[str, Any]:
    least, most = (int(found(classes, "class_rows") or 0) for found in (engine.least, engine.most))
    width = max(1, -(-(most - least + 1) // SIZE_BINS))
    rows = engine.rows("reporting/count_sizes", classes=classes, least=least, width=width)
    bins = [{"from": least + bin_ * width, "classes": int(n), "rows": int(r)} for bin_, n, r in rows]
    return {"least": least, "most": most, "width": width, "bins": bins}


def audit_sql(subject: ReportSubject) -> dict[str, Any]:
    """The audit as one SELECT, or why there is none."""
    question, named = subject.question, Relation(tuple(subject.noted.table.split(".")))
    types = {column.name: column.type for column in columns_of(subject.engine, subject.table)}
    of_sensitive: Mapping[str, str] = {name: types[name] for name in question.sensitive if name in types}
    try:
        sql = check_statement(subject.engine, question, named, "duckdb", of_sensitive)
    except PolicyError as error:
        return {"sql": None, "why_not": in_words(error)}
    return {"sql": sql if len(sql) <= MOST_SQL else None, "why_not": None if len(sql) <= MOST_SQL else "it is too long"}
