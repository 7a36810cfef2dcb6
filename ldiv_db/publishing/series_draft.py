"""A release that is planned but not written: what those of all algorithms have in common.

Rows are matched by their key with what earlier releases published: a row that was published stays where it is, the
others may be given to new groups. An algorithm says which, and what the tables are made of.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database import catalog
from ldiv_db.database.data_files import Table, Tables
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase, refused
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.resolve import Resolved, Source
from ldiv_db.policy.targets import ONLY
from ldiv_db.publishing import ledger
from ldiv_db.publishing.draft import Draft
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.publishing.history import Watch
from ldiv_db.publishing.inference import Combinations, Inference, Release, check_releases
from ldiv_db.publishing.ledger import Entry
from ldiv_db.publishing.pairings import CombinationsDecision, LimitedAttribute
from ldiv_db.publishing.result import Forgotten, Result
from ldiv_db.publishing.series import ANOTHER_TARGET, Series, groups_of, members_of, record_members, record_series
from ldiv_db.publishing.series_target import ReleaseTables, SeriesTarget, settle_entry
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.recoding.loss import Loss


@dataclass(frozen=True)
class ReleaseStart:
    """The start of a release: a policy held against its source, and the series so far.

    `begun` is when its work began. Notes on it come `first`; a ledger in memory is `forgotten`.
    """

    resolved: Resolved
    series: Series
    target: SeriesTarget
    watch: Watch
    begun: float = field(default_factory=time.perf_counter)
    first: Sequence[str] = ()
    forgotten: Forgotten | None = None

    @property
    def engine(self) -> Engine:
        return self.target.engine

    @property
    def source(self) -> Source:
        return self.resolved.source

    def by_seed(self, seed: int) -> ReleaseStart:
        """The start of the same release by another seed."""
        return replace(self, resolved=self.resolved.by_seed(seed))


#: What a copy of the source has besides once it is matched, and its rows keep when they are encoded.
MATCHED = tuple(map(Identifier, ("key_hash", "values_hash", "group_id", "waited", "changed", "is_new")))


@dataclass(frozen=True)
class MatchedRows:
    """A copy of the source with what earlier releases made of its rows, and the `groups` of these (group_id, rows).

    `rows` is the copy with the columns MATCHED: group_id is NULL if the row was not published before.
    """

    rows: Relation
    groups: Relation
    rows_in: int
    left_out: int


@dataclass
class SeriesDraft(Draft):
    """The next release of a series; `shown` is (row_id, group_no, ...) of its new groups, from 1.

    `rows` are encoded, with the columns MATCHED: at least those that no release has published.
    """

    start: ReleaseStart
    matched: MatchedRows
    rows: Relation
    shown: Relation
    groups_new: int
    rows_new: int
    #: After how many releases a row has waited too long, None if there is no such number.
    threshold: int | None = field(default=None, kw_only=True)
    #: What new rows lose, None if there are none, or no classes.
    loss: Loss | None = field(default=None, kw_only=True)
    #: What the ledger alone keeps of it beside limits, once it is audited.
    held: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        self.watch, self.engine, self.series = self.start.watch, self.start.engine, self.start.series

    # -- what an algorithm says of its releases --------------------------------------------------------

    @property
    @abstractmethod
    def limits(self) -> list[LimitedAttribute]:
        """What nobody may come to more than, of each sensitive attribute."""

    @property
    @abstractmethod
    def named(self) -> list[str]:
        """The tables of this release, as its result names them."""

    @abstractmethod
    def judged(self, where: Tables, counts: dict[str, Any], short_groups: int) -> tuple[list[Audit], Inference]:
        """The audits of what was written, and what it tells together with earlier releases; raises AuditError.

        It must add up to the `counts` of what became of rows, and have as many groups that lack a row.
        """

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Figures of the algorithm's work, for the result."""

    @property
    def notes(self) -> list[str]:
        """Notes for the user on the algorithm's work."""
        return []

    # -- what a destination asks for -------------------------------------------------------------------

    @property
    def replaces(self) -> bool:
        return self.start.target.one_table and (self.extends or self.start.target.replaces)

    @property
    def extends(self) -> bool:
        return self.series.releases > 0

    @property
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        own = {"series": self.series.name}
        begun = dict.fromkeys(ledger.SERIES_TABLES if self.series.is_new else (), own)
        return begun | dict.fromkeys(ledger.RELEASE_TABLES, own | {"release": self.series.next})

    def announce(self) -> None:
        start, algorithm = self.start, self.start.resolved.algorithm
        report = {"run_id": self.run_id, "algorithm": algorithm, **start.target.where}
        with self.engine.transaction():
            if len(ledger.releases(self.engine, self.series.name)) >= self.series.next:
                raise refused(start.target.key, "another release was published in the meantime", "publish again")
            record_series(self.engine, self.series, algorithm, start.source.name)
            ledger.start_release(self.engine, self.series.name, self.series.next, start.source.seed, report)

    def require_announced(self) -> None:
        if self._unsettled() is None:  # taken for a dead one, as it had no folder yet
            raise refused(self.start.target.key, "another release of the series is under way", "wait")

    def withdraw(self) -> None:
        entry = self._unsettled()
        if entry is not None:
            settle_entry(self.engine, entry)

    def _unsettled(self) -> Entry | None:
        entries = ledger.unsettled(self.engine, self.series.name)
        return next((entry for entry in entries if entry.report.get("run_id") == self.run_id), None)

    def audit(self, where: Tables) -> Result:
        """The release as written, audited and compared with all earlier ones by the keys in the ledger."""
        with self.engine.transaction(), self.engine.scope():
            record_members(self.engine, self.series, self.rows, self.shown)
            counts, short_groups = self._counted()
            audits, inference = self.judged(where, counts, short_groups)
            inference.require_good()
            return self._result(self._figures(counts), counts, audits=audits, inference=inference)

    def foreseen(self) -> Result:
        """The release before it is written, or audited."""
        counts, _ = self._counted()
        figures = {name: value for name, value in self._figures(counts).items() if name != "run_id"}
        what = "a plan: nothing was written, audited or compared with earlier releases"
        return self._result(figures, counts, what)

    def _result(self, figures: Mapping[str, Any], counts: dict[str, Any], *before: str, **found: Any) -> Result:
        start = self.start
        forgotten = [str(start.forgotten)] if start.forgotten else []
        notes = [*before, *start.first, *self.notes, *_notes(counts), *self.noted, *forgotten]
        return Result.of_night(figures, self.loss, start.source.seed, notes=notes, **found)

    def enter(self, outcome: Result, status: str) -> None:
        self.watch.hold()
        limits = {limit.column.name: limit.entry for limit in self.limits}
        judged = [{**one.entry, "sensitive": audit.sensitive} for audit in outcome.audits for one in audit.verdicts]
        told = judged or self.series.report.get("requirements", [])  # of a night without classes the night's before
        held = {"requirements": told, ledger.LIMITS: limits, **self.held}
        report = outcome.as_dict() | held | self.start.target.where
        ledger.advance_release(self.engine, self.series.name, self.series.next, report, status)

    def settle(self, in_place: bool) -> None:
        ledger.settle_release(self.engine, self.series.name, self.series.next, in_place)

    def _counted(self) -> tuple[dict[str, Any], int]:
        """Counts of what became of rows, and how many groups lack a row that is gone."""
        own = {"rows": self.rows, "shown": self.shown, "threshold": self.threshold}
        matched = {"matched": self.matched.rows, "groups": self.matched.groups}
        counts = self.engine.record("publishing/summarise_rows", **own, **matched)
        short_groups = counts.pop("short_groups")
        return counts, short_groups

    def _figures(self, counts: dict[str, Any]) -> dict[str, Any]:
        start, matched = self.start, self.matched
        figures = {
            "series": self.series.name,
            "release": self.series.next,
            "run_id": self.run_id,
            "algorithm": start.resolved.algorithm,
            "source": start.source.name,
            "file": start.resolved.target.file,
            "tables": self.named,
            "l": {limit.column.name: limit.largest_l for limit in self.limits},
            "rows_in": matched.rows_in,
            "rows_left_out": matched.left_out,
            "rows_published": counts["rows_kept"] + self.rows_new,
            "rows_first_published": self.rows_new,
            **counts,
            "groups": self.series.groups + self.groups_new,
            "groups_new": self.groups_new,
            **self.figures(),
            "inferred": [inferred.as_dict() for inferred in start.resolved.inferred],
            "versions": versions(),
            "seconds": time.perf_counter() - start.begun,
        }
        return figures | {"rows_of_table": ledger.rows_of_table(figures)}


