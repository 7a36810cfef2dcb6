"""A policy of several tables: what is wrong with it as it is written, and the policy of each of its tables.

Each table is described as a source is that is published alone: by the policy that has its columns, with a number in
place of every key.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from ldiv_db.database.errors import Problem, nearest, refused
from ldiv_db.policy.document import Policy
from ldiv_db.policy.limits import limit_problems
from ldiv_db.policy.parts import unreported
from ldiv_db.policy.settings import Individual, Output
from ldiv_db.policy.sources import Frame
from ldiv_db.policy.tables import PolicyTable, named_in
from ldiv_db.policy.targets import Target
from ldiv_db.requirements import RequirementSpec

#: The column of the number of whose a row is, in a table whose rows belong to those of another.
PERSON = "ldiv_person"
#: The hexadecimal digits of the seed of a table apart, which nobody can guess.
_DIGITS = 30
#: Why rows have no places of which one is known.
_NO_ORDER = "does not go with known: 1, by which rows are published in no order"
#: The column of what says over time which row is which, as its table has it.
ROW = "ldiv_row"
#: What is said of each table, not of all.
_OF_EACH = ("source", "target", "quasi_identifiers", "sensitive", "identifiers", "keep")


def schema_problems(policy: Policy, broken: Callable[[Policy], list[Problem]]) -> Iterator[Problem]:
    """Everything that is wrong with a policy of several tables; `broken` are the problems of the policy of one."""
    linked = "tables apart" if policy.is_apart else "linked tables"
    beside = ["releases over time"] * (policy.is_series and not policy.decomposes) + ["known: 1"] * policy.knows_one
    known = [*_of_keys(policy), *_of_all(policy), *limit_problems(policy, "tables", linked, *beside)]
    for number, spec in enumerate(policy.require):
        found = spec.problems_among(f"require.{number}", policy.sensitive, "known" if policy.knows_one else "order")
        if not (found or spec.kind.rows_only or policy.sensitive):
            what = f"{spec.name} is about sensitive values, and no table has any"
            found.append(Problem(f"require.{number}", what, "k"))
        known += found
    links = _of_apart if policy.is_apart else _of_links
    for name, table in policy.tables.items():
        found = _under(name, [p for of in (links, _of_rows, _of_target) for p in of(policy, name, table)])
        known += unreported(found, known)
    if not members_of(policy):
        known.append(Problem("tables", "has none whose rows belong to people", "say `person: COLUMN` of one"))
    yield from known
    broken_by = [
        problem
        for name, member in members_of(policy).items()
        for problem in _under(name, broken(_without(member, name, known)))
        if policy.is_apart or not problem.key.startswith(f"tables.{name}.require")
    ]
    yield from unreported(told_once(broken_by), known)


def _without(member: Policy, name: str, known: Sequence[Problem]) -> Policy:
    """The policy of a table with defaults in place of what is known to be wrong, from which nothing else follows."""
    own = {problem.key.removeprefix(f"tables.{name}.").partition(".")[0] for problem in known}
    wrong = {key for key in own - {"require", "tables", *_OF_EACH[2:]} if key in Policy.model_fields}
    fields = {key: Policy.model_fields[key].get_default(call_default_factory=True) for key in wrong - {"individual"}}
    return member.model_copy(update=fields)


def told_once(found: Iterable[Problem]) -> list[Problem]:
    """The problems of tables, one that several have with what is said of all once, under the key of that."""

    def own(problem: Problem) -> Problem:
        key = problem.key.split(".", 2)[-1]
        is_of_all = "." in key and key.partition(".")[0] not in PolicyTable.model_fields
        return replace(problem, key=key) if is_of_all else problem

    tables = Counter(own(problem) for problem in found)
    return list(dict.fromkeys(one if tables[one := own(problem)] > 1 else problem for problem in found))


def _under(name: str, found: Iterable[Problem]) -> list[Problem]:
    return [replace(problem, key=".".join(filter(None, ("tables", name, problem.key)))) for problem in found]


def _of_keys(policy: Policy) -> Iterator[Problem]:
    """The problems of keys that stand in the wrong place."""
    for key in _OF_EACH:
        if key in policy.model_fields_set:
            yield Problem(key, "stands with each of the tables", f"tables: {{NAME: {{{key}: …}}}}")


def _of_all(policy: Policy) -> Iterator[Problem]:
    """The problems of what is said of all tables."""
    if not policy.require:
        yield Problem("require", "must name at least one requirement")
    if policy.individual is None:
        yield Problem("individual", "is required: the column that says who a person is", "individual: COLUMN")
    elif policy.individual.rows_at_most is not None:
        yield Problem(
            "individual.rows_at_most", "is of one table: how many rows people publish is searched", "leave it out"
        )
    elif policy.individual.order and policy.knows_one:
        yield Problem("individual.order", _NO_ORDER, "leave it out")
    elif policy.individual.order and (policy.is_apart or policy.individual.rows == "together"):
        yield Problem("individual.order", "is of rows that are published in it", "rows: aligned")
    elif (order := policy.individual.order) and order not in [table.order for table in policy.tables.values()]:
        what = f"no table has {order} among its columns"
        yield Problem("individual.order", what, "list it under the identifiers of those whose rows are in its order")
    if policy.key and policy.key not in [table.own_key for table in policy.tables.values()]:
        what = f"no table has {policy.key} among its identifiers"
        yield Problem("key", what, "list it there, or give each table a `key` of its own")


def _of_apart(policy: Policy, name: str, table: PolicyTable) -> Iterator[Problem]:
    """The problems of a table whose rows nothing is to link to those of others."""
    if table.parent or table.public or not table.person:
        what = "is required: tables apart have no links, by which rows would belong to others"
        yield Problem("person", what, "say whose each row is in a query as the source, or rows: aligned")
    if not table.quasi_identifiers:
        yield Problem("quasi_identifiers", "is required of a table by itself", "rows: aligned")
    others = {other: beside for other, beside in policy.tables.items() if other != name}
    order = [table.order] if table.order else []
    for key, columns in (("quasi_identifiers", table.quasi_identifiers), ("keep", table.keep), ("order", order)):
        for column, other in product(columns, others):
            if column.lower() in map(str.lower, others[other].sensitive):
                yield Problem(f"{key}.{column}", f"is sensitive in {other}", "rename what is something else")
    for column, other in product((*table.keep, *table.sensitive), others):
        beside = others[other].keep if column in table.keep else others[other].sensitive
        if column.lower() in map(str.lower, beside):
            what = f"is in {other} as well: rows that have one value of it would be linked"
            yield Problem(f"{'keep' if column in table.keep else 'sensitive'}.{column}", what, "rows: aligned")


def _of_links(policy: Policy, name: str, table: PolicyTable) -> Iterator[Problem]:
    """The problems of whose a table's rows are."""
    ways = [key for key in ("person", "parent", "public") if getattr(table, key)]
    if len(ways) != 1:
        what = f"takes one of person, parent and public, and has {', '.join(ways)}" if ways else "belongs to nobody"
        way_out = "`person: COLUMN`, or `parent: {COLUMN: TABLE}`; `public: true` publishes it as it is"
        yield Problem("", what, way_out)
    if table.own_key and table.own_key == table.owner:
        yield Problem("key", f"{table.own_key} says whose a row is already", "leave it out, and give others `person`")
    named = {column.lower() for column in (*table.quasi_identifiers, *table.sensitive)}
    links = {"person" if table.person else "parent": table.owner, "key": table.own_key}
    for key, column in links.items():
        if column and column.lower() in named:
            yield Problem(key, f"{column} links rows, and is published as a number", "leave it out of other lists")
    if table.above:
        yield from _of_parent(policy, name, table)


