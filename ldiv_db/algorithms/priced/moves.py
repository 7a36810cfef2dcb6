"""Moves of rows between open labels, and rounds of all moves, as long as they gain."""

from __future__ import annotations

from collections.abc import Callable

from ldiv_db.algorithms.priced.classes import Classes, Given
from ldiv_db.algorithms.priced.opening import open_labels

#: A round must gain one part in so many of what all rows lose for another one.
COUNTS = 2_000


def improve_classes(classes: Classes, heard: Callable[[int], None]) -> None:
    """Make all moves in rounds, until one gains little; `heard` is told what all rows lose then."""
    gained, cost = 1, 0
    while gained * COUNTS > cost:
        gained = relocate(classes) + dissolve(classes) + open_labels(classes) + relocate(classes)
        cost = classes.cost
        heard(cost)


def relocate(classes: Classes) -> int:
    """Rows go to the cheapest classes around them as long as their own stay good; what that saves."""
    saved = 0
    for one in sorted(classes.open.values(), reverse=True):
        for cell in sorted(one.rows, key=lambda cell: (classes.around[cell][0].cost, cell)):
            to = classes.around[cell][0]
            if to.cost < one.cost:
                rows = classes.leaving(one, classes.values[cell], one.rows[cell], Given())
                saved += classes.move(one, to, cell, rows) if rows else 0
    return saved


def dissolve(classes: Classes) -> int:
    """Classes are closed whose rows lose less, in sum, in the cheapest others around them; what that saves."""
    saved = 0
    for one in sorted(classes.open.values(), reverse=True):
        cheapest = {cell: next((to for to in classes.around[cell] if to is not one), None) for cell in one.rows}
        moves = [(cell, rows, cheapest[cell]) for cell, rows in one.rows.items()]
        found = [(cell, rows, to) for cell, rows, to in moves if to is not None]
        if len(found) == len(moves) and sum(rows * (one.cost - to.cost) for _, rows, to in found) > 0:
            saved += sum(classes.move(one, to, cell, rows) for cell, rows, to in found)
            classes.close(one)
    return saved
