"""The people of a population that the classes of a published table cover, by what its labels say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ldiv_db.attacking.covering import KnownAxis, LabelAxis, as_text, known_axes
from ldiv_db.attacking.matching import Matches, matched
from ldiv_db.attacking.question import columns_by_policy
from ldiv_db.auditing.audit import Counted, CountPeople
from ldiv_db.auditing.check import Question
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.resolve import Described
from ldiv_db.requirements import Requirement

KEY = "require.population"


def within(counts: Counted, axes: Sequence[LabelAxis]) -> list[LabelAxis]:
    """The axes with the names that their columns have among the classes."""
    aliases = {renamed.column: renamed.alias for renamed in counts.columns}
    return [replace(axis, columns=tuple(aliases[column] for column in axis.columns)) for axis in axes]


def people_counter(axes: Sequence[LabelAxis], folder: Path) -> CountPeople:
    """Counts the people of a population, a table or a file in `folder`, that each class covers.

    It raises PolicyError for a population that is not to be had or lacks a quasi-identifier, for labels that cannot be
    read, and for classes that share people where a requirement takes none that do.
    """

    def count(engine: Engine, counts: Counted, name: str, requirements: Sequence[Requirement]) -> Relation:
        people, known = open_population(engine, name, folder, within(counts, axes))
        with matched(engine, counts.listed, known, people) as found:
            refuse_shared(engine, found, requirements)
            return engine.materialise("people", "attacking/count_people", cells=found.cells, matches=found.pairs)

    return count


def refuse_shared(engine: Engine, matches: Matches, requirements: Iterable[Requirement]) -> None:
    """Raise PolicyError if several classes cover a person and one of the requirements takes none that do."""
    labels = sorted({requirement.label for requirement in requirements if requirement.parts_people})
    if not labels:
        return

    def shared(found: str) -> Problem:
        what = f"only where classes part the people of the population, and {found} of these are in several classes"
        return Problem("require", f"{', '.join(labels)}: known {what}")

    engine.refuse_any(shared, "attacking/count_shared", cells=matches.cells, matches=matches.pairs)


def with_people(engine: Engine, table: Relation | FileRelation, question: Question, policy: Policy | None) -> Question:
    """The question with who counts the people of populations, if it asks for any and there is a policy.

    Raises PolicyError for a policy by which labels cannot be read, and for other quasi-identifiers than it has.
    """
    if policy is None or not any(spec.kind.of_people for spec in question.require):
        return question
    columns = columns_by_policy(engine, table, policy, question.folder)
    asked, labels = ({name.lower() for name in names} for names in (question.quasi_identifiers, columns.labels))
    if asked != labels:
        what = "are not the policy's quasi-identifiers, by which people of a population are counted"
        raise PolicyError([Problem("qi", f"{', '.join(question.quasi_identifiers)} {what}", ", ".join(columns.labels))])
    people = people_counter(columns.quasi_identifiers, question.folder)
    return replace(question, quasi_identifiers=columns.labels, people=people)


def open_population(
    engine: Engine, name: str, folder: Path, axes: Sequence[LabelAxis]
) -> tuple[Relation | FileRelation, list[KnownAxis]]:
    """The table of a population, and the quasi-identifiers by which its people are known: all of them."""
    people = resolve_source(engine, name, folder, KEY)
    columns = columns_of(engine, people)
    names = {column.name.lower() for column in columns}
    lacking = [axis.name for axis in axes if axis.name.lower() not in names]
    if lacking:
        raise PolicyError([Problem(KEY, f"{name} has no column {', '.join(lacking)}", "make a view that has it")])
    return as_text(engine, people), known_axes(axes, columns, KEY)


def label_axes(described: Described) -> list[LabelAxis]:
    """The quasi-identifiers of a release under a policy, each with the columns that it is published in."""
    forms = described.released.forms
    return [
        LabelAxis(
            qi.name,
            tuple(map(Identifier, described.released.columns_of(qi.name))),
            qi.hierarchy,
            forms[qi.name] == "set",
        )
        for qi in described.source.quasi_identifiers
    ]
