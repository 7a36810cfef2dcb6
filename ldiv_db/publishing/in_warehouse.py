"""A release in the warehouse where its rows lie: planned here from counts, written and audited there.

The plan goes there as a table of combinations of values with their labels, and is dropped at the end. The release is
staged, counted there, and the counts are audited here by the code of every audit; then it takes its place. Where the
database takes back a table that was made, all of it is one transaction; elsewhere plan and staged release lie in the
schema of the ledger, where who reads releases has no rights.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from ldiv_db.database.catalog import SCHEMA, named_table
from ldiv_db.database.counted import WEIGHT, ColumnThere, count_rows
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError, LdivError, refused
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.database.warehouses import Warehouse
from ldiv_db.policy.document import Target
from ldiv_db.publishing.destinations import Destination
from ldiv_db.publishing.draft import Draft, Outcome, RunDraft
from ldiv_db.publishing.ledger import PUBLISHED, WRITTEN
from ldiv_db.publishing.ledger_there import LedgerThere

#: How the names of tables begin that are there for the time of a run, and of what goes with them.
_STAGED, _PLAN, _COPY, _ASIDE = "ldiv_new", "ldiv_plan", "ldiv_put", "ldiv_old"
#: Dialects in which equal kept values may be written differently, and each of them has a text.
_LOOSE = ("postgres", "sqlite")
_LEFT = "what a run to this target left that did not end is removed"


@dataclass(frozen=True)
class PublishedColumn(ColumnThere):
    """A column of a release: `planned` by its combination, or a column of the source as it is."""

    name: Identifier = field(kw_only=True)
    planned: bool = False
    #: Whether some of its values are not shown.
    blank: bool = False


@dataclass(frozen=True)
class CountedSource:
    """A source of a warehouse, and the counts of its equal rows here: (keys by their working names, `weight`).

    `keys` are the quasi-identifiers and then the sensitive columns, `columns` all by their names in lower case.
    """

    there: Warehouse
    table: Relation
    columns: dict[str, ColumnThere]
    keys: Sequence[ColumnThere]
    counts: Relation


class InWarehouse(Destination):
    """A table of the source's warehouse."""

    has_rows = True

    def __init__(self, engine: Engine, source: CountedSource, target: Target, ledger: LedgerThere):
        super().__init__(engine)
        self.source = source
        self.target = target
        self.table = named_table(target.table or "", "target.table")
        self._ledger = ledger

    @property
    def folder(self) -> None:
        return None

    def refuse(self) -> None:
        """Raise PolicyError if no release may go there."""
        there = self.source.there
        if self.table.parts[-2:-1] == (SCHEMA,):
            raise refused("target.table", f"schema {SCHEMA!r} is the ledger's own", "name another")
        if there.name(self.table) == there.name(self.source.table):
            raise refused("target", "is the source itself", "name another table")
        if self.target.if_exists == "fail" and there.exists(self.table):
            hint = "set if_exists: replace or append, or name another table"
            raise refused("target", f"{self.table} exists", hint)

    def settle(self) -> bool:
        """Settle what runs left that did not end; true if there was something.

        The ledger comes first: a run that is entered and has no staged release left is one that was published.
        """
        there = self.source.there
        form = f"({_STAGED}|{_PLAN}|{_COPY}|{_ASIDE})_([0-9a-f]{{32}})_{self._mark}(?:_([0-9]+))?"
        found = [
            (there.beside(place, left[0]), left)
            for place in {place.parts[:-1]: place for place in (self._work, self.table)}.values()
            for name in there.tables(place)
            if (left := re.fullmatch(form, name.lower()))
        ]
        staged = [(table, left) for table, left in found if left[1] == _STAGED]
        gone = [left[2] for table, left in staged if not self._is_in_place(table, left[3])]
        self._ledger.settle(self.engine, str(self.target), gone)
        for table, left in found:
            if left[1] == _ASIDE:
                there.put_back(table, self.table)
            else:
                there.drop(table)
        return bool(found)

    def _is_in_place(self, staged: Relation, before: str | None) -> bool:
        """True if a staged release was put into its place, where `before` rows were that it was to be appended to.

        What cannot be compared is taken for published: the next release has to reckon with it.
        """
        there = self.source.there
        if there.takes_back or not there.exists(self.table):
            return False
        if before is not None:
            return there.extent(self.table, None)[0] > int(before)
        columns = [column.name for column in there.columns(staged)]
        if columns != [column.name for column in there.columns(self.table)]:
            return False
        relations = {"staged": staged, "published": self.table, "columns": [*map(Identifier, columns)]}
        with suppress(DatabaseError):
            return there.rows(there.written("publishing/warehouse/count_differing", **relations)) == [(0,)]
        return True

    def publish(self, draft: Draft[Outcome]) -> Outcome:
        assert isinstance(draft, RunDraft)  # noqa: S101 - releases over time are refused before
        there = self.source.there
        there.make_schema(self.table)
        there.make_schema(self._work)
        if self.settle():
            draft.note(_LEFT)
            self.refuse()  # what was moved aside is there again
        before = None
        if self.target.if_exists == "append" and there.exists(self.table):
            ids = draft.resolved.released.class_ids
            before = there.extent(self.table, ids[0] if ids else None)
            draft.earlier_rows = before[0]
        staged = there.beside(self._work, self._name(_STAGED, draft.run_id) + (f"_{before[0]}" if before else ""))
        plan = there.scratch(self._work, self._name(_PLAN, draft.run_id))
        try:
            self._stage(draft, staged, plan, before[1] if before else 0)
            outcome = draft.audit(self._as_audited(draft, staged))
            with self.engine.transaction():
                draft.enter(outcome, PUBLISHED if there.takes_back else WRITTEN)
            self._ledger.enter(self.engine, draft.run_id)
            there.put(staged, self.table, self.target.if_exists == "append")
        except BaseException:
            if not there.takes_back:
                with suppress(LdivError):  # the first error is the one to report
                    self.settle()
            raise
        if not there.takes_back:
            self._ledger.settle(self.engine, str(self.target), [])
        return cast(Outcome, outcome)

    def _stage(self, draft: RunDraft, staged: Relation, plan: Relation, last: int) -> None:
        """Write the release beside its place, by a plan that is there for that time."""
        there, engine = self.source.there, self.engine
        with engine.scope(), draft.rows(last, keyed=bool(draft.encoded.kept)) as params:
            planned = self._planned(draft, params)
            several = engine.least(planned, "whole") == 0
            there.lend(engine, planned, plan)
        published = self._published(draft, params)
        kept = published[len(published) - len(draft.encoded.kept) :]
        as_texts = there.dialect in _LOOSE
        there.create(
            staged,
            "publishing/warehouse/write_rows",
            source=self.source.table,
            plan=plan,
            keys=self.source.keys,
            published=published,
            kept=kept,
            loose=[column for column in published if not column.planned and (as_texts or column not in kept)],
            several=several,
        )
        there.drop(plan)

    def _planned(self, draft: RunDraft, params: dict[str, Any]) -> Relation:
        """The plan as it goes there, a TEMP table here."""
        engine, encoded, recoding = self.engine, draft.encoded, draft.recoding
        codes = [*encoded.codes, *(axis.code.name for axis in encoded.told)]
        cells = engine.group("cells", encoded.counted, *codes, row_id=("min", "row_id"))
        stretches = engine.materialise(
            "stretches",
            "publishing/warehouse/list_stretches",
            assigned=recoding.assigned,
            rows=encoded.members(recoding.dealt),
            cells=cells,
            codes=[*map(Identifier, codes)],
            dealt=recoding.dealt,
        )
        return engine.materialise(
            "planned",
            "publishing/warehouse/list_combinations",
            counts=self.source.counts,
            cells=cells,
            stretches=stretches,
            labels=params["labels"],
            blanked=recoding.blanked,
            keys=self.source.keys,
            axes=encoded.axes,
            told=encoded.told,
            codes=[*map(Identifier, codes)],
            shown=params["shown"],
            weight=WEIGHT,
            class_id=params["class_id"],
            last_class=params["last_class"],
        )

    def _published(self, draft: RunDraft, params: dict[str, Any]) -> list[PublishedColumn]:
        """The columns of the release, in its order."""
        ids = Identifier("class_id")
        found = [PublishedColumn(ids, ids, name=ids, planned=True)] if params["class_id"] else []
        for span in draft.recoding.spans:
            own = self._column(span.axis.name) if span.form == "value" else None
            for shown in span.shown:
                column, text = (own.column, own.as_text) if own else (shown.column, False)
                found.append(PublishedColumn(column, shown.alias, text, name=shown.column, planned=own is None))
        for place, attribute in enumerate(draft.encoded.told):
            own, blank = self._column(attribute.column.name), place == 0 and draft.recoding.blanked is not None
            found.append(PublishedColumn(own.column, own.alias, own.as_text, name=attribute.column, blank=blank))
        for kept in draft.encoded.kept:
            own = self._column(kept.column.name)
            found.append(PublishedColumn(own.column, own.alias, own.as_text, name=kept.column))
        return found

    def _column(self, name: str) -> ColumnThere:
        return self.source.columns[name.lower()]

    def _as_audited(self, draft: RunDraft, staged: Relation) -> Relation:
        """The staged rows, behind those that they are appended to, as a view here on their counts."""
        there, released = self.source.there, draft.resolved.released
        names = [*released.class_ids, *released.identifying, *(c.name for c in draft.resolved.source.sensitive)]
        texts = {key.column.name.lower() for key in self.source.keys if key.as_text}
        columns = [
            ColumnThere(Identifier(name), Identifier(f"c{place}"), name.lower() in texts)
            for place, name in enumerate(dict.fromkeys(names))
        ]
        parts = [count_rows(self.engine, there, "staged", staged, columns)]
        if draft.earlier_rows:
            earlier = count_rows(self.engine, there, "earlier", self.table, columns)
            self.engine.extend(parts[0], earlier)
        return self.engine.view("published", "database/repeat_counts", counts=parts[0], columns=columns, weight=WEIGHT)

    @property
    def _mark(self) -> str:
        return hashlib.sha256(str(self.target).encode()).hexdigest()[:8]

    def _name(self, kind: str, run_id: str) -> str:
        return f"{kind}_{run_id}_{self._mark}"

    @property
    def _work(self) -> Relation:
        """A table in whose schema work is done: beside the target where nobody sees what is not committed."""
        return self.table if self.source.there.takes_back else self._ledger.table("run")
