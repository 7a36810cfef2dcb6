"""A night of several tables: the rows of each that no earlier night published, added to what these did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.data_files import Tables
from ldiv_db.database.errors import AuditError
from ldiv_db.database.queries import Where
from ldiv_db.policy.tables import numbers_as
from ldiv_db.publishing.inference import Inference
from ldiv_db.publishing.ledger import ASKED, CONTENT, LAST_PERSON, LIMITS
from ldiv_db.publishing.pairings import LimitedAttribute, entered_limits, promised_limits
from ldiv_db.publishing.people_over_time import ALTERED, asked_of, content_of
from ldiv_db.publishing.result import Similarity
from ldiv_db.publishing.series_draft import SeriesDraft
from ldiv_db.publishing.tables_draft import NewTables
from ldiv_db.requirements import promised_by


@dataclass
class TablesNight(SeriesDraft):
    """The next night of several tables."""

    several: NewTables
    #: What was tried to find its classes, what was found of them, and what is to be said of that.
    search: dict[str, Any] = field(default_factory=dict, kw_only=True)
    similarity: Sequence[Similarity] = field(default=(), kw_only=True)
    planned: Sequence[str] = field(default=(), kw_only=True)

    @property
    def limits(self) -> list[LimitedAttribute]:
        if not self.several.wanted:
            return entered_limits(self.series.report[LIMITS])
        settings = self.start.resolved.policy.sensitive
        promises = {name: promised_by(own) for name, own in self.several.wanted.items() if name}
        return promised_limits(promises, {name: one.reading for name, one in settings.items()}, self.series.secret)

    @property
    def named(self) -> list[str]:
        return [str(target) for target in self.start.target.targets.values()]

    @property
    def notes(self) -> list[str]:
        return list(self.planned)

    def write(self, where: Tables) -> None:
        before = self.start.target.destination.before(where) if self.extends else None
        for note in self.several.write(where, before):
            self.note(note)

    def judged(self, where: Tables, counts: dict[str, Any], short_groups: int) -> tuple[list[Audit], Inference]:
        engine, series = self.engine, self.series
        self._require_unaltered(where)
        audits, read = self.several.audit(where)
        if self.loss and audits:
            people = audits[-1]
            self.loss = replace(self.loss, classes=people.classes, smallest_class=people.least_people or 0)
        content = {name: content_of(engine, where[name], series.secret) for name in self._owners}
        last, asked = self.several.last_of(read), asked_of(self.start.resolved, series)
        self.held = {CONTENT: content, LAST_PERSON: last, ASKED: asked}
        nights = [f"release {number}" for number in range(1, series.next + 1)]
        return audits, Inference.of_nights(nights, self.limits)

    @property
    def _owners(self) -> dict[str, str]:
        """The column of each table of people that says whose, or what row's, its rows are, in order of nights."""
        tables, numbers = self.several.tables, numbers_as(self.several.tables)
        return {name: numbers[name, table.owner] for name, table in tables.items() if not table.public}

    def _require_unaltered(self, where: Tables) -> None:
        """Raise AuditError if what earlier nights published has changed since it was audited."""
        if not self.series.releases:
            return
        engine, series, last = self.engine, self.series, self.several.last
        for name, owner in self._owners.items():
            kept = engine.select("kept", where[name], where=[Where(owner, last, "<=")])
            if content_of(engine, kept, series.secret) != series.report[CONTENT].get(name):
                raise AuditError(f"{ALTERED}, nothing was published")

    def figures(self) -> dict[str, Any]:
        told = {"similarity": [vars(one) for one in self.similarity]} if self.similarity else {}
        return {"loss_new": self.loss.as_dict(None) if self.loss else None, "search": self.search, **told}
