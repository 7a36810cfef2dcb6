"""Variants rehearsed: all that a run does, audit included, with a TEMP table in place of the release.

The source is encoded once for all variants with the same rows. Rehearsals run one after another on the caller's
connection, or several at once on connections of their own, as threads: the database works without Python's lock, and
the shared codes stay in memory, where processes would need files. None depends on another, so neither numbers nor order
depend on how many run at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan
from ldiv_db.attacking.attacks import attack_published, attack_table, of_most_known
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.question import Knowledge
from ldiv_db.auditing.tables import PublishedTables
from ldiv_db.database.context import Context, Listener, working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, DatabaseError, InfeasibleError, LdivError, PolicyError
from ldiv_db.database.frames import another_connection, shared_memory
from ldiv_db.database.names import Relation
from ldiv_db.database.templates import Statement
from ldiv_db.measuring.measure import answers_of
from ldiv_db.policy.changes import over_earlier
from ldiv_db.policy.resolve import Resolved, Source
from ldiv_db.policy.tables import named_in
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.recoding.encode import Coding, read_source
from ldiv_db.recoding.groups import lost_by_group
from ldiv_db.recoding.loss import Loss
from ldiv_db.running.exploring.outcomes import Status, VariantOutcome, risk_of
from ldiv_db.running.exploring.variants import Variant
from ldiv_db.running.preparation import check_ready, make_ready
from ldiv_db.running.release import first_start
from ldiv_db.running.release_classes import plan_classes
from ldiv_db.running.run import rehearsed
from ldiv_db.running.run_spec import l_of, resolve_algorithm
from ldiv_db.running.tables import open_tables
from ldiv_db.running.tables_run import prepare_tables, rehearse_tables


@dataclass(frozen=True)
class Job:
    """A variant that can be rehearsed; `refused` says why it cannot, if so, and then it has no codes."""

    variant: Variant
    resolved: Resolved | None = None
    algorithm: Algorithm | None = None
    coding: Coding | None = None
    refused: str = ""
    show_values: bool = False

    @property
    def asks_a_view(self) -> bool:
        """True if queries are asked of a source that its own connection alone sees: a frame, or a query."""
        policy = self.variant.policy
        return bool(policy.preserve) and not isinstance(policy.source, str)

    def outcome(self, engine: Engine) -> VariantOutcome:
        """All that a run does, with a TEMP table in place of the release, and what attacks on that gain."""
        resolved, algorithm, coding = self.resolved, self.algorithm, self.coding
        assert resolved and algorithm and coding  # noqa: S101 - it was not refused
        made, loss, classes, release = self._made(engine, resolved, algorithm, replace(coding, engine=engine))
        name = made.algorithm or algorithm.name
        released, sensitive = resolved.released, resolved.policy.sensitive
        ids = next(iter(released.class_ids), None)
        columns = Columns(released.identifying, sensitive, resolved.required.specs, ids, folder=resolved.folder)
        risk = risk_of(attack_table(engine, release, columns, Knowledge()).attacks)
        answers = answers_of(engine, release, resolved, self.variant.policy.preserve)
        l = l_of(name, [one for own in classes.requirements.values() for one in own], made.l)
        groups = lost_by_group(engine, classes.encoded, classes.recoding, self.show_values)
        return VariantOutcome(self.variant, "done", "", name, l, loss, risk, answers, groups)

    def _made(
        self, engine: Engine, resolved: Resolved, algorithm: Algorithm, coding: Coding
    ) -> tuple[Plan, Loss | None, NewClasses, Relation]:
        """The plan, what it loses, its classes, and their rows; of a series the first release."""
        if self.variant.policy.is_series:
            draft = plan_classes(first_start(engine, resolved), Context(workers=1), coding, coding.snapshot)
            return draft.plan, draft.loss, draft.classes, draft.rehearsed()
        ready = make_ready(engine, Listener(), resolved, algorithm, coding.encode())
        check_ready(ready, show_values=False)
        made, loss, classes, release = rehearsed(ready, 1)
        return replace(made, algorithm=made.algorithm or ready.algorithm.name), loss, classes, release

    def moved(self, move: Callable[[Relation], Relation]) -> Job:
        """The same with its codes where `move` takes them."""
        return replace(self, coding=self.coding and self.coding.relocated(move))


@dataclass(frozen=True)
class TablesJob(Job):
    """A variant of several tables, whose files lie in `folder`: people are put together anew under each."""

    folder: Path = Path()

    @property
    def asks_a_view(self) -> bool:
        """True, as its sources are opened again."""
        return True

    def outcome(self, engine: Engine) -> VariantOutcome:
        """All that a run does, with TEMP tables in place of the release, and what who knows all tables learns."""
        policy = over_earlier(self.variant.policy)
        ready = prepare_tables(open_tables(engine, Context(folder=self.folder), policy), publishes=False)
        made, tables, classes = rehearse_tables(ready)
        attributes = {
            named_in(one.name, name): attribute
            for one in ready.whose.tables
            for name, attribute in one.resolved.required.attributes.items()
            if name
        }
        published = PublishedTables(engine, policy, tables, attributes, ready.task.wanted)
        found = attack_published(published, Knowledge())
        risk = risk_of((found if policy.knows_one else of_most_known(found)).attacks)
        groups = tuple(
            replace(group, column=named_in(one.name, group.column))
            for one, member in zip(ready.whose.tables, ready.whose.stack.members, strict=True)  # with rows left out
            for group in lost_by_group(engine, member.encoded, classes[one.name].recoding, self.show_values)
        )
        return VariantOutcome(self.variant, "done", "", made.algorithm, made.l, made.loss, risk, groups=groups)


class Codes:
    """The codes of a source, which is read once for all variants that have the same rows."""

    def __init__(self, engine: Engine, show_values: bool = False):
        self._engine = engine
        self.show_values = show_values
        self._read: dict[tuple[str, ...], Coding] = {}

    def of(self, source: Source) -> Coding:
        """The codes of the source as it generalises; the first that is asked for has all columns of the others."""
        # Where a NULL leaves out its row, rows depend on which columns are quasi-identifiers.
        names = () if source.nulls == "value" else tuple(qi.name for qi in source.quasi_identifiers)
        if names not in self._read:
            is_over_time = source.key is not None
            shown = self.show_values
            self._read[names] = read_source(self._engine, source, shown, not is_over_time, is_over_time)
        return self._read[names].generalising(source)


def job_of(engine: Engine, variant: Variant, folder: Path, codes: Codes) -> Job:
    """The variant ready to be rehearsed, or refused with the reason."""
    try:
        resolved, algorithm = resolve_algorithm(engine, variant.policy, folder)
        return Job(variant, resolved, algorithm, codes.of(resolved.source), show_values=codes.show_values)
    except PolicyError as error:
        return Job(variant, refused=error.message)


#: What the errors of a rehearsal are called.
_STATUS: Mapping[type[LdivError], Status] = {
    InfeasibleError: "infeasible",
    PolicyError: "refused",
    AuditError: "failed",
    DatabaseError: "error",
}

#: How a line begins that says how to have values named.
_HINT = "--show-values"


def rehearse(job: Job, connection: Any, listener: Listener) -> VariantOutcome:
    """Run the variant on that connection, leave nothing behind and return its outcome; errors are outcomes."""
    if job.refused:
        return VariantOutcome(job.variant, "refused", job.refused)
    try:
        with working_engine(connection, listener) as engine:
            return job.outcome(engine)
    except LdivError as error:
        found = [word for kind, word in _STATUS.items() if isinstance(error, kind)]
        status: Status = found[0] if found else "error"
        return VariantOutcome(job.variant, status, _shortly(error, status))


def _shortly(error: LdivError, status: Status) -> str:
    """The error's message; of the database's its first line, without the statement.

    It is for a page, so no value is named, and no hint says how.
    """
    lines = error.message.splitlines()
    return lines[0] if status == "error" else "\n".join(line for line in lines if not line.startswith(_HINT))


#: Seconds between two attempts to stop a statement.
_PAUSE = 0.05


def in_turn(engine: Engine, jobs: Sequence[Job]) -> Generator[VariantOutcome]:
    """The outcomes, each as soon as it is there."""
    for job in jobs:
        yield rehearse(job, engine.connection, Listener())


def side_by_side(engine: Engine, jobs: Sequence[Job], workers: int) -> Generator[VariantOutcome]:
    """The same in the order in which they end; on close what is under way is stopped."""
    with ExitStack() as stack:
        move = cache(stack.enter_context(shared_memory(engine)))
        todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            todo.put(job.moved(move))
        connections = [stack.enter_context(another_connection(engine)) for _ in range(min(workers, len(jobs)))]
        team = _WorkerThreads(todo)
        stack.callback(team.stop)  # before connections are closed
        for connection in connections:
            team.start(connection)
        for _ in jobs:
            yield team.next()


class _WorkerThreads:
    def __init__(self, todo: queue.SimpleQueue[Job]):
        self._todo = todo
        self._done: queue.SimpleQueue[VariantOutcome | BaseException] = queue.SimpleQueue()
        self._stopped = threading.Event()
        self._members: list[tuple[threading.Thread, Any]] = []

    def start(self, connection: Any) -> None:
        thread = threading.Thread(target=self._work, args=[connection], daemon=True)
        self._members.append((thread, connection))
        thread.start()

    def next(self) -> VariantOutcome:
        """The next outcome; raises what ended a thread."""
        found = self._done.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def stop(self) -> None:
        """End all threads, in the middle of a statement too; another Ctrl-C meanwhile asks for nothing more."""
        self._stopped.set()
        for thread, connection in self._members:
            while thread.is_alive():
                with suppress(KeyboardInterrupt):
                    connection.interrupt()
                    thread.join(_PAUSE)

    def _work(self, connection: Any) -> None:
        try:
            while not self._stopped.is_set():
                self._done.put(rehearse(self._todo.get_nowait(), connection, Listener(on_statement=self._check)))
        except queue.Empty:
            return
        except BaseException as error:
            self._done.put(error)

    def _check(self, statement: Statement) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
