"""`python -m tests.benchmarks.hospital`: what a release of a hospital's stays loses and takes, by whom it protects.

The stays are made up and messy: most patients have one, some up to fifteen; postal code and insurance change when
somebody moves, some are missing, and a few dates of birth are wrong in one stay. Diagnoses are skewed, and often
return with the patient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import accumulate, product
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from ldiv_db.commands.options import Memory
from ldiv_db.database.connections import open_database
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import LdivError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.reading import read_requirements
from ldiv_db.requirements import REQUIREMENTS
from tests.benchmarks.child_processes import measure_in_children, run_watched, settings_of
from tests.benchmarks.command import AsJson, Threads, command_of, engine_on, refuse_unknown, show

ROWS, PATIENTS, MOST_STAYS = 80_000, 52_000, 15
COLUMNS = {
    "patient_nr": "INTEGER", "birth": "DATE", "sex": "VARCHAR", "zip": "VARCHAR", "insurance": "VARCHAR",
    "admitted": "TIMESTAMP", "ward": "VARCHAR", "diagnosis": "VARCHAR", "cost": "DECIMAL(10,2)",
}  # fmt: skip
#: What a policy says of patients, by whom it protects.
INDIVIDUALS: dict[str, dict[str, Any]] = {
    "none": {},
    "apart": {"individual": "patient_nr"},
    "together": {"individual": {"column": "patient_nr", "rows": "together"}},
    "aligned": {"individual": {"column": "patient_nr", "rows": "aligned", "order": "admitted"}},
}

#: How many times patients have one to five stays, where they have few.
_FEW = (11_718, 6_228, 1_634, 322, 39)
_FIRST_DAY, _DAYS = datetime(2016, 1, 1), 8 * 365
#: The diagnoses of each ward, the most frequent first.
_DIAGNOSES = {
    "medicine": ("pneumonia", "heart failure", "sepsis", "urinary infection", "diabetes", "gastroenteritis", "anaemia",
                 "hepatitis", "tuberculosis", "HIV"),
    "surgery": ("gallstones", "appendicitis", "hernia", "hip fracture", "wrist fracture", "ileus", "burns"),
    "cardiology": ("atrial fibrillation", "angina", "heart attack", "hypertension", "myocarditis"),
    "oncology": ("breast cancer", "lung cancer", "colon cancer", "lymphoma", "leukaemia", "melanoma"),
    "obstetrics": ("delivery", "caesarean", "miscarriage", "pre-eclampsia"),
    "neurology": ("stroke", "epilepsy", "migraine", "multiple sclerosis"),
    "psychiatry": ("depression", "alcohol withdrawal", "psychosis", "anorexia"),
}  # fmt: skip
_DRAWN = [(ward, name) for ward, names in _DIAGNOSES.items() for name in names]
#: How often the wards are gone to, and how many times a diagnosis or one named before it is made.
_VISITS = (8, 6, 5, 3, 3, 2, 1)
_FREQUENCIES = list(
    accumulate(
        visits / place
        for visits, names in zip(_VISITS, _DIAGNOSES.values(), strict=True)
        for place in range(1, len(names) + 1)
    )
)
_INSURANCES = ("AOK", "TK", "Barmer", "DAK", "IKK", "BKK", "Knappschaft", "private", "none")
_AREAS = ("10", "12", "13", "14", "15", "16", "03")


@dataclass(frozen=True)
class Case:
    """One benchmark: the stays, the policy's algorithm, requirement and whom it protects."""

    rows: int
    patients: int
    algorithm: str
    require: str
    individual: str
    dirty: bool = False
    few: bool = False
    seed: int = 1
    threads: int = 2
    memory_limit: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        zips: dict[str, Any] = {"zip": {"taxonomy": {"prefix": [5, 3, 2]}}, "insurance": {"taxonomy": {"flat": True}}}
        regions: dict[str, Any] = {"zip": {"taxonomy": {"prefix": [2]}}}
        return {
            "source": "main.stays",
            "target": "published.stays",
            "quasi_identifiers": {
                "birth": {"numeric": True},
                "sex": {"taxonomy": {"flat": True}},
                **(regions if self.few else zips),
                "admitted": {"numeric": True},
            },
            "identifiers": ["insurance"] * self.few + ["patient_nr"] * (self.individual == "none"),
            "sensitive": {"diagnosis": {"same": ["trim", "casefold"] if self.dirty else []}},
            "keep": ["ward", "cost"],
            "require": [{spec.name: spec.argument} for spec in read_requirements(self.require)],
            "algorithm": self.algorithm,
            "seed": self.seed,
        } | INDIVIDUALS[self.individual]


