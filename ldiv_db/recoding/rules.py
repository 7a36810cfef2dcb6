"""Rules: what a global recoding publishes each value as, by the label that stands over it; the ledger keeps them.

They hold labels and, of taxonomies that were given, the leaves below them; of taxonomies that are made of the values
themselves (prefixes, stretches of time) labels alone, so that no value is told that the release does not show.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from ldiv_db.database.catalog import catalog_table
from ldiv_db.database.engine import Engine
from ldiv_db.database.queries import Where
from ldiv_db.policy.quasi_identifiers import Hierarchy
from ldiv_db.policy.resolve import Source
from ldiv_db.recoding.encoded import Axis
from ldiv_db.recoding.recode import Recoding, Spans
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.parameters import plain_decimal
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Node, Taxonomy

_DATE = re.compile(r"(\d{4})(?:(s)|-Q([1-4])|-(\d\d)(?:-(\d\d))?)?")


@dataclass(frozen=True)
class Rule:
    """The values with a label, by `kind`: `low`, all in `low..high`, all that begin with `low`, any, or NULL."""

    kind: str
    low: str | None
    high: str | None
    label: str | None


#: Codes from the first to the last, and the label that they are published as.
_Span = tuple[int, int, str | None]


def _rules(engine: Engine, spans: Spans, hierarchy: Hierarchy) -> Iterator[Rule]:
    axis = spans.axis
    if axis.taxonomy is None:
        rows = engine.rows("recoding/publish/list_number_spans", spans=spans.relation, dictionary=axis.dictionary)
        yield from (rule for row in rows for rule in _number_rules(axis, *row))
        return
    rows = engine.columns(spans.relation, "low", "high", "label")
    yield from _axis_rules(axis, axis.taxonomy, sorted(rows, key=lambda row: row[:2]), hierarchy)


def _number_rules(
    axis: Axis, low: int, high: int, label: str | None, smallest: str | None, largest: str | None
) -> Iterator[Rule]:
    """The rules of an interval: no number between two of them has a label, as none was in the source of the run.

    Raises ValueError for numbers that are not whole, of which none comes next, and for open ends.
    """
    if axis.ends:
        raise ValueError(label)
    if high == axis.null_code:
        yield Rule("null", None, None, label)
        if low < high:
            yield Rule("any", None, None, label)
    else:
        yield Rule("range", str(int(str(smallest))), str(int(str(largest)) + 1), label)


def _axis_rules(axis: Axis, taxonomy: Taxonomy, spans: Sequence[_Span], hierarchy: Hierarchy) -> Iterator[Rule]:
    leaves = sorted((node for node in taxonomy.leaves if node.low != axis.null_code), key=lambda node: node.low)
    for low, high, label in spans:
        if high == axis.null_code:
            yield Rule("null", None, None, label)
        below = leaves[low : high + 1]
        if label == ROOT_LABEL and (len(below) == len(leaves) or hierarchy.is_flat):
            yield Rule("any", None, None, label)
        elif below:
            yield from _span_rules(str(label), below, taxonomy.by_range, hierarchy)


def _span_rules(label: str, below: Sequence[Node], by_range: bool, hierarchy: Hierarchy) -> Iterator[Rule]:
    prefix = hierarchy.prefix
    if hierarchy.banded:
        raise ValueError(label)
    if prefix is not None:
        cut_off = len(below) > 1 or len(label) > prefix
        yield Rule("prefix", label[:-1], None, label) if cut_off else Rule("value", label, None, label)
    elif hierarchy.by_time:
        start, end = _dates(label)
        yield Rule("dates", start.isoformat(), end.isoformat(), label)
    elif by_range:
        for low, high in _joined(below):
            yield Rule("range", low, high, label)
    else:
        yield from (Rule("value", leaf.label, None, label) for leaf in below)


def _joined(leaves: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """The ranges of neighbouring leaves, as few as they make up."""
    found: list[tuple[float, float]] = []
    for leaf in leaves:
        low, high = float(leaf.min_value or 0), float(leaf.max_value or 0)
        if found and found[-1][1] == low:
            low = found.pop()[0]
        found.append((low, high))
    for low, high in found:
        yield plain_decimal(Decimal(str(low))), plain_decimal(Decimal(str(high)))


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


QUASI_IDENTIFIER, SENSITIVE, KEEP = "quasi-identifier", "sensitive", "keep"
#: The role of a column of counts, of a run whose source held these in place of rows: no column of the release.
WEIGHT = "weight"
#: The ledger's tables of a recoding.
TABLES = ("run_recoding", "run_column", "run_rule")
_RECODING = {"run_id": "VARCHAR", "scheme": "VARCHAR"}
_PLACE = {"run_id": "VARCHAR", "place": "INTEGER"}
_COLUMN = _PLACE | dict.fromkeys(("name", "role", "type"), "VARCHAR") | {"nulls": "BOOLEAN"}
_RULE = _PLACE | {"number": "INTEGER"} | dict.fromkeys(("kind", "low", "high", "label"), "VARCHAR")
#: The type of a column that the source of a run lacks.
_UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class RecodedColumn:
    """A column of the release; `nulls` says whether NULL is a value, `rules` what it is published as."""

    name: str
    role: str
    type: str
    nulls: bool
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class GlobalRecoding:
    """The published values of every row, whatever the others are; `scheme` says what a violating class loses."""

    scheme: str
    columns: tuple[RecodedColumn, ...]


def recoding_of(
    engine: Engine, source: Source, recoding: Recoding, search: dict[str, Any], requirements: Iterable[Requirement]
) -> GlobalRecoding | None:
    """The recoding that a search has found; None if the rows that its scheme leaves out do not follow from it.

    None as well if a label cannot be told from its values. A SELECT knows thresholds on the values of one attribute as
    they are written, and the fewest rows and values of a class.
    """
    scheme = str(search.get("scheme", "none"))
    if scheme == "vioRec" and search.get("metric") == "CM":
        return None
    if (
        len(source.sensitive) > 1
        or source.same
        or (scheme == "allRec" and not all(one.kept_by_select for one in requirements))
    ):
        return None
    if any(spans.form in ("bounds", "set") for spans in recoding.spans):  # a rule has one label, of the value alone
        return None
    hierarchies = {qi.name: qi.hierarchy for qi in source.quasi_identifiers}
    try:
        rules = {one.axis.name: tuple(_rules(engine, one, hierarchies[one.axis.name])) for one in recoding.spans}
    except ValueError:  # a year that dates are not written with, numbers that are not whole, or labels by bands
        return None
    types = {name: column.shown for name, column in source.types.items()}
    found = [
        RecodedColumn(name, QUASI_IDENTIFIER, types[name], any(rule.kind == "null" for rule in own), own)
        for name, own in rules.items()
    ]
    nulls = source.nulls_sensitive == "value"
    found += [RecodedColumn(column.name, SENSITIVE, column.shown, nulls) for column in source.sensitive]
    found += [RecodedColumn(column.name, KEEP, column.shown, True) for column in source.keep]
    found += [RecodedColumn(name, KEEP, _UNKNOWN, True) for name in source.uncounted]
    found += [RecodedColumn(source.weight.name, WEIGHT, source.weight.shown, False)] if source.weight else []
    return GlobalRecoding(scheme, tuple(found))


def record_recoding(engine: Engine, run_id: str, recoding: GlobalRecoding) -> None:
    """Enter a run's recoding into the ledger, which is up to date; call inside a transaction."""
    engine.append(catalog_table(engine, "run_recoding"), _RECODING, [(run_id, recoding.scheme)])
    listed = list(enumerate(recoding.columns, 1))
    columns = [(run_id, place, c.name, c.role, c.type, c.nulls) for place, c in listed]
    engine.append(catalog_table(engine, "run_column"), _COLUMN, columns)
    rules = [
        (run_id, place, number, rule.kind, rule.low, rule.high, rule.label)
        for place, column in listed
        for number, rule in enumerate(column.rules, 1)
    ]
    engine.append(catalog_table(engine, "run_rule"), _RULE, rules)


def forget_recoding(engine: Engine, run_id: str) -> None:
    """Delete a run's recoding from the ledger."""
    for table in TABLES:
        engine.delete(catalog_table(engine, table), {"run_id": run_id})


def fetch_recoding(engine: Engine, run_id: str) -> GlobalRecoding | None:
    """The recoding of a run, None if the ledger has none."""
    run = [Where("run_id", run_id)]
    schemes = engine.find(catalog_table(engine, "run_recoding"), "scheme", where=run)
    if not schemes:
        return None
    rules = defaultdict(list)
    columns = ("place", "number", "kind", "low", "high", "label")
    for place, _, *rule in sorted(engine.find(catalog_table(engine, "run_rule"), *columns, where=run)):
        rules[place].append(Rule(*rule))
    found = engine.find(catalog_table(engine, "run_column"), "place", "name", "role", "type", "nulls", where=run)
    return GlobalRecoding(
        schemes[0][0],
        tuple(
            RecodedColumn(name, role, kind, nulls, tuple(rules[place]))
            for place, name, role, kind, nulls in sorted(found)
        ),
    )
