"""Releases of a decomposition: groups of new rows, and of those that were kept back, in tables of their own.

A row that was published keeps its group for ever. New rows, and those that were kept back, form new groups, the
longest waiting first.

Quasi-identifiers go to one table with the group of each row, sensitive values to another with each column of a group
in an order of its own, combinations of sensitive values to a third without groups, in the first release alone and where
they do not tell too much of pairings within groups (`pairings`). Sensitive values that a release has published stay in
all later ones: rows that are gone from the source, or have changed, leave their values in their group, so that
comparing releases tells nothing of them. The third table holds values as they are published, noise included: with the
true ones it would tell which are noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ldiv_db.algorithms.decomposition.encode import grouped_by, secrets_of
from ldiv_db.algorithms.decomposition.grouping import Grouping, Secret
from ldiv_db.algorithms.decomposition.steps import Groups, make_groups
from ldiv_db.algorithms.infeasible import no_class
from ldiv_db.auditing.audit import Audit, audit_individuals, audit_table, require_good
from ldiv_db.auditing.subject import Pair, Subject
from ldiv_db.database import postgres
from ldiv_db.database.context import Context
from ldiv_db.database.data_files import Table
from ldiv_db.database.errors import AuditError, InfeasibleError, count_phrase, rows_phrase
from ldiv_db.database.names import Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.policy.sensitive import of_groups
from ldiv_db.policy.sources import GROUP_ID
from ldiv_db.publishing.pairings import CombinationsDecision, LimitedAttribute, plan_combinations, promised_limits
from ldiv_db.publishing.series_draft import MATCHED, PrefixDraft, ReleaseStart, match_rows
from ldiv_db.publishing.series_target import ReleaseTables
from ldiv_db.publishing.writing import require_rows, write_rows
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.requirements import Requirement, promised_by
from ldiv_db.running.policy_algorithm import decomposition_options

#: Makes a table of what a template selects, given the table, the template and what fills its parameters.
Create = Callable[..., None]


#: Rows left over join groups at once, and are not kept back, where no later release takes them.
AT_ONCE = -1


@dataclass
class DecomposedDraft(PrefixDraft):
    """A decomposed release: its rows, the codes of their values, and its new groups."""

    encoded: Encoded
    secrets: Sequence[Secret]
    groups: Groups

    @property
    def required(self) -> dict[str, list[Requirement]]:
        """What is asked of each attribute in every group."""
        resolved = self.start.resolved
        asked, attributes = of_groups(resolved.policy), resolved.required.attributes.items()
        return {name: [s.resolve(None, one) for s in asked if s.concerns(name)] for name, one in attributes}

    @property
    def limits(self) -> list[LimitedAttribute]:
        source = self.start.source
        promises = {
            name: promised_by(one for one in wanted if name not in source.sets or one.on_people == "counts")
            for name, wanted in self.required.items()
        }
        return promised_limits(promises, source.same, self.series.secret)

    @property
    def primary(self) -> Secret:
        return primary_of(self.start.resolved, self.secrets)

    def write_tables(self, tables: ReleaseTables, before: ReleaseTables | None, made: Create | None = None) -> None:
        """As every draft; they are tables that stay, unless `made` makes others of what a template selects."""
        secrets, shown = self.secrets, self.shown
        create: Create = made or self._create
        params: dict[str, Any] = {"last": self.series.last_group, "group_id": GROUP_ID}
        create(tables.people, "publishing/list_people", rows=self.rows, new=shown, shown=self.encoded.kept, **params)
        params |= {"shown": shown, "before": before.values if before else None}
        if tables.count is not None:
            columns: dict[str, Any] = {"attribute": self.primary, "count": tables.count}
            create(tables.values, "publishing/count_values", **params, **columns)
            return
        create(tables.values, "publishing/order_values", secrets=secrets, **params)
        if tables.marginals is not None:
            create(tables.marginals, "publishing/list_marginals", secrets=secrets, shown=shown)

    def _create(self, where: Table, template: str, **params: Any) -> None:
        source, target = self.start.source, self.start.resolved.target
        types = partial(postgres.shown_types, self.engine, source.relation, list(source.types))
        self.note(write_rows(self.engine, where, target, template, params, types))

    def audit_tables(self, tables: ReleaseTables, counts: dict[str, Any], short_groups: int) -> list[Audit]:
        engine, pair = self.engine, Pair(tables.values, GROUP_ID, tables.count)
        subject = Subject(tables.people, [], pair=pair, same=self.start.source.same)
        audits = [audit_table(engine, subject, name, wanted) for name, wanted in self.required.items()]
        own = engine.select("own", self.shown, "row_id", ("group_no", "class_id"))
        beside = audit_individuals(engine, self.encoded, own) if self.rows_new else []
        require_good([*audits, *beside])
        people = engine.count(tables.people)
        require_rows(people, counts["rows_kept"] + self.rows_new)
        for audit in audits:
            if (audit.rows, audit.unmatched_groups) != (people + counts["counterfeits"], short_groups):
                raise AuditError(f"{audit.sensitive}: the two tables do not have the same rows in each group")
        for name in self.required if tables.marginals else ():
            alike = {"one": tables.values, "other": tables.marginals}
            if engine.scalar("publishing/count_unlike", columns=[name], **alike):
                raise AuditError(f"{name}: groups and combinations do not have the same values")
        return [*audits, *beside]

    def figures(self) -> dict[str, Any]:
        groups = self.groups
        return {
            "primary": self.primary.name,
            "rows_placed": groups.placed,
            "residual": sorted((rows for _, rows in groups.residual if rows), reverse=True),
            "noise": [dict(vars(lost)) for lost in groups.lost],
            "refused": [dict(vars(refused)) for refused in groups.refused],
            "exchanges": list(groups.exchanges),
            "combinations": self.combined.as_dict() if self.combined else None,
        }

    @property
    def notes(self) -> list[str]:
        note = self.combined.note if self.combined else None
        outside = self.matched.rows_in - self.matched.left_out - self.groups.rows
        is_last = outside and self.start.source.key is None
        left = f"{rows_phrase(outside)} found no group, and no release without a key takes them up: lower l"
        repeated, what = self.groups.repeated, "would have two rows of a person: their rows wait"
        parted = [f"{count_phrase(repeated, 'group', 'groups')} {what}"] if repeated else []
        told = [*parted, *([left] if is_last else []), *([note] if note else [])]
        return [*map(str, self.groups.refused), *self.start.resolved.warnings, *told]


def plan_groups(
    start: ReleaseStart,
    context: Context,
    coding: Coding,
    world: Relation | None = None,
    side_columns: Sequence[Renamed] = (),
) -> DecomposedDraft:
    """The release of the source, or of a `world`, as it will be; raises if it cannot be made."""
    engine, resolved, series, matched = start.engine, start.resolved, start.series, match_rows(start, coding, world)
    options = decomposition_options(resolved.algorithm, resolved.options)
    encoded = coding.encode(matched.rows, side_columns, MATCHED)
    secrets = secrets_of(engine, resolved, coding.sensitive)
    rows, primary = grouped_by(engine, encoded.rows, primary_of(resolved, secrets))
    is_last = resolved.transparent or resolved.source.key is None
    keeps_back = resolved.algorithm == "decomposition_plus" and not is_last
    waits = options.starvation if keeps_back else AT_ONCE
    others = tuple(secret for secret in secrets if secret is not primary)
    whose = encoded.individual.code if encoded.individual else None
    coins = (resolved.source.seed, series.next)
    task = Grouping(engine, rows, primary, others, options, *coins, context.listener.on_progress, whose)
    context.listener.on_stage("forming groups")
    groups = make_groups(task, rows, waits)
    if not groups.count and not series.groups:
        raise InfeasibleError(_no_group_reason(primary, groups))
    outside = matched.rows_in - matched.left_out - groups.rows
    if resolved.transparent and outside > 0:  # frequent values would wait: of those who are not there more is known
        what = f"{rows_phrase(outside)} found no group, and a transparent release has all of them"
        raise InfeasibleError(f"{what}: lower l, or leave out `transparent`, so that they may wait")
    combined = None  # anatomy has one attribute
    # A spelling would tell more of pairings than its value, which is what is checked.
    if resolved.algorithm != "anatomy" and (series.releases or any(secret.own for secret in secrets)):
        combined = CombinationsDecision(options.combinations, published=False)
    elif resolved.algorithm != "anatomy":
        combined = plan_combinations(engine, options.combinations, groups.shown, secrets)
    return DecomposedDraft(
        *(start, matched, rows, groups.shown, groups.count, groups.rows, encoded, secrets, groups),
        combined=combined,
        threshold=waits,
    )


def primary_of(resolved: Resolved, secrets: Sequence[Secret]) -> Secret:
    """The attribute of whose values each group has different ones."""
    return next(secret for secret in secrets if secret.name.lower() == resolved.primary.lower())


def _no_group_reason(primary: Secret, groups: Groups) -> str:
    if not groups.formed:
        values = primary.distribution
        return no_class("groups", primary.l, primary.name, values.distinct, values.rows)
    shared = "too many rows share members of their sets, or are of one person"
    return "no group can be published: " + "; ".join([*map(str, groups.refused)] or [shared])
