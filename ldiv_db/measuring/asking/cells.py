"""What published labels cover, cut into cells by the conditions and groups of a question.

A cell is what a question does not tell apart of a label, with its share of the label's rows: by how frequent its
values are in the release, as far as labels tell (`weigh_pieces`). Only distinct labels with their rows are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, refused
from ldiv_db.database.flow import Flow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.questions import KEY, Asked, Condition, Constant, Grouping
from ldiv_db.database.steps import OneStatement
from ldiv_db.measuring.asking.columns import Exact, Labelled
from ldiv_db.recoding import labels
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Taxonomy

#: Stands for an end that is not there; what is as large is no bound. Positions beyond `_ENDLESS` are such ends.
FAR, _ENDLESS = 1e300, 4.6e18
_EPOCH, _DAY = datetime(1970, 1, 1), 86_400_000_000
#: Whole numbers that a double holds, and the most groups of a column.
_EXACT, _MOST_GROUPS = 2.0**53, 100_000
_BOXES = Identifier("b")


@dataclass(frozen=True)
class Part:
    """A column of a question, and what is asked of it.

    A column of labels is cut: `labels` has its columns and value_no, `cells` is as `merge_cells` has them; `on_line`
    that they have numbers or times, and `unit` is the distance of neighbouring values, 0 where there is none. Where it
    is `crossed`, cells tell which other label of the column stands for a value alone.
    """

    place: int
    column: Exact | Labelled
    conditions: Sequence[Condition] = ()
    grouping: Grouping | None = None
    figures: Sequence[Asked] = ()
    crossed: bool = False
    labels: Relation | None = None
    cells: Relation | None = None
    on_line: bool = False
    is_time: bool = False
    unit: float = 0

    number = NamedAfter("v{0.place}")
    own = NamedAfter("{0.column.name}")
    alone = NamedAfter("alone_{0.place}")
    leaf = NamedAfter("leaf_{0.place}")

    @property
    def table(self) -> Identifier:
        """What has its conditions and groups: its cells, or of a column as it is the box."""
        return Identifier(f"c{self.place}") if self.labels else _BOXES

    @property
    def columns(self) -> Sequence[Identifier]:
        """The columns of the table that it is."""
        return self.column.axis.columns if isinstance(self.column, Labelled) else [self.own]

    @property
    def told(self) -> list[Identifier]:
        """The columns of what a question tells apart of it, none of which is NULL, but for the value of a group."""
        groups = [self.grouping.known] if self.grouping else []
        return [*groups, *(name for one in self.conditions for name in (one.sure, one.may))]

    @property
    def keys(self) -> list[Identifier]:
        """The columns that tell its cells apart."""
        return [*self.told, *self.grouped, *([self.leaf, self.alone] if self.crossed else [])]

    @property
    def grouped(self) -> list[Identifier]:
        """The column of the values of a group, if it is one."""
        return [self.grouping.grouped] if self.grouping else []

    @property
    def is_summed(self) -> bool:
        return any(figure.code for figure in self.figures)


def cut(engine: Engine, rows: Table, part: Part) -> Part:
    """The column with what its labels cover; raises PolicyError for labels that cannot be read."""
    column = part.column
    assert isinstance(column, Labelled)  # noqa: S101 - others are as they are
    numbered = labels.number_labels(engine, rows, column.axis)
    cutting = _Cutting(engine, replace(part, labels=numbered), column, labels.read_parts(engine, numbered))
    hierarchy = column.axis.hierarchy
    is_line = column.open or column.axis.bounded or hierarchy.by_range or hierarchy.by_time
    return (cutting.on_line() if is_line else None) or cutting.of_texts()


@dataclass(frozen=True)
class _Cutting:
    """A column that is being cut."""

    engine: Engine
    made: Part
    column: Labelled
    parts: Relation

    # -- numbers and times -------------------------------------------------------------------------

    def on_line(self) -> Part | None:
        """The column of ranges, of the nodes of a tree of ranges, or of stretches of time.

        None if it may have texts, and they are neither ranges nor asked about as only numbers and times are.
        """
        axis, grouping = self.column.axis, self.made.grouping
        may_be_texts = self.column.open and not axis.bounded
        if may_be_texts and not self.engine.scalar(f"{_FOLDER}/have_digits", labels=self.made.labels):
            return None
        has_times = any(_is_time(value) for one in self.made.conditions for value in one.values)
        has_times = has_times or (grouping is not None and grouping.kind == "trunc")
        kinds = ("timestamp", "real") if has_times else ("real", "timestamp")
        is_asked = self.made.is_summed or (grouping is not None and grouping.kind != "value")
        for kind in ("timestamp",) if axis.hierarchy.by_time else kinds:
            steps, flow = self._steps()
            reach = self._read(steps, flow, kind)
            if not reach["unread"]:
                is_line = is_asked or reach["ranges"] or not may_be_texts
                return self._cut(reach, steps, flow, kind == "timestamp") if is_line else None
        if may_be_texts:
            return None
        raise self._unread("neither ranges of numbers or times, nor NULL, nor *")

    def _read(self, steps: OneStatement, flow: Flow, kind: str) -> dict[str, Any]:
        """What is known of where labels lie on a line of numbers or times, when steps place them."""
        hierarchy = self.column.axis.hierarchy
        spans = None if hierarchy.taxonomy is None else steps.load("bounds", _BOUNDS, _spans_of(hierarchy.taxonomy))
        if hierarchy.by_time:
            ranges = flow.step("ranges", "read_stretches")
        else:
            ranges = labels.read_ranges(steps, flow["parts"], kind)
        placed = flow.step("placed", "place_parts", ranges=ranges, bounds=spans, endless=_ENDLESS)
        flow.know(chosen=labels.choose_reading(steps, placed, self.column.axis.sets_first)[0])
        reach = flow.params("find_reach", unit=float(_DAY if kind == "timestamp" else 1))
        return steps.record(flow.path("find_reach"), **reach)

    def _cut(self, reach: dict[str, Any], steps: OneStatement, flow: Flow, is_time: bool) -> Part:
        grouping = self.made.grouping
        unit = (float(_DAY) if is_time else 1.0) if reach["whole"] else 0.0
        placed = [(one, self._positions(one, is_time)) for one in self.made.conditions]
        conditions = [replace(one, values=values) for one, values in placed]
        made = replace(self.made, on_line=True, is_time=is_time, unit=unit, conditions=conditions)
        marks = sorted({value for _, values in placed for value in values})
        if not is_time and max([reach["widest"], *map(abs, marks)]) >= _EXACT:
            raise refused(KEY, f"{made.column.name} has numbers beyond 2^53, which are not compared exactly")
        step = 0.0 if grouping is None else unit if grouping.kind == "value" else grouping.width
        _refuse_grouping(made, step, reach)
        if grouping and grouping.kind == "bucket":
            marks, step = [*marks, *(grouping.low + n * step for n in range(grouping.buckets + 1))], 0.0
        ends = {name: reach[name] for name in ("first", "last", "nulls")}
        flow.know(marks=marks, unit=unit, step=step, stretch=grouping.unit if grouping else "")
        flow.step("pieces", "cut_ranges", stop=int(grouping is not None and grouping.kind == "floor"), **ends)
        return self._merged(made, steps, flow, "judge_numbers", far=FAR, is_time=is_time)

    def _positions(self, condition: Condition, is_time: bool) -> tuple[float, ...]:
        """Where the values of a condition lie on the line; raises PolicyError for those that lie nowhere."""
        if condition.sign in ("like", "not like"):
            raise refused(KEY, f"{condition.column} has {'times' if is_time else 'numbers'}: LIKE is of texts")
        try:
            return tuple(_position(value, is_time) for value in condition.values)
        except ValueError:
            kind = "a time" if is_time else "a number"
            raise refused(KEY, f"{condition.column} is compared with what is not {kind}") from None

    # -- texts -------------------------------------------------------------------------------------

    def of_texts(self) -> Part:
        """The column of a tree's labels, or of values and of what they begin with."""
        made, axis = self.made, self.column.axis
        if made.grouping and made.grouping.kind != "value":
            raise refused(KEY, f"{made.column.name} has texts, which are not grouped so")
        hierarchy, taxonomy, (steps, flow) = axis.hierarchy, axis.hierarchy.taxonomy, self._steps()
        first, formed, nodes = hierarchy.levels[0] if hierarchy.levels else None, None, None
        if taxonomy is not None:
            leaves = [leaf.label for leaf in taxonomy.leaves]
            values = [*((text, code, 1) for code, text in enumerate(leaves)), (None, len(leaves), 1)]
            dictionary = steps.load("dictionary", {"value": "VARCHAR", "code": "BIGINT", "used": "BIGINT"}, values)
            made = replace(made, conditions=[_of_leaves(one, taxonomy) for one in made.conditions])
            nodes = taxonomies.load(self.engine, taxonomy, made.number.name)
        else:
            formed = first.form if first and hierarchy.banded else None
            named = [_written(value) for one in made.conditions if one.sign in ("=", "<>") for value in one.values]
            told = {"named": named, "levels": hierarchy.levels, "sets_first": axis.sets_first}
            known, how = (
                "list_known_values",
                told | {"starred": hierarchy.prefix is not None, "formed": formed is not None},
            )
            dictionary = steps.keep("dictionary", flow.path(known), **flow.params(known, **how))
        last, known_by = self.engine.count(dictionary) - 1, {"nodes": nodes, "levels": hierarchy.levels, "type": None}
        found = labels.find_values(steps, flow["parts"], dictionary, last, **known_by)
        chosen, spans = labels.choose_reading(steps, found, axis.sets_first)
        flow.know(dictionary=dictionary, chosen=chosen, spans=spans, formed=formed, open=taxonomy is None)
        flow.step("pieces", "list_pieces", starred=hierarchy.prefix is not None or not hierarchy.banded)
        folds = first.same if first else ()
        exact = not hierarchy.banded or bool(folds)
        return self._merged(made, steps, flow, "judge_texts", folds=folds, exact=exact)

    def _steps(self) -> tuple[OneStatement, Flow]:
        steps = OneStatement(self.engine)
        return steps, Flow(steps, _FOLDER, labels=self.made.labels, parts=self.parts)

    def _merged(self, made: Part, steps: OneStatement, flow: Flow, judge: str, **how: Any) -> Part:
        """The column with its cells: pieces by what the question tells apart of them."""
        by = ("low", "high", "value") if made.on_line else ("value", "prefix")
        flow.step("pieces", "weigh_pieces", by=by, told=("endless",) if made.on_line else ())
        if made.crossed:
            flow.step("pieces", "find_leaves", part=made, by=by)
        flow.step("judged", judge, part=made, **how)
        cells = steps.keep("cells", flow.path("merge_cells"), **flow.params("merge_cells", part=made))
        kinds = {"labels": self.made.labels, "cells": cells, "part": made}
        found = self.engine.materialise("labels", flow.path("find_kinds"), **kinds)
        if self.engine.count(found, Where("value_no", None)):
            taxonomy = self.column.axis.hierarchy.taxonomy
            raise self._unread(f"not in the taxonomy {taxonomy.origin}" if taxonomy else "sets that cannot be read")
        return replace(made, labels=found, cells=cells)

    def _unread(self, what: str) -> PolicyError:
        return refused(KEY, f"some labels of {self.made.column.name} are {what}", "is it the right policy?")


