"""Tables of people of whom one row is known: labels that a group of people has in common, and what a plan says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ldiv_db.database.errors import count_phrase, rows_phrase
from ldiv_db.database.names import Relation
from ldiv_db.database.table_queries import ColumnName
from ldiv_db.policy.release_columns import Form
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.recode import Assignment, Recoding, Spans, plan_recoding
from ldiv_db.recoding.stacked import Member
from ldiv_db.solving.known_rows import KnownPlan, KnownTopDown


def recoded_by_people(
    plan: KnownPlan, member: Member, own: Relation, encoded: Encoded, recoding: Recoding, forms: Mapping[str, Form]
) -> Recoding:
    """The recoding of a member with one label for all rows of a group of people where these never vary within a person.

    `own` is (row_id among all, own_id) of its rows.
    """
    engine, shared = plan.whose.engine, plan.whose.shared_by(member)
    if not shared:
        return recoding
    numbers: list[ColumnName] = [("own_id", "row_id")]
    people = engine.join("people", plan.people, own, "row_id", left_columns=["class_id"], right_columns=numbers)
    by_people = plan_recoding(engine, replace(encoded, axes=tuple(shared)), Assignment(people), forms)
    groups: list[ColumnName] = [("class_id", "group_no")]
    pairs = engine.join("pairs", recoding.assigned, people, "row_id", left_columns=["class_id"], right_columns=groups)
    known = {span.axis.code: span for span in by_people.spans}
    rest = [name for span in recoding.spans if span.axis.code not in known for name in _bounds(span)]
    more = [name for span in by_people.spans for name in _bounds(span)]
    left = ["class_id", "rows", *rest]
    placed = engine.join(
        "placed", recoding.classes, engine.select("groups", pairs, "class_id", "group_no", distinct=True), "class_id",
        left_columns=left, right_columns=["group_no"],
    )  # fmt: skip
    classes = engine.join(
        "classes", placed, by_people.classes, ("group_no", "class_id"), left_columns=left, right_columns=more
    )
    return replace(recoding, classes=classes, spans=tuple(known.get(s.axis.code, s) for s in recoding.spans))


def _bounds(span: Spans) -> list[str]:
    """The columns of classes that its labels are found by."""
    return [column.name for column in (span.axis.low, span.axis.high, span.set_no) if column]


def told_of_known(algorithm: KnownTopDown, rows: Mapping[str, tuple[int, int]]) -> list[str]:
    """Lines on who publishes what, on whose columns are, and on rows that are left out and why."""
    whose = algorithm.whose
    left = [f"{rows_phrase(before - after)} of {name}" for name, (before, after) in rows.items() if after < before]
    every = "their rows" if left else "all of their rows, however many these are"
    told = [f"{count_phrase(whose.stack.people, 'person publishes', 'people publish')} {every}"]
    if left:
        why = [f"{count:,} as {reason}" for reason, count in algorithm.why_left_out.items()]
        least = f"by counts at least {algorithm.fewest_left_out:,} must be"
        told.append(f"{', '.join(left)} are left out: {'; '.join(why)}; {least}; nothing is promised of them")
    if whose.shared:
        columns = ", ".join(axis.name for axis in whose.shared)
        told.append(f"within a person {columns} never varies: all rows of a group of people have one label there")
    return told
