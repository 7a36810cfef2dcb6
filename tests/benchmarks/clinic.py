"""`python -m tests.benchmarks.clinic`: what several tables published as one release lose and take, beside stays alone.

Patients, their stays and the laboratory values of these are drawn in the database, by a seed. Stays alone are one
table, with what identifies their patients, in which a patient's stays are aligned, or `together`. In the stays of the
hospital one diagnosis is too frequent among those who have several.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from ldiv_db.commands.options import Memory
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from tests.benchmarks.child_processes import measure_in_children, run_watched, settings_of
from tests.benchmarks.command import AsJson, Columns, Threads, command_of, engine_on, refuse_unknown, show

PATIENTS = 52_000
OF_PATIENTS: dict[str, Any] = {"birth": {"numeric": True}, "sex": {}, "zip": {"taxonomy": {"prefix": [4, 2, 1]}}}
OF_STAYS: dict[str, Any] = {"admitted": {"numeric": True}, "ward": {}}
ORDERED = {"column": "patient_nr", "rows": "aligned", "order": "admitted"}
#: What is published, by name.
RELEASES: dict[str, dict[str, Any]] = {
    "tables": {
        "individual": "patient_nr",
        "tables": {
            "patients": {
                "source": "main.patients",
                "person": "patient_nr",
                "identifiers": ["name"],
                "quasi_identifiers": OF_PATIENTS,
                "target": "published.patients",
            },
            "stays": {
                "source": "main.stays",
                "person": "patient_nr",
                "key": "stay_id",
                "order": "admitted",
                "quasi_identifiers": OF_STAYS,
                "sensitive": ["diagnosis"],
                "keep": ["los"],
                "target": "published.stays",
            },
            "labs": {
                "source": "main.labs",
                "parent": {"stay_id": "stays"},
                "identifiers": ["lab_id"],
                "sensitive": ["result_class"],
                "target": "published.labs",
            },
        },
    },
    "stays": {
        "source": {"query": "SELECT s.*, p.birth, p.sex, p.zip FROM stays AS s JOIN patients AS p USING (patient_nr)"},
        "target": "published.stays",
        "individual": ORDERED,
        "identifiers": ["stay_id"],
        "quasi_identifiers": OF_PATIENTS | OF_STAYS,
        "sensitive": ["diagnosis"],
        "keep": ["los"],
    },
}
RELEASES["together"] = RELEASES["stays"] | {"individual": {"column": "patient_nr", "rows": "together"}}
#: The template that draws the stays, by whose they are; each beside how many patients there are if that is not said.
STAYS = {"clinic": ("draw_stays", PATIENTS), "hospital": ("draw_hospital_stays", 19_946)}


@dataclass(frozen=True)
class Case:
    """One benchmark: how many patients there are, what of them is published, and by which algorithm."""

    rows: int
    release: str
    algorithm: str
    schema: str = "clinic"
    seed: int = 1
    threads: int = 2
    memory_limit: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        beside = {"require": [{"frequency": 3}, {"k": 4}], "algorithm": self.algorithm, "seed": self.seed}
        return RELEASES[self.release] | beside


def make_clinic(engine: Engine, patients: int, seed: int, schema: str = "clinic") -> dict[str, Relation]:
    """The tables `patients`, `stays` and `labs`, by name; the engine is one of `engine_on`."""
    made = {name: Relation(("main", name)) for name in ("patients", "stays", "labs")}
    engine.create(made["patients"], "draw_patients", patients=patients, seed=seed)
    engine.create(made["stays"], STAYS[schema][0], patients=made["patients"], seed=seed)
    engine.create(made["labs"], "draw_labs", stays=made["stays"], seed=seed)
    return made


def measure(case: Case) -> dict[str, Any]:
    """What the release lost (lm_mean, left_out by table) and took (processor_seconds, peak_memory_mb, seconds).

    Raises LdivError if a child fails, with what it said and its exit code.
    """
    return measure_in_children("tests.benchmarks.clinic", case, ("make", "run"))


def _make(case: Case, folder: Path) -> None:
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        make_clinic(engine_on(connection), case.rows, case.seed, case.schema)


def _run(case: Case, folder: Path) -> dict[str, Any]:
    result, took = run_watched(case, folder)
    several = {one.name: one.loss.rows_suppressed for one in result.tables}
    return {
        "schema": case.schema,
        "patients": case.rows,
        "release": case.release,
        "left_out": several or {"stays": result.loss.rows_suppressed},
        "levels": len(result.search.get("levels", ())),
        **took,
    }


#: What child processes do.
TASKS = {"make": _make, "run": _run}


COLUMNS: Columns = {
    "schema": "{schema}",
    "patients": "{patients:,}",
    "release": "{release}",
    "algorithm": "{algorithm}",
    "mean LM": "{lm_mean:.4f}",
    "left out": lambda found: ", ".join(f"{rows:,} {name}" for name, rows in found["left_out"].items()),
    "levels": "{levels}",
    "processor s": "{processor_seconds:.1f}",
    "seconds": "{seconds:.1f}",
    "peak MB": "{peak_memory_mb:,.0f}",
}


def clinic(
    patients: Annotated[
        int | None,
        typer.Option(min=1, help="How many patients there are: 52,000 of the clinic, 19,946 of the hospital."),
    ] = None,
    schema: Annotated[str, typer.Option(help=f"Whose stays are drawn: {' or '.join(STAYS)}.")] = "clinic",
    release: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(RELEASES)}; may be repeated. tables and stays by default.")
    ] = None,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="Of a policy; may be repeated. `topdown` if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="What the tables are drawn by.")] = 1,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Measure what several tables as one release lose and take: patients, 1.5 stays each, 2.5 laboratory values a stay.

    \b
    Examples:
      python -m tests.benchmarks.clinic
      python -m tests.benchmarks.clinic --schema hospital --release stays --release together
      python -m tests.benchmarks.clinic --patients 5000 --release tables --algorithm auto --json
    """
    refuse_unknown("--release", release or (), list(RELEASES))
    refuse_unknown("--schema", [schema], list(STAYS))
    asked = product(release or ["tables", "stays"], algorithm or ["topdown"])
    found = [
        measure(Case(patients or STAYS[schema][1], what, name, schema, seed, threads, memory_limit))
        for what, name in asked
    ]
    show("clinic", json, found, COLUMNS)


app = command_of(clinic)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.clinic")
