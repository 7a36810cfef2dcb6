"""The public face: calls for Python programs on a connection of their own, and all that `ldiv_db` gives out.

Those that are defined here end no transaction: they read what the caller's connection sees, inside its
transaction if one is open, and leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ldiv_db.attacking.attacks import Attackers, Attacks, attack_table, columns_asked, columns_by_policy
from ldiv_db.attacking.trials import Trial
from ldiv_db.auditing.audit import Audit, Suppressed
from ldiv_db.auditing.check import Question
from ldiv_db.auditing.check import check as check_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, DatabaseError, InfeasibleError, LdivError, PolicyError, Problem
from ldiv_db.database.sources import resolve_source
from ldiv_db.measuring.measure import Measurement, Wanted, measure_table
from ldiv_db.policy.parts import Sensitive, read_requirement
from ldiv_db.policy.policy import Policy, parse_policy, read_policy
from ldiv_db.policy.resolve import describe
from ldiv_db.profiling.profile import Profile, profile_table
from ldiv_db.publishing.result import Released, Result
from ldiv_db.requirements import RequirementSpec, parse_requirement
from ldiv_db.running.release import publish_release
from ldiv_db.running.run import Listener, plan, run, working_engine

__all__ = [
    "Attacks",
    "Audit",
    "AuditError",
    "DatabaseError",
    "InfeasibleError",
    "LdivError",
    "Listener",
    "Measurement",
    "Policy",
    "PolicyError",
    "Profile",
    "Released",
    "Result",
    "attack",
    "check",
    "measure",
    "parse_policy",
    "plan",
    "profile",
    "publish_release",
    "read_policy",
    "run",
]


def check(
    con: Any,
    table: str,
    qi: Sequence[str],
    sensitive: str | Sequence[str] | Mapping[str, Any],
    require: Iterable[str | Mapping[str, Any]],
    class_column: str | None = None,
    suppressed: Suppressed = "judge",
) -> list[Audit]:
    """The audits of a table, view or data file, one a sensitive column: do all its classes meet `require`?

    A class is the rows with equal `qi`, NULL being a value; `class_column` tells classes apart as well. A
    requirement is written `"distinct:3"` or as in a policy, `{"distinct": 3, "sensitive": "disease"}`. `sensitive`
    may be a mapping, as in a policy, to `categories`, `weights` and `taxonomy`. `suppressed` says what becomes of
    rows whose `qi` are all `*` or NULL, or whose sensitive value is NULL. Every Audit has `holds`, `classes`, `rows`
    and its `verdicts`; nothing is raised if one fails. Raises PolicyError for a table or columns that do
    not exist and for requirements that are none, DatabaseError if the database refuses.
    """
    specs = read_requirements([require] if isinstance(require, str | Mapping) else require)
    with working_engine(con) as engine:
        relation = resolve_source(engine, table, Path(), "table")
        question = Question(_names(qi), read_sensitive(sensitive), specs, class_column, suppressed)
        return check_table(engine, relation, question)


def attack(
    con: Any,
    table: str,
    qi: Sequence[str] = (),
    sensitive: str | Sequence[str] | Mapping[str, Any] = (),
    require: Iterable[str | Mapping[str, Any]] | None = None,
    *,
    policy: Policy | Mapping[str, Any] | None = None,
    folder: str | Path = ".",
    class_column: str | None = None,
    m: int = 1,
    threshold: float | str | Decimal = "0.2",
    known: str | None = None,
    population: str | None = None,
    downcoding: bool = False,
    targets: str | None = None,
    control: str | None = None,
    link_columns: tuple[Sequence[str], Sequence[str]] | None = None,
    tries: int = 2_000,
    seed: int = 0,
    show_values: bool = False,
    catalog: str | None = None,
) -> Attacks:
    """What attackers gain at best from a published table, view or data file, and what is promised at most.

    The columns are `qi` and `sensitive` (names, or a mapping as in a policy), or those of the release that `policy`
    describes, whose requirements are then what is promised unless `require` is given. `m` values of a class can be
    excluded by who has background knowledge; a risk of re-identification above `threshold` (0..1) counts as high.
    `known` and `population` are tables or files of people with quasi-identifiers as they are before anonymization;
    both need a policy. `downcoding` reads labels backwards. On `targets`, people of the source with their sensitive
    values, and perhaps on a `control` of people who are not in the release, singling out, linkability (of two parts,
    `link_columns`) and inference are tried `tries` times, drawn by `seed`; all of this needs a policy, too. `catalog`
    is the attached database that holds taxonomies, if it is not the current one. The Attacks have `holds`, `rows`,
    `classes` and `attacks`; no value of the table is in them unless `show_values`. Raises PolicyError for what does
    not exist or cannot be read, DatabaseError if the database refuses.
    """
    specs = [] if require is None else read_requirements([require] if isinstance(require, str | Mapping) else require)
    with working_engine(con, catalog=catalog) as engine:
        published = resolve_source(engine, table, Path(), "table")
        people = [resolve_source(engine, p, Path(), key) if p else None for key, p in _people(known, population)]
        trial = _trial(engine, targets, control, link_columns, tries, seed)
        attackers = Attackers(m, _threshold(threshold), people[0], people[1], show_values, downcoding, trial)
        if policy is None:
            named = read_sensitive(sensitive)
            columns = columns_asked(engine, published, _names(qi), named, class_column, Path(folder))
        else:
            parsed = parse_policy(policy)
            if qi or sensitive or class_column:
                raise PolicyError([Problem("policy", "says what the columns are, name none beside it")])
            columns = columns_by_policy(engine, published, parsed, Path(folder))
            specs = specs if require is not None else list(parsed.require)
        return attack_table(engine, published, columns, specs, attackers)


def _people(known: str | None, population: str | None) -> list[tuple[str, str | None]]:
    return [("known", known), ("population", population)]


def _trial(
    engine: Engine,
    targets: str | None,
    control: str | None,
    link_columns: tuple[Sequence[str], Sequence[str]] | None,
    tries: int,
    seed: int,
) -> Trial | None:
    """The trial on people that are named; raises PolicyError for a control or parts without targets."""
    if targets is None:
        without = {"control": control, "link_columns": link_columns}
        problems = [Problem(key, "needs targets, people who are in the release") for key in without if without[key]]
        if problems:
            raise PolicyError(problems)
        return None
    parts = None if link_columns is None else (tuple(_names(link_columns[0])), tuple(_names(link_columns[1])))
    of_targets = resolve_source(engine, targets, Path(), "targets")
    of_control = resolve_source(engine, control, Path(), "control") if control else None
    return Trial(of_targets, of_control, parts, tries, seed)


def _threshold(written: float | str | Decimal) -> Decimal:
    try:
        return Decimal(str(written))
    except InvalidOperation:
        raise PolicyError([Problem("threshold", f"takes a number, not {written!r}")]) from None


def profile(con: Any, table: str, qi: Sequence[str] | None = None, sensitive: str | Sequence[str] = ()) -> Profile:
    """How identifying the columns of a table, view or data file are, in counts of rows.

    Without `qi` the quasi-identifiers are guessed. The Profile has `rows`, `columns`, `uniqueness` (None
    if there is no quasi-identifier) and `sensitive`, one entry a sensitive column; `as_dict()` adds shares
    (0..1) and entropy (bits). No value of the table is in it. Raises PolicyError for a table or columns
    that do not exist, InfeasibleError for an empty table, DatabaseError if the database refuses.
    """
    with working_engine(con) as engine:
        relation = resolve_source(engine, table, Path(), "table")
        return profile_table(engine, relation, None if qi is None else _names(qi), _names(sensitive))


def measure(
    con: Any,
    published: str,
    policy: Policy | Mapping[str, Any] | None = None,
    *,
    source: str | None = None,
    qi: Mapping[str, Any] | None = None,
    sensitive: str | Sequence[str] = (),
    folder: str | Path = ".",
    l: int | None = None,  # noqa: E741 - the field's name for it
    class_column: str | None = None,
    class_label: str | None = None,
    queries: int = 0,
    seed: int = 0,
    kl: bool = True,
    catalog: str | None = None,
    show_values: bool = False,
) -> Measurement:
    """The information lost by a published table, view or data file, whoever made it, against its source.

    The columns are those of `policy`, or `qi` (column to settings, as in a policy) and `sensitive`; `source` is the
    policy's by default, relative files lie in `folder`. `l` is for CAVG (the policy's by default), `class_label`
    a published column for CM, `class_column` one of class ids; `queries` random COUNT queries are drawn by `seed`.
    `catalog` is the attached database that holds taxonomies, if it is not the current one; with `show_values` errors
    name values that a taxonomy lacks. Raises PolicyError for what does not exist, does not fit, or cannot be read,
    InfeasibleError for an empty source.
    """
    asked = parse_policy(policy) if policy is not None else _described(source, qi, sensitive)
    wanted = Wanted(l, class_column, class_label, queries, seed, kl)
    with working_engine(con, catalog=catalog) as engine:
        original = resolve_source(engine, source or asked.source, Path("." if source else folder))
        relation = resolve_source(engine, published, Path(), "published")
        if problems := wanted.problems():
            raise PolicyError(problems)
        described = describe(engine, asked, original, Path(folder))
        return measure_table(engine, relation, described, wanted, show_values)


def _described(source: str | None, qi: Mapping[str, Any] | None, sensitive: str | Sequence[str]) -> Policy:
    """The policy that says what the columns are, and asks for nothing."""
    missing = [
        Problem(key, "is required where no policy is given")
        for key, value in (("source", source), ("qi", qi), ("sensitive", sensitive))
        if not value
    ]
    if missing:
        raise PolicyError(missing)
    return parse_policy(
        {
            "source": source,
            "target": {"table": "none"},
            "quasi_identifiers": dict(qi or {}),
            "sensitive": _names(sensitive),
            "require": [{"k": 1}],
        }
    )


def read_requirements(written: Iterable[str | Mapping[str, Any]]) -> list[RequirementSpec]:
    """The requirements as written, `"distinct:3"` or `{"distinct": 3}`; raises PolicyError for all that are none."""
    specs, problems = [], []
    for item in written:
        try:
            specs += [parse_requirement(item)] if isinstance(item, str) else _of_mapping(item)
        except ValueError as error:
            problems.append(Problem("require", str(error)))
    if not specs and not problems:
        problems.append(Problem("require", "is empty", "say what must hold, e.g. distinct:3"))
    if problems:
        raise PolicyError(problems)
    return specs


def _of_mapping(item: Any) -> list[RequirementSpec]:
    if not isinstance(item, Mapping) or not item:
        raise ValueError("a requirement is written 'distinct:3' or {'distinct': 3}")
    if {"sensitive", "others_known"} & set(item):
        return [read_requirement(item)]
    return [RequirementSpec(str(name), argument) for name, argument in item.items()]


def read_sensitive(written: str | Sequence[str] | Mapping[str, Any]) -> dict[str, Sensitive]:
    """The sensitive attributes as written: a name, names, or a mapping of names to what a policy says of them."""
    settings = written if isinstance(written, Mapping) else dict.fromkeys(_names(written))
    found, problems = {}, []
    for name, setting in settings.items():
        try:
            found[name] = Sensitive.model_validate(setting or {})
        except ValidationError as error:
            problems += [Problem(f"sensitive.{name}", str(item["msg"])) for item in error.errors()]
    if problems:
        raise PolicyError(problems)
    return found


def _names(columns: str | Sequence[str]) -> list[str]:
    """One column's name or several."""
    return [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))
