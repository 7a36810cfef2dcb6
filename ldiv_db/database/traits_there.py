"""What tells databases apart, a block of `traits_there.toml` each: drivers, and how tables are replaced.

The blocks say as well on what our statements were executed, and what ends the history of a table: runs and pages repeat
it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldiv_db.database.errors import DatabaseError, refused

#: What keeps readers of a table from rows: a policy has to say that a release may be without it.
GUARDS = ("row policies",)


@dataclass(frozen=True, kw_only=True)
class Transactions:
    """The words of a transaction, and of what keeps others off a table meanwhile."""

    #: What begins a transaction where a driver does not; what is set for it alone.
    begin: str = "BEGIN"
    settings: tuple[str, ...] = ()
    #: The SELECT of what is set besides, as the session lacks it; `{run}` says which run it is.
    lacking: str = ""
    #: What keeps other writers off a table; whether one of two transactions that publish to it waits or fails.
    lock: str = ""
    holds_off: bool = False
    #: What is set for a transaction once the table is locked, by a SELECT, which begins the moment that it reads.
    locked: str = ""


@dataclass(frozen=True, kw_only=True)
class Replacing:
    """How a table is made and replaced, and what is lost beside its rows."""

    #: What ends the history of a `{table}`, where whoever reads it finds the release that was replaced.
    history: str = ""
    #: Whether a table that was made can be taken back, so that a release is one transaction.
    takes_back: bool = False
    #: Whether a table is replaced by the rows of a SELECT in one statement.
    replaces: bool = False
    #: What gives a `{table}` the `{rows}` of a SELECT, which has its `{columns}`, in place of its own; the table stays,
    #: with all that it has. One statement, or those of a transaction; nothing where others would see half of it.
    overwrite: tuple[str, ...] = ()
    #: The SELECT of what else a `{table}` has, which is lost where it is made anew; `{name}` is its name in `{here}`.
    beside: str = "SELECT 'any grants, comments and partitions'"
    #: The SELECTs of what has to go before a `{table}` can, and of the statements that withdraw what the privileges of
    #: new tables would give to who had no such right on it; nothing where neither is known.
    dependent: str = ""
    withdrawn: str = ""
    #: What makes a `{table}` its owner's alone, whatever the default privileges grant on every table that is made.
    withhold: str = ""
    #: What stands between a new table's name, or its columns, and AS.
    storage: str = ""
    #: What changes rows.
    update: str = "UPDATE {table} SET {values} WHERE {where}"
    #: What has a table counted, to plan with it.
    analyze: str = ""


@dataclass(frozen=True, kw_only=True)
class Schemas:
    """Where tables are looked up, and how schemas are made."""

    #: The SELECTs of the names of tables in a schema, of the schema that names are looked up in, and of all schemas.
    tables: str = "SELECT table_name FROM {catalog}information_schema.tables WHERE table_schema = {here}"
    here: str = "CURRENT_SCHEMA()"
    schemata: str = "SELECT schema_name FROM information_schema.schemata"
    #: What an error says of a schema that is not there, where its tables are listed within it, and schemas nowhere.
    no_schema: str = ""
    #: What makes a schema; nothing where there are none. What drops one that is empty. What goes back to one, where
    #: names are looked up in the last.
    schema: str = "CREATE SCHEMA IF NOT EXISTS {}"
    no_more_schema: str = "DROP SCHEMA IF EXISTS {}"
    go_back: str = ""


@dataclass(frozen=True, kw_only=True)
class ComparedRows:
    """How equal rows are counted, and how it is known that rows are still the same."""

    #: How a row is repeated as a count says: by a function that gives `rows`, or a `list`, of rows in order.
    repeats: str = ""
    #: A number that rows make by their values in the columns `{0}`, whatever their order; nothing where none is known.
    hashed: str = ""
    #: What a table is beside its rows, and when it is asked; nothing where a change of rows would not be found by both.
    stamp: str = ""
    #: The SELECT that says of a table whose stamp is `{asked}` whether it has the same rows, which were `{rows}`.
    unchanged: str = ""
    #: The SELECT of the columns of a table in which equal values are written alike.
    exact: str = ""
    #: Whether it joins two tables by IS NOT DISTINCT FROM pair by pair, or not at all, where lists or texts hash.
    hashes: bool = False
    #: The collation that compares text by bytes; nothing where statements compare it as its column says.
    by_bytes: str = ""


@dataclass(frozen=True, kw_only=True)
class WrittenValues:
    """How values and their types are written and sent."""

    #: How a driver that does not say marks a value that is bound by its place.
    mark: str = "?"
    #: How long a statement may be that has rows as literals; 0 where values are bound.
    written_down: int = 0
    #: The types whose values a driver is handed as text, beside times.
    texts: tuple[str, ...] = ()
    #: Its type for whole numbers beyond 64 bits, and for others of ours that it has by another name.
    huge: str = "DECIMAL(38, 0)"
    types: Mapping[str, str] = field(default_factory=dict)
    #: The text that ends a whole statement.
    ending: str = ""


@dataclass(frozen=True, kw_only=True)
class TraitsThere(Transactions, Replacing, Schemas, ComparedRows, WrittenValues):
    """The words of a dialect; those of most are the defaults.

    `{here}` is a schema's name as a value, `{within}` the name before a point.
    """

    #: What it is called.
    name: str
    #: What our statements were executed on; nothing where that never was the service itself, but `tried` alone.
    executed: str = ""
    tried: str = "parsed and resolved, "
    #: The SELECT of its version; nothing where it tells none.
    version: str = "SELECT version()"
    #: The modules that its connections come from, and what drivers of ADBC call its vendor.
    modules: tuple[str, ...] = ()
    vendor: str = ""

    @property
    def caution(self) -> str:
        """What a run says where we never executed its statements on the service itself."""
        return "" if self.executed else f"{self.name}: {self.tried}never executed by us"


def told_of_history(table: str, ends: str) -> str:
    """A note on the release that a new one replaces in a table whose history a statement `ends`; '' where it is ''."""
    said = f"the history of {table} shows whoever may read it the replaced release beside the new one"
    return f"{said}; this ends it: {ends}" if ends else ""


def told_of_loss(
    lost: Sequence[str], table: str, why: str, dependent: Sequence[str] = (), lose: Sequence[str] = GUARDS
) -> str:
    """A note on what a table loses beside its rows where it is made anew; '' if that is nothing.

    Raises DatabaseError if others depend on it, PolicyError if it guards rows and the policy does not `lose` that.
    """
    if dependent:
        what = "other objects of the database depend on the table: drop these first"
        raise DatabaseError(f"{table} cannot be made anew, as {why}: {what}: {', '.join(dependent)}")
    for guard in GUARDS:
        if f"the {guard}" in lost and guard not in lose:
            what = f"the {guard} of {table} would be lost, as {why}: readers would see every row that they may select"
            hint = f"name another table; or drop them, or have `lose: [{guard}]` in the target, and make them again"
            raise refused("target", what, hint)
    named = " and ".join(filter(None, [", ".join(lost[:-1]), *lost[-1:]]))
    return f"{named} of {table} are not kept, as {why}" if lost else ""


def _read(blocks: Mapping[str, Mapping[str, Any]]) -> dict[str, TraitsThere]:
    """The traits by the names of their blocks."""
    lists_as_tuples: dict[str, dict[str, Any]] = {
        name: {key: tuple(given) if isinstance(given, list) else given for key, given in block.items()}
        for name, block in blocks.items()
    }
    return {name: TraitsThere(**block) for name, block in lists_as_tuples.items()}


_BLOCKS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TRAITS, FORMATS = _read(_BLOCKS["dialects"]), _read(_BLOCKS["formats"])
#: All of them compare text as it is, so that `a` is not `A`.
DIALECTS = tuple(TRAITS)
