"""What a policy cannot have together: pairs of features, as `limits.toml` lists them with why, and a way out.

A feature is one predicate on a policy. Some are not the policy's: the place that it is run in, and what its algorithm
does, are given by those who know them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ldiv_db.database.errors import Problem
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.rule import Args, PolicyRule, When
from ldiv_db.policy.settings import QuasiIdentifier, Recode, SetsUpTo
from ldiv_db.policy.sources import DECOMPOSITIONS, DEFAULT_ALGORITHM, KEEPS_APART
from ldiv_db.policy.targets import FLAT, Target
from ldiv_db.requirements import REQUIREMENTS, RequirementSpec


class Feature(NamedTuple):
    """A part of policies: the key that says it, when a policy has it, and what messages call it beside its name."""

    key: str
    when: When = lambda _: False
    called: str = ""


class Limit(NamedTuple):
    """Two features that do not go together, as `limits.toml` has them; `proof` is a page of the documentation."""

    feature: str
    other: str
    why: str
    way_out: str
    proof: str = ""
    pointless: bool = False


def is_over_time(policy: Policy) -> bool:
    """True of a decomposition, and of one table with a key or a prefix, which is published again and again."""
    return policy.is_series or policy.target.prefix is not None


def links_rows(policy: Policy) -> bool:
    """True if a person's rows are planned as one."""
    return policy.individual is not None and policy.individual.rows != "apart"


def each(test: Callable[[Sensitive], Any]) -> Callable[[Policy], list[Args]]:
    """The sensitive attributes whose settings pass a test."""
    return lambda policy: [(name,) for name, setting in policy.sensitive.items() if test(setting)]


def _over_time(policy: Policy) -> list[Args]:
    key = "key" if policy.key is not None else "nights" if policy.nights else "target.prefix"
    return [(key,)] if is_over_time(policy) and not policy.decomposes else []


def _option(name: str, default: str) -> When:
    """An algorithm of one table that may be known, with another value of an option than the one that may."""
    return lambda policy: (
        policy.algorithm.name in KEEPS_APART and policy.algorithm.options.get(name, default) != default
    )


def _asked(test: Callable[[RequirementSpec], Any]) -> When:
    """The number and the name of the requirements that pass a test."""
    return lambda policy: [
        (number, spec.name) for number, spec in enumerate(policy.require) if spec.name in REQUIREMENTS and test(spec)
    ]


def _read(test: Callable[[str, QuasiIdentifier, Policy], Any]) -> When:
    """The quasi-identifiers that pass a test."""
    return lambda policy: [(name,) for name, qi in policy.quasi_identifiers.items() if test(name, qi, policy)]


def _recodings(policy: Policy) -> list[Recode | None]:
    """What is said of what classes publish, of all quasi-identifiers and of each."""
    return [policy.recode, *(qi.recode for qi in policy.quasi_identifiers.values())]


def _going(test: Callable[[Target], Any]) -> When:
    """Where targets that pass a test stand: that of the policy, or those of its tables."""

    def found(policy: Policy) -> list[Args]:
        tables = {f"tables.{name}.target": table.target for name, table in policy.tables.items()}
        return [(key,) for key, target in (tables or {"target": policy.target}).items() if test(target)]

    return found


