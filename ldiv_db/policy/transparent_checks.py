"""What a policy may not say with `transparent: true`: whatever no proof covers.

There are two: that of `algorithms/transparent`, for classes with labels, and that of `decomposition/grouping`, for
groups that coins alone make. Both are of one release, one sensitive attribute and all rows.
"""

from __future__ import annotations

from ldiv_db.database.errors import Problem
from ldiv_db.policy.document import Policy
from ldiv_db.policy.series import DECOMPOSITIONS

#: The algorithms that publish transparently when a policy asks for it.
TRANSPARENT = ("bsgi", *DECOMPOSITIONS)


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
    if algorithm.name not in TRANSPARENT:
        why = f"what {algorithm.name} publishes is not made in a way that may be known"
        return {"algorithm.name": (True, why, f"take {', '.join(TRANSPARENT)}")}
    if policy.decomposes:
        return {}
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
    several, again = "it is proved for one sensitive attribute", "releases that are compared reveal more"
    return {
        "sensitive": (len(policy.sensitive) > 1, several, "name one, and leave out the others"),
        "individual": (policy.individual is not None, "it is proved for one row of each person", ""),
        "key": (policy.key is not None and not policy.decomposes, again, "publish one release"),
        "target.prefix": (policy.target.prefix is not None and policy.key is None, again, "give a table or a file"),
        "target.if_exists": (policy.target.if_exists == "append", again, "give a table of its own"),
    }


def _left_out(policy: Policy) -> _Given:
    missing = "people who are left out stand out"
    return {
        "nulls": (policy.nulls == "suppress", missing, "nulls: value"),
        "nulls_sensitive": (policy.nulls_sensitive == "suppress", missing, "nulls_sensitive: value"),
        "suppression": (policy.suppression is not None, missing, "leave it out"),
        "suppressed": (policy.suppressed != "judge", "NULL is a value like any other", "leave it out"),
    }
