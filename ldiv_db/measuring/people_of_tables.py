"""People of several tables: how many have how many rows of each, and what can be required of their sensitive values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.measuring.links import ProfiledTable, Tree
from ldiv_db.measuring.starter_policy import by_column
from ldiv_db.measuring.suggestions import APART, MODEST_K, required_of
from ldiv_db.measuring.uniqueness import RARE
from ldiv_db.policy.schema import PERSON
from ldiv_db.policy.sources import open_source
from ldiv_db.policy.tables import PolicyTable, named_in
from ldiv_db.recoding.links import LinkedTable, linked_rows

#: Numbers of rows of a person that are shown.
_SHOWN = 6


@dataclass(frozen=True)
class PeopleRows:
    """How many people have so many rows of a table, or so many at least."""

    rows: int
    people: int
    or_more: bool = False

    def __str__(self) -> str:
        return f"{self.rows}{' or more' if self.or_more else ''}: {self.people:,}"


def linked_as_read(
    engine: Engine, tables: Sequence[ProfiledTable], members: Mapping[str, Mapping[str, Any]]
) -> dict[str, Relation]:
    """The rows of each table as the policy reads them, with numbers for keys."""
    linked = {}
    for table in tables:
        said = PolicyTable.model_validate(members[table.name])
        relation = table.relation if isinstance(said.source, str) else open_source(engine, said.source, Path())
        linked[table.name] = LinkedTable.opened(engine, table.name, said, relation)
    return linked_rows(engine, linked, "profile", PERSON)


def count_people_rows(
    engine: Engine, rows: Mapping[str, Relation], members: Mapping[str, Mapping[str, Any]], tree: Tree
) -> dict[str, list[PeopleRows]]:
    """How many people have how many rows of each table; few people of many rows are counted together."""
    found = {}
    for name, relation in rows.items():
        with engine.scope():
            of_people = engine.count_groups("of_people", relation, (_owner(members[name]), "person"))
            counted = [PeopleRows(int(n), int(people)) for n, people in engine.tally(of_people, "rows")]
        found[name] = sorted(counted, key=lambda one: one.rows)
    people = sum(one.people for one in found[tree.people[0]])
    for name, counts in found.items():
        none = people - sum(one.people for one in counts)
        found[name] = _folded([PeopleRows(0, none), *counts] if none > 0 else counts)
    return found


def _folded(counts: list[PeopleRows]) -> list[PeopleRows]:
    """The first of the counts, and from the first one of few people on all together."""
    shown = next((i for i, one in enumerate(counts) if one.people < RARE), len(counts))
    shown = max(1, min(shown, len(counts) if len(counts) <= _SHOWN else _SHOWN - 1))
    first, others = counts[:shown], counts[shown:]
    if not others:
        return first
    together = sum(one.people for one in others)
    if together < RARE:
        *first, last = first
        return [*first, PeopleRows(last.rows, last.people + together, True)]
    return [*first, PeopleRows(others[0].rows, together, True)]


def _owner(member: Mapping[str, Any]) -> str:
    return str(member.get("person", PERSON))


def required_of_people(
    engine: Engine, rows: Mapping[str, Relation], members: Mapping[str, Mapping[str, Any]], most_l: int
) -> list[dict[str, Any]]:
    """What the people of each table allow of each sensitive column, and of those without a value."""
    found: dict[str, list[dict[str, Any]]] = {}
    for table, member in members.items():
        for name in member.get("sensitive", ()):
            params = {"rows": rows[table], "person": Identifier(_owner(member)), "value": Identifier(name)}
            counted = engine.record("measuring/profile/count_people", **params)
            people, most, values = (int(counted[key] or 0) for key in ("people", "most", "different"))
            each = required_of(values, most, people) if most < people else []
            found[named_in(table, name)] = [{APART: min(most_l, one[APART])} if APART in one else one for one in each]
    return [*by_column(found), {"k": MODEST_K}]
