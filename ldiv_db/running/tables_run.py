"""From tables whose people are prepared to their release: classes of people, the rows of each table, and its draft."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from ldiv_db.algorithms.base import Plan
from ldiv_db.auditing.audit import require_good
from ldiv_db.auditing.tables import PublishedTable, audit_tables
from ldiv_db.database.context import Context
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier
from ldiv_db.policy.document import Policy
from ldiv_db.policy.schema import PERSON
from ldiv_db.policy.sensitive import smallest_class
from ldiv_db.policy.tables import named_in
from ldiv_db.publishing.destinations import destination_of_tables
from ldiv_db.publishing.draft import NewClasses, RunDraft
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.publishing.result import Result
from ldiv_db.publishing.tables_draft import PublicTable, TablesDraft
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.recoding.loss import Loss, TableLoss, loss_of_tables, measure_recoding, nothing_lost
from ldiv_db.recoding.recode import Recoding, keep_types, plan_recoding
from ldiv_db.recoding.stacked import Member
from ldiv_db.recoding.units import POSITION, Link, with_numbers
from ldiv_db.running.estimate import MEASURING, WRITING
from ldiv_db.running.remedies import remedied
from ldiv_db.running.run_spec import l_of
from ldiv_db.running.tables import MemberTable, PreparedTables, prepare_tables
from ldiv_db.solving.auto import Auto
from ldiv_db.solving.improve import LEAST
from ldiv_db.solving.people import plan_of_rows
from ldiv_db.solving.solve import PartwiseSolver


@dataclass(frozen=True)
class Planned:
    """A table that is published, its rows encoded, and what they are published as."""

    table: MemberTable
    encoded: Encoded
    recoding: Recoding

    def loss(self, engine: Engine) -> TableLoss:
        """What it loses."""
        axes, encoded, assigned = self.encoded.axes, self.encoded, self.recoding.assigned
        if axes:
            found: Loss = measure_recoding(engine, encoded, self.recoding, False)
        else:
            found = nothing_lost(encoded.rows_in, engine.count(assigned))
        return TableLoss(self.table.name, found, sum(axis.weight for axis in axes))


def work_out_tables(ready: PreparedTables, workers: int | None) -> tuple[Plan, list[int], list[Planned]]:
    """The plan of all people, the sizes of its classes, and for each table what is published of it."""
    task, units = ready.task, ready.units
    effort = ready.algorithm.effort if isinstance(ready.algorithm, Auto) else LEAST
    solver = PartwiseSolver(ready.opened.policy.part_rows, workers, effort)
    by_people = solver.plan(ready.algorithm, task)
    sizes = [rows for _, rows in task.engine.tally(by_people.assigned, "class_id")]
    plan = plan_of_rows(task.engine, units, by_people, task.wanted)
    whole = replace(task, encoded=units.rows)
    whole.refuse_left_out(units.rows.row_count - plan.row_count(task.engine))
    members = ready.stack.members
    planned = [_planned(ready, one, member, plan) for one, member in zip(ready.tables, members, strict=True)]
    numbered = with_numbers(
        task.engine, [(o.encoded, _links(o, m)) for o, m in zip(planned, members, strict=True)], ready.whose.secret
    )
    return plan, sizes, [replace(one, encoded=encoded) for one, encoded in zip(planned, numbered, strict=True)]


def _links(one: Planned, member: Member) -> list[Link]:
    """The links of a table: whose its rows are, or what rows', and what rows of others belong to."""
    spaces = [(member.parent or member.person, member.above), (member.key, member.number)]
    names = {column.alias: column.column for column in one.encoded.kept}
    return [
        Link(
            number,
            one.encoded.rows,
            one.recoding.assigned,
            column,
            space,
            Renamed(names[column], Identifier(f"n{number}")),
        )
        for number, (column, space) in enumerate(spaces, 2 * member.number)
        if column is not None
    ]