def _of_parent(policy: Policy, name: str, table: PolicyTable) -> Iterator[Problem]:
    """The problems of the table whose rows its own belong to."""
    parent, other = table.above, policy.tables.get(table.above)
    if several := [one for one in table.parent.values() if one != parent]:
        what = f"leads to {parent} and to {several[0]}: a row belongs to one of them"
        yield Problem("parent", what, "name one, and list the columns of the other under identifiers")
    elif other is None:
        yield Problem("parent", f"there is no table {parent}", nearest(parent, policy.tables))
    elif other.own_key is None:
        yield Problem("parent", f"{parent} has no key", f"tables: {{{parent}: {{key: COLUMN}}}}")
    elif len(other.key_parts) != len(table.parent):
        ways = ", ".join(f"COLUMN: {parent}" for _ in other.key_parts)
        yield Problem(
            "parent", f"is not as many columns as the key of {parent}, {other.own_key}", f"parent: {{{ways}}}"
        )
    elif not _is_linked(policy, name):
        what = "leads to no person" if other.public else "leads back to the table itself, never to a person"
        yield Problem("parent", f"{parent} {what}", "say `person: COLUMN` of one of them")


def _of_rows(policy: Policy, name: str, table: PolicyTable) -> Iterator[Problem]:
    """The problems of what a table is called, and how its rows are published."""
    if "." in name or not name.strip():
        yield Problem("", "takes a name without a dot, which stands before its columns", "rename it")
    if table.public:
        asked = {key: getattr(table, key) for key in ("quasi_identifiers", "sensitive", "order", "key")}
        others = {"rows": table.rows == "together", "orphans": table.orphans != "refuse"}
        for key in (key for key, said in {**asked, **others}.items() if said):
            yield Problem(key, "is of people, and a public table is published as it is", "list columns under keep")
    for key in (key for key in ("order", "rows") if policy.knows_one and key in table.model_fields_set):
        yield Problem(key, _NO_ORDER, "leave it out, and list the column under another key")
    if policy.is_series and table.order and not table.own_key:
        yield Problem("key", "is required: the column that says which row is which over time", "key: COLUMN")
    if table.rows == "together" and table.order and policy.is_apart:
        yield Problem("order", "rows that stand together are published in none", "leave it out, or rows: aligned")
    elif table.rows == "together" and table.order and any(spec.each for spec in policy.require):
        yield Problem("rows", "have one label, and something is asked at each position", "rows: aligned")


