"""People of populations, as algorithms see them that publish nodes of trees: whom each node covers, by the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ldiv_db.algorithms.base import PopulationCells
from ldiv_db.algorithms.cuts.spanned import trees_of
from ldiv_db.attacking.covering import KnownAxis, label_axes, list_cells, open_population
from ldiv_db.attacking.matching import cover
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import Axis, Encoded
from ldiv_db.recoding.recode import label_spans


def place_people(engine: Engine, resolved: Resolved, encoded: Encoded) -> PopulationCells | None:
    """The people of all populations that are named; None if none is.

    Raises PolicyError for a population that is not to be had, or lacks a quasi-identifier.
    """
    names = sorted({spec.argument["population"] for spec in resolved.required.specs if spec.counts_people})
    if not names:
        return None
    forms = resolved.released.forms
    spans = {axis.code: _spans(engine, encoded, axis, forms[axis.name] == "set") for axis in encoded.axes}
    cells, left_out = {}, {}
    for name in names:
        with engine.scope() as scope:
            labels = [replace(axis, columns=axis.columns[:1], sets_first=False) for axis in label_axes(resolved)]
            people, known = open_population(engine, name, resolved.folder, labels)
            values = list_cells(engine, known, people)
            placed = [_place(engine, *each, values) for each in zip(encoded.axes, known, spans.values(), strict=True)]
            found = engine.materialise("people", "running/populations/count_people", cells=values, axes=placed)
            left_out[name] = engine.total(values, "people") - engine.total(found, "rows")
            cells[name] = scope.keep(found)
    return PopulationCells(spans, cells, left_out)


def _spans(engine: Engine, encoded: Encoded, axis: Axis, is_set: bool) -> list[tuple[int, int]]:
    """The codes of all labels that a quasi-identifier may have; sets have members that occur."""
    if is_set:
        return sorted((code, code) for (code,) in engine.grouped(encoded.counted, axis.code.name))
    (tree,) = trees_of(engine, [axis])
    return sorted(set(map(tree.bounds, tree.children)))


def _place(
    engine: Engine, axis: Axis, known: KnownAxis, spans: Sequence[tuple[int, int]], cells: Relation
) -> dict[str, Any]:
    """The smallest span whose label covers each value of one quasi-identifier: `places` is (cell_no, code)."""
    columns = {"class_no": "BIGINT", axis.low.name: "INTEGER", axis.high.name: "INTEGER"}
    listed = engine.load("spans", columns, [(number, *span) for number, span in enumerate(spans, 1)])
    flow = EngineFlow(engine, "running/populations", spans=listed, axis=axis, column=known.columns[0])
    labels = flow.step("labels", "list_labels", labels=label_spans(engine, axis, listed).relation)
    places = flow.step("places", "find_spans", matches=cover(engine, labels, [known], cells))
    return {"code": axis.code, "table": axis.table, "places": places}
