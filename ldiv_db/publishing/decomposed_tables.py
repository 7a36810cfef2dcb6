"""The tables of a decomposed release: written and audited, numbered release by release.

Quasi-identifiers go to one table with the group of each row, sensitive values to another with each column of a group
in an order of its own, combinations of sensitive values to a third without groups, in the first release alone and where
they do not tell too much of pairings within groups (`pairings`). What a release has published of
sensitive values stays in all later ones as it is: rows that are gone from the source, or have changed, leave their
values in their group, so that comparing releases tells nothing of them.

The third table holds values as they are published, noise included: with the true ones it would tell which are noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ldiv_db.algorithms.decomposition.encode import Decomposed
from ldiv_db.auditing.audit import Audit, audit_table, require_good
from ldiv_db.auditing.subject import Pair, Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, PolicyError, Problem
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.series import GROUP_ID
from ldiv_db.publishing.draft import require_rows
from ldiv_db.publishing.series_draft import Start
from ldiv_db.publishing.series_tables import Expected, ReleaseTables, require_tables, sql_name_of
from ldiv_db.requirements import Attribute, RequirementSpec

#: Makes a table of what a template selects, given the table, the template and what fills its holes.
Create = Callable[..., None]


def check_decomposed_before(start: Start, tables: ReleaseTables) -> None:
    """Raise PolicyError unless the last release's tables are there, with the columns that the policy still has."""
    engine, names = start.engine, start.resolved.limits
    require_tables(engine, tables)
    wanted = {GROUP_ID, *(name.lower() for name in names), *([tables.count] if tables.count else [])}
    if wanted != {column.name.lower() for column in columns_of(engine, tables.values)}:
        what = f"{sql_name_of(tables.values)} has other sensitive attributes than the policy"
        raise PolicyError([Problem("sensitive", what, "give another target to other releases")])


def write_tables(
    engine: Engine,
    tables: ReleaseTables,
    before: ReleaseTables | None,
    source: Decomposed,
    rows: Relation,
    shown: Relation,
    last: int,
    create: Create | None = None,
) -> None:
    """Make the tables: `shown` are the new groups, numbered after `last`; old ones are as in the tables `before`.

    They are tables that stay, unless `create` makes others of what a template selects.
    """
    create = create or engine.create
    placed = engine.materialise("placed", "publishing/place_rows", rows=rows, shown=shown, last=Value(last))
    group_id = Identifier(GROUP_ID)
    create(tables.people, "publishing/list_people", rows=rows, placed=placed, group_id=group_id, shown=source.shown)
    engine.drop(placed)
    holes: dict[str, Any] = {
        "shown": shown,
        "group_id": group_id,
        "before": before.values if before else None,
        "last": Value(last),
    }
    if tables.count is not None:
        columns: dict[str, Any] = {"attribute": source.primary, "count": Identifier(tables.count)}
        create(tables.values, "publishing/count_values", **holes, **columns)
        return
    create(tables.values, "publishing/order_values", secrets=source.secrets, **holes)
    if tables.marginals is not None:
        create(tables.marginals, "publishing/list_marginals", secrets=source.secrets, shown=shown)


def audit_tables(engine: Engine, tables: ReleaseTables, resolved: Resolved, expected: Expected) -> list[Audit]:
    """The audits of the tables as they stand, one a sensitive attribute; raises AuditError if one fails."""
    pair = Pair(tables.values, GROUP_ID, tables.count)
    subject = Subject(tables.people, [], pair=pair)
    audits = [
        audit_table(engine, subject, name, [spec.resolve(None, Attribute(name)) for spec in _required(resolved, name)])
        for name in resolved.limits
    ]
    require_good(audits)
    people = engine.count(tables.people)
    require_rows(people, expected.people)
    for audit in audits:
        if (audit.rows, audit.unmatched_groups) != (people + expected.counterfeits, expected.short_groups):
            raise AuditError(f"{audit.sensitive}: the two tables do not have the same rows in each group")
    _require_same_totals(engine, tables, list(resolved.limits))
    return audits


def _required(resolved: Resolved, name: str) -> list[RequirementSpec]:
    """No value in more than 1/l of a group; and l values, where NULL is none."""
    l = resolved.limits[name]  # noqa: E741
    names = ["frequency"] if resolved.source.nulls_sensitive == "value" else ["frequency", "distinct"]
    return [RequirementSpec(requirement, l) for requirement in names]


def _require_same_totals(engine: Engine, tables: ReleaseTables, names: Sequence[str]) -> None:
    """Raise AuditError if combinations tell of values that the groups do not have, or the other way round."""
    for name in names if tables.marginals else []:
        holes = {"one": tables.values, "other": tables.marginals}
        if engine.scalar("publishing/count_unlike", column=Identifier(name), **holes):
            raise AuditError(f"{name}: groups and combinations do not have the same values")
