"""What levels of people can meet, and what they lose: the rows that are left out, and quick classes of the others.

Where fewer rows are published there are more people to a level, so that the others lose less. As long as that loses
less, the people of a level come down to others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ldiv_db.algorithms.base import Algorithm, Plan, Task
from ldiv_db.algorithms.local.class_checker import LocalAlgorithm
from ldiv_db.algorithms.local.mondrian import Mondrian
from ldiv_db.algorithms.local.topdown import TopDown
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Relation
from ldiv_db.policy.document import PART_ROWS
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.levels import Level
from ldiv_db.recoding.settled import settled
from ldiv_db.recoding.shapes import (
    ROW_UNIT,
    Chosen,
    LevelKey,
    Option,
    Places,
    Shapes,
    compared,
    levels_made,
    levels_of,
    published_rows,
    shaped_units,
)
from ldiv_db.recoding.stacked import Stack
from ldiv_db.recoding.units import units_of
from ldiv_db.solving.auto import Chooser
from ldiv_db.solving.improve import mean_loss
from ldiv_db.solving.levels import left_to_suppress, task_of_level, why_poor
from ldiv_db.solving.solve import made_together

#: The most levels that are searched, whose people come down at once, and that do in all; and those that are looked at
#: with the first ones, in the same statements.
MANY, AT_ONCE, IN_ALL, FIRST = 8, 8, 24, 4
#: People come down only if that may pay: those who join others lose about as much as before, or so much less.
HOPE = 0.5
#: The most people whose classes are made by `topdown` to see what they lose, if it may make them in the end, and those
#: of whom more levels than there are can be looked at in the same statements.
FEW, SMALL = 25_000, 5_000
#: What is left of that loss, about, once classes have been through the passes of `auto`.
PASSES = 0.9


@dataclass
class LevelTrials:
    """Levels of the people of a stack, held against what is `asked`; what is found of one is kept for later rounds.

    Without `by_loss` people come down only if they cannot meet the policy.
    """

    asked: Task
    algorithm: Algorithm
    stack: Stack
    by_loss: bool = True
    #: What the rows lose that the stack lacks.
    without: float = 0
    #: The units of levels, and why levels cannot meet the policy, empty if they can.
    made: dict[LevelKey, Level] = field(default_factory=dict)
    why: dict[LevelKey, str] = field(default_factory=dict)
    #: What the people of a level lose of all the rows that they publish, and the classes by which that was measured.
    lost: dict[LevelKey, float] = field(default_factory=dict)
    plans: dict[tuple[str, Relation], Plan] = field(default_factory=dict)
    #: The last levels that cannot meet the policy; all people whom classes are compared with.
    failed: Chosen = field(default_factory=dict)
    whole: Encoded | None = None
    #: The rows that people publish in the levels that were asked for last.
    rows: tuple[Sequence[LevelKey], tuple[Relation, Places]] | None = None

    @property
    def fewest(self) -> int:
        """The fewest people of a level."""
        return max([1, *(one.least_rows for one in self.asked.requirements)])

    def searches(self, shapes: Shapes, chosen: Chosen) -> bool:
        """Whether what levels lose is looked at."""
        looks = self.by_loss and self._is_quick(chosen)
        return looks and not any(self._quick.unfit(own) for _, own in self._tasks(shapes, chosen))

    def _is_quick(self, chosen: Chosen) -> bool:
        """Whether there are few rows and levels, so that one change after the other can be tried."""
        small = self.stack.encoded.row_count <= SMALL or len(self.stack.members) == 1
        return small and len(levels_of(chosen)) <= MANY

    # -- what can be met ---------------------------------------------------------------------------------

    def able(self, shapes: Shapes, chosen: Chosen | None, least: int) -> tuple[Chosen | None, Shapes]:
        """Levels that can meet the policy, and what may be published then; None if nothing can.

        The level of the most rows that cannot meet it is given up, as those below may with its people. All are where
        that takes long, unless nothing would be left.
        """
        while chosen:
            poor = self._poor(shapes, chosen)
            if not poor:
                break
            most = max(poor, key=lambda kept: (shapes.rows_of(kept), kept))
            self.failed = {shape: option for shape, option in chosen.items() if option.kept == most}
            given_up = {most} if self._is_quick(chosen) else poor
            fewer = settled(shapes.without(given_up), least)
            shapes = shapes.without(given_up if fewer else {most})
            chosen = fewer or settled(shapes, least)
        return chosen, shapes

    def joined(self, shapes: Shapes) -> Task | None:
        """The task of people who are as few levels as can be, whether or not these meet the policy; None of nobody."""
        fewest = sum(shapes.people.values())
        while fewest:
            if chosen := settled(shapes, fewest):
                return self._whole(shapes, chosen, self._tasks(shapes, chosen))
            fewest //= 2
        return None

    def _poor(self, shapes: Shapes, chosen: Chosen) -> set[int]:
        """The levels that cannot meet the policy; `why` then has each of them."""
        if self.asked.suppression is not None:
            self.why.clear()  # what may be left out in a level is what others leave
        if self.asked.compares_with_table:
            self._compare(shapes, chosen)
        keys, tasks = levels_of(chosen), self._tasks(shapes, chosen)
        algorithm, _ = self.algorithm.chosen(_largest(tasks))
        for key, (level, own) in zip(keys, tasks, strict=True):
            if key not in self.why:
                self.why[key] = why_poor(algorithm, level, own)
        return {key[0] for key in keys if self.why[key]}

    def why_not(self, shapes: Shapes) -> str:
        """Why there are no levels."""
        if any(key not in self.why for key in levels_of(self.failed)):
            self._poor(shapes, self.failed)
        found = [self.why[key] for key in levels_of(self.failed)]
        return next(filter(None, found), f"no {self.fewest:,} people can publish as many rows in each table as others")

    # -- levels ------------------------------------------------------------------------------------------

    def planned(self, shapes: Shapes, chosen: Chosen) -> tuple[Task, Algorithm, str]:
        """The task of all people, who publish what is chosen, its algorithm and why."""
        if self.asked.compares_with_table:
            self._compare(shapes, chosen)
        tasks = self._tasks(shapes, chosen)
        algorithm, told = self.algorithm.chosen(_largest(tasks))
        if any(algorithm.unfit(own) for _, own in tasks):  # of some people alone there may be another one
            algorithm, told = self.algorithm, ""
        for own in sorted((own for _, own in tasks), key=lambda own: -own.encoded.row_count):
            algorithm.refuse_unfit(own)
        task = self._whole(shapes, chosen, tasks)
        plans = {key: plan for key, plan in self.plans.items() if key[1] in {own.encoded.rows for _, own in tasks}}
        return replace(task, made=plans), algorithm, told

    def _whole(self, shapes: Shapes, chosen: Chosen, tasks: Sequence[tuple[Level, Task]]) -> Task:
        """The task of all people, whose levels have these."""
        levels = [level for level, _ in tasks]
        units = shaped_units(self.asked.engine, self.stack, self.published(shapes, levels_of(chosen))[0], levels)
        return replace(self.asked, encoded=units.encoded, units=units)

    def _tasks(
        self, shapes: Shapes, chosen: Chosen, keys: Sequence[LevelKey] | None = None
    ) -> list[tuple[Level, Task]]:
        """The levels of what is chosen, or others, each with its task."""
        engine, keys = self.asked.engine, levels_of(chosen) if keys is None else keys
        if new := [key for key in keys if key not in self.made]:
            bagged = self.asked.compares_with_table  # people without rows of a table have none of its values
            self.made |= zip(new, levels_made(engine, self.stack, *self.published(shapes, new), bagged), strict=True)
        total = self.stack.encoded.row_count
        left = left_to_suppress(self.asked.suppression, total, total - shapes.count(chosen))
        levels = [self.made[key] for key in keys]
        if self.whole:
            levels = [replace(one, encoded=compared(one.encoded, self.whole)) for one in levels]
        return [(level, task_of_level(self.asked, level, left)) for level in levels]

    def published(self, shapes: Shapes, keys: Sequence[LevelKey]) -> tuple[Relation, Places]:
        """The rows that people publish in levels, as `published_rows` has them; those asked for last are kept."""
        if self.rows is None or self.rows[0] != keys:
            if self.rows is not None:
                self.asked.engine.drop(self.rows[1][0])
            self.rows = keys, published_rows(self.asked.engine, self.stack, shapes, keys)
        return self.rows[1]

    def _compare(self, shapes: Shapes, chosen: Chosen) -> None:
        """Have all classes compared with the people who publish what is chosen."""
        engine, (published, _) = self.asked.engine, self.published(shapes, levels_of(chosen))
        self.whole = units_of(engine, replace(self.stack.encoded, rows=published), True, bagged=True).encoded
        self.why.clear()
        self.lost.clear()
        self.plans.clear()

    # -- what is lost ------------------------------------------------------------------------------------

    @property
    def _quick(self) -> LocalAlgorithm:
        """What makes classes to see what they lose: if it can be what makes them in the end they are kept."""
        is_made = isinstance(self.algorithm, Chooser) or self.algorithm.name == "topdown"
        return TopDown({}) if is_made and self.asked.encoded.row_count <= FEW else Mondrian({})

    def left_out(self, shapes: Shapes, chosen: Chosen) -> float:
        """What the rows lose that are left out."""
        return self.without + (shapes.weight(shapes.whole) - shapes.weight(chosen)) / ROW_UNIT

    def improved(self, shapes: Shapes, chosen: Chosen) -> tuple[Chosen, float]:
        """What is chosen, with people come down as long as that loses less; and what is lost then."""
        at_once = not self.lost and self.asked.encoded.row_count <= SMALL
        first = list(self._all_moves(shapes, chosen)) if at_once and isinstance(self._quick, TopDown) else []
        first = first if len(first) <= FIRST else []
        self._measure(shapes, chosen, [*levels_of(chosen), *(key for move in first for key in move.after)])
        tried = 0
        while tried < IN_ALL and (moves := self._moves(shapes, chosen)):
            tried += len(moves)
            self._measure(shapes, chosen, [key for move in moves for key in move.after])
            gains = sorted(((self._gain(move), move) for move in moves), key=lambda one: (-one[0], one[1].level))
            better, touched = dict(chosen), set[LevelKey]()
            for gain, move in gains:
                if gain > 0 and touched.isdisjoint(move.before) and self.affords(shapes, {**better, **move.down}):
                    better.update(move.down)
                    touched |= set(move.before)
            if not touched:
                break
            if self._poor(shapes, better):
                self._poor(shapes, chosen)
                break
            chosen = better
            self._measure(shapes, chosen, levels_of(chosen))  # where classes are compared with other people now
        self._measure(shapes, chosen, levels_of(chosen))
        return chosen, self.left_out(shapes, chosen) + sum(self.lost[key] for key in levels_of(chosen))

    def _moves(self, shapes: Shapes, chosen: Chosen) -> list[_Move]:
        """The levels whose people may come down to others, and that may lose less by it: those that may gain most."""
        moves = [move for move in self._all_moves(shapes, chosen) if self._hope(shapes, chosen, move) > 0]
        return sorted(moves, key=lambda move: (-self._hope(shapes, chosen, move), move.level))[:AT_ONCE]

    def _all_moves(self, shapes: Shapes, chosen: Chosen) -> Iterator[_Move]:
        keys = {key[0]: key for key in levels_of(chosen)}
        for level, key in keys.items():
            down = dict[int, Option]()
            for shape in key[1]:
                able = (one for one in shapes.options[shape] if one.rows < chosen[shape].rows and one.kept in keys)
                if (found := next(able, None)) is not None:
                    down[shape] = found
            if len(down) == len(key[1]):
                joined = {option.kept for option in down.values()}
                after = [key for key in levels_of({**chosen, **down}) if key[0] in joined]
                cost = sum(shapes.people[s] * (chosen[s].weight - one.weight) for s, one in down.items()) / ROW_UNIT
                yield _Move(level, down, (key, *(keys[kept] for kept in sorted(joined))), tuple(after), cost)

    def _hope(self, shapes: Shapes, chosen: Chosen, move: _Move) -> float:
        """What a move may gain at most, about."""
        weights = {option.kept: option.weight for option in chosen.values()}

        def cells(key: LevelKey) -> float:
            return sum(shapes.people[shape] for shape in key[1]) * weights[key[0]] / ROW_UNIT

        least = min(self.lost[key] / cells(key) for key in move.before)
        return self._lost(move.before) - move.cost - HOPE * least * sum(cells(key) for key in move.after)

    def _gain(self, move: _Move) -> float:
        return self._lost(move.before) - move.cost - self._lost(move.after)

    def _lost(self, keys: Sequence[LevelKey]) -> float:
        return sum(self.lost[key] for key in keys)

    def affords(self, shapes: Shapes, chosen: Chosen) -> bool:
        """Whether as many rows may be left out."""
        share, total = self.asked.suppression, self.stack.encoded.row_count
        return share is None or total - shapes.count(chosen) <= int(share * total)

    def _measure(self, shapes: Shapes, chosen: Chosen, keys: Sequence[LevelKey]) -> None:
        """Find out what levels lose that were not looked at before."""
        new, quick = [key for key in dict.fromkeys(keys) if key not in self.lost], self._quick
        silent: dict[str, Any] = {"progress": lambda *_: None, "report": lambda _: None, "stage": lambda _: None}
        tasks = [replace(own, **silent) for _, own in self._tasks(shapes, chosen, new)]
        if isinstance(quick, TopDown):
            self.plans |= made_together(tasks, PART_ROWS)
        for key, own in zip(new, tasks, strict=True):
            name = (quick.name, own.encoded.rows)
            if name not in self.plans:
                with suppress(InfeasibleError):
                    self.plans[name] = quick.run(own)
            self.lost[key] = math.inf
            if plan := self.plans.get(name):
                weight = sum(axis.weight for axis in own.encoded.axes) or 1
                less = PASSES if isinstance(self.algorithm, Chooser) else 1
                self.lost[key] = less * mean_loss(own, plan) * own.encoded.row_count * weight


@dataclass(frozen=True)
class _Move:
    """The people of a level come `down` to others: the levels `before` and `after`, and what is left out more."""

    level: int
    down: Mapping[int, Option]
    before: tuple[LevelKey, ...]
    after: tuple[LevelKey, ...]
    cost: float


def _largest(tasks: Sequence[tuple[Level, Task]]) -> Task:
    return max((own for _, own in tasks), key=lambda own: own.encoded.row_count)
