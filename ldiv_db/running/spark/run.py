"""The audit by Spark, of the release as it lies staged: the steps of every audit, carried over to its SQL.

A run on Spark: resolve on the driver, solve in executors, stage, audit by Spark, put into place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.auditing.audit import Audit, audit_table, require_good
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.addresses import MEMORY, address_of
from ldiv_db.database.attach import CATALOG, open_address
from ldiv_db.database.context import Listener, working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import LdivError, PolicyError
from ldiv_db.database.spark import SparkEngine, plainly, table_named
from ldiv_db.database.templates import Relation
from ldiv_db.policy.document import TARGET_FILES, Policy
from ldiv_db.policy.reading import GivenPolicy, load_policy
from ldiv_db.policy.resolve import Findings, Resolved
from ldiv_db.publishing.draft import require_rows
from ldiv_db.publishing.result import Result
from ldiv_db.requirements import Requirement
from ldiv_db.running.spark.divided import Solved
from ldiv_db.running.spark.ledger import FileLedger, Ledger, TableLedger
from ldiv_db.running.spark.resolve import SparkChoices, SparkSource, open_on_spark, resolve_on_spark
from ldiv_db.running.spark.rows import solve_there
from ldiv_db.running.spark.targets import SparkTarget, compare_columns, target_of


def audit_staged(
    engine: SparkEngine,
    resolved: Resolved,
    staged: Relation,
    wanted: Mapping[str, Sequence[Requirement]],
    expected: int,
    earlier_rows: int = 0,
    found: Sequence[Audit] = (),
    blanks: bool = False,
) -> list[Audit]:
    """The audits of the staged rows, of which `expected` are new and `earlier_rows` were there.

    `found` are audits of the same rows by those who made them, of which the warnings are taken; with `blanks` sensitive
    values may have been published as NULL. Raises AuditError if the release fails the policy or has lost rows.
    """
    released = resolved.released
    suppressed = "unknown" if blanks else resolved.suppressed
    subject = Subject(staged, released.identifying, released.class_ids, suppressed=suppressed)
    names, warnings = list(wanted), {audit.sensitive: audit.warnings for audit in found}
    audits = [
        replace(
            audit_table(engine, subject, name, own, [other for other in names if other != name], as_it_lies=True),
            warnings=tuple(warnings.get(name, ())),
        )
        for name, own in wanted.items()
    ]
    require_good(audits)
    for audit in audits:
        require_rows(audit.rows + audit.ignored_rows - earlier_rows, expected)
    return audits


#: The schema of the ledger, if nothing else is said.
SCHEMA = "ldiv"
_LEFT = "a run to this target did not end: what was left is removed, and the ledger says how far it came"


@dataclass(frozen=True)
class _Run:
    """The state that the steps of a run share: the session, the driver's own engine, and the choices that were made."""

    session: Any
    engine: Engine
    choices: SparkChoices
    source: SparkSource
    target: SparkTarget
    ledger: Ledger
    listener: Listener
    kl: bool
    show_values: bool


def run_on_spark(
    session: Any,
    policy: GivenPolicy,
    folder: str | Path = ".",
    listener: Listener | None = None,
    catalog: str | None = None,
    kl: bool = False,
    show_values: bool = False,
) -> Result:
    """Anonymize, audit and publish under `policy` in a session of Spark's; returns what was done.

    As `run`, but `catalog` is the schema of Spark's catalog in which the ledger's tables are, `ldiv` by default, or a
    DuckDB file, which may have taxonomies as well. Raises PolicyError, InfeasibleError, AuditError or DatabaseError,
    and then nothing was published.
    """
    start, listener, folder = time.perf_counter(), listener or Listener(), Path(folder)
    asked = load_policy(policy)
    with _driver(session, catalog, listener) as (engine, ledger):
        source = open_on_spark(session, asked.source, folder)
        targets: list[SparkTarget] = []

        def judge_target(found: Findings) -> None:
            targets.append(_checked_target(session, found.policy, folder))

        choices = resolve_on_spark(engine, asked, source, folder, judge_target)
        prepared = _Run(session, engine, choices, source, targets[0], ledger, listener, kl, show_values)
        return replace(_published(prepared), seconds=time.perf_counter() - start)


