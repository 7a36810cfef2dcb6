"""Results of runs and releases, and fingerprints of what runs published.

A run with the fingerprint of an earlier one publishes the same again. It says nothing to anybody who lacks its key: it
stands with that key among the secrets of the ledger, where the seed is. Whoever has the key can only try if a whole
source is the one that they think of, as with the seed.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from ldiv_db.attacking.gains import Attack
from ldiv_db.auditing.audit import Audit
from ldiv_db.database.addresses import Place
from ldiv_db.database.engine import ClientRelation, Engine, database_version
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.display import Shown
from ldiv_db.measuring.answers import Answer
from ldiv_db.policy.quasi_identifiers import Inferred
from ldiv_db.policy.resolve import Resolved
from ldiv_db.publishing.inference import Inference
from ldiv_db.recoding.loss import Loss
from ldiv_db.recoding.rules import GlobalRecoding
from ldiv_db.recoding.snapshot import Snapshot, read_columns

#: The parts of a policy that bear on no cell of the release: it is the same wherever it comes from and goes to. Of a
#: requirement pydantic knows nothing, and a seed that was drawn is not the policy's.
_BESIDE = {"source", "databases", "target", "identifiers", "require", "seed", "over_time", "preserve", "context"}


@dataclass(frozen=True)
class Fingerprint:
    """The hashes of a source's rows, and of the policy with all that it rests on, keyed with `key`.

    `rows` is of the `columns` that the policy reads, in the order of their names, each with whether its NULLs leave
    rows out; `policy` is None where the release rests on other tables as well, so that it is never known to be equal.
    """

    key: str = field(repr=False)
    rows: str = field(repr=False)
    policy: str | None = field(repr=False)
    columns: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class Earlier:
    """An earlier run that published this source and was not withdrawn, if the ledger knows one.

    With its `seed` the run publishes the same again; None where source or policy are others, or are not known to be the
    same. `same_rows` says whether the source is the same at least, None if that is not known; `independent` that the
    policy takes releases of changed rows for independent. `fingerprint` is that of the new run, None if it has none.
    """

    run_id: str | None = None
    seed: int | None = field(default=None, repr=False)
    fingerprint: Fingerprint | None = None
    same_rows: bool | None = None
    independent: bool = False
    #: A release of a series, in words, where no run but one with a key published the source.
    series: str = ""
    #: Where the earlier run's release is, as its policy has it, and how many rows it has.
    target: str = ""
    rows: int = 0
    #: What both releases tell, by attribute, or in words why that was not measured.
    compared: tuple[Attack, ...] | str = ""

    @property
    def is_parted(self) -> bool:
        """True if nothing but the policy's word parts the new release from an earlier one of other rows."""
        return bool(self._before) and self.independent and not (self.unchanged or self.same_rows)

    @property
    def unchanged(self) -> str | None:
        """The run whose release is published again, None if it is another one."""
        return None if self.seed is None else self.run_id

    @property
    def hashes(self) -> dict[str, str | None]:
        """The key and the hashes of the new run's fingerprint, as the ledger has them."""
        found = self.fingerprint
        if found is None:
            return {}
        columns = json.dumps(found.columns)
        return {"hash_key": found.key, "rows_hash": found.rows, "policy_hash": found.policy, "columns_read": columns}

    def told(self, run_id: str = "") -> list[str]:
        """Notes on it; `run_id` is the new run's, if it has one yet."""
        if not self._before:
            return []
        if self.unchanged:
            return [f"unchanged: source, policy and seed are those of run {self.run_id}, and so is the release"]
        this = f"run {run_id}" if run_id else "this run"
        if self.same_rows:
            what = f"run {self.run_id} published the same rows under another policy: {this} is another draft of it"
            return [f"{what}. Hand out only one of the two: whoever has both may learn more than either tells"]
        if self.is_parted:
            what = f"{self._before} published this source before, and the policy has over_time: independent"
            both = f"Hand out its release or that of {this}: whoever has both may learn more than either tells"
            see = f"{what}. {both}"
            if isinstance(self.compared, str):
                return [
                    see,
                    *([f"what both reveal together was not measured: {self.compared}"] if self.compared else []),
                ]
            return [see, *map(_told_by_both, self.compared)]
        return [str(self._changed)]

    def require_safe(self) -> None:
        """Raise PolicyError where changed rows would be published once more, and the policy says nothing of it."""
        if self._before and not (self.unchanged or self.same_rows or self.independent):
            raise PolicyError([self._changed])

    @property
    def _before(self) -> str:
        """The earlier release, in words; empty if there is none."""
        return self.series if self.run_id is None else f"run {self.run_id}"

    @property
    def _changed(self) -> Problem:
        since = (
            "its rows have changed since"
            if self.same_rows is False
            else "it is not known whether its rows have changed"
        )
        told = "whoever has both releases may learn more than either tells"
        what = f"{self._before} published this source, and {since}: {told}"
        hint = (
            "name the column that says which row is which (key: …), and releases are made to go together; or set"
            " over_time: independent, and make sure that nobody has both"
        )
        if self.run_id is not None:
            hint += f"; or, if its release was never handed out, `ldiv runs withdraw DATABASE {self.run_id}`"
        return Problem("key", what, hint)


