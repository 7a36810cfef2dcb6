"""Fingerprints of what runs published: of the rows that a source had, and of the policy.

A run with the fingerprint of an earlier one publishes the same again. It says nothing to anybody who lacks its key: it
stands with that key among the secrets of the ledger, where the seed is. Whoever has the key can only try if a whole
source is the one that they think of, as with the seed.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from ldiv_db.database.catalog import Column, columns_of, table_exists
from ldiv_db.database.connections import database_version
from ldiv_db.database.counted import RepeatedRows
from ldiv_db.database.data_files import Table, Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.targets import ONLY
from ldiv_db.recoding.snapshot import CopiedColumns, read_columns

#: The parts of a policy that bear on no cell of the release: it is the same wherever it comes from and goes to. Of a
#: requirement pydantic knows nothing, and a seed that was drawn is not the policy's.
_BESIDE = {
    "source",
    "databases",
    "target",
    "expand",
    "identifiers",
    "require",
    "seed",
    "over_time",
    "preserve",
    "context",
}


#: A column that a run read: its name in lower case, whether its NULLs leave rows out, and whether it is `kept` in a
#: warehouse, where a hash of the whole rows stands for it.
ReadColumn = tuple[Any, ...]


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of a source's rows, and of the policy with all that it rests on, keyed with `key`.

    `rows` is of the `columns` that the policy reads, in the order of their names; `policy` is None where the release
    rests on other tables as well, so that it is never known to be equal.
    """

    key: str = field(repr=False)
    rows: str = field(repr=False)
    policy: str | None = field(repr=False)
    columns: tuple[ReadColumn, ...] = ()
    #: Those of several tables that are one release, by name, each with what the ledger calls its source.
    tables: Mapping[str, tuple[str, Fingerprint]] = field(default_factory=dict, repr=False)

    @classmethod
    def of_tables(cls, key: str, tables: Mapping[str, tuple[str, Fingerprint]], said: Any) -> Fingerprint:
        """That of a release of these tables, of which the policy says more than of each."""
        rows, policies = ({n: getattr(own, of) for n, (_, own) in tables.items()} for of in ("rows", "policy"))
        return cls(key, keyed(key, sorted(rows.items())), keyed(key, (said, policies)), tables=tables)

    @property
    def read(self) -> str | None:
        """The columns that were read, as the ledger has them; of several tables with the source and hash of each."""
        of_tables = {name: (source, own.rows, own.columns) for name, (source, own) in self.tables.items()}
        return json.dumps(of_tables or self.columns) if of_tables or self.columns else None

    @property
    def hashes(self) -> list[str]:
        """The hashes of its rows, of several tables together and of each."""
        return list(dict.fromkeys([self.rows, *(own.rows for _, own in self.tables.values())]))

    def is_of(self, run: Mapping[str, Any]) -> bool:
        """True if a run in the ledger read the rows of the source, or of one of several that both read."""
        before = {run["rows_hash"], *(rows for _, rows, _ in read_by(run))}
        return run["hash_key"] == self.key and not before.isdisjoint(self.hashes)

    @property
    def secret(self) -> str:
        """Of one whose key is a seed: a key that no release of other rows, another policy or another version has."""
        return keyed(self.key, (self.rows, self.policy, versions()))


class Summaries:
    """What is read of the rows of tables for their hashes: once, by whatever keys they are hashed."""

    def __init__(self) -> None:
        self._known: dict[tuple[Table, tuple[str, ...]], Mapping[str, Any]] = {}

    def of(self, engine: Engine, rows: Table, columns: Sequence[Identifier]) -> Mapping[str, Any]:
        """How many rows there are, and the sum of their hashes."""
        asked = rows, tuple(column.name for column in columns)
        if asked not in self._known:
            self._known[asked] = summary_of(engine, rows, columns)
        return self._known[asked]


def read_by(run: Mapping[str, Any]) -> list[tuple[str, str, tuple[ReadColumn, ...]]]:
    """(source, the hash of its rows, the columns) of all that a run in the ledger read; empty if that is not noted."""
    found = json.loads(run["columns_read"] or "[]")
    listed = found.values() if isinstance(found, dict) else [(run["source"], run["rows_hash"], found)] if found else []
    return [(source, rows, tuple(map(tuple, columns))) for source, rows, columns in listed]


def take_fingerprint(
    engine: Engine,
    resolved: Resolved,
    rows: Table,
    weight: Identifier | None,
    key: str,
) -> Fingerprint:
    """The fingerprint of a copy of the source, whose rows may lie in a warehouse, and of its policy.

    `weight` is the copy's column of counts, if equal rows are one: it is the same as if they were not.
    """
    read = sorted({column.column.name.lower(): column.alias for column in read_columns(resolved.source)}.items())
    summary = summary_of(engine, rows, [column for _, column in read], weight)
    return fingerprint_by(engine, resolved, [name for name, _ in read], summary, key)


