"""The answer of a published table to a question: of each group what its source would say, and between which bounds.

The steps are those of one statement, which is run here; `statement.py` writes it down for another database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ldiv_db.database.context import Listening
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase, refused, rows_phrase
from ldiv_db.database.questions import Asked, Question, read_question
from ldiv_db.database.requests import asked
from ldiv_db.database.steps import OneStatement
from ldiv_db.display import Shown
from ldiv_db.measuring.asking.cells import Part
from ldiv_db.measuring.asking.columns import columns_asked, crossed_columns
from ldiv_db.measuring.asking.inquiry import Inquiry
from ldiv_db.policy.document import Policy
from ldiv_db.recoding.labels import as_labels

#: What is shown of an answer.
ANSWERING = "answering the question"
#: A sum with a fraction is as near to what it stands for as this share of it.
_ROUNDED = 1e-12


@dataclass(frozen=True)
class AskRequest(Listening):
    """A question to a published table."""

    table: Any = None
    query: str = ""
    policy: Policy | Mapping[str, Any] | None = None
    left_out: int | None = asked(
        None, "How many rows of the source the table lacks, if no ledger says it.", of=int | None, least=0, most=2**53
    )
    folder: str | Path = "."


@dataclass(frozen=True)
class Bounds:
    """What a figure of the source surely lies between, and what it is about; None where there is no such number."""

    low: Any
    estimate: Any
    high: Any


@dataclass(frozen=True, repr=False)
class Answers(Shown):
    """The groups of an answer, each its values and its figures, in the order of the question's columns.

    `left_out` rows of the source are not published, and may be of any group; None if nobody says how many: then counts
    are bounded as those of published rows, as sums, means and medians are in any case. No group that is not listed has
    more than `unlisted` rows, None where the question has no groups.
    """

    table: str
    by: tuple[str, ...]
    figures: tuple[str, ...]
    groups: tuple[tuple[tuple[Any, ...], tuple[Bounds, ...]], ...]
    left_out: int | None
    unlisted: int | None
    notes: tuple[str, ...] = ()

    def is_exact(self, figure: Bounds) -> bool:
        """True if a figure is that of the source: its bounds are one, and nobody was left out."""
        return self.left_out == 0 and figure.low is not None and figure.low == figure.high

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON has it."""
        groups = [
            {
                "by": {name: _plain(value) for name, value in zip(self.by, values, strict=True)},
                "figures": {name: self._told(one) for name, one in zip(self.figures, bounds, strict=True)},
            }
            for values, bounds in self.groups
        ]
        told = {"left_out": self.left_out, "unlisted": self.unlisted, "notes": list(self.notes)}
        return {"table": self.table, "groups": groups, **told}

    def _told(self, figure: Bounds) -> dict[str, Any]:
        return {name: _plain(value) for name, value in vars(figure).items()} | {"exact": self.is_exact(figure)}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def answer(
    engine: Engine, table: Table, request: AskRequest, policy: Policy | None, left_out: int | None, name: str
) -> Answers:
    """The answer of a table of that `name`; `policy` is that of its release. Raises PolicyError."""
    question = read_question(request.query)
    table = as_labels(engine, table, policy.quasi_identifiers if policy else None)
    crossed = crossed_columns(question, policy)
    columns, notes = columns_asked(engine, table, [*question.columns, *crossed], policy, Path(request.folder))
    with engine.scope():
        inquiry = Inquiry.of(engine, table, question, columns, crossed)
        steps = OneStatement(engine)
        flow = inquiry.answering(steps, table, left_out or 0)
        rows = steps.rows(flow.path("list_bounds"), **flow.params("list_bounds"))
    if unread := rows[0][-1]:
        what = f"{rows_phrase(int(unread))} have labels that no release with its tables_of has"
        raise refused("policy", what, "is it the right policy?")
    by = tuple(name for name, item in question.items if not isinstance(item, Asked))
    figures = tuple(name for name, item in question.items if isinstance(item, Asked))
    found = _told(inquiry, rows, Answers(name, by, figures, (), left_out, None))
    return replace(found, notes=(*notes, *_notes(question, found, bool(crossed))))


def _notes(question: Question, found: Answers, is_crossed: bool) -> list[str]:
    notes, left_out = [], found.left_out
    if is_crossed:
        exact = [found.is_exact(one) for _, bounds in found.groups for one in bounds]
        why = "by its tables_of no row of a cell that stands under its values is elsewhere"
        notes.append(f"{why}: {sum(exact):,} of {count_phrase(len(exact), 'figure is', 'figures are')} exact")
    if left_out is None:
        notes.append("how many rows were left out is not known: bounds are of the published rows")
    elif left_out and any(figure.code for figure in question.figures):
        notes.append(f"sums, means and medians are of the published rows; rows left out: {left_out:,}")
    return notes


def _told(inquiry: Inquiry, rows: Sequence[tuple[Any, ...]], found: Answers) -> Answers:
    """The answer of the rows of `list_bounds`: the groups that are known and that somebody is estimated to be in.

    Of all others only the size is bounded.
    """
    question, width, left_out = inquiry.question, len(found.by), found.left_out or 0
    none = [Bounds(None, None, None) if one.code else Bounds(0, 0, left_out) for one in question.figures]
    groups: dict[tuple[Any, ...], list[Bounds]] = {} if width else {(): [*none]}
    unknown, largest = 0, 0
    for *row, place, low, estimate, high, _ in rows:
        values, is_known = _shown(inquiry, row[::2]), all(row[1::2])
        if place == 0:  # how many rows there are in the group
            is_listed = is_known and estimate > 0
            unknown += 0 if is_known else int(high) - left_out
            largest = largest if is_listed or not is_known else max(largest, int(high) - left_out)
            groups |= {values: [*none]} if is_listed else {}
        elif place and (own := groups.get(values)) and is_known:
            figure = question.figures[place - 1]
            part = inquiry.parts.get((figure.column or "").lower())
            own[place - 1] = _bounds(figure, bool(part and part.is_time), (low, estimate, high))
    unlisted = max(unknown, largest) + left_out if width else None
    return replace(found, groups=tuple((values, tuple(own)) for values, own in groups.items()), unlisted=unlisted)


def _shown(inquiry: Inquiry, values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of a group as the source has them: whole numbers, and days as such."""
    parts = [inquiry.parts[group.column.lower()] for group in inquiry.question.groups]
    return tuple(_own(value, part) for value, part in zip(values, parts, strict=True))


def _own(value: Any, part: Part) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    is_day = isinstance(value, datetime) and part.unit and value == datetime(*value.timetuple()[:3])
    return value.date() if is_day else value


def _bounds(figure: Asked, is_time: bool, found: tuple[Any, Any, Any]) -> Bounds:
    low, estimate, high = found
    if figure.function == "count":
        return Bounds(int(low), estimate, int(high))
    if is_time:
        return Bounds(*(v if v is None else datetime(1970, 1, 1) + timedelta(microseconds=v) for v in found))
    if figure.function in ("sum", "avg"):
        low = low if low is None or float(low).is_integer() else low - abs(low) * _ROUNDED
        high = high if high is None or float(high).is_integer() else high + abs(high) * _ROUNDED
    return Bounds(low, estimate, high)
