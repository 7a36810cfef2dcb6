"""Rules on what a policy may not say together.

`same` excludes what compares values as they are written; `weight` what needs rows where the source only counts them;
`transparent: true` whatever no proof covers. There are two proofs: that of `algorithms/transparent`, for classes with
labels, and that of `decomposition/grouping`, for groups that coins alone make. Both are of one release, one sensitive
attribute and all rows.

Releases over time, and sensitive values in tables of their own, need some keys and exclude others.
"""

from __future__ import annotations

from ldiv_db.database.errors import Problem, nearest
from ldiv_db.policy.document import Policy
from ldiv_db.policy.sources import COUNT, DECOMPOSITIONS, GROUP_ID, REPEATED


def same_problems(policy: Policy) -> list[Problem]:
    """What is at odds with sensitive columns whose texts are one after some steps, if there are any."""
    why = (
        "a transparent release: how a row is written distinguishes it from others of its value"
        if policy.transparent
        else "releases over time, which are compared by what they write"
        if policy.is_series
        else ""
    )
    columns = [name for name, setting in policy.sensitive.items() if setting.same] if why else []
    return [Problem(f"sensitive.{name}.same", f"does not go with {why}", "leave it out") for name in columns]


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


def series_problems(policy: Policy) -> list[Problem]:
    """What a policy lacks, or says that does not go with its algorithm, of releases over time and several tables."""
    problems = _decomposition_problems(policy) if policy.decomposes else _undecomposed_problems(policy)
    return problems + _harmless_problems(policy)


def _harmless_problems(policy: Policy) -> list[Problem]:
    """Values of which nothing is to be promised, where all values are treated alike."""
    what = f"{policy.algorithm.name} treats all values alike"
    return [
        Problem(f"sensitive.{name}.harmless", what, "algorithm: auto publishes one table in which some are harmless")
        for name, setting in policy.sensitive.items()
        if setting.harmless and policy.is_series
    ]


def _decomposition_problems(policy: Policy) -> list[Problem]:
    """What a decomposition needs and lacks, and what it does not take."""
    problems = _lacking(policy) + _not_taken(policy)
    names = {name.lower() for name in policy.sensitive}
    primary = policy.primary
    if not names:
        return problems
    if primary.lower() not in names:
        problems.append(
            Problem("algorithm.primary", f"{primary!r} is not sensitive", nearest(primary, policy.sensitive))
        )
        return problems
    ls = {name.lower(): setting.l for name, setting in policy.sensitive.items()}
    most = ls[primary.lower()]
    problems += [
        Problem(
            f"sensitive.{name}.l", f"is more than the {most} rows of a group", f"l of {primary} is the most there is"
        )
        for name, setting in policy.sensitive.items()
        if most is not None and setting.l is not None and setting.l > most
    ]
    return problems


def _lacking(policy: Policy) -> list[Problem]:
    return _lacking_of_series(policy) + [
        Problem(f"sensitive.{name}.l", "is required: how many values a group has")
        for name, setting in policy.sensitive.items()
        if setting.l is None
    ]


def _lacking_of_series(policy: Policy) -> list[Problem]:
    problems = [] if policy.target.prefix else [Problem("target.prefix", "is required: every release has its tables")]
    if policy.key is None:
        problems.append(Problem("key", "is required: the column that says which row is which over time"))
    return problems


def _not_taken(policy: Policy) -> list[Problem]:
    name = policy.algorithm.name
    given = {
        "require": (bool(policy.require), "give l to each sensitive attribute"),
        "individual": (policy.individual is not None, "one row a key"),
        "suppression": _no_budget(policy),
        **_places_not_taken(policy),
    }
    problems = [Problem(key, f"does not go with {name}", hint) for key, (wrong, hint) in given.items() if wrong]
    if name == "anatomy" and len(policy.sensitive) > 1:
        problems.append(Problem("sensitive", "anatomy protects one attribute", "or use decomposition_plus"))
    shown = {column.lower() for role, column in policy.roles() if role not in ("identifiers", "key")}
    own = [GROUP_ID, COUNT] if name == "anatomy" else [GROUP_ID]
    what = f"is what {name} calls a column of its own"
    return problems + [Problem(column, what, "rename it") for column in own if column in shown]


def _no_budget(policy: Policy) -> tuple[bool, str]:
    return policy.suppression is not None, "leave it out: rows that find no place wait for a later release"


def _places_not_taken(policy: Policy) -> dict[str, tuple[bool, str]]:
    target = policy.target
    return {
        "target.file": (target.file is not None and target.format != "duckdb", "a DuckDB file holds several tables"),
        "target.table": (target.table is not None, "give a prefix"),
        "target.if_exists": (target.if_exists != "fail", "every release has tables of its own"),
    }


def _undecomposed_problems(policy: Policy) -> list[Problem]:
    """What only a decomposition takes, what any other algorithm needs, and what releases over time need."""
    problems = [] if policy.require else [Problem("require", "must name one requirement at least")]
    plus, repeated = next(iter(DECOMPOSITIONS)), ", ".join(REPEATED)
    problems += [
        Problem(f"sensitive.{name}.l", "goes with a decomposition", f"algorithm: {plus}")
        for name, setting in policy.sensitive.items()
        if setting.l is not None
    ]
    given = {"key": policy.key is not None, "target.prefix": policy.target.prefix is not None}
    if not any(given.values()):
        return problems
    if policy.algorithm.name in REPEATED:
        return problems + _repeated_problems(policy)
    hint = f"algorithm: {plus} or {repeated}"
    return problems + [Problem(key, "goes with releases over time", hint) for key, wrong in given.items() if wrong]


def _repeated_problems(policy: Policy) -> list[Problem]:
    """What releases over time of one table need and lack, and what they do not take."""
    given = {
        **_places_not_taken(policy),
        "suppressed": (policy.suppressed != "judge", "nothing is suppressed"),
        "suppression": _no_budget(policy),
        **{
            f"require.{number}": (spec.is_auto, "give a number, which stays the same for all releases")
            for number, spec in enumerate(policy.require)
        },
    }
    what = "does not go with releases over time"
    return _lacking_of_series(policy) + [Problem(key, what, hint) for key, (wrong, hint) in given.items() if wrong]
