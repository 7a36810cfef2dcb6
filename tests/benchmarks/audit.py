"""`python -m tests.benchmarks.audit`: all requirements on a published table of many rows.

The table is a release of at most a million rows made from Adult, repeated with other labels up to the size asked
for. It is made in one child process and audited in another, so that the peak of memory is the audit's alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.auditing.check import CheckRequest, check
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.queries import Step
from ldiv_db.database.templates import resource_folder
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.reading import parse_policy
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.requirements import REQUIREMENTS, RequirementSpec
from ldiv_db.running.demo import adult_policy
from ldiv_db.running.run import run
from tests.benchmarks.bsgi import make_rows
from tests.benchmarks.child_processes import measure_in_children, peak_memory, settings_of
from tests.benchmarks.command import AsJson, Columns, Memory, Threads, command_of, engine_on, show

#: The most rows that are anonymized; more are copies.
_RELEASED = 1_000_000
SENSITIVE = "occupation"
#: An argument for every requirement, such that a release of classes of l values meets some and fails others.
ARGUMENTS: dict[str, Any] = {
    "k": 4,
    "risk": 0.25,
    "distinct": 4,
    "unique_distinct": 4,
    "entropy": 4,
    "recursive": {"c": 2, "l": 3},
    "frequency": 4,
    "threshold": {"default": 0.3, "Sales": 0.2},
    "alpha_k": {"alpha": 0.25, "k": 4},
    "p_sensitive": {"p": 4, "k": 4},
    "distinct_alpha": {"l": 3, "alpha": 1},
    "entropy_alpha": {"l": 2, "alpha": 1},
    "recursive_alpha": {"c": 2, "l": 2, "alpha": 1},
    "beta_likeness": 8,
    "delta_disclosure": 3,
    "t_closeness": {"t": 0.5, "distance": "equal"},
    "t_closeness_ordered": {"t": 0.5, "distance": "ordered"},
    "t_closeness_hierarchical": {"t": 0.5, "distance": "hierarchical"},
}


@dataclass(frozen=True)
class AuditCase:
    """One benchmark: so many published rows, in classes of this l, audited with so many threads."""

    rows: int
    l: int = 4
    threads: int = 2
    memory_limit: str | None = None
    twice: bool = False


def measure_audit(case: AuditCase) -> dict[str, Any]:
    """What the audit of every requirement took: rows, classes, seconds, peak_memory_mb, requirements, steps.

    Raises LdivError if a child fails, with what it said and its exit code.
    """
    return measure_in_children("tests.benchmarks.audit", case, ("make", "audit"))


#: The columns of the table for people.
COLUMNS: Columns = {
    "rows": "{rows:,}",
    "classes": "{classes:,}",
    "requirements": lambda found: str(len(found["requirements"])),
    "read twice": lambda found: str(sum(one["second_reading"] is not None for one in found["requirements"])),
    "seconds": "{seconds:.2f}",
    "processor seconds": "{processor_seconds:.2f}",
    "rows/s": lambda found: f"{found['rows'] / found['seconds']:,.0f}",
    "peak MB": "{peak_memory_mb:,.0f}",
}


def _specs() -> list[RequirementSpec]:
    return [
        RequirementSpec(name if name in REQUIREMENTS else "t_closeness", argument)
        for name, argument in ARGUMENTS.items()
    ]


def _sensitive(categories: Sequence[Sequence[str]]) -> dict[str, Sensitive]:
    taxonomy = {"file": "taxonomies/occupation.csv"}
    return {SENSITIVE: Sensitive.model_validate({"categories": categories, "taxonomy": taxonomy})}


def _make(case: AuditCase, folder: Path) -> None:
    """The table `published`: the release of at most `_RELEASED` rows, repeated."""
    policy = adult_policy(case.l, "bisect")
    copies = -(-case.rows // _RELEASED)
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        engine = engine_on(connection)
        make_rows(engine, parse_policy(policy), case.rows // copies, seed=1)
        document = {**policy, "source": "main.variants", "target": "released"}
        run(connection, document, resource_folder("fixtures") / "adult")
        keys = [Identifier(name) for name in policy["quasi_identifiers"]]
        engine.create(
            Relation(("published",)),
            "copy_release",
            published=Relation(("released",)),
            varied=keys[0],
            columns=[*keys[1:], Identifier(SENSITIVE)],
            copies=Value(copies),
        )


def _audit(case: AuditCase, folder: Path) -> dict[str, Any]:
    steps: list[Step] = []
    adult = resource_folder("fixtures") / "adult"
    with open_database(folder / "bench.duckdb", read_only=True, settings=settings_of(case, folder)) as connection:
        values = [line.split(";")[0] for line in (adult / "taxonomies" / "occupation.csv").read_text().splitlines()]
        parts = [values[i::4] for i in range(4)]
        keys = list(adult_policy()["quasi_identifiers"])
        question = CheckRequest(keys, _sensitive(parts), _specs(), folder=adult, twice=case.twice)
        start, processor = time.perf_counter(), time.process_time()
        (audit,) = check(Engine(connection, on_step=steps.append), Relation(("published",)), question)
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
    return {
        "rows": audit.rows,
        "classes": audit.classes,
        "l": case.l,
        "threads": case.threads,
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_memory_mb": peak_memory(),
        "requirements": [verdict.as_dict() for verdict in audit.verdicts],
        "steps": [{"name": step.name, "seconds": step.milliseconds / 1000} for step in steps],
        "versions": versions(),
    }


#: What child processes do.
TASKS = {"make": _make, "audit": _audit}


# -- the command line ---------------------------------------------------------------------------------


def audit(
    rows: Annotated[
        list[int], typer.Option(min=100, help="How many published rows; may be repeated.", show_default=False)
    ],
    l: Annotated[int, typer.Option("--l", min=2, help="The size of the classes.")] = 4,
    threads: Threads = 2,
    memory_limit: Memory = None,
    twice: Annotated[bool, typer.Option("--twice", help="With the second reading.")] = False,
    json: AsJson = False,
) -> None:
    """Time the audit of every requirement on a release with 7 quasi-identifiers, made from Adult.

    \b
    Examples:
      python -m tests.benchmarks.audit --rows 100000 --rows 1000000
    """
    found: list[dict[str, Any]] = []
    for count in rows:
        typer.echo(f"{count:,} rows …", err=True)
        found.append(measure_audit(AuditCase(count, l, threads, memory_limit, twice)))
    show("audit", json, found, COLUMNS)


app = command_of(audit)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.audit")
