"""Results of runs and releases, with what they tell of earlier releases of the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.attacking.gains import Attack
from ldiv_db.auditing.audit import Audit
from ldiv_db.database.addresses import Place
from ldiv_db.database.connections import ClientRelation
from ldiv_db.database.errors import DatabaseError, PolicyError, Problem, nearest, refused
from ldiv_db.display import Shown
from ldiv_db.measuring.answers import Answer
from ldiv_db.measuring.least_loss.bounds import LossBound
from ldiv_db.policy.quasi_identifiers import Inferred
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing.fingerprints import Fingerprint
from ldiv_db.publishing.inference import Inference
from ldiv_db.recoding.loss import Loss, TableLoss, nothing_lost
from ldiv_db.recoding.rules import GlobalRecoding

#: What classes are called on every screen: those with different labels or published ids, which readers can tell apart,
#: and those that an algorithm made, of which several may be published with equal labels.
DISTINCT_CLASSES, CLASSES_MADE = "distinct classes", "classes made"
#: What follows where a source has two releases that were not made to go together.
HAND_OUT_ONE = "Hand out only one of the two: whoever has both may learn more than either tells"


@dataclass(frozen=True)
class Forgotten:
    """A ledger in memory; `promised` is the key of a policy that promises something of other releases, if one does."""

    promised: str = ""

    def __str__(self) -> str:
        return f"{_IN_MEMORY}: no later run knows of this release; {_KEEP}"

    def require_kept(self) -> None:
        """Raise PolicyError if the policy promises what nobody can keep."""
        if self.promised:
            what = f"promises what several releases tell together, and {_IN_MEMORY}"
            raise refused(self.promised, what, f"{_KEEP}; or over_time: independent")


_IN_MEMORY = "the ledger is in memory, and ends with the connection"
_KEEP = "name a database file, or one as catalog, to keep it"


@dataclass(frozen=True)
class Earlier:
    """The earlier release of this source that a new one is held against, if the ledger knows one.

    With its `seed` the run publishes the same again, unless it was `made_by` other versions; None where source or
    policy are others, or are not known to be the same. `same_rows` says whether the source has the rows of every
    earlier release at least, None if that is not known; `independent` that the policy takes releases of changed rows
    for independent. `fingerprint` is that of the new run, None if it has none.
    """

    run_id: str | None = None
    seed: int | None = field(default=None, repr=False)
    fingerprint: Fingerprint | None = None
    same_rows: bool | None = None
    independent: bool = False
    #: A release of a series, in words, where it is that and no run.
    series: str = ""
    #: Where the earlier run's release is, as its policy has it, and how many rows it has.
    target: str = ""
    rows: int = 0
    #: The versions by which it was made, where these are others now, the hash of its release, and whether that is the
    #: new one's: None until it is made, or if it is not known.
    made_by: str = ""
    release: str | None = field(default=None, repr=False)
    is_again: bool | None = None
    #: What both releases tell, by attribute, or in words why that was not measured.
    compared: tuple[Attack, ...] | str = ""
    #: Where the ledger is not kept, so that no later run can know of this one: what is to be said, or refused.
    forgotten: Forgotten | None = None

    @property
    def takes_key(self) -> bool:
        """True unless the run is of several tables, which can be no series."""
        return self.fingerprint is None or not self.fingerprint.tables

    @property
    def is_parted(self) -> bool:
        """True if nothing but the policy's word parts the new release from an earlier one of other rows."""
        return bool(self._before) and self.independent and not (self.unchanged or self.same_rows)

    @property
    def unchanged(self) -> str | None:
        """The run whose release is published again, None if it is another one."""
        return None if self.seed is None or self.made_by else self.run_id

    def held_against(self, release: str | None) -> Earlier:
        """The same, with whether the earlier release is the new one, whose hash this is."""
        return self if None in (self.release, release) else replace(self, is_again=self.release == release)

    @property
    def hashes(self) -> dict[str, str | None]:
        """The key and the hashes of the new run's fingerprint, as the ledger has them."""
        found = self.fingerprint
        if found is None:
            return {}
        hashes = {"hash_key": found.key, "rows_hash": found.rows, "policy_hash": found.policy}
        return {**hashes, "columns_read": found.read}

    def told(self, run_id: str = "") -> list[str]:
        """Notes on it; `run_id` is the new run's, if it has one yet."""
        return [*self._told_of_before(run_id), *([str(self.forgotten)] if self.forgotten else [])]

    def _told_of_before(self, run_id: str) -> list[str]:
        if not self._before:
            return []
        if self.unchanged:
            return [f"unchanged: source, policy and seed are those of run {self.run_id}, and so is the release"]
        this = f"run {run_id}" if run_id else "this run"
        if self.same_rows:
            return [self._told_of_same_rows(this, bool(run_id))]
        if self.is_parted:
            what = f"{self._before} published this source before, and the policy has over_time: independent"
            both = f"Hand out its release or that of {this}: whoever has both may learn more than either tells"
            see = f"{what}. {both}"
            if isinstance(self.compared, str):
                why = f"what both reveal together was not measured: {self.compared}"
                return [see, *([why] if self.compared else [])]
            return [see, *map(_told_by_both, self.compared)]
        return [str(self._changed)]

    def _told_of_same_rows(self, this: str, is_made: bool) -> str:
        if not self.made_by:
            what = f"run {self.run_id} published the same rows under another policy: {this} is another draft of it"
            return f"{what}. {HAND_OUT_ONE}"
        under = "under this policy" if self.seed is not None else "under a policy that may be another"
        what = f"the version is another now: run {self.run_id} published the same rows by {self.made_by}, {under}"
        if self.is_again or not is_made:
            return f"{what}{', and its release is the same' if is_made else '; a run says if its release is the same'}"
        return f"{what}, and {this} {'may be' if self.is_again is None else 'is'} another draft of it. {HAND_OUT_ONE}"

    def require_safe(self) -> None:
        """Raise PolicyError where changed rows would be published once more, and the policy says nothing of it.

        Also where it promises something of other releases, and no ledger is kept that knows of them.
        """
        if self.forgotten:
            self.forgotten.require_kept()
        if self._before and not (self.unchanged or self.same_rows or self.independent):
            raise PolicyError([self._changed])

    @property
    def _before(self) -> str:
        return self.series if self.run_id is None else f"run {self.run_id}"

    @property
    def _changed(self) -> Problem:
        changed = "its rows have changed"
        known = f"{changed} since" if self.same_rows is False else f"it is not known whether {changed}"
        told = "whoever has both releases may learn more than either tells"
        what = f"{self._before} published this source, and {known}: {told}"
        hint = "set over_time: independent, and make sure that nobody has both"
        if self.takes_key:
            named = "name the column that says which row is which (key: …), and releases are made to go together"
            hint = f"{named}; or {hint}"
        if self.run_id is not None:
            hint += f"; or, if its release was never handed out, `ldiv runs withdraw DATABASE {self.run_id}`"
        return Problem("key" if self.takes_key else "over_time", what, hint)


