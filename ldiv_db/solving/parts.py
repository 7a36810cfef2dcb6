"""A part as a task of its own, and all that solving it takes besides its rows, carried to another process or machine.

A part's rows are counted among themselves; what classes are compared with, and what losses are relative to, is the
whole table's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Announce, Plan, Progress, Task
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import compared_by_bytes
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.frames import Packed, pack, unpack
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.release_columns import Form
from ldiv_db.recoding.axes import among
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.requirements import Requirement
from ldiv_db.solving.improve import LEAST, Effort, Improvable, improved, mean_loss, without_outliers

#: Whether a part was left to `topdown`, as the algorithm cannot publish all of its rows.
BY_TOPDOWN = "by_topdown"


@dataclass(frozen=True)
class PartJob:
    """Everything but the rows that solving a part takes; it can be pickled.

    `encoded` is the whole table's, of which a part has other rows; `tables` are those that it refers to, empty where
    a part is solved in the same database. `forms` is what quasi-identifiers are published as. Its classes are taken
    through improvements by the `effort`, as `auto` does.
    """

    encoded: Encoded
    wanted: Mapping[str, Sequence[Requirement]]
    algorithm: Algorithm
    seed: int
    forms: Mapping[str, Form]
    effort: Effort = LEAST
    #: The share of each part's rows that may be left out, so that they are no more than that of all rows.
    suppression: Decimal | None = None
    tables: Mapping[Relation, Packed] | None = None
    #: Whether parts are cells of cross-tables, all of whose rows are published.
    in_cells: bool = False
    #: The column of how many rows each of those of a part stands for, None for one.
    weight: Identifier | None = None

    def carried(self, engine: Engine, folder: Path | None = None) -> PartJob:
        """The same with the tables that it refers to; on the way they are written to a private folder in `folder`."""
        of_axes = [table for axis in self.encoded.axes for table in (axis.dictionary, axis.nodes)]
        of_keys = [table for key in self.encoded.sensitive for table in (*key.tables, key.whole)]
        return replace(self, tables=pack(engine, [table for table in (*of_axes, *of_keys) if table], folder))


def work_of(task: Task, algorithm: Algorithm, effort: Effort = LEAST) -> PartJob:
    """The work on parts of a task by an algorithm."""
    of = (task.encoded, task.wanted, algorithm, task.seed, task.forms, effort, task.suppression)
    return PartJob(*of, in_cells=task.cross is not None)


@contextmanager
def opened(work: PartJob, settings: Settings | None = None, folder: Path | None = None) -> Iterator[Engine]:
    """An engine on a database in memory that has the tables of the work, under their names."""
    with open_database(":memory:", create=True, settings=settings) as connection:
        engine = Engine(connection)
        with compared_by_bytes(engine):
            unpack(engine, work.tables or {}, folder)
            yield engine


def part_task(
    work: PartJob,
    engine: Engine,
    rows: Relation,
    progress: Progress = lambda done, total: None,
    report: Announce = lambda text: None,
) -> Task:
    """The task of the rows (row_id, codes, what is kept) of a part."""
    some = among(engine, work.encoded, rows)
    # Requirements that compare a class with the table mean all rows.
    pairs = zip(some.sensitive, work.encoded.sensitive, strict=True)
    encoded = replace(some, sensitive=tuple(replace(own, whole=whole.reference) for own, whole in pairs))
    requirements = [requirement for own in work.wanted.values() for requirement in own]
    task = Task(engine, encoded, requirements, work.seed, progress, report, work.wanted)
    return replace(task, forms=work.forms, is_part=True, suppression=work.suppression)


def solve(work: PartJob, task: Task) -> Plan:
    """The plan of a part's task; of an algorithm that leaves rows out itself no outliers are left out beside these."""
    if work.in_cells and not work.algorithm.traits.any_class:
        able = _makes_all(work.algorithm, task)
        plan = (work.algorithm if able else TopDown({})).run(task)
        return replace(plan, search={BY_TOPDOWN: int(not able)})
    plan = work.algorithm.run(task)
    if work.effort.asked is not None:
        ((plan, _),) = improved([Improvable(task, work.algorithm.name, plan, work.effort, mean_loss(task, plan))])
    leaves = getattr(work.algorithm.options, "residue", "") == "suppress"
    return plan if leaves else without_outliers(task, work.algorithm, plan)


def _makes_all(algorithm: Algorithm, task: Task) -> bool:
    """True if the algorithm makes classes of all rows of a cell, which are good as one class."""
    try:
        return len(task.encoded.keys) == 1 and not algorithm.check(task).rows_suppressed
    except InfeasibleError:
        return False


def solve_part(
    work: PartJob,
    engine: Engine,
    rows: Table,
    node: int | None = None,
    progress: Progress = lambda done, total: None,
    report: Announce = lambda text: None,
) -> tuple[Relation, Mapping[str, Any]]:
    """The classes (row_id of the whole table, class_id) of a part, and what the algorithm says of its work. Of a table
    of all parts it is that of a `node`; its rows are numbered among themselves, as algorithms expect."""
    codes = {"axes": work.encoded.axes, "sensitive": work.encoded.sensitive}
    with engine.scope() as scope:
        params = {"node": node, "of_node": node is not None, "weight": work.weight}
        part = engine.materialise("part", "solving/list_part", rows=rows, **codes, **params)
        plan = solve(work, part_task(work, engine, part, progress, report))
        named = engine.join(
            "named", plan.assigned, part, "row_id", left_columns=["class_id"], right_columns=[("whole_id", "row_id")]
        )
        return scope.keep(named), plan.search
