"""Variants of a policy of several tables, each rehearsed from the start: people are put together anew under each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.attacking.question import Knowledge
from ldiv_db.attacking.tables import ALL, attack_published
from ldiv_db.auditing.check_tables import PublishedTables
from ldiv_db.database.context import Context
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.policy.tables import named_in
from ldiv_db.publishing.history import new_run
from ldiv_db.running.exploring.outcomes import VariantOutcome, risk_of
from ldiv_db.running.exploring.question import ExploreRequest
from ldiv_db.running.exploring.rehearsal import Job
from ldiv_db.running.exploring.variants import over_earlier
from ldiv_db.running.tables_run import prepare_tables, rehearse_tables


def problems_of_several(asked: ExploreRequest) -> Iterator[Problem]:
    """What of a question is about one table."""
    if asked.vary:
        yield Problem("vary", "leaves out columns of one table, and the policy names several", "vary l, k or algorithm")
    if asked.by == "utility":
        yield Problem("by", "counts are of one table, and the policy names several", "`ldiv measure` has joins")


@dataclass(frozen=True)
class TablesJob(Job):
    """A variant of several tables, whose files lie in `folder`."""

    folder: Path = Path()

    @property
    def asks_a_view(self) -> bool:
        """True, as its sources are opened again."""
        return True

    def outcome(self, engine: Engine) -> VariantOutcome:
        """All that a run does, with TEMP tables in place of the release, and what who knows all tables learns."""
        policy = over_earlier(self.variant.policy)
        ready = prepare_tables(engine, Context(folder=self.folder), policy, False, new_run())
        made, tables = rehearse_tables(ready)
        attributes = {
            named_in(one.name, name): attribute
            for one in ready.people.tables
            for name, attribute in one.resolved.required.attributes.items()
            if name
        }
        published = PublishedTables(tables, attributes, policy.sensitive, ready.task.wanted)
        attacks = attack_published(engine, policy, published, Knowledge()).attacks
        risk = risk_of(attack for attack in attacks if attack.knows == ALL)
        return VariantOutcome(self.variant, "done", "", made.algorithm, made.l, made.loss, risk)
