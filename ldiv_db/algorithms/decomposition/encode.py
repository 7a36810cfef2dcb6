"""The sensitive attributes of a decomposition: their codes, with the leaf of each, and their l."""

from __future__ import annotations

from ldiv_db.algorithms.decomposition.grouping import Secret
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.taxonomies.taxonomy import NULL_LABEL, Taxonomy

_NODES = {"node": "INTEGER", "low": "INTEGER", "high": "INTEGER", "height": "INTEGER"}


def secrets_of(engine: Engine, resolved: Resolved, axes: tuple[SensitiveAxis, ...]) -> tuple[Secret, ...]:
    """The sensitive attributes of an encoded source, in the policy's order.

    Raises PolicyError for taxonomies that lack values, of all of them at once.
    """
    secrets, problems = [], Problems()
    for number, axis in enumerate(axes, 1):
        taxonomy = resolved.required.attributes[axis.column.name].taxonomy
        if taxonomy and resolved.source.nulls_sensitive == "value":
            taxonomy = taxonomy.with_null()
        secret = _secret(engine, resolved, number, axis, taxonomy)
        leafless = engine.count(secret.dictionary, Where("leaf", None))
        if leafless:
            origin = taxonomy.origin if taxonomy else ""
            what = f"taxonomy {origin} has no leaf for {count_phrase(leafless, 'value', 'values')} of the source"
            problems.add([Problem(f"sensitive.{secret.name}.taxonomy", what)])
        secrets.append(secret)
    problems.refuse()
    return tuple(secrets)


def _secret(engine: Engine, resolved: Resolved, number: int, axis: SensitiveAxis, taxonomy: Taxonomy | None) -> Secret:
    leaves, nodes, height = _tree(engine, taxonomy, axis)
    harmless = [(value,) for value in resolved.source.harmless.get(axis.column.name, ())]
    given = {"leaves": leaves, "harmless": engine.load("harmless", {"value": "VARCHAR"}, harmless)}
    dictionary = engine.materialise(
        f"leaves_of_{axis.code.name}", "decomposition/map_leaves", dictionary=axis.dictionary, **given
    )
    engine.drop(*(one for one in given.values() if one))
    known = vars(axis) | {"dictionary": dictionary, "number": number, "nodes": nodes, "height": height}
    return Secret(**known, l=resolved.limits[axis.column.name])


def _tree(
    engine: Engine, taxonomy: Taxonomy | None, axis: SensitiveAxis
) -> tuple[Relation | None, Relation | None, int]:
    """The leaves (label, leaf) and nodes of a taxonomy, and its height."""
    if taxonomy is None:
        return None, None, 1
    leaves = [(None if leaf.label == NULL_LABEL else leaf.label, leaf.low) for leaf in taxonomy.leaves]
    nodes = [(node.node, node.low, node.high, taxonomy.heights[node.node]) for node in taxonomy.nodes]
    return (
        engine.load(f"leaves_{axis.code.name}", {"label": "VARCHAR", "leaf": "INTEGER"}, leaves),
        engine.load(f"nodes_{axis.code.name}", _NODES, nodes),
        taxonomy.height,
    )
