"""The bound of an encoded table: its cells as arrays, the spans that each quasi-identifier may be published as."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ldiv_db.database import interrupts
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.queries import Where
from ldiv_db.measuring.least_loss.bounds import DEAREST, MOST_CELLS, LossBound, Wanted, need_of
from ldiv_db.measuring.least_loss.cells import MOST_NUMBERS, UNIT, Cells, Ints, Span, numbered_cells, ranges
from ldiv_db.measuring.least_loss.prices import MOST_WORK, Ascent
from ldiv_db.recoding.encoded import NUMBER_SCALE, Axis, Encoded


def bound_loss(
    engine: Engine,
    wanted: Wanted,
    heard: Callable[[float], None] = lambda bound: None,
    most_work: int = MOST_WORK,
) -> LossBound:
    """What no local recoding of the table loses less than; `heard` is told of bounds as they are proved.

    Ctrl-C ends the search for more: the best bound so far stands. Raises PolicyError where too many rows differ.
    """
    encoded = wanted.encoded
    need, weaker = need_of(wanted)
    cells = list_cells(engine, encoded, need.counted, wanted.suppressed).cells
    if cells.never * encoded.rows_in >= 2**62:
        raise refused("bound", "is a sum of whole numbers of 64 bits, and there are too many rows and values for it")
    total = cells.full * encoded.rows_in
    lost = encoded.left_out * cells.full
    proved, interrupted = Ascent(cells, need, most_work, lambda cost: heard((cost + lost) / total)), False
    try:
        proved.run()
    except KeyboardInterrupt:
        interrupts.settle_twice()
        interrupted = True
    lm_mean = (proved.bound + lost) * UNIT // total / UNIT
    price, rows = np.r_[proved.kept, cells.full], np.r_[cells.rows, encoded.left_out]
    grouped, dearest = list(_grouped(engine, encoded.axes)), fewest_rows(price, rows, DEAREST)
    return LossBound(lm_mean, need, weaker, grouped, interrupted, encoded.rows_in, dearest, proved)


def fewest_rows(price: Ints, rows: Ints, part: float) -> int:
    """How many rows have that part of what all rows cost, the dearest first, so that they are as few as can be."""
    dear = np.argsort(-price, kind="stable")
    price, rows = price[dear], rows[dear]
    cost = np.cumsum(price * rows)
    wanted = part * float(cost[-1])
    full = int(np.searchsorted(cost, wanted))  # cells that are not enough
    left = wanted - float(cost[full - 1] if full else 0)
    return int(rows[:full].sum()) + (math.ceil(left / float(price[full])) if left > 0 else 0)


def _grouped(engine: Engine, axes: Sequence[Axis]) -> list[str]:
    """The quasi-identifiers whose numbers are too many for all their ranges, and those of whose sets few are tried."""
    sets = [f"{axis.name}, each set as if it had two values" for axis in axes if axis.sets]
    numbers = [axis for axis in axes if axis.taxonomy is None]
    counted = [(axis, engine.count(axis.dictionary)) for axis in numbers]
    groups = [f"{axis.name}, {found:,} in {MOST_NUMBERS} groups" for axis, found in counted if found > MOST_NUMBERS]
    return [*groups, *sets]


@dataclass(frozen=True)
class Listed:
    """The rows of a table by codes, in the order of these: how many have them, and the number of their cell."""

    cells: Cells
    rows: Ints
    cell: Ints


def list_cells(engine: Engine, encoded: Encoded, sensitive: str, suppressed: str = "judge") -> Listed:
    """The cells of a table, told apart by that sensitive attribute as well, if by any; raises PolicyError if many."""
    values = value_codes(encoded, sensitive)
    with engine.scope():
        nulls = {} if suppressed == "judge" else _null_codes(engine, encoded)
        counts = encoded.count_cells(engine, *(names := [*nulls, *(name for name in values if name not in nulls)]))
        if (found := engine.count(counts)) > MOST_CELLS:
            what = f"takes up to {MOST_CELLS:,} rows that differ, and {found:,} do"
            raise refused("bound", what, "leave it out, or round values in a view")
        listed = np.array(engine.columns(counts, *encoded.codes, *names, "rows"), np.int64).T
    listed = listed[:, np.lexsort(listed[-2::-1])]
    of_name = dict(zip([*encoded.codes, *names], listed, strict=False))
    value = of_name[values[0]] if values else np.zeros(listed.shape[1], np.int64)
    axes = [(codes, _spans(axis, codes)) for axis, codes in zip(encoded.axes, listed, strict=False)]
    most = np.full(listed.shape[1], UNIT * len(axes))
    if suppressed == "ignore":  # nothing is asked of rows whose quasi-identifiers are all stars or NULL
        most -= sum((codes == axis.null_code) * UNIT for axis, codes in zip(encoded.axes, listed, strict=False))
    for name, code in nulls.items():
        most[of_name[name] == code] = 0
    cells, which = numbered_cells(axes, value, listed[-1], most)
    return Listed(cells, listed[-1], which)


def _null_codes(engine: Engine, encoded: Encoded) -> dict[str, int]:
    """By the column of the code of each sensitive attribute that has NULL the code of this."""
    where = [Where("value", None, "=")]
    found = {axis.code.name: engine.select("nulls", axis.dictionary, "code", where=where) for axis in encoded.sensitive}
    return {name: int(code) for name, nulls in found.items() for code in engine.column(nulls, "code")}


def value_codes(encoded: Encoded, sensitive: str) -> list[str]:
    """The column of a sensitive attribute's code, by its name; none without one."""
    return [axis.code.name for axis in encoded.sensitive if sensitive and axis.column.name == sensitive]


def _spans(axis: Axis, codes: Ints) -> list[Span]:
    """What a value may be published as: nodes of the taxonomy, or ranges of numbers; NULL as itself or not at all.

    A set has two values at least: as much is lost of a node, whatever its leaves.
    """
    if axis.taxonomy is not None:
        wide, most = max(axis.scale, 1), 1 if axis.sets else axis.scale
        lost = ((node.low, node.high, min(node.high - node.low, most)) for node in axis.taxonomy.nodes)
        return [Span(low, high, leaves * UNIT // wide) for low, high, leaves in lost]
    slip = 1 if axis.scale == NUMBER_SCALE else 0  # codes are rounded
    if axis.null_code is None:
        return ranges(codes, axis.scale, slip)
    null = [Span(axis.null_code, axis.null_code, 0), Span(0, axis.null_code, UNIT)]
    return [*ranges(codes[codes != axis.null_code], axis.scale, slip), *null]
