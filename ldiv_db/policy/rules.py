"""Rules on what a policy must say, in the order of what is reported; `limits.py` has what it may not have together."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from ldiv_db.database.errors import Problem, nearest
from ldiv_db.policy.document import Policy
from ldiv_db.policy.limits import each, is_over_time, limit_problems, links_rows
from ldiv_db.policy.parts import unreported
from ldiv_db.policy.rule import Args, PolicyRule
from ldiv_db.policy.schema import schema_problems
from ldiv_db.policy.sources import COUNT, DECOMPOSITIONS, GROUP_ID, UNSPECIFIED
from ldiv_db.policy.targets import FLAT
from ldiv_db.requirements.spec import RowsOf


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


def _without_sensitive(policy: Policy) -> list[Args]:
    """The first that has no meaning without a sensitive attribute, if the policy has none."""
    asking = [spec.name for spec in policy.require if not spec.kind.rows_only]
    if policy.decomposes or policy.is_series or policy.transparent:
        asking.append(policy.algorithm.name)
    return [] if policy.sensitive else [(name,) for name in asking[:1]]


def _own_columns(policy: Policy) -> list[Args]:
    """The columns of the source that are called like those that a decomposition adds."""
    if not policy.decomposes:
        return []
    shown = {column.lower() for role, column in policy.roles() if role not in ("identifiers", "key")}
    return [(c,) for c in (GROUP_ID, *([COUNT] if policy.algorithm.name == "anatomy" else [])) if c in shown]


def _primary(policy: Policy) -> list[Args]:
    known, primary = {name.lower() for name in policy.sensitive if policy.decomposes}, policy.primary
    return [(primary, nearest(primary, policy.sensitive))] if known and primary.lower() not in known else []


def _larger_l(policy: Policy) -> list[Args]:
    """The attributes with a larger l than the primary's, that l, and the primary."""
    most = {name.lower(): setting.l for name, setting in policy.sensitive.items() if policy.decomposes}.get(
        policy.primary.lower()
    )
    larger = each(lambda setting: most is not None and setting.l is not None and setting.l > most)(policy)
    return [(*case, most, policy.primary) for case in larger]


def _of_parts(policy: Policy) -> Iterator[Args]:
    """The problems of quasi-identifiers and sensitive attributes, each by itself, and of requirements."""
    for name, qi in policy.quasi_identifiers.items():
        yield from map(_fields, qi.problems(f"quasi_identifiers.{name}"))
    for name, attribute in policy.sensitive.items():
        yield from map(_fields, attribute.problems(f"sensitive.{name}"))
    rows: RowsOf = "known" if policy.knows_one else "order" if policy.is_aligned else ""
    for number, spec in enumerate(policy.require):
        yield from map(_fields, spec.problems_among(f"require.{number}", policy.sensitive, rows))


def _fields(problem: Problem) -> Args:
    return problem.key, problem.what, problem.hint


def _cells(policy: Policy) -> Iterator[Args]:
    """Why a release cannot have a cross-table exactly, of several tables aside, and what could."""
    known, named = policy.quasi_identifiers, list(dict.fromkeys(name for own in policy.tables_of for name in own))
    forms = policy.released.forms
    if not named or policy.tables:
        return
    for name in named:
        if name not in known:
            yield f"{name!r} is no quasi-identifier", nearest(name, known)
        elif forms[name] not in ("label", "bounds", "set"):
            yield (
                f"{name} is published as a {forms[name]}, which classes of a cell have each",
                "leave it out of `output`",
            )
    if len(named) == len(known) and all(name in known for name in named):
        yield "names every quasi-identifier: a class would be a whole cell", "leave one out"


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


