"""What the ledger has of a target: what `auto` was found to be, rows left out, tables of people, ends of nights."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ldiv_db.auditing.tables import Recorded
from ldiv_db.database import migrate
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.queries import Where
from ldiv_db.publishing import ledger
from ldiv_db.publishing.ledger import LAST_PERSON, Entry
from ldiv_db.publishing.ledger_there import bring_ledger
from ldiv_db.requirements import RequirementSpec


def auto_found(engine: Engine, target: str, specs: Sequence[RequirementSpec]) -> Sequence[RequirementSpec]:
    """Requirements with what `auto` was found to be, where the ledger, here or in a warehouse, has one number of it."""
    if not any(spec.is_auto for spec in specs):
        return specs
    bring_ledger(engine)
    of_run = _last_run(engine, target)
    entered = ledger.table(engine, "run_requirement")
    met = engine.find(entered, "requirement", "parameters", where=of_run) if of_run else []
    nights = [one for one in _nights(engine, target) if one.status == ledger.PUBLISHED]
    met += [
        (one["name"], json.dumps(one["parameters"])) for one in (nights[-1].report["requirements"] if nights else ())
    ]

    def settled(spec: RequirementSpec) -> RequirementSpec:
        found = {parameters for name, parameters in met if name == spec.name}
        return spec.settled(json.loads(found.pop())) if spec.is_auto and len(found) == 1 else spec

    return [settled(spec) for spec in specs]


def left_out_of(engine: Engine, target: str, rows: Table) -> int | None:
    """How many rows of its source a table lacks, None unless the ledger has the run that wrote it, as many rows."""
    of_run = _last_run(engine, target)
    found = (
        engine.find(ledger.table(engine, "run"), "rows_published", "rows_suppressed", where=of_run) if of_run else []
    )
    return next((int(left_out) for published, left_out in found if published == engine.count(rows)), None)


def is_recorded(engine: Engine, target: str) -> bool:
    """True if the ledger knows of a run that published the target."""
    return bool(_last_run(engine, target))


def recorded_tables(engine: Engine, target: str, by_nights: bool, knows_one: bool) -> Recorded:
    """What the ledger has of tables that are published; raises PolicyError where it lacks the nights that they have."""
    if by_nights:
        return Recorded(ends=_ends_of_nights(engine, target))
    of_run = _last_run(engine, target) if knows_one else []
    if not of_run or "tables_of_people" not in migrate.held(engine).columns("run"):
        return Recorded()
    ((found,),) = engine.find(ledger.table(engine, "run"), "tables_of_people", where=of_run)
    return Recorded(of_people=None if found is None else json.loads(found))


def _last_run(engine: Engine, target: str) -> list[Where]:
    """The last run that published the target, as rows of the ledger have it; empty if the ledger knows of none."""
    known = [run for run in ledger.runs(engine) if (run["target"], run["status"]) == (target, ledger.PUBLISHED)]
    return [Where("run_id", run["run_id"]) for run in known[-1:]]


def _ends_of_nights(engine: Engine, target: str) -> list[int]:
    """The last numbers of people and rows of each night of tables but the newest.

    Raises PolicyError where the ledger has no such nights: the tables do not tell which rows are of one night.
    """
    ends = [one.report[LAST_PERSON] for one in _nights(engine, target) if LAST_PERSON in one.report]
    if not ends:
        what = f"the ledger has none of {target}, and only it tells which rows are of one night"
        raise refused("nights", what, "read them where the ledger is")
    return sorted({*map(int, ends)})[:-1]


def _nights(engine: Engine, target: str) -> list[Entry]:
    """The releases whose table is the target, or whose tables are, in their order."""
    listed = ((one, one.report.get("tables", ())) for one in ledger.releases(engine))
    return [one for one, tables in listed if target in (*tables, ", ".join(tables))]