@contextmanager
def _driver(session: Any, catalog: str | None, listener: Listener | None) -> Iterator[tuple[Engine, Ledger]]:
    """The driver's own engine, which sees no rows, and the ledger."""
    file = Path(catalog) if catalog and Path(catalog).suffix.lower() in _database_files() else None
    with (
        open_address(address_of(MEMORY), catalog=file) as connection,
        working_engine(connection, listener, None if file is None else CATALOG) as engine,
    ):
        schema = table_named(catalog or SCHEMA, "--catalog") if file is None else None
        yield engine, FileLedger(engine) if schema is None else TableLedger(session, schema)


def _database_files() -> list[str]:
    return [ending for ending, form in TARGET_FILES.items() if form == "duckdb"]


def _checked_target(session: Any, policy: Policy, folder: Path) -> SparkTarget:
    target = target_of(session, policy.target, folder)
    if problems := target.problems():
        raise PolicyError(problems)
    return target


def _published(run: _Run) -> Result:
    """The run's release, solved, staged, audited, put into place and entered in the ledger."""
    left = run.target.settle()
    run.ledger.settle_left(run.target.name, left)
    if problems := run.target.problems():  # what a dead run had moved aside is there again
        raise PolicyError(problems)
    with ExitStack() as stack:
        solving = solve_there(run.session, run.engine, run.choices, run.source, run.listener, run.kl, run.show_values)
        solved = stack.enter_context(solving)
        result = solved.told.result
        run.listener.on_stage("writing and auditing the release")
        stack.callback(_discard, run.target, result.run_id)
        frame, earlier = _numbered_on(run, solved)
        run.target.stage(frame, result.run_id)
        before = run.ledger.earlier(result.source)
        result = replace(result, target=run.target.name, audits=_audits(run, solved, earlier), earlier=before)
        if left:
            result = replace(
                result, notes=(*result.notes, "what a run to this target left that did not end is removed")
            )
        _commit(run, result)
        return result


def _numbered_on(run: _Run, solved: Solved) -> tuple[Any, Any | None]:
    """The rows to be staged, and what they are appended to, if they are: class ids follow those that are there."""
    frame = solved.rows
    if run.choices.resolved.target.if_exists != "append" or not run.target.exists():
        return frame, None
    from pyspark.sql import functions  # noqa: PLC0415 - an extra

    earlier = run.target.current()
    types = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    if problems := compare_columns(types, earlier.schema.fields, run.target.name):
        raise PolicyError(problems)
    if run.choices.resolved.released.has_class_ids:
        with plainly("read the target"):
            last = earlier.agg(functions.max("class_id")).collect()[0][0] or 0
        frame = frame.withColumn("class_id", functions.col("class_id") + functions.lit(last))
    return frame, earlier


def _audits(run: _Run, solved: Solved, earlier: Any | None) -> Any:
    """The audits by Spark of what lies staged, with what it is appended to."""
    result, resolved = solved.told.result, run.choices.resolved
    staged = run.target.staged(result.run_id)
    engine = SparkEngine(run.session, run.listener.on_step)
    with engine.settled():
        try:
            before = 0 if earlier is None else earlier.count()
            table = engine.keep("staged", staged if earlier is None else earlier.unionAll(staged), kept=False)
            wanted, blanks = solved.told.wanted, bool(result.loss.cells_suppressed)
            rows = result.loss.rows_published
            return audit_staged(engine, resolved, table, wanted, rows, before, solved.told.audits, blanks)
        finally:
            engine.close_scratch()


def _commit(run: _Run, result: Result) -> None:
    """Put the release into place; the ledger says before and after how far it came."""
    run.ledger.enter(result)
    try:
        run.target.commit(result.run_id)
    except BaseException:
        with suppress(LdivError):  # the first error is the one to report
            run.ledger.settle(result, in_place=False)
        raise
    run.ledger.settle(result, in_place=True)


def _discard(target: SparkTarget, run_id: str) -> None:
    """Remove what was staged and not put into place, so far as that can be done still."""
    with suppress(LdivError):
        target.discard(run_id)