_PLUS = next(iter(DECOMPOSITIONS))
_NO_COLUMN = PolicyRule(lambda p: p.weight is not None and not p.weight.strip(), "weight", "names no column")
#: All of them, beside what does not go together.
RULES: tuple[PolicyRule, ...] = (
    PolicyRule(_without_sensitive, "sensitive", "is required", "{} is about its values; k needs none"),
    PolicyRule(lambda p: not (p.decomposes or p.require), "require", "must name at least one requirement"),
    PolicyRule(
        lambda p: [] if p.decomposes else each(lambda s: s.l is not None)(p),
        "sensitive.{}.l",
        "goes with a decomposition",
        f"algorithm: {_PLUS}",
    ),
    PolicyRule(
        lambda p: is_over_time(p) and p.key is None and not p.decomposes,
        "key",
        "is required: the column that says which row is which over time",
    ),
    PolicyRule(
        lambda p: each(lambda s: s.l is None)(p) if p.decomposes else [],
        "sensitive.{}.l",
        "is required: how many values a group has",
    ),
    PolicyRule(
        lambda p: p.decomposes and bool(p.require),
        "require",
        "does not go with {algorithm}",
        "give l to each sensitive attribute",
    ),
    PolicyRule(
        lambda p: [(p.target.file,)] if p.decomposes and p.target.format in FLAT and p.target.folder == Path() else [],
        "target.file",
        "is one of several files, whose folder is moved into place",
        "FOLDER/{}",
    ),
    PolicyRule(
        lambda p: bool(p.target.prefix and p.target.table),
        "target.table",
        "does not go with a prefix",
        "give a table or a prefix",
    ),
    PolicyRule(
        lambda p: (p.decomposes or p.target.prefix is not None) and p.target.if_exists != "fail",
        "target.if_exists",
        "does not go with a prefix",
        "leave it out: every release has tables of its own",
    ),
    PolicyRule(_own_columns, "{}", "is the name of a column that {algorithm} adds", "rename it"),
    PolicyRule(_primary, "algorithm.primary", "{!r} is not sensitive", "{1}"),
    PolicyRule(_larger_l, "sensitive.{}.l", "is more than the {1} rows of a group", "the l of {2} is the most"),
    PolicyRule(
        lambda p: p.output.person is not None and not links_rows(p),
        "output.person",
        "links the rows of a person: each person's must stand in one class",
        "individual: {{column: …, rows: together}}",
    ),
    PolicyRule(
        lambda p: p.nights is not None and (p.key is None or not (p.individual or p.tables)),
        "nights",
        "is about people in releases over time",
        "give `key` and `individual`",
    ),
    PolicyRule(
        lambda p: p.knows_one and not p.tables and p.source is UNSPECIFIED,
        "known",
        "of one row is of `tables`",
        "known: all",
    ),
    PolicyRule(_disordered, "individual.order", "{}", "{1}"),
    PolicyRule(_of_aligned, "{}", "goes with individual: {{column: …, rows: aligned}}", "leave it out"),
    _NO_COLUMN,
    PolicyRule(
        lambda p: [
            (n, nearest(n, p.quasi_identifiers))
            for n in (*p.output.centres, *p.output.lists)
            if n not in p.quasi_identifiers
        ],
        "output.{}",
        "is no key, and no quasi-identifier of which it could be",
        "{1}",
    ),
    PolicyRule(
        lambda p: [
            (n, nearest(n, p.quasi_identifiers))
            for n in (p.expand.columns if p.expand else ())
            if n not in p.quasi_identifiers
        ],
        "expand.columns",
        "{!r} is no quasi-identifier",
        "{1}",
    ),
    PolicyRule(_cells, "tables_of", "{}", "{1}"),
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


def broken(policy: Policy) -> list[Problem]:
    """The problems of a policy by the rules and limits that it breaks."""
    return [*(problem for rule in RULES for problem in rule.problems(policy)), *limit_problems(policy)]


def weight_problems(policy: Policy) -> list[Problem]:
    """Why no counts of a policy's rows are planned from."""
    return [*_NO_COLUMN.problems(policy), *(limit_problems(policy, "weight") if policy.weight else ())]
