"""A policy as an Open Data Contract (ODCS): the published columns, and the audit as rules of quality in SQL.

It is for all who may read the release: columns that the source alone has are not named, nor are source, seed and
context. Values of the data stand in it only if a requirement of the policy names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ldiv_db.auditing.check import CheckRequest, check_request
from ldiv_db.auditing.statement import check_statement
from ldiv_db.database.catalog import named_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.steps import counting
from ldiv_db.policy.reading import Policy
from ldiv_db.reporting.request import policy_hash, written_policy
from ldiv_db.requirements.spec import RequirementSpec

_VERSION = "v3.0.2"


def contract_of(engine: Engine, policy: Policy, table: str, dialect: str, types: Mapping[str, str]) -> dict[str, Any]:
    """The contract on the release of a policy, which is the `table` there; rules are in the SQL of a dialect.

    `types` are those of sensitive columns that are no text, as our own database calls them; the engine reads no table.
    Raises PolicyError for a policy whose release no single SELECT judges in the dialect.
    """
    request = check_request(policy)
    rules = [_rule(engine, request, spec, table, dialect, types) for spec in policy.require]
    release = {
        "name": table.rpartition(".")[2],
        "physicalName": table,
        "physicalType": "table",
        "logicalType": "object",
        "dataGranularityDescription": "one row a published row of the source",
        "properties": list(_columns(policy, request)),
        "quality": rules,
    }
    return {
        "apiVersion": _VERSION,
        "kind": "DataContract",
        "id": f"ldiv:{table}",
        "name": table,
        "version": "1.0.0",
        "status": "active",
        "schema": [release],
        "customProperties": [
            {"property": "policySha256", "value": policy_hash(written_policy(policy))},
            {"property": "dialect", "value": dialect},
        ],
    }


def _columns(policy: Policy, request: CheckRequest) -> Iterator[dict[str, Any]]:
    kinds = {
        "quasi-identifier": request.quasi_identifiers,
        "sensitive": request.sensitive,
        "kept": policy.keep,
        "class": request.ids,
    }
    for kind, names in kinds.items():
        yield from ({"name": name, "tags": [kind]} for name in names)


def _rule(
    engine: Engine, request: CheckRequest, spec: RequirementSpec, table: str, dialect: str, types: Mapping[str, str]
) -> dict[str, Any]:
    """One requirement: no class of the release violates it."""
    one = replace(request, require=[spec])
    text = check_statement(engine, one, named_table(table, "table"), dialect, types)
    on = f" of {', '.join(spec.sensitive)}" if spec.sensitive else ""
    return {
        "name": f"{spec.name}{on}",
        "description": f"No class violates {spec.name}{on}: the query counts those that do",
        "type": "sql",
        "query": counting(text),
        "mustBe": 0,
        "dimension": "conformity",
        "severity": "error",
        "unit": "classes",
    }
