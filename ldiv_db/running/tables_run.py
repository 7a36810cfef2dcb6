"""From tables whose people are prepared to their release: classes of people, the rows of each table, and its draft."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from ldiv_db.algorithms.base import Plan
from ldiv_db.auditing.audit import require_good
from ldiv_db.auditing.kept import warn_of_kept
from ldiv_db.auditing.kept_across import JoinedTable, warn_across
from ldiv_db.auditing.published_table import PublishedTable
from ldiv_db.auditing.tables import audit_tables
from ldiv_db.database.context import Context
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase, rows_phrase
from ldiv_db.database.names import Identifier
from ldiv_db.database.queries import Where
from ldiv_db.database.stages import work_of
from ldiv_db.policy.schema import PERSON, content_of
from ldiv_db.policy.tables import BETWEEN, PolicyTable, as_one_name, named_in, numbers_as
from ldiv_db.policy.targets import Target
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.fingerprints import Fingerprint, Summaries, fingerprint_by, keyed
from ldiv_db.publishing.history import Published, Reading, Watch, held_against, new_key
from ldiv_db.publishing.result import Earlier, Result, Similarity
from ldiv_db.publishing.tables_draft import NewTables, TablesDraft
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.links import check_links, count_orphans
from ldiv_db.recoding.loss import TableLoss, loss_of_tables, measure_recoding
from ldiv_db.recoding.recode import Assignment, keep_types, plan_recoding
from ldiv_db.recoding.snapshot import read_columns
from ldiv_db.recoding.stacked import Member, stacked
from ldiv_db.recoding.units import POSITION, Link, Units, with_numbers
from ldiv_db.requirements import Attribute
from ldiv_db.running.classes import divergence, measure_similarity
from ldiv_db.running.estimate import MEASURING, PLACING, READING, estimate_run, expected, unplanned
from ldiv_db.running.preparation import told_of_lacking, told_of_lengths, told_of_values
from ldiv_db.running.remedies import remedied
from ldiv_db.running.rights import refuse_read_only
from ldiv_db.running.tables import (
    MemberTable,
    OpenedTables,
    People,
    PreparedTables,
    check_targets,
    encoded_tables,
    resolve_tables,
)
from ldiv_db.running.tables_known import recoded_by_people, told_of_known
from ldiv_db.running.tables_remedies import by_others
from ldiv_db.solving.auto import Auto
from ldiv_db.solving.improve import LEAST
from ldiv_db.solving.known_rows import KnownPlan, KnownTopDown
from ldiv_db.solving.levels import check_levels, told_of_given_up, told_of_places
from ldiv_db.solving.people import plan_of_rows
from ldiv_db.solving.solve import PartwiseSolver, planned_parts


def prepare_tables(opened: OpenedTables, publishes: bool) -> PreparedTables:
    """The tables encoded, and people in levels that can meet the policy; raises before any work if they cannot."""
    engine, context = opened.engine, opened.context
    context.listener.on_stage(READING)
    others = engine.snapshot.others
    tables: Sequence[MemberTable] = resolve_tables(opened)
    check_targets(opened, tables)
    if publishes:
        refuse_read_only(opened.destination)
    work = work_of(engine, *(one.relation for one in opened.tables.values()))
    context.listener.on_expected(unplanned(tables[0].algorithm.name, *work, PLACING))
    with engine.transaction() if others else nullcontext():  # what is read of all tables is of one moment
        if others:  # others may have written since
            check_links(engine, opened.tables)
            tables = resolve_tables(opened)
        whose, earlier, watch = _read_people(opened, tables, publishes)
    return prepared_people(whose, earlier, watch)


def prepared_people(whose: People, earlier: Earlier, watch: Watch) -> PreparedTables:
    """People in levels that can meet the policy; raises InfeasibleError if there are none."""
    opened, tables, stack = whose.opened, whose.tables, whose.stack
    engine, context = opened.engine, opened.context
    context.listener.on_stage(PLACING)
    with remedied(partial(by_others, whose)):
        task, algorithm, chosen = whose.planned()
        feasible = check_levels(algorithm, task, context.show_values)
    busiest = whose.let_go()
    cells = sum(one.encoded.row_count * (len(one.encoded.axes) or 1) for one in stack.members)
    work = [(name, max(amount, cells)) for name, amount in algorithm.stages(task, feasible)]
    context.listener.on_expected((stages := expected(work, cells, len(task.encoded.axes)))[1:])
    assert task.units is not None  # noqa: S101 - people are planned
    counts = dict(engine.tally(task.units.members, "member"))
    rows = {m.name: (m.encoded.row_count, counts.get(m.number, 0)) for m in stack.members}
    if isinstance(algorithm, KnownTopDown):
        shapes = told_of_known(algorithm, rows)
    else:
        shapes = [told_of_shapes(task.units, rows, opened.policy.is_series)]
        shapes += told_of_places(engine, stack.members, task.units, busiest)
    orphans = {one.name: count_orphans(engine, one.linked) for one in tables}
    planned = chosen, planned_parts(task, algorithm, opened.policy.part_rows), *shapes
    folder = opened.destination.folder
    return PreparedTables(
        whose=whose,
        task=task,
        algorithm=algorithm,
        feasibility=feasible,
        estimate=estimate_run(engine, [member.encoded for member in stack.members], folder, stages),
        reasons=[*filter(None, planned), *_told_of_tables(whose, orphans)],
        warnings=told_of_values(engine, attributes_of(tables), stack.encoded.told, task.wanted, of_bags=True),
        kept=list(_told_of_kept(engine, tables)),
        earlier=earlier,
        watch=watch,
        lost=opened.destination.foreseen,
        rows={name: (before + orphans[name], after) for name, (before, after) in rows.items()},
    )


def _told_of_tables(whose: People, orphans: Mapping[str, int]) -> Iterator[str]:
    """Lines on the tables and on what lies between them, whatever is planned; `orphans` are rows of nobody."""
    opened, tables, stack = whose.opened, whose.tables, whose.stack
    yield from (line for one in tables for line in one.resolved.warnings)
    yield from told_of_names(opened.policy.tables)
    yield from told_of_orphans(tables, orphans)
    yield from opened.references
    for one, member in zip(tables, stack.members, strict=True):
        yield from (f"{one.name}.{line}" for line in told_of_lengths(opened.engine, one.resolved, member.encoded.axes))
    yield from told_of_lacking(opened.engine, attributes_of(tables), stack.encoded.told, whose.required[1])


def _read_people(opened: OpenedTables, tables: Sequence[MemberTable], publishes: bool) -> tuple[People, Earlier, Watch]:
    """The rows of all tables, put together, and the earlier release that they are held against.

    Raises PolicyError where earlier releases forbid one that `publishes`.
    """
    engine, policy = opened.engine, opened.policy
    summaries = Summaries()
    earlier, watch = look_back_on_tables(opened, tables, opened.destination.run_id, summaries)
    if publishes:
        earlier.require_safe()
    seed = policy.seed if earlier.seed is None else earlier.seed
    secret = secret_of_release(opened, tables, seed, summaries)
    if earlier.seed is not None:
        opened = replace(opened, policy=policy.model_copy(update={"seed": seed}))
        tables = resolve_tables(opened)
    stack = stacked(engine, list(encoded_tables(engine, opened.context, tables)))
    return People(opened, tables, stack, secret), earlier, watch


def look_back_on_tables(
    opened: OpenedTables, tables: Sequence[MemberTable], run_id: str, summaries: Summaries
) -> tuple[Earlier, Watch]:
    """The earlier release that this one is held against; read of each table is what its own policy reads."""
    listed = Published.in_ledger(opened.engine)
    fingerprint = fingerprint_of(opened, tables, listed.key or new_key(), summaries)
    read = [Reading(one.resolved, one.rows, fingerprint.tables[one.name][1]) for one in tables]
    return held_against(opened.engine, listed, fingerprint, read, run_id)


def fingerprint_of(opened: OpenedTables, tables: Sequence[MemberTable], key: str, summaries: Summaries) -> Fingerprint:
    """The fingerprint of all that the release rests on beside the seed; rows are read with their own keys."""
    engine, policy, each = opened.engine, opened.policy, dict[str, tuple[str, Fingerprint]]()
    above = {one.linked.above for one in tables}
    for one in tables:
        table, source = one.linked.table, one.resolved.source
        names = {column.column.name for column in read_columns(source)} - {PERSON}
        names |= {*table.owner_parts, *(table.key_parts if one.name in above else ())}
        read = sorted({name.lower(): Identifier(one.linked.column(name).name) for name in names}.items())
        summary = summaries.of(engine, one.rows, [column for _, column in read])
        each[one.name] = source.name, fingerprint_by(engine, one.resolved, [name for name, _ in read], summary, key)
    kept = {name: sorted(policy.tables[name].keep) for name in opened.public}
    public = {
        name: keyed(key, summaries.of(engine, rows, [Identifier(column) for column in kept[name]]))
        for name, rows in opened.public.items()
        if kept[name]
    }
    return Fingerprint.of_tables(key, each, (content_of(policy), public))


def secret_of_release(opened: OpenedTables, tables: Sequence[MemberTable], seed: int, summaries: Summaries) -> str:
    """By what numbers of people and rows are drawn: files have those that tables would have."""
    anywhere = [replace(one, resolved=replace(one.resolved, target=Target())) for one in tables]
    return fingerprint_of(opened, anywhere, str(seed), summaries).secret


def attributes_of(tables: Sequence[MemberTable]) -> dict[str, Attribute]:
    """The sensitive columns of all tables, by their names after that of their table."""
    every = ((one.name, found) for one in tables for found in one.resolved.required.attributes.values())
    return {named_in(name, found.name): replace(found, name=named_in(name, found.name)) for name, found in every}


def _told_of_kept(engine: Engine, tables: Sequence[MemberTable]) -> Iterator[str]:
    """A line for each kept column that tells more than a class does, in its own table and in those that it joins."""
    for one in tables:
        yield from (f"{one.name}: {line}" for line in warn_of_kept(engine, one.resolved.source))
    above = {one.linked.above for one in tables}
    yield from warn_across(
        engine,
        [
            JoinedTable(
                one.name,
                one.linked.table,
                one.resolved.source.relation,
                one.linked.owner,
                one.linked.table.own_key if one.name in above else None,
            )
            for one in tables
        ],
    )


def told_of_names(tables: Mapping[str, PolicyTable]) -> Iterator[str]:
    """A line for each column of numbers that has another name in the release than in the source."""
    for (table, column), shown in numbers_as(tables).items():
        if shown not in (column, as_one_name(column)):
            of = (tables[table].above or "people") if column == tables[table].owner else "its rows"
            what = f"{table}.{column} is published as {shown}: it has numbers of {of}"
            yield f"{what}, and {column} of another table has others" if BETWEEN not in column else what


def told_of_orphans(tables: Sequence[MemberTable], orphans: Mapping[str, int]) -> Iterator[str]:
    """A line for each table of which so many rows belong to nobody, and are left out."""
    for linked in (one.linked for one in tables if orphans[one.name]):
        verbs = count_phrase(orphans[linked.name], "row belongs", "rows belong")
        of = f"no row of {linked.above}" if linked.above else "nobody who is known"
        yield f"{linked.name}: {verbs} to {of} ({linked.owner}), left out as `orphans` says"


def told_of_shapes(units: Units, rows: Mapping[str, tuple[int, int]], are_waiting: bool) -> str:
    """A line on how many rows people publish in how many ways, and on rows of each table that are left out, or wait."""
    people = sum(level.encoded.row_count for level in units.levels)
    ways = f"{count_phrase(people, 'person', 'people')} publish their rows in {len(units.levels):,} different numbers"
    told = [f"{rows_phrase(before - after)} of {name}" for name, (before, after) in rows.items() if after < before]
    why = "with them too few would be alike or meet the policy"
    left = "are left out of this night" if are_waiting else "are left out"
    out = f"; {', '.join(told)} {left}: {why}{'' if are_waiting else '; nothing is promised of them'}"
    return ways + (out + told_of_given_up(units) if told else "")


def work_out_tables(ready: PreparedTables, workers: int | None) -> tuple[Plan, list[int], list[NewClasses]]:
    """The plan of all people, the sizes of its classes, and for each table what is published of it."""
    task, whose = ready.task, ready.whose
    effort = ready.algorithm.effort if isinstance(ready.algorithm, Auto) else LEAST
    solver = PartwiseSolver(whose.opened.policy.part_rows, workers, effort)
    by_people = solver.plan(ready.algorithm, task)
    sizes = _sizes(task.engine, by_people)
    plan = by_people if isinstance(by_people, KnownPlan) else plan_of_rows(task, by_people)
    both = list(zip(whose.tables, whose.stack.members, strict=True))
    made = [_classes(ready, one, member, plan) for one, member in both]
    shown = numbers_as(whose.opened.policy.tables)
    linked = [(o.encoded, _links(o, table, m, shown)) for o, (table, m) in zip(made, both, strict=True)]
    numbered = with_numbers(task.engine, linked, whose.secret, whose.last)
    return plan, sizes, [replace(one, encoded=encoded) for one, encoded in zip(made, numbered, strict=True)]


def _sizes(engine: Engine, plan: Plan) -> list[int]:
    """How many people each class has: units, or whose its rows are."""
    if not isinstance(plan, KnownPlan):
        return [rows for _, rows in engine.tally(plan.assigned, "class_id")]
    owned = engine.join("owned", plan.assigned, plan.whose.lines, "row_id", right_columns=["person"])
    return [people for _, people in engine.tally(engine.count_groups("pairs", owned, "class_id", "person"), "class_id")]


def _links(one: NewClasses, of: MemberTable, member: Member, shown: Mapping[tuple[str, str], str]) -> list[Link]:
    """The links of a table, as they are `shown`: whose its rows are, or what rows', and by what others belong to it."""
    table, found = of.linked.table, list[Link]()
    both = ((member.parent or member.person, table.owner, member.above), (member.key, table.own_key, member.number))
    for number, (alias, column, space) in enumerate(both, 2 * member.number):
        if alias is not None and column is not None:
            called = Renamed(Identifier(shown[of.name, column]), Identifier(f"n{number}"))
            found.append(Link(number, one.encoded.rows, one.recoding.assigned, alias, space, called))
    return found


