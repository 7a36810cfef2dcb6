"""Which levels people form: of those who publish equally many rows in each table, enough to be good, by what is lost.

A row that is left out loses all of its cells. The search begins with the levels that lose the fewest rows. Where one
value is too frequent in a level some of its people give up the rows with it; where the policy cannot be met for
another reason, all of its people publish fewer rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.names import Relation
from ldiv_db.recoding.frequent import bounded_in, frequent_in
from ldiv_db.recoding.placing import shapes_of, shapes_without
from ldiv_db.recoding.settled import settled
from ldiv_db.recoding.shapes import ROW_UNIT, Chosen, LevelKey, Shapes, levels_of, published_rows
from ldiv_db.recoding.stacked import EACH, Stack
from ldiv_db.recoding.units import GivenUp
from ldiv_db.solving.level_trials import MANY, SMALL, LevelTrials

#: Why there is no class of people without labels.
_BARE = "some people have no row in a table with quasi-identifiers"
#: A level of fewer people than one in so many, or than so many classes have, may well be too wide.
ONE_IN, CLASSES = 50, 5
#: Where a value is too frequent so much of its share is left: at all of it only classes just like the level are good.
SLACK = Fraction(17, 20)
#: Levels of more rows are dealt with first, as their people come to those of fewer: those of nearly the most at once.
BAND = Fraction(3, 4)
#: Rows stand in another order than their own if so much less of what is left out in theirs is.
WORTH = 0.1


@dataclass(frozen=True)
class Found:
    """What people publish of what shapes, and the trials of their levels; `lost` is what that loses, if it is known.

    At least so many `givers` must give up rows of a value that is too frequent.
    """

    trials: LevelTrials
    shapes: Shapes
    chosen: Chosen | None
    lost: float = math.inf
    givers: int = 0

    @property
    def is_able(self) -> bool:
        """Whether there are levels, and as many rows may be left out."""
        return bool(self.chosen) and self.trials.affords(self.shapes, self.chosen or {})

    @property
    def left_out(self) -> float:
        """What the rows lose that are left out."""
        return self.trials.left_out(self.shapes, self.chosen or {})


@dataclass
class LevelSearch:
    """The search for levels that can all meet what is `asked`.

    Without `by_loss` people come down only if they cannot meet the policy.
    """

    asked: Task
    algorithm: Algorithm
    stack: Stack
    by_loss: bool = True

    def found(self, shapes: Shapes) -> tuple[Task, Algorithm, str]:
        """The task of people, its algorithm and why it was chosen; raises InfeasibleError if there are no levels."""
        with self.asked.engine.scope() as scope:
            best = self._best(shapes) if all(shapes.options.values()) else None
            if not best or not best.chosen:
                way_out = "ask for less, or leave out the rows of those who have few in a query"
                raise InfeasibleError(f"{self.why_not(shapes)}: {way_out}")
            task, algorithm, told = best.trials.planned(best.shapes, best.chosen)
            assert task.units is not None  # noqa: S101 - people are planned
            rows = self.asked.engine.count(shapes.at.placed) - self.asked.engine.count(best.shapes.at.placed)
            task = replace(
                task, units=replace(task.units, rows=self.stack.encoded, given_up=GivenUp(rows, best.givers))
            )
            for relation in _relations(task):
                scope.keep(relation)
        return task, algorithm, told

    def shapes(self, secret: str) -> Shapes:
        """The shapes of all people.

        Rows to which others belong stand in their order, unless clearly less is left out where those come first to
        which most belong. That depends on numbers of rows alone.
        """
        engine, stack = self.asked.engine, self.stack
        found, above = shapes_of(engine, stack, secret), {one.above for one in stack.members}
        able = frozenset(one.number for one in stack.members if one.order and one.bits < EACH and one.number in above)
        if not able or not all(found.options.values()) or not (left := self._left_out(found)):
            return found
        other = shapes_of(engine, stack, secret, busiest=able)
        is_worth = self._left_out(other) <= (1 - WORTH) * left
        engine.drop(*(found if is_worth else other).at.relations)
        return other if is_worth else found

    def _left_out(self, shapes: Shapes) -> float:
        """What the rows lose that are left out of the first levels that are tried."""
        start = cache(lambda least: settled(shapes, least) or {})
        first, others = self._leasts(shapes, start)
        able = [start(least) for least in first if start(least)]
        able = able or [found for found in map(start, others) if found]
        return min((self._first.left_out(shapes, found) for found in able), default=math.inf)

    def joined(self, shapes: Shapes) -> Task | None:
        """The task of people who are as few levels as can be, whether or not these meet the policy; None of nobody."""
        return self._first.joined(shapes) if all(shapes.options.values()) else None

    def failed(self, shapes: Shapes) -> Task:
        """The task of people in the last levels that could not meet the policy, or in those of the fewest rows."""
        fewest = {shape: options[-1] for shape, options in shapes.options.items()}
        return self._first.planned(shapes, self._first.failed or fewest)[0]

    def why_not(self, shapes: Shapes) -> str:
        """Why there are no levels."""
        return self._first.why_not(shapes) if all(shapes.options.values()) else _BARE

    @cached_property
    def _first(self) -> LevelTrials:
        """The trials of levels of all rows."""
        return LevelTrials(self.asked, self.algorithm, self.stack, self.by_loss)

    def _best(self, shapes: Shapes) -> Found | None:
        """What people publish so that all levels can meet the policy, and that loses least of what is tried."""
        best, fewest = None, self._first.fewest
        if len(self.stack.members) == 1:
            return self._tried(shapes, settled(shapes, fewest) or {}, fewest)
        start = cache(lambda least: settled(shapes, least) or {})
        first, others = self._leasts(shapes, start)
        for least in dict.fromkeys((*first, *others)):
            if best and (best.lost == math.inf or self._first.left_out(shapes, start(least)) >= best.lost):
                continue
            found = self._tried(shapes, start(least), least)
            if found.chosen and (not best or found.lost < best.lost):
                best = found
        return best

    def _leasts(self, shapes: Shapes, start: Callable[[int], Chosen]) -> tuple[list[int], list[int]]:
        """How many people levels have at least that are tried first, and others if they may lose less than these.

        `start` says what people publish in levels of at least so many.
        """
        fewest, people = self._first.fewest, sum(shapes.people.values())
        *fine, coarse = sorted({fewest, CLASSES * fewest, max(people // ONE_IN, CLASSES * fewest)})
        # With fewer people to a level there are more, which take long to find.
        tried = fine if len(levels_of(start(coarse))) <= MANY else []
        few = [least for least in tried if len(levels_of(start(least))) <= MANY]
        return [*few, coarse], [*reversed(fine)]

    def _tried(self, shapes: Shapes, chosen: Chosen, least: int) -> Found:
        """What the people of levels of so many publish, by the part of its share that too frequent a value is left.

        Of few people all is tried, even that nobody gives up rows for a value.
        """
        whole, found = Found(self._first, shapes, chosen), list[Found]()
        for slack in (SLACK, Fraction(1), None):
            spared = whole if slack is None else self._spared(whole, least, slack)
            found.append(self._improved(spared, least))
            if spared is whole or (found[-1].is_able and self.stack.encoded.row_count > SMALL):
                break
        return min(found, key=lambda one: (not one.is_able, not one.chosen, one.lost, one.left_out))

    def _improved(self, found: Found, least: int) -> Found:
        """What people publish if all levels are to meet the policy; what it loses is known where that is found soon."""
        able, shapes = found.trials.able(found.shapes, found.chosen, least)
        known = replace(found, shapes=shapes, chosen=able)
        if able and known.is_able and found.trials.searches(shapes, able):
            able, lost = found.trials.improved(shapes, able)
            return replace(known, chosen=able, lost=lost)
        return known

    def _spared(self, whole: Found, least: int, slack: Fraction) -> Found:
        """What people publish once some of those have given up rows of whom too many have one value."""
        engine, stack, found = self.asked.engine, self.stack, whole
        attributes = bounded_in(stack, self.asked.wanted, whole.shapes.alone(stack))
        if not (attributes and whole.chosen):
            return whole
        published, _ = whole.trials.published(whole.shapes, levels_of(whole.chosen))
        with engine.scope():
            givers = frequent_in(engine, stack, published, attributes, Fraction(1)).people
        fine = set[LevelKey]()
        while givers and (band := _band(found, fine)):
            with engine.scope() as scope:
                published, _ = published_rows(engine, stack, found.shapes, band)
                frequent = frequent_in(engine, stack, published, attributes, slack)
                if not frequent.found:
                    fine |= {*band}
                    continue
                rows = frequent.given_up(engine, stack, found.shapes.secret)
                fewer = self._without(found, rows, least, givers)
                for relation in fewer.shapes.at.relations:
                    scope.keep(relation)
            if found is not whole:
                engine.drop(*found.shapes.at.relations)
            found, fine = fewer, {key for key in fine if fewer.shapes.moved.isdisjoint(key[1])}
        return found

    def _without(self, found: Found, rows: Relation, least: int, givers: int) -> Found:
        """What people publish without these rows."""
        stack = found.trials.stack
        shapes = shapes_without(self.asked.engine, stack, found.shapes, rows)
        lost = found.trials.without + (found.shapes.weight(found.shapes.whole) - shapes.weight(shapes.whole)) / ROW_UNIT
        trials = LevelTrials(self.asked, self.algorithm, stack, self.by_loss, lost)
        return Found(trials, shapes, settled(shapes, least), givers=givers)


def _band(found: Found, fine: Collection[LevelKey]) -> list[LevelKey]:
    """The levels of the most rows, and of nearly as many, in which no value is known to be too frequent by now."""
    rows = {option.kept: option.rows for option in (found.chosen or {}).values()}
    keys = [key for key in levels_of(found.chosen or {}) if key not in fine]
    return [key for key in keys if rows[key[0]] >= BAND * rows[keys[0][0]]]


def _relations(task: Task) -> list[Relation]:
    """The tables that the task of all people is made of, beside that of their rows."""
    assert task.units is not None  # noqa: S101 - people are planned
    units = [task.units.members, *(relation for level in task.units.levels for relation in level.tables)]
    return [*units, *(plan.assigned for plan in task.made.values())]
