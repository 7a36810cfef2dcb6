"""What the source tells of a release: how identifying it was before, and what the release lost. For internal eyes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_exactly
from ldiv_db.database.errors import PolicyError
from ldiv_db.measuring.measure import Wanted, measure_table
from ldiv_db.policy.policy import Policy
from ldiv_db.policy.resolve import describe
from ldiv_db.profiling.risk import RARE, measure_uniqueness
from ldiv_db.profiling.summary import summarise
from ldiv_db.reporting.asked import Asked
from ldiv_db.reporting.attacks_tried import risk_before
from ldiv_db.reporting.content import content_of
from ldiv_db.reporting.from_release import Table


def source_document(
    engine: Engine, table: Table, source: Table, policy: Policy, asked: Asked, hear: Callable[[str], None]
) -> dict[str, Any]:
    """Uniqueness and risk before, what was lost, and the hash of the source."""
    names = list(policy.quasi_identifiers)
    counts = policy.weight is not None
    hear("counting and hashing the source")
    found = {
        "uniqueness": None if counts else _uniqueness(engine, source, names),
        "risk_before": None if counts else risk_before(engine, source, names, Decimal(asked.threshold)),
        "content": content_of(engine, source).as_dict(),
    }
    hear("measuring what was lost")
    return found | {"utility": _utility(engine, table, source, policy, asked)}


def _uniqueness(engine: Engine, source: Table, names: Sequence[str]) -> dict[str, Any] | None:
    """How far the quasi-identifiers tell rows of the source apart, as `ldiv profile` has it."""
    rows = engine.count(source)
    wanted = {name.lower() for name in names}
    columns = [column for column in columns_of(engine, source) if column.name.lower() in wanted]
    with read_exactly(engine, source) as read:
        found = measure_uniqueness(engine, read, [summarise(engine, read, column, rows) for column in columns])
    if found is None:
        return None
    return {
        "rows": rows,
        "combinations": found.combinations,
        "unique_rows": found.unique_rows,
        "rare_rows": found.rare_rows,
        "rare": RARE,
        "unique_without": found.unique_without,
    }


def _utility(engine: Engine, table: Table, source: Table, policy: Policy, asked: Asked) -> dict[str, Any]:
    """What the release lost, as `ldiv measure` has it, with the distributions of columns before and after."""
    described = describe(engine, policy, source, asked.folder)
    wanted = Wanted(queries=asked.queries, seed=asked.seed, kl=False, spreads=True)
    if problems := wanted.problems():
        raise PolicyError(problems)
    found = measure_table(engine, table, described, wanted).as_dict()
    return {key: value for key, value in found.items() if key not in ("published", "source")}
