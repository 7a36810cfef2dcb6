"""Replay of a release by somebody who has the program, the policy and everybody's quasi-identifiers.

A world gives the sensitive values to the rows; all worlds with the same multiset of values are equally likely before.
The attacker runs the program on every world that the release leaves open, and those that give another release are out.
A value's posterior for a row is the weight of the worlds left that give it to the row, by that of all worlds left;
where coins are secret a world weighs as many of its runs, with seeds drawn anew, as gave this release (transparent
l-diversity; Xiao, Tao, Koudas 2010).

A payload is what one row publishes beside what people are known by, here a number; a place is a class, or several that
are published alike. Two ways that give the same payload to every row are one world.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ldiv_db.attacking.base import Attacker, bounds_of, place_values
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, mean_of, share_in
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.requirements.guarantees import Guarantee

#: The payload of each row, in the order of the rows.
World = tuple[int, ...]
#: A place and a payload that occurs there.
Cell = tuple[int, int]
#: Beginnings of worlds looked at for each world that is allowed: some come to nothing.
_BEGINNINGS = 20
#: From so many ways on, more of them count no more: of those that were drawn the true one alone is sure.
_MOST_WEIGHT = 10**6


def consistent_worlds(fits: Sequence[Collection[int]], cells: Mapping[Cell, int], most: int) -> list[World] | None:
    """All worlds that a release leaves open, in order; None if there are more than `most`, or too many to look at.

    `fits` are the places that each row may be in, `cells` how many rows of each place have each payload.
    """
    order = sorted(cells)
    begun: dict[tuple[int, ...], set[World]] = {tuple(cells[cell] for cell in order): {()}}
    for places in fits:
        longer: dict[tuple[int, ...], set[World]] = {}
        for left, worlds in begun.items():
            for rest, payload in _taken(left, order, places):
                longer.setdefault(rest, set()).update((*world, payload) for world in worlds)
        begun = longer
        if sum(map(len, begun.values())) > most * _BEGINNINGS:
            return None
    found = set().union(*begun.values())
    return sorted(found) if len(found) <= most else None


def _taken(left: tuple[int, ...], order: Sequence[Cell], places: Collection[int]) -> Iterator[tuple[World, int]]:
    """The rest of the cells after one more row has taken its payload from one of them, and the payload."""
    for number, (place, payload) in enumerate(order):
        if left[number] and place in places:
            yield (*left[:number], left[number] - 1, *left[number + 1 :]), payload


@dataclass(frozen=True)
class WorldSet:
    """Rows, by number, and the worlds to be told apart on them, each with its weight; all other rows are known.

    `true` is what the rows have in the source. Weights are what worlds stand for, in whole numbers: of those that were
    drawn the true one stands for itself, and the others for all others.
    """

    rows: Sequence[int]
    true: World
    worlds: Sequence[World]
    weights: Sequence[int]


def count_arrangements(payloads: Sequence[int]) -> int:
    """The number of different ways to give the payloads to as many rows."""
    ways = math.factorial(len(payloads))
    for rows in Counter(payloads).values():
        ways //= math.factorial(rows)
    return ways


def arrange(rows: Sequence[int], payloads: World, most: int, coins: Random) -> WorldSet:
    """The ways to give `payloads`, as they truly are, to as many rows, the true one first.

    All there are, or `most` (at least 2) of them, drawn by coins.
    """
    ways = count_arrangements(payloads)
    if ways <= most:
        cells = {(0, payload): count for payload, count in Counter(payloads).items()}
        worlds = consistent_worlds([{0}] * len(payloads), cells, ways) or []
        others = [world for world in worlds if world != payloads]
        return WorldSet(rows, payloads, [payloads, *others], [1] * ways)
    drawn = {payloads: None}
    while len(drawn) < most:
        drawn[tuple(coins.sample(payloads, len(payloads)))] = None
    beside = len(drawn) - 1
    return WorldSet(rows, payloads, list(drawn), [beside] + [min(ways - 1, _MOST_WEIGHT)] * beside)


#: With secret coins: so many runs must give the release before shares of them are told, and a share exceeds a promise
#: if it does by so many standard errors.
FEWEST_HITS, ERRORS = 25, 5


@dataclass(frozen=True)
class SampledWorlds:
    """The worlds that are tried: one set of all that the release leaves open (`exact`), or a set for each class."""

    sets: Sequence[WorldSet]
    exact: bool

    def numbered(self) -> Iterator[tuple[int, int, WorldSet, World, int]]:
        """(number of the world, number of its set, set, world, weight), from 1."""
        number = 0
        for set_no, world_set in enumerate(self.sets, 1):
            for world, weight in zip(world_set.worlds, world_set.weights, strict=True):
                number += 1
                yield number, set_no, world_set, world, weight

    @property
    def open(self) -> Sequence[WorldSet]:
        """The sets with more than one world."""
        return [world_set for world_set in self.sets if len(world_set.worlds) > 1]

    @property
    def count(self) -> int:
        """The number of worlds: those to be told apart, or the only one."""
        return sum(len(world_set.worlds) for world_set in self.open) or 1

    def moves(self) -> list[tuple[int, int, int]]:
        """(world_no, row_no, payload_no) of all worlds."""
        return [
            (number, row, payload)
            for number, _, world_set, world, _ in self.numbered()
            for row, payload in zip(world_set.rows, world, strict=True)
        ]


@dataclass(frozen=True)
class WorldTally:
    """In how many runs each world, by its number, gave the release; of worlds that were run `tries` times (0: once)."""

    sampled: SampledWorlds
    hits: Counter[int]
    tries: int

    def masses(self) -> list[tuple[int, int, int]]:
        """(world_no, set_no, mass) of the worlds that gave the release, of sets in which that was often enough."""
        told = self._told()
        return [
            (number, set_no, weight * self.hits[number])
            for number, set_no, _, _, weight in self.sampled.numbered()
            if self.hits[number] and set_no in told
        ]

    def _told(self) -> set[int]:
        sums: dict[int, int] = defaultdict(int)
        for number, set_no, _, _, _ in self.sampled.numbered():
            sums[set_no] += self.hits[number]
        sure = {number for number, world_set in enumerate(self.sampled.sets, 1) if len(world_set.worlds) == 1}
        return sure | {number for number, hits in sums.items() if hits >= (FEWEST_HITS if self.tries else 1)}

    def figures(self) -> dict[str, Any]:
        """Counts of what was tried and found; of worlds those to be told apart, or the only one."""
        apart = [number for number, _, one, _, _ in self.sampled.numbered() if len(one.worlds) > 1]
        left = sum(1 for number in apart if self.hits[number]) if apart else 1
        found: dict[str, Any] = {
            "seed": "secret" if self.tries else "known",
            "tried": "all worlds" if self.sampled.exact else "drawn classes",
            "worlds": self.sampled.count,
            "worlds_left": left,
        }
        if self.tries:
            found |= {"runs": self.tries * self.sampled.count, "runs_left": sum(self.hits[number] for number in apart)}
        if not self.sampled.exact:
            found |= {"classes_tried": len(self.sampled.sets)}
        if len(self._told()) < len(self.sampled.sets):
            found |= {"untold": len(self.sampled.sets) - len(self._told())}
        return found


class Replayer(Attacker):
    """Whoever has the program, and makes the release of other worlds; `running/attack.py` runs it for them."""

    names = ("replay",)
    key = "replay"
    place = 8


@dataclass(frozen=True)
class Replayed:
    """Worlds in the database, `moves` (world_no, row_no, payload_no), and the rows: `people`, a donor a payload.

    So many `rows` and `classes` were published.
    """

    engine: Engine
    people: Relation
    donors: Relation
    moves: Relation
    tally: WorldTally
    rows: int
    classes: int


def replay_attack(found: Replayed, sensitive: str, column: Identifier, promise: Guarantee, promised: bool) -> Attack:
    """The attack by replay on one sensitive attribute, `column` of the people.

    The requirements' promise is a bound if it is `promised` also to those who know the method; otherwise there is none,
    and the figures say how many people are above the promise.
    """
    engine, tally = found.engine, found.tally
    known = {"people": found.people, "donors": found.donors, "moves": found.moves}
    flow = EngineFlow(engine, "attacking/replay", **known, column=column, unit=UNIT)
    with flow.scope():
        priors = place_values(engine, engine.count_groups("totals", found.people, (column.name, "value")), promise)
        bounds = bounds_of(engine, priors, promise)
        masses = {"world_no": "BIGINT", "set_no": "BIGINT", "mass": "HUGEINT"}
        flow.know(tally=engine.load("tally", masses, tally.masses()), priors=priors)
        flow.step("judged", "judge_beliefs", errors=ERRORS if tally.tries else 0)
        summary = flow.record("summarise_beliefs")
    above = int(summary["people_above"])
    # Shares of drawn runs scatter: the promise is broken by those that exceed it by more than chance.
    gain = gain_of("posterior", share_in(summary), bounds.posterior if promised else None)
    if promised and tally.tries:
        gain = replace(gain, holds=not above)
    figures = {
        **tally.figures(),
        "people": summary["people"],
        "mean": mean_of(summary["mean_units"], summary["people"]),
        "promised_without_replay": None if bounds.posterior is None else float(bounds.posterior),
        "people_above": above,
        "people_certain": summary["people_certain"],
    }
    attack = Attack("replay", sensitive, (gain,), figures)
    return attack.with_untried("rows", min(summary["people"], found.rows), found.rows)
