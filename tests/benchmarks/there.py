"""`python -m tests.benchmarks.there`: a run in a warehouse beside plain SQL that counts, joins and writes there.

The table `variants` (rows of `tests.benchmarks.scale --redrawn 100`) is made in PostgreSQL, which must be on this
machine, or read by Spark as a file. Plain SQL groups it by all columns into a table, joins it by hash with a table of
labels for each combination, which is not counted, and writes the labels and the sensitive column, by the settings of
our own transactions. Figures are processor time of client and server together; each side is a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import ldiv_db
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine, open_database
from ldiv_db.database.named_warehouses import open_warehouse
from ldiv_db.database.templates import Relation
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy
from tests.benchmarks import scale
from tests.benchmarks.child_processes import measure_in_children, peak_memory
from tests.benchmarks.command import AsJson, command_of, show
from tests.benchmarks.processes import held_below, parent_of, worked_below

_NAMES = (*parse_policy(adult_policy()).quasi_identifiers, "occupation")
_KEYS = ", ".join(_NAMES)
_LABELS = ", ".join(f"{'CAST(age AS VARCHAR(9))' if name == 'age' else name} AS l_{name}" for name in _NAMES[:-1])
_JOINED = " AND ".join(f"s.{name} = p.{name}" for name in _NAMES)
_SHOWN = ", ".join(f"p.l_{name}" for name in _NAMES[:-1])
_SETTINGS = ("SET enable_mergejoin = off", "SET jit = off", "SET work_mem = '128MB'")
#: What plain SQL does, and whether that counts.
PLAIN = (
    (f"CREATE TABLE counted{{0}} AS SELECT {_KEYS}, count(*) AS n FROM variants GROUP BY {_KEYS}", True),
    (f"CREATE TABLE labels{{0}} AS SELECT {_KEYS}, {_LABELS} FROM counted", False),
    (f"CREATE TABLE written{{0}} AS SELECT {_SHOWN}, s.occupation FROM variants s JOIN labels p ON {_JOINED}", True),
)


@dataclass(frozen=True)
class Case(scale.Case):
    """One benchmark: `there` is `spark`, or the URI of PostgreSQL, in whose database tables are made."""

    there: str = "spark"

    @property
    def is_spark(self) -> bool:
        return self.there == "spark"

    @property
    def document(self) -> dict[str, Any]:
        source = str(self.source) if self.is_spark else "variants"
        policy = adult_policy() | {"source": source, "target": "released", "require": [{"distinct": self.l}]}
        policy.pop("algorithm")
        return policy | ({"algorithm": self.algorithm} if self.algorithm else {})


def measure(case: Case) -> dict[str, Any]:
    """Both sides: rows, algorithm, plain_seconds, seconds (processor time), ratio, lm_mean, memory_mb by process."""
    made = () if case.source.exists() else ("make",)
    plain = measure_in_children("tests.benchmarks.there", case, [*made, "plain"])
    ours = measure_in_children("tests.benchmarks.there", case, ["run"])
    return {"rows": case.rows, **plain, **ours, "ratio": ours["seconds"] / plain["plain_seconds"]}


@contextmanager
def _opened(case: Case, folder: Path) -> Iterator[tuple[Any, int]]:
    """The session or connection, and the process below which the server works."""
    if case.is_spark:
        with scale._session(case, folder) as session:
            session.read.parquet(str(case.source)).createOrReplaceTempView("variants")
            session.sql("SELECT count(*) FROM variants").collect()
            yield session, 0
    else:
        with open_warehouse(f"adbc:{case.there}") as there:
            ((process,),) = there.rows("SELECT pg_backend_pid()")
            there.connection.commit()
            yield there.connection, parent_of(process)


def _worked(server: int) -> float:
    return worked_below(os.getpid()) + (worked_below(server) if server else 0.0)


def _plain(case: Case, folder: Path) -> dict[str, Any]:
    if not case.is_spark:
        _fill(case, folder)
    taken = 0.0
    with _opened(case, folder) as (there, server):
        settings = () if case.is_spark else _SETTINGS
        for sql, counts in (*((setting, False) for setting in settings), *PLAIN):
            before = _worked(server)
            _execute(there, sql.format(" USING parquet" if case.is_spark else ""))
            taken += _worked(server) - before if counts else 0.0
    return {"plain_seconds": taken}


def _execute(there: Any, sql: str) -> None:
    if hasattr(there, "sql"):
        there.sql(sql)
        return
    with closing(there.cursor()) as cursor:
        cursor.execute(sql)
    there.commit()


def _fill(case: Case, folder: Path) -> None:
    """Make the table of rows anew; what an earlier benchmark made is dropped."""
    with open_warehouse(f"adbc:{case.there}") as there, open_database(folder / "fill.duckdb", create=True) as con:
        for name in ("variants", "counted", "labels", "written", "released"):
            there.drop(Relation((name,)))
        engine = Engine(con)
        con.execute(f"CREATE TABLE rows AS FROM '{case.source}'")
        rows = Relation(("rows",))
        there.make_table(Relation(("variants",)), columns_of(engine, rows))
        there.send(engine, rows, Relation(("variants",)))
        there.connection.commit()
        there.connection.adbc_connection.set_autocommit(True)
        there.execute("VACUUM ANALYZE variants")
        there.execute("CHECKPOINT")


def _run(case: Case, folder: Path) -> dict[str, Any]:
    with _opened(case, folder) as (there, server):
        before = _worked(server)
        result = ldiv_db.run(there, case.document, scale._fixtures())
        seconds = _worked(server) - before
        held = {held.role: round(held.most) for held in held_below(os.getpid())}
    return {
        "algorithm": result.algorithm, "seconds": seconds, "lm_mean": result.loss.lm_mean,
        "memory_mb": held | {"driver_python": round(peak_memory())},
    }  # fmt: skip


#: What child processes do.
TASKS = {"make": scale.TASKS["make"], "plain": _plain, "run": _run}


def as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people."""
    headings = ["rows", "algorithm", "plain SQL s", "run s", "ratio", "mean LM", "MB by process"]
    return headings, [
        [f"{found['rows']:,}", found["algorithm"], f"{found['plain_seconds']:.1f}", f"{found['seconds']:.1f}",
         f"{found['ratio']:.2f}", f"{found['lm_mean']:.4f}", str(found["memory_mb"])]
        for found in results
    ]  # fmt: skip


def there(
    where: Annotated[str, typer.Argument(help="`spark`, or the URI of a database of PostgreSQL's on this machine.")],
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 10_000_000,
    algorithm: Annotated[str, typer.Option(help="An algorithm of a policy; left out by default.")] = "",
    driver_memory: Annotated[str, typer.Option(help="On Spark: the heap of the driver.")] = "1g",
    rows_in: Annotated[Path, typer.Option(help="The folder where rows are kept for the next time.")] = scale._ROWS_IN,
    json: AsJson = False,
) -> None:
    """Time a run in a warehouse, and plain SQL that counts, joins and writes there.

    \b
    Examples:
      python -m tests.benchmarks.there postgresql://localhost/empty
      python -m tests.benchmarks.there spark --algorithm fast
    """
    case = Case(rows, str(rows_in), algorithm, redrawn=100, driver_memory=driver_memory, there=where)
    show("there", json, [measure(case)], as_table)


app = command_of(there)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.there")
