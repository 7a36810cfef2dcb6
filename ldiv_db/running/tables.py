"""Several tables as one release: their links checked, their rows put together, and people told by what rows they have.

A table is read, encoded, recoded and written as one that is published alone; people are planned once, with the
quasi-identifiers of all tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.auditing.references import check_references
from ldiv_db.auditing.refusals import refuse_people
from ldiv_db.auditing.tables import judged_of, required_of_people
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Context, Listener
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, Remedy, refuse, refused
from ldiv_db.database.names import Identifier
from ldiv_db.display import Shown
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.published import open_each
from ldiv_db.policy.quasi_identifiers import column_problems
from ldiv_db.policy.resolve import Resolved, as_read
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.schema import PERSON, ROW, members_of, told_once
from ldiv_db.policy.sources import Frame
from ldiv_db.policy.tables import named_in, types_as
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.destinations import destination_of
from ldiv_db.publishing.fingerprints import keyed
from ldiv_db.publishing.history import Watch
from ldiv_db.publishing.refusals import TargetCheck
from ldiv_db.recoding.encode import Coding, read_source
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.links import LinkedTable, count_orphans, in_order, linked_rows, whole_tables
from ldiv_db.recoding.shapes import Shapes
from ldiv_db.recoding.stacked import ORDER, Member, Stack, bits_of
from ldiv_db.recoding.units import Units, asking_each, units_of
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.values import Named
from ldiv_db.running.foreseen import Prepared
from ldiv_db.running.policy_algorithm import make_algorithm
from ldiv_db.running.rights import require_rights
from ldiv_db.running.run_spec import resolve_algorithm, resolve_requirements
from ldiv_db.solving.known_rows import known_task
from ldiv_db.solving.level_search import LevelSearch


@dataclass(frozen=True)
class OpenedTables:
    """A policy of several tables, and the rows of each that belongs to people; `public` are those of the others."""

    engine: Engine
    context: Context
    policy: Policy
    tables: Mapping[str, LinkedTable]
    public: Mapping[str, Table]
    #: Where all tables go.
    destination: Destination
    #: What is to be said of columns that name people or rows, and are no links.
    references: Sequence[str]


def open_tables(engine: Engine, context: Context, policy: Policy) -> OpenedTables:
    """The tables of a policy, with links that are whole; raises PolicyError with all that is wrong."""
    refuse(problems_of(policy))
    if policy.is_apart:
        what = "is of tables by themselves, and this is about several that are linked"
        raise refused("individual.rows", what, "aligned")
    opened = open_each(engine, policy, context.folder, "source", policy.tables)
    linked = {
        name: LinkedTable.opened(engine, name, table, opened[name], in_order=not policy.knows_one)
        for name, table in policy.tables.items()
        if not table.public
    }
    linked = whole_tables(engine, linked)
    public = {name: opened[name] for name, table in policy.tables.items() if table.public}
    told = check_references(engine, linked, {name: (policy.tables[name], rows) for name, rows in public.items()})
    destination = destination_of(engine, policy.targets, context.folder)
    return OpenedTables(engine, context, policy, linked, public, destination, told)


@dataclass(frozen=True)
class MemberTable:
    """One of several tables that are published: its policy held against its rows with numbers in place of keys."""

    linked: LinkedTable
    resolved: Resolved
    algorithm: Algorithm
    #: The rows of its source, with their own keys.
    rows: Table

    @property
    def name(self) -> str:
        return self.linked.name


def resolve_tables(opened: OpenedTables) -> list[MemberTable]:
    """The policy of each table held against its rows, each after that which its rows belong to; raises PolicyError."""
    engine, folder, secret = opened.engine, opened.context.folder, keyed(str(opened.policy.seed), "links")
    row, problems, found = ROW if opened.policy.is_series else None, Problems(), list[MemberTable]()
    rows, policies = linked_rows(engine, opened.tables, secret, PERSON, row), members_of(opened.policy)
    for linked in in_order(opened.tables.values()):
        policy = policies[linked.name].with_source(Frame(rows[linked.name], str(linked.table.source)))
        with problems.collected(f"tables.{linked.name}"):
            resolved, algorithm = resolve_algorithm(engine, policy, folder)
            found.append(MemberTable(linked, resolved, algorithm, as_read(engine, policy, linked.rows)))
    refuse(told_once(problems.found))
    return found


def check_targets(opened: OpenedTables, tables: Sequence[MemberTable], is_later: bool = False) -> None:
    """Raise PolicyError unless each table may go where it is to, and all columns of public ones are classified.

    With `is_later` rows are added to what earlier nights published.
    """
    problems, later = Problems(), {"if_exists": "append"} if is_later else {}
    for one in tables:
        types = types_as(opened.policy.tables, one.name, one.resolved.released, one.resolved.columns)
        with problems.collected(f"tables.{one.name}"):
            adding = one.resolved.policy.target.model_copy(update=later)
            _check_target(opened, one.name, one.resolved.policy.model_copy(update={"target": adding}), types)
    for name, rows in opened.public.items():
        table = opened.policy.tables[name]
        target = table.target.model_copy(update={"if_exists": "replace"} if is_later else {})
        own = {"tables": {}, "target": target, "quasi_identifiers": {}, "sensitive": {}, "keep": table.keep}
        policy = opened.policy.model_copy(update={**own, "identifiers": table.identifiers, "individual": None})
        with problems.collected(f"tables.{name}"):
            columns = columns_of(opened.engine, rows)
            refuse(column_problems(policy, columns))
            _check_target(opened, name, policy, policy.released.types(columns))
    refuse(told_once(problems.found))


def _check_target(opened: OpenedTables, name: str, policy: Policy, types: Mapping[str, str]) -> None:
    """Raise PolicyError unless a table with columns of these types may go where it is to, whatever is read."""
    read: dict[str, Table] = {other: table.relation for other, table in opened.tables.items()} | {**opened.public}
    sources = [read.pop(name), *read.values()]
    TargetCheck(opened.destination, policy, opened.context.folder, sources, types, name).refuse()
    require_rights(opened.destination, policy, name)


#: What is required of each sensitive column, by its name after that of its table.
_Wanted = dict[str, list[Requirement]]
# -- people --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class People:
    """The rows of all tables, put together: what people are planned of.

    By the `secret` ties are broken, and numbers of people and rows drawn, which follow the `last` of earlier nights.
    """

    opened: OpenedTables
    tables: Sequence[MemberTable]
    stack: Stack
    secret: str
    last: int = 0

    @cached_property
    def required(self) -> tuple[_Wanted, list[Named]]:
        """What is required of them, and the values with thresholds of their own that no row has."""
        return self._required(self.opened.policy, self.tables)

    def planned(self) -> tuple[Task, Algorithm, str]:
        """The task that can meet what is required, its algorithm, and why it was chosen; raises InfeasibleError."""
        return self._planned(self.opened.policy, self.tables, self.required[0], self.opened.context.listener)

    def planned_by(self, policy: Policy) -> tuple[Algorithm, Task]:
        """The algorithm and the task by another policy of what was read; raises as `planned`, and PolicyError."""
        engine, policies = self.opened.engine, members_of(policy)
        tables = [
            replace(one, resolved=one.resolved.under(engine, own), algorithm=make_algorithm(own))
            for one in self.tables
            for own in (policies[one.name].with_source(one.resolved.policy.source),)
        ]
        task, algorithm, _ = self._planned(policy, tables, self._required(policy, tables)[0], Listener())
        return algorithm, task

    def undivided(self) -> Task | None:
        """The task of all people as units, in as few levels as there can be; None of nobody, or without labels."""
        policy, wanted = self.opened.policy, self.required[0]
        if not policy.knows_one:
            return self._search(policy, self.tables, wanted, Listener()).joined(self._shapes)
        units = units_of(self.opened.engine, replace(self.stack.encoded, axes=()), together=True)  # all are alike
        return replace(self._task(policy, self.tables, wanted, Listener()), encoded=units.encoded, units=units)

    def _planned(
        self, policy: Policy, tables: Sequence[MemberTable], wanted: _Wanted, listener: Listener
    ) -> tuple[Task, Algorithm, str]:
        if policy.knows_one:
            return *known_task(self._task(policy, tables, wanted, listener), self.stack, self.secret), ""
        return self._search(policy, tables, wanted, listener).found(self._shapes)

    @cached_property
    def _shapes(self) -> Shapes:
        return self._search(self.opened.policy, self.tables, self.required[0], Listener()).shapes(self.secret)

    def let_go(self) -> frozenset[int]:
        """Drop the rows of people in their places, which nobody asks for any more; whose busiest rows come first."""
        shapes: Shapes | None = vars(self).pop("_shapes", None)
        self.opened.engine.drop(*(shapes.at.relations if shapes else ()))
        return shapes.busiest if shapes else frozenset()

    def _required(self, policy: Policy, tables: Sequence[MemberTable]) -> tuple[_Wanted, list[Named]]:
        """What is required of each sensitive column's people, and of those alone who have no value of any."""
        wanted, absent = dict[str, list[Requirement]](), list[Named]()
        for one, member in zip(tables, self.stack.members, strict=True):
            units = self._people_of(member) if any(spec.is_auto for spec in policy.require) else None
            found, lacking = resolve_requirements(self.opened.engine, one.resolved.required, member.encoded, units)
            absent += lacking
            for axis in member.encoded.told:
                refuse_people(found[axis.column.name], one.resolved.suppressed)
                wanted[named_in(one.name, axis.column.name)] = found[axis.column.name]
        return required_of_people(policy.require, wanted), absent

    def _people_of(self, member: Member) -> Units:
        """The people who have rows of a table."""
        whose = self.stack.encoded.individual
        assert whose is not None  # noqa: S101 - the rows of all tables are people's
        owned = replace(member.encoded, individual=replace(whose, code=member.person))
        return units_of(self.opened.engine, owned, together=True)

    def _search(
        self, policy: Policy, tables: Sequence[MemberTable], wanted: _Wanted, listener: Listener
    ) -> LevelSearch:
        stack = replace(self.stack, encoded=asking_each(self.stack.encoded, policy.require))
        task = replace(self._task(policy, tables, wanted, listener), encoded=stack.encoded)
        return LevelSearch(task, tables[0].algorithm, stack)

    def _task(self, policy: Policy, tables: Sequence[MemberTable], wanted: _Wanted, listener: Listener) -> Task:
        """The task of all rows, before people are made of them."""
        every = [found for own in wanted.values() for found in own]
        forms = {named_in(t.name, name): form for t in tables for name, form in t.resolved.released.forms.items()}
        heard = (listener.on_progress, listener.on_search)
        given = (self.opened.engine, self.stack.encoded, every, policy.seed, *heard, wanted)
        return Task(*given, forms=forms, suppression=policy.left_out_at_most, stage=listener.on_stage)