#: The algorithms that publish transparently when a policy asks for it.
TRANSPARENT = ("bsgi", *DECOMPOSITIONS)
#: The algorithms that make classes within cells of cross-tables.
IN_CELLS = ("auto", "fast", "topdown", "peel", "mondrian", "stratified", "bsgi")
#: The algorithms of which a scheme can blank values, and these schemes.
GLOBAL, BLANKING = ("cuts", "annealing"), ("vioSA", "allSA")
FEATURES: Mapping[str, Feature] = {
    "weight": Feature("weight", lambda p: bool(p.weight and p.weight.strip())),
    "individual": Feature("individual", lambda p: p.individual is not None),
    "people are counted": Feature("individual", lambda p: p.counts_people, "individual"),
    "linked rows": Feature("individual.rows", links_rows),
    "rows together": Feature("individual.rows", lambda p: links_rows(p) and not p.is_aligned),
    "rows aligned": Feature("individual.rows", lambda p: p.is_aligned, "rows: aligned"),
    "people of all nights": Feature(
        "individual",
        lambda p: (
            p.nights is None
            and bool(p.individual)
            and (links_rows(p) or bool(p.tables) or p.algorithm.name not in KEEPS_APART)
        ),
    ),
    "rows apart": Feature("individual", lambda p: p.counts_people and not links_rows(p), "rows: apart"),
    "releases over time": Feature("{0}", _over_time),
    "transparent": Feature("transparent", lambda p: p.transparent),
    "decomposition": Feature("algorithm.name", lambda p: p.decomposes, "{algorithm}"),
    "anatomy": Feature("algorithm.name", lambda p: p.algorithm.name == "anatomy"),
    "other algorithms": Feature("algorithm.name", lambda p: p.algorithm.name not in TRANSPARENT),
    "another select": Feature("algorithm.select", _option("select", "refine")),
    "another residue": Feature("algorithm.residue", _option("residue", "incorporate")),
    "a global recoding": Feature("algorithm.name", called="{algorithm}"),
    "blanked values": Feature(
        "algorithm.scheme", lambda p: p.algorithm.name in GLOBAL and p.algorithm.options.get("scheme") in BLANKING
    ),
    "several attributes": Feature("sensitive", lambda p: len(p.sensitive) > 1),
    "set": Feature("sensitive.{0}.set", each(lambda s: s.set)),
    "same": Feature("sensitive.{0}.same", each(lambda s: s.same)),
    "harmless": Feature("sensitive.{0}.harmless", each(lambda s: s.harmless)),
    "comparisons": Feature("require.{0}", _asked(lambda spec: spec.kind.compares_with_table)),
    "population": Feature("require.{0}", _asked(lambda spec: spec.counts_people)),
    "presence": Feature("require.{0}", _asked(lambda spec: spec.kind.parts_people)),
    "auto": Feature("require.{0}", _asked(lambda spec: spec.is_auto)),
    "rows of one value": Feature(
        "require.{0}",
        _asked(lambda spec: not spec.counts_people and (spec.others_known or not spec.kind.on_people)),
    ),
    "suppression": Feature("suppression", lambda p: p.suppression is not None),
    "suppressed": Feature("suppressed", lambda p: p.suppressed != "judge"),
    "nulls: suppress": Feature("nulls", lambda p: p.nulls == "suppress"),
    "nulls_sensitive": Feature("nulls_sensitive", lambda p: p.nulls_sensitive != "reject"),
    "nulls_sensitive: suppress": Feature("nulls_sensitive", lambda p: p.nulls_sensitive == "suppress"),
    "means and medians": Feature("output.{0}", lambda p: [(name,) for name in p.output.centres]),
    "expand": Feature("expand", lambda p: p.expand is not None),
    "lists": Feature("output.{0}", lambda p: [(name,) for name in p.output.lists]),
    "bounds": Feature("output.bounds", lambda p: p.output.bounds, "output.bounds"),
    "open ends": Feature("quasi_identifiers.{0}", _read(lambda name, qi, p: qi.has_ends)),
    "their open ends": Feature(
        "quasi_identifiers.{0}", _read(lambda name, qi, p: qi.has_ends and name in p.output.centres)
    ),
    "values to read": Feature("quasi_identifiers.{0}", _read(lambda name, qi, p: qi.is_read)),
    "class_id": Feature("output.class_id", lambda p: bool(p.output.class_id)),
    "person": Feature("output.person", lambda p: p.output.person is not None),
    "preserve": Feature("preserve", lambda p: bool(p.preserve)),
    "tables_of": Feature("tables_of", lambda p: bool(p.tables_of)),
    "algorithms across cells": Feature(
        "algorithm.name", lambda p: p.names_algorithm and p.algorithm.name not in IN_CELLS, "{algorithm}"
    ),
    "residue: suppress": Feature("algorithm.residue", lambda p: p.algorithm.options.get("residue") == "suppress"),
    "not of unions": Feature("require.{0}", _asked(lambda spec: not spec.kind.monotone)),
    "databases": Feature("databases", lambda p: bool(p.databases)),
    "if_exists: append": Feature("{0}.if_exists", _going(lambda target: target.if_exists == "append")),
    "a prefix": Feature("{0}", _going(lambda target: target.prefix is not None)),
    "another database": Feature("{0}.database", _going(lambda target: target.database is not None)),
    "a file": Feature("{0}.file", _going(lambda target: target.file is not None)),
    "flat files": Feature("{0}.file", _going(lambda target: target.format in FLAT)),
    "a CSV file": Feature("{0}.file", _going(lambda target: target.format == "csv")),
    "tables": Feature("tables", lambda p: bool(p.tables)),
    "linked tables": Feature("tables", lambda p: bool(p.tables) and not p.is_apart, "tables"),
    "tables apart": Feature("individual.rows", lambda p: p.is_apart, "tables without links"),
    "limited sets": Feature("recode", lambda p: any(isinstance(one, SetsUpTo) for one in _recodings(p))),
    "known: 1": Feature("known", lambda p: p.knows_one and bool(p.tables)),
    "another algorithm": Feature(
        "algorithm.name", lambda p: p.names_algorithm and p.algorithm.name != DEFAULT_ALGORITHM
    ),
    "a warehouse": Feature("database"),
    "a warehouse without locks": Feature("database", called="a warehouse"),
}
LIMITS = tuple(
    Limit(feature, other, **said)
    for feature, others in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
    for other, said in others.items()
)


def limit_problems(policy: Policy, *given: str, **said: str) -> Iterator[Problem]:
    """The limits that a policy breaks; with features that it is `given` beside its own, those of which these are part.

    `said` are words for the braces of texts.
    """
    for limit in LIMITS:
        one, other = FEATURES[limit.feature], FEATURES[limit.other]
        if given and limit.feature not in given and limit.other not in given:
            continue
        if limit.feature in given or one.when(policy):
            cases = other.when(policy) or limit.other in given
            what = f"does not go with {one.called or limit.feature}: {limit.why}"
            yield from PolicyRule(_as_is(cases), other.key, what, limit.way_out).problems(policy, **said)


#: What may leave rows of the source out of a release, or publish others beside.
_NOT_ALL = (
    *("algorithms across cells", "individual", "releases over time", "if_exists: append", "suppression", "tables"),
    *("residue: suppress", "nulls: suppress", "nulls_sensitive: suppress", "population", "decomposition"),
)


def publishes_all(policy: Policy) -> bool:
    """True if a release under the policy has every row of its source, or there is none."""
    return not any(FEATURES[name].when(policy) for name in _NOT_ALL)


def _as_is(cases: bool | Iterable[Args]) -> When:
    return lambda _: cases
