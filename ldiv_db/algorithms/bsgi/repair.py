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
from ldiv_db.database.engine import Engine
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


@dataclass(frozen=True)
class _Window:
    """The reach of a round: windows of `width` places begin at `offset`; one class in `stride` is tried, in turns."""

    width: int
    offset: int
    stride: int
    turn: int
    whole: bool

    @property
    def reach(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("width", "offset", "stride", "turn")}


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
    """The exchanges of each round, until no conflict is left, or no exchange helps."""
    exchanges = list[int]()
    while len(exchanges) < ROUNDS and (rows := flow.engine.count(flow["conflicts"])):
        window = _window(len(exchanges), classes, PAIRS // (rows * l))
        exchanges.append(_round(task, flow, window))
        if not exchanges[-1] and window.whole and window.stride == 1:  # every class was tried
            break
        params = {"assigned": flow["members"], "keys": keys, "among": flow["conflicts"]}
        flow.step("conflicts", "find_conflicts", **params)
    return exchanges


def _window(turn: int, classes: int, tried: int) -> _Window:
    """The windows of a round, by its number from 0; of each about `tried` classes are tried."""
    width = min(classes + 1, WIDTH << turn)
    return _Window(width, turn % 2 * (width // 2), max(1, width // max(tried, WIDTH)), turn, width > classes)


def _round(task: Task, flow: EngineFlow, window: _Window) -> int:
    """One round: the exchanges made."""
    engine = flow.engine
    with flow.scope():
        flow.step("seats", "seat_classes")
        flow.step("partners", "find_partners", **window.reach)
        ranked = flow.step("ranked", "rank_exchanges")
        flow.know(assigned=engine.load("moves", {"row_id": "BIGINT", "class_id": "BIGINT"}, []))
        exchanges = _settle(engine, ranked, flow["assigned"])
        if exchanges:
            _apply(task, flow)
        return exchanges


def _settle(engine: Engine, ranked: Relation, moves: Relation) -> int:
    """Choose exchanges of disjoint classes until none is left; `moves` takes their rows with their new classes."""
    sides, exchanges, settled = sides_of(engine, ranked), 0, -1
    while settled:
        chosen, settled, _ = choose(engine, sides, taken=moves)
        engine.extend(moves, chosen, "row_id", "class_id")
        exchanges += settled
    return exchanges


def _apply(task: Task, flow: EngineFlow) -> None:
    """Move the rows; only the classes that they move between are measured anew."""
    engine, moves, members = flow.engine, flow["assigned"], flow["members"]
    engine.delete_listed(members, Identifier("row_id"), moves)
    flow.insert("members", _MEMBERS, keys=[key.axis for key in flow["keys"]], slots=False, grouped=False)
    touched = engine.select_among("touched", members, moves, "class_id", columns=["row_id", "class_id"])
    bounds = task.encoded.bound_classes(engine, touched)
    engine.delete_listed(flow["classes"], Identifier("class_id"), moves)
    flow.insert("classes", _TRACED, bounds=bounds)
