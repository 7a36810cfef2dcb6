"""Published values resolved: each distinct one becomes the codes that it covers and what it loses.

Labels are read by their grammar (`recoding.labels`), a value of the source being one too. Text is compared, because a
release may come from a file or another tool. Only distinct values are looked at, and only codes leave this module.

Distributions before and after count the rows in each part of a column's values, without any value. The values of a
quasi-identifier stand in their order, or that of its taxonomy, and are cut into bins of equally many different values;
those of a sensitive attribute stand by falling frequency. A published row spreads evenly over the values that its
label covers, as an analyst has to take it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import LOSS_UNIT, Axis
from ldiv_db.recoding.labels import (
    RANGE_FORMS,
    choose_reading,
    count_unread,
    read_parts,
    read_ranges,
    read_starred,
    span_ranges,
)

#: From this width on, times the unit of losses, numbers leave what doubles hold; shrunk, by a power of two, they stay.
_WIDE, _SHRINK = 1e290, 2.0**-64


#: What templates take of a column.
_KNOWN = ("dictionary", "spans", "weights", "nodes", "null_code", "leaves", "first", "last", "numeric")


@dataclass(frozen=True)
class ResolvedColumn:
    """One attribute whose published values are known.

    `dictionary` is (value, rows, code) of the source, codes `first..first + leaves - 1`; `values` is (value_no,
    written, rows) of the published table, `spans` the codes that each covers (value_no, low, high), `weights`
    (value_no, leaves, and the losses of a quasi-identifier or whether a sensitive cell is blank). `places` (code,
    place) is where codes of the rows that are counted stand among the column's, if that is elsewhere.
    """

    name: str
    code: Identifier
    table: Identifier
    dictionary: Relation
    values: Relation
    spans: Relation
    weights: Relation
    leaves: int
    first: int = 0
    nodes: Relation | None = None
    null_code: int | None = None
    places: Relation | None = None

    @property
    def numeric(self) -> bool:
        """True if codes are places of numbers."""
        return self.nodes is None and self.first == 0

    @property
    def last(self) -> int:
        """The last of its codes."""
        return self.first + self.leaves - 1

    def flow(self, engine: Engine) -> EngineFlow:
        """The steps that read what is known of it, by the names that templates have for it."""
        known = {name: getattr(self, name) for name in _KNOWN}
        return EngineFlow(engine, "measuring", values_of=self.values, unit=LOSS_UNIT, **known)


def resolve_axes(
    engine: Engine, counted: Relation, axes: Sequence[Axis], kinds: Sequence[str], sets: Sequence[bool]
) -> list[ResolvedColumn]:
    """The quasi-identifiers resolved among `counted`, the published combinations as text.

    `kinds` are those of the source's columns, `sets` says where sets are known to be written. Raises PolicyError that
    counts, for every column, the published values that nothing knows.
    """
    found, problems = [], []
    for axis, kind, sets_first in zip(axes, kinds, sets, strict=True):
        resolved = _resolved(engine, counted, axis, kind, sets_first)
        found.append(resolved)
        unknown = count_unread(engine, resolved.values, resolved.weights)
        if unknown["count"]:
            problems.append(_unknown(axis, unknown))
    refuse(problems)
    return found


def resolve_sensitive(engine: Engine, counted: Relation, name: str, code: str, dictionary: Relation) -> ResolvedColumn:
    """A sensitive attribute resolved: values are compared as they are, blanks cover all of them."""
    leaves = engine.count(dictionary)
    flow = EngineFlow(engine, "measuring", dictionary=dictionary, leaves=leaves)
    values = flow.step(f"values_{code}", "list_values", counted=counted, column=code)
    spans = flow.step(f"spans_{code}", "find_sensitive", values_of=values)
    made = (dictionary, values, spans, spans, leaves)
    return ResolvedColumn(name, Identifier(code), Identifier(f"t_{code}"), *made, first=1)


def _resolved(engine: Engine, counted: Relation, axis: Axis, kind: str, sets_first: bool) -> ResolvedColumn:
    """The axis with its published values; of numbers codes are counted anew: those of an axis may have been rounded."""
    code, dictionary, nodes, null_code = axis.code.name, axis.dictionary, axis.nodes, axis.null_code
    flow = EngineFlow(engine, "measuring", dictionary=dictionary, unit=LOSS_UNIT)
    values = flow.step(f"values_{code}", "list_values", counted=counted, column=axis.code)
    parts = read_parts(engine, values)
    if nodes:
        leaves, starred = axis.leaves, read_starred(engine, parts, dictionary, nodes, null_code)
        flow.know(nodes=nodes, null_code=null_code, last=axis.scale, parts=parts, starred=starred, leaves=leaves)
        found = flow.step(f"found_{code}", "find_nodes")
        if kind in ("integer", "real"):
            flow.know(found=found, ranges=read_ranges(engine, parts, "real"))
            found = flow.step(f"touched_{code}", "find_ranges")
            flow.drop("found", "ranges")
        chosen, spans = choose_reading(engine, found, sets_first)
        weights = flow.step(f"weights_{code}", "weigh_nodes", spans=spans)
        engine.drop(parts, starred, chosen)
    else:
        dictionary = ranks = flow.step(f"ranks_{code}", "rank_numbers", kind=kind)
        leaves = (engine.most(ranks, "code") or 0) + 1
        null_code = None if null_code is None else leaves - 1
        ranges = read_ranges(engine, parts, kind)
        chosen, spans = choose_reading(engine, span_ranges(engine, ranges, ranks, null_code, leaves - 1), False)
        smallest = axis.ends.clamped(engine.least(ranks, "position") or 0)
        largest = axis.ends.clamped(engine.most(ranks, "position") or 0)
        bottom = axis.ends.bottom
        flow.know(beyond=bottom and engine.count(ranks, Where("position", bottom, "<")))
        width = float(largest - smallest) or 1.0
        shrink = _SHRINK if width > _WIDE else 1.0
        flow.know(chosen=chosen, spans=spans, null_code=null_code, smallest=smallest, largest=largest)
        weights = flow.step(f"weights_{code}", "weigh_numbers", shrink=shrink, width=width * shrink)
        engine.drop(parts, ranges, chosen)
    made = (dictionary, values, spans, weights, leaves)
    return ResolvedColumn(axis.name, axis.code, axis.table, *made, nodes=nodes, null_code=null_code)


def _unknown(axis: Axis, unknown: dict[str, int]) -> Problem:
    what = f"{unknown['count']:,} different published values (rows: {unknown['rows']:,}) are "
    if axis.taxonomy is None:
        what += "no number or time of the source's type, range, set, * or NULL"
    else:
        what += f"no label of taxonomy {axis.taxonomy.origin}, value of the source, range, set, * or NULL"
    hint = "is it the right table, source and taxonomy?"
    return Problem(f"quasi_identifiers.{axis.name}", what, hint if axis.taxonomy else f"{hint} {RANGE_FORMS}")


#: Bins of a column at most.
MOST_BINS = 24


@dataclass(frozen=True)
class Spread:
    """The rows of a column's bins in the source and in the release; NULL is a value, and stands last.

    `edges` are the places of the values at which bins begin, from 0, and after which the last one ends. `lost` is the
    mean LM of all cells of the published rows of each bin, None where there are none.
    """

    column: str
    role: str
    values: int
    edges: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    lost: tuple[float | None, ...]


def compare_columns(
    engine: Engine, keys: Sequence[ResolvedColumn], sensitive: Sequence[ResolvedColumn], numbered: Relation
) -> tuple[Spread, ...]:
    """The distributions of all columns, and who pays: `numbered` are the published combinations of their values."""
    compared = []
    for column in (*keys, *sensitive):
        with engine.scope():
            paid = engine.materialise("paid", "measuring/sum_paid", numbered=numbered, column=column.code, columns=keys)
            of, role = (column, "quasi-identifier") if column in keys else (_ranked(engine, column), "sensitive")
            compared.append(_compare(engine, of, role, paid, len(keys)))
    return tuple(compared)


def _ranked(engine: Engine, column: ResolvedColumn) -> ResolvedColumn:
    ranks = engine.materialise("ranks", "measuring/rank_codes", dictionary=column.dictionary)
    spans = engine.materialise("ranked", "measuring/rank_spans", spans=column.spans, ranks=ranks)
    return replace(column, dictionary=ranks, spans=spans)


def _compare(engine: Engine, column: ResolvedColumn, role: str, paid: Relation, cells: int) -> Spread:
    count = min(MOST_BINS, column.leaves)
    edges = [-(-number * column.leaves // count) for number in range(count + 1)] if count else [0]
    bins = _bins(engine, edges, column.first)
    rows = column.flow(engine).rows("compare_column", bins=bins, paid=paid)
    before, after = ([int(row[place]) / LOSS_UNIT for row in rows] for place in (1, 2))
    lost = tuple(int(lost) / int(units) / cells if units else None for _, _, units, lost in rows)
    return Spread(column.name, role, column.leaves, tuple(edges), tuple(before), tuple(after), lost)


def _bins(engine: Engine, edges: Sequence[int], first: int) -> Relation:
    """The bins (bin, low, high) as codes, of which `first` is the least."""
    rows = [(i, edges[i] + first, edges[i + 1] - 1 + first) for i in range(len(edges) - 1)]
    return engine.load("bins", {"bin": "INTEGER", "low": "BIGINT", "high": "BIGINT"}, rows)
