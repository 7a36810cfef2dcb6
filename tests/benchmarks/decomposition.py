"""Rows of Adult with a key, as the paper of Decomposition+ has them (Das & Bhattacharyya 2012), and its Table 7(a)."""

from __future__ import annotations

from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.running.demo import TRAINING_ROWS

#: The paper's Table 7(a): rows left over of each value, by l.
TABLE_7A = {
    7: (22272, 2485, 2053, 1265, 1060, 929),
    6: (21329, 1542, 1110, 322, 117),
    5: (20631, 844, 412),
    4: (19661, 1),
    3: (18348,),
    2: (14410,),
    1: (),
}
_COLUMNS = (
    "age", "fnlwgt", "marital_status", "race", "sex", "occupation", "native_country", "workclass", "education",
    "hours_per_week", "relationship",
)  # fmt: skip


def make_people(engine: Engine, rows: int) -> None:
    """The table `people` of copies of Adult's rows, numbered by the key `id`."""
    columns = [Identifier(name) for name in _COLUMNS]
    adult = engine.materialise(
        "adult",
        "running/demo/select_training",
        source=FileRelation("read_parquet", str(resource_folder("fixtures") / "adult" / "adult.parquet")),
        columns=columns,
        rows=Value(TRAINING_ROWS),
    )
    numbered = engine.materialise("originals", "number_rows", rows=adult, columns=columns)
    engine.create(
        Relation(("main", "people")),
        "copy_rows",
        originals=numbered,
        columns=columns,
        key=Identifier("id"),
        first=Value(1),
        last=Value(rows),
        rows=Value(engine.count(adult)),
    )
    engine.drop(adult, numbered)