@dataclass(frozen=True, repr=False, kw_only=True)
class PreparedTables(Shown, Prepared):
    """Several tables whose policy their people can meet: what runs next, with all tables encoded."""

    whose: People
    watch: Watch
    #: How many rows each table has, and how many of them are to be published.
    rows: Mapping[str, tuple[int, int]]
    #: Changes of the policy that leave out fewer rows; of a plan that leaves out many.
    fewer: Sequence[Remedy] = ()

    @property
    def replaces(self) -> bool:
        return all(target.if_exists == "replace" for target in self.whose.opened.policy.targets.values())

    @property
    def queries(self) -> Sequence[str]:
        return self.whose.opened.policy.preserve

    @property
    def destination(self) -> Destination:
        return self.whose.opened.destination

    @property
    def named(self) -> dict[str, Any]:
        policy = self.whose.opened.policy
        inferred = [found for one in self.whose.tables for found in one.resolved.inferred]
        return {"source": policy.reads, "target": policy.places, "inferred": inferred, "seed": policy.seed}

    @property
    def judged(self) -> Mapping[str, Sequence[Requirement]]:
        return judged_of(self.task.wanted)

    @property
    def notes(self) -> list[str]:
        return [*super().notes, *(f"leaves out fewer rows: {one}" for one in self.fewer)]

    @property
    def units(self) -> Units:
        assert self.task.units is not None  # noqa: S101 - people are planned
        return self.task.units

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON has it: keys of one table's, and the rows of each table."""
        rows, policy = self.rows, self.whose.opened.policy
        return {
            "source": policy.reads,
            "target": policy.places,
            "algorithm": self.algorithm.name,
            "people": self.whose.stack.people,
            "rows_in": sum(before for before, _ in rows.values()),
            "rows_suppressed": self.feasibility.rows_suppressed,
            "classes_made": self.feasibility.classes,
            "requirements": [
                {"name": one.name, "parameters": one.parameters, "sensitive": name or None}
                for name, own in self.task.wanted.items()
                for one in own
            ],
            "tables": [{"table": n, "rows_in": a, "rows_published": b} for n, (a, b) in rows.items()],
            "inferred": [found.as_dict() for found in self.named["inferred"]],
            "unchanged": self.earlier.unchanged,
            "needs": self.estimate.as_dict(),
            "fewer": [one.as_dict() for one in self.fewer],
            "notes": self.notes,
        }