def fingerprint_by(
    engine: Engine, resolved: Resolved, read: Sequence[str], summary: Mapping[str, Any], key: str
) -> Fingerprint:
    """As `take_fingerprint`, of rows of which a summary was taken; `read` are the names of columns in lower case."""
    source = resolved.source
    kept = set(source.place.hashed if source.place else ())
    required = {column.column.name.lower() for column in CopiedColumns(engine, source).where_nulls("suppress")}
    rests_on_others = any(spec.counts_people for spec in resolved.policy.require)
    return Fingerprint(
        key,
        keyed(key, summary),
        None if rests_on_others else _hash_policy(resolved, key),
        tuple((name, name in required, *(["kept"] if name in kept else [])) for name in read),
    )


def key_of_release(engine: Engine, resolved: Resolved) -> str:
    """A secret key of the seed that no release of other rows, or under another policy, has as well."""
    source, seed = resolved.source, str(resolved.source.seed)
    read = sorted({column.column.name.lower(): column.column for column in read_columns(source)}.items())
    rows = hash_rows(engine, source.relation, [column for _, column in read], None, seed)
    return Fingerprint(seed, rows, _hash_policy(resolved, seed)).secret


def _hash_policy(resolved: Resolved, key: str) -> str:
    """The keyed hash of what a release rests on beside rows, seed and versions, by whatever way the rows are read.

    Where they are counted in another place the column of counts is ours.
    """
    policy, source = resolved.policy, resolved.source
    counts, written = source.weight if source.place else None, {"seed"} & policy.model_fields_set
    said = [
        policy.model_dump(exclude=_BESIDE - written) | ({"weight": None} if counts else {}),
        policy.require,
        [(_kind(found.column), found.hierarchy) for found in source.quasi_identifiers],
        [attribute.taxonomy for attribute in resolved.required.attributes.values()],
        sorted(_kind(column) for column in source.types.values() if column != counts),
        resolved.typed,
        resolved.target.format,
    ]
    return keyed(key, said)


def _kind(column: Column) -> tuple[str, str]:
    """The name and kind of a column: drivers tell numbers of other widths, and read what is no number as text."""
    kind = column.kind if column.is_number or column.is_time else column.published
    return column.name, "VARCHAR" if kind in ("JSON", "UUID") else kind


def hash_rows(
    engine: Engine,
    rows: Table,
    columns: Sequence[Identifier],
    weight: Identifier | None,
    key: str,
    required: Sequence[Identifier] = (),
) -> str:
    """The keyed hash of the rows' values in these columns, whatever the order of the rows.

    Rows with a NULL in a column that is `required` are left out.
    """
    return keyed(key, summary_of(engine, rows, columns, weight, required))


def summary_of(
    engine: Engine,
    rows: Table,
    columns: Sequence[Identifier],
    weight: Identifier | None = None,
    required: Sequence[Identifier] = (),
) -> dict[str, Any]:
    """How many rows there are, and the sum of the hashes of their values in these columns."""
    params = {"rows": rows, "columns": columns, "weight": weight, "required": required}
    return engine.record("publishing/summarise_content", **params)


def hash_release(engine: Engine, where: Tables, fingerprint: Fingerprint | None, queries: Sequence[str]) -> str | None:
    """The keyed hash of a release that can be read there, of its `queries`, and of nothing else; None if none is."""
    if fingerprint is None:
        return None
    found = {name: _hash_table(engine, table, fingerprint, queries) for name, table in where.items()}
    if None in found.values():
        return None
    return found[ONLY] if ONLY in found else keyed(fingerprint.key, sorted(found.items()))


def _hash_table(engine: Engine, where: Table, fingerprint: Fingerprint, queries: Sequence[str]) -> str | None:
    if isinstance(where, Relation) and not table_exists(engine, where):
        return None
    rows, weight, kept = where, None, ""
    if isinstance(where, RepeatedRows):
        if where.kept is None:
            return None
        rows, weight, kept = where.counts, where.weight, where.kept
    columns = [column for column in columns_of(engine, rows) if weight is None or column.name != weight.name]
    names, types = [Identifier(column.name) for column in columns], [(column.name, column.type) for column in columns]
    content = hash_rows(engine, rows, names, weight, fingerprint.key)
    return keyed(fingerprint.key, (types, kept, content, queries))


def keyed(key: str, content: Any) -> str:
    """The hash of what is written down, by a key."""
    return hmac.new(key.encode(), repr(content).encode(), "sha256").hexdigest()


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"ldiv_db": version("ldiv-db"), "duckdb": database_version()}
