"""What a policy may not say with `transparent: true`: whatever the proof of `algorithms/transparent` does not cover."""

from __future__ import annotations

from ldiv_db.database.errors import Problem
from ldiv_db.policy.document import Policy

#: The algorithm whose classes are made transparently when a policy asks for it.
TRANSPARENT = "bsgi"


def transparent_problems(policy: Policy) -> list[Problem]:
    """What is at odds with a transparent release, if the policy asks for one."""
    if not policy.transparent:
        return []
    given = {**_of_algorithm(policy), **_of_people(policy), **_left_out(policy)}
    return [
        Problem(key, f"does not go with transparent: {why}", hint) for key, (wrong, why, hint) in given.items() if wrong
    ]


#: Whether something is said, why it is in the way, and what to say in its place; by its key.
_Given = dict[str, tuple[bool, str, str]]


def _of_algorithm(policy: Policy) -> _Given:
    algorithm = policy.algorithm
    if algorithm.name != TRANSPARENT:
        why = f"what {algorithm.name} publishes is not made in a way that may be known"
        return {"algorithm.name": (True, why, f"algorithm: {TRANSPARENT}")}
    return {
        "algorithm.select": (
            algorithm.options.get("select", "refine") != "refine",
            "classes are selected by coins and counts",
            "leave it out",
        ),
        "algorithm.residue": (
            algorithm.options.get("residue", "incorporate") != "incorporate",
            "all rows are published",
            "leave it out",
        ),
    }


def _of_people(policy: Policy) -> _Given:
    several, again = "it is proved for one sensitive attribute", "releases that are compared tell more"
    return {
        "sensitive": (len(policy.sensitive) > 1, several, "name one, and leave out the others"),
        "individual": (policy.individual is not None, "it is proved for one row of each person", ""),
        "key": (policy.key is not None, again, "publish one release"),
        "target.prefix": (policy.target.prefix is not None and policy.key is None, again, "give a table or a file"),
        "target.if_exists": (policy.target.if_exists == "append", again, "give a table of its own"),
    }


def _left_out(policy: Policy) -> _Given:
    missing = "who is left out is told apart"
    return {
        "nulls": (policy.nulls == "suppress", missing, "nulls: value"),
        "nulls_sensitive": (policy.nulls_sensitive == "suppress", missing, "nulls_sensitive: value"),
        "suppressed": (policy.suppressed != "judge", "NULL is a value like any other", "leave it out"),
    }
