"""`python -m tests.benchmarks.there`: a run in a warehouse beside plain SQL that counts, joins and writes there.

The table `variants` (rows of `tests.benchmarks.scale --redrawn 100`) is made in PostgreSQL, which must be on this
machine, or read by Spark as a file. Plain SQL groups it by all columns into a table, joins it by hash with a table of
labels for each combination, which is not counted, and writes the labels and the sensitive column, by the settings of
our own transactions. Figures are processor time of client and server together; each side is a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import ldiv_db
from ldiv_db.commands.options import Memory
from ldiv_db.database.addresses import MEMORY
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.counted import open_planned, open_warehouse
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.demo import adult_policy
from tests.benchmarks import scale
from tests.benchmarks.child_processes import measure_in_children, peak_memory
from tests.benchmarks.command import AsJson, Columns, command_of, show
from tests.benchmarks.processes import held_below, parent_of, worked_below

_SETTINGS = ("SET enable_mergejoin = off", "SET jit = off", "SET work_mem = '128MB'")


@dataclass(frozen=True)
class Case(scale.Case):
    """One benchmark: `there` is `spark`, or the URI of PostgreSQL, in whose database tables are made."""

    there: str = "spark"
    #: With another quasi-identifier, of a thousand numbers at random: nearly all rows differ.
    unlike: bool = False
    driver_memory: str = "1g"
    #: The effort of `auto`, where no algorithm is named; the policy's default if empty.
    effort: str = ""

    @property
    def is_spark(self) -> bool:
        return self.there == "spark"

    @property
    def source(self) -> Path:
        like = super().source
        return like.with_stem(f"{like.stem}-unlike") if self.unlike else like

    @property
    def document(self) -> dict[str, Any]:
        source = str(self.source) if self.is_spark else "variants"
        policy = adult_policy() | {"source": source, "target": "released", "require": [{"distinct": self.l}]}
        policy.pop("algorithm")
        if self.unlike:
            policy["quasi_identifiers"] |= {"number": {"numeric": True}}
        if self.effort:
            policy |= {"algorithm": {"name": "auto", "effort": self.effort}}
        return policy | ({"algorithm": self.algorithm} if self.algorithm else {})

    @property
    def plain(self) -> Sequence[tuple[str, bool]]:
        """What plain SQL does, and whether that counts."""
        own = list(parse_policy(self.document).quasi_identifiers)
        listed = ", ".join([*own, "occupation"])
        labels = (f"{f'CAST({n} AS VARCHAR(9))' if n in ('age', 'number') else n} AS l_{n}" for n in own)
        joined = " AND ".join(f"s.{name} = p.{name}" for name in (*own, "occupation"))
        shown = ", ".join(f"p.l_{name}" for name in own)
        return (
            (f"CREATE TABLE counted{{0}} AS SELECT {listed}, count(*) AS n FROM variants GROUP BY {listed}", True),
            (f"CREATE TABLE labels{{0}} AS SELECT {listed}, {', '.join(labels)} FROM counted", False),
            (
                f"CREATE TABLE written{{0}} AS SELECT {shown}, s.occupation FROM variants s JOIN labels p ON {joined}",
                True,
            ),
        )


def measure(case: Case, pairs: int = 1) -> dict[str, Any]:
    """Both sides: rows, algorithm, plain_seconds, seconds (processor time), ratio, lm_mean, memory_mb by process.

    They take turns; of several `pairs` it is the one with the median ratio.
    """
    found = []
    for _ in range(pairs):
        made = () if case.source.exists() else ("make",)
        plain = measure_in_children("tests.benchmarks.there", case, [*made, "plain"])
        ours = measure_in_children("tests.benchmarks.there", case, ["run"])
        found.append({"rows": case.rows, **plain, **ours, "ratio": ours["seconds"] / plain["plain_seconds"]})
    return sorted(found, key=lambda pair: pair["ratio"])[pairs // 2]


def _make(case: Case, folder: Path) -> None:
    """Make the file of rows, from that of rows that are alike where they are not to be."""
    like = replace(case, unlike=False)
    if not like.source.exists():
        scale.make(like, folder)
    if case.unlike:
        with open_database(MEMORY, settings=Settings(threads=1)) as con:
            numbered = f"SELECT *, CAST(hash(row_number() OVER (), {case.seed}) % 1000 AS INTEGER) AS number"
            con.execute(f"COPY ({numbered} FROM '{like.source}') TO '{case.source}'")


@contextmanager
def _session(case: Case, folder: Path) -> Iterator[Any]:
    """A Spark session, all of whose files are in the folder; ended with the block."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers run in this environment
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]").appName("ldiv_db there")
    settings = {
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.memory": case.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _opened(case: Case, folder: Path) -> Iterator[tuple[Any, int]]:
    """The session or connection, and the process below which the server works."""
    if case.is_spark:
        with _session(case, folder) as session:
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
        for sql, counts in (*((setting, False) for setting in settings), *case.plain):
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
    """Make the table of rows anew; what an earlier benchmark made is dropped, its ledger too."""
    with open_warehouse(f"adbc:{case.there}") as there, open_database(folder / "fill.duckdb", create=True) as con:
        for name in ("variants", "counted", "labels", "written", "released"):
            there.drop(Relation((name,)))
        there.execute("DROP SCHEMA IF EXISTS ldiv CASCADE")
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
        with open_planned(there, settings=Settings(memory_limit=case.memory_limit)) as planned:
            result = ldiv_db.run(planned, case.document, scale.FIXTURES)
        seconds = _worked(server) - before
        held = {held.role: round(held.most) for held in held_below(os.getpid())}
    return {
        "algorithm": result.algorithm, "seconds": seconds, "lm_mean": result.loss.lm_mean,
        "memory_mb": held | {"driver_python": round(peak_memory())},
    }  # fmt: skip


#: What child processes do.
TASKS = {"make": _make, "plain": _plain, "run": _run}


COLUMNS: Columns = {
    "rows": "{rows:,}",
    "algorithm": "{algorithm}",
    "plain SQL s": "{plain_seconds:.1f}",
    "run s": "{seconds:.1f}",
    "ratio": "{ratio:.2f}",
    "mean LM": "{lm_mean:.4f}",
    "MB by process": "{memory_mb}",
}


def there(
    where: Annotated[str, typer.Argument(help="`spark`, or the URI of a database of PostgreSQL's on this machine.")],
    rows: Annotated[list[int], typer.Option(min=1, help="How many rows; several times for several tables.")] = [  # noqa: B006
        10_000_000
    ],
    pairs: Annotated[int, typer.Option(min=1, help="How often both sides take turns; the median ratio counts.")] = 1,
    effort: Annotated[str, typer.Option(help="The effort of `auto`; left out by default.")] = "",
    algorithm: Annotated[str, typer.Option(help="An algorithm of a policy; left out by default.")] = "",
    driver_memory: Annotated[str, typer.Option(help="On Spark: the heap of the driver.")] = "1g",
    unlike: Annotated[bool, typer.Option(help="With a quasi-identifier more, so that nearly all rows differ.")] = False,
    memory_limit: Memory = None,
    rows_in: Annotated[Path, typer.Option(help="The folder where rows are kept for the next time.")] = scale.ROWS_IN,
    json: AsJson = False,
) -> None:
    """Time a run in a warehouse, and plain SQL that counts, joins and writes there.

    \b
    Examples:
      python -m tests.benchmarks.there postgresql://localhost/empty
      python -m tests.benchmarks.there spark --algorithm fast
    """
    found = [
        Case(
            count, str(rows_in), algorithm, redrawn=100, driver_memory=driver_memory, there=where, unlike=unlike,
            memory_limit=memory_limit, effort=effort,
        )
        for count in rows
    ]  # fmt: skip
    show("there", json, [measure(case, pairs) for case in found], COLUMNS)


app = command_of(there)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.there")
