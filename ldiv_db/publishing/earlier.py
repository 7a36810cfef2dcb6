"""Earlier releases of a source, as a run and its plan tell of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ldiv_db.attacking.gains import Attack
from ldiv_db.database.errors import PolicyError, Problem, refused
from ldiv_db.publishing.fingerprints import Fingerprint


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
_KEEP = "name a database file in place of :memory:, or one as catalog, to keep it"


@dataclass(frozen=True)
class Earlier:
    """The earlier release of this source that a new one is held against, if the ledger knows one.

    With its `seed` the run publishes the same again; None where source or policy are others, or are not known to be the
    same. `same_rows` says whether the source has the rows of every earlier release at least, None if that is not known;
    `independent` that the policy takes releases of changed rows for independent. `fingerprint` is that of the new run,
    None if it has none.
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
    #: What both releases tell, by attribute, or in words why that was not measured.
    compared: tuple[Attack, ...] | str = ""
    #: Where the ledger is not kept, so that no later run can know of this one: what is to be said, or refused.
    forgotten: Forgotten | None = None

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
        return [*self._told_of_before(run_id), *([str(self.forgotten)] if self.forgotten else [])]

    def _told_of_before(self, run_id: str) -> list[str]:
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
                why = f"what both reveal together was not measured: {self.compared}"
                return [see, *([why] if self.compared else [])]
            return [see, *map(_told_by_both, self.compared)]
        return [str(self._changed)]

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
        named = "name the column that says which row is which (key: …), and releases are made to go together"
        hint = f"{named}; or set over_time: independent, and make sure that nobody has both"
        if self.run_id is not None:
            hint += f"; or, if its release was never handed out, `ldiv runs withdraw DATABASE {self.run_id}`"
        return Problem("key", what, hint)


def _told_by_both(attack: Attack) -> str:
    figures = attack.figures
    whose = f"the {attack.sensitive} of {figures['one_value']:,} of {figures['people']:,} people of the source"
    alone = f"{figures['one_value_in_one_release']:,} of them by one of the two alone"
    more = f"of {figures['above_promise_of_one']:,} it is surer than one release promises"
    drawn = f" ({attack.untried})" if attack.untried else ""
    return f"who has both, and knows everybody's quasi-identifiers, is certain of {whose}, {alone}; {more}{drawn}"
