"""`ldiv check` of a release of several tables: they are read and judged as by the run that published them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ldiv_db.auditing.audit import Audit, Watch
from ldiv_db.auditing.check import AuditRequest, check_request
from ldiv_db.auditing.kept import warn_of_release
from ldiv_db.auditing.subject import Subject
from ldiv_db.auditing.tables import PublishedTable, audit_tables, required_of_people
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one
from ldiv_db.database.errors import refuse
from ldiv_db.database.sources import resolve_source
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems, Sensitive
from ldiv_db.policy.reading import GivenRequirement, read_requirements, refuse_of_one_table
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.schema import members_of
from ldiv_db.policy.sensitive import absent_values
from ldiv_db.policy.tables import named_in
from ldiv_db.recoding.links import in_order
from ldiv_db.requirements import Attribute, Requirement

#: What a request says of one table.
_OF_ONE = (
    *("table", "qi", "sensitive", "class_column", "suppressed"),
    *("individual", "position", "sensitive_table", "group", "count"),
)


@dataclass(frozen=True)
class PublishedTables:
    """The published tables that belong to people, each after that which its rows belong to.

    `attributes` are their sensitive columns, by table and column, and `settings` what is said of these; `wanted` is
    what is required of each, and of all people under an empty name.
    """

    tables: Sequence[PublishedTable]
    attributes: Mapping[str, Attribute]
    settings: Mapping[str, Sensitive]
    wanted: Mapping[str, Sequence[Requirement]]


def open_published(engine: Engine, policy: Policy, folder: Path) -> PublishedTables:
    """The tables that a policy of several has published; raises PolicyError for those, or columns, that are not there.

    Also for requirements that lack what they need.
    """
    problems, tables = Problems(), list[PublishedTable]()
    attributes, wanted = dict[str, Attribute](), dict[str, list[Requirement]]()
    for number, (name, given) in enumerate(members_of(policy).items(), 1):
        with problems.collected(f"tables.{name}"):
            rows = resolve_source(engine, str(policy.tables[name].target), folder, "target")
            columns = columns_of(engine, rows)
            member = given.settled_by(column.name for column in columns)
            request = replace(check_request(member), folder=folder)
            table = PublishedTable.of(name, number, policy.tables, member.released, rows)
            refuse(missing_columns(engine, rows, list(_columns(table)), "published table"))
            found, required = request.requirements(engine, columns)
            with read_as_one(engine, rows, request.same) as read:
                absent_values(engine, required, {column: (read, column) for column in found})
            tables.append(table)
            attributes |= {named_in(name, c): replace(found[c], name=named_in(name, c)) for c in member.sensitive}
            wanted |= {named_in(name, c): required[c] for c in member.sensitive}
    problems.refuse()
    return PublishedTables(in_order(tables), attributes, policy.sensitive, required_of_people(policy.require, wanted))


def _columns(table: PublishedTable) -> list[tuple[str, str]]:
    """The columns of a published table, each with the key that names it."""
    links = {"parent" if table.above else "person": table.owner, "key": table.key, "order": table.position}
    named = [("quasi_identifiers", table.labels), ("sensitive", table.sensitive.values())]
    return [
        *((key, column.name) for key, column in links.items() if column),
        *((key, column.name) for key, columns in named for column in columns),
    ]


def with_requirements(policy: Policy, require: GivenRequirement | Iterable[GivenRequirement] | None) -> Policy:
    """The policy, or the same with other requirements where some are given; raises PolicyError for wrong ones."""
    if not require:
        return policy
    policy = policy.model_copy(update={"require": read_requirements(require)})
    refuse(problems_of(policy))
    return policy


def check_tables(engine: Engine, policy: Policy, asked: AuditRequest, watch: Watch | None = None) -> list[Audit]:
    """The audits of all published tables together, one a sensitive column of any, and one of people alone.

    They are read twice where that takes little time, or it is asked for. Raises PolicyError for what is asked of one
    table, and for what is not there; AuditError for rows that belong to nobody.
    """
    refuse_of_one_table(asked, *_OF_ONE)
    policy = with_requirements(policy, asked.require)
    beside = policy.path.parent if policy.path else Path()
    found = open_published(engine, policy, beside if asked.folder is None else Path(asked.folder))
    return audit_published(engine, policy, found, asked.twice or None, watch)


def audit_published(
    engine: Engine, policy: Policy, found: PublishedTables, twice: bool | None = None, watch: Watch | None = None
) -> list[Audit]:
    """The audits of published tables, with what is to be said of the columns that are kept."""
    audits = audit_tables(engine, found.tables, found.wanted, twice, watch)
    told = warn_of_tables(engine, policy, found.tables)
    return [replace(audits[0], warnings=(*audits[0].warnings, *told)), *audits[1:]]


def warn_of_tables(engine: Engine, policy: Policy, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """The warnings of the columns that are kept, each with its table."""
    for table in tables:
        person = None if table.above else table.owner.name
        subject = Subject(table.rows, [label.name for label in table.labels], person=person)
        sensitive, kept = [column.name for column in table.sensitive.values()], policy.tables[table.name].keep
        yield from (f"{table.name}: {warning}" for warning in warn_of_release(engine, subject, sensitive, kept))
