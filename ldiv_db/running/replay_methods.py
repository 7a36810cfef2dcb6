"""Methods of releases, as an attacker replays them: of classes in one table, and of anatomised groups in two.

A method is the policy of a release held against the source that it is replayed on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Algorithm
from ldiv_db.database import catalog
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Context, Listener
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, refused
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.resolve import Resolved, resolve
from ldiv_db.policy.sources import GROUP_ID
from ldiv_db.publishing.ledger import release_seed, releases, seed_of
from ldiv_db.publishing.series_draft import ReleaseStart
from ldiv_db.publishing.series_target import ReleaseTables, SeriesTarget, is_there, series_target_of, sql_name_of
from ldiv_db.recoding.encode import Coding, read_source
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.recoding.labels import LabelAxis, as_labels
from ldiv_db.recoding.recode import PUBLISHED, ClassNumbers, Recoding, SpanColumn, keep_types, published_rows
from ldiv_db.running.classes import work_out
from ldiv_db.running.policy_algorithm import judge_algorithm
from ldiv_db.running.preparation import make_ready
from ldiv_db.running.release import first_start
from ldiv_db.running.release_classes import plan_classes
from ldiv_db.running.release_groups import plan_groups
from ldiv_db.running.run_spec import resolve_algorithm

#: The number of a row, which goes along with it wherever its values go.
_ROW_NO = Renamed(Identifier("row_no"), Identifier("row_no"))
_FOLDER = "running/replaying"
#: Columns of a source's copy that worlds give out: sensitive values, and what is kept, if that stands beside them.
_VALUES, _VALUES_AND_KEPT = "sw", "swk"


@dataclass(frozen=True)
class ReplaySubject:
    """A release whose method is asked for: its name, the table if it is one, and what the policy says of it.

    `labels` are the quasi-identifiers as they are published. Without their `numbered` order groups are told apart by
    what they hold.
    """

    engine: Engine
    folder: Path
    name: str
    table: Table | None
    policy: Policy
    labels: Sequence[LabelAxis] = ()
    numbered: bool = True


@dataclass(frozen=True)
class ComparedTable:
    """A table of a release, and the columns in which it is compared with the same table of another."""

    table: Table
    columns: Sequence[str]


@dataclass(frozen=True)
class MadeRelease:
    """The release that the method made of a world: rows (row_id, row_no, ...), their classes, and the tables.

    `assigned` is (row_id, `class_id`), `blanked` (class_id, code) are values of the first sensitive attribute that are
    published as NULL. Rows of classes with labels (class_id, label_rank, the columns `shown`) fit all
    classes whose labels cover them.
    """

    rows: Relation
    assigned: Relation
    class_id: str
    tables: Sequence[ComparedTable]
    labels: Relation | None = None
    shown: Sequence[SpanColumn] = ()
    blanked: Relation | None = None


@dataclass(frozen=True)
class NumberedPeople:
    """The source's rows: `relation` has their working columns, row_no and payload_no, `donors` a row a payload.

    `known` are the columns that the attacker knows of everybody, those that are told a world gives out anew.
    """

    relation: Relation
    donors: Relation
    known: Sequence[str]
    flow: EngineFlow

    @classmethod
    def of(cls, engine: Engine, snapshot: Relation, told: str, key: Renamed | None) -> NumberedPeople:
        """The rows of a source's copy; columns whose names begin with a letter of `told` are given out by worlds."""
        names = [column.name for column in columns_of(engine, snapshot)]
        known = [name for name in names if name[0] not in told]
        flow = EngineFlow(engine, _FOLDER, known=known, told=[name for name in names if name[0] in told])
        people = flow.step("people", "number_people", snapshot=snapshot, key=key)
        donors = engine.group("donors", people, "payload_no", row_no=("min", "row_no"))
        flow.know(donors=donors)
        return cls(people, donors, known, flow)

    def world(self, moves: Relation, number: int) -> Relation:
        """The source's copy as it would be in a world; `moves` (world_no, row_no, payload_no) say what is otherwise."""
        return self.flow.step("world", "list_world", moves=moves, world=number)


