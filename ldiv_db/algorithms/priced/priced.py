"""The pass that makes classes anew by prices: those that prove the bound say which labels are worth opening."""

from __future__ import annotations

from functools import partial

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.neighbours.passes import Changed, Improving, Pass, Round
from ldiv_db.database.names import Relation
from ldiv_db.measuring.least_loss.bounds import MOST_CELLS, Need, Wanted, need_of

#: About how often each cell is looked at, in the work of other passes: as measured on Adult.
LOOKS = 25
#: Labels multiply with each quasi-identifier.
MOST_AXES = 12
#: Rows that differ, at most, where numbers have no taxonomy: these may be published as any of many ranges.
MOST_WITH_RANGES = 500


def needed(task: Task) -> Need | None:
    """What classes need by all requirements; None where these ask for more, or classes are not made by prices."""
    encoded = task.encoded
    if encoded.individual or task.transparent or task.people or task.cross or "set" in task.forms.values():
        return None
    if encoded.size > MOST_CELLS or len(encoded.axes) > MOST_AXES or not any(axis.weight for axis in encoded.axes):
        return None
    if encoded.size > MOST_WITH_RANGES and not all(axis.taxonomy for axis in encoded.axes):
        return None
    wanted = {name: [requirement.of_classes for requirement in own] for name, own in task.wanted.items()}
    need, weaker = need_of(Wanted(encoded, wanted))
    return None if weaker or need.parts > 1 else need  # prices say little of shares


def priced(most_work: int) -> Pass:
    """The pass with prices of so much work, in pairs of label and cell."""
    return Pass("priced", lambda task: 1, partial(_start, most_work), price=20, small_only=True, looks=LOOKS)


def _start(most_work: int, state: Improving) -> Round:
    from ldiv_db.algorithms.priced.making import make_classes  # noqa: PLC0415 - numpy takes long

    def make(assigned: Relation, number: int) -> Changed:
        need, engine = needed(state.task), state.task.engine
        if need is None or engine.count(assigned) < state.task.encoded.row_count:  # some rows are left out
            return Changed(assigned)
        return make_classes(state, assigned, need, most_work)

    return make