def _is_linked(policy: Policy, name: str) -> bool:
    """True if the rows of a table lead to people."""
    seen = set[str]()
    while name in policy.tables and name not in seen:
        seen.add(name)
        if policy.tables[name].person:
            return True
        name = policy.tables[name].above
    return False


def _of_target(policy: Policy, name: str, table: PolicyTable) -> Iterator[Problem]:
    target, first = table.target, next(iter(policy.tables.values())).target
    if target.home != first.home or (target.folder == Path() and target.format != "duckdb"):
        what = "all tables go to one database, DuckDB file or folder, which is moved into place with them"
        ways = f"target: {{file: FILE.duckdb, table: {name}}} of each, or {{file: FOLDER/{name}.parquet}}"
        yield Problem("target", what, ways)
    elif broken := target.problems():
        yield from broken
    else:
        before = list(policy.tables)[: list(policy.tables).index(name)]
        same = [other for other in before if _spelt(policy.tables[other].target) == _spelt(target)]
        yield from [Problem("target", f"is that of {other} already", "name another table") for other in same[:1]]


def _spelt(target: Target) -> str:
    """Where it is, in one spelling."""
    return ":".join(map(str, (target.home, target.table or Path(target.file or "").name))).lower()


def members_of(policy: Policy) -> Mapping[str, Policy]:
    """The policy of each table that belongs to people, on a source in which numbers stand for keys.

    Whose a row is says its column `person`, or one of ours. Tables apart are read as they are, by seeds of their own.
    """
    made = _alone if policy.is_apart else _member
    return {name: made(policy, name, table) for name, table in policy.tables.items() if not table.public}


def of_published(policy: Policy, table: Any) -> Policy:
    """The policy of one of several tables that are published apart, by where it is; any other policy, as it is.

    Raises PolicyError if none of them is there.
    """
    if table is None or not policy.is_apart:
        return policy
    places = {str(member.target).lower(): member for member in members_of(policy).values()}
    if str(table).lower() not in places:
        raise refused("table", f"is none of those that the policy publishes: {policy.places}", "name one of them")
    return places[str(table).lower()]


