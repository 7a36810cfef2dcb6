"""The sensitive attributes of a decomposition: their codes, with the leaf of each, and their l."""

from __future__ import annotations

from dataclasses import replace

from ldiv_db.algorithms.decomposition.grouping import Secret
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements import Distribution
from ldiv_db.taxonomies.taxonomy import NULL_LABEL, Taxonomy

#: The column of rows with the member by which their sets are told apart.
BUCKET, _FIRST = "bucket", Where("is_first", True)
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
    harmless = [(value, True) for value in resolved.source.harmless.get(axis.column.name, ())]
    columns = {"value": "VARCHAR", "is_harmless": "BOOLEAN"}
    flow = EngineFlow(engine, "decomposition", harmless=engine.load("harmless", columns, harmless))
    flow.know(dictionary=axis.dictionary, leaves=leaves)
    dictionary, members = flow.step(f"leaves_of_{axis.code.name}", "map_leaves"), dict[str, Relation]()
    if axis.column.name in resolved.source.sets:
        flow.know(dictionary=flow.step("kinds", "map_members"), leaves=None)
        members["kinds"] = flow.step(f"kinds_of_{axis.code.name}", "map_leaves")
        members["members"] = flow.step("listed", "list_members", dictionary=dictionary, kinds=members["kinds"])
    flow.drop("harmless", *(["leaves"] if leaves else []))
    known = vars(axis) | members | {"dictionary": dictionary, "number": number, "nodes": nodes, "height": height}
    return Secret(**known, l=resolved.limits[axis.column.name])


def grouped_by(engine: Engine, rows: Relation, primary: Secret) -> tuple[Relation, Secret]:
    """The rows, and what each group has different values of: the primary attribute, or of sets one member of each."""
    if primary.members is None or primary.kinds is None:
        return rows, primary
    first = engine.select("first", primary.members, ("code", primary.code.name), ("member", BUCKET), where=[_FIRST])
    rows = engine.join("bucketed", rows, first, primary.code.name, right_columns=[BUCKET])
    counts = sorted(engine.column(primary.kinds, "rows"), reverse=True)
    found = replace(primary, code=Identifier(BUCKET), dictionary=primary.kinds, distribution=Distribution(counts))
    return rows, replace(found, members=None, own=None)


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
