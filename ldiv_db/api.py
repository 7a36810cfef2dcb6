"""Calls for Python programs on a connection of their own; see also `run` and `plan`.

None of them ends a transaction: they read what the caller's connection sees, inside its transaction if
one is open, and leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ldiv_db import audit
from ldiv_db.attacks import Attackers, Attacks, Columns, attack_table, columns_asked, columns_by_policy
from ldiv_db.audit import Audit
from ldiv_db.categorise import read_categories
from ldiv_db.engine import Engine
from ldiv_db.errors import PolicyError, Problem
from ldiv_db.policy import Policy, parse_policy
from ldiv_db.profile import Profile, profile_table
from ldiv_db.requirements import RequirementSpec, parse_requirement
from ldiv_db.run import resolve_source


def check(
    con: Any,
    table: str,
    qi: Sequence[str],
    sensitive: str | Sequence[str],
    require: Iterable[str | Mapping[str, Any]],
    class_column: str | None = None,
) -> list[Audit]:
    """The audits of a table, view or data file, one a sensitive column: do all its classes meet `require`?

    A class is the rows with equal `qi`, NULL being a value; `class_column` tells classes apart as well. A
    requirement is written `"distinct:3"` or `{"distinct": 3}`. Every Audit has `holds`, `classes`, `rows`
    and its `verdicts`; nothing is raised if one fails. Raises PolicyError for a table or columns that do
    not exist and for requirements that are none, DatabaseError if the database refuses.
    """
    specs = read_requirements([require] if isinstance(require, str | Mapping) else require)
    with _engine(con) as engine:
        relation = resolve_source(engine, table, Path(), "table")
        return audit.check(engine, relation, _names(qi), _names(sensitive), specs, class_column)


def attack(
    con: Any,
    table: str,
    qi: Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    require: Iterable[str | Mapping[str, Any]] | None = None,
    *,
    policy: Policy | Mapping[str, Any] | None = None,
    folder: str | Path = ".",
    class_column: str | None = None,
    categories: Any = None,
    m: int = 1,
    threshold: float | str | Decimal = "0.2",
    known: str | None = None,
    population: str | None = None,
    show_values: bool = False,
) -> Attacks:
    """What attackers gain at best from a published table, view or data file, and what is promised at most.

    The columns are `qi` and `sensitive`, or those of the release that `policy` describes, whose requirements are
    then what is promised unless `require` is given. `categories` are of similar values: lists of values, or as
    `ldiv attack --categories` takes them; by attribute if there are several. `m` values of a class can be excluded
    by who has background knowledge; a risk of re-identification above `threshold` (0..1) counts as high. `known`
    and `population` are tables or files of people with quasi-identifiers as they are before anonymization; both
    need a policy. The Attacks have `holds`, `rows`, `classes` and `attacks`; no value of the table is in them
    unless `show_values`. Raises PolicyError for what does not exist or cannot be read, DatabaseError if the
    database refuses.
    """
    specs = [] if require is None else read_requirements([require] if isinstance(require, str | Mapping) else require)
    with _engine(con) as engine:
        published = resolve_source(engine, table, Path(), "table")
        people = [resolve_source(engine, p, Path(), key) if p else None for key, p in _people(known, population)]
        attackers = Attackers(m, _threshold(threshold), people[0], people[1], show_values)
        if policy is None:
            columns = columns_asked(engine, published, _names(qi), _names(sensitive), class_column)
        else:
            parsed = parse_policy(policy)
            named = [*qi, *sensitive, *([class_column] if class_column else [])]
            columns = _of_policy(engine, published, parsed, folder, named)
            specs = specs if require is not None else list(parsed.require)
        groups = read_categories(engine, categories, columns.sensitive)
        return attack_table(engine, published, columns, specs, groups, attackers)


def _people(known: str | None, population: str | None) -> list[tuple[str, str | None]]:
    return [("known", known), ("population", population)]


def _of_policy(engine: Engine, published: Any, policy: Policy, folder: str | Path, named: Sequence[str]) -> Columns:
    """The columns of a release under a policy, which none may be named beside."""
    if named:
        raise PolicyError([Problem("policy", "says what the columns are, name none beside it")])
    return columns_by_policy(engine, published, policy, Path(folder))


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
    with _engine(con) as engine:
        relation = resolve_source(engine, table, Path(), "table")
        return profile_table(engine, relation, None if qi is None else _names(qi), _names(sensitive))


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
    return [RequirementSpec(str(name), argument) for name, argument in item.items()]


def _names(columns: str | Sequence[str]) -> list[str]:
    """One column's name or several."""
    return [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))


@contextmanager
def _engine(con: Any) -> Iterator[Engine]:
    engine = Engine(con)
    try:
        yield engine
    finally:
        engine.close_scratch()
