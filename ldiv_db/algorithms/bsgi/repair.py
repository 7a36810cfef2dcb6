"""Repair: classes whose rows agree on some key exchange rows with classes near by, or are given up.

Classes come numbered so that near numbers are near. A round takes windows of the numbers: every row in
conflict is tried against every row of the window's other classes, and may change places with it if each
then differs on all keys from the rows of its new class. So no exchange makes a conflict, each ends one, and
classes keep their sizes. Exchanges between disjoint classes are made at once, the cheapest first. Windows
move and widen from round to round; of wide ones some classes are tried, spread over the window. A value
that most classes have finds its place in few: for its rows the windows are of those classes alone. What is
in conflict in the end is taken apart: its rows are residue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.costs import ncp_measures
from ldiv_db.algorithms.neighbours.passes import choose, sides_of
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, NamedAfter, Relation
from ldiv_db.recoding.encoded import SensitiveAxis

#: The most rounds, and the classes of the first round's window; it doubles from round to round.
ROUNDS, WIDTH = 32, 16
#: How many pairs of rows a round tries, about; where conflicts are many only some classes of a window are tried.
PAIRS = 2_000_000
#: The cheapest exchanges of each class that a round chooses from.
RANKED = 4
_MEMBERS, _TRACED = "neighbours/list_members", "bsgi/residue/trace_classes"


@dataclass(frozen=True)
class NumberedKey:
    """A key, and the aliases of rows that agree on it there, in the class moved to, and here, in the class left."""

    axis: SensitiveAxis
    number: int

    @property
    def code(self) -> Identifier:
        return self.axis.code

    there = NamedAfter("there_{0.axis.code.name}")
    here = NamedAfter("here_{0.axis.code.name}")


def repair(
    task: Task, assigned: Relation, keys: Sequence[SensitiveAxis], l: int, classes: int
) -> tuple[Relation, list[int]]:
    """The classes without conflicts, as (row_id, class_id), and the exchanges of each round.

    `assigned` has classes of l rows numbered from 1 to `classes`.
    """
    engine, encoded = task.engine, task.encoded
    flow = EngineFlow(engine, "neighbours/repair", rows=encoded.rows, ranked=RANKED)
    with engine.scope() as scope:
        if not engine.count(flow.step("conflicts", "find_conflicts", assigned=assigned, keys=keys, among=None)):
            return assigned, []
        numbered = [NumberedKey(key, number) for number, key in enumerate(keys, 1)]
        measures = ncp_measures(task)
        flow.know(keys=numbered, measures=measures)
        # Exchanges leave the rows of a code as many as they are, so this is found once.
        flow.step("frequent", "list_frequent", assigned=assigned, least=classes // 2)
        flow.step("members", _MEMBERS, assigned=assigned, keys=keys, slots=False, grouped=False)
        flow.step("classes", _TRACED, bounds=encoded.bound_classes(engine, assigned))
        exchanges = _run_rounds(task, flow, keys, l, classes)
        columns = ["row_id", "class_id"]
        good = engine.select_others("assigned", flow["members"], flow["conflicts"], "class_id", columns=columns)
        return scope.keep(good), exchanges


def _run_rounds(task: Task, flow: EngineFlow, keys: Sequence[SensitiveAxis], l: int, classes: int) -> list[int]:
    """The exchanges of each round, until no conflict is left, or no exchange helps.

    Windows of `width` places begin at `offset`; of each one class in `stride` is tried, in turns.
    """
    exchanges = list[int]()
    while len(exchanges) < ROUNDS and (rows := flow.engine.count(flow["conflicts"])):
        turn, tried = len(exchanges), PAIRS // (rows * l)
        width = min(classes + 1, WIDTH << turn)
        stride = max(1, width // max(tried, WIDTH))
        flow.know(width=width, offset=turn % 2 * (width // 2), stride=stride, turn=turn)
        exchanges.append(_round(task, flow))
        if not exchanges[-1] and width > classes and stride == 1:  # every class was tried
            break
        flow.step("conflicts", "find_conflicts", assigned=flow["members"], keys=keys, among=flow["conflicts"])
    return exchanges


def _round(task: Task, flow: EngineFlow) -> int:
    """Carry out exchanges of disjoint classes until none is left; how many."""
    engine, exchanges, settled = flow.engine, 0, -1
    with flow.scope():
        flow.step("seats", "seat_classes")
        flow.step("partners", "find_partners")
        sides = sides_of(engine, flow.step("ranked", "rank_exchanges"))
        moves = engine.load("moves", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
        while settled:
            chosen, settled, _ = choose(engine, sides, taken=moves)
            engine.extend(moves, chosen, "row_id", "class_id")
            exchanges += settled
        if exchanges:
            _move(task, flow, moves)
        return exchanges


def _move(task: Task, flow: EngineFlow, moves: Relation) -> None:
    """Move the rows; only the classes that they move between are measured anew."""
    engine, members = flow.engine, flow["members"]
    engine.delete_listed(members, Identifier("row_id"), moves)
    keys = [key.axis for key in flow["keys"]]
    flow.insert("members", _MEMBERS, assigned=moves, keys=keys, slots=False, grouped=False)
    touched = engine.select_among("touched", members, moves, "class_id", columns=["row_id", "class_id"])
    bounds = task.encoded.bound_classes(engine, touched)
    engine.delete_listed(flow["classes"], Identifier("class_id"), moves)
    flow.insert("classes", _TRACED, bounds=bounds)
