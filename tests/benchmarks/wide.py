"""`python -m tests.benchmarks.wide`: tables of many columns, in processor seconds, and where these go.

Rows are made by hashes: every other quasi-identifier has numbers, the others a few texts; columns that stand near one
another depend on each other. Times are of this process, without making the rows; statements are told by their template.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

import ldiv_db
from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.context import Listener
from ldiv_db.database.templates import Statement
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, refuse_unknown, show

#: Rows by columns, as the page of figures has them.
TABLES = ("300x70", "100000x100")
ALGORITHMS = ("topdown", "mondrian", "auto")
COLUMNS: Columns = {
    "rows": "{rows:,}",
    "columns": "{columns}",
    "algorithm": "{algorithm}",
    "planned s": "{expected_seconds:.1f}",
    "processor s": "{processor_seconds:.1f}",
    "LM": "{lm_mean:.4f}",
    "SQL kB": lambda found: f"{found['characters'] / 1000:,.0f}",
    "most of it": lambda found: ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found["slowest"].items()),
}
#: Of so many templates the time is told.
_SLOWEST = 3


def make_people(connection: Any, rows: int, columns: int) -> None:
    """The table `people`: id, the quasi-identifiers c0, c1, …, and the sensitive s with eight values."""
    listed = ", ".join(f"{_value(number)} AS c{number}" for number in range(columns))
    connection.execute(
        f"CREATE OR REPLACE TABLE people AS SELECT i AS id, {listed}, 's' || (hash(i, 99) % 8) AS s"
        f" FROM range({rows}) AS t(i)"
    )


def _value(number: int) -> str:
    own, shared = f"hash(i, -{number + 1})", f"hash(i, {number // 8})"
    if number % 2:
        return f"'v' || ({own} % {2 + number % 7} + {shared} % 3)"
    return f"CAST(({own} % 97 + {shared} % 50) // {1 + number % 5} AS INTEGER)"


def wide_policy(columns: int, algorithm: str) -> dict[str, Any]:
    """The policy of `people`: k 5 and distinct 3."""
    return {
        "source": "people",
        "target": {"table": "published", "if_exists": "replace"},
        "identifiers": ["id"],
        "quasi_identifiers": {f"c{number}": {} if number % 2 else {"numeric": True} for number in range(columns)},
        "sensitive": ["s"],
        "require": [{"k": 5}, {"distinct": 3}],
        "algorithm": algorithm,
        "seed": 1,
    }


@dataclass
class Heard:
    """The statements that a run sends: their characters, and the processor time until the next one by template."""

    characters: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _last: tuple[str, float] | None = None

    def listen(self, statement: Statement) -> None:
        self.close()
        self.characters += len(statement.sql)
        self._last = statement.template, time.process_time()

    def close(self) -> None:
        """Enter what the last statement took."""
        if self._last:
            template, start = self._last
            self.seconds[template] += time.process_time() - start

    def slowest(self) -> dict[str, float]:
        """The templates that took most, each with its seconds."""
        return dict(sorted(self.seconds.items(), key=lambda item: -item[1])[:_SLOWEST])


def measure(rows: int, columns: int, algorithm: str, threads: int = 2) -> dict[str, Any]:
    """What a run of such a table took, and what its plan expected (seconds, on a machine of its own)."""
    heard = Heard()
    with open_database(":memory:", create=True, settings=Settings(threads)) as connection:
        make_people(connection, rows, columns)
        expected = ldiv_db.plan(connection, wide_policy(columns, algorithm)).estimate.seconds
        start = time.process_time()
        result = ldiv_db.run(connection, wide_policy(columns, algorithm), listener=Listener(on_statement=heard.listen))
        heard.close()
        return {
            "rows": rows,
            "columns": columns,
            "algorithm": algorithm,
            "expected_seconds": expected,
            "processor_seconds": time.process_time() - start,
            "lm_mean": result.loss.lm_mean,
            "characters": heard.characters,
            "slowest": heard.slowest(),
        }


def _table(text: str) -> tuple[int, int]:
    rows, _, columns = text.partition("x")
    if not (rows.isdigit() and columns.isdigit()):
        raise typer.BadParameter(f"{text} is not ROWSxCOLUMNS", param_hint="--table")
    return int(rows), int(columns)


# -- the command line ---------------------------------------------------------------------------------


def wide(
    table: Annotated[list[str] | None, typer.Option(help="ROWSxCOLUMNS; may be repeated.")] = None,
    algorithm: Annotated[list[str] | None, typer.Option(help="May be repeated. topdown, mondrian and auto.")] = None,
    threads: Threads = 2,
    json: AsJson = False,
) -> None:
    """Time runs of tables of many columns, by the templates that take most of it.

    \b
    Examples:
      python -m tests.benchmarks.wide --table 300x70
      python -m tests.benchmarks.wide --table 100000x100 --algorithm topdown --json
    """
    refuse_unknown("--algorithm", algorithm or (), ALGORITHMS)
    tables: Sequence[tuple[int, int]] = [_table(text) for text in table or TABLES]
    found: list[dict[str, Any]] = []
    for rows, columns in tables:
        for name in algorithm or ALGORITHMS:
            typer.echo(f"{rows:,} rows, {columns} columns, {name} …", err=True)
            found.append(measure(rows, columns, name, threads))
    show("wide", json, found, COLUMNS)


app = command_of(wide)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.wide")