def _told_by_both(attack: Attack) -> str:
    """What an attack by composition found, in words."""
    figures = attack.figures
    whose = f"the {attack.sensitive} of {figures['one_value']:,} of {figures['people']:,} people of the source"
    alone = f"{figures['one_value_in_one_release']:,} of them by one of the two alone"
    more = f"of {figures['above_promise_of_one']:,} it is surer than one release promises"
    drawn = f" ({attack.untried})" if attack.untried else ""
    return f"who has both, and knows everybody's quasi-identifiers, is certain of {whose}, {alone}; {more}{drawn}"


def take_fingerprint(
    engine: Engine, resolved: Resolved, rows: Relation, weight: Identifier | None, key: str
) -> Fingerprint:
    """The fingerprint of a copy of the source and of its policy.

    `weight` is the copy's column of counts, if equal rows are one: it is the same as if they were not.
    """
    source = resolved.source
    read = sorted({column.column.name.lower(): column for column in read_columns(source)}.items())
    required = {column.column.name.lower() for column in Snapshot(engine, source).where_nulls("suppress")}
    rests_on_others = any(spec.counts_people for spec in resolved.policy.require)
    return Fingerprint(
        key,
        hash_rows(engine, rows, [column.alias for _, column in read], weight, key),
        None if rests_on_others else _hash_policy(resolved, key),
        tuple((name, name in required) for name, _ in read),
    )


def key_of_release(engine: Engine, resolved: Resolved) -> str:
    """A secret key of the seed that no release of other rows, or under another policy, has as well."""
    source, seed = resolved.source, str(resolved.source.seed)
    read = sorted({column.column.name.lower(): column.column for column in read_columns(source)}.items())
    rows = hash_rows(engine, source.relation, [column for _, column in read], None, seed)
    return _keyed(seed, (rows, _hash_policy(resolved, seed)))


def _hash_policy(resolved: Resolved, key: str) -> str:
    """The keyed hash of the policy, with all that it rests on but tables."""
    policy, source = resolved.policy, resolved.source
    said = [
        policy.model_dump(exclude=_BESIDE - ({"seed"} & policy.model_fields_set)),
        policy.require,
        [(found.column, found.hierarchy) for found in source.quasi_identifiers],
        [attribute.taxonomy for attribute in resolved.required.attributes.values()],
        source.types,
        resolved.typed,
        resolved.target.format,
        versions(),
    ]
    return _keyed(key, said)


def hash_rows(
    engine: Engine,
    rows: Relation | FileRelation,
    columns: Sequence[Identifier],
    weight: Identifier | None,
    key: str,
    required: Sequence[Identifier] = (),
) -> str:
    """The keyed hash of the rows' values in these columns, whatever the order of the rows.

    Rows with a NULL in a column that is `required` are left out.
    """
    params = {"rows": rows, "columns": columns, "weight": weight, "required": required}
    return _keyed(key, engine.record("publishing/summarise_content", **params))


def _keyed(key: str, content: Any) -> str:
    return hmac.new(key.encode(), repr(content).encode(), "sha256").hexdigest()


#: What classes are called on every screen: those with different labels or published ids, which readers can tell apart,
#: and those that an algorithm made, of which several may be published with equal labels.
DISTINCT_CLASSES, CLASSES_MADE = "distinct classes", "classes made"


