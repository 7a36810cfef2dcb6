"""People of a population whom the classes of a published table cover: counted for requirements that name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ldiv_db.attacking.covering import open_population, within
from ldiv_db.attacking.matching import Matches, matched
from ldiv_db.auditing.audit import CountPeople
from ldiv_db.auditing.counting import Counted
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Relation
from ldiv_db.recoding.labels import LabelAxis
from ldiv_db.requirements import Requirement


def people_counter(axes: Sequence[LabelAxis], folder: Path) -> CountPeople:
    """Counts the people of a population, a table or a file in `folder`, that each class covers.

    It raises PolicyError for a population that is not to be had or lacks a quasi-identifier, for labels that cannot be
    read, and for classes that share people where a requirement takes none that do.
    """

    def count(engine: Engine, counts: Counted, name: str, requirements: Sequence[Requirement]) -> Relation:
        people, known = open_population(engine, name, folder, within(counts, axes))
        with engine.scope() as scope:
            steps = _steps_of(engine, counts) if counts.signed else None
            with matched(engine, steps or counts.listed, known, people) as found:
                matches = found
                if steps:
                    pairs = engine.materialise("covered", "attacking/cover_sequences", steps=steps, matches=found.pairs)
                    matches = replace(found, pairs=pairs)
                refuse_shared(engine, matches, requirements)
                params = {"cells": found.cells, "matches": matches.pairs}
                return scope.keep(engine.materialise("people", "attacking/count_people", **params))

    return count


def _steps_of(engine: Engine, counts: Counted) -> Relation:
    """The different labels of the rows of each sequence, (class_no, the labels' columns, sequence_no).

    A sequence covers whom all of them cover.
    """
    assert counts.signed  # noqa: S101 - the caller has looked
    signature, labels = counts.subject.labels[0], [one.alias.name for one in counts.renamed]
    key, number = (signature, counts.subject.renamed[0].alias.name), [("class_no", "sequence_no")]
    rows = engine.join("steps", counts.signed, counts.listed, key, left_columns=labels, right_columns=number)
    different = engine.select("steps", rows, "sequence_no", *labels, distinct=True)
    columns = ("sequence_no", *labels)
    return engine.number_groups("steps", different, *columns, number="class_no", columns=columns)


def refuse_shared(engine: Engine, matches: Matches, requirements: Iterable[Requirement]) -> None:
    """Raise PolicyError if several classes cover a person and one of the requirements takes none that do."""
    labels = sorted({requirement.label for requirement in requirements if requirement.parts_people})
    if not labels:
        return

    def shared(found: str) -> Problem:
        what = f"only where classes part the people of the population, and {found} of these are in several classes"
        return Problem("require", f"{', '.join(labels)}: known {what}")

    engine.refuse_any(shared, "attacking/count_shared", cells=matches.cells, matches=matches.pairs)
