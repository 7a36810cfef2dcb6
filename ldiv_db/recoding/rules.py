"""Rules: what a global recoding publishes each value as, by the label that stands over it in the taxonomy.

They hold labels and, of taxonomies that were given, the leaves below them; of taxonomies that are made of the values
themselves (prefixes, stretches of time) labels alone, so that no value is told that the release does not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from ldiv_db.database.engine import Engine
from ldiv_db.policy.hierarchies import Hierarchy
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.recode import Recoding, Spans
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Node, Taxonomy

_DATE = re.compile(r"(\d{4})(?:(s)|-Q([1-4])|-(\d\d)(?:-(\d\d))?)?")


@dataclass(frozen=True)
class Rule:
    """What has a label: by `kind` the value `low`, what lies in `low..high`, begins with `low`, is any, or is NULL."""

    kind: str
    low: str | None
    high: str | None
    label: str | None


@dataclass(frozen=True)
class Span:
    """The codes `low..high`, which are published as `label`."""

    low: int
    high: int
    label: str | None


def rules_of(engine: Engine, recoding: Recoding, hierarchies: Mapping[str, Hierarchy]) -> dict[str, list[Rule]] | None:
    """The rules of every quasi-identifier of a global recoding; None if a label cannot be told from its values.

    None as well if one is published as two bounds: a rule has one label.
    """
    if any(spans.form == "bounds" for spans in recoding.spans):
        return None
    found = {}
    for spans in recoding.spans:
        try:
            found[spans.axis.name] = list(_rules(engine, spans, hierarchies[spans.axis.name]))
        except ValueError:  # a year that dates are not written with, or numbers that are not whole
            return None
    return found


def _rules(engine: Engine, spans: Spans, hierarchy: Hierarchy) -> Iterator[Rule]:
    axis = spans.axis
    if axis.taxonomy is None:
        rows = engine.rows("recoding/publish/list_number_spans", spans=spans.relation, dictionary=axis.dictionary)
        yield from (rule for row in rows for rule in _number_rules(axis, Span(*row[:3]), *row[3:]))
        return
    listed = [Span(*row) for row in engine.rows("recoding/publish/list_spans", spans=spans.relation)]
    yield from _axis_rules(axis, axis.taxonomy, listed, hierarchy)


def _number_rules(axis: Axis, span: Span, smallest: str | None, largest: str | None) -> Iterator[Rule]:
    """The rules of an interval: no number between two of them has a label, as none was in the source of the run.

    Raises ValueError for numbers that are not whole, of which none comes next.
    """
    if span.high == axis.null_code:
        yield Rule("null", None, None, span.label)
        if span.low < span.high:
            yield Rule("any", None, None, span.label)
    else:
        yield Rule("range", str(int(str(smallest))), str(int(str(largest)) + 1), span.label)


def _axis_rules(axis: Axis, taxonomy: Taxonomy, spans: Sequence[Span], hierarchy: Hierarchy) -> Iterator[Rule]:
    leaves = sorted((node for node in taxonomy.leaves if node.low != axis.null_code), key=lambda node: node.low)
    for span in spans:
        if span.high == axis.null_code:
            yield Rule("null", None, None, span.label)
        below = leaves[span.low : span.high + 1]
        if span.label == ROOT_LABEL and (len(below) == len(leaves) or hierarchy.is_flat):
            yield Rule("any", None, None, span.label)
        elif below:
            yield from _span_rules(str(span.label), below, taxonomy.by_range, hierarchy)


def _span_rules(label: str, below: Sequence[Node], by_range: bool, hierarchy: Hierarchy) -> Iterator[Rule]:
    """The rules of one label over some leaves."""
    prefix = hierarchy.prefix
    if prefix is not None:
        cut_off = len(below) > 1 or len(label) > prefix
        yield Rule("prefix", label[:-1], None, label) if cut_off else Rule("value", label, None, label)
    elif hierarchy.of_times:
        start, end = _dates(label)
        yield Rule("dates", start.isoformat(), end.isoformat(), label)
    elif by_range:
        for low, high in _joined(below):
            yield Rule("range", _plain(low), _plain(high), label)
    else:
        yield from (Rule("value", leaf.label, None, label) for leaf in below)


def _joined(leaves: Sequence[Node]) -> list[tuple[float, float]]:
    """The ranges of neighbouring leaves, as few as they make up."""
    found: list[tuple[float, float]] = []
    for leaf in leaves:
        low, high = float(leaf.min_value or 0), float(leaf.max_value or 0)
        if found and found[-1][1] == low:
            low = found.pop()[0]
        found.append((low, high))
    return found


def _plain(number: float) -> str:
    return format(Decimal(str(number)).normalize(), "f")


def _dates(label: str) -> tuple[date, date]:
    """The first day of a stretch of time, and the first after it; raises ValueError if it is none."""
    match = _DATE.fullmatch(label)
    if match is None:
        raise ValueError(label)
    year, month = int(match[1]), int(match[4] or 1)
    if match[2]:
        return date(year, 1, 1), date(year + 10, 1, 1)
    if match[5]:
        start = date(year, month, int(match[5]))
        return start, date.fromordinal(start.toordinal() + 1)
    months = 1 if match[4] else 3 if match[3] else 12
    month += 3 * (int(match[3] or 1) - 1)
    later = month + months
    return date(year, month, 1), date(year + (later - 1) // 12, (later - 1) % 12 + 1, 1)
