"""The tables of a release, by the series' prefix and the release's number."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ldiv_db.database import catalog
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.series import COUNT, DECOMPOSITIONS, GROUP_ID
from ldiv_db.publishing import ledger
from ldiv_db.publishing.inference import Release
from ldiv_db.publishing.refusals import refused


@dataclass(frozen=True)
class ReleaseTables:
    """The tables of one release: of people, of sensitive values (perhaps the same), and perhaps of their combinations.

    `group` is the column that says which rows belong together, `count` that of counts in the table of sensitive values.
    """

    people: Relation
    values: Relation
    marginals: Relation | None = None
    group: str = GROUP_ID
    count: str | None = None

    @property
    def plain(self) -> ReleaseTables:
        """Those that every release has: without combinations."""
        return replace(self, marginals=None)

    @property
    def all(self) -> list[Relation]:
        listed = [self.people, self.values, *([self.marginals] if self.marginals else [])]
        return list(dict.fromkeys(listed))


def tables_of(prefix: Relation, algorithm: str, release: int) -> ReleaseTables:
    """The tables of a release: of `published.census` `published.census_1_qid` and so on, or `published.census_1`.

    Whether it has combinations is not said, only what their table is called.
    """

    def named(*suffix: str) -> Relation:
        return Relation((*prefix.parts[:-1], "_".join([prefix.name, str(release), *suffix])))

    if algorithm not in DECOMPOSITIONS:
        return ReleaseTables(named(), named(), group=CLASS_ID)
    people, values, *rest = (named(suffix) for suffix in DECOMPOSITIONS[algorithm])
    return ReleaseTables(people, values, rest[0] if rest else None, count=None if rest else COUNT)


@dataclass(frozen=True)
class Expected:
    """What tables must add up to: rows of people, places whose row is gone, and groups that have such places."""

    people: int
    counterfeits: int
    short_groups: int


def sql_name_of(table: Relation) -> str:
    """The table as people know it, whatever its database is attached as."""
    return ".".join(table.parts[-2:])


def require_earlier(engine: Engine, prefix: Relation, algorithm: str, last: int) -> None:
    """Raise PolicyError unless the sensitive tables of the releases before the last are there."""
    for number in range(1, last):
        table = tables_of(prefix, algorithm, number).values
        if not catalog.table_exists(engine, table):
            what = f"{sql_name_of(table)} of release {number} is gone"
            raise refused("target.prefix", what, "a release is compared with all earlier ones")


def require_tables(engine: Engine, tables: ReleaseTables) -> None:
    """Raise PolicyError unless the last release's tables are there."""
    gone = [table for table in tables.plain.all if not catalog.table_exists(engine, table)]
    if gone:
        raise refused(
            "target.prefix", f"{sql_name_of(gone[0])} of the last release is gone", "a release builds on the last one"
        )


def releases_of(engine: Engine, prefix: Relation, algorithm: str, last: int, series: str) -> list[Release]:
    """The releases of a series up to `last`, as they lie in the database of `prefix`."""
    members = ledger.table(engine, "release_member")
    listed = []
    for number in range(1, last + 1):
        tables = tables_of(prefix, algorithm, number)
        with_marginals = tables.marginals is not None and catalog.table_exists(engine, tables.marginals)
        listed.append(
            Release(
                name=f"release {number}",
                values=tables.values,
                group=(tables.group,),
                members=members,
                series=series,
                number=number,
                count=tables.count,
                combinations=tables.marginals if with_marginals else None,
            )
        )
    return listed