_FOLDER = "measuring/asking"
_BOUNDS = {"label": "VARCHAR", "least": "DOUBLE", "beyond": "DOUBLE"}


def _refuse_grouping(made: Part, step: float, reach: dict[str, Any]) -> None:
    """Raise PolicyError for groups that a column on a line does not have, or too many of them."""
    grouping, name = made.grouping, made.column.name
    if grouping is None:
        return
    if grouping.kind != "value" and (grouping.kind == "trunc") is not made.is_time:
        raise refused(KEY, f"{name} has {'times' if made.is_time else 'numbers'}, which are not grouped so")
    if grouping.kind == "value" and not made.unit:
        what = f"{name} is no group: its values are no whole numbers or days"
        raise refused(KEY, what, f"floor({name} / 10) * 10, or date_trunc('month', {name})")
    hours = 3_600_000_000.0 if grouping.unit == "hour" else float(_DAY)
    width = hours if grouping.kind == "trunc" else step
    if width and ((reach["last"] or 0) - (reach["first"] or 0)) / width > _MOST_GROUPS:
        raise refused(KEY, f"{name} makes more than {_MOST_GROUPS:,} groups", "take wider ones")


def _spans_of(taxonomy: Taxonomy) -> list[tuple[Any, ...]]:
    """(label, least, beyond) of the nodes of a tree of ranges."""
    leaves = [(leaf.low, leaf.min_value, leaf.max_value) for leaf in taxonomy.leaves if leaf.min_value is not None]
    found = []
    for node in taxonomy.nodes:
        own = [(least, beyond) for low, least, beyond in leaves if node.low <= low <= node.high]
        if own and node.label != ROOT_LABEL:
            found.append((node.label, min(one[0] for one in own), max(one[1] or 0 for one in own)))
    return found


