"""The columns of a published table that attackers see, as a caller names them or by a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ldiv_db.attacking.populations import people_counter
from ldiv_db.auditing.check import CheckRequest, refuse_request
from ldiv_db.auditing.refusals import refuse_people
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.quasi_identifiers import collect_hierarchies, infer, open_columns
from ldiv_db.policy.reading import of_one_table
from ldiv_db.policy.release_columns import published_columns
from ldiv_db.policy.settings import AlgorithmSpec
from ldiv_db.recoding.labels import LabelAxis
from ldiv_db.requirements import RequirementSpec


@dataclass(frozen=True)
class Columns(CheckRequest):
    """What is asked about a published table that is attacked, and how its labels are read.

    `axes` are the quasi-identifiers that people may be known by, each with its label's column or its two bounds, and
    how it covers values (by a policy only). Classes are told apart by means and medians (`centres`) as well. Of a
    `pair`, an anatomised table, they are the groups, and the quasi-identifiers are published as they are. `algorithm`
    is the policy's.
    """

    require: Sequence[RequirementSpec] = ()
    axes: Sequence[LabelAxis] = ()
    algorithm: AlgorithmSpec = field(default_factory=AlgorithmSpec)

    @property
    def ids(self) -> list[str]:
        return [*super().ids, *self.centres]

    @property
    def on_people(self) -> bool:
        """True if requirements bound no share of rows, as a class may have several rows of one person."""
        return self.counts_people and not self.by_rows

    def counting(self, question: CheckRequest) -> Columns:
        """The same with those by which a question counts people."""
        counts_people = question.counts_people or question.individual is not None
        found = replace(self, counts_people=counts_people, by_rows=question.by_rows)
        return replace(found, individual=question.individual, position=question.position)


def columns_asked(engine: Engine, table: Table, question: CheckRequest) -> Columns:
    """The columns that a question names; raises PolicyError for those that the table lacks, and if there are none."""
    names, asked, lacking = [("qi", name) for name in question.quasi_identifiers], question, list[Problem]()
    if question.pair is not None:  # which shows quasi-identifiers as they are
        lacking = missing_columns(engine, table, names, "table")
        if question.individual is not None:
            refuse_people((), "judge", is_pair=True)
        asked = replace(question, quasi_identifiers=())
    refuse_request(engine, table, asked, lacking)
    columns = Columns(question.quasi_identifiers, question.sensitive, question.require, question.class_column)
    return replace(columns, pair=question.pair, folder=question.folder).counting(question)


def columns_by_policy(engine: Engine, table: Table, policy: Policy, folder: Path) -> Columns:
    """The columns of a release under a policy: a quasi-identifier is a column of its name, or its two bounds.

    What the policy leaves open of quasi-identifiers is inferred from its source; raises PolicyError if there is none.
    """
    policy = _settled(engine, of_one_table(policy), folder)
    problems = Problems()
    hierarchies = collect_hierarchies(engine, policy.quasi_identifiers, folder, problems)
    problems.refuse()
    names = [column.name for column in columns_of(engine, table)]
    cited = published_columns(policy.released, names, {})[: len(hierarchies)]
    sets = {name for name, form in policy.released.forms.items() if form == "set"}
    axes = [
        LabelAxis(name, (column.column, *([column.high] if column.high else [])), hierarchies[name], name in sets)
        for name, column in zip(policy.quasi_identifiers, cited, strict=True)
    ]
    trees = [axis.name for axis in axes if len(axis.columns) > 1 and not axis.hierarchy.by_range]
    if trees:
        what = "is published as two bounds, and its taxonomy is of labels"
        raise PolicyError([Problem(f"quasi_identifiers.{name}", what) for name in trees])
    known, released = {name.lower(): name for name in names}, policy.released
    person, position = (known.get((name or "").lower()) for name in (released.person, released.position))
    return Columns(
        [column.name for axis in axes for column in axis.columns],
        policy.sensitive,
        policy.require,
        next(iter(released.class_ids_among(names)), None),
        folder=folder,
        individual=person,
        position=position if person else None,
        kept=policy.keep,
        counts_people=policy.counts_people,
        by_rows=policy.by_rows,
        centres={name: ranges for name, ranges in released.centres.items() if name.lower() in known},
        axes=axes,
        algorithm=policy.algorithm,
    )


def _settled(engine: Engine, policy: Policy, folder: Path) -> Policy:
    """The policy with how its quasi-identifiers generalise, inferred from the source where it does not say it."""
    names = [name for name, qi in policy.quasi_identifiers.items() if qi.is_open]
    if policy.decomposes or not names:
        return policy
    try:
        source = open_columns(engine, policy, folder)
    except PolicyError as error:
        what = f"how {', '.join(names)} generalise is inferred from the source"
        raise PolicyError(
            [*error.problems, Problem("quasi_identifiers", what, "say it in the policy where there is no source")]
        ) from error
    return infer(engine, policy, source, columns_of(engine, source))[0]


def with_people(engine: Engine, table: Table, question: CheckRequest, policy: Policy | None) -> CheckRequest:
    """The question with who counts the people of populations, if it asks for any and there is a policy.

    Raises PolicyError for a policy by which labels cannot be read, and for other quasi-identifiers than it has.
    """
    if policy is None or not any(spec.counts_people for spec in question.require):
        return question
    columns = columns_by_policy(engine, table, policy, question.folder)
    asked, known = question.quasi_identifiers, columns.quasi_identifiers
    if {name.lower() for name in asked} != {name.lower() for name in known}:
        what = "are not the policy's quasi-identifiers, by which people of a population are counted"
        raise PolicyError([Problem("qi", f"{', '.join(asked)} {what}", ", ".join(known))])
    people = people_counter(columns.axes, question.folder)
    return replace(question, quasi_identifiers=known, people=people)
