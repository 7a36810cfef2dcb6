"""Tables of a policy that publishes several in one release, and how their rows belong to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, StrictBool
from pydantic_core import PydanticCustomError

from ldiv_db.database.catalog import Column
from ldiv_db.policy.parts import PolicyPart
from ldiv_db.policy.release_columns import ReleaseColumns
from ldiv_db.policy.settings import Attributes, Individual, QuasiIdentifiers
from ldiv_db.policy.sources import GivenSource
from ldiv_db.policy.targets import GivenTarget

#: What stands between the columns of a key of several, in the name of that in which they stand together.
BETWEEN = ", "


def _one_column(value: Any) -> Any:
    if isinstance(value, list | tuple):
        raise PydanticCustomError("one_column", "takes one column: make one of several in a query as the source")
    return value


def _as_key(value: Any) -> str | list[str] | None:
    """The column or columns of a key as written; raises PydanticCustomError."""
    if value is None or isinstance(value, str):
        return value
    if not (isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value)):
        raise PydanticCustomError("key_columns", "takes a column, or several: [order_id, line_no]")
    if len({one.lower() for one in value}) < len(value):
        raise PydanticCustomError("key_columns", "names a column twice")
    return list(value)


#: One column or several, of which no two are the same.
GivenKey = Annotated[str | list[str] | None, PlainValidator(_as_key, json_schema_input_type=str | list[str] | None)]


class PolicyTable(PolicyPart):
    """One table of a release of several.

    Whose its rows are says the column `person`, or the table whose row each belongs to: `parent` is {column: table},
    the column has that table's `key`, or each of several columns a part of it. Rows that somebody has several of are
    published in their `order`, `aligned`: each with a label, or `together`: with one, and in no order if none is said.
    By default the eighth and later ones share labels. A `public` table belongs to nobody, and its `keep` columns are
    published as they are.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    source: GivenSource
    target: GivenTarget
    person: Annotated[str | None, BeforeValidator(_one_column)] = None
    parent: dict[str, str] = Field(default_factory=dict)
    public: StrictBool = False
    key: GivenKey = Field(
        default=None, description="the column that is one row's alone, or several that are it together"
    )
    orphans: Literal["refuse", "leave_out"] = Field(
        default="refuse", description="rows that belong to nobody: a NULL, or a key that no row has"
    )
    order: str | None = None
    rows: Literal["aligned", "together"] | None = Field(
        default=None,
        description="`aligned`: each in its order has a label; `together`: a person's, or parent's, have one",
    )
    quasi_identifiers: QuasiIdentifiers = Field(default_factory=dict)
    sensitive: Attributes = Field(default_factory=dict)
    identifiers: list[str] = Field(default_factory=list)
    keep: list[str] = Field(default_factory=list)

    @property
    def owner(self) -> str:
        """The column that says whose, or what row's, a row is; empty where they are nobody's."""
        return BETWEEN.join(self.owner_parts)

    @property
    def owner_parts(self) -> list[str]:
        """The columns of its source that say so."""
        return [self.person] if self.person else [*self.parent]

    @property
    def own_key(self) -> str | None:
        """The column that is one row's alone; of several the one in which they stand together."""
        return BETWEEN.join(self.key_parts) or None

    @property
    def key_parts(self) -> list[str]:
        """The columns of its source that are so together."""
        return [self.key] if isinstance(self.key, str) else self.key or []

    @property
    def above(self) -> str:
        """The table whose rows its own belong to; empty where they belong to people."""
        return next(iter(self.parent.values()), "")

    def by_default(self, individual: Individual, key: str | None) -> dict[str, Any]:
        """What is said of all people's rows, where it says nothing of its own; order and key of tables that list it."""
        if self.public:
            return {}
        own = {"key": key} if key and not self.key and self._lists(key, *self.identifiers) else {}
        if self.order or self.rows == "together":
            return own
        if individual.rows == "together":
            return own if self.rows else own | {"rows": "together"}
        order, others = individual.order, (*self.quasi_identifiers, *self.sensitive, *self.keep)
        return own | ({"order": order} if order and self._lists(order, *self.identifiers, *others) else {})

    def _lists(self, column: str, *listed: str) -> bool:
        return column.lower() in map(str.lower, listed)

    @property
    def identity(self) -> str:
        """The column that says which row is which over time: its key, or of one row a person or parent whose it is."""
        return self.own_key or self.owner

    def links(self, is_parent: bool = True) -> list[str]:
        """The columns of keys: whose a row is, or the row that it belongs to, and its own, with those of their parts.

        A key of several columns is one of its own where the rows of other tables belong to its.
        """
        keys = [*self.key_parts, *([self.own_key] if self.own_key and is_parent else [])]
        return [name for name in dict.fromkeys((*self.owner_parts, self.owner, *keys)) if name]


def named_in(table: str, column: str) -> str:
    """The name of a column of one of several tables."""
    return f"{table}.{column}"


def owner_parts(table: PolicyTable, above: PolicyTable | None) -> list[str]:
    """The columns that say whose its rows are as they stand in the key above: by their names if these are the same."""
    theirs = above.key_parts if above else []
    named = {name.lower(): name for name in table.owner_parts}
    same = named.keys() == {name.lower() for name in theirs}
    return [named[name.lower()] for name in theirs] if same else table.owner_parts


def as_one_name(column: str) -> str:
    """What the numbers of a key are published as, if nothing else is: the names of its columns in one."""
    return column.replace(BETWEEN, "_")


def numbers_as(tables: Mapping[str, PolicyTable]) -> dict[tuple[str, str], str]:
    """What each column is published as that has numbers in place of keys, by its table and name.

    No name has numbers of two things, or of one and something else: who joins by it would take one for the other.
    """
    parents = {table.above for table in tables.values()}
    linked = {
        (name, column): of
        for name, table in tables.items()
        for column, of in ((table.owner, table.above), (table.own_key if name in parents else None, name))
        if column
    }
    kept = {(name, column) for name, table in tables.items() if not table.public for column in table.keep}
    taken: dict[str, str | None] = {column.lower(): None for _, column in kept - linked.keys()}
    found = dict[tuple[str, str], str]()
    for (name, column), of in sorted(linked.items(), key=lambda one: bool(one[1])):  # those of people keep theirs
        table = tables[name]
        in_order = BETWEEN.join(owner_parts(table, tables.get(of or ""))) if column == table.owner else column
        shown = as_one_name(in_order)
        own = {other.lower() for other in (*table.quasi_identifiers, *table.sensitive, *table.keep) if other != column}
        while shown.lower() in own or taken.setdefault(shown.lower(), of) != of:
            shown = f"{of or 'person'}_{shown}"
        found[name, column] = shown
    return {column: found[column] for column in linked}


def types_as(
    tables: Mapping[str, PolicyTable], name: str, released: ReleaseColumns, columns: Sequence[Column]
) -> dict[str, str]:
    """The type of every column of one table's release, with numbers in place of the keys of people and rows."""
    shown = {column: called for (table, column), called in numbers_as(tables).items() if table == name}
    types = released.types(columns)
    own = {shown.get(column, column): kind for column, kind in types.items() if column not in released.people}
    return own | dict.fromkeys([*shown.values(), *filter(None, [released.position])], "BIGINT")


def qualified(tables: Mapping[str, PolicyTable], part: str) -> dict[str, Any]:
    """What all tables have in that part, by the names of their columns after that of the table."""
    return {
        named_in(name, column): said for name, table in tables.items() for column, said in getattr(table, part).items()
    }
