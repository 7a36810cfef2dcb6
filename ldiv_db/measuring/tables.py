"""What a release of several tables lost: each table by itself, and counts over columns of two that are joined.

Rows of a table are joined to those that they belong to, and to the table with one row a person: in the source by its
keys, in the release by the numbers in their place. The joined rows are then measured as one table is, but for the
values of a column, which are those of its whole table: labels are made of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ldiv_db.database.context import hearing_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refuse
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.requests import number_problems
from ldiv_db.database.stages import timed, work_of
from ldiv_db.display import Shown
from ldiv_db.measuring.measure import COMPARING, Besides, Measurement, MeasureRequest, measure_table
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.published import open_each
from ldiv_db.policy.reading import said_of_one_table
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.policy.resolve import Described, describe
from ldiv_db.policy.schema import members_of
from ldiv_db.policy.tables import PolicyTable, named_in, numbers_as
from ldiv_db.recoding.axes import scan
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.links import LinkedTable, keyed_tables
from ldiv_db.recoding.loss import CountErrors, TableLoss, loss_of_tables, nothing_lost
from ldiv_db.recoding.snapshot import CopiedColumns

Rows = Mapping[str, Table]


@dataclass(frozen=True)
class JoinedCounts:
    """How far counts over a column of a table and one of its parent's, or its person's, are off; None without rows."""

    parent: str
    child: str
    rows_in: int
    rows_published: int
    counts: CountErrors | None

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "counts": self.counts and self.counts.as_dict()}


@dataclass(frozen=True, repr=False)
class TablesMeasurement(Shown):
    """The loss of each table of a release against its source, and what counts over two tables lost.

    `tables` are the measurements of those with quasi-identifiers, `losses` what each of all lost.
    """

    published: str
    source: str
    tables: Mapping[str, Measurement]
    losses: tuple[TableLoss, ...]
    joins: tuple[JoinedCounts, ...]

    def as_dict(self) -> dict[str, Any]:
        """The measurement as JSON has it: the loss of all cells, each table's measurement, and the joins."""
        whole = loss_of_tables(self.losses, [])
        return {
            "published": self.published,
            "source": self.source,
            "rows_in": sum(one.rows_in for one in self.losses),
            "rows_published": whole.rows_published,
            "rows_suppressed": whole.rows_suppressed,
            "lm_mean": whole.lm_mean,
            "ncp_mean": whole.ncp_mean,
            "tables": [one.as_dict() for one in self.losses],
            "measured": {name: one.as_dict() for name, one in self.tables.items()},
            "joins": [one.as_dict() for one in self.joins],
        }


def measure_tables(engine: Engine, policy: Policy, wanted: MeasureRequest, spreads: bool = False) -> TablesMeasurement:
    """What all tables of a policy lost; raises PolicyError as `measure_table`, with the table that it is about."""
    refuse([*said_of_one_table(wanted), *number_problems(wanted)])
    folder, members, problems = Path(wanted.folder), members_of(policy), Problems()
    with problems.collected():
        sources = open_each(engine, policy, folder, "source", members)
    with problems.collected():
        published = open_each(engine, policy, folder, "target", members)
    problems.refuse()
    linked = [] if policy.is_apart else list(_pairs(policy.tables, members))
    work = {name: work_of(engine, rows) for name, rows in published.items() if members[name].quasi_identifiers}
    work |= {_pair(*pair): work_of(engine, published[pair[1]]) for pair in linked}
    wanted.heard.on_expected([timed(COMPARING, *own).of(name) for name, own in work.items()])
    measured, losses = dict[str, Measurement](), list[TableLoss]()
    known, values = dict[str, Described](), dict[Column, Axis]()
    for name, member in members.items():
        with problems.collected(f"tables.{name}"):
            known[name] = described = describe(engine, member, sources[name], folder)
            if not member.quasi_identifiers:
                lost = nothing_lost(engine.count(sources[name]), engine.count(published[name]))
                losses.append(TableLoss(name, lost, 0))
                continue
            copied, axes = scan(engine, described.source.bare(), wanted.show_values, counted=True)
            values |= {(name, axis.name): axis for axis in axes}
            besides = Besides(True, spreads, (), (copied, axes))
            asked = replace(wanted, listener=hearing_of(name, wanted.heard))
            told = measure_table(engine, published[name], described, asked, besides)
            table = policy.tables[name]
            measured[name] = replace(told, published=str(table.target), source=str(table.source))
            weight = sum(qi.weight for qi in described.source.quasi_identifiers)
            losses.append(TableLoss(name, told.loss, weight))
    problems.refuse()
    read = {name: described.source.relation for name, described in known.items()}
    opened = {name: LinkedTable.opened(engine, name, policy.tables[name], rows) for name, rows in read.items()}
    keyed = {} if policy.is_apart else {name: one.rows for name, one in keyed_tables(engine, opened).items()}
    joins = _Joins(engine, policy.tables, wanted, keyed, published, known, values)
    found = (joins.measure(parent, child) for parent, child in linked)
    counted = tuple(one for one in found if one)
    named = " & ".join(str(policy.tables[name].source) for name in members)
    return TablesMeasurement(policy.places, named, measured, tuple(losses), counted)


