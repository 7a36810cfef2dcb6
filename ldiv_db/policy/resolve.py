"""A policy held against its source, once: what all later steps of a run are given.

What is wrong is reported together, whatever kind it is of: what is written, columns and their types, taxonomies,
requirements, and what the rooms above know of the algorithm and the target. What cannot be judged because of
another problem is left out: without its source nothing is said of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Reading, members_of
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems, is_reported, unreported
from ldiv_db.policy.quasi_identifiers import (
    Hierarchy,
    Inferred,
    cast_of_texts,
    collect_hierarchies,
    column_problems,
    infer,
    inferred_problems,
    read_columns,
    without_uncounted,
)
from ldiv_db.policy.release_columns import ReleaseColumns, keeps_type
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.sensitive import Required, as_published, collect_attributes, collect_required, respelt_lines
from ldiv_db.policy.settings import Recode
from ldiv_db.policy.sources import SourcePlace, open_source, place_of
from ldiv_db.policy.targets import Target
from ldiv_db.requirements import ROWS_ALONE
from ldiv_db.requirements.values import Named

#: What becomes of NULL: a value like any other, a reason to leave the row out, or to refuse the source.
Nulls = Literal["value", "suppress", "reject"]


@dataclass(frozen=True)
class QuasiColumn:
    """A quasi-identifier of a source: how its values generalise, its weight in losses, what classes publish."""

    column: Column
    hierarchy: Hierarchy
    weight: float = 1.0
    recode: Recode = "tree"

    @property
    def name(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Source:
    """A source, called `name` in the policy, and what its columns are; they are named as the policy writes them.

    `nulls` is for quasi-identifiers. Where `judges_null` is false rows with NULL in place of a sensitive value are not
    judged. `seed` decides what is left to chance.
    """

    name: str
    relation: Table
    quasi_identifiers: tuple[QuasiColumn, ...]
    sensitive: tuple[Column, ...]
    keep: tuple[Column, ...]
    individual: Column | None
    key: Column | None
    nulls: Nulls
    nulls_sensitive: Nulls
    judges_null: bool
    seed: int
    #: The values of each sensitive column of which nothing is promised, as it writes them.
    harmless: Mapping[str, tuple[Named, ...]] = field(default_factory=dict)
    #: The steps after which values of a sensitive column are one, by its name.
    same: Mapping[str, Reading] = field(default_factory=dict)
    #: How many equal rows each row of the source stands for, if it holds counts; and what is kept of rows beside these.
    weight: Column | None = None
    uncounted: tuple[str, ...] = ()
    #: Whether all rows of an individual stand in one class, and whether requirements are on people.
    together: bool = False
    counts_people: bool = False
    #: The column by which a person's rows are published in their order, `aligned`, and the most rows of one person.
    order: Column | None = None
    rows_at_most: int | None = None
    #: The column that may say whose a row is, where the policy does not: its rows are counted, and nobody kept apart.
    person: Column | None = None
    #: Where its rows lie, if only counts of them are here.
    place: SourcePlace | None = field(default=None, repr=False)

    @property
    def key_name(self) -> str:
        """The column that says which row is which over time; empty if there is none."""
        return self.key.name if self.key else ""

    @property
    def sets(self) -> list[str]:
        """The sensitive columns of sets, whose members are counted."""
        return [name for name, reading in self.same.items() if members_of(reading)]

    @property
    def types(self) -> dict[str, Column]:
        """All these columns by name."""
        others = [column for column in (self.individual, self.person, self.key, self.weight, self.order) if column]
        identifying = [qi.column for qi in self.quasi_identifiers]
        return {column.name: column for column in [*others, *identifying, *self.sensitive, *self.keep]}

    def let_go(self) -> None:
        """End the moment at which it is read, where its rows lie elsewhere: all that is asked of it is here."""
        if self.place:
            self.place.let_go()

    def bare(self) -> Source:
        """The quasi-identifiers and sensitive columns alone, NULLs taken as they come."""
        nulls, nulls_sensitive = (
            "value" if nulls == "reject" else nulls for nulls in (self.nulls, self.nulls_sensitive)
        )
        nobody = replace(self, keep=(), individual=None, counts_people=False, person=None, key=None, order=None)
        return replace(nobody, nulls=nulls, nulls_sensitive=nulls_sensitive)


@dataclass(frozen=True)
class Described:
    """A source with what its columns are, what is required of a release, and which columns that has."""

    source: Source
    required: Required
    released: ReleaseColumns


@dataclass(frozen=True)
class Resolved(Described):
    """A policy held against its source.

    `columns` are all of the source's, `roles` pairs (key of the policy, column) in the policy's order; `types` are
    those of the release's columns, `folder` is where relative files lie, `limits` the l of sensitive attributes that
    stand in tables of their own, grouped by values of `primary`; a table of more than `part_rows` rows is divided.
    Later steps read the `policy` as written only to try others in its place, and to compare it with an earlier run's.
    """

    policy: Policy
    columns: Sequence[Column]
    roles: Sequence[tuple[str, str]]
    target: Target
    folder: Path
    algorithm: str
    options: Mapping[str, Any]
    suppressed: Literal["judge", "ignore", "unknown"]
    limits: Mapping[str, int]
    primary: str
    transparent: bool
    part_rows: int
    #: The share of the rows that may be left out, None for any.
    suppression: Decimal | None
    #: True if the policy has a seed, so that the release's key is as well known as the policy.
    seed_is_written: bool
    #: How quasi-identifiers generalise of which the policy does not say it.
    inferred: Sequence[Inferred] = ()
    #: True if quasi-identifiers that were not generalised may be published in their own types.
    keeps_types: bool = False
    tables_of: Sequence[Sequence[str]] = ()
    #: What the checks of the rooms above made of the parts of the policy that each is about.
    judged: Mapping[str, Any] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """The secret on which a transparent release depends, and the columns that a release from counts lacks."""
        found = []
        if self.transparent and self.seed_is_written:
            found.append(
                "transparent releases are as secret as their seed: keep the policy, which has it, as secret as the"
                " source, or leave `seed` out"
            )
        if self.source.uncounted:
            names = ", ".join(self.source.uncounted)
            found.append(f"the release lacks {names}, kept beside rows that the source only counts")
        return [*found, *respelt_lines(self.source.name, self.source.relation, self.source.sensitive)]

    @property
    def types(self) -> dict[str, str]:
        """The types of the release's columns, where all labels are text."""
        return self.released.types(self.columns)

    def by_seed(self, seed: int) -> Resolved:
        """The same by another seed."""
        return replace(self, source=replace(self.source, seed=seed))

    def under(self, engine: Engine, policy: Policy) -> Resolved:
        """The same under a policy that differs in what is required, how, and of how many rows; raises PolicyError."""
        problems = Problems()
        required = collect_required(engine, policy.require, self.required.attributes, problems)
        problems.refuse()
        spec, source = policy.algorithm, replace(self.source, counts_people=policy.counts_people)
        found = replace(self, policy=policy, source=source, required=required, suppression=policy.left_out_at_most)
        return replace(found, algorithm=spec.name, options=spec.options)

    @property
    def typed(self) -> list[str]:
        """The quasi-identifiers that are published in their own types if no class generalises them.

        Of a table that is appended to, or that later nights add to, there are none: its columns must fit all of it.
        """
        if not self.keeps_types or self.target.if_exists == "append" or self.source.key:
            return []
        columns = [qi.column for qi in self.source.quasi_identifiers if qi.column.name not in self.released.lists]
        return [column.name for column in columns if keeps_type(column, self.target.format)]


