"""The audit of several published tables together: people are told apart by what all their rows show, in all tables.

Each person is read as a sequence, of the rows of all tables in their places, or by one row as who knows it sees them.
By the first reading tables are joined one after the other, by the second each along its whole path from people; what
follows is the audit of one table, in whose place the rows of all stand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ldiv_db.auditing.audit import Audit, Judging, Observer, audit_table
from ldiv_db.auditing.centres import require_within
from ldiv_db.auditing.check import AUDITING, AuditRequest, check_request, request_problems
from ldiv_db.auditing.joined_tables import EveryRow, JoinedTables, with_column
from ldiv_db.auditing.kept import warn_of_release
from ldiv_db.auditing.kept_across import JoinedTable, warn_across
from ldiv_db.auditing.one_row import OneRow, require_of_people, warn_of_nearly_of_people
from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.auditing.set_sizes import require_few
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one
from ldiv_db.database.errors import refuse
from ldiv_db.database.names import Identifier
from ldiv_db.database.stages import timed, work_of
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.published import open_target, settled_by
from ldiv_db.policy.quasi_identifiers import Hierarchy, collect_hierarchies
from ldiv_db.policy.reading import GivenRequirement, read_requirements, said_of_one_table
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.schema import members_of
from ldiv_db.policy.sensitive import absent_values
from ldiv_db.policy.tables import named_in
from ldiv_db.recoding.labels import LabelAxis
from ldiv_db.recoding.links import in_order
from ldiv_db.requirements import ROWS_ALONE, Attribute, Requirement, RequirementSpec
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.making import Level


def required_of_people(
    specs: Sequence[RequirementSpec], wanted: Mapping[str, list[Requirement]]
) -> dict[str, list[Requirement]]:
    """What is `wanted` of each sensitive column, and of all people, who may have no value of any, what `specs` say.

    That is what they ask of rows alone, or else, as with `auto`, as many people of a class as its values take. A
    column's own requirements do not imply it if they ask for fewer, or read shares, which a person with several values
    may have alone: then it is asked of the column as well.
    """
    least = max([1, *(one.least_rows for own in wanted.values() for one in own)])
    of_rows = [spec for spec in specs if spec.kind.rows_only] or [RequirementSpec("k", least)]
    of_people = [(spec.settled({"k": max(2, least)}) if spec.is_auto else spec).resolve(None) for spec in of_rows]
    found = {}
    for name, own in wanted.items():
        implied = max([0, *(one.least_rows for one in own if one.on_people == "counts")])
        found[name] = [*own, *(one for one in of_people if one not in own and one.least_rows > implied)]
    return {**found, ROWS_ALONE.name: of_people}


@dataclass(frozen=True)
class Recorded:
    """What the ledger has of published tables: `ends` are the last numbers of all nights but the newest.

    `of_people` are the tables in which everybody had one row; None where nothing is recorded.
    """

    ends: Sequence[int] = ()
    of_people: Collection[str] | None = None


@dataclass(frozen=True)
class PublishedTables:
    """The published tables of a policy that belong to people, each after that which its rows belong to.

    `attributes` are their sensitive columns, by table and column, and `wanted` what is required of each, and of all
    people under an empty name.
    """

    engine: Engine
    policy: Policy
    tables: Sequence[PublishedTable]
    attributes: Mapping[str, Attribute]
    wanted: Mapping[str, Sequence[Requirement]]

    @classmethod
    def open(
        cls,
        engine: Engine,
        policy: Policy,
        folder: Path,
        require: GivenRequirement | Iterable[GivenRequirement] | None = None,
        known: Recorded = Recorded(),
    ) -> PublishedTables:
        """The tables that a policy of several has published, held to its requirements, or to those that are given.

        By the ledger it is `known` what they were. Raises PolicyError for tables or columns that are not there, and
        for requirements that lack what they need, AuditError where a table of people is none now.
        """
        if require:
            policy = policy.requiring(read_requirements(require))
            refuse(problems_of(policy))
        problems, tables = Problems(), list[PublishedTable]()
        attributes, wanted = dict[str, Attribute](), dict[str, list[Requirement]]()
        for number, (name, given) in enumerate(members_of(policy).items(), 1):
            with problems.collected(f"tables.{name}"):
                rows = open_target(engine, policy, policy.tables[name].target, folder)
                columns = columns_of(engine, rows)
                member = settled_by(given, (column.name for column in columns))
                request = replace(check_request(member), folder=folder)
                axes = axes_of(engine, given, folder) if policy.knows_one else ()
                table = PublishedTable.of(name, number, policy.tables, member.released, rows, axes)
                refuse(missing_columns(engine, rows, table.columns, "published table"))
                refuse(request_problems(request.require, request.sensitive))
                require_within(engine, rows, request.centres)
                require_few(engine, rows, request.most)
                found, required = request.requirements(engine, columns)
                with read_as_one(engine, rows, request.same) as read:
                    absent_values(engine, required, {column: (read, column) for column in found})
                by_nights = known.ends and (table.labels or not table.above)
                tables.append(table.by_nights(engine, known.ends) if by_nights else table)
                attributes |= {named_in(name, c): replace(found[c], name=named_in(name, c)) for c in member.sensitive}
                wanted |= {named_in(name, c): required[c] for c in member.sensitive}
        problems.refuse()
        if policy.knows_one and known.of_people is not None:
            require_of_people(engine, tables, known.of_people)
        return cls(engine, policy, in_order(tables), attributes, required_of_people(policy.require, wanted))

    def audits(self, twice: bool | None = None, watch: Observer | None = None) -> list[Audit]:
        """The audits of all tables together, with what is to be said of the columns that are kept."""
        judging = Judging(watch, twice=twice)
        first, *others = audit_tables(self.engine, self.tables, self.wanted, judging, self.policy.knows_one)
        return [replace(first, warnings=(*first.warnings, *self.warnings())), *others]

    def warnings(self) -> Iterator[str]:
        """The warnings of the columns that are kept, each with its table, and of tables that are nearly of people."""
        if self.policy.knows_one:
            yield from warn_of_nearly_of_people(self.engine, self.tables)
        for table in self.tables:
            person = None if table.above else table.owner.name
            subject = Subject(table.rows, [label.name for label in table.labels], person=person)
            sensitive, kept = [column.name for column in table.sensitive.values()], self.policy.tables[table.name].keep
            told = warn_of_release(self.engine, subject, sensitive, kept)
            yield from (f"{table.name}: {warning}" for warning in told)
        joined = ((self.policy.tables[t.name], t) for t in self.tables)
        yield from warn_across(
            self.engine,
            [JoinedTable(t.name, said, t.rows, t.owner.name, t.key.name if t.key else None) for said, t in joined],
        )

    @contextmanager
    def joined(self) -> Iterator[JoinedTables]:
        """The tables joined; all that is made of them is dropped at the end."""
        with self.engine.scope():
            yield JoinedTables.of(self.engine, self.tables, whole=self.policy.knows_one)


#: Of values as they are.
_FLAT = Hierarchy(levels=(Level(Identifier("level")),))


def axes_of(engine: Engine, policy: Policy, folder: Path) -> list[list[LabelAxis]]:
    """The quasi-identifiers of a release under a policy, each with the ways in which its labels may be read.

    What the policy leaves open is a taxonomy of its name in the catalog, ranges, or values as they are.
    """
    problems, known = Problems(), taxonomies.stored(engine)
    told = {name: qi for name, qi in policy.quasi_identifiers.items() if not qi.is_open}
    hierarchies = {name: [one] for name, one in collect_hierarchies(engine, told, folder, problems).items()}
    problems.refuse()
    for name in policy.quasi_identifiers.keys() - told.keys():
        named = [Hierarchy(taxonomies.fetch(engine, name))] if name in known else []
        hierarchies[name] = [*named, Hierarchy(), _FLAT]
    forms, columns = policy.released.forms, policy.released.columns_of
    return [
        [LabelAxis(name, tuple(map(Identifier, columns(name))), one, forms[name] == "set") for one in hierarchies[name]]
        for name in policy.quasi_identifiers
    ]


def check_tables(
    engine: Engine, policy: Policy, asked: AuditRequest, known: Recorded, watch: Observer | None = None
) -> list[Audit]:
    """The audits of all published tables together, one a sensitive column of any, and one of people alone.

    Nights are told apart, and tables of people, by what is `known` of them. Tables are read twice where that takes
    little time, or it is asked for. Raises PolicyError for what is asked of one table, and for what is not there;
    AuditError for rows of nobody, and where a table of people is none now.
    """
    refuse(said_of_one_table(asked))
    beside = policy.path.parent if policy.path else Path()
    folder = beside if asked.folder is None else Path(asked.folder)
    found = PublishedTables.open(engine, policy, folder, asked.require, known)
    asked.heard.on_expected([timed(AUDITING, *work_of(engine, *(table.rows for table in found.tables)))])
    return found.audits(asked.twice or None, watch)


def judged_of(wanted: Mapping[str, Sequence[Requirement]]) -> dict[str, Sequence[Requirement]]:
    """What is judged of each column of all that is `wanted`, but what is of all people, if there is more.

    People of a class have as many rows everywhere: what is asked of all holds for those with values.
    """
    of_all = wanted[ROWS_ALONE.name]
    return {name: [one for one in own if not name or one not in of_all] or own for name, own in wanted.items()}


#: A second reading where that takes little time.
CHEAPLY = Judging(twice=None)


def audit_tables(
    engine: Engine,
    tables: Sequence[PublishedTable],
    wanted: Mapping[str, Sequence[Requirement]],
    judging: Judging = CHEAPLY,
    knows_one: bool = False,
) -> list[Audit]:
    """The audits of all tables together, one a sensitive column of any, and of people alone under an empty name.

    Who is protected against `knows_one` row of the person sought, or all rows of everybody. Each table comes after that
    which its rows belong to. Raises AuditError if a row belongs to nobody, or who knows one row finds several labels.
    """
    audits, rows = [], {table.name: engine.count(table.rows) for table in tables}
    with engine.scope():
        joined = JoinedTables.of(engine, tables, whole=knows_one)
        reading = (OneRow if knows_one else EveryRow).of(joined)
        for name, requirements in judged_of(wanted).items():
            own = with_column(tables, name)
            if own is not None and not engine.count(joined.rows[own.name]):
                continue  # nobody has a row of that table
            with engine.scope():
                audit = _audit(reading, name, requirements, judging)
            audits.append(replace(audit, rows=rows[own.name] if own else sum(rows.values())))
    return audits


def _audit(reading: OneRow | EveryRow, name: str, requirements: Sequence[Requirement], judging: Judging) -> Audit:
    """The audit of a sensitive column, or of people alone: by all rows of people, and by the one that is known."""
    engine, of_rows = reading.joined.engine, [one for one in requirements if one.each == "row"]
    others = [one for one in requirements if one not in of_rows]
    audits = [audit_table(engine, reading.subject(name), name, others, judging=judging)] if others else []
    if of_rows and isinstance(reading, OneRow):
        audits.append(audit_table(engine, reading.of_rows(name), name, of_rows, judging=judging))
    verdicts = {verdict.requirement: verdict for audit in audits for verdict in audit.verdicts}
    return replace(audits[0], verdicts=tuple(verdicts[one] for one in requirements))
