"""The method of anatomised releases: groups of people in one table, and of their values in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ldiv_db.algorithms.decomposition.encode import DecompositionCoding
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.series import GROUP_ID
from ldiv_db.publishing.series_draft import Start
from ldiv_db.publishing.series_tables import ReleaseTables
from ldiv_db.running.preparation import Listener
from ldiv_db.running.release_groups import plan_groups
from ldiv_db.running.replaying.classes import reseeded
from ldiv_db.running.replaying.method import ROW_NO, Compared, Made, Method

_GROUP_NO = Identifier("group_no")


@dataclass
class GroupsMethod(Method):
    """What is read of the source once; groups are compared by their numbers too if they are `numbered`.

    Numbers are drawn: who lacks the seed is told nothing by them, and compares what groups hold.
    """

    start: Start
    coding: DecompositionCoding
    numbered: bool

    def make(self, world: Relation, seed: int) -> Made:
        source = self.coding.encode(world, [ROW_NO])
        draft = plan_groups(reseeded(self.start, seed), source, Listener())
        made: dict[Relation, Relation] = {}

        def create(target: Relation, template: str, **holes: Any) -> None:
            made[target] = self.engine.materialise("release", template, **holes)

        tables = draft.tables(self.start.target.prefix)
        draft.write_tables(tables, None, create)
        found = compared(self.engine, self.resolved, tables, made, self.numbered)
        return Made(draft.matched.rows, draft.shown, _GROUP_NO, found)


def compared(
    engine: Engine, resolved: Resolved, tables: ReleaseTables, found: Mapping[Relation, Relation], numbered: bool
) -> list[Compared]:
    """The tables of a release as they are compared; `found` says where they are."""
    released, group = resolved.released, Identifier(GROUP_ID)
    known = [Identifier(name) for name in [*(qi.name for qi in resolved.source.quasi_identifiers), *released.keep]]
    told = [Identifier(name) for name in released.sensitive]
    counts = [Identifier(tables.count)] if tables.count else []
    marginals = [Compared(found[tables.marginals], told)] if tables.marginals else []
    people, values = found[tables.people], found[tables.values]
    if numbered:
        return [Compared(people, [group, *known]), Compared(values, [group, *told, *counts]), *marginals]
    holes: dict[str, Any] = {"people": people, "values": values, "known": known, "told": told, "counts": counts}
    groups = engine.materialise("groups", "running/replaying/list_groups", group_id=group, **holes)
    return [Compared(groups, [Identifier("shown")]), *marginals]
