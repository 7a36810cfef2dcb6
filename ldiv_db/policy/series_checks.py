"""What a policy lacks, or says in vain, of releases over time and of sensitive values in tables of their own."""

from __future__ import annotations

from ldiv_db.database.errors import Problem, nearest
from ldiv_db.policy.document import Policy
from ldiv_db.policy.series import COUNT, DECOMPOSITIONS, GROUP_ID, REPEATED


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
