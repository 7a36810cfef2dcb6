"""What published labels cover, cut into cells by the conditions and groups of a question.

A cell is what a question does not tell apart of a label, with its share of the values that the label covers: leaves of
a tree alike, whole numbers and days alike, other numbers by length. Only distinct labels are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, refused
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation, Value
from ldiv_db.database.queries import Where
from ldiv_db.database.questions import KEY, Condition, Constant, Grouping
from ldiv_db.measuring.asking.columns import Labelled
from ldiv_db.policy.quasi_identifiers import Hierarchy
from ldiv_db.recoding import labels
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Taxonomy

#: Stands for an end that is not there; what is as large is no bound. Positions beyond `_ENDLESS` are such ends.
FAR, _ENDLESS = 1e300, 4.6e18
_EPOCH, _DAY = datetime(1970, 1, 1), 86_400_000_000
#: Whole numbers that a double holds, and the most groups of a column.
_EXACT, _MOST_GROUPS = 2.0**53, 100_000
_KINDS: tuple[tuple[type, str], ...] = ((bool, "truth"), (str, "text"), (date, "time"))


@dataclass(frozen=True)
class Judged:
    """A condition as templates take it: `sure` and `may` are the columns of whether it holds surely, and may."""

    number: int
    sign: str
    values: list[Value]
    kind: str
    #: What a text must begin with to be LIKE the value.
    fixed: Value
    column: Identifier
    blank: bool = False

    sure = NamedAfter("sure_{0.number}")
    may = NamedAfter("may_{0.number}")


@dataclass(frozen=True)
class Bucketed:
    """A grouping as templates take it."""

    kind: str
    width: Value
    low: Value
    high: Value
    buckets: Value
    times: bool
    unit: str

    @classmethod
    def of(cls, grouping: Grouping) -> Bucketed:
        high = Value(grouping.low + grouping.width * grouping.buckets)
        width, low, buckets = map(Value, (grouping.width, grouping.low, grouping.buckets))
        return cls(grouping.kind, width, low, high, buckets, grouping.times, grouping.unit)


@dataclass(frozen=True)
class CutAxis:
    """A column of labels that was cut: `labels` (its columns, value_no), `cells` as `merge_cells` has them.

    `unit` is the distance of neighbouring values, 0 where there is none; `on_line` that it has numbers or times.
    """

    place: int
    name: str
    columns: tuple[Identifier, ...]
    labels: Relation
    cells: Relation
    on_line: bool = False
    is_time: bool = False
    unit: float = 0

    table = NamedAfter("c{0.place}")
    number = NamedAfter("v{0.place}")


@dataclass(frozen=True)
class Uses:
    """What a question asks of a column: numbered conditions, a grouping, and whether its number is summed up."""

    conditions: list[tuple[int, Condition]] = field(default_factory=list)
    grouping: Grouping | None = None
    is_summed: bool = False


def judged(number: int, condition: Condition, values: Sequence[Any] | None = None, **more: Any) -> Judged:
    """The condition as templates take it, perhaps with its values as they are compared."""
    told = condition.values if values is None else values
    kinds = {next((kind for known, kind in _KINDS if isinstance(one, known)), "number") for one in condition.values}
    if len(kinds) > 1:
        raise refused(KEY, f"{condition.column} is compared with values of several types")
    first = condition.values[0] if condition.values else ""
    fixed = re.split("[%_]", first)[0] if isinstance(first, str) else ""
    kind = next(iter(kinds), "text") if values is None else "number"
    at = {"column": Identifier(condition.column)} | more
    return Judged(number, condition.sign, [*map(Value, told)], kind, Value(fixed), **at)


def cut(engine: Engine, rows: Table, column: Labelled, uses: Uses, place: int) -> CutAxis:
    """The column with what its labels cover; raises PolicyError for labels that cannot be read, naming how many."""
    axis, hierarchy = column.axis, column.axis.hierarchy
    numbered = labels.number_labels(engine, rows, axis)
    flow = EngineFlow(engine, "measuring/asking", labels=numbered, parts=labels.read_parts(engine, numbered))
    made = CutAxis(place, column.name, axis.columns, numbered, numbered)
    cutting = _Cutting(flow, made, axis.sets_first, uses)
    if axis.bounded or (hierarchy.by_range and not column.open):
        return cutting.on_line(hierarchy.taxonomy)
    if hierarchy.by_time:
        return cutting.on_line(None, of_stretches=True)
    if column.open and (found := cutting.on_line_if_ranges()):
        return found
    return cutting.of_texts(hierarchy)


@dataclass(frozen=True)
class _Cutting:
    """A column that is being cut, by what a question asks of it."""

    flow: EngineFlow
    made: CutAxis
    sets_first: bool
    uses: Uses

    # -- numbers and times -------------------------------------------------------------------------

    def on_line_if_ranges(self) -> CutAxis | None:
        """As `on_line` where labels are ranges, or are asked about as only numbers and times are; else None."""
        grouping, summed = self.uses.grouping, self.uses.is_summed
        is_asked = summed or (grouping is not None and grouping.kind != "value")
        found = self._read("real", None) or self._read("timestamp", None)
        if found is None or not (is_asked or found[0]["ranges"]):
            return None
        return self.on_line(None)

    def on_line(self, taxonomy: Taxonomy | None, of_stretches: bool = False) -> CutAxis:
        """The column of ranges, of the nodes of a tree of ranges, or of stretches of time."""
        grouping = self.uses.grouping
        has_times = any(_is_time(value) for _, one in self.uses.conditions for value in one.values)
        has_times = has_times or (grouping is not None and grouping.kind == "trunc")
        kinds = ("timestamp",) if of_stretches else ("timestamp", "real") if has_times else ("real", "timestamp")
        for kind in kinds:
            if found := self._read(kind, taxonomy, of_stretches):
                return self._cut(*found, is_time=kind == "timestamp")
        raise self._unread("neither ranges of numbers or times, nor NULL, nor *")

    def _read(
        self, kind: str, taxonomy: Taxonomy | None, of_stretches: bool = False
    ) -> tuple[dict[str, Any], Relation] | None:
        """Where labels lie on a line of numbers or times, and what is known of it; None if some cannot be read so."""
        flow, engine = self.flow, self.flow.engine
        bounds = None if taxonomy is None else engine.load("bounds", _BOUNDS, _spans_of(taxonomy))
        if of_stretches:
            ranges = flow.step("ranges", "read_stretches")
        else:
            ranges = labels.read_ranges(engine, flow["parts"], kind)
        placed = flow.step("placed", "place_parts", ranges=ranges, bounds=bounds, endless=_ENDLESS)
        chosen, _ = labels.choose_reading(engine, placed, self.sets_first)
        if labels.count_unread(engine, flow["labels"], chosen)["count"]:
            return None
        return flow.record("find_reach", chosen=chosen, unit=float(_DAY if kind == "timestamp" else 1)), chosen

    def _cut(self, reach: dict[str, Any], chosen: Relation, is_time: bool) -> CutAxis:
        flow, uses, grouping = self.flow, self.uses, self.uses.grouping
        unit = (float(_DAY) if is_time else 1.0) if reach["whole"] else 0.0
        made = replace(self.made, on_line=True, is_time=is_time, unit=unit)
        placed = [(number, one, self._positions(one, is_time)) for number, one in uses.conditions]
        widest = max([reach["widest"], *(abs(value) for _, _, values in placed for value in values)])
        if not is_time and widest >= _EXACT:
            raise refused(KEY, f"{made.name} has numbers beyond 2^53, which are not compared exactly")
        step = 0.0 if grouping is None else unit if grouping.kind == "value" else grouping.width
        self._refuse_grouping(made, step, reach)
        marks = sorted({value for _, _, values in placed for value in values})
        if grouping and grouping.kind == "bucket":
            marks, step = [*marks, *(grouping.low + n * step for n in range(grouping.buckets + 1))], 0.0
        pieces = flow.step(
            "pieces",
            "cut_ranges",
            chosen=chosen,
            marks=[*marks],
            unit=unit,
            step=step,
            stop=int(grouping is not None and grouping.kind == "floor"),
            stretch=grouping.unit if grouping else "",
            **{name: reach[name] for name in ("first", "last", "nulls")},
        )
        conditions = [judged(number, one, values) for number, one, values in placed]
        told = Bucketed.of(grouping) if grouping else None
        flow.step(
            "judged", "judge_numbers", pieces=pieces, conditions=conditions, grouping=told, unit=unit, far=FAR,
            is_time=is_time,
        )  # fmt: skip
        return replace(made, cells=flow.step("cells", "merge_cells", conditions=conditions))

    def _refuse_grouping(self, made: CutAxis, step: float, reach: dict[str, Any]) -> None:
        """Raise PolicyError for groups that the column does not have, or too many of them."""
        grouping = self.uses.grouping
        if grouping is None:
            return
        if (grouping.kind == "trunc") is not made.is_time and grouping.kind != "value":
            kind = "times" if made.is_time else "numbers"
            raise refused(KEY, f"{made.name} has {kind}, which are not grouped so")
        if grouping.kind == "value" and not made.unit:
            what = f"{made.name} is no group: its values are no whole numbers or days"
            raise refused(KEY, what, f"floor({made.name} / 10) * 10, or date_trunc('month', {made.name})")
        hours = 3_600_000_000.0 if grouping.unit == "hour" else float(_DAY)
        width = hours if grouping.kind == "trunc" else step
        if width and ((reach["last"] or 0) - (reach["first"] or 0)) / width > _MOST_GROUPS:
            raise refused(KEY, f"{made.name} makes more than {_MOST_GROUPS:,} groups", "take wider ones")

    def _positions(self, condition: Condition, is_time: bool) -> list[float]:
        """Where the values of a condition lie on the line; raises PolicyError for those that lie nowhere."""
        if condition.sign in ("like", "not like"):
            raise refused(KEY, f"{condition.column} has {'times' if is_time else 'numbers'}: LIKE is of texts")
        try:
            return [_position(value, is_time) for value in condition.values]
        except ValueError:
            kind = "a time" if is_time else "a number"
            raise refused(KEY, f"{condition.column} is compared with what is not {kind}") from None

    # -- texts -------------------------------------------------------------------------------------

    def of_texts(self, hierarchy: Hierarchy) -> CutAxis:
        """The column of a tree's labels, or of values and of what they begin with."""
        flow, engine, taxonomy = self.flow, self.flow.engine, hierarchy.taxonomy
        conditions = self.uses.conditions
        formed = hierarchy.levels[0].form if hierarchy.levels and hierarchy.banded else None
        starred = hierarchy.prefix is not None
        if taxonomy is not None:
            leaves = [leaf.label for leaf in taxonomy.leaves]
            known = [*((text, code, 1) for code, text in enumerate(leaves)), (None, len(leaves), 1)]
            dictionary = engine.load("dictionary", {"value": "VARCHAR", "code": "BIGINT", "used": "BIGINT"}, known)
            conditions = [(number, _of_leaves(one, taxonomy)) for number, one in conditions]
            nodes = taxonomies.load(engine, taxonomy, self.made.table.name)
        else:
            named = [_written(value) for _, one in conditions if one.sign in ("=", "<>") for value in one.values]
            how = {"levels": hierarchy.levels, "starred": starred, "formed": formed is not None}
            how |= {"sets_first": self.sets_first}
            dictionary, nodes = flow.step("dictionary", "list_known_values", named=named, **how), None
        last = engine.count(dictionary) - 1
        known_by = {"nodes": nodes, "levels": hierarchy.levels, "type": None}
        found = labels.find_values(engine, flow["parts"], dictionary, last, **known_by)
        chosen, spans = labels.choose_reading(engine, found, self.sets_first)
        if labels.count_unread(engine, flow["labels"], chosen)["count"]:
            raise self._unread(f"not in the taxonomy {taxonomy.origin}" if taxonomy else "sets that cannot be read")
        nulls = int(engine.count(flow["parts"], Where("word", "null")) > 0)
        pieces = flow.step(
            "pieces", "list_pieces", spans=spans, chosen=chosen, dictionary=dictionary, nulls=nulls,
            open=taxonomy is None, starred=starred or not hierarchy.banded, formed=formed,
        )  # fmt: skip
        told = [judged(number, one) for number, one in conditions]
        steps = hierarchy.levels[0].same if hierarchy.levels else ()
        grouping = Bucketed.of(self.uses.grouping) if self.uses.grouping else None
        if grouping and grouping.kind != "value":
            raise refused(KEY, f"{self.made.name} has texts, which are not grouped so")
        flow.step(
            "judged", "judge_texts", pieces=pieces, conditions=told, grouping=grouping, steps=steps,
            exact=not hierarchy.banded or bool(steps),
        )  # fmt: skip
        return replace(self.made, cells=flow.step("cells", "merge_cells", conditions=told))

    def _unread(self, what: str) -> PolicyError:
        return refused(KEY, f"some labels of {self.made.name} are {what}", "is it the right policy?")


_BOUNDS = {"label": "VARCHAR", "least": "DOUBLE", "beyond": "DOUBLE"}


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
    leaves = {leaf.low: leaf.label for leaf in taxonomy.leaves}
    if condition.sign in ("like", "not like"):
        pattern = re.compile(_regex(str(condition.values[0])), re.DOTALL)
        if any(map(pattern.fullmatch, leaves.values())):
            return condition
        named = [node for label, node in inner.items() if pattern.fullmatch(label)]
        sign: Any = "=" if condition.sign == "like" else "<>"
        values: list[Constant] = [
            text for node in named for low, text in leaves.items() if node.low <= low <= node.high
        ]
        return Condition(condition.column, sign, tuple(values)) if values else condition
    if condition.sign not in ("=", "<>"):
        return condition
    values = []
    for value in condition.values:
        node = inner.get(value) if isinstance(value, str) else None
        values += [value] if node is None else [t for low, t in leaves.items() if node.low <= low <= node.high]
    return replace(condition, values=tuple(values))


def _regex(pattern: str) -> str:
    return "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern)


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
