"""A question held against its table: labels cut into cells, and what the templates of an answer take of it.

Published rows are counted by labels, and by all that the question asks of other columns (boxes); a row is all
combinations of the cells of its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Identifier, NamedAfter
from ldiv_db.database.questions import FUNCTIONS, KEY, Asked, Condition, Formula, Grouping, Question, all_of
from ldiv_db.database.steps import Steps
from ldiv_db.measuring.asking.cells import FAR, Bucketed, CutAxis, Uses, cut, judged
from ldiv_db.measuring.asking.columns import Exact, Labelled

_BOXES = Identifier("b")


@dataclass(frozen=True)
class _Group:
    """A column of groups: `alias` has it, under its `own` names."""

    place: int
    grouping: Bucketed
    alias: Identifier
    own: Identifier
    own_known: Identifier
    column: Identifier
    blank: bool = False

    grouped = NamedAfter("g{0.place}")
    known = NamedAfter("k{0.place}")


@dataclass(frozen=True)
class _Rule:
    """A formula of rows, and the columns of what is known of it."""

    place: int
    holds: Any

    share = NamedAfter("share_{0.place}")
    sure = NamedAfter("is_sure_{0.place}")
    may = NamedAfter("may_be_{0.place}")


@dataclass(frozen=True)
class _Figure:
    """A figure, by a rule, of a number: of boxes it is `number`, of labels between `low` and `high`, or 1."""

    place: int
    function: int
    formula: _Rule
    alias: Identifier = _BOXES
    column: Identifier = _BOXES
    number: Identifier | None = None
    is_time: bool = False
    is_spread: bool = False

    low = NamedAfter("low_{0.place}")
    high = NamedAfter("high_{0.place}")
    mid = NamedAfter("mid_{0.place}")


@dataclass(frozen=True)
class Inquiry:
    """A question with its columns, of which `cuts` are those of labels, and its conditions by their numbers."""

    question: Question
    columns: Mapping[str, Exact | Labelled]
    cuts: Mapping[str, CutAxis]
    numbers: Mapping[Condition, int]

    @classmethod
    def of(cls, engine: Engine, table: Table, question: Question, columns: Mapping[str, Exact | Labelled]) -> Inquiry:
        """The inquiry; raises PolicyError for labels that cannot be read, and for what their columns are not asked."""
        figures = [one for one in question.figures if one.column]
        filled = {f.column.lower(): Condition(f.column.lower(), "not null") for f in figures if f.column}
        listed = [*question.where.conditions(), *(one for name, one in filled.items() if _is_label(columns[name]))]
        numbers = {one: number for number, one in enumerate(dict.fromkeys(listed), 1)}
        groups = {group.column.lower(): group for group in question.groups}
        if len(groups) < len(question.groups):
            raise refused(KEY, "groups by a column twice", "ask twice")
        summed = {figure.column.lower() for figure in figures if figure.column and figure.function != "count"}
        cuts = {}
        for place, (name, column) in enumerate(columns.items(), 1):
            own = [(number, one) for one, number in numbers.items() if one.column.lower() == name]
            if isinstance(column, Labelled):
                cuts[name] = cut(engine, table, column, Uses(own, groups.get(name), name in summed), place)
            else:
                _refuse_exact(column, groups.get(name), [f for f in figures if f.column and f.column.lower() == name])
        found = cls(question, columns, cuts, numbers)
        for figure in figures:
            found._refuse_figure(figure)
        return found

    def answering(self, steps: Steps, table: Table, labelled: Sequence[CutAxis], left_out: int) -> Flow:
        """The steps of the answer but for the last, `list_bounds`; `labelled` are the cuts as the steps know them."""
        exact = {name: column for name, column in self.columns.items() if isinstance(column, Exact)}
        conditions = [
            judged(number, one, column=Identifier(exact[name].column.name), blank=exact[name].blank)
            for one, number in self.numbers.items()
            if (name := one.column.lower()) in exact
        ]
        groups, (figures, rules) = self._groups(), self._figures()
        flow = Flow(steps, "measuring/asking", labelled=labelled, conditions=conditions, groups=groups)
        flow.step(
            "boxes",
            "count_boxes",
            published=table,
            columns=[
                *(c for one in labelled for c in one.columns),
                *(Identifier(e.column.name) for e in exact.values()),
            ],
            groups=[group for group in groups if group.alias == _BOXES],
            numbers=[figure for figure in figures if figure.number],
        )
        flow.step("verdicts", "judge_boxes", formulas=rules, numbers=[one for one in figures if one.is_spread])
        flow.step("figures", "list_figures", figures=figures)
        made = {figure.function for figure in figures}
        ways = (("sums", "sum_figures", {0, 1}), ("means", "average_figures", {2}), ("medians", "find_medians", {3}))
        flow.know(left_out=left_out, far=FAR / 1e100)
        flow.know(parts=[flow.step(name, template) for name, template, functions in ways if functions & made])
        return flow

    def _groups(self) -> list[_Group]:
        found = []
        for place, group in enumerate(self.question.groups, 1):
            name, told = group.column.lower(), Bucketed.of(group)
            column, axis = self.columns[name], self.cuts.get(name)
            own = _Group(place, told, _BOXES, Identifier("grouped"), Identifier("known"), Identifier(column.name))
            if axis is not None:
                found.append(replace(own, alias=axis.table))
            else:
                found.append(replace(own, own=own.grouped, own_known=own.known, blank=getattr(column, "blank", False)))
        return found

    def _figures(self) -> tuple[list[_Figure], list[_Rule]]:
        rules = [_Rule(0, self._formula(self.question.where))]
        found = [_Figure(0, 0, rules[0])] if self.question.groups else []  # how many rows a group has
        for place, asked in enumerate(self.question.figures, 1):
            function, name = FUNCTIONS.index(asked.function), (asked.column or "").lower()
            axis, column = self.cuts.get(name), self.columns.get(name)
            if axis is not None:
                filled = all_of([self.question.where, Condition(name, "not null")])
                rules.append(_Rule(place, self._formula(filled)))
                found.append(_Figure(place, function, rules[-1], axis.table, is_spread=function > 0))
            elif isinstance(column, Exact):
                own, number = Identifier(column.column.name), Identifier(f"x{place}")
                found.append(_Figure(place, function, rules[0], _BOXES, own, number, column.column.is_time))
            else:
                found.append(_Figure(place, function, rules[0]))
        return found, rules

    def _formula(self, formula: Formula | Condition) -> Any:
        """The formula as templates take it: conditions with the alias of what has them."""
        if isinstance(formula, Formula):
            return {"all": formula.all, "parts": [self._formula(part) for part in formula.parts]}
        axis = self.cuts.get(formula.column.lower())
        return {"condition": judged(self.numbers[formula], formula), "alias": axis.table if axis else _BOXES}

    def is_time(self, figure: Asked) -> bool:
        """True if a figure is a time."""
        name = (figure.column or "").lower()
        axis, column = self.cuts.get(name), self.columns.get(name)
        told = axis.is_time if axis else isinstance(column, Exact) and column.column.is_time
        return figure.function != "count" and told

    def _refuse_figure(self, figure: Asked) -> None:
        axis = self.cuts.get((figure.column or "").lower())
        if axis and figure.function != "count" and not axis.on_line:
            raise refused(KEY, f"{figure.function}({figure.column}): its labels are texts")
        if self.is_time(figure) and figure.function != "median":
            raise refused(KEY, f"{figure.function}({figure.column}): of times only the median is answered")


def _is_label(column: Exact | Labelled) -> bool:
    return isinstance(column, Labelled)


def _refuse_exact(column: Exact, group: Grouping | None, figures: Sequence[Asked]) -> None:
    """Raise PolicyError for what is not asked of a column that is published as it is."""
    kind, name = column.column, column.name
    if kind.is_list:
        raise refused(KEY, f"{name} has lists, of which nothing is asked")
    if group and group.kind != "value" and not (kind.is_time if group.kind == "trunc" else kind.is_number):
        raise refused(KEY, f"{name} is {kind.shown}, which is not grouped so")
    for figure in figures:
        if column.blank:
            raise refused(KEY, f"{figure.function}({name}): its values may be left blank, which no figure counts")
        if figure.function != "count" and not (kind.is_number or kind.is_time):
            raise refused(KEY, f"{figure.function}({name}): it is {kind.shown}")
