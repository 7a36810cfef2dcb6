"""The people of populations that a policy's requirements name, in the codes of the source that is to be recoded.

Whom a node of a taxonomy covers is read from its label, as an attacker reads it: of every value of the population, the
smallest node whose label covers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import People
from ldiv_db.attacking.covering import KnownAxis, list_cells
from ldiv_db.attacking.matching import cover
from ldiv_db.attacking.populations import label_axes, open_population
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import Identifier, Relation
from ldiv_db.policy.resolve import Resolved
from ldiv_db.recoding.encoded import Axis, Encoded
from ldiv_db.recoding.recode import label_spans
from ldiv_db.requirements import Requirement


@dataclass(frozen=True)
class _Placed:
    """A quasi-identifier's code and an alias: `places` is (cell_no, code) of the people's values."""

    code: Identifier
    table: Identifier
    places: Relation


def place_people(
    engine: Engine, resolved: Resolved, encoded: Encoded, requirements: Sequence[Requirement]
) -> People | None:
    """The people of all populations that are named; None if none is.

    Raises PolicyError for a population that is not to be had, or lacks a quasi-identifier, and for quasi-identifiers
    that are not published as labels of a taxonomy.
    """
    names = sorted({requirement.named_population for requirement in requirements} - {""})
    if not names:
        return None
    _refuse(resolved, encoded)
    spans = [sorted({(n.low, n.high) for n in axis.taxonomy.nodes}) for axis in encoded.axes if axis.taxonomy]
    cells, left_out = {}, {}
    for name in names:
        with engine.scope() as scope:
            people, known = open_population(engine, name, resolved.folder, label_axes(resolved))
            values = list_cells(engine, known, people)
            placed = [_place(engine, *each, values) for each in zip(encoded.axes, known, spans, strict=True)]
            found = engine.materialise("people", "running/populations/count_people", cells=values, axes=placed)
            left_out[name] = engine.total(values, "people") - engine.total(found, "rows")
            cells[name] = scope.keep(found)
    return People(spans, cells, left_out)


def _place(engine: Engine, axis: Axis, known: KnownAxis, spans: Sequence[tuple[int, int]], cells: Relation) -> _Placed:
    """The smallest span whose label covers each value of one quasi-identifier."""
    columns = {"class_no": "BIGINT", axis.low.name: "INTEGER", axis.high.name: "INTEGER"}
    listed = engine.load("spans", columns, [(number, *span) for number, span in enumerate(spans, 1)])
    shown = label_spans(engine, axis, listed)
    holes = {"spans": listed, "axis": axis}
    column = known.columns[0]
    labels = engine.materialise(
        "labels", "running/populations/list_labels", labels=shown.relation, column=column, **holes
    )
    matches = cover(engine, labels, [known], cells)
    places = engine.materialise("places", "running/populations/find_spans", matches=matches, **holes)
    return _Placed(axis.code, axis.table, places)


def _refuse(resolved: Resolved, encoded: Encoded) -> None:
    """Raise PolicyError for quasi-identifiers that are not published as labels of a taxonomy."""
    problems = [
        Problem(f"quasi_identifiers.{axis.name}", "whom it covers is known of labels of a taxonomy: it needs one")
        for axis in encoded.axes
        if axis.taxonomy is None or resolved.released.forms[axis.name] != "label"
    ]
    if problems:
        raise PolicyError(problems)
