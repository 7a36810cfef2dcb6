"""Rules on what a policy must say, and on what it may not say together: one table, in the order of what is reported.

`same` excludes what compares values as they are written; `weight` what needs rows where the source only counts them;
`transparent: true` whatever no proof covers. There are two proofs: that of `algorithms/transparent`, for classes with
labels, and that of `decomposition/grouping`, for groups that coins alone make. Both are of one release, one sensitive
attribute and all rows.

Releases over time, and sensitive values in tables of their own, need some keys and exclude others.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from ldiv_db.database.errors import Problem, nearest
from ldiv_db.policy.centre_rules import CENTRE_RULES
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Sensitive, unreported
from ldiv_db.policy.rule import Args, PolicyRule, When, within
from ldiv_db.policy.schema import schema_problems
from ldiv_db.policy.sources import COUNT, DECOMPOSITIONS, GROUP_ID, KEEPS_APART


def _links(policy: Policy) -> bool:
    """True if a person's rows are planned as one."""
    return policy.individual is not None and policy.individual.rows != "apart"


def _disordered(policy: Policy) -> Iterator[Args]:
    """Why a person's rows cannot be put into their order, and what could."""
    whose = policy.individual
    if whose is None or not policy.is_aligned:
        return
    if whose.order is None:
        yield "is required: the column by which a person's rows are put into their order", "rows: together takes none"
    elif whose.order.lower() in map(str.lower, policy.sensitive):
        yield f"{whose.order} is sensitive, and positions would tell of it", "name a date or a number"
    elif whose.order.lower() == whose.column.lower():
        yield f"{whose.order} says whose a row is, not which comes first", "name a date or a number"


def _of_aligned(policy: Policy) -> list[Args]:
    """The keys that have a meaning where a person's rows are in their order alone, and are not."""
    whose = policy.individual
    said = {"individual.order": whose and whose.order, "individual.rows_at_most": whose and whose.rows_at_most}
    said["output.position"] = policy.output.position
    return [] if policy.is_aligned else [(key,) for key, given in said.items() if given is not None]


def _is_series(policy: Policy) -> bool:
    """True of a decomposition, and of one table with a key or a prefix, which is published again and again."""
    return policy.decomposes or policy.key is not None or policy.target.prefix is not None


def _option(name: str, default: str) -> When:
    """An algorithm of one table that may be known, with another value of an option than the one that may."""
    return lambda policy: (
        policy.algorithm.name in KEEPS_APART and policy.algorithm.options.get(name, default) != default
    )


def _each(test: Callable[[Sensitive], Any]) -> Callable[[Policy], list[Args]]:
    """The sensitive attributes whose settings pass a test."""
    return lambda policy: [(name,) for name, setting in policy.sensitive.items() if test(setting)]


def _without_sensitive(policy: Policy) -> list[Args]:
    """The first that has no meaning without a sensitive attribute, if the policy has none."""
    asking = [spec.name for spec in policy.require if not spec.kind.rows_only]
    if policy.decomposes or policy.is_series or policy.transparent:
        asking.append(policy.algorithm.name)
    return [] if policy.sensitive else [(name,) for name in asking[:1]]


def _own_columns(policy: Policy) -> list[Args]:
    """The columns of the source that are called like those that a decomposition adds."""
    shown = {column.lower() for role, column in policy.roles() if role not in ("identifiers", "key")}
    return [(c,) for c in (GROUP_ID, *([COUNT] if policy.algorithm.name == "anatomy" else [])) if c in shown]


def _primary(policy: Policy) -> list[Args]:
    known, primary = {name.lower() for name in policy.sensitive}, policy.primary
    return [(primary, nearest(primary, policy.sensitive))] if known and primary.lower() not in known else []


