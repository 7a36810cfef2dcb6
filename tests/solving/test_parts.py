"""A part as a task of its own: what is carried to another process, and what comes of it there."""

import datetime
import pickle
import random
from decimal import Decimal
from pathlib import Path

import pytest
import tables
from strategies import some

from ldiv_db.algorithms import algorithm_of
from ldiv_db.database.connections import open_database
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.frames import pack, unpack
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import load_policy
from ldiv_db.running.preparation import prepare
from ldiv_db.running.run_spec import resolve_run
from ldiv_db.solving.parts import opened, part_task, solve, work_of

ROWS = Relation(("carried_rows",))
REQUIRED = [[{"distinct": 2}], [{"t_closeness": 0.6}], [{"threshold": {"base": 0.8}}], [{"k": 3}, {"entropy": 1.5}]]


def prepared(con, folder, policy):
    return prepare(resolve_run(Engine(con), load_policy(policy), Path(folder)), Listener(), show_values=False)


def case_of(seed, algorithm, require):
    case = tables.random_case(random.Random(seed), "bisect", largest=60)
    case.policy |= {"algorithm": algorithm, "require": require, "nulls": "value"}
    return case


@pytest.mark.parametrize("algorithm", some(["mondrian", "topdown", "peel", "stratified"]))
@pytest.mark.parametrize("require", some(REQUIRED), ids=lambda found: next(iter(found[0])))
def test_all_rows_solved_elsewhere_have_the_classes_that_they_have_here(algorithm, require, con, tmp_path):
    case = case_of(7, algorithm, require)
    case.place(con, tmp_path)
    ready = prepared(con, tmp_path, case.policy)
    task = ready.task
    here = ready.algorithm.run(task).assigned
    work = pickle.loads(pickle.dumps(work_of(task, ready.algorithm).carried(task.engine, tmp_path)))
    path = tmp_path / "rows.parquet"
    con.execute(f"COPY (SELECT * FROM {task.encoded.rows.sql()}) TO '{path}' (FORMAT parquet)")
    with opened(work, folder=tmp_path) as engine:
        engine.connection.execute(f"CREATE TABLE carried_rows AS FROM '{path}'")
        there = engine.columns(solve(work, part_task(work, engine, ROWS)).assigned, "row_id", "class_id")
    assert sorted(there) == sorted(task.engine.columns(here, "row_id", "class_id"))
    assert list(tmp_path.glob("tmp*")) == []


def test_a_part_is_compared_with_the_whole_table(con, tmp_path):
    case = case_of(3, "mondrian", [{"t_closeness": 0.5}])
    case.place(con, tmp_path)
    task = prepared(con, tmp_path, case.policy).task
    con.execute(f"CREATE TABLE carried_rows AS FROM {task.encoded.rows.sql()} WHERE row_id % 2 = 0")
    part = part_task(work_of(task, algorithm_of("mondrian")({})), task.engine, ROWS)
    whole, (axis,) = task.encoded.sensitive[0], part.encoded.sensitive
    assert axis.reference == whole.reference
    assert part.encoded.row_count == task.encoded.row_count // 2 == axis.distribution.rows < whole.distribution.rows


VALUES = {
    "HUGEINT": 2**100 + 1, "UHUGEINT": 2**127 + 5,
    "DECIMAL(38,3)": Decimal("12345678901234567890123456789012345.125"), "DOUBLE": 0.1 + 0.2,
    "DATE": datetime.date(1, 2, 3), "TIMESTAMP_NS": datetime.datetime(2020, 2, 3, 4, 5, 6, 789000),
    "TIME": datetime.time(3, 4, 5, 6), "ENUM('b', 'a')": "a", "VARCHAR": "é\0 'x' \"y\"", "BLOB": b"\x00\xff",
    "BOOLEAN": True, "UUID": "b3a1c2d4-0000-0000-0000-000000000001", "INTERVAL": "3 days",
}  # fmt: skip


def test_tables_are_carried_with_their_types(con, tmp_path):
    here, name = Engine(con), Relation(("temp", "main", "carried"))
    columns = ", ".join(f"unnest([?, NULL])::{kind} AS v{i}" for i, kind in enumerate(VALUES))
    con.execute(f"CREATE TEMP TABLE carried AS SELECT {columns}", list(VALUES.values()))
    packed = pack(here, [name], tmp_path)
    with open_database(":memory:") as other:
        unpack(Engine(other), packed, tmp_path)
        for asked in ("FROM carried", "SELECT typeof(COLUMNS(*)) FROM carried"):
            assert other.execute(asked).fetchall() == con.execute(asked).fetchall()
