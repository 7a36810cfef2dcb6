"""`ldiv explore`: which l, which algorithm, which column costs most; nothing is published."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from ldiv_db.database import interrupts
from ldiv_db.database.attach import named_databases, takes_database
from ldiv_db.database.context import Context, Listener, working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, nearest, refuse
from ldiv_db.database.given_queries import EXAMPLE
from ldiv_db.database.queries import Step
from ldiv_db.database.requests import asks
from ldiv_db.database.stages import timed
from ldiv_db.policy.document import Policy
from ldiv_db.policy.reading import load_policy, said_of_one_table
from ldiv_db.policy.resolve import QuasiColumn
from ldiv_db.policy.rules import problems_of
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.snapshot import bounds_of
from ldiv_db.running.exploring.outcomes import Exploration, VariantOutcome
from ldiv_db.running.exploring.question import ExploreRequest, Objective
from ldiv_db.running.exploring.rehearsal import Codes, Job, TablesJob, in_turn, job_of, side_by_side
from ldiv_db.running.exploring.variants import coarser_by_one, list_variants
from ldiv_db.running.run_spec import resolve_algorithm
from ldiv_db.running.tables import open_tables
from ldiv_db.solving.choose import WORK

#: What is shown of variants.
TRYING = "trying variants"
#: The work of a rehearsal by algorithm, in that of the quickest; of those that were not measured.
_SEVERAL, _OTHER = 8, 4


@takes_database(read_only=True)
@asks(ExploreRequest)
def explore(connection: Any, request: ExploreRequest) -> Exploration:
    """The risk-utility map of a policy: variants of it, with what each would lose and reveal.

    Requirements take each `l` in turn (the p of `p_sensitive`) and each `k`, under each of `algorithms`; with nothing
    to vary, l is 2 to 7. `vary` may hold "columns" (leave out each quasi-identifier in turn) and "taxonomy" (each with
    one level fewer). Each largest risk in `risk` (0.09, or "1/11") replaces the policy's; `least` has what loses least
    within each. `by="utility"` compares variants by the error of the policy's `preserve` queries, or without any of
    counts over two columns. `workers` try variants on connections of their own; there is one inside an open
    transaction, and for a frame or a query.

    After Ctrl-C the Exploration has what was done, and `interrupted` is true. A variant that cannot be met is an
    outcome with its reason.
    """
    start = time.perf_counter()
    asked, base = request.settled, load_policy(request.policy)
    refuse(problems_of(base) or [*_problems(base, asked), *(said_of_one_table(asked) if base.tables else ())])
    document = _document(request.policy if base.path is None else base.written)
    where, listener = Path(asked.folder), asked.heard
    working = working_engine(connection, listener, asked.catalog)
    with working as engine, named_databases(engine, base.databases, where):
        listener.on_stage("reading the source")
        jobs, source, rows, seeded = (_of_several if base.tables else _of_one)(engine, base, asked, where)
        cells = rows * (len(base.quasi_identifiers) or 1)
        outcomes, interrupted = _rehearse_all(engine, listener, asked.workers, jobs, cells)
    return Exploration(
        source=source,
        rows=rows,
        columns=tuple(base.quasi_identifiers),
        sensitive=tuple(base.sensitive),
        outcomes=outcomes,
        seed_is_written=seeded,
        interrupted=interrupted,
        seconds=time.perf_counter() - start,
        document=document,
        of_people=base.counts_people and not base.tables,
        by=asked.by,
    )


def _of_one(engine: Engine, base: Policy, asked: ExploreRequest, folder: Path) -> tuple[Sequence[Job], str, int, bool]:
    """The variants of one table, which is read once; its name, its rows, and whether the policy says the seed."""
    resolved, _ = resolve_algorithm(engine, base, folder)
    codes = Codes(engine, asked.show_values)
    coding = codes.of(resolved.source)
    variants = list_variants(resolved.policy, asked, lambda: coarser_by_one(resolved, _bounds(engine, coding)))
    jobs = [job_of(engine, variant, folder, codes) for variant in variants]
    return jobs, resolved.source.name, coding.rows_in, resolved.seed_is_written


def _of_several(
    engine: Engine, base: Policy, asked: ExploreRequest, folder: Path
) -> tuple[Sequence[Job], str, int, bool]:
    """The same of several tables, with the rows of all that belong to people."""
    opened = open_tables(engine, Context(folder=folder), base)
    rows = sum(engine.count(one.relation) for one in opened.tables.values())
    jobs = [
        TablesJob(variant, show_values=asked.show_values, folder=folder)
        for variant in list_variants(base, asked, lambda: ())
    ]
    return jobs, opened.policy.reads, rows, "seed" in base.model_fields_set


def _problems(policy: Policy, asked: ExploreRequest) -> Iterator[Problem]:
    by, workers = asked.by, asked.workers
    if policy.decomposes:
        what = f"{policy.algorithm.name} publishes groups, whose losses are of another kind"
        yield Problem("algorithm.name", what, "explore classes, by another algorithm")
    if by not in get_args(Objective):
        yield Problem("by", f"{by!r} is not an objective", nearest(by, get_args(Objective)))
    elif by == "utility" and not policy.preserve and len([*policy.quasi_identifiers, *policy.sensitive]) < 2:
        what = "utility is measured by counts over two columns, and the policy has only one"
        yield Problem("by", what, f"preserve: [{EXAMPLE}]")
    if workers is not None and workers < 1:
        yield Problem("workers", f"takes a whole number from 1, not {workers!r}")


def _bounds(engine: Engine, coding: Coding) -> Any:
    codes = {axis.name: axis.code for axis in coding.axes}

    def bounds(column: QuasiColumn) -> tuple[float, float]:
        smallest, largest = bounds_of(engine, coding.snapshot, codes[column.name], column.column)
        return float(smallest), float(largest)

    return bounds


def _rehearse_all(
    engine: Engine, listener: Listener, workers: int | None, jobs: Sequence[Job], cells: int
) -> tuple[list[VariantOutcome], bool]:
    """The outcomes by number, and whether Ctrl-C left some of them out; those that take longest begin first."""
    in_order = sorted(jobs, key=_work_of, reverse=True)
    alone = engine.in_transaction() or any(job.asks_a_view for job in jobs)
    most = 1 if alone else workers or processors()
    found: dict[int, VariantOutcome] = {}
    listener.on_expected([timed(TRYING, cells * sum(map(_work_of, jobs)))])
    listener.on_stage(TRYING)
    tell = _progress_reporter(jobs, listener)
    try:
        with closing(in_turn(engine, in_order) if most == 1 else side_by_side(engine, in_order, most)) as running:
            for outcome in running:
                found[outcome.variant.number] = outcome
                tell(outcome)
    except KeyboardInterrupt:
        _settle_interrupt()
    left = [VariantOutcome(job.variant, "interrupted", "Ctrl-C came first") for job in jobs]
    return [found.get(one.variant.number, one) for one in left], len(found) < len(jobs)


def _progress_reporter(jobs: Sequence[Job], listener: Listener) -> Callable[[VariantOutcome], None]:
    """A function that tells the listener after each outcome how much of the work is done."""
    left = {job.variant.number: _work_of(job) for job in jobs}
    total = sum(left.values())

    def tell(outcome: VariantOutcome) -> None:
        del left[outcome.variant.number]
        listener.on_search(f"{len(jobs) - len(left):,} of {len(jobs):,} done")
        listener.on_progress(total - sum(left.values()), total)
        if listener.on_step:
            listener.on_step(Step(outcome.variant.label, outcome.loss.rows_published if outcome.loss else 0, 0.0))

    return tell


def _settle_interrupt() -> None:
    """Take Ctrl-C as heard; its exception may still be on the way, as threads and the database tell of it as well."""
    while True:
        try:
            interrupts.settle()
        except KeyboardInterrupt:
            continue
        return


def _work_of(job: Job) -> int:
    """About how long a rehearsal takes, in the time of the quickest."""
    if job.refused:
        return 0
    name = job.variant.policy.algorithm.name
    return _SEVERAL if name == "auto" else WORK.get(name, _OTHER)


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _document(written: Any) -> Mapping[str, Any] | None:
    if not isinstance(written, Mapping):
        return None
    tables = (written.get("tables") or {"": written}).values()
    plain = all(isinstance(one, Mapping) and isinstance(one.get("source"), str | Mapping) for one in tables)
    return written if plain else None