def _classes(ready: PreparedTables, one: MemberTable, member: Member, plan: Plan) -> NewClasses:
    """The rows of a table that are published, without the columns that only say whose they are."""
    engine, released, encoded = ready.task.engine, one.resolved.released, member.encoded
    where = [Where("member", member.number)]
    own = engine.select("own", ready.units.members, "row_id", "own_id", "turn", where=where)
    assigned = engine.join(
        "assigned", plan.assigned, own, "row_id", left_columns=["class_id"], right_columns=[("own_id", "row_id")]
    )
    kept = [column for column in encoded.kept if column.column.name != PERSON]
    rows = encoded.rows
    if released.position is not None:
        rows = engine.join("rows", rows, own, ("row_id", "own_id"), right_columns=[("turn", POSITION.name)])
        kept.append(Renamed(Identifier(released.position), POSITION))
    encoded = replace(encoded, rows=rows, kept=tuple(kept))
    given = ready.whose.stack.classes_of(engine, member, plan.classes, assigned) if plan.classes else None
    recoding = plan_recoding(engine, encoded, Assignment(assigned, classes=given), released.forms)
    if isinstance(plan, KnownPlan):
        recoding = recoded_by_people(plan, member, own, encoded, recoding, released.forms)
    if not ready.whose.opened.policy.is_series:  # later nights add to its columns
        recoding = keep_types(engine, recoding, one.resolved.typed)
    asked = {name: ready.task.wanted.get(named_in(one.name, name), ()) for name in one.linked.table.sensitive}
    return NewClasses(engine, one.resolved, encoded, recoding, asked, counts_people=True)


