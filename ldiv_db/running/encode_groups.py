"""The source of a decomposition, encoded: keys, codes of sensitive values, and what is published as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.decomposition.grouping import Secret
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested, looseness, refuse_respelt, text_with_collation
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.policy.problems import Problems
from ldiv_db.policy.resolve import Resolved, Source
from ldiv_db.publishing.series_draft import key_name, require_keys
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.snapshot import names_of, renamed, signed_columns
from ldiv_db.requirements import Distribution
from ldiv_db.taxonomies.taxonomy import NULL_LABEL, Taxonomy

_NODES = {"node": "INTEGER", "low": "INTEGER", "high": "INTEGER", "height": "INTEGER"}


@dataclass(frozen=True)
class Decomposed:
    """`rows` is (row_id, key_hash, values_hash, the codes, the published columns); the primary attribute is the first.

    `secrets` are all sensitive attributes in the policy's order.
    """

    rows: Relation
    secrets: tuple[Secret, ...]
    primary: Secret
    shown: tuple[Renamed, ...]
    rows_in: int
    left_out: int

    @property
    def others(self) -> tuple[Secret, ...]:
        return tuple(secret for secret in self.secrets if secret is not self.primary)


def encode_source(engine: Engine, resolved: Resolved, secret: str) -> Decomposed:
    """The source encoded; `secret` goes before what is hashed.

    Raises PolicyError for taxonomies that lack values, InfeasibleError for rows without a key of their
    own and for NULLs that the policy rejects.
    """
    snapshot, rows_in, shown = _snapshot(engine, resolved.source)
    secrets = _secrets(engine, resolved, snapshot)
    rows = engine.materialise(
        "rows",
        "decomposition/number_rows",
        rows=snapshot,
        key=_KEY,
        secrets=secrets,
        shown=shown,
        secret=Value(secret),
    )
    kept = engine.count(rows)
    engine.drop(snapshot)
    names = [secret.name.lower() for secret in secrets]
    primary = secrets[names.index(resolved.primary.lower())]
    return Decomposed(rows, secrets, primary, tuple(shown), rows_in, rows_in - kept)


_KEY = Renamed(Identifier("key"), Identifier("p1"))


def _snapshot(engine: Engine, source: Source) -> tuple[Relation, int, list[Renamed]]:
    """A TEMP copy under working names, the source's rows, and the columns that are published as they are."""
    identifying = renamed("q", [qi.name for qi in source.quasi_identifiers])
    sensitive, kept = renamed("s", names_of(source.sensitive)), renamed("k", names_of(source.keep))
    types = source.types
    _refuse_signed(signed_columns(engine, source))
    shown = [replace(column, loose=looseness(types[column.column.name])) for column in [*identifying, *kept]]
    key = Renamed(Identifier(key_name(source)), _KEY.alias)
    required = (identifying if source.nulls == "suppress" else []) + (
        sensitive if source.nulls_sensitive == "suppress" else []
    )
    collated = {column.name.lower() for column in text_with_collation(engine, source.relation)}
    copied = [*shown, *sensitive, key]
    snapshot = engine.materialise(
        "snapshot",
        "recoding/input/snapshot_source",
        source=source.relation,
        columns=copied,
        texts=[column for column in copied if column.column.name.lower() in collated],
        floats=[key] if types[key.column.name].is_float else [],
        required=required,
    )
    nested = [column for column in sensitive if is_nested(types[column.column.name])]
    refuse_respelt(engine, snapshot, [(f"sensitive.{column.column.name}", column.alias) for column in nested])
    rejected = (identifying if source.nulls == "reject" else []) + (
        sensitive if source.nulls_sensitive == "reject" else []
    )
    require_keys(engine, source, snapshot, _KEY.alias)
    _reject_nulls(engine, snapshot, rejected)
    return snapshot, engine.count(source.relation), shown


def _refuse_signed(columns: Sequence[Renamed]) -> None:
    """Raise PolicyError for numbers of which one would be published as another that is equal."""
    if columns:
        what = "has -0.0, which is equal to 0.0, or NaN with a sign"
        raise PolicyError(Problem(f"sensitive.{c.column.name}", what, "take it off in a view") for c in columns)


def _reject_nulls(engine: Engine, snapshot: Relation, rejected: Sequence[Renamed]) -> None:
    if not rejected:
        return
    counts = engine.record("recoding/input/count_nulls", rows=snapshot, columns=rejected)
    found = [f"{c.column.name} in {counts[c.alias.name]:,} rows" for c in rejected if counts[c.alias.name]]
    if found:
        raise InfeasibleError(
            f"NULLs: {', '.join(found)}. Set nulls (quasi-identifiers) or nulls_sensitive to suppress or value to go on"
        )


def _secrets(engine: Engine, resolved: Resolved, snapshot: Relation) -> tuple[Secret, ...]:
    """The sensitive attributes; values that a taxonomy lacks are reported for all of them at once."""
    found, problems = [], Problems()
    for number, (name, attribute) in enumerate(resolved.required.attributes.items(), 1):
        taxonomy = attribute.taxonomy
        if taxonomy and resolved.source.nulls_sensitive == "value":
            taxonomy = taxonomy.with_null()
        secret = _secret(engine, snapshot, number, name, resolved.limits[name], taxonomy)
        leafless = engine.scalar("decomposition/count_leafless", dictionary=secret.dictionary)
        if leafless:
            origin = taxonomy.origin if taxonomy else ""
            what = f"taxonomy {origin} has no leaf for {leafless:,} values of the source"
            problems.add([Problem(f"sensitive.{name}.taxonomy", what)])
        found.append(secret)
    problems.refuse()
    return tuple(found)


def _secret(
    engine: Engine,
    snapshot: Relation,
    number: int,
    name: str,
    l: int,  # noqa: E741 - the field's name for it
    taxonomy: Taxonomy | None,
) -> Secret:
    code = Identifier(f"s{number}")
    leaves, nodes, height = _tree(engine, taxonomy, code)
    dictionary = engine.materialise(
        f"dictionary_{code.name}", "decomposition/map_values", rows=snapshot, column=code, leaves=leaves
    )
    counts = [row[0] for row in engine.rows("recoding/input/list_counts", dictionary=dictionary)]
    if leaves:
        engine.drop(leaves)
    return Secret(
        column=Identifier(name),
        code=code,
        table=Identifier(f"t_{code.name}"),
        dictionary=dictionary,
        distribution=Distribution(counts),
        number=Value(number),
        l=l,
        nodes=nodes,
        height=height,
    )


def _tree(engine: Engine, taxonomy: Taxonomy | None, code: Identifier) -> tuple[Relation | None, Relation | None, int]:
    """The leaves (label, leaf) and nodes of a taxonomy, and its height."""
    if taxonomy is None:
        return None, None, 1
    heights = {node.node: 0 for node in taxonomy.nodes}
    for node in reversed(taxonomy.nodes):  # children stand after their parent
        if node.parent is not None:
            heights[node.parent] = max(heights[node.parent], heights[node.node] + 1)
    leaves = [(None if leaf.label == NULL_LABEL else leaf.label, leaf.low) for leaf in taxonomy.leaves]
    nodes = [(node.node, node.low, node.high, heights[node.node]) for node in taxonomy.nodes]
    return (
        engine.load(f"leaves_{code.name}", {"label": "VARCHAR", "leaf": "INTEGER"}, leaves),
        engine.load(f"nodes_{code.name}", _NODES, nodes),
        heights[taxonomy.nodes[0].node],
    )