@dataclass
class Method(ABC):
    """A policy and its source, read once: its codes; it makes the release of any world, by any seed.

    `release` are the tables that were published.
    """

    subject: ReplaySubject
    resolved: Resolved
    people: NumberedPeople
    release: Sequence[ComparedTable]
    coding: Coding

    @property
    def engine(self) -> Engine:
        return self.subject.engine

    def coded(self, seed: int) -> Coding:
        """The codes by another seed."""
        return self.coding if seed == self.coding.source.seed else self.coding.reseeded(seed)

    @abstractmethod
    def make(self, world: Relation, seed: int) -> MadeRelease:
        """The release that the program makes of a world; raises InfeasibleError if there is none."""

    def gives_release(self, world: Relation, seed: int) -> bool:
        """True if the program makes of a world what was published."""
        try:
            return self.is_release(self.make(world, seed))
        except InfeasibleError:
            return False

    def is_release(self, made: MadeRelease) -> bool:
        """True if that is what was published."""
        if len(made.tables) != len(self.release):
            return False
        return not any(
            self.engine.scalar("publishing/count_unlike", one=one.table, other=other.table, columns=other.columns)
            for one, other in zip(made.tables, self.release, strict=True)
        )


def method_of(subject: ReplaySubject, seed: int) -> Method:
    """The method of the release, with the codes that `seed` gives; raises PolicyError if it cannot be replayed."""
    engine, policy = subject.engine, subject.policy.model_copy(update={"seed": seed})
    if policy.is_series:
        return _method_of_series(subject, policy)
    resolved, algorithm = resolve_algorithm(engine, policy, subject.folder)
    release, texts = _one_table(subject, resolved)
    coding = read_source(engine, resolved.source)
    people = NumberedPeople.of(engine, coding.snapshot, _VALUES_AND_KEPT, None)
    return RunMethod(subject, resolved, people, release, coding, texts, algorithm)


def seed_of_release(subject: ReplaySubject) -> int:
    """The seed that the policy was written with, or that the ledger has; raises PolicyError if neither has it."""
    engine, policy = subject.engine, subject.policy
    if "seed" in policy.model_fields_set:
        return policy.seed
    if policy.is_series:
        name = series_target_of(engine, policy.targets, policy.algorithm.name, subject.folder).name
        found = release_seed(engine, name, 1)
    else:
        found = seed_of(engine, str(policy.target))
    if found is None:
        what = "is needed: neither the policy nor the ledger has the seed of this release"
        raise refused("replay_seed", what, "the result of its run has it")
    return found


def _one_table(subject: ReplaySubject, resolved: Resolved) -> tuple[list[ComparedTable], bool]:
    """The release of one table, and whether all of it is text; raises PolicyError if it lacks a column."""
    assert subject.table is not None  # noqa: S101 - a release of one table is one
    names = resolved.released.all
    known = {column.name.lower() for column in columns_of(subject.engine, subject.table)}
    lacking = [name for name in names if name.lower() not in known]
    if lacking:
        raise refused("policy", f"{subject.name} is not a release of this policy: it lacks the column {lacking[0]}")
    table, form = subject.table, subject.table.form if isinstance(subject.table, FileRelation) else None
    if isinstance(table, FileRelation) and form is not None:
        table = replace(table, form=form.as_text(as_exported=True))
    table = as_labels(subject.engine, table, resolved.released.lists)
    return [ComparedTable(table, names)], form is not None


# -- classes -------------------------------------------------------------------------------------------


@dataclass
class ClassesMethod(Method):
    """A method whose release is one table."""

    #: Whether the release is a file of texts.
    texts: bool

    def shown(self, encoded: Encoded, recoding: Recoding, class_id: bool) -> MadeRelease:
        """The release of an encoded world, whose classes are recoded."""
        engine = self.engine
        numbers = ClassNumbers() if class_id else None
        with published_rows(engine, encoded, recoding, numbers, self.texts) as params:
            release = engine.materialise("release", PUBLISHED, **params)
            labels = engine.copy("labels", params["labels"])
        compared = [ComparedTable(release, self.resolved.released.all)]
        told = (labels, params["shown"], recoding.blanked)
        return MadeRelease(encoded.rows, recoding.assigned, "class_id", compared, *told)


@dataclass
class RunMethod(ClassesMethod):
    """The method of a run."""

    algorithm: Algorithm

    def make(self, world: Relation, seed: int) -> MadeRelease:
        encoded = self.coded(seed).encode(world, [_ROW_NO])
        ready = make_ready(self.engine, Listener(), self.resolved.by_seed(seed), self.algorithm, encoded)
        ready.algorithm.checked(ready.task)
        _, recoding = work_out(ready, 1)
        shown = keep_types(self.engine, recoding, self.resolved.typed)
        return self.shown(encoded, shown, self.resolved.released.has_class_ids)


