"""Which levels the people of several tables form: of those who publish equally many rows in each, enough to be good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.database.errors import InfeasibleError, count_phrase, rows_phrase
from ldiv_db.recoding.shapes import (
    LevelKey,
    Shapes,
    levels_of,
    published_rows,
    settled,
    shaped_units,
    whole_levels,
    without_labels,
)
from ldiv_db.recoding.stacked import Stack
from ldiv_db.recoding.units import Level
from ldiv_db.solving.levels import level_tasks, unmet

#: Why there is no class of people without labels.
_BARE = "some people have no row in a table with quasi-identifiers"
#: What the people of each shape publish: (kept, cap).
Chosen = Mapping[int, tuple[int, int]]


@dataclass
class LevelSearch:
    """The search for levels that can all meet what is `asked`; what is found of a level is kept for later rounds."""

    asked: Task
    algorithm: Algorithm
    stack: Stack
    #: The units of levels, why levels cannot meet the policy (empty if they can), and levels that do as one class.
    made: dict[LevelKey, Level] = field(default_factory=dict)
    why: dict[LevelKey, str] = field(default_factory=dict)
    good: set[LevelKey] = field(default_factory=set)

    def found(self, shapes: Shapes) -> tuple[Task, Algorithm, str]:
        """The task of the people, its algorithm and why it was chosen; raises InfeasibleError if there are no levels.

        Levels that cannot meet the policy are given up, all at once unless nothing would be left: their people publish
        what others do.
        """
        fewest, failed = max([1, *(one.least_rows for one in self.asked.requirements)]), dict[int, tuple[int, int]]()
        with self.asked.engine.scope() as scope:
            chosen = settled(shapes, fewest)
            while chosen:
                poor = self._unmet(shapes, chosen)
                if not poor:
                    task, algorithm, told = self._planned(shapes, chosen)
                    poor = {key[0] for key in levels_of(chosen) if self.why[key]}
                    if task.units and not poor:
                        for relation in (task.units.members, *(r for level in task.units.levels for r in level.tables)):
                            scope.keep(relation)
                        return task, algorithm, told
                most = max(poor, key=lambda kept: (shapes.rows_of(kept), kept))
                failed = {shape: found for shape, found in chosen.items() if found[0] == most}
                fewer = settled(shapes.without(poor), fewest)
                shapes = shapes.without(poor if fewer else {most})
                chosen = fewer or settled(shapes, fewest)
            why = f"no {fewest:,} people can publish as many rows in each table as others"
            if failed:
                if any(key not in self.why for key in levels_of(failed)):
                    self._planned(shapes, failed)
                why = next((self.why[key] for key in levels_of(failed) if self.why[key]), why)
        raise InfeasibleError(f"{why}: ask for less, or leave out the rows of those who have few in a query")

    def _unmet(self, shapes: Shapes, chosen: Chosen) -> set[int]:
        """The levels whose people do not meet the policy as one class, which is asked of each once."""
        engine, keys = self.asked.engine, [key for key in levels_of(chosen) if key not in self.good]
        new = {shape: chosen[shape] for _, own in keys for shape in own}
        if not new:
            return set()
        with engine.scope():
            published, places = published_rows(engine, self.stack, shapes, new)
            bare = without_labels(self.stack, places)
            labelled = {level: own for level, own in places.items() if level not in bare}
            poor = bare | unmet(self.asked, self.algorithm, whole_levels(engine, self.stack, published, labelled))
        self.why |= {key: _BARE for key in keys if key[0] in bare}
        self.good.update(key for key in keys if key[0] not in poor)
        return poor

    def _planned(self, shapes: Shapes, chosen: Chosen) -> tuple[Task, Algorithm, str]:
        """The task of what is chosen, its algorithm and why; `why` then has each of its levels."""
        units = shaped_units(self.asked.engine, self.stack, shapes, chosen, self.made)
        task = replace(self.asked, encoded=units.encoded, units=units)
        levels = level_tasks(task)
        largest = max((own for _, own in levels), key=lambda own: own.encoded.row_count)
        algorithm, told = self.algorithm.chosen(largest)
        algorithm.refuse_unfit(largest)
        for key, (level, own) in zip(levels_of(chosen), levels, strict=True):
            if key not in self.why:
                self.why[key] = _poor(algorithm, level, own)
        return task, algorithm, told


def _poor(algorithm: Algorithm, level: Level, own: Task) -> str:
    """Why the people of a level cannot meet the policy; empty if they can."""
    people = count_phrase(own.encoded.row_count, "person", "people")
    who = f"{people} who would publish {rows_phrase(level.rows)} each"
    try:
        algorithm.checked(own)
    except InfeasibleError as error:
        return f"{error.message}\n{who} are too few, or too much alike"
    return ""
