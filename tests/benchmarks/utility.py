"""`python -m tests.benchmarks.utility`: what local recoding loses under each requirement, and what other tools lose.

Adult's 30,162 training rows, 7 quasi-identifiers, occupation sensitive; of each taxonomy only the leaves that occur,
age as its share of the range or by the tree that the other tool has for it, the mean LM of a cell, suppressed rows
counting 1. The figures of the other tool are the best that ARX 3.9.2 reached on the same terms: local recoding, mean
LM, generalisation alone (gs 0), in steps of 1 % or .1 %.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.database.connections import Settings, open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.reading import Policy, parse_policy
from ldiv_db.running.demo import adult_policy, load_adult
from ldiv_db.running.run import plan, run
from ldiv_db.solving.improve import Name
from tests.benchmarks.bsgi import make_rows
from tests.benchmarks.child_processes import peak_memory
from tests.benchmarks.command import AsJson, Threads, command_of, engine_on, refuse_unknown, show

#: The tree that the other tool has for ages: a level of so many years each, from 1 on.
AGE_FILE, AGE_LEVELS = "taxonomies/age.csv", (5, 10, 20)
ALGORITHMS = ("topdown", "mondrian", "peel", "stratified", "bsgi")
NAMES = (*ALGORITHMS, "auto")


@dataclass(frozen=True)
class Peer:
    """A requirement, and the least that another tool lost under it."""

    name: str
    argument: float
    tool: str
    lm: float

    @property
    def require(self) -> str:
        return f"{self.name}:{self.argument}"


PEERS = (
    Peer("distinct", 2, "ARX", 0.019),
    Peer("distinct", 4, "ARX", 0.041),
    Peer("distinct", 6, "ARX", 0.0632),
    Peer("distinct", 7, "ARX", 0.0775),
    Peer("entropy", 2, "ARX", 0.0353),
    Peer("entropy", 4, "ARX", 0.1021),
    Peer("entropy", 6, "ARX", 0.1859),
    Peer("frequency", 2, "ARX", 0.0485),
    Peer("frequency", 4, "ARX", 0.2139),
    Peer("frequency", 6, "ARX", 0.5103),
    Peer("k", 10, "ARX", 0.0453),
    Peer("t_closeness", 0.05, "ARX", 0.733),
    Peer("t_closeness", 0.1, "ARX", 0.661),
    Peer("t_closeness", 0.2, "ARX", 0.43),
    Peer("t_closeness", 0.3, "ARX", 0.301),
    Peer("t_closeness", 0.4, "ARX", 0.159),
)


def measure_utility(
    algorithms: Sequence[str],
    asked: Sequence[str] = (),
    threads: int = 2,
    rows: int | None = None,
    bounds: bool = False,
    same_trees: bool = False,
    effort: Name = "normal",
) -> Iterator[dict[str, Any]]:
    """One result a requirement: what the peer and each algorithm lost, and its seconds; None where it cannot.

    With `rows` so many variants of Adult's rows are taken, on which no peer was measured. With `bounds` each says what
    no local recoding can lose less than (`at_least`). With `same_trees` ages have the tree that the peer had, else they
    are published in any interval. `auto` runs by that `effort`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ldiv_") as scratch,
        open_database(":memory:", create=True, settings=Settings(threads)) as connection,
    ):
        folder, document = Path(scratch), adult_policy()
        if same_trees:
            document["quasi_identifiers"]["age"] = {"taxonomy": {"file": AGE_FILE}}
        policy = parse_policy(document)
        engine = engine_on(connection)
        source = make_rows(engine, policy, rows, seed=1) if rows else load_adult(engine, policy)
        document["source"] = str(source)
        trim_taxonomies(engine, source, policy, folder)
        if same_trees:
            write_age_tree(engine, source, folder)
        peers = [peer for peer in PEERS if not asked or peer.require in asked]
        for peer in peers:
            options = {name: {"name": name} | ({"effort": effort} if name == "auto" else {}) for name in algorithms}
            runs = {name: _run(connection, folder, document, peer, options[name]) for name in algorithms}
            other = {"tool": None, "tool_lm": None} if rows else {"tool": peer.tool, "tool_lm": peer.lm}
            least = _bound(connection, folder, document, peer) if bounds else None
            yield {"require": peer.require, **other, "at_least": least, "runs": runs}


def _bound(connection: Any, folder: Path, document: dict[str, Any], peer: Peer) -> dict[str, Any]:
    """What no local recoding can lose less than under the peer's requirement, and what proving it took."""
    wanted = document | {"require": [{peer.name: peer.argument}], "algorithm": "auto"}
    used = time.process_time()
    ready: Any = plan(connection, wanted, folder, bound=True)
    return dict(ready.bound.as_dict()) | {
        "processor_seconds": time.process_time() - used,
        "peak_memory_mb": peak_memory(),
    }