@dataclass
class SeriesMethod(ClassesMethod):
    """The method of the first release of a series of classes."""

    start: ReleaseStart

    def make(self, world: Relation, seed: int) -> MadeRelease:
        start, coding = self.start.by_seed(seed), self.coded(seed)
        draft = plan_classes(start, Context(), coding, world, [_ROW_NO])
        return self.shown(draft.classes.encoded, draft.classes.recoding, True)


# -- groups --------------------------------------------------------------------------------------------


@dataclass
class GroupsMethod(Method):
    """A method with the source read once; groups are compared by their numbers too if they are `numbered`.

    Numbers are drawn: who lacks the seed is told nothing by them, and compares what groups hold.
    """

    start: ReleaseStart

    def make(self, world: Relation, seed: int) -> MadeRelease:
        draft = plan_groups(self.start.by_seed(seed), Context(), self.coded(seed), world, [_ROW_NO])
        made: dict[Table, Table] = {}

        def create(target: Table, template: str, **params: Any) -> None:
            made[target] = self.engine.materialise("release", template, **params)

        tables = draft.tables(self.start.target.prefix)
        draft.write_tables(tables, None, create)
        found = compared(self.subject, self.resolved, tables, made)
        return MadeRelease(draft.rows, draft.shown, "group_no", found)


def compared(
    subject: ReplaySubject, resolved: Resolved, tables: ReleaseTables, found: Mapping[Table, Table]
) -> list[ComparedTable]:
    """The tables of a release as they are compared; `found` says where they are."""
    released = resolved.released
    known = [*(qi.name for qi in resolved.source.quasi_identifiers), *released.keep]
    told, counts = released.sensitive, [tables.count] if tables.count else []
    marginals = [ComparedTable(found[tables.marginals], told)] if tables.marginals else []
    people, values = found[tables.people], found[tables.values]
    if subject.numbered:
        return [
            ComparedTable(people, [GROUP_ID, *known]),
            ComparedTable(values, [GROUP_ID, *told, *counts]),
            *marginals,
        ]
    flow = EngineFlow(subject.engine, _FOLDER, known=known, told=told, counts=counts)
    groups = flow.step("groups", "list_groups", people=people, values=values, group_id=GROUP_ID)
    return [ComparedTable(groups, ["shown"]), *marginals]


# -- series --------------------------------------------------------------------------------------------


def _method_of_series(subject: ReplaySubject, policy: Policy) -> Method:
    engine = subject.engine
    resolved = resolve(engine, policy, subject.folder, {"algorithm": judge_algorithm})
    if policy.target.file is not None:
        what = "a series in a file of its own cannot be replayed"
        raise refused("target.file", what, "copy its tables to the source's database, under the prefix")
    start = first_start(engine, resolved)
    tables = _first_tables(subject, start.target)
    coding = read_source(engine, start.source, keyed=True)
    people = NumberedPeople.of(engine, coding.snapshot, _VALUES if policy.decomposes else _VALUES_AND_KEPT, coding.key)
    if policy.decomposes:
        release = compared(subject, resolved, tables, {table: table for table in tables.all})
        return GroupsMethod(replace(subject, labels=()), resolved, people, release, coding, start)
    release, _ = _one_table(subject, resolved)
    return SeriesMethod(subject, resolved, people, release, coding, False, start)


def _first_tables(subject: ReplaySubject, target: SeriesTarget) -> ReleaseTables:
    """The tables of the only release of a series; raises PolicyError if there are more, or if another was named."""
    engine, prefix = subject.engine, target.prefix
    numbered = not target.one_table and is_there(engine, target.tables(prefix, 2).people)
    if numbered or len(releases(engine, target.name)) > 1:
        what = f"{target.name} has several releases, and each depends on those before"
        raise refused("replay", what, "only the first release of a series is replayed, by itself")
    tables = target.tables(prefix, 1)
    gone = [table for table in tables.plain.all if not is_there(engine, table)]
    if gone:
        raise refused(target.key, f"there is no table {sql_name_of(gone[0])}")
    named = catalog.named_table(subject.name, "table")
    own = [table for table in (prefix, *tables.all) if isinstance(table, Relation)]
    if not any(catalog.same_table(engine, named, table) for table in own):
        what = f"{subject.name} is not one of the tables of {target.name}, which the policy publishes"
        raise refused("table", what, f"name {sql_name_of(tables.people)}")
    with_marginals = tables.marginals is not None and is_there(engine, tables.marginals)
    return tables if with_marginals else tables.plain