# -- the stays ---------------------------------------------------------------------------------------


def make_stays(
    engine: Engine, rows: int, patients: int, seed: int = 1, dirty: bool = False, few: bool = False
) -> Relation:
    """The table `stays` of so many rows of so many patients; `dirty` writes some diagnoses in other ways.

    Where patients have `few` stays, five at most, there are about half as many more rows than patients.

    The engine is one of `engine_on`.
    """
    stays, drawn = (
        Relation(("main", "stays")),
        engine.load("stays", COLUMNS, list(_stays(rows, patients, seed, dirty, few))),
    )
    # In the order of admission, as a hospital writes them: a patient's stays lie apart.
    columns = [Identifier(name) for name in COLUMNS]
    engine.create(stays, "sort_stays", stays=drawn, columns=columns, by=Identifier("admitted"))
    engine.drop(drawn)
    return stays


def _stays(rows: int, patients: int, seed: int, dirty: bool, few: bool) -> Iterator[tuple[Any, ...]]:
    draw = Random(seed)
    counts = draw.choices((1, 2, 3, 4, 5), _FEW, k=patients) if few else _counts(draw, rows, patients)
    for patient, count in enumerate(counts, 1):
        for stay in _stays_of(draw, count):
            *others, diagnosis, cost = stay
            yield patient, *others, _misspelt(draw, diagnosis) if dirty else diagnosis, cost


def _counts(draw: Random, rows: int, patients: int) -> list[int]:
    """How many stays each patient has: the frailer somebody is, the more."""
    counts = [1] * patients
    frailty = list(accumulate(draw.expovariate(1) ** 2 for _ in counts))
    left = rows - patients
    while left:
        for patient in draw.choices(range(patients), cum_weights=frailty, k=left):
            counts[patient] += counts[patient] < MOST_STAYS
        left = rows - sum(counts)
    return counts


def _stays_of(draw: Random, count: int) -> Iterator[tuple[Any, ...]]:
    """The stays of one patient, as columns after the patient's number."""
    birth = date(2016, 1, 1) - timedelta(days=int(draw.triangular(0, 98 * 365, 68 * 365)))
    sex = draw.choices(("f", "m", "x"), (51, 48.7, 0.3))[0]
    place, insurance, illness = _zip(draw), _insurance(draw), _diagnosis(draw, sex, birth)
    wrong = draw.randrange(count) if count > 1 and draw.random() < 0.02 else None
    for stay, day in enumerate(sorted(draw.sample(range(_DAYS), count))):
        if stay and draw.random() < 0.08:
            place = _zip(draw)
        if stay and draw.random() < 0.05:
            insurance = _insurance(draw)
        ward, diagnosis = illness if draw.random() < 0.5 else _diagnosis(draw, sex, birth)
        admitted = _FIRST_DAY + timedelta(days=day, minutes=draw.randrange(24 * 60))
        cost = round(draw.lognormvariate(8, 0.8), 2)
        yield _mistaken(draw, birth) if stay == wrong else birth, sex, place, insurance, admitted, ward, diagnosis, cost


def _zip(draw: Random) -> str | None:
    """A code of the region, the first areas and codes the most often."""
    area = _AREAS[min(int(draw.expovariate(0.5)), len(_AREAS) - 1)]
    return None if draw.random() < 0.02 else f"{area}{min(int(draw.expovariate(0.03)) * 7, 999):03}"


def _insurance(draw: Random) -> str:
    return _INSURANCES[min(int(draw.expovariate(0.5)), len(_INSURANCES) - 1)]


def _diagnosis(draw: Random, sex: str, birth: date) -> tuple[str, str]:
    """A ward and a diagnosis; of childbirth for women of an age for it alone."""
    while True:
        ward, diagnosis = draw.choices(_DRAWN, cum_weights=_FREQUENCIES)[0]
        if ward != "obstetrics" or (sex == "f" and 1970 < birth.year < 2002):
            return ward, diagnosis


def _mistaken(draw: Random, birth: date) -> date:
    """A date of birth as it is mistyped: another year or day, or day and month changed round."""
    if birth.day <= 12 and draw.random() < 0.3:
        return birth.replace(month=birth.day, day=birth.month)
    return birth - timedelta(days=draw.choice((1, 10, 365, 3652)))