@dataclass
class PrefixDraft(SeriesDraft):
    """The next release of a source, whose tables go by one prefix, or are one."""

    #: The decision on combinations of sensitive values, None if the algorithm knows none.
    combined: CombinationsDecision | None = field(default=None, kw_only=True)

    @abstractmethod
    def write_tables(self, tables: ReleaseTables, before: ReleaseTables | None) -> None:
        """Make the tables; what was published before stays as it is in the tables `before`."""

    @abstractmethod
    def audit_tables(self, tables: ReleaseTables, counts: dict[str, Any], short_groups: int) -> list[Audit]:
        """The audits of the tables as they stand, one a sensitive attribute; raises as `judged`."""

    def made(self, where: Tables) -> Tables:
        return {str(number): table for number, table in enumerate(self.tables(where[ONLY]).all)}

    def write(self, where: Tables) -> None:
        target = self.start.target
        lies = target.destination.before(where)[ONLY]
        before = target.tables(lies, self.series.releases) if self.extends else None
        self.write_tables(self.tables(where[ONLY]), before)

    def judged(self, where: Tables, counts: dict[str, Any], short_groups: int) -> tuple[list[Audit], Inference]:
        target = self.start.target
        prefix = catalog.read_once(self.engine, where[ONLY]) if target.one_table else where[ONLY]
        audits = self.audit_tables(self.tables(prefix).read_once(self.engine), counts, short_groups)
        before = prefix if target.one_table else target.destination.before(where)[ONLY]
        return audits, self.compare(target.releases(before, self.series.next, prefix))

    def compare(self, listed: Sequence[Release]) -> Inference:
        """What the releases up to this one tell together."""
        combinations: Combinations = "allowed" if self.combined and self.combined.allowed else "checked"
        return check_releases(self.engine, listed, self.limits, self.series.next, combinations, self.series.secret)

    def tables(self, prefix: Table) -> ReleaseTables:
        """The tables of this release; that of combinations only if they are published."""
        tables = self.start.target.tables(prefix, self.series.next)
        return tables if self.combined and self.combined.published else tables.plain

    @property
    def named(self) -> list[str]:
        return [str(table) for table in self.tables(self.start.target.prefix).all]