def _planned(ready: PreparedTables, one: MemberTable, member: Member, plan: Plan) -> Planned:
    """The rows of a table that are published, without the columns that only say whose they are."""
    engine, released, encoded = ready.task.engine, one.resolved.released, member.encoded
    own = ready.rows_of(member)
    assigned = engine.join(
        "assigned", plan.assigned, own, "row_id", left_columns=["class_id"], right_columns=[("own_id", "row_id")]
    )
    kept = [column for column in encoded.kept if column.column.name != PERSON]
    rows = encoded.rows
    if released.position is not None:
        rows = engine.join("rows", rows, own, ("row_id", "own_id"), right_columns=[("turn", POSITION.name)])
        kept.append(Renamed(Identifier(released.position), POSITION))
    encoded = replace(encoded, rows=rows, kept=tuple(kept))
    recoding = plan_recoding(engine, encoded, assigned, released.forms)
    return Planned(one, encoded, keep_types(engine, recoding, one.resolved.typed))


# -- the release ---------------------------------------------------------------------------------------


def publish_tables(engine: Engine, context: Context, policy: Policy, begun: float) -> Result:
    """Publish all tables of a policy as one release, or nothing of them; its work began at `begun`."""
    destination = destination_of_tables(engine, policy.targets, context.folder)
    ready = prepare_tables(engine, context, policy, True, destination.run_id)
    draft = draft_tables(ready, context, begun)
    context.listener.on_stage(WRITING)
    return draft.told(destination.publish(draft))


def draft_tables(ready: PreparedTables, context: Context, begun: float) -> TablesDraft:
    """The draft of all tables."""
    with remedied(ready.whose.by_others, is_running=True):
        plan, sizes, planned = work_out_tables(ready, context.workers)
    context.listener.on_stage(MEASURING)
    engine, opened = ready.task.engine, ready.opened
    losses = [one.loss(engine) for one in planned]
    algorithm, requirements = plan.algorithm or ready.algorithm.name, ready.task.requirements
    result = Result(
        run_id=ready.watch.run_id,
        algorithm=algorithm,
        source=opened.policy.reads,
        target=opened.policy.places,
        l=l_of(algorithm, requirements, plan.l),
        loss=loss_of_tables(losses, sizes),
        search=plan.search,
        seed=opened.policy.seed,
        versions=versions(),
        notes=tuple(dict.fromkeys([*ready.reasons, *plan.notes])),
        smallest_class=smallest_class(requirements),
        inferred=[found for one in ready.tables for found in one.resolved.inferred],
        earlier=ready.earlier,
        tables=losses,
    )
    both, tables = zip(planned, ready.stack.members, strict=True), opened.policy.tables

    def as_published(one: MemberTable, number: int) -> PublishedTable:
        return PublishedTable.of(one.name, number, tables, one.resolved.released, one.target)

    parts = [(_classes(ready, one), as_published(one.table, member.number)) for one, member in both]
    members = [(RunDraft(classes, ready.watch, result, begun), table) for classes, table in parts]
    draft = TablesDraft(parts[0][0], ready.watch, result, begun, members=members, wanted=ready.task.wanted)
    draft.public = [
        (PublicTable(rows, tables[name].keep, tables[name].target), ready.public[name])
        for name, rows in opened.public.items()
    ]
    return draft


def rehearse_tables(ready: PreparedTables) -> tuple[Result, list[PublishedTable]]:
    """Do all that a run does, with TEMP tables in place of the release; raises as a run does."""
    draft = draft_tables(ready, Context(), time.perf_counter())
    tables = [replace(table, rows=one.classes.table()) for one, table in draft.members]
    require_good(audit_tables(ready.task.engine, tables, draft.wanted))
    return draft.result, tables


def _classes(ready: PreparedTables, one: Planned) -> NewClasses:
    engine, wanted = ready.task.engine, ready.task.wanted
    own = {name: wanted.get(named_in(one.table.name, name), ()) for name in one.table.linked.table.sensitive}
    return NewClasses(engine, one.table.resolved, one.encoded, one.recoding, own, counts_people=True)
