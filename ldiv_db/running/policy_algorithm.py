"""The algorithm of a policy with its options, which is made before anything is read; its code alone is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ldiv_db.algorithms import ALGORITHMS, algorithm_of
from ldiv_db.algorithms.base import Algorithm, read_options
from ldiv_db.database.errors import PolicyError, Problem, nearest, refuse, refused
from ldiv_db.policy.document import Policy
from ldiv_db.policy.limits import limit_problems
from ldiv_db.policy.release_columns import ReleaseColumns

if TYPE_CHECKING:
    from ldiv_db.algorithms.decomposition.grouping import DecompositionOptions
    from ldiv_db.policy.resolve import Findings


def judge_algorithm(found: Findings) -> None:
    """Raise PolicyError unless there is such an algorithm for the policy, which has the options that are given."""
    policy = found.policy
    if policy.decomposes:
        decomposition_options(policy.algorithm.name, policy.algorithm.options)
    else:
        make_algorithm(policy)


def make_algorithm(policy: Policy) -> Algorithm:
    """The policy's algorithm with its options; raises PolicyError if there is none of that name."""
    name = policy.algorithm.name
    if policy.weight is not None and not policy.names_algorithm:
        from ldiv_db.solving.from_counts import FromCounts  # noqa: PLC0415 - few policies ask for it

        return FromCounts("set" in policy.released.forms.values())
    options = policy.algorithm.options
    algorithm = series_algorithm(name, options) if policy.is_series else algorithm_named(name, options)
    refuse_forms(algorithm, policy.released, policy)
    return algorithm


def series_algorithm(name: str, options: Mapping[str, Any]) -> Algorithm:
    """The algorithm that forms the classes of a series; raises PolicyError if there is none of that name."""
    if name != "bsgi":
        return algorithm_named(name, dict(options))
    from ldiv_db.algorithms.bsgi.bsgi import SeriesBsgi  # noqa: PLC0415 - as above

    return SeriesBsgi(dict(options))


def algorithm_named(name: str, options: dict[str, Any]) -> Algorithm:
    """The algorithm of that name with its options; raises PolicyError if there is none, or it has no such options."""
    if name not in ALGORITHMS:
        raise PolicyError([Problem("algorithm.name", f"no algorithm {name!r}", nearest(name, ALGORITHMS))])
    return algorithm_of(name)(options)


def refuse_forms(algorithm: Algorithm, released: ReleaseColumns, policy: Policy) -> None:
    """Raise PolicyError for sets where a recoding has none, and for what does not go with one for all rows."""
    if algorithm.excludes_sets and "set" in released.forms.values():
        what = f"{algorithm.name} publishes {algorithm.excludes_sets}, not sets"
        raise PolicyError([Problem("recode", what, "set recode: tree")])
    if algorithm.traits.recodes_globally:
        refuse(limit_problems(policy, "a global recoding", algorithm=algorithm.name))


def decomposition_options(name: str, given: Mapping[str, Any]) -> DecompositionOptions:
    """The options of the algorithm of that name; raises PolicyError if it has no such options."""
    from ldiv_db.algorithms.decomposition.grouping import DecompositionOptions  # noqa: PLC0415 - as above

    defaults = {"noise": "random"} if name == "decomposition" else {}
    options = read_options(name, DecompositionOptions, {**defaults, **given})
    if name != "decomposition_plus" and "starvation" in given:
        raise refused("algorithm.starvation", f"{name} has no row wait that could join a group")
    if name == "anatomy" and "combinations" in given:
        raise refused("algorithm.combinations", "anatomy has one attribute, and no combinations")
    return options