def _larger_l(policy: Policy) -> list[Args]:
    """The attributes with a larger l than the primary's, that l, and the primary."""
    most = {name.lower(): setting.l for name, setting in policy.sensitive.items()}.get(policy.primary.lower())
    larger = _each(lambda setting: most is not None and setting.l is not None and setting.l > most)(policy)
    return [(*case, most, policy.primary) for case in larger]


def _of_parts(policy: Policy) -> Iterator[Args]:
    """The problems of quasi-identifiers and sensitive attributes, each by itself, and of requirements."""
    for name, qi in policy.quasi_identifiers.items():
        yield from map(_fields, qi.problems(f"quasi_identifiers.{name}"))
    for name, attribute in policy.sensitive.items():
        yield from map(_fields, attribute.problems(f"sensitive.{name}"))
    known = {name.lower() for name in policy.sensitive}
    for number, spec in enumerate(policy.require):
        yield from map(_fields, spec.problems(f"require.{number}"))
        yield from map(_fields, spec.problems_of_each(f"require.{number}", policy.is_aligned))
        for name in spec.sensitive:
            if name.lower() not in known:
                yield f"require.{number}.sensitive", f"{name!r} is not sensitive", nearest(name, policy.sensitive)


def _fields(problem: Problem) -> Args:
    return problem.key, problem.what, problem.hint


def _twice(policy: Policy) -> Iterator[Args]:
    first: dict[str, str] = {}
    for key, column in policy.roles():
        if column.lower() in first:
            yield key, column, first[column.lower()]
        first.setdefault(column.lower(), key)


def _without_class_ids(policy: Policy) -> list[Args]:
    """The part that cannot be audited without class ids, if the release has none, and what to require instead."""
    needing = policy.needs_class_id
    hint = "or require frequency" if needing in [spec.name for spec in policy.require] else ""
    return [(needing, hint)] if needing and not policy.publishes_class_id else []


#: The algorithms that publish transparently when a policy asks for it.
TRANSPARENT = ("bsgi", *DECOMPOSITIONS)
_PLUS = next(iter(DECOMPOSITIONS))
_LEAVE, _NOT_WITH, _ONE = "leave it out", "does not go with {series}", "it is proved for one sensitive attribute"
_KNOWN = "{algorithm} does not withstand an attacker who knows the method"
_ONE_TABLE = "algorithm: auto or topdown publishes one table, under `require`, in which some are harmless"
_WAITS = "leave it out: rows that find no place wait for a later release"
_AGAIN, _MISSING = "releases that are compared reveal more", "people who are left out stand out"
_WRITTEN = "a row's spelling distinguishes it from others with its value"
_SINGLE = "give a column of one value a row in a view"
_COUNTED = "{algorithm} publishes tables of single rows, which counts do not distinguish"

