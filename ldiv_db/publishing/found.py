"""What `auto` was found to be, as the ledger has it of the last run or release of a target."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ldiv_db.database.engine import Engine
from ldiv_db.database.queries import Where
from ldiv_db.publishing import ledger
from ldiv_db.publishing.ledger_there import bring_ledger
from ldiv_db.requirements import RequirementSpec


def auto_found(engine: Engine, target: str, specs: Sequence[RequirementSpec]) -> Sequence[RequirementSpec]:
    """Requirements with what `auto` was found to be, where the ledger, here or in a warehouse, has one number of it."""
    if not any(spec.is_auto for spec in specs):
        return specs
    bring_ledger(engine)
    known = [run for run in ledger.runs(engine) if (run["target"], run["status"]) == (target, ledger.PUBLISHED)]
    of_run = [Where("run_id", run["run_id"]) for run in known[-1:]]
    entered = ledger.table(engine, "run_requirement")
    met = engine.find(entered, "requirement", "parameters", where=of_run) if known else []
    nights = [
        one
        for one in ledger.releases(engine)
        if target in one.report.get("tables", ()) and one.status == ledger.PUBLISHED
    ]
    met += [
        (one["name"], json.dumps(one["parameters"])) for one in (nights[-1].report["requirements"] if nights else ())
    ]

    def settled(spec: RequirementSpec) -> RequirementSpec:
        found = {parameters for name, parameters in met if name == spec.name}
        return spec.settled(json.loads(found.pop())) if spec.is_auto and len(found) == 1 else spec

    return [settled(spec) for spec in specs]
