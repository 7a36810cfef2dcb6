"""The release that a report is of, one table or several, and what who has it, or the ledger, can work out of it."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.attacking.columns import with_people
from ldiv_db.auditing.audit import Audit
from ldiv_db.auditing.check import CheckRequest, check, check_request
from ldiv_db.auditing.statement import check_statement
from ldiv_db.auditing.subject import Subject
from ldiv_db.auditing.tables import PublishedTables
from ldiv_db.database.attach import named_databases
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Listener
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, in_words, refused
from ldiv_db.database.names import Relation
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.published import open_each, settled_by
from ldiv_db.policy.quasi_identifiers import open_columns, read_columns
from ldiv_db.policy.reading import Policy, names_of, read_requirements, read_sensitive
from ldiv_db.policy.schema import of_published
from ldiv_db.policy.tables import named_in, numbers_as
from ldiv_db.publishing import ledger
from ldiv_db.publishing.found import auto_found, recorded_tables
from ldiv_db.publishing.history import known_as
from ldiv_db.reporting.release_facts import (
    ReportedTable,
    classes_of,
    content_of,
    find_run,
    in_utc,
    published_runs,
    shown_run,
)
from ldiv_db.reporting.request import ReportQuestion
from ldiv_db.requirements.risk import HIGH, bounded_risk

#: The audit as SQL is printed up to so many characters.
MOST_SQL = 200_000
_NOT_FOR_ALL = "this report is for those who may not read the source"


@dataclass(frozen=True)
class Reported(ABC):
    """The release that a report is of, the question about it, and why its source cannot be read if it cannot.

    `targets` are its tables by their names, `sources` what they were made of, None where it cannot be read.
    """

    engine: Engine
    listener: Listener
    question: CheckRequest
    asked: ReportQuestion
    noted: ReportedTable
    why_not: str | None
    targets: Mapping[str, Table]
    sources: Mapping[str, Table] | None

    @property
    def algorithm(self) -> str | None:
        """The policy's algorithm, possibly a choice among several; else the ledger's; None if unknown."""
        if self.asked.policy is not None and (self.noted.run or self.asked.policy.names_algorithm):
            return self.asked.policy.algorithm.name
        return self.noted.run["algorithm"] if self.noted.run else None

    @property
    def links(self) -> list[str]:
        """The columns in whose place numbers of the release are published."""
        policy = self.asked.policy
        return [named_in(*column) for column in numbers_as(policy.tables)] if policy else []

    def content(self, tables: Mapping[str, Table]) -> dict[str, Any]:
        """The rows and the hash of the one table, or of each and of all together."""
        each = [{"table": name, **content_of(self.engine, rows)} for name, rows in tables.items()]
        if list(tables) == [""]:
            return {key: value for key, value in each[0].items() if key != "table"}
        whole = json.dumps([(one["table"], one["sha256"]) for one in each], ensure_ascii=False)
        return {
            "rows": sum(one["rows"] for one in each),
            "columns": [named_in(one["table"], column) for one in each for column in one["columns"]],
            "sha256": hashlib.sha256(whole.encode()).hexdigest(),
            "tables": each,
        }

    @abstractmethod
    def audits(self) -> list[Audit]:
        """The audits of the release."""

    @abstractmethod
    def classes(self) -> dict[str, Any]:
        """The histograms of its classes."""

    @abstractmethod
    def audit_sql(self) -> dict[str, Any]:
        """The audit as one SELECT, or why there is none."""

    # -- the ledger --------------------------------------------------------------------------------------

    def earlier_releases(self) -> dict[str, Any]:
        """The runs and the releases of series of the same source, up to this one; all for a table without a run.

        Who has several releases can compare them, so that each of them is named.
        """
        is_source = self._is_source()
        releases = [
            {
                **{"series": one.series, "release": one.release, "released_at": in_utc(one.released_at)},
                **{"rows": one.rows, "warning": one.warning},
                "own": self.noted.table in one.report.get("tables", ()),
                "inference": one.report.get("inference"),
            }
            for one in ledger.releases(self.engine)
            if one.status == ledger.PUBLISHED and is_source(one.report.get("source", ""))
        ]
        return {"runs": [shown_run(one) for one in self._earlier_runs()], "releases": releases}

    def earlier_tables(self) -> list[str]:
        """The other tables that earlier runs of the source published and no later run has replaced."""
        latest = {run["target"].lower(): run["run_id"] for run in published_runs(self.engine)}
        kept = [run["target"] for run in self._earlier_runs() if latest[run["target"].lower()] == run["run_id"]]
        return [name for name in kept if name.lower() != self.noted.table.lower()]

    def _is_source(self) -> Callable[[str], bool]:
        run, policy = self.noted.run, self.asked.policy
        named = run["source"] if run else "" if policy is None else policy.reads
        return known_as(self.engine, named, self.asked.folder)

    def _earlier_runs(self) -> list[dict[str, Any]]:
        run, is_source = self.noted.run, self._is_source()
        listed = [one for one in published_runs(self.engine) if is_source(one["source"])]
        ids = [one["run_id"] for one in listed]
        return listed[: ids.index(run["run_id"])] if run and run["run_id"] in ids else listed


@dataclass(frozen=True)
class ReportSubject(Reported):
    """A release of one table, which is that of no name, and its source."""

    @property
    def table(self) -> Table:
        """The published table."""
        return self.targets[""]

    @property
    def source(self) -> Table | None:
        """What it was made of."""
        return self.sources[""] if self.sources else None

    @property
    def people(self) -> Table | None:
        """The source, if its rows are people: the rows of one that holds counts are not."""
        counts = self.asked.policy is not None and self.asked.policy.weight is not None
        return None if counts else self.source

    def audits(self) -> list[Audit]:
        return check(self.engine, self.table, self.question)

    def classes(self) -> dict[str, Any]:
        audited = replace(self.question.subject(self.table), by_rows=False)
        return classes_of(self.engine, self.question.sensitive or [""], lambda _: nullcontext(audited))

    def audit_sql(self) -> dict[str, Any]:
        named = Relation(tuple(self.noted.table.split(".")))
        types = {column.name: column.type for column in columns_of(self.engine, self.table)}
        of_sensitive = {name: types[name] for name in self.question.sensitive if name in types}
        try:
            sql = check_statement(self.engine, self.question, named, "duckdb", of_sensitive)
        except PolicyError as error:
            return {"sql": None, "why_not": in_words(error)}
        is_short = len(sql) <= MOST_SQL
        return {"sql": sql if is_short else None, "why_not": None if is_short else "it is too long"}


@dataclass(frozen=True)
class TablesSubject(Reported):
    """A release of several tables, `released` those that belong to people.

    Classes are of people, who are told apart by what all their rows show: their sizes are of all people, shares of
    those who have a value.
    """

    released: PublishedTables

    def audits(self) -> list[Audit]:
        return self.released.audits()

    def classes(self) -> dict[str, Any]:
        with self.released.joined() as joined:
            people = joined.people()

            @contextmanager
            def read(name: str) -> Iterator[Subject]:
                with self.engine.scope():
                    yield joined.seen(people, name)

            return classes_of(self.engine, ["", *self.released.attributes], read)

    def audit_sql(self) -> dict[str, Any]:
        return {"sql": None, "why_not": "the audit joins the tables: `ldiv check --policy POLICY` repeats it"}


# -- opened --------------------------------------------------------------------------------------------


@contextmanager
def opened(
    engine: Engine, listener: Listener, name: str | None, asked: ReportQuestion
) -> Iterator[ReportSubject | TablesSubject]:
    """Yield the subject of a report: a table, the output of the run of that id, or the tables of a policy of several.

    Databases that the policy names are attached.

    Raises PolicyError for what does not exist or does not fit, and for a source that is named and is not there.
    """
    if asked.policy is not None and asked.policy.is_apart:
        if name is None:
            raise refused("table", "is required: tables apart are releases of their own", asked.policy.places)
        asked = replace(asked, policy=of_published(asked.policy, find_run(engine, name).table))
    asked.refuse()
    places = asked.policy.places if asked.policy else ""
    noted = find_run(engine, name or places)
    if asked.public:  # who has the release and the policy has no ledger
        noted = replace(noted, run=None)
    elif asked.policy is not None:
        found = auto_found(engine, places, asked.policy.require)
        asked = replace(asked, policy=asked.policy.requiring(found))
    with ExitStack() as stack:
        if asked.policy is not None and not asked.public:
            stack.enter_context(named_databases(engine, asked.policy.databases, asked.folder))
        if asked.policy is not None and asked.policy.tables:
            if noted.table.lower() != places.lower():
                raise refused("table", "is one table, and the policy names several", "name their run, or leave it out")
            yield _several(engine, listener, asked, asked.policy, noted)
            return
        table = resolve_source(engine, noted.table, Path(), "table")
        question, (source, why_not) = question_about(engine, table, asked), _source(engine, asked)
        asked, sources = _with_threshold(asked, question), None if source is None else {"": source}
        yield ReportSubject(engine, listener, question, asked, noted, why_not, {"": table}, sources)


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
    known = recorded_tables(engine, policy.places, policy.is_series, policy.knows_one)
    released = PublishedTables.open(engine, policy, asked.folder, known=known)
    asked = _with_threshold(asked, question)
    return TablesSubject(engine, listener, question, asked, noted, why_not, targets, sources, released)


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
    policy = settled_by(asked.policy, names)
    question = check_request(policy, folder=asked.folder, individual=asked.individual)
    ids = policy.released.class_ids_among(names)
    return with_people(engine, table, replace(question, class_column=next(iter(ids), None)), policy)