def loss_of(name: str, one: NewClasses, kl: bool) -> TableLoss:
    """What a table loses."""
    weight = sum(axis.weight for axis in one.encoded.axes)
    loss = measure_recoding(one.engine, one.encoded, one.recoding, False)
    return TableLoss(name, replace(loss, **divergence(one)) if kl else loss, weight)


def similarity_of(name: str, one: NewClasses) -> Iterator[Similarity]:
    """The similarity attack on a table, by who knows of everybody in which class of people they are."""
    attributes = one.resolved.required.attributes
    for attack in measure_similarity(one.engine, one.encoded, one.recoding, attributes, True):
        yield replace(attack, sensitive=named_in(name, attack.sensitive))


# -- the release ---------------------------------------------------------------------------------------


def draft_tables(ready: PreparedTables, context: Context, kl: bool, begun: float) -> TablesDraft:
    """The draft of all tables, with the KL divergence of each if it is asked for."""
    ready.estimate.require_room()
    with remedied(partial(by_others, ready.whose), is_running=True):
        plan, sizes, made = work_out_tables(ready, context.workers)
    context.listener.on_stage(MEASURING)
    named = {one.name: classes for one, classes in zip(ready.whose.tables, made, strict=True)}
    losses = [loss_of(*one, kl) for one in named.items()]
    result = ready.drafted(
        plan,
        loss_of_tables(losses, sizes),
        [*plan.notes, *ready.kept, *ready.estimate.notes],
        search=plan.search,
        similarity=[attack for one in named.items() for attack in similarity_of(*one)],
        tables=losses,
    )
    return TablesDraft(made[0], ready.watch, result, begun, several=new_tables(ready, named))


def new_tables(ready: PreparedTables, members: Mapping[str, NewClasses]) -> NewTables:
    """What is published of all tables."""
    opened = ready.whose.opened
    given = (ready.task.engine, opened.policy.tables, members, opened.public, ready.task.wanted)
    return NewTables(*given, last=ready.whose.last, knows_one=opened.policy.knows_one)


def rehearse_tables(ready: PreparedTables) -> tuple[Result, list[PublishedTable], Mapping[str, NewClasses]]:
    """Do all that a run does, with TEMP tables in place of the release, and the classes; raises as a run does."""
    draft = draft_tables(ready, Context(), False, time.perf_counter())
    several = draft.several
    tables = several.published({name: classes.table() for name, classes in several.members.items()})
    require_good(audit_tables(ready.task.engine, tables, several.wanted, knows_one=several.knows_one))
    return draft.result, tables, several.members
