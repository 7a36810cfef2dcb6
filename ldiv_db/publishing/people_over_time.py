"""Nights of people: each publishes the rows that none before did, and is judged by the people who have them.

Whose the rows of earlier nights are is told by no table, and by no ledger. So the ledger keeps a hash of what was
audited, by which the next night and a check see that it is still that. What nobody promises is that values stay hidden
that a person has on every night: how many have one alone that all their nights allow is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one
from ldiv_db.database.errors import AuditError, count_phrase, refused
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.resolve import Resolved, Source
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.fingerprints import hash_rows, keyed
from ldiv_db.publishing.ledger import ASKED, CONTENT, LAST_PERSON, table
from ldiv_db.publishing.series import ANOTHER_TARGET, Series
from ldiv_db.recoding.units import PERSON_NO

#: The person of rows of a copy of the source.
_PERSON = Identifier("p1")
ALTERED = "what earlier nights published is not what was audited by people"


@dataclass(frozen=True)
class Persisting:
    """The people with rows of several nights, and those of them with one value that all of these allow."""

    sensitive: str
    people: int
    one_value: int

    def __str__(self) -> str:
        whose = f"of {count_phrase(self.people, 'person', 'people')} with rows of several nights"
        known = f"{self.one_value:,} have one {self.sensitive} alone that all their nights allow"
        return f"{whose} {known}: whoever assumes that it persists is certain of it, which no release bounds"


def persisting(engine: Engine, source: Source, series: Series, matched: Relation, published: Table) -> list[Persisting]:
    """What values tell that persist, of those people of the source who are `published`; members are entered.

    Sets are left out, of which one member may persist among others.
    """
    given: dict[str, Any] = {"matched": matched, "members": table(engine, "release_member"), "person": _PERSON}
    given |= {"class_id": Identifier(CLASS_ID), "series": series.name, "release": series.next}
    with read_as_one(engine, published, source.same) as read:
        found = {
            one.name: engine.record(
                "publishing/count_persisting", published=read, sensitive=Identifier(one.name), **given
            )
            for one in source.sensitive
            if one.name not in source.sets
        }
    return [Persisting(name, **counts) for name, counts in found.items()]


def held_of(classes: NewClasses, series: Series, published: Table) -> dict[str, Any]:
    """What the ledger keeps of a night of people, once it is `published`: its content, and the last pseudonym.

    Raises AuditError if what earlier nights published has changed since it was audited.
    """
    engine, resolved = classes.engine, classes.resolved
    if series.releases:
        kept = engine.select("kept", published, where=[Where(CLASS_ID, series.last_group, "<=")])
        if content_of(engine, kept, series.secret) != series.report.get(CONTENT):
            raise AuditError(f"{ALTERED}, nothing was published")
        engine.drop(kept)
    drawn = engine.most(classes.encoded.rows, PERSON_NO.name) if resolved.released.person else None
    last = int(drawn or series.report.get(LAST_PERSON, 0))
    content = content_of(engine, published, series.secret)
    return {CONTENT: content, LAST_PERSON: last, ASKED: asked_of(resolved, series)}


def content_of(engine: Engine, published: Table, secret: str) -> str:
    """The hash of the rows of a table, in any order, by the secret of its series."""
    columns = [Identifier(column.name) for column in columns_of(engine, published)]
    return hash_rows(engine, published, columns, None, secret)


def asked_of(resolved: Resolved, series: Series) -> str | None:
    """The keyed hash of what is asked of every night of people, and who these are; None where rows are counted."""
    policy, settings = resolved.policy, {name: one.model_dump() for name, one in resolved.policy.sensitive.items()}
    require = sorted(repr(spec.written) for spec in policy.require)
    whose = policy.individual and (policy.individual.column.lower(), policy.individual.rows)
    of_people = policy.counts_people or policy.tables
    return keyed(series.secret, (whose, require, settings)) if of_people else None


def require_same(resolved: Resolved, series: Series) -> None:
    """Raise PolicyError unless the nights before were of rows, or of people of whom the same was asked.

    Whose the rows of these nights are is no longer known, so that nothing else can be asked of them.
    """
    before, now = series.report.get(ASKED), asked_of(resolved, series)
    if series.releases and before != now:
        told = "people, and something else was asked of them" if before and now else "people" if before else "rows"
        raise refused("nights", f"those before in {series.name} are of {told}", f"{ANOTHER_TARGET}, or ask the same")