class Unpublished(Protocol):
    """What encodes the rows of a table that no earlier night published, by the columns of its links."""

    def encoded(self, one: MemberTable, coding: Coding, own: Identifier | None, parent: Identifier | None) -> Encoded:
        """These rows of the copy that `coding` has, which is dropped."""


def encoded_tables(
    engine: Engine, context: Context, tables: Sequence[MemberTable], unpublished: Unpublished | None = None
) -> Iterator[Member]:
    """Each table encoded, with the numbers of its links among what it keeps; over time those `unpublished` alone."""
    numbers, before, parents = {"": 0}, 0, {one.linked.above for one in tables}
    for number, one in enumerate(tables, 1):
        source, linked = one.resolved.source, one.linked
        key = linked.table.own_key if one.name in parents else None
        columns = {column.name.lower(): column for column in one.resolved.columns}
        kept = {column.name.lower() for column in source.keep}
        links = [n for n in (linked.owner, key, PERSON if linked.above else None) if n and n.lower() not in kept]
        keep = (*source.keep, *(replace(columns[name.lower()], name=name) for name in links))
        row = columns[ROW] if unpublished else None
        bare = replace(source, individual=None, counts_people=False, together=False, keep=keep, key=row)
        coding = read_source(engine, bare, context.show_values, keyed=unpublished is not None)
        if coding.rows_in != engine.count(linked.rows):
            raise AuditError(f"{one.name}: {coding.rows_in:,} of {engine.count(linked.rows):,} rows are linked")
        alias = {column.column.name.lower(): column.alias for column in coding.kept}
        owner, own = alias[linked.owner.lower()], alias.get((key or "").lower())
        whose, parent = (alias[PERSON], owner) if linked.above else (owner, None)
        if unpublished:
            encoded = unpublished.encoded(one, coding, own, parent)
        else:
            encoded, orphans = coding.encode(), count_orphans(engine, linked)
            encoded = replace(encoded, rows_in=encoded.rows_in + orphans, left_out=encoded.left_out + orphans)
            engine.drop(coding.snapshot)
        order, bits = ORDER if source.order else None, bits_of(linked.table.rows, one.resolved.policy.require)
        yield Member(number, one.name, encoded, whose, own, parent, numbers[linked.above], order, before, bits)
        numbers[one.name] = number
        before += encoded.row_count