def trim_taxonomies(engine: Engine, source: Relation, policy: Policy, folder: Path) -> None:
    """Copies of the policy's level files in `folder`, without the leaves that the source does not have."""
    fixtures = resource_folder("fixtures") / "adult"
    for name, column in policy.quasi_identifiers.items():
        if column.taxonomy is None or column.taxonomy.file is None or column.taxonomy.file == AGE_FILE:
            continue
        found = engine.rows("measuring/profile/list_values", source=source, column=Identifier(name))
        values = {value for (value,) in found}
        lines = (fixtures / column.taxonomy.file).read_text(encoding="utf-8").splitlines(keepends=True)
        target = folder / column.taxonomy.file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(line for line in lines if line.split(";")[0] in values), encoding="utf-8")


def write_age_tree(engine: Engine, source: Relation, folder: Path) -> None:
    """The level file of the ages that the source has."""
    found = engine.rows("measuring/profile/list_values", source=source, column=Identifier("age"))
    ages = sorted(int(age) for (age,) in found)
    firsts = [[(age - 1) // years * years + 1 for years in AGE_LEVELS] for age in ages]
    lines = [
        ";".join([str(age), *(f"{low}-{low + years - 1}" for low, years in zip(lows, AGE_LEVELS, strict=True)), "*"])
        for age, lows in zip(ages, firsts, strict=True)
    ]
    (folder / AGE_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _run(
    connection: Any, folder: Path, document: dict[str, Any], peer: Peer, algorithm: dict[str, Any]
) -> dict[str, Any] | None:
    """What one algorithm lost under the peer's requirement; None if the algorithm cannot meet it."""
    wanted = {"require": [{peer.name: peer.argument}], "algorithm": algorithm}
    start, used = time.perf_counter(), time.process_time()
    try:
        result = run(connection, document | wanted, folder)
    except InfeasibleError:
        return None
    return {
        "lm_mean": result.loss.lm_mean,
        "classes": result.loss.classes,
        "rows_suppressed": result.loss.rows_suppressed,
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - used,
        "peak_memory_mb": peak_memory(),
    }


def utility_as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table for people; the last column is our best over the peer's."""
    names = list(results[0]["runs"]) if results else []
    rows = [
        [
            found["require"],
            f"{found['tool']} {found['tool_lm']:.4f}" if found["tool"] else "-",
            "-" if found["at_least"] is None else f"{found['at_least']['lm_mean']:.4f}",
            *(_cell(found["runs"][name]) for name in names),
            _ratio(found),
        ]
        for found in results
    ]
    return ["requirement", "others", "at least", *names, "best / others"], rows


def _cell(found: dict[str, Any] | None) -> str:
    return "-" if found is None else f"{found['lm_mean']:.4f}, {found['seconds']:.1f} s"


def _ratio(found: dict[str, Any]) -> str:
    losses = [done["lm_mean"] for done in found["runs"].values() if done]
    return f"{min(losses) / found['tool_lm']:.2f}" if losses and found["tool_lm"] else "-"


# -- the command line ---------------------------------------------------------------------------------


def utility(
    algorithm: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(NAMES)}; may be repeated. All but auto if not given.")
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(p.require for p in PEERS)}; may be repeated.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=100, help="Rows made by the variant method.", show_default="Adult's 30,162"),
    ] = None,
    same_trees: Annotated[bool, typer.Option("--same-trees", help="Ages by the tree that the others had.")] = False,
    effort: Annotated[Name, typer.Option(help="Of auto.")] = "normal",
    bounds: Annotated[bool, typer.Option(help="Also what no local recoding can lose less than.")] = False,
    threads: Threads = 2,
    json: AsJson = False,
) -> None:
    """Measure what is lost on Adult under each requirement, beside what other tools lose.

    \b
    Examples:
      python -m tests.benchmarks.utility --algorithm topdown --algorithm mondrian
      python -m tests.benchmarks.utility --require distinct:4 --json
      python -m tests.benchmarks.utility --algorithm auto --same-trees --bounds
      python -m tests.benchmarks.utility --algorithm auto --same-trees --effort thorough
      python -m tests.benchmarks.utility --rows 1000000 --algorithm topdown --require distinct:4 --json
    """
    refuse_unknown("--algorithm", algorithm or (), NAMES)
    refuse_unknown("--require", require or (), [peer.require for peer in PEERS])
    found: list[dict[str, Any]] = []
    for result in measure_utility(algorithm or ALGORITHMS, require or (), threads, rows, bounds, same_trees, effort):
        typer.echo(f"{result['require']} …", err=True)
        found.append(result)
    show("mean LM per cell", json, found, utility_as_table)


app = command_of(utility)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.utility")