def _notes(counts: dict[str, Any]) -> list[str]:
    notes = []
    if changed := counts["rows_changed"]:
        rows = count_phrase(changed, "published row has", "published rows have")
        notes.append(f"{rows} other sensitive values now; the old ones stay")
    if gone := counts["counterfeits"]:
        one, several = "row is gone; its values stay in its group", "rows are gone; their values stay in their groups"
        notes.append(count_phrase(gone, f"published {one}", f"published {several}"))
    return notes


def match_rows(start: ReleaseStart, coding: Coding, world: Relation | None = None, table: str = "") -> MatchedRows:
    """The rows of the source, or of a `world` in its place, matched with earlier releases by the hashes of their keys.

    The copy of the source is dropped once it is matched. Keys of each `table` have hashes of their own.
    Raises PolicyError if keys are written otherwise than in earlier releases, so that they would not be matched.
    """
    engine, series, name = start.engine, start.series, start.source.key_name
    members = members_of(engine, series)
    secret = f"{series.secret}{table}"
    flow = EngineFlow(engine, "publishing", members=members, secret=secret, series=series.name)
    flow.know(hashed=coding.sensitive, release=series.next)
    matched = flow.step("matched", "match_rows", rows=world or coding.snapshot, key=coding.key)
    if world is None:
        engine.drop(coding.snapshot)
    if not (series.is_new or series.key.is_written_as(series.key_before)):
        key = Renamed(Identifier(name), Identifier(name))
        counts = flow.record("count_respelt", source=start.source.relation, rows=matched, key=key)
        if counts["respelt"]:
            what = f"{name} has {counts['respelt']:,} of the keys of earlier releases written otherwise"
            raise refused("key", what, "write them as before, in a view")
        if not counts["met"]:
            what = f"{name} has no key of earlier releases: everybody would count as new"
            raise refused("key", what, ANOTHER_TARGET)
    return MatchedRows(matched, groups_of(engine, series), coding.rows_in, coding.left_out)