def _alone(policy: Policy, name: str, table: PolicyTable) -> Policy:
    """The policy of a table that is published without links; its own `order`, or `rows: together`, is of its rows."""
    rows = "aligned" if table.order else "together" if table.rows == "together" else "apart"
    individual = {"column": table.person or PERSON, "rows": rows, "order": table.order}
    seed = hashlib.sha256(f"{policy.seed} {name}".encode()).hexdigest()
    required = _required(policy, name, table) or [RequirementSpec("k", _least_rows(policy))]
    own = {
        "source": table.source.called(name) if isinstance(table.source, Frame) else table.source,
        "individual": Individual.model_validate(individual),
        "require": required,
        "output": _output_of(policy, table, rows),
        "seed": int(seed[:_DIGITS], 16),
    }
    found = _with_columns(policy, table, own, {table.person or PERSON})
    if "seed" not in policy.model_fields_set:
        found.model_fields_set.discard("seed")
    return found


def _output_of(policy: Policy, table: PolicyTable, rows: str) -> Output:
    """What is said of the output of a table apart: of its own columns, of people whose rows it links, of places."""
    others = {column for one in policy.tables.values() for column in one.quasi_identifiers} - {*table.quasi_identifiers}
    without = {*others, *(["person"] if rows == "apart" else []), *(["position"] if rows != "aligned" else [])}
    return Output.model_validate(policy.output.model_dump(exclude_unset=True, exclude=without))


def _least_rows(policy: Policy) -> int:
    """How many people a class must have of a table without sensitive values: as many as values, and some others."""
    settled = [spec.resolve(None) for spec in policy.require if not (spec.is_auto or spec.problems("require"))]
    return max([2, *(one.least_rows for one in settled)])


def _member(policy: Policy, name: str, table: PolicyTable) -> Policy:
    person = table.person or PERSON
    rows = {"rows": "aligned", "order": table.order} if table.order else {"rows": "together"}
    position = (policy.output.position or "position") if table.order else None
    own = {
        "source": Frame(None, str(table.source)),
        "individual": Individual.model_validate({"column": person, **rows}),
        "require": _required(policy, name, table) or [RequirementSpec("k", 1)],
        "output": _output_of(policy, table, "linked").model_copy(update={"person": person, "position": position}),
    }
    return _with_columns(policy, table, own, {person})


def _with_columns(policy: Policy, table: PolicyTable, own: Mapping[str, Any], whose: set[str]) -> Policy:
    """The policy of a table with its columns; those of keys are not published, but for `whose` its rows are."""
    roles = [*table.identifiers, *table.quasi_identifiers, *table.sensitive, *table.keep]
    taken = {column.lower() for column in (*roles, *whose)}
    is_parent = any(other.parent and policy.tables.get(other.above) is table for other in policy.tables.values())
    links = [column for column in table.links(is_parent) if column.lower() not in taken]
    columns = {part: getattr(table, part) for part in ("quasi_identifiers", "sensitive", "keep")}
    identifiers = [*table.identifiers, *links, *([ROW] if policy.is_series else [])]
    beside = {"tables": {}, "target": table.target, "key": None, "nights": None}
    update = {**beside, "identifiers": identifiers, **columns, **own}
    return policy.model_copy(update=update)


def as_one(policy: Policy) -> Policy:
    """The policy as of one table that has the columns of all its tables, and a person's rows in their order."""
    if not policy.tables:
        return policy
    named = {
        part: [named_in(name, column) for name, table in policy.tables.items() for column in getattr(table, part)]
        for part in ("identifiers", "keep")
    }
    individual = policy.individual and policy.individual.model_copy(update={"rows": "aligned"})
    return policy.model_copy(update={**named, "individual": individual, "tables": {}})


def content_of(policy: Policy) -> Any:
    """What a policy of several tables says of their release beside what it says of each, but for where they are."""
    beside = {"source", "target", "identifiers"}

    def said(table: PolicyTable) -> dict[str, Any]:
        unsaid = {"orphans"} if table.orphans == "refuse" else set[str]()  # so that releases before it stay the same
        return table.model_dump(exclude=beside | unsaid)

    tables = {name: said(table) for name, table in policy.tables.items()}
    return [tables, policy.require, *([policy.known] if policy.knows_one else [])]


def _required(policy: Policy, name: str, table: PolicyTable) -> list[RequirementSpec]:
    """What is required of the sensitive columns of a table, or of its rows where it has none."""
    found = []
    for spec in policy.require:
        own = tuple(column for column in table.sensitive if spec.concerns(named_in(name, column)))
        if (own if table.sensitive else spec.kind.rows_only) and not spec.problems("require"):
            found.append(replace(spec, sensitive=own if spec.sensitive else ()))
    return found
