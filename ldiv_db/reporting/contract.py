"""A policy as an Open Data Contract (ODCS): the published columns, and the audit as rules of quality in SQL.

It is for all who may read the release: columns that the source alone has are not named, nor are source, seed and
context. Values of the data stand in it only if a requirement of the policy names them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ldiv_db.auditing.check import check_request
from ldiv_db.auditing.statement import check_statement
from ldiv_db.database.catalog import named_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.steps import counting
from ldiv_db.policy.reading import Policy
from ldiv_db.reporting.request import policy_hash, written_policy
from ldiv_db.requirements.spec import RequirementSpec

_VERSION = "v3.0.2"
#: What the rules of all requirements have in common: no class violates one.
_RULE = {"type": "sql", "mustBe": 0, "unit": "classes", "dimension": "conformity", "severity": "error"}


def contract_of(engine: Engine, policy: Policy, table: str, dialect: str, types: Mapping[str, str]) -> dict[str, Any]:
    """The contract on the release of a policy, which is the `table` there; rules are in the SQL of a dialect.

    `types` are those of sensitive columns that are no text, as our own database calls them; the engine reads no table.
    Raises PolicyError for a policy whose release no single SELECT judges in the dialect.
    """
    request, judged = check_request(policy), named_table(table, "table")
    kinds: dict[str, Collection[str]] = {"quasi-identifier": request.quasi_identifiers, "sensitive": request.sensitive}
    kinds |= {"kept": policy.keep, "class": request.ids}

    def rule(spec: RequirementSpec) -> dict[str, Any]:
        name = spec.name + (f" of {', '.join(spec.sensitive)}" if spec.sensitive else "")
        query = counting(check_statement(engine, replace(request, require=[spec]), judged, dialect, types))
        return {"name": name, "description": f"The number of classes that violate {name}", "query": query} | _RULE

    release = {
        "name": table.rpartition(".")[2],
        "physicalName": table,
        "physicalType": "table",
        "logicalType": "object",
        "properties": [{"name": name, "tags": [kind]} for kind, names in kinds.items() for name in names],
        "quality": [rule(spec) for spec in policy.require],
    }
    hashed = policy_hash(written_policy(policy, public=True))
    return {
        "apiVersion": _VERSION,
        "kind": "DataContract",
        "id": f"ldiv:{table}",
        "name": table,
        "version": "1.0.0",
        "status": "active",
        "schema": [release],
        "customProperties": [{"property": "policySha256", "value": hashed}, {"property": "dialect", "value": dialect}],
    }
