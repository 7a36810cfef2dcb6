"""What a policy may not say with `weight`: whatever needs rows where the source only counts them."""

from __future__ import annotations

from ldiv_db.database.errors import Problem
from ldiv_db.policy.document import Policy


def weight_problems(policy: Policy) -> list[Problem]:
    """What is at odds with a source of counts, if the policy has one."""
    if policy.weight is None:
        return []
    if not policy.weight.strip():
        return [Problem("weight", "names no column")]
    tables = "publishes tables of single rows, which counts do not distinguish"
    given = {
        "individual": (policy.individual is not None, "counts do not say whose rows they are"),
        "key": (policy.key is not None, "counts do not say which row is which over time"),
        "target.prefix": (policy.target.prefix is not None, "releases over time are of rows with a key"),
        "transparent": (policy.transparent, "transparent classes are made of rows"),
        "algorithm.name": (policy.decomposes, f"{policy.algorithm.name} {tables}"),
    }
    return [Problem(key, f"does not go with weight: {why}") for key, (wrong, why) in given.items() if wrong]
