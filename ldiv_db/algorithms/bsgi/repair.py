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
from ldiv_db.algorithms.costs import Measure, ncp_measures
from ldiv_db.algorithms.neighbours.passes import choose, sides_of
from ldiv_db.database.templates import Identifier, NamedAfter, Relation, Value
from ldiv_db.recoding.encoded import SensitiveAxis

#: The most rounds, and the classes of the first round's window; it doubles from round to round.
ROUNDS, WIDTH = 32, 16
#: How many pairs of rows a round tries, about; where conflicts are many only some classes of a window are tried.
PAIRS = 2_000_000
#: The cheapest exchanges of each class that a round chooses from.
RANKED = 4
_CLASS, _ROW = Identifier("class_id"), Identifier("row_id")


@dataclass(frozen=True)
class NumberedKey:
    """A key, and the aliases of rows that agree on it there, in the class moved to, and here, in the class left."""

    axis: SensitiveAxis
    number: Value

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

    def params(self) -> dict[str, Value]:
        return {name: Value(getattr(self, name)) for name in ("width", "offset", "stride", "turn")}


@dataclass(frozen=True)
class _Members:
    """The rows of all classes, and what classes cost."""

    members: Relation
    classes: Relation
    frequent: Relation
    measures: Sequence[Measure]
    keys: Sequence[NumberedKey]


def repair(
    task: Task, assigned: Relation, keys: Sequence[SensitiveAxis], l: int, classes: int
) -> tuple[Relation, list[int]]:
    """The classes without conflicts, as (row_id, class_id), and the exchanges of each round.

    `assigned` has classes of l rows numbered from 1 to `classes`.
    """
    engine = task.engine
    with engine.scope() as scope:
        conflicts = _find_conflicts(task, assigned, keys)
        if not engine.count(conflicts):
            return assigned, []
        state = _first_state(task, assigned, keys, classes)
        conflicts, exchanges = _run_rounds(task, state, conflicts, l, classes)
        good = engine.select_others("assigned", state.members, conflicts, "class_id", columns=["row_id", "class_id"])
        return scope.keep(good), exchanges


def _find_conflicts(
    task: Task, assigned: Relation, keys: Sequence[SensitiveAxis], among: Relation | None = None
) -> Relation:
    return task.engine.materialise(
        "conflicts",
        "neighbours/repair/find_conflicts",
        rows=task.encoded.rows,
        assigned=assigned,
        keys=keys,
        among=among,
    )


def _first_state(task: Task, assigned: Relation, keys: Sequence[SensitiveAxis], classes: int) -> _Members:
    engine, encoded, measures = task.engine, task.encoded, ncp_measures(task)
    numbered = [NumberedKey(key, Value(number)) for number, key in enumerate(keys, 1)]
    # Exchanges leave the rows of a code as many as they are, so this is found once.
    frequent = engine.materialise(
        "frequent",
        "neighbours/repair/list_frequent",
        rows=encoded.rows,
        assigned=assigned,
        keys=numbered,
        least=classes // 2,
    )
    members = engine.materialise(
        "members",
        "neighbours/list_members",
        rows=encoded.rows,
        assigned=assigned,
        measures=measures,
        keys=keys,
        slots=False,
        grouped=False,
    )
    bounds = encoded.bound_classes(engine, assigned)
    traced = engine.materialise("classes", "bsgi/residue/trace_classes", bounds=bounds, measures=measures)
    return _Members(members, traced, frequent, measures, numbered)


def _run_rounds(task: Task, state: _Members, conflicts: Relation, l: int, classes: int) -> tuple[Relation, list[int]]:
    """The conflicts that are left, and the exchanges of each round: until none is left, or no exchange helps."""
    engine, exchanges = task.engine, list[int]()
    while len(exchanges) < ROUNDS and (rows := engine.count(conflicts)):
        window = _window(len(exchanges), classes, PAIRS // (rows * l))
        exchanges.append(_round(task, state, conflicts, window))
        if not exchanges[-1] and window.whole and window.stride == 1:  # every class was tried
            break
        conflicts = _find_conflicts(task, state.members, [key.axis for key in state.keys], conflicts)
    return conflicts, exchanges


def _window(turn: int, classes: int, tried: int) -> _Window:
    """The windows of a round, by its number from 0; of each about `tried` classes are tried."""
    width = min(classes + 1, WIDTH << turn)
    return _Window(width, turn % 2 * (width // 2), max(1, width // max(tried, WIDTH)), turn, width > classes)


def _round(task: Task, state: _Members, conflicts: Relation, window: _Window) -> int:
    """One round: the exchanges made."""
    engine = task.engine
    params = {"members": state.members, "keys": state.keys}
    with engine.scope():
        slots = engine.materialise(
            "seats",
            "neighbours/repair/seat_classes",
            conflicts=conflicts,
            classes=state.classes,
            frequent=state.frequent,
            **params,
        )
        partners = engine.materialise(
            "partners", "neighbours/repair/find_partners", seats=slots, **window.params(), **params
        )
        ranked = engine.materialise(
            "ranked",
            "neighbours/repair/rank_exchanges",
            partners=partners,
            members=state.members,
            classes=state.classes,
            measures=state.measures,
            ranked=RANKED,
        )
        moves = engine.load("moves", {"row_id": "BIGINT", "class_id": "BIGINT"}, [])
        exchanges = _settle(task, ranked, moves)
        if exchanges:
            _apply(task, state, moves)
        return exchanges


def _settle(task: Task, ranked: Relation, moves: Relation) -> int:
    """Choose exchanges of disjoint classes until none is left; `moves` takes their rows with their new classes."""
    engine, exchanges = task.engine, 0
    sides, settled = sides_of(engine, ranked), -1
    while settled:
        chosen, settled, _ = choose(engine, sides, taken=moves)
        engine.extend(moves, chosen, "row_id", "class_id")
        exchanges += settled
    return exchanges


def _apply(task: Task, state: _Members, moves: Relation) -> None:
    """Move the rows; only the classes that they move between are measured anew."""
    engine, encoded = task.engine, task.encoded
    engine.delete_listed(state.members, _ROW, moves)
    engine.insert(
        state.members,
        "neighbours/list_members",
        rows=encoded.rows,
        assigned=moves,
        measures=state.measures,
        keys=[key.axis for key in state.keys],
        slots=False,
        grouped=False,
    )
    touched = engine.select_among("touched", state.members, moves, "class_id", columns=["row_id", "class_id"])
    bounds = encoded.bound_classes(engine, touched)
    engine.delete_listed(state.classes, _CLASS, moves)
    engine.insert(state.classes, "bsgi/residue/trace_classes", bounds=bounds, measures=state.measures)