@dataclass(frozen=True)
class Findings:
    """A policy while it is checked, its source if it is to be had, and the columns of that if the policy fits them."""

    policy: Policy
    folder: Path
    source: Table | None = None
    columns: Sequence[Column] | None = None


#: A check of the rooms above of a part of the policy, and what it makes of it; it raises PolicyError.
Check = Callable[[Findings], Any]


def resolve(engine: Engine, written: Policy, folder: Path, checks: Mapping[str, Check] | None = None) -> Resolved:
    """The policy held against its source and by `checks` of the rooms above; raises PolicyError with all problems."""
    policy, known, problems = written, problems_of(written), Problems()
    source: Table | None = None
    with problems.collected():
        source = as_read(engine, policy, open_source(engine, policy.source, folder))
    columns = [] if source is None else columns_of(engine, source)
    inferred: Sequence[Inferred] = ()
    if source is not None:
        policy, inferred = infer(engine, without_uncounted(policy, columns), source, columns)
    cast = partial(cast_of_texts, engine, source or Relation(()))
    misfits = [] if source is None else column_problems(policy, columns, policy.lists_all, cast)
    problems.add([*misfits, *inferred_problems(policy, inferred)])
    described = _describe(engine, Findings(policy, folder, source, columns), problems, known)
    uncounted = [name for name in written.keep if name not in policy.keep]
    findings = Findings(policy, folder, source, None if misfits or source is None else columns)
    judged = {}
    for part, check in (checks or {}).items():
        if not is_reported(part, known):
            with problems.collected():
                judged[part] = check(findings)
    Problems([*known, *unreported(problems.found, known)]).refuse()
    assert described is not None  # noqa: S101 - there would be problems
    return Resolved(
        **vars(replace(described, source=replace(described.source, uncounted=tuple(uncounted)))),
        policy=written,
        columns=columns,
        roles=policy.roles(),
        target=policy.target,
        folder=folder,
        algorithm=policy.algorithm.name,
        options=policy.algorithm.options,
        suppressed=policy.suppressed,
        limits={name: setting.l or 1 for name, setting in policy.sensitive.items()},
        primary=policy.primary,
        transparent=policy.transparent,
        part_rows=policy.part_rows,
        suppression=policy.left_out_at_most,
        seed_is_written="seed" in policy.model_fields_set,
        inferred=inferred,
        keeps_types=policy.output.types == "keep",
        tables_of=policy.tables_of,
        judged=judged,
    )


