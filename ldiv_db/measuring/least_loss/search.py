"""The bound of an encoded table: its cells as arrays, the spans that each quasi-identifier may be published as."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ldiv_db.database import interrupts
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.measuring.least_loss.bounds import MOST_CELLS, LossBound, need_of
from ldiv_db.measuring.least_loss.cells import MOST_NUMBERS, UNIT, Cells, Ints, Span, numbered_cells, ranges
from ldiv_db.measuring.least_loss.prices import MOST_WORK, Ascent
from ldiv_db.policy.release_columns import Form
from ldiv_db.recoding.encoded import NUMBER_SCALE, Axis, Encoded
from ldiv_db.requirements import Requirement


def bound_loss(
    engine: Engine,
    encoded: Encoded,
    wanted: Mapping[str, Sequence[Requirement]],
    forms: Mapping[str, Form],
    of_people: bool = False,
    heard: Callable[[float], None] = lambda bound: None,
    most_work: int = MOST_WORK,
) -> LossBound:
    """What no local recoding of the table loses less than; `heard` is told of bounds as they are proved.

    Ctrl-C ends the search for more: the best bound so far stands. Raises PolicyError where labels are no nodes of
    taxonomies, or too many rows differ.
    """
    for axis in encoded.axes:
        if forms[axis.name] == "set":
            raise refused("bound", f"is of nodes, and {axis.name} is published as sets", "recode: tree")
    need, weaker = need_of(encoded, wanted, of_people)
    cells = list_cells(engine, encoded, need.counted).cells
    if cells.never * encoded.rows_in >= 2**62:
        raise refused("bound", "is a sum of whole numbers of 64 bits, and there are too many rows and values for it")
    total = cells.full * encoded.rows_in
    left_out = encoded.left_out * cells.full
    proved, interrupted = Ascent(cells, need, most_work, lambda cost: heard((cost + left_out) / total)), False
    try:
        proved.run()
    except KeyboardInterrupt:
        interrupts.settle_twice()
        interrupted = True
    lm_mean = (proved.bound + left_out) * UNIT // total / UNIT
    return LossBound(lm_mean, need, weaker, list(_grouped(engine, encoded.axes)), interrupted, proved)


def _grouped(engine: Engine, axes: Sequence[Axis]) -> list[str]:
    """The quasi-identifiers whose numbers are too many for all their ranges."""
    numbers = [axis for axis in axes if axis.taxonomy is None]
    counted = [(axis, engine.count(axis.dictionary)) for axis in numbers]
    return [f"{axis.name}, {found:,} in {MOST_NUMBERS} groups" for axis, found in counted if found > MOST_NUMBERS]


@dataclass(frozen=True)
class Listed:
    """The rows of a table by codes, in the order of these: how many have them, and the number of their cell."""

    cells: Cells
    rows: Ints
    cell: Ints


def list_cells(engine: Engine, encoded: Encoded, sensitive: str) -> Listed:
    """The cells of a table, told apart by that sensitive attribute as well, if by any; raises PolicyError if many."""
    with engine.scope():
        counts = encoded.count_cells(engine, *(names := value_codes(encoded, sensitive)))
        if (found := engine.count(counts)) > MOST_CELLS:
            what = f"takes up to {MOST_CELLS:,} rows that differ, and {found:,} do"
            raise refused("bound", what, "leave it out, or round values in a view")
        listed = np.array(engine.columns(counts, *encoded.codes, *names, "rows"), np.int64).T
    listed = listed[:, np.lexsort(listed[-2::-1])]
    value = listed[-2] if names else np.zeros(listed.shape[1], np.int64)
    axes = [(codes, _spans(axis, codes)) for axis, codes in zip(encoded.axes, listed, strict=False)]
    cells, which = numbered_cells(axes, value, listed[-1])
    return Listed(cells, listed[-1], which)


def value_codes(encoded: Encoded, sensitive: str) -> list[str]:
    """The column of a sensitive attribute's code, by its name; none without one."""
    return [axis.code.name for axis in encoded.sensitive if sensitive and axis.column.name == sensitive]


def _spans(axis: Axis, codes: Ints) -> list[Span]:
    """What a value may be published as: nodes of the taxonomy, or ranges of numbers; NULL as itself or not at all."""
    if axis.taxonomy is not None:
        wide = max(axis.scale, 1)
        return [Span(node.low, node.high, (node.high - node.low) * UNIT // wide) for node in axis.taxonomy.nodes]
    slip = 1 if axis.scale == NUMBER_SCALE else 0  # codes are rounded
    if axis.null_code is None:
        return ranges(codes, axis.scale, slip)
    null = [Span(axis.null_code, axis.null_code, 0), Span(0, axis.null_code, UNIT)]
    return [*ranges(codes[codes != axis.null_code], axis.scale, slip), *null]