def _of_leaves(condition: Condition, taxonomy: Taxonomy) -> Condition:
    """The condition by leaves, where it names nodes above them; a pattern that no leaf is like is one of nodes."""
    inner = {node.label: node for node in taxonomy.nodes if node.low < node.high and node.label != ROOT_LABEL}
    named, sign = condition.values, condition.sign
    if sign in ("like", "not like"):
        signs = {"%": ".*", "_": "."}
        pattern = re.compile("".join(signs.get(one, re.escape(one)) for one in str(named[0])), re.DOTALL)
        if any(pattern.fullmatch(leaf.label) for leaf in taxonomy.leaves):
            return condition
        named, sign = tuple(label for label in inner if pattern.fullmatch(label)), "=" if sign == "like" else "<>"
    if not named or sign not in ("=", "<>"):
        return condition
    values = list[Constant]()
    for value in named:
        node = inner.get(value) if isinstance(value, str) else None
        values += [leaf.label for leaf in taxonomy.leaves if node.low <= leaf.low <= node.high] if node else [value]
    return replace(condition, sign=sign, values=tuple(values))


def _is_time(value: Constant) -> bool:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value) is not None and "-" in value
        except ValueError:
            return False
    return isinstance(value, date)


def _position(value: Constant, is_time: bool) -> float:
    """Where a value lies: a number itself, a time by microseconds since 1970. Raises ValueError."""
    if isinstance(value, bool) or isinstance(value, date) is not (is_time and not isinstance(value, str)):
        raise ValueError("lies nowhere")
    if not is_time:
        return float(str(value))
    told = value if isinstance(value, date) else datetime.fromisoformat(str(value))
    moment = told.replace(tzinfo=None) if isinstance(told, datetime) else datetime(told.year, told.month, told.day)
    return float((moment - _EPOCH) // timedelta(microseconds=1))


def _written(value: Constant) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
