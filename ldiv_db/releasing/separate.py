"""The tables of a decomposed release: written and audited, numbered release by release.

Quasi-identifiers go to one table with the group of each row, sensitive values to another with each column of a group
in an order of its own, combinations of sensitive values to a third without groups. What a release has published of
sensitive values stays in all later ones as it is: rows that are gone from the source, or have changed, leave their
values in their group, so that comparing releases tells nothing of them.

The third table holds values as they are published, noise included: with the true ones it would tell which are noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db import catalog
from ldiv_db.audit import Audit, Pair, Subject, audit_table, require_good
from ldiv_db.catalog import columns_of
from ldiv_db.engine import Engine
from ldiv_db.errors import AuditError, PolicyError, Problem
from ldiv_db.policy import Policy
from ldiv_db.policy_decomposition import DECOMPOSITIONS, GROUP_ID
from ldiv_db.releasing.decomposed import Decomposed
from ldiv_db.requirements import Attribute, RequirementSpec
from ldiv_db.templates import Identifier, Relation, Value

#: The column of anatomy's sensitive table that counts rows.
COUNT = "n"


@dataclass(frozen=True)
class Tables:
    """The tables of one release: of people, of sensitive values, and of their combinations if there is one."""

    people: Relation
    values: Relation
    marginals: Relation | None = None

    @property
    def all(self) -> list[Relation]:
        return [self.people, self.values, *([self.marginals] if self.marginals else [])]

    @property
    def count(self) -> str | None:
        """The column of counts in the table of sensitive values; only anatomy has one."""
        return None if self.marginals else COUNT


def tables_of(prefix: Relation, algorithm: str, release: int) -> Tables:
    """The tables of a release: `published.census` gives `published.census_1_qid` and so on."""
    names = [f"{prefix.name}_{release}_{suffix}" for suffix in DECOMPOSITIONS[algorithm]]
    return Tables(*(Relation((*prefix.parts[:-1], name)) for name in names))


def check_place(engine: Engine, prefix: Relation, tables: Tables) -> None:
    """Raise PolicyError unless the tables can be made, in one transaction with the ledger."""
    if [part.lower() for part in prefix.parts[-2:-1]] == [catalog.SCHEMA]:
        raise _refused(f"schema {catalog.SCHEMA!r} is the catalog's own", "name another schema")
    home, current = catalog.catalog_of(engine, prefix).lower(), catalog.current_database(engine).lower()
    if home != (engine.catalog or current).lower() or home != current:
        what = "tables cannot be published in one transaction with a catalog in another database"
        raise _refused(what, "leave the catalog in the database")
    for table in tables.all:
        if catalog.table_exists(engine, table):
            raise _refused(f"{table} exists, and no release made it", "drop it, or name another prefix")


def check_before(engine: Engine, tables: Tables, policy: Policy) -> None:
    """Raise PolicyError unless the last release's tables are there, with the columns that the policy still has."""
    gone = [table for table in tables.all if not catalog.table_exists(engine, table)]
    if gone:
        raise _refused(f"{gone[0]} of the last release is gone", "a release builds on the last one")
    wanted = {GROUP_ID, *(name.lower() for name in policy.sensitive), *([tables.count] if tables.count else [])}
    found = {column.name.lower() for column in columns_of(engine, tables.values)}
    if wanted != found:
        what = f"{tables.values} has other sensitive attributes than the policy"
        raise PolicyError([Problem("sensitive", what, "give another target to other releases")])


def write_tables(
    engine: Engine, tables: Tables, before: Tables | None, found: Decomposed, rows: Relation, shown: Relation, last: int
) -> None:
    """Make the tables: `shown` are the new groups, numbered after `last`; old ones are as in the tables `before`."""
    placed = engine.materialise("placed", "release/place_rows", rows=rows, shown=shown, last=Value(last))
    group_id = Identifier(GROUP_ID)
    engine.create(tables.people, "release/list_people", rows=rows, placed=placed, group_id=group_id, shown=found.shown)
    engine.drop(placed)
    holes: dict[str, Any] = {
        "shown": shown,
        "group_id": group_id,
        "before": before.values if before else None,
        "last": Value(last),
    }
    if tables.marginals is None:
        columns: dict[str, Any] = {"attribute": found.primary, "count": Identifier(COUNT)}
        engine.create(tables.values, "release/count_values", **holes, **columns)
        return
    engine.create(tables.values, "release/order_values", secrets=found.secrets, **holes)
    engine.create(
        tables.marginals,
        "release/list_marginals",
        secrets=found.secrets,
        shown=shown,
        before=before.marginals if before else None,
    )


@dataclass(frozen=True)
class Expected:
    """What the tables must add up to: rows of people, places whose row is gone, and groups that have such places."""

    people: int
    counterfeits: int
    short_groups: int


def audit_tables(engine: Engine, tables: Tables, policy: Policy, expected: Expected) -> list[Audit]:
    """The audits of the tables as they stand, one a sensitive attribute; raises AuditError if one fails."""
    pair = Pair(tables.values, GROUP_ID, tables.count)
    subject = Subject(tables.people, [], pair=pair)
    audits = [
        audit_table(engine, subject, name, [spec.resolve(None, Attribute(name)) for spec in _required(policy, name)])
        for name in policy.sensitive
    ]
    require_good(audits)
    people = int(engine.scalar("input/count_rows", rows=tables.people))
    if people != expected.people:
        raise AuditError(f"{people:,} rows were written in place of the {expected.people:,} to be published")
    for audit in audits:
        if (audit.rows, audit.unmatched_groups) != (people + expected.counterfeits, expected.short_groups):
            raise AuditError(f"{audit.sensitive}: the two tables do not have the same rows in each group")
    _require_same_totals(engine, tables, list(policy.sensitive))
    return audits


def _required(policy: Policy, name: str) -> list[RequirementSpec]:
    """No value in more than 1/l of a group; and l values, where NULL is none."""
    l = policy.sensitive[name].l  # noqa: E741
    names = ["frequency"] if policy.nulls_sensitive == "value" else ["frequency", "distinct"]
    return [RequirementSpec(requirement, l) for requirement in names]


def _require_same_totals(engine: Engine, tables: Tables, names: Sequence[str]) -> None:
    """Raise AuditError if combinations tell of values that the groups do not have, or the other way round."""
    for name in names if tables.marginals else []:
        holes = {"one": tables.values, "other": tables.marginals}
        if engine.scalar("release/count_unlike", column=Identifier(name), **holes):
            raise AuditError(f"{name}: groups and combinations do not have the same values")


def prefix_of(engine: Engine, policy: Policy) -> Relation:
    """The prefix of the policy's tables."""
    return catalog.qualify(engine, policy.target.prefix or "", "target.prefix")


def name_of(prefix: Relation) -> str:
    """What a series of releases is called."""
    return str(prefix)


def _refused(what: str, hint: str) -> PolicyError:
    return PolicyError([Problem("target.prefix", what, hint)])