def _told_by_both(attack: Attack) -> str:
    figures = attack.figures
    whose = f"the {attack.sensitive} of {figures['one_value']:,} of {figures['people']:,} people of the source"
    alone = f"{figures['one_value_in_one_release']:,} of them by one of the two alone"
    more = f"of {figures['above_promise_of_one']:,} it is surer than one release promises"
    drawn = f" ({attack.untried})" if attack.untried else ""
    return f"who has both, and knows everybody's quasi-identifiers, is certain of {whose}, {alone}; {more}{drawn}"


@dataclass(frozen=True)
class Similarity:
    """The rows whose category the similarity attack infers, in the source and in the release."""

    sensitive: str
    rows_before: int
    rows_after: int


@dataclass(frozen=True)
class Example:
    """A column of a few rows, which are the same in all columns: what they were, and what is published of them."""

    column: str
    before: Sequence[str]
    after: Sequence[str]


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """Result of a run: the object that `ldiv run --json` prints."""

    run_id: str
    algorithm: str
    source: str
    target: str
    l: int | float | None
    loss: Loss
    search: dict[str, Any]
    seed: int
    versions: dict[str, str]
    audits: Sequence[Audit] = ()
    seconds: float = 0.0
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
    #: What no local recoding loses less than, if it was asked for. It is of the source: no ledger and no report has it.
    bound: LossBound | None = None
    #: A few rows before and after, where values may be shown: for a screen, and in no ledger, JSON or report.
    examples: Sequence[Example] = field(default=(), compare=False)
    #: The view beside the target in which labels are spread over their values, if there is one.
    expand: str | None = None
    #: What each of several tables loses, where the release has these.
    tables: Sequence[TableLoss] = ()
    #: Of a release of a series its figures, and what it tells together with earlier ones, once it was compared.
    figures: Mapping[str, Any] = field(default_factory=dict)
    inference: Inference | None = None

    @classmethod
    def of_night(cls, figures: Mapping[str, Any], loss: Loss | None = None, seed: int = 0, **more: Any) -> Result:
        """The result of a release of a series, by its figures and what its new rows lose."""
        told, published = {"search": {}, "versions": {}, **figures}, figures.get("rows_first_published", 0)
        place = ":".join([*([told["file"]] if told.get("file") else []), ", ".join(told["tables"])])
        known = {name: told[name] for name in ("algorithm", "source", "search", "versions")}
        own = {"run_id": told.get("run_id", ""), "target": place, "l": None, "figures": figures}
        return cls(**known, **own, loss=loss or nothing_lost(published, published), seed=seed, **more)

    def table(self, name: str = ONLY) -> ClientRelation:
        """The release as a relation of DuckDB's, which has `.df()`, `.pl()` and `.arrow()`; of several the named table.

        Raises DatabaseError where it cannot be read from here: after a run on an address its database is closed.
        Raises PolicyError where the policy has no table of that name.
        """
        if self.place is None:
            raise DatabaseError(f"{self.target} is not read from here: read it in its own database")
        if name not in self.place.tables:
            raise refused("name", f"has no table {name}" if name else "is needed", nearest(name, self.place.tables))
        return self.place.read(name)

    @property
    def requirements(self) -> list[dict[str, Any]]:
        return [{**v.as_dict(), "sensitive": audit.sensitive or None} for audit in self.audits for v in audit.verdicts]

    def as_dict(self, show_seed: bool = False) -> dict[str, Any]:
        """The result as JSON has it, keys as in the reference; the seed, a secret, is named on request."""
        compared, drawn = self.earlier.compared, {"seed": self.seed} if show_seed else {}
        if self.figures:
            told = {"inference": self.inference and self.inference.as_dict(), "notes": self.said}
            return {**self.figures, **drawn, "requirements": self.requirements, **told}
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
            **drawn,
            "unchanged": self.earlier.unchanged,
            "versions": self.versions,
            "notes": self.said,
            **({} if isinstance(compared, str) else {"compared": [attack.as_dict() for attack in compared]}),
            **({"tables": [one.as_dict() for one in self.tables]} if self.tables else {}),
            **({} if self.expand is None else {"expand": self.expand}),
            **({} if self.snapshot is None else {"snapshot": self.snapshot}),
            **({} if self.bound is None else {"bound": self.bound.as_dict(self.comparable_loss)}),
        }

    @property
    def comparable_loss(self) -> float | None:
        """The mean LM, where all sensitive values are published as the bound takes them to be."""
        return None if self.loss.cells_suppressed else self.loss.lm_mean

    @property
    def said(self) -> list[str]:
        """The notes, with what is known of earlier releases and what the audit warns of."""
        return [
            *self.earlier.told(self.run_id),
            *self.notes,
            *(warning for audit in self.audits for warning in audit.warnings),
        ]
