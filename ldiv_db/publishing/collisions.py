"""Targets that a run reads from: what is replaced or appended to must not be what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ldiv_db.database import catalog, lineage
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.policy.document import Policy


def refuse_read_target(engine: Engine, policy: Policy, folder: Path, source: Relation | FileRelation) -> None:
    """Raise PolicyError if the policy's target is there and is read: by its source, as a taxonomy, as the policy.

    Whatever leads to it: views, macros, patterns, links, attached databases, other spellings. `folder` is where
    relative files lie.
    """
    target = policy.target
    if target.file is not None:
        _refuse_file(engine, policy, folder, source)
    elif target.table is not None:
        refuse_read_tables(engine, source, [catalog.qualify(engine, target.table, "target.table")])


def refuse_read_tables(engine: Engine, source: Relation | FileRelation, tables: Iterable[Relation]) -> None:
    """Raise PolicyError if one of the tables is there and is read by the source."""
    there = [table for table in tables if catalog.table_exists(engine, table)]
    if isinstance(source, FileRelation) or not there:
        return
    for table in there:
        if lineage.reads_table(engine, source, table):
            raise _refused("target", f"{table} is read by the source", "name another table")


def _refuse_file(engine: Engine, policy: Policy, folder: Path, source: Relation | FileRelation) -> None:
    """Raise PolicyError if the file of the target is there and is read."""
    name = policy.target.file or ""
    path = folder / name
    if not path.exists():
        return
    for what, other in _read_beside(policy, folder):
        if lineage.same_file(path, other):
            raise _refused("target.file", f"{name} is {what}", "name another file")
    reads = lineage.reads_file(engine, source, path) if isinstance(source, Relation) else False
    if reads is None:
        what = f"{name} is there, and the source reads files of which it cannot be told whether it is one"
        raise _refused("target.file", what, "name a new file")
    if reads:
        raise _refused("target.file", f"{name} is read by the source", "name another file")


def _read_beside(policy: Policy, folder: Path) -> Iterator[tuple[str, Path]]:
    """The files that a run reads beside its source, each with what it is."""
    if policy.path is not None:
        yield "the policy itself", policy.path
    taxonomies = {name: part.taxonomy for name, part in policy.quasi_identifiers.items()}
    taxonomies |= {name: part.taxonomy for name, part in policy.sensitive.items()}
    for column, taxonomy in taxonomies.items():
        if taxonomy is not None and taxonomy.file is not None:
            yield f"the taxonomy of {column}", folder / taxonomy.file


def _refused(key: str, what: str, hint: str) -> PolicyError:
    return PolicyError([Problem(key, what, hint)])
