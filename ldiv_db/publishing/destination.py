"""What a destination is: where a draft goes, and how it gets there whole or not at all.

Tables of the source's database are made, audited and entered in the ledger in one transaction. A file is written
beside its place, closed, audited as it lies there, flushed, and moved into place; the ledger says `written` before the
move and `published` after it. A file of several releases is written as a copy of what is there, with the next one; as
it is the ledger that knows what belongs to it, it says `started` before there is a folder to write in.

Whatever moment a process dies at, the old file is there or the whole new one, and the next publication to the same
place removes what was left over and has the ledger say what is true.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldiv_db.database.addresses import Place
from ldiv_db.database.data_files import Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.sources import SourcePlace
from ldiv_db.publishing.draft import Draft
from ldiv_db.publishing.history import Watch, new_run
from ldiv_db.publishing.ledger import entries_of
from ldiv_db.publishing.result import Result


@dataclass(eq=False)
class Destination(ABC):
    """A place that a draft goes to."""

    engine: Engine
    #: Where the rows of its source lie, which keeps the ledger; None where that is the one here.
    keeper: SourcePlace | None = field(default=None, init=False)
    #: The id of the run that publishes there.
    run_id: str = field(default_factory=new_run, init=False)
    #: What a plan says that the tables lose which are replaced.
    foreseen: list[str] = field(default_factory=list, init=False)

    @property
    @abstractmethod
    def folder(self) -> Path | None:
        """The folder in which what is published takes up room, None if that is memory."""

    @property
    def place(self) -> Place | None:
        """The place where what was published can be read afterwards; None if that is not from here."""
        return None

    @abstractmethod
    def opened(self, resolved: Resolved | None = None) -> AbstractContextManager[Tables]:
        """A context in which what was published can be read, all of it by what is `resolved` of its policy."""

    def before(self, where: Tables) -> Tables:
        """Where the rows lie that a draft is added to, as it is written to `where`: there, but if that is made anew."""
        return where

    @abstractmethod
    def publish(self, draft: Draft) -> Result:
        """Write the draft, audit it, publish it and enter it in the ledger, or do nothing of it."""

    def entered(self, watch: Watch) -> dict[str, Any]:
        """What else a result says of a run that the ledger has; raises OvertakenError if another was faster there."""
        if self.keeper:
            self.keeper.enter(entries_of(watch.run_id), watch)
        return {}

    def settle_draft(self, draft: Draft, in_place: bool) -> None:
        """Have the ledger say whether what a draft has written is in its place."""
        draft.settle(in_place)
        if self.keeper:
            self.keeper.settle(draft.run_id, in_place)


def note_abandoned(draft: Draft, count: int) -> None:
    """Have the outcome say that so many runs to this target did not finish."""
    if count:
        what = f"{count_phrase(count, 'run', 'runs')} to this target did not finish"
        draft.note(f"{what}: what it left is removed, and the ledger says how far it got")
