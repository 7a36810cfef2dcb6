"""The source of a decomposition, encoded: keys, codes of sensitive values, and what is published as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldiv_db.algorithms.decomposition.grouping import Secret
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, count_phrase
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.snapshot import Copied, Snapshot, loose, names_of, renamed, require_keys, signed_columns
from ldiv_db.requirements import Distribution
from ldiv_db.taxonomies.taxonomy import NULL_LABEL, Taxonomy

_NODES = {"node": "INTEGER", "low": "INTEGER", "high": "INTEGER", "height": "INTEGER"}


@dataclass(frozen=True)
class DecompositionCoding(Copied):
    """A TEMP copy of a source under working names, and the codes of its sensitive values.

    These are in the policy's order, the primary one among them. Rows without a key have a number for one.
    """

    engine: Engine
    key: Renamed
    sensitive: tuple[Secret, ...]
    primary: Secret
    shown: Sequence[Renamed]

    @property
    def others(self) -> tuple[Secret, ...]:
        return tuple(secret for secret in self.sensitive if secret is not self.primary)

    def encode(
        self, snapshot: Relation, side_columns: Sequence[Renamed] = (), carried: Sequence[Identifier] = ()
    ) -> Relation:
        """The rows of the copy, or of one with the same values in other rows, encoded; `side_columns` stay uncoded.

        So do columns that are `carried`, by which no row is numbered.
        """
        params = {"secrets": self.sensitive, "shown": [*self.shown, *side_columns], "carried": carried}
        return self.engine.materialise("rows", "decomposition/number_rows", rows=snapshot, key=self.key, **params)


def read_source(engine: Engine, resolved: Resolved) -> DecompositionCoding:
    """The source copied, with codes for its sensitive values.

    Raises PolicyError for taxonomies that lack values, InfeasibleError for rows without a key of their own and for
    NULLs that the policy rejects.
    """
    source = resolved.source
    columns = signed_columns(engine, source)
    if columns:
        what = "has -0.0, which is equal to 0.0, or NaN with a sign"
        raise PolicyError(Problem(f"sensitive.{c.column.name}", what, "take it off in a view") for c in columns)
    (key,) = renamed("h", [source.key_name or "h1"])
    taking = Snapshot(engine, source, [key] if source.key else [], shown="qk")
    copied = taking.taken()
    if source.key:
        require_keys(engine, source, copied.snapshot, key.alias)
    else:  # rows that are equal in what is published beside values are told apart by these alone
        codes = [column.alias for column in renamed("s", names_of(source.sensitive))]
        numbered = engine.materialise("snapshot", "decomposition/number_copies", rows=copied.snapshot, columns=codes)
        engine.drop(copied.snapshot)
        copied = replace(copied, snapshot=numbered)
    taking.check(copied.snapshot)
    secrets = _secrets(engine, resolved, copied.snapshot)
    identifying = renamed("q", [qi.name for qi in source.quasi_identifiers])
    shown = loose(source, [*identifying, *renamed("k", names_of(source.keep))])
    names = [secret.name.lower() for secret in secrets]
    primary = secrets[names.index(resolved.primary.lower())]
    return DecompositionCoding(**vars(copied), engine=engine, key=key, sensitive=secrets, primary=primary, shown=shown)


def _secrets(engine: Engine, resolved: Resolved, snapshot: Relation) -> tuple[Secret, ...]:
    """The sensitive attributes; values that a taxonomy lacks are reported for all of them at once."""
    secrets, problems = [], Problems()
    for number, (name, attribute) in enumerate(resolved.required.attributes.items(), 1):
        taxonomy = attribute.taxonomy
        if taxonomy and resolved.source.nulls_sensitive == "value":
            taxonomy = taxonomy.with_null()
        secret = _secret(engine, snapshot, number, name, resolved.limits[name], taxonomy)
        leafless = engine.count(secret.dictionary, Where("leaf", None))
        if leafless:
            origin = taxonomy.origin if taxonomy else ""
            what = f"taxonomy {origin} has no leaf for {count_phrase(leafless, 'value', 'values')} of the source"
            problems.add([Problem(f"sensitive.{name}.taxonomy", what)])
        secrets.append(secret)
    problems.refuse()
    return tuple(secrets)


def _secret(engine: Engine, snapshot: Relation, number: int, name: str, l: int, taxonomy: Taxonomy | None) -> Secret:
    code = Identifier(f"s{number}")
    leaves, nodes, height = _tree(engine, taxonomy, code)
    dictionary = engine.materialise(
        f"dictionary_{code.name}", "decomposition/map_values", rows=snapshot, column=code, leaves=leaves
    )
    counts = sorted(engine.column(dictionary, "rows"), reverse=True)
    if leaves:
        engine.drop(leaves)
    return Secret(
        column=Identifier(name),
        code=code,
        dictionary=dictionary,
        distribution=Distribution(counts),
        number=number,
        l=l,
        nodes=nodes,
        height=height,
    )


def _tree(engine: Engine, taxonomy: Taxonomy | None, code: Identifier) -> tuple[Relation | None, Relation | None, int]:
    """The leaves (label, leaf) and nodes of a taxonomy, and its height."""
    if taxonomy is None:
        return None, None, 1
    leaves = [(None if leaf.label == NULL_LABEL else leaf.label, leaf.low) for leaf in taxonomy.leaves]
    nodes = [(node.node, node.low, node.high, taxonomy.heights[node.node]) for node in taxonomy.nodes]
    return (
        engine.load(f"leaves_{code.name}", {"label": "VARCHAR", "leaf": "INTEGER"}, leaves),
        engine.load(f"nodes_{code.name}", _NODES, nodes),
        taxonomy.height,
    )
