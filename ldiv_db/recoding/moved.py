"""A coding whose tables lie elsewhere: where other connections read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ldiv_db.database.templates import Relation
from ldiv_db.recoding.encode import Coding
from ldiv_db.recoding.encoded import Axis, SensitiveAxis


def moved(coding: Coding, move: Callable[[Relation], Relation]) -> Coding:
    """The coding with each of its tables where `move` takes it; its engine stays."""

    def axis(found: Axis) -> Axis:
        nodes = None if found.nodes is None else move(found.nodes)
        return replace(found, dictionary=move(found.dictionary), nodes=nodes)

    def sensitive(found: SensitiveAxis) -> SensitiveAxis:
        judged = found.judged and (move(found.judged[0]), found.judged[1])
        return replace(found, dictionary=move(found.dictionary), judged=judged)

    return replace(
        coding,
        snapshot=move(coding.snapshot),
        axes=tuple(map(axis, coding.axes)),
        ordered=tuple(map(axis, coding.ordered)),
        sensitive=tuple(map(sensitive, coding.sensitive)),
        individual=coding.individual and sensitive(coding.individual),
    )
