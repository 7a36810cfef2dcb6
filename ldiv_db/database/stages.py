"""The seconds that each stage of a command is expected to take: one table for all that commands tell of.

A stage takes some seconds and more for its work: for every cell, rows times columns; many columns take more even of few
rows (`python -m tests.benchmarks.wide`). How many was measured by `python -m tests.benchmarks.pace`, in the
processor's seconds of two cores. Another machine, other requirements and other data take another time: `Pace`
corrects what is expected by what finished stages took. No figure here is of the data.
"""

from __future__ import annotations

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Stage
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine

#: The seconds of a stage, and those of a million cells or of other work.
SECONDS = {
    "reading the source": (0.15, 0.17),
    "placing rows of people": (1.0, 30.0),
    "forming classes by bsgi": (1.15, 1.7),
    "forming classes by mondrian": (0.8, 0.6),
    "forming classes by topdown": (2.8, 1.9),
    "forming classes by cuts": (0.5, 10.3),
    "forming classes by peel": (0.8, 4.0),
    "improving classes": (0.0, 2.1),
    "measuring what is lost": (0.03, 0.02),
    "writing and auditing the release": (0.17, 0.17),
    "auditing the table": (0.08, 0.14),
    "auditing the release": (0.08, 0.14),
    "answering the question": (0.28, 0.04),
    "counting columns": (0.28, 0.01),
    "counting combinations": (0.66, 0.27),
    "trying variants": (1.0, 6.5),
    "looking for links": (0.1, 0.2),
    "planning a policy": (2.0, 10.0),
    "trying attacks": (8.0, 8.0),
    "preparing attacks": (0.05, 0.2),
    "trying homogeneity": (0.01, 0.005),
    "trying similarity": (0.01, 0.005),
    "trying skewness": (0.01, 0.005),
    "trying background knowledge": (0.01, 0.02),
    "trying posterior": (0.02, 0.005),
    "trying linking": (0.65, 0.4),
    "trying counting": (2.75, 1.7),
    "trying definetti": (0.66, 2.1),
    "trying prosecutor": (0.01, 0.0),
    "trying journalist": (0.02, 0.04),
    "trying downcoding": (0.65, 1.36),
    "trying form": (0.025, 0.25),
    "trying singling out by one column": (2.8, 3.15),
    "counting and hashing the release": (0.11, 0.35),
    "counting and hashing the source": (0.21, 0.53),
    "measuring what was lost": (1.7, 1.8),
    "comparing columns": (0.42, 0.13),
    "looking for what covers what": (0.1, 0.25),
    "measuring the divergence": (0.45, 0.4),
    "answering random queries": (1.0, 0.7),
}
#: Those of a stage that was not measured.
ANY = (1.0, 10.0)
#: The seconds that every column adds to a stage, however few rows there are: statements of many columns take that long
#: to plan. The figures above have those of the first few.
EACH = {"reading the source": 0.015, "improving classes": 0.1, "measuring what is lost": 0.035,
        "writing and auditing the release": 0.01, "counting columns": 0.04, "counting combinations": 0.09}  # fmt: skip
EACH_OTHER, FEW = 0.015, 8


def timed(name: str, work: int = 0, columns: int = FEW) -> Stage:
    """The stage with the seconds that so much work is expected to take; 0 without work, of which nothing is known."""
    kind = Stage(name).kind
    fixed, more = SECONDS.get(kind, ANY)
    wide = EACH.get(kind, EACH_OTHER) * max(columns - FEW, 0)
    return Stage(name, work, fixed + wide + more * work / 1e6 if work else 0.0)


def work_of(engine: Engine, *tables: Table) -> tuple[int, int]:
    """How many cells the tables have together, and how many columns the widest has: the work of reading them."""
    columns = [len(columns_of(engine, table)) for table in tables]
    return sum(engine.count(table) * width for table, width in zip(tables, columns, strict=True)), max(columns)