@dataclass(frozen=True)
class Similarity:
    """The rows whose category the similarity attack infers, in the source and in the release."""

    sensitive: str
    rows_before: int
    rows_after: int


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """Result of a run: the object that `ldiv run --json` prints."""

    run_id: str
    algorithm: str
    source: str
    target: str
    l: int | float | None
    loss: Loss
    audits: Sequence[Audit]
    search: dict[str, Any]
    seconds: float
    seed: int
    versions: dict[str, str]
    notes: Sequence[str] = field(default_factory=tuple)
    similarity: Sequence[Similarity] = ()
    recoding: GlobalRecoding | None = None
    #: What `cavg` is in units of.
    smallest_class: int | None = None
    #: How quasi-identifiers generalise of which the policy does not say it.
    inferred: Sequence[Inferred] = ()
    #: Where the release is.
    place: Place | None = field(default=None, repr=False, compare=False)
    #: What counting rows hides where people have several and the policy names no individual; it is among the notes.
    people: str = field(default="", repr=False)
    #: The number of the snapshot that release and ledger row are, in a database that numbers them.
    snapshot: int | None = None
    #: What the ledger knows of earlier releases of the source.
    earlier: Earlier = field(default_factory=Earlier)
    #: What the policy's queries (`preserve`) answer of the release.
    answers: Sequence[Answer] = ()

    def table(self) -> ClientRelation:
        """The release as a relation of DuckDB's, which has `.df()`, `.pl()` and `.arrow()`.

        Raises DatabaseError where it cannot be read from here: after a run on an address its database is closed.
        """
        if self.place is None:
            raise DatabaseError(f"{self.target} is not read from here: read it in its own database")
        return self.place.read()

    @property
    def requirements(self) -> list[dict[str, Any]]:
        return [{**v.as_dict(), "sensitive": audit.sensitive or None} for audit in self.audits for v in audit.verdicts]

    def as_dict(self, show_seed: bool = False) -> dict[str, Any]:
        """The result as JSON has it, keys as in the reference; the seed, a secret, is named on request."""
        compared = self.earlier.compared
        return {
            "run_id": self.run_id,
            "algorithm": self.algorithm,
            "source": self.source,
            "target": self.target,
            "rows_in": self.loss.rows_published + self.loss.rows_suppressed,
            "rows_published": self.loss.rows_published,
            "rows_suppressed": self.loss.rows_suppressed,
            "cells_suppressed": self.loss.cells_suppressed,
            "classes": self.loss.classes,
            "classes_made": self.loss.classes_made,
            "avg_class_size": self.loss.average_class_size,
            "loss": self.loss.as_dict(self.smallest_class),
            "requirements": self.requirements,
            "similarity": [vars(attack) for attack in self.similarity],
            "answers": [answer.as_dict() for answer in self.answers],
            "search": self.search,
            "inferred": [inferred.as_dict() for inferred in self.inferred],
            "seconds": self.seconds,
            **({"seed": self.seed} if show_seed else {}),
            "unchanged": self.earlier.unchanged,
            "versions": self.versions,
            "notes": self.said,
            **({} if isinstance(compared, str) else {"compared": [attack.as_dict() for attack in compared]}),
            **({} if self.snapshot is None else {"snapshot": self.snapshot}),
        }

    @property
    def said(self) -> list[str]:
        """The notes, with what is known of earlier releases and what the audit warns of."""
        return [
            *self.earlier.told(self.run_id),
            *self.notes,
            *(warning for audit in self.audits for warning in audit.warnings),
        ]


@dataclass(frozen=True, repr=False)
class Released(Shown):
    """Result of a release of a series: the object that `ldiv release publish --json` prints."""

    figures: dict[str, Any]
    audits: Sequence[Audit] = ()
    inference: Inference | None = None
    notes: Sequence[str] = field(default_factory=tuple)
    #: What its groups were drawn by, a secret.
    seed: int | None = field(default=None, repr=False)

    def as_dict(self, show_seed: bool = False) -> dict[str, Any]:
        """The result as JSON has it, keys as in the reference; the seed, a secret, is named on request."""
        return {
            **self.figures,
            **({"seed": self.seed} if show_seed else {}),
            "requirements": [{**v.as_dict(), "sensitive": a.sensitive} for a in self.audits for v in a.verdicts],
            "inference": self.inference.as_dict() if self.inference else None,
            "notes": list(self.notes),
        }


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    return {"ldiv_db": version("ldiv-db"), "duckdb": database_version()}
