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
from ldiv_db.database.context import Listener, working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase, nearest, refuse
from ldiv_db.database.given_queries import EXAMPLE
from ldiv_db.database.queries import Step
from ldiv_db.database.requests import asks
from ldiv_db.policy.document import Policy
from ldiv_db.policy.reading import load_policy, of_one_table
from ldiv_db.policy.resolve import QuasiColumn
from ldiv_db.policy.rules import problems_of
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.snapshot import bounds_of
from ldiv_db.running.exploring.outcomes import Exploration, VariantOutcome
from ldiv_db.running.exploring.question import ExploreRequest, Objective
from ldiv_db.running.exploring.rehearsal import Codes, Job, in_turn, job_of, side_by_side
from ldiv_db.running.exploring.variants import list_variants
from ldiv_db.running.run_spec import resolve_algorithm
from ldiv_db.solving.choose import WORK

#: The work of a rehearsal by algorithm, in that of the quickest; of those that were not measured.
_SEVERAL, _OTHER = 8, 4
_SEVERAL_TABLES = "variants share one coded table, and people of several are put together anew under each policy"


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
    asked, base = request.settled, of_one_table(load_policy(request.policy), _SEVERAL_TABLES)
    refuse(problems_of(base) or _problems(base, asked.workers, asked.by))
    document = _document(request.policy if base.path is None else base.written)
    where, listener = Path(asked.folder), asked.listener or Listener()
    working = working_engine(connection, listener, asked.catalog)
    with working as engine, named_databases(engine, base.databases, where):
        listener.on_stage("reading the source")
        resolved, _ = resolve_algorithm(engine, base, where)
        codes = Codes(engine, asked.show_values)
        coding = codes.of(resolved.source)
        variants = list_variants(resolved, asked, _bounds(engine, coding))
        jobs = [job_of(engine, variant, where, codes) for variant in variants]
        outcomes, interrupted = _rehearse_all(engine, listener, asked.workers, jobs)
    return Exploration(
        source=resolved.source.name,
        rows=coding.rows_in,
        columns=tuple(base.quasi_identifiers),
        sensitive=tuple(base.sensitive),
        outcomes=outcomes,
        seed_is_written=resolved.seed_is_written,
        interrupted=interrupted,
        seconds=time.perf_counter() - start,
        document=document,
        of_people=base.counts_people,
        by=asked.by,
    )


def _problems(policy: Policy, workers: int | None, by: str) -> Iterator[Problem]:
    if policy.is_series:
        what = f"{policy.algorithm.name} publishes release by release, which is not explored"
        yield Problem("algorithm.name", what, "explore one release, without a key")
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
    engine: Engine, listener: Listener, workers: int | None, jobs: Sequence[Job]
) -> tuple[list[VariantOutcome], bool]:
    """The outcomes by number, and whether Ctrl-C left some of them out; those that take longest begin first."""
    in_order = sorted(jobs, key=_work_of, reverse=True)
    alone = engine.in_transaction() or any(job.asks_a_view for job in jobs)
    most = 1 if alone else workers or processors()
    found: dict[int, VariantOutcome] = {}
    listener.on_stage(f"trying {count_phrase(len(jobs), 'variant', 'variants')}")
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
        listener.on_search(f"{len(jobs) - len(left):,} done")
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
    plain = isinstance(written, Mapping) and isinstance(written.get("source"), str | Mapping)
    return written if plain else None
