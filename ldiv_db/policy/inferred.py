"""What a policy leaves open of its quasi-identifiers, inferred from their columns: how values generalise, and why.

A taxonomy of the column's name in the catalog comes first, if it has a leaf for each value. Otherwise the type decides:
numbers, dates and times become ranges, anything else is published as itself or as `*`. Nothing is guessed from what
values look like: that numbers are codes, or that the beginning of a text is a region, is for people to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import equal_problems, read_exactly
from ldiv_db.database.errors import Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.document import Policy, QuasiIdentifier
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True)
class Inferred:
    """How a quasi-identifier generalises of which the policy does not say it: what it might say, and why."""

    column: str
    settings: Mapping[str, Any]
    why: str

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it, keys as in the reference."""
        return {"column": self.column, "as": dict(self.settings), "why": self.why}


def infer(
    engine: Engine, policy: Policy, source: Relation | FileRelation, columns: Sequence[Column]
) -> tuple[Policy, tuple[Inferred, ...]]:
    """The policy with what it leaves open of its quasi-identifiers, and what that is.

    Those that the source lacks stay open, and so do all of a decomposition, which publishes them as they are.
    """
    types = {column.name.lower(): column for column in columns}
    open_keys = {} if policy.decomposes else {n: qi for n, qi in policy.quasi_identifiers.items() if qi.is_open}
    there = {name: types[name.lower()] for name in open_keys if name.lower() in types}
    named = taxonomies.stored(engine) if there else {}
    found = {
        name: _infer(engine, source, replace(column, name=name), name in named, open_keys[name])
        for name, column in there.items()
    }
    settled = policy.quasi_identifiers | {
        name: open_keys[name].settled(**inferred.settings) for name, inferred in found.items()
    }
    return policy.model_copy(update={"quasi_identifiers": settled}), tuple(found.values())


def inferred_problems(policy: Policy, found: Sequence[Inferred]) -> Iterator[Problem]:
    """What the settings of quasi-identifiers say that does not go with what was inferred."""
    for one in found:
        yield from policy.quasi_identifiers[one.column].problems(f"quasi_identifiers.{one.column}")


def covers(engine: Engine, taxonomy: Taxonomy, source: Relation | FileRelation, column: Column) -> bool:
    """Whether a taxonomy has a leaf for each value of the source's column; NULL needs none."""
    if taxonomy.by_range and not column.is_number:
        return False
    nodes = taxonomies.load(engine, taxonomy, "known")
    with read_exactly(engine, source) as read:
        dictionary = engine.materialise(
            "dictionary",
            "taxonomies/map_leaves",
            rows=read,
            nodes=nodes,
            column=Identifier(column.name),
            by_range=taxonomy.by_range,
            levels=[],
            null_code=Value(-1),
            weight=None,
        )
    missing = engine.rows("taxonomies/list_missing_values", dictionary=dictionary, show_values=False)
    engine.drop(dictionary, nodes)
    return not missing


def written(settings: Mapping[str, Any]) -> str:
    """Settings as a policy has them, on one line: `taxonomy: {flat: true}`."""
    text = yaml.safe_dump(dict(settings), default_flow_style=True, width=float("inf"), allow_unicode=True)
    return text.strip()[1:-1]


def _infer(
    engine: Engine, source: Relation | FileRelation, column: Column, named: bool, given: QuasiIdentifier
) -> Inferred:
    """How the values of a column generalise; `named` says that the catalog has a taxonomy of its name."""
    taxonomy = taxonomies.fetch(engine, column.name) if named and not equal_problems("", column) else None
    if taxonomy is not None and covers(engine, taxonomy, source, column):
        why = "the catalog has a taxonomy of that name, with a leaf for every value"
        return Inferred(column.name, {"taxonomy": column.name}, why)
    aside = "; the catalog's taxonomy of that name lacks values" if taxonomy is not None else ""
    if (column.is_number or column.is_time) and not given.refuses_ranges:
        return Inferred(column.name, {"numeric": True}, f"{column.shown}: ranges{aside}")
    return Inferred(column.name, {"taxonomy": {"flat": True}}, f"{column.shown}: itself, or *{aside}")