def as_read(engine: Engine, policy: Policy, source: Table) -> Table:
    """The source with its columns as the policy reads them, those of a CSV file as they are published."""
    return read_columns(engine, policy, as_published(engine, source, policy))


def describe(engine: Engine, policy: Policy, source: Table, folder: Path) -> Described:
    """A source as the policy describes its quasi-identifiers and sensitive columns; raises PolicyError.

    Nothing else of the policy need fit it.
    """
    source = read_columns(engine, policy, as_published(engine, source, policy.model_copy(update={"keep": []})))
    columns = columns_of(engine, source)
    weight = [policy.weight] if policy.weight else []
    described = {name.lower() for name in [*policy.quasi_identifiers, *policy.sensitive, *weight]}
    aside = [column.name for column in columns if column.name.lower() not in described]
    counts_people = policy.counts_people
    policy = policy.model_copy(update={"identifiers": aside, "keep": [], "individual": None, "key": None})
    policy, inferred = infer(engine, policy, source, columns)
    cast = partial(cast_of_texts, engine, source)
    problems = Problems([*column_problems(policy, columns, cast=cast), *inferred_problems(policy, inferred)])
    found = _describe(engine, Findings(policy, folder, source, columns), problems)
    problems.refuse()
    assert found is not None  # noqa: S101 - there would be problems
    return replace(found, source=replace(found.source, counts_people=counts_people))


def _describe(
    engine: Engine, findings: Findings, problems: Problems, known: Sequence[Problem] = ()
) -> Described | None:
    """The source by the parts without a `known` problem; None if something is wrong, which is added to `problems`."""
    policy, folder, columns = findings.policy, findings.folder, findings.columns or ()
    sensitive = {n: s for n, s in policy.sensitive.items() if not is_reported(f"sensitive.{n}", known)}
    keys = {n: qi for n, qi in policy.quasi_identifiers.items() if not is_reported(f"quasi_identifiers.{n}", known)}
    hierarchies = {} if policy.decomposes else collect_hierarchies(engine, keys, folder, problems)
    attributes = collect_attributes(engine, sensitive, columns, folder, problems)
    types = {column.name.lower(): column for column in columns}
    there = {name: attribute for name, attribute in attributes.items() if name.lower() in types}
    if not policy.sensitive:
        there = {ROWS_ALONE.name: ROWS_ALONE}
    required = collect_required(engine, policy.require, there, problems, policy.sensitive)
    if problems.found or known:
        return None

    def column(name: str) -> Column:
        return replace(types[name.lower()], name=name)

    found = Source(
        name=str(policy.source),
        relation=findings.source or Relation(()),
        quasi_identifiers=tuple(
            QuasiColumn(
                column(name), hierarchies.get(name, Hierarchy(is_shown=True)), qi.weight, policy.recode_of(name)
            )
            for name, qi in policy.quasi_identifiers.items()
        ),
        sensitive=tuple(map(column, policy.sensitive)),
        keep=tuple(map(column, policy.keep)),
        individual=column(policy.individual.column) if policy.individual else None,
        together=policy.individual is not None and policy.individual.rows != "apart",
        counts_people=policy.counts_people,
        order=column(policy.individual.order) if policy.individual and policy.individual.order else None,
        rows_at_most=policy.individual.rows_at_most if policy.individual else None,
        key=column(policy.key) if policy.key else None,
        nulls=policy.nulls,
        nulls_sensitive=policy.nulls_sensitive,
        judges_null=policy.suppressed != "ignore",
        seed=policy.seed,
        harmless={name: attribute.harmless for name, attribute in there.items()},
        same={name: setting.reading for name, setting in policy.sensitive.items() if setting.reading},
        weight=column(policy.weight) if policy.weight else None,
        place=place_of(policy.source),
    )
    return Described(found, required, policy.released)
