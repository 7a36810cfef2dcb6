"""What a run had to publish, as a fingerprint by which a later run knows that it has the same.

A fingerprint says nothing to who lacks its key: it stands with that key among the secrets of the ledger, where the seed
is. Whoever has the key can only try whether a whole source is the one that they think of, as with the seed.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.resolve import Resolved

#: The parts of a policy that bear on no cell of the release: it is the same wherever it comes from and goes to. Of a
#: requirement pydantic knows nothing, and a seed that was drawn is not the policy's.
_BESIDE = {"source", "databases", "target", "identifiers", "require", "seed"}


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of a source's rows, and of the policy with all that it rests on, keyed with `key`."""

    key: str = field(repr=False)
    rows: str = field(repr=False)
    policy: str = field(repr=False)


@dataclass(frozen=True)
class Earlier:
    """An earlier run that published this source, if the ledger knows one.

    With its `seed` the run publishes the same again; None where source or policy are others, or are not known to be the
    same. `fingerprint` is that of the new run, None if it has none.
    """

    run_id: str | None = None
    seed: int | None = field(default=None, repr=False)
    fingerprint: Fingerprint | None = None

    @property
    def unchanged(self) -> str | None:
        """The run whose release is published again, None if it is another one."""
        return None if self.seed is None else self.run_id

    @property
    def hashes(self) -> tuple[str | None, str | None, str | None]:
        """The key and the hashes of the new run's fingerprint, as the ledger has them."""
        found = self.fingerprint
        return (None, None, None) if found is None else (found.key, found.rows, found.policy)

    def told(self, run_id: str = "") -> list[str]:
        """What is said of it; `run_id` is the new run's, if it has one yet."""
        if self.run_id is None:
            return []
        if self.unchanged:
            return [f"unchanged: source and policy are those of run {self.run_id}, and so is the release, by its seed"]
        this = f"run {run_id}" if run_id else "this run"
        return [
            f"run {self.run_id} published this source before: who has its release and that of {this} may learn more by"
            " comparing them than either tells. Name the `key` that says which row is which over time, and releases are"
            " made to go together; or see that nobody has both"
        ]


def take_fingerprint(
    engine: Engine, policy: Policy, resolved: Resolved, rows: Relation, versions: Mapping[str, str], key: str
) -> Fingerprint | None:
    """The fingerprint of a copy of the source and of its policy; None where a release rests on other tables as well."""
    if any(spec.kind.of_people for spec in policy.require):
        return None
    columns = [Identifier(column.name) for column in columns_of(engine, rows)]
    content = engine.record("publishing/summarise_content", rows=rows, columns=columns)
    source = resolved.source
    said = [
        policy.model_dump(exclude=_BESIDE - ({"seed"} & policy.model_fields_set)),
        policy.require,
        [(found.column, found.hierarchy) for found in source.quasi_identifiers],
        [attribute.taxonomy for attribute in resolved.required.attributes.values()],
        source.types,
        resolved.typed,
        resolved.target.format,
        versions,
    ]
    return Fingerprint(
        key, *(hmac.new(key.encode(), repr(part).encode(), "sha256").hexdigest() for part in (content, said))
    )
