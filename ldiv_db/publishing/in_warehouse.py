"""A release in the warehouse where its rows lie: planned here from counts, written and audited there.

The release is staged, counted there, and the counts are audited here by the code of every audit; then it takes its
place. What is staged are its different rows with their counts, where the database repeats rows by a count; elsewhere,
and with kept columns, all rows, by a plan that goes there as a table of combinations of values with their labels and is
dropped at the end. It takes its place only if the source is what was counted. Where the database takes back a table
that was made, all of it is one transaction, which begins once all is planned, and with these questions to source and
ledger. Elsewhere the source is asked last; plan and staged release lie in the schema of the ledger, where who reads
releases has no rights.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress

from ldiv_db.database.catalog import SCHEMA, named_table
from ldiv_db.database.errors import AuditError, DatabaseError, refused
from ldiv_db.database.files import undone
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.postgres import OTHERS_NOW
from ldiv_db.database.traits_there import told_of_history
from ldiv_db.policy.release_columns import CLASS_ID
from ldiv_db.policy.resolve import Findings, Resolved
from ldiv_db.policy.targets import ONLY, Target
from ldiv_db.publishing.counted_source import SQL, PlanThere
from ldiv_db.publishing.destination import Destination
from ldiv_db.publishing.draft import Draft
from ldiv_db.publishing.ledger import PUBLISHED, WRITTEN
from ldiv_db.publishing.place_there import PlaceThere
from ldiv_db.publishing.result import Result

#: How the names of tables begin that are there for the time of a run, and of what goes with them.
_STAGED, _PLAN, _COPY, _ASIDE = "ldiv_new", "ldiv_plan", "ldiv_put", "ldiv_old"
#: Dialects in which equal kept values may be written differently, and each of them has a text.
_LOOSE = ("postgres", "sqlite")


class InWarehouse(Destination):
    """A table of the source's warehouse, the `place` of both."""

    def __init__(self, place: PlaceThere, target: Target):
        super().__init__(place.engine)
        self.keeper = self._place = place
        self.run_id = place.run_id
        self.source = place.source
        self.target = target
        self.table = named_table(target.table or "", "target.table")
        self._ledger = place.ledger

    @property
    def folder(self) -> None:
        return None

    @contextmanager
    def opened(self, resolved: Resolved | None = None) -> Iterator[Mapping[str, Relation]]:
        """A context in which a table here stands for the one that is there: its counts, if its columns are known."""
        there, table = self.source.there, self.table
        names = [column.name.lower() for column in there.columns(table)] if there.exists(table) else []
        if resolved and sorted(names) == sorted(map(str.lower, resolved.released.all)):
            yield {ONLY: self.source.as_audited(self.engine, resolved, table)}
        else:
            yield {ONLY: self.engine.load("published", {CLASS_ID: "BIGINT"}, []) if names else table}

    def refuse_place(self) -> None:
        """Raise PolicyError if no release may go there, whatever is there already."""
        there = self.source.there
        if self.table.parts[-2:-1] == (SCHEMA,):
            raise refused("target.table", f"schema {SCHEMA!r} is the ledger's own", "name another")
        if there.name(self.table) == there.name(self.source.table):
            raise refused("target", "is the source itself", "name another table")

    def refuse(self) -> None:
        """Raise PolicyError if no release may go there."""
        self.refuse_place()
        if self.target.if_exists == "fail" and self.source.there.exists(self.table):
            hint = "set if_exists: replace or append, or name another table"
            raise refused("target", f"{self.table} exists", hint)

    def checked(self, found: Findings) -> InWarehouse:
        """This place, for the release of a policy; raises PolicyError if none may go there."""
        self.refuse()
        there, is_replaced = self.source.there, self.target.if_exists == "replace"
        if is_replaced and there.dialect == "postgres" and there.exists(self.table) and self._is_made_anew(found):
            self.foreseen = [*filter(None, [there.told_of_loss(self.table, OTHERS_NOW, self.target.lose)])]
        return self

    def _is_made_anew(self, found: Findings) -> bool:
        """Whether a release has other columns than the table that it replaces; of labels no more than the names."""
        there, parts = self.source.there, (0, 1, 4, 5)
        shown = {name.lower() for name in (*found.policy.sensitive, *found.policy.keep)}
        names, told = [str(name) for name, *_ in there.described(self.table)], list[set[str]]()
        for table in (self.source.table, self.table):
            told.append({str(column) for column in there.described(table, parts) if column[0].lower() in shown})
        return names != found.policy.released.all or not told[1] <= told[0]

    def settle(self) -> bool:
        """Settle what runs left that did not end; true if there was something.

        The ledger comes first: a run that is entered and has no staged release left is one that was published.
        """
        there = self.source.there
        form = f"({_STAGED}|{_PLAN}|{_COPY}|{_ASIDE})_([0-9a-f]{{32}})_{self._mark}(?:_([0-9]+))?"
        found = [
            (place.beside(left[0]), left)
            for place in {place.parts[:-1]: place for place in (self._work, self.table)}.values()
            for name in there.tables(place)
            if (left := re.fullmatch(form, name.lower()))
        ]
        gone = [left[2] for table, left in found if left[1] == _STAGED and not self._is_in_place(table, left[3])]
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
        columns = [name for name, _ in there.released(staged)]
        if sorted(columns) != sorted(column.name for column in there.columns(self.table)):
            return False
        told = {"columns": [*map(Identifier, columns)], "counted": there.counted(staged)}
        with suppress(DatabaseError):
            differing = there.written(f"{SQL}/count_differing", staged=staged, published=self.table, **told)
            return there.rows(differing) == [(0,)]
        return True

    def publish(self, draft: Draft) -> Result:
        there = self.source.there
        with there.moment(self.table):
            if there.takes_back:
                self._require_same(draft)
            return self._publish(draft)

    def _require_same(self, draft: Draft) -> None:
        """Raise ChangedError if the source is not what was counted, PolicyError if the target may not be replaced.

        Within a transaction other runs of the source are held off, and OvertakenError is raised if one was faster.
        """
        self._place.require_same(draft.entries, draft.watch)  # before the target, which a faster run may have made
        if not draft.extends:
            self.refuse()

    @contextmanager
    def _of_what_was_counted(self, draft: Draft) -> Iterator[None]:
        """Within, the release is staged and audited; where that fails as the source changed, that is the reason."""
        try:
            yield
        except (AuditError, DatabaseError):
            self._require_same(draft)
            raise
        self._require_same(draft)

    def _publish(self, draft: Draft) -> Result:
        there, plan = self.source.there, PlanThere(self.engine, self.source, draft.classes)
        there.refresh(self.source.table)
        append = self.target.if_exists == "append" or draft.extends
        there.make_schema(self.table)
        there.make_schema(self._work)
        if self.settle():
            draft.note("what an unfinished run to this target left is removed")
            self.refuse()  # what was moved aside is there again
        before = None
        if append and there.exists(self.table):
            ids = plan.classes.resolved.released.class_ids
            before = there.extent(self.table, ids[0] if ids else None)
            draft.follow(before[0])
        staged = self._work.beside(self._name(_STAGED, draft.run_id) + (f"_{before[0]}" if before else ""))
        with nullcontext() if there.takes_back else undone(self.settle):
            draft.announce()
            with nullcontext() if there.takes_back else self._of_what_was_counted(draft):
                self._stage(plan, staged, draft.run_id, before[1] if before else 0)
                if before:
                    ours, theirs = ([name for name, _ in there.released(table)] for table in (staged, self.table))
                    if ours != theirs:
                        what = f"{self.table} has the columns {', '.join(theirs)}, and the release {', '.join(ours)}"
                        raise refused("target", what, "name another table")
                there.accept(staged)
                facts = there.facts(self.table, staged)
                draft.note(facts.caution)
                if not append and there.exists(self.table):
                    draft.note(told_of_history(str(self.table), facts.history.format(table=self.table)))
                    if not there.keeps(staged, self.table):
                        why = OTHERS_NOW if facts.overwrite else "the table is made anew"
                        draft.note(there.told_of_loss(self.table, why, self.target.lose))
                others = [self.table] if before else []
                outcome = draft.audit(
                    {ONLY: self.source.as_audited(self.engine, plan.classes.resolved, staged, others)}
                )
            with self.engine.transaction():
                draft.enter(outcome, PUBLISHED if there.takes_back else WRITTEN)
            self._ledger.enter(self.engine, draft.entries, draft.watch)
            there.put(staged, self.table, append)
        if not there.takes_back:
            self._ledger.settle(self.engine, str(self.target), [])
        return outcome

    def _stage(self, plan: PlanThere, staged: Relation, run_id: str, last: int) -> None:
        """Write the release, or its different rows with their counts, beside its place."""
        there, engine, source = self.source.there, self.engine, self.source.table
        published = plan.columns()
        kept = published[len(published) - len(plan.classes.encoded.kept) :]
        exact, as_texts = there.exact(source), there.dialect in _LOOSE
        own = [column for column in published if not column.planned]
        loose = [c for c in own if c.column.name.lower() not in exact and (as_texts or c not in kept)]
        with engine.scope(), plan.classes.published(last, keyed=any(not column.planned for column in kept)) as params:
            is_as_coded = not (kept or loose or plan.classes.resolved.source.same)
            if there.traits.repeats and is_as_coded:
                rows, typed = plan.counted(params, published)
                there.lend(engine, rows, staged, typed)
                return
            planned = plan.combinations(params)
            lent = there.scratch(self._work, self._name(_PLAN, run_id))
            there.lend(engine, planned, lent)
            several = engine.least(planned, "whole") == 0
            told = {"keys": self.source.keys, "published": published, "kept": kept, "loose": loose, "several": several}
            there.create(staged, f"{SQL}/write_rows", source=source, plan=lent, **told)
            there.drop(lent)

    @property
    def _mark(self) -> str:
        return hashlib.sha256(str(self.target).encode()).hexdigest()[:8]

    def _name(self, kind: str, run_id: str) -> str:
        return f"{kind}_{run_id}_{self._mark}"

    @property
    def _work(self) -> Relation:
        return self.table if self.source.there.takes_back else self._ledger.table("run")
