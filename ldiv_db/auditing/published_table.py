"""A published table of several, as an audit reads it: its rows, its links and its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Reading
from ldiv_db.database.names import Identifier, NamedAfter, Value
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.policy.tables import PolicyTable, named_in, numbers_as
from ldiv_db.recoding.labels import LabelAxis


@dataclass(frozen=True)
class PublishedTable:
    """A published table: its `owner` column has the person, or the key of a row of the table `above`.

    `sensitive` are its columns by what an audit calls them, with how their values are read as one; `axes` are its
    quasi-identifiers, each with the ways in which its labels may be read.
    """

    name: str
    number: int
    rows: Table
    owner: Identifier
    above: str
    key: Identifier | None
    position: Identifier | None
    labels: Sequence[Identifier]
    sensitive: Mapping[str, Identifier]
    same: Mapping[str, Reading] = field(default_factory=dict)
    axes: Sequence[Sequence[LabelAxis]] = ()

    alias = NamedAfter("t{0.number}")

    @classmethod
    def of(
        cls,
        name: str,
        number: int,
        tables: Mapping[str, PolicyTable],
        released: ReleaseColumns,
        rows: Table,
        axes: Sequence[Sequence[LabelAxis]],
    ) -> PublishedTable:
        """The table of that name of a policy with these, published with such columns."""
        table = tables[name]
        numbers = numbers_as(tables)
        key = numbers.get((name, table.own_key or ""))
        return cls(
            name,
            number,
            rows,
            owner=Identifier(numbers[name, table.owner]),
            above=table.above,
            key=Identifier(key) if key else None,
            position=Identifier(released.position) if released.position else None,
            labels=[Identifier(label) for label in released.identifying],
            sensitive={named_in(name, column): Identifier(column) for column in table.sensitive},
            same={named_in(name, column): setting.reading for column, setting in table.sensitive.items()},
            axes=axes,
        )

    def by_nights(self, engine: Engine, ends: Sequence[int]) -> PublishedTable:
        """The table whose rows show their night as well: who saw all nights tells them apart.

        `ends` are the last numbers of all nights but the newest.
        """
        night, known = Identifier("ldiv_night"), {"published": self.rows, "owner": self.owner, "ends": list(ends)}
        rows = engine.view("nights", "auditing/tables/number_nights", night=night, **known)
        return replace(self, rows=rows, labels=[*self.labels, night])

    @property
    def called(self) -> Value:
        """Its name, as a statement takes it."""
        return Value(self.name)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Its columns, each with the key that names it."""
        links = {"parent" if self.above else "person": self.owner, "key": self.key, "order": self.position}
        named = [("quasi_identifiers", self.labels), ("sensitive", self.sensitive.values())]
        return [
            *((key, column.name) for key, column in links.items() if column),
            *((key, column.name) for key, columns in named for column in columns),
        ]
