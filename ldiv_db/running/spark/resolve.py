"""The session of Spark's that the environment says. Nothing else of ours makes one.

The source of a run on Spark: a table, view, path, query or frame, and what its columns are in our own types.

A policy held against a source of Spark's: by the code of every run, on an empty table of the same columns.

The columns of a release as Spark has them.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Algorithm
from ldiv_db.auditing.statement import refuse_dialect
from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.spark import plainly, sentence, shown, type_of
from ldiv_db.database.templates import Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.release_columns import columns_as
from ldiv_db.policy.resolve import Check, Findings, Resolved, resolve
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sources import Frame, PolicySource, SourceQuery
from ldiv_db.requirements import Requirement
from ldiv_db.running.run_spec import make_algorithm

#: What stands in the place of a database.
NAME = "spark"


def environment_session() -> Any:
    """The session of the environment: that of spark-submit, of SPARK_REMOTE, or a local one.

    Raises DatabaseError where pyspark or Java is missing, or Spark does not start.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
    except ImportError:
        raise DatabaseError("pyspark is not installed: pip install 'ldiv-db[spark]'") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors of this machine, too, run in our environment
    try:
        return SparkSession.builder.getOrCreate()
    except Exception as error:
        if "JAVA" in str(error).upper():
            raise DatabaseError("Spark finds no Java: install Java 17 or later, or set JAVA_HOME") from None
        raise DatabaseError(f"Spark does not start: {sentence(error)}") from None


#: The formats that a path says by its ending; a folder that says nothing is read in the session's default format.
_FORMATS = {".parquet": "parquet", ".orc": "orc", ".json": "json", ".csv": "csv", ".avro": "avro"}
#: What an unread column of another type is taken for: nothing of it is copied.
_UNREAD = "VARCHAR"


@dataclass(frozen=True)
class SparkSource:
    """A frame of Spark's, and its columns in our own types; those that have none are `unread`, by name."""

    frame: Any
    columns: tuple[Column, ...]
    unread: dict[str, str]

    def problems(self, policy: Policy) -> Iterator[Problem]:
        """The columns that a release would read, of types that have no counterpart, and names that are one to us."""
        unread = {name.lower(): kind for name, kind in self.unread.items()}
        for key, name in policy.roles():
            if key != "identifiers" and name.lower() in unread:
                what = f"is {unread[name.lower()]}, which is not read"
                yield Problem(f"{key}.{name}", what, "give numbers, texts or times in a view, or list it as identifier")
        for name, count in Counter(column.name.lower() for column in self.columns).items():
            if count > 1:
                alike = ", ".join(column.name for column in self.columns if column.name.lower() == name)
                yield Problem("source", f"has columns that differ in case alone: {alike}", "rename them in a view")

    def taken(self, names: Sequence[str]) -> Any:
        """The columns named, as c0, c1, …, in that order: whatever they are called in either place."""
        from pyspark.sql import functions  # noqa: PLC0415 - an extra

        own = {column.name.lower(): column.name for column in self.columns}
        quoted = [f"`{own[name.lower()].replace('`', '``')}`" for name in names]
        with plainly("read the source"):
            return self.frame.select(*(functions.col(name).alias(f"c{i}") for i, name in enumerate(quoted)))


def open_on_spark(session: Any, source: PolicySource, folder: Path) -> SparkSource:
    """The source, of which nothing is read yet but its columns; raises PolicyError if there is none."""
    try:
        with plainly("read it"):
            frame = _frame(session, source, folder)
            fields = list(frame.schema.fields)
    except DatabaseError as error:
        raise PolicyError([Problem("source", f"{source}: {error}")]) from None
    types = {field.name: type_of(field) for field in fields}
    columns = tuple(Column(name, kind or _UNREAD) for name, kind in types.items())
    return SparkSource(frame, columns, {field.name: shown(field) for field in fields if types[field.name] is None})


