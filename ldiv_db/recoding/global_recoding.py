"""Global recodings in the ledger: the columns of a release, and the rules that its quasi-identifiers follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.catalog import catalog_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Value
from ldiv_db.policy.resolve import Source
from ldiv_db.recoding.recode import Recoding
from ldiv_db.recoding.rules import Rule, rules_of
from ldiv_db.requirements import Requirement

QUASI_IDENTIFIER, SENSITIVE, KEEP = "quasi-identifier", "sensitive", "keep"
#: The role of a column of counts, of a run whose source held these in place of rows: no column of the release.
WEIGHT = "weight"
#: The ledger's tables of a recoding.
TABLES = ("run_recoding", "run_column", "run_rule")
_RECODING = {"run_id": "VARCHAR", "scheme": "VARCHAR"}
_COLUMN = {
    "run_id": "VARCHAR",
    "place": "INTEGER",
    "name": "VARCHAR",
    "role": "VARCHAR",
    "type": "VARCHAR",
    "nulls": "BOOLEAN",
}
_RULE = {
    "run_id": "VARCHAR",
    "place": "INTEGER",
    "number": "INTEGER",
    "kind": "VARCHAR",
    "low": "VARCHAR",
    "high": "VARCHAR",
    "label": "VARCHAR",
}
#: The type of a column that the source of a run lacks.
_UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class RecodedColumn:
    """A column of the release; `nulls` says whether NULL is a value, `rules` what it is published as."""

    name: str
    role: str
    type: str
    nulls: bool
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class GlobalRecoding:
    """What is published of every row, whatever the others are, and what a class that violates loses (`scheme`)."""

    scheme: str
    columns: tuple[RecodedColumn, ...]


def recoding_of(
    engine: Engine, source: Source, recoding: Recoding, search: dict[str, Any], requirements: Iterable[Requirement]
) -> GlobalRecoding | None:
    """The recoding that a search has found; None if the rows that its scheme leaves out do not follow from it.

    A SELECT knows thresholds on the values of one attribute, and the fewest rows and values of a class.
    """
    scheme = str(search.get("scheme", "none"))
    if scheme == "vioRec" and search.get("metric") == "CM":
        return None
    if len(source.sensitive) > 1 or (scheme == "allRec" and not all(one.kept_by_select for one in requirements)):
        return None
    rules = rules_of(engine, recoding, {qi.name: qi.hierarchy for qi in source.quasi_identifiers})
    if rules is None:
        return None
    types = {name: column.shown for name, column in source.types.items()}
    found = [
        RecodedColumn(name, QUASI_IDENTIFIER, types[name], any(rule.kind == "null" for rule in own), tuple(own))
        for name, own in rules.items()
    ]
    nulls = source.nulls_sensitive == "value"
    found += [RecodedColumn(column.name, SENSITIVE, column.shown, nulls) for column in source.sensitive]
    found += [RecodedColumn(column.name, KEEP, column.shown, True) for column in source.keep]
    found += [RecodedColumn(name, KEEP, _UNKNOWN, True) for name in source.uncounted]
    found += [RecodedColumn(source.weight.name, WEIGHT, source.weight.shown, False)] if source.weight else []
    return GlobalRecoding(scheme, tuple(found))


def record_recoding(engine: Engine, run_id: str, recoding: GlobalRecoding) -> None:
    """Enter a run's recoding into the ledger, which is up to date; call inside a transaction."""
    engine.append(catalog_table(engine, "run_recoding"), _RECODING, [(run_id, recoding.scheme)])
    listed = list(enumerate(recoding.columns, 1))
    columns = [(run_id, place, c.name, c.role, c.type, c.nulls) for place, c in listed]
    engine.append(catalog_table(engine, "run_column"), _COLUMN, columns)
    rules = [
        (run_id, place, number, rule.kind, rule.low, rule.high, rule.label)
        for place, column in listed
        for number, rule in enumerate(column.rules, 1)
    ]
    engine.append(catalog_table(engine, "run_rule"), _RULE, rules)


def forget_recoding(engine: Engine, run_id: str) -> None:
    """Delete a run's recoding from the ledger."""
    for table in TABLES:
        engine.delete(catalog_table(engine, table), {"run_id": run_id})


def fetch_recoding(engine: Engine, run_id: str) -> GlobalRecoding | None:
    """The recoding of a run, None if the ledger has none."""
    run = Value(run_id)
    schemes = engine.rows("recoding/statement/find_scheme", recodings=catalog_table(engine, "run_recoding"), run=run)
    if not schemes:
        return None
    rules = defaultdict(list)
    for place, *rule in engine.rows("recoding/statement/list_rules", rules=catalog_table(engine, "run_rule"), run=run):
        rules[place].append(Rule(*rule))
    columns = engine.rows("recoding/statement/list_columns", columns=catalog_table(engine, "run_column"), run=run)
    return GlobalRecoding(
        schemes[0][0],
        tuple(
            RecodedColumn(name, role, kind, nulls, tuple(rules[place])) for place, name, role, kind, nulls in columns
        ),
    )
