"""A sample of a task: some of its rows, drawn by the seed, as a task of their own.

Which algorithm loses least is a matter of how values are distributed, and a sample has that too; how much it loses is
not, as classes are narrower where there are more rows.
"""

from __future__ import annotations

from dataclasses import replace

from ldiv_db.algorithms.base import Task
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements import Distribution

#: From so many rows on algorithms are tried on a sample, and the rows that it has.
LARGE, SAMPLE = 500_000, 50_000


def sampled(task: Task, most: int) -> Task:
    """The task of `most` rows, the same for any order of rows and number of threads; keys are compared as in all rows.

    For tasks without an individual.
    """
    engine, encoded = task.engine, task.encoded
    rows = engine.materialise("sample", "auto/draw_sample", rows=encoded.rows, seed=Value(task.seed), most=Value(most))
    sensitive = tuple(counted_among(engine, rows, axis) for axis in encoded.sensitive)
    part = replace(encoded, rows=rows, sensitive=sensitive, rows_in=engine.count(rows), left_out=0)
    return replace(task, encoded=part)


def counted_among(engine: Engine, rows: Relation, axis: SensitiveAxis) -> SensitiveAxis:
    """The attribute with the counts that its values have among these rows."""
    dictionary, distribution = _tally(engine, rows, axis, axis.dictionary)
    judged = _tally(engine, rows, axis, axis.judged[0]) if axis.judged else None
    return replace(axis, dictionary=dictionary, distribution=distribution, judged=judged)


def _tally(engine: Engine, rows: Relation, axis: SensitiveAxis, dictionary: Relation) -> tuple[Relation, Distribution]:
    holes = {"dictionary": dictionary, "sample": rows, "key": axis.code}
    counted = engine.materialise("counted", "auto/count_sample", **holes)
    return counted, Distribution(sorted(engine.column(counted, "rows"), reverse=True))