def _frame(session: Any, source: PolicySource, folder: Path) -> Any:
    if isinstance(source, SourceQuery):
        return session.sql(source.query)
    if isinstance(source, Frame):
        if not hasattr(source.value, "schema") or not type(source.value).__module__.startswith("pyspark."):
            what = f"{type(source.value).__name__} is no frame of Spark's"
            raise PolicyError([Problem("source", what, "session.createDataFrame makes one of it")])
        return source.value
    form = _FORMATS.get(Path(source).suffix.lower())
    if "`" in source or (form is None and "/" not in source):
        return session.table(source)
    reader = session.read.format(form) if form else session.read
    if form == "csv":
        reader = reader.option("header", True)
    return reader.load(place_of(source, folder))


def place_of(path: str, folder: Path) -> str:
    """The path as Spark takes it: one with a scheme as it is, one of this machine's from `folder` on."""
    return path if "://" in path or path.startswith("/") else str((folder / path).resolve())


#: What stands for the source where nothing of it is read.
_EMPTY = "source"
#: The most rows of a part where the policy does not say it: less than on one machine, as executors have less memory.
PART_ROWS = 1_000_000


@dataclass(frozen=True)
class SparkChoices:
    """A policy held against its source on Spark, and its algorithm; `names` are the columns that a run reads.

    It can be pickled: the policy names another source, as a frame is no use elsewhere.
    """

    resolved: Resolved
    algorithm: Algorithm
    names: tuple[str, ...]


def resolve_on_spark(
    engine: Engine, written: Policy, source: SparkSource, folder: Path, judge_target: Check
) -> SparkChoices:
    """The policy held against its source; raises PolicyError with all that is wrong, and all that Spark is not for."""
    unfit = [*unsupported(written), *source.problems(written)]
    if unfit and any(problem.key in ("source", "key", "algorithm.name") for problem in unfit):
        raise PolicyError([*problems_of(written), *unfit])
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
        resolved = resolve(engine, asked, folder, checks)
    if resolved is not None:
        with problems.collected():
            _refuse_unjudged(resolved)
    problems.refuse()
    assert resolved is not None  # noqa: S101 - there would be problems
    resolved = replace(resolved, source=replace(resolved.source, name=str(written.source)))
    read = [*(qi.column for qi in resolved.source.quasi_identifiers), *resolved.source.sensitive, *resolved.source.keep]
    return SparkChoices(resolved, algorithms[0], tuple(column.name for column in read))


def _refuse_unjudged(resolved: Resolved) -> None:
    """Raise PolicyError for requirements that Spark's SQL cannot judge."""
    required = resolved.required
    wanted: dict[str, list[Requirement]] = {
        name: [spec.provisional(attribute) for spec in required.specs if spec.concerns(name)]
        for name, attribute in required.attributes.items()
    }
    refuse_dialect("spark", [Relation(("release",))], required.attributes, wanted)


def unsupported(policy: Policy) -> Iterator[Problem]:
    """The parts of a policy that no run on Spark carries out, and what to do in their place."""
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


def own_types(choices: SparkChoices, fields: Any) -> dict[str, Any]:
    """Spark's type of each column of a release that is no label, by its name in lower case; `fields` are the source's.

    Of labels it is the type that values have which were not generalised.
    """
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    own = {field.name.lower(): field.dataType for field in fields}
    released = choices.resolved.released
    bounds = {
        column.lower(): own[name.lower()]
        for name, form in released.forms.items()
        if form == "bounds"
        for column in columns_as(name, form)
    }
    return {**own, **bounds, **{name: types.LongType() for name in released.class_ids}}


def release_fields(choices: SparkChoices, fields: Any) -> Iterator[tuple[str, Any]]:
    """The columns of a release in which all labels are text, each with its type."""
    from pyspark.sql import types  # noqa: PLC0415 - an extra

    released, own = choices.resolved.released, own_types(choices, fields)
    labels = {name.lower() for name, form in released.forms.items() if form != "bounds"}
    for name in released.all:
        yield name, types.StringType() if name.lower() in labels else own[name.lower()]
