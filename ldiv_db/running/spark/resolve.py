"""A policy held against a source of Spark's: by the code of every run, on an empty table of the same columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ldiv_db.algorithms.base import Algorithm
from ldiv_db.auditing.dialect_limits import refuse_dialect
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.policy import Examined
from ldiv_db.policy.problems import Problems
from ldiv_db.policy.resolve import Check, Findings, Resolved, resolve
from ldiv_db.requirements import Requirement
from ldiv_db.running.choices import make_algorithm
from ldiv_db.running.spark.source import SparkSource

#: What stands for the source where nothing of it is read.
_EMPTY = "source"
#: The most rows of a part where the policy does not say it: less than on one machine, as executors have less memory.
PART_ROWS = 1_000_000


@dataclass(frozen=True)
class SparkChoices:
    """A policy held against its source on Spark, and its algorithm; `names` are the columns that a run reads.

    It can be pickled: the policy names another source, as a frame is no use elsewhere.
    """

    policy: Policy
    resolved: Resolved
    algorithm: Algorithm
    names: tuple[str, ...]


def resolve_on_spark(
    engine: Engine, reading: Examined, source: SparkSource, folder: Path, judge_target: Check
) -> SparkChoices:
    """The policy held against its source; raises PolicyError with all that is wrong, and all that Spark is not for."""
    written = reading.policy
    if written is None:
        raise PolicyError(reading.problems)
    unfit = [*unsupported(written), *source.problems(written)]
    if unfit and any(problem.key in ("source", "key", "algorithm.name") for problem in unfit):
        raise PolicyError([*reading.problems, *unfit])
    empty = engine.load(_EMPTY, {column.name: column.type for column in source.columns}, [])
    part_rows = written.part_rows if "part_rows" in written.model_fields_set else PART_ROWS
    asked = written.model_copy(update={"source": empty.sql(), "part_rows": part_rows})
    algorithms: list[Algorithm] = []

    def judge_algorithm(found: Findings) -> None:
        algorithms.append(make_algorithm(found.policy))

    checks: Mapping[str, Check] = {"algorithm": judge_algorithm, "target": judge_target}
    problems = Problems(unfit)
    resolved = None
    with problems.collected():
        resolved = resolve(engine, replace(reading, policy=asked), folder, checks)
    if resolved is not None:
        with problems.collected():
            _refuse_unjudged(resolved)
    problems.refuse()
    assert resolved is not None  # noqa: S101 - there would be problems
    resolved = replace(resolved, source=replace(resolved.source, name=str(written.source)))
    read = [*(qi.column for qi in resolved.source.quasi_identifiers), *resolved.source.sensitive, *resolved.source.keep]
    return SparkChoices(asked, resolved, algorithms[0], tuple(column.name for column in read))


def _refuse_unjudged(resolved: Resolved) -> None:
    """Raise PolicyError for requirements that Spark's SQL cannot judge."""
    required = resolved.required
    wanted: dict[str, list[Requirement]] = {
        name: [spec.provisional(attribute) for spec in required.specs if spec.concerns(name)]
        for name, attribute in required.attributes.items()
    }
    refuse_dialect("spark", [Relation(("release",))], required.attributes, wanted)


def unsupported(policy: Policy) -> Iterator[Problem]:
    """What of a policy no run on Spark does, and what to do in its place."""
    on_duckdb = "run it on DuckDB, which reads Parquet, Delta and Iceberg"
    if policy.key is not None:
        yield Problem("key", "releases over time are not published on Spark", on_duckdb)
    if policy.decomposes:
        yield Problem("algorithm.name", f"{policy.algorithm.name} is not run on Spark", on_duckdb)
    if policy.individual is not None:
        yield Problem("individual", "is not kept apart on Spark", on_duckdb)
    if policy.weight is not None:
        yield Problem("weight", "Spark counts rows itself", "name the table of the rows, and leave `weight` out")
    if policy.databases:
        yield Problem("databases", "are DuckDB's to attach", "name a table of Spark's catalog")
    for name, setting in policy.sensitive.items():
        if setting.same:
            yield Problem(f"sensitive.{name}.same", "Spark has other letters and blanks", "fold them in a view")