def _misspelt(draw: Random, text: str) -> str:
    changes = (text, text.upper(), text.capitalize(), f"{text} ", f" {text}")
    return draw.choices(changes, (88, 3, 5, 3, 1))[0]


# -- the children ------------------------------------------------------------------------------------


def measure(case: Case) -> dict[str, Any]:
    """What the release lost (lm_mean, lm_by_column) and took (processor_seconds, peak_memory_mb, seconds).

    Raises LdivError if a child fails, with what it said and its exit code.
    """
    return measure_in_children("tests.benchmarks.hospital", case, ("make", "run"))


def _make(case: Case, folder: Path) -> None:
    with open_database(folder / "bench.duckdb", create=True, settings=settings_of(case, folder)) as connection:
        make_stays(engine_on(connection), case.rows, case.patients, case.seed, case.dirty, case.few)


def _run(case: Case, folder: Path) -> dict[str, Any]:
    result, took = run_watched(case, folder)
    return {
        "rows": case.rows,
        "patients": case.patients,
        "chosen": result.algorithm,
        "require": case.require,
        "individual": case.individual,
        "lm_by_column": result.loss.lm_by_column,
        "classes": result.loss.classes,
        "rows_suppressed": result.loss.rows_suppressed,
        **took,
    }


#: What child processes do.
TASKS = {"make": _make, "run": _run}


def as_table(results: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The headings and rows of a table of results, for people; the losses of columns are per row."""
    columns = list(results[0]["lm_by_column"]) if results else []
    headings = ["algorithm", "require", "individual", "mean LM", *columns, "classes", "left out", "processor s",
                "peak MB"]  # fmt: skip
    return headings, [
        [
            found["algorithm"],
            found["require"],
            found["individual"],
            f"{found['lm_mean']:.4f}",
            *(f"{found['lm_by_column'][name]:.4f}" for name in columns),
            f"{found['classes']:,}",
            f"{found['rows_suppressed']:,}",
            f"{found['processor_seconds']:.1f}",
            f"{found['peak_memory_mb']:,.0f}",
        ]
        for found in results
    ]


# -- the command line ---------------------------------------------------------------------------------


def hospital(
    rows: Annotated[int, typer.Option(min=1, help="How many stays.")] = ROWS,
    patients: Annotated[int, typer.Option(min=1, help="How many patients have them.")] = PATIENTS,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="Of a policy; may be repeated. `auto` if not given.")
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(help="One at a time; may be repeated. frequency:3 and k:5 if not given.")
    ] = None,
    individual: Annotated[
        list[str] | None, typer.Option(help=f"Of {', '.join(INDIVIDUALS)}; may be repeated. `none` if not given.")
    ] = None,
    dirty: Annotated[bool, typer.Option("--dirty", help="Diagnoses in several spellings.")] = False,
    few: Annotated[
        bool, typer.Option("--few", help="Patients have five stays at most, and are known by region, not insurance.")
    ] = False,
    seed: Annotated[int, typer.Option(help="What the stays are drawn by.")] = 1,
    threads: Threads = 2,
    memory_limit: Memory = None,
    json: AsJson = False,
) -> None:
    """Measure what a release of a hospital's stays loses and takes, with and without patients who have several.

    What is refused is said, and left out.

    \b
    Examples:
      python -m tests.benchmarks.hospital --algorithm topdown --individual none --individual apart
      python -m tests.benchmarks.hospital --rows 8000 --patients 5200 --require frequency:3 --json
    """
    if not patients <= rows <= MOST_STAYS * patients:
        raise typer.BadParameter(f"patients have from one to {MOST_STAYS} stays", param_hint="--rows")
    refuse_unknown("--individual", individual or (), list(INDIVIDUALS))
    requirements = require or ["frequency:3", "k:5"]
    refuse_unknown("--require", [spec.name for spec in read_requirements(requirements)], list(REQUIREMENTS))
    asked = product(requirements, algorithm or ["auto"], individual or ["none"])
    found: list[dict[str, Any]] = []
    for one, name, whom in asked:
        typer.echo(f"{name}, {one}, individual {whom} …", err=True)
        try:
            found.append(measure(Case(rows, patients, name, one, whom, dirty, few, seed, threads, memory_limit)))
        except LdivError as error:
            typer.echo(str(error), err=True)
    show("hospital", json, found, as_table)


app = command_of(hospital)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.hospital")