def _pair(parent: str, child: str) -> str:
    """What two tables that are joined are called."""
    return f"{parent} & {child}"


def _pairs(tables: Mapping[str, PolicyTable], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each table after the one that its rows belong to, and after that with one row a person."""
    register = next((name for name in names if tables[name].person and not tables[name].order), None)
    for name in names:
        if tables[name].above:
            yield tables[name].above, name
        if register not in (None, name, tables[name].above):
            yield str(register), name


# -- joins ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """A table on the way of a join, whose `key` the `owner` column of the one before has."""

    number: int
    rows: Table
    owner: Identifier
    key: Identifier

    alias = NamedAfter("t{0.number}")


#: A column, after its table.
Column = tuple[str, str]


@dataclass(frozen=True)
class _Joins:
    """The two sides of a measurement, of which tables are joined.

    `known` is what the columns of each source are, `values` which values those of whole tables have.
    """

    engine: Engine
    tables: Mapping[str, PolicyTable]
    wanted: MeasureRequest
    sources: Rows
    published: Rows
    known: Mapping[str, Described]
    values: Mapping[Column, Axis]

    def measure(self, parent: str, child: str) -> JoinedCounts | None:
        """The counts over a column of the parent and one of the child; None where one has no column to count by."""
        keys, sensitive = _sides(parent, child, self.tables)
        if not keys:
            return None
        joined = self._join(parent, child, self.sources, [*keys, *sensitive])
        described = self._described(keys, sensitive, joined)
        copied = CopiedColumns(self.engine, described.source, counted=True).take()
        axes = [
            replace(self.values[key], column=Identifier(named_in(*key)), code=Identifier(f"q{number}"))
            for number, key in enumerate(keys, 1)
        ]
        shown = [(table, each) for table, c in keys for each in self.known[table].released.columns_of(c)]
        release = self._join(parent, child, self.published, [*shown, *sensitive])
        told = hearing_of(_pair(parent, child), self.wanted.heard)
        wanted = replace(self.wanted, kl=False, queries=0, listener=told)
        besides = Besides(counts=True, scanned=(copied, axes))
        found = measure_table(self.engine, release, described, wanted, besides)
        return JoinedCounts(parent, child, found.rows_in, found.loss.rows_published, found.loss.counts)

    def _described(self, keys: Sequence[Column], sensitive: Sequence[Column], joined: Relation) -> Described:
        """A join of the sources, of columns that are what they are in their whole tables."""
        first, sources = self.known[keys[0][0]], {name: one.source for name, one in self.known.items()}
        own = {(name, qi.name): qi for name, source in sources.items() for qi in source.quasi_identifiers}
        told = {(name, column.name): column for name, source in sources.items() for column in source.sensitive}
        values = tuple(replace(told[column], name=named_in(*column)) for column in sensitive)
        source = replace(
            first.source,
            relation=joined,
            quasi_identifiers=tuple(replace(own[k], column=replace(own[k].column, name=named_in(*k))) for k in keys),
            sensitive=values,
            same={named_in(t, c): sources[t].same[c] for t, c in sensitive if c in sources[t].same},
        )
        forms = {named_in(table, c): self.known[table].released.forms[c] for table, c in keys}
        released = ReleaseColumns(forms, tuple(column.name for column in values))
        return replace(first, source=source.bare(), released=released)

    def _join(self, parent: str, child: str, rows: Rows, columns: Sequence[Column]) -> Relation:
        """The rows of the child with those of the parent, each column named after its table."""
        way = [child]
        while way[-1] != parent:  # up to people, and from them to the table with one row of each
            way.append(self.tables[way[-1]].above or parent)
        steps, shown_as = dict[str, _Step](), numbers_as(self.tables) if rows is self.published else {}
        for number, name in enumerate(way, 1):
            table = self.tables[name]
            linked = number > 1 and self.tables[way[number - 2]].above == name
            key = (table.own_key if linked else table.person) or table.owner
            own = (Identifier(shown_as.get((name, column), column)) for column in (table.owner, key))
            steps[name] = _Step(number, rows[name], *own)
        shown = [
            {"table": steps[table].alias, "column": Identifier(column), "alias": Identifier(named_in(table, column))}
            for table, column in columns
        ]
        return self.engine.view("joined", "measuring/join_tables", steps=list(steps.values()), columns=shown)


def _sides(parent: str, child: str, tables: Mapping[str, PolicyTable]) -> tuple[list[Column], list[Column]]:
    """Quasi-identifiers, and sensitive columns of the other table, of which counts are over one each.

    Where neither table has such a column for the other, quasi-identifiers of both in turn; none if one has none.
    """
    above, below = ([(name, column) for column in tables[name].quasi_identifiers] for name in (parent, child))
    for keys, other in ((above, child), (below, parent)):
        if keys and tables[other].sensitive:
            return keys, [(other, column) for column in tables[other].sensitive]
    return list(chain.from_iterable(zip(above, below, strict=False))), []
