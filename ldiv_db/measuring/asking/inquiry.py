"""A question held against its table: labels cut into cells, and what the templates of an answer take of it.

Published rows are counted by labels, and by all that the question asks of other columns (boxes); a row is all
combinations of the cells of its labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Identifier
from ldiv_db.database.questions import KEY, Asked, Question
from ldiv_db.database.steps import Steps
from ldiv_db.measuring.asking.cells import FAR, Part, cut
from ldiv_db.measuring.asking.columns import Exact, Labelled

_ONE = Identifier("one")


@dataclass(frozen=True)
class Inquiry:
    """A question with its columns by their names in lower case."""

    question: Question
    parts: Mapping[str, Part]

    @classmethod
    def of(
        cls,
        engine: Engine,
        table: Table,
        question: Question,
        columns: Mapping[str, Exact | Labelled],
        crossed: Collection[str] = (),
    ) -> Inquiry:
        """The inquiry; raises PolicyError for labels that cannot be read, and for what their columns are not asked.

        Columns are `crossed` of which the table has cells alone: see `leave_taken`.
        """
        groups = {group.column.lower(): group for group in question.groups}
        parts = {}
        for place, (name, column) in enumerate(columns.items(), 1):
            figures = [figure for figure in question.figures if (figure.column or "").lower() == name]
            part = Part(place, column, question.conditions_of(name), groups.get(name), figures, name in crossed)
            parts[name] = part = _exact(part, column) if isinstance(column, Exact) else cut(engine, table, part)
            for figure in figures:
                _refuse_figure(part, figure)
        return cls(question, parts)

    @property
    def labelled(self) -> list[Part]:
        """The columns of labels."""
        return [part for part in self.parts.values() if part.labels]

    def answering(self, steps: Steps, table: Table, left_out: int) -> Flow:
        """The steps of the answer but for the last, `list_bounds`."""
        labelled, groups, figures = self.labelled, self.question.groups, [*self._figures()]
        exact = [part for part in self.parts.values() if not part.labels]
        numbers = [figure for figure in figures if figure.source == "box"]
        keys = [_ONE, *(part.number for part in labelled), *(name for part in exact for name in part.told)]
        valued = [name for part in exact for name in part.grouped]
        crossed = [part for part in labelled if part.crossed]
        flow = Flow(steps, "measuring/asking", labelled=labelled, exact=exact, keys=keys, valued=valued)
        flow.know(groups=groups, figures=figures, numbers=numbers, crossed=crossed, left_out=left_out, far=FAR / 1e100)
        flow.know(spread=[name for part in labelled if (g := part.grouping) for name in (g.known, g.grouped)])
        flow.step("boxes", "count_boxes", published=table)
        flow.step("combined", "combine_cells")
        if crossed:
            told = [name for part in labelled for name in (*part.told, *part.grouped)]
            sums = [figure for figure in figures if figure.source == "labels"]
            shown = [*told, *(name for one in sums for name in (one.low, one.high, one.mid))]
            flow.step("combined", "leave_taken", shown=shown)
        flow.step("verdicts", "judge_boxes")
        flow.step("figures", "list_figures")
        made = {figure.code for figure in figures}
        ways = (("sums", "sum_figures", {0, 1}), ("means", "average_figures", {2}), ("medians", "find_medians", {3}))
        flow.know(parts=[flow.step(name, template) for name, template, functions in ways if functions & made])
        return flow

    def _figures(self) -> Iterator[Asked]:
        """The figures as templates take them; the first is how many rows a group has."""
        if self.question.groups:
            yield Asked("count", formula=self.question.where)
        for figure in self.question.figures:
            part = self.parts.get((figure.column or "").lower())
            if part is None or not figure.code:
                yield figure
            else:
                own = replace(figure, column=part.column.name, is_time=part.is_time)
                yield replace(own, source="labels" if part.labels else "box")


def _exact(part: Part, column: Exact) -> Part:
    """A column that is published as it is; raises PolicyError for what is not asked of it."""
    kind, name, group = column.column, column.name, part.grouping
    if kind.is_list:
        raise refused(KEY, f"{name} has lists, of which nothing is asked")
    if group and group.kind != "value" and not (kind.is_time if group.kind == "trunc" else kind.is_number):
        raise refused(KEY, f"{name} is {kind.shown}, which is not grouped so")
    for figure in part.figures:
        if column.blank:
            raise refused(KEY, f"{figure.function}({name}): its values may be left blank, which no figure counts")
        if figure.code and not (kind.is_number or kind.is_time):
            raise refused(KEY, f"{figure.function}({name}): it is {kind.shown}")
    return replace(part, is_time=kind.is_time)


def _refuse_figure(part: Part, figure: Asked) -> None:
    if part.labels and figure.code and not part.on_line:
        raise refused(KEY, f"{figure.function}({figure.column}): its labels are texts")
    if part.is_time and figure.function not in ("count", "median"):
        raise refused(KEY, f"{figure.function}({figure.column}): of times only the median is answered")