#: Those on a source of counts.
WEIGHT_RULES: tuple[PolicyRule, ...] = (
    PolicyRule(lambda p: p.weight is not None and not p.weight.strip(), "weight", "names no column"),
    *within(
        lambda p: bool(p.weight and p.weight.strip()),
        "does not go with weight: ",
        (lambda p: p.individual is not None, "individual", "counts do not say whose rows they are"),
        (lambda p: p.key is not None, "key", "counts do not say which row is which over time"),
        (lambda p: p.target.prefix is not None, "target.prefix", "releases over time are of rows with a key"),
        (lambda p: p.transparent, "transparent", "transparent classes are made of rows"),
        (_each(lambda s: s.set), "sensitive.{}.set", "members are counted of rows", _SINGLE),
        (lambda p: p.decomposes, "algorithm.name", _COUNTED),
    ),
)
#: All of them.
RULES: tuple[PolicyRule, ...] = (
    PolicyRule(_without_sensitive, "sensitive", "is required", "{} is about its values; k needs none"),
    *within(
        lambda p: not p.decomposes,
        "",
        (lambda p: not p.require, "require", "must name at least one requirement"),
        (_each(lambda s: s.l is not None), "sensitive.{}.l", "goes with a decomposition", f"algorithm: {_PLUS}"),
    ),
    *within(
        _is_series,
        "is required: ",
        (lambda p: p.decomposes and not p.target.prefix, "target.prefix", "every release has its tables"),
        (lambda p: p.key is None, "key", "the column that says which row is which over time"),
    ),
    *within(
        lambda p: p.decomposes,
        "",
        (_each(lambda s: s.l is None), "sensitive.{}.l", "is required: how many values a group has"),
        (lambda p: bool(p.require), "require", _NOT_WITH, "give l to each sensitive attribute"),
        (lambda p: p.individual is not None, "individual", _NOT_WITH, "one row a key"),
        (lambda p: p.suppression is not None, "suppression", _NOT_WITH, _WAITS),
    ),
    *within(
        _is_series,
        _NOT_WITH,
        (
            lambda p: p.target.file is not None and p.target.format != "duckdb",
            "target.file",
            "",
            "a DuckDB file holds what the next release goes on with",
        ),
        (lambda p: p.decomposes and p.target.table is not None, "target.table", "", "give a prefix"),
        (
            lambda p: p.target.prefix is not None and p.target.if_exists != "fail",
            "target.if_exists",
            "",
            "every release has tables of its own",
        ),
    ),
    *within(
        lambda p: _is_series(p) and not p.decomposes,
        _NOT_WITH,
        (lambda p: bool(p.target.prefix and p.target.table), "target.table", "", "give a table or a prefix"),
        (lambda p: p.target.if_exists == "append", "target.if_exists", "", "rows of later releases join the table"),
        (lambda p: p.target.database is not None, "target.database", "", "give a table beside the ledger, or a file"),
        (
            lambda p: [(n, spec.name) for n, spec in enumerate(p.require) if spec.kind.compares_with_table],
            "require.{}",
            "",
            "{1} compares classes with a table that changes: require frequency or entropy",
        ),
        (
            lambda p: p.individual is not None and p.algorithm.name not in KEEPS_APART,
            "individual",
            "",
            "the ledger does not know whose the rows of earlier releases are; "
            f"algorithm: {KEEPS_APART[0]} keeps a person's apart",
        ),
        (lambda p: p.suppressed != "judge", "suppressed", "", "nothing is suppressed"),
        (lambda p: p.suppression is not None, "suppression", "", _WAITS),
        (
            lambda p: [(n,) for n, spec in enumerate(p.require) if spec.is_auto],
            "require.{}",
            "",
            "give a number, which stays the same for all releases",
        ),
    ),
    *within(
        lambda p: p.decomposes,
        "",
        (
            lambda p: p.algorithm.name == "anatomy" and len(p.sensitive) > 1,
            "sensitive",
            "anatomy protects one attribute",
            "or use decomposition_plus",
        ),
        (_own_columns, "{}", "is the name of a column that {algorithm} adds", "rename it"),
        (_primary, "algorithm.primary", "{!r} is not sensitive", "{1}"),
        (_larger_l, "sensitive.{}.l", "is more than the {1} rows of a group", "the l of {2} is the most"),
    ),
    *within(
        lambda p: p.decomposes,
        "",
        (_each(lambda s: s.harmless), "sensitive.{}.harmless", "{algorithm} treats all values alike", _ONE_TABLE),
    ),
    *within(
        lambda p: p.transparent,
        "does not go with transparent: ",
        (lambda p: p.algorithm.name not in TRANSPARENT, "algorithm.name", _KNOWN, f"take {', '.join(TRANSPARENT)}"),
        (_option("select", "refine"), "algorithm.select", "classes are selected by coins and counts", _LEAVE),
        (_option("residue", "incorporate"), "algorithm.residue", "all rows are published", _LEAVE),
        (lambda p: len(p.sensitive) > 1, "sensitive", _ONE, "name one, and leave out the others"),
        (lambda p: p.individual is not None, "individual", "it is proved for one row of each person"),
        (lambda p: p.key is not None and not p.decomposes, "key", _AGAIN, "publish one release"),
        (lambda p: p.target.prefix is not None and p.key is None, "target.prefix", _AGAIN, "give a table or a file"),
        (lambda p: p.target.if_exists == "append", "target.if_exists", _AGAIN, "give a table of its own"),
        (lambda p: p.nulls == "suppress", "nulls", _MISSING, "nulls: value"),
        (lambda p: p.nulls_sensitive == "suppress", "nulls_sensitive", _MISSING, "nulls_sensitive: value"),
        (lambda p: p.suppression is not None, "suppression", _MISSING, _LEAVE),
        (lambda p: p.suppressed != "judge", "suppressed", "NULL is a value like any other", _LEAVE),
    ),
    *within(
        lambda p: p.transparent,
        "does not go with a transparent release: ",
        (_each(lambda s: s.same), "sensitive.{}.same", _WRITTEN, _LEAVE),
        (_each(lambda s: s.set), "sensitive.{}.set", "it is proved for one value of each row", _SINGLE),
    ),
    *within(
        lambda p: p.is_series and not p.transparent,
        "does not go with releases over time, ",
        (_each(lambda s: s.same), "sensitive.{}.same", "which are compared by what they write", _LEAVE),
        (_each(lambda s: s.set), "sensitive.{}.set", "whose rows have one value each", _SINGLE),
    ),
    PolicyRule(
        lambda p: _each(lambda s: s.set)(p) if p.individual is not None else [],
        "sensitive.{}.set",
        "does not go with individual: a person's rows have one value each",
        "give a row for each member in a view, with `individual`",
    ),
    PolicyRule(
        lambda p: p.output.person is not None and not _links(p),
        "output.person",
        "links the rows of a person: each person's must stand in one class",
        "individual: {{column: …, rows: together}}",
    ),
    PolicyRule(
        lambda p: [(p.individual.rows,)] if p.individual and _links(p) and p.is_series else [],
        "individual.rows",
        "{} does not go with releases over time",
        f"rows: apart, with algorithm: {KEEPS_APART[0]}",
    ),
    PolicyRule(_disordered, "individual.order", "{}", "{1}"),
    PolicyRule(_of_aligned, "{}", "goes with individual: {{column: …, rows: aligned}}", _LEAVE),
    PolicyRule(
        lambda p: [(n,) for n, spec in enumerate(p.require) if p.is_aligned and spec.counts_people],
        "require.{}",
        "people of a population are counted by the labels of one row, and rows: aligned has several",
        "rows: apart, with algorithm: auto",
    ),
    *WEIGHT_RULES,
    *CENTRE_RULES,
    PolicyRule(_of_parts, "{}", "{1}", "{2}"),
    PolicyRule(_twice, "{}.{}", "is classified already under {2}"),
    PolicyRule(
        lambda p: map(_fields, p.target.problems() if "target" in p.model_fields_set else ()), "{}", "{1}", "{2}"
    ),
    PolicyRule(_without_class_ids, "output.class_id", "{} can only be audited with class ids", "{1}"),
)


def lacking(keys: Container[str]) -> list[Problem]:
    """The source and the target that a policy of these keys names nowhere; it may leave them to a frame."""
    needed = () if "tables" in keys else ("source", "target")
    return [Problem(key, "is required") for key in needed if key not in keys]


def problems_of(policy: Policy) -> list[Problem]:
    """Everything that is wrong with a policy as it is written, what could not be read of it included."""
    known = [*unreported(lacking(policy.model_fields_set), policy.unread), *policy.unread]
    found = list(schema_problems(policy, broken)) if policy.tables else broken(policy)
    return [*known, *unreported(found, known if policy.unread else ())]


def broken(policy: Policy, rules: Iterable[PolicyRule] = RULES) -> list[Problem]:
    """The problems of a policy by the rules that it breaks."""
    return [problem for rule in rules for problem in rule.problems(policy)]
