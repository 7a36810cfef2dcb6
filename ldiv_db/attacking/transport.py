"""A transport problem solved exactly: which kinds of people can be in which classes, each class being full.

One solution, a maximum flow found in phases (Hopcroft and Karp 1973), tells all of them: in its residual graph a route
that it does not take is taken by some other solution exactly if its ends lie on a common circle, in one strongly
connected component (Régin 1994, 1996). A phase looks at each route a few times, and phases are few.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Route = tuple[int, int]
#: Stands for being in no class; kinds of people are positive, classes negative.
_NOWHERE = 0


@dataclass
class SolvedTransport:
    """The routes that no solution takes, and how many people are in components that were not solved.

    `skipped` are those of components that are too large, `contradicted` of those where rows find no people.
    """

    impossible: list[Route] = field(default_factory=list)
    skipped: int = 0
    contradicted: int = 0


def solve(people: Mapping[int, int], rows: Mapping[int, int], routes: Sequence[Route], most: int) -> SolvedTransport:
    """The routes (kind, class) that no placing of the people on the rows takes.

    Of the components `most` routes are solved, the smallest first; people of the others stay as they are.
    """
    solved = SolvedTransport()
    for part in sorted(_components(routes), key=len):
        everybody = sum(people[kind] for kind in {kind for kind, _ in part})
        most -= len(part)
        if most < 0:
            solved.skipped += everybody
            continue
        placing = Placing(people, rows, part)
        if everybody >= sum(placing.needed.values()) and placing.fill():
            solved.impossible += placing.impossible()
        else:
            solved.contradicted += everybody
    return solved


def _components(routes: Sequence[Route]) -> Iterable[list[Route]]:
    near: defaultdict[int, list[int]] = defaultdict(list)
    for kind, box in routes:
        near[kind].append(-box)
        near[-box].append(kind)
    number = circles(list(near), near.__getitem__)
    parts: defaultdict[int, list[Route]] = defaultdict(list)
    for route in routes:
        parts[number[route[0]]].append(route)
    return parts.values()


class Placing:
    """People of a component placed in its classes: `placed` by kind and class, `left` by kind, `needed` by class."""

    def __init__(self, people: Mapping[int, int], rows: Mapping[int, int], routes: Sequence[Route]):
        self._routes = routes
        self._kinds: defaultdict[int, list[int]] = defaultdict(list)
        self._boxes: defaultdict[int, list[int]] = defaultdict(list)
        for kind, box in routes:
            self._kinds[box].append(kind)
            self._boxes[kind].append(box)
        self.left = {kind: people[kind] for kind in self._boxes}
        self.needed = {box: rows[box] for box in self._kinds}
        self.placed: dict[int, dict[int, int]] = {kind: {} for kind in self._boxes}
        #: How often all routes were looked at to find those that people can be moved along.
        self.phases = 0

    def fill(self) -> bool:
        """Whether all classes can be filled, as they then are."""
        for box in sorted(self._kinds, key=lambda box: len(self._kinds[box])):
            for kind in sorted(self._kinds[box], key=lambda kind: len(self._boxes[kind])):
                self._move(kind, box, min(self.left[kind], self.needed[box]))
        while self.needing:
            self.phases += 1
            if not self._moved(self._depths()):
                return False
        return True

    @property
    def needing(self) -> list[int]:
        """The classes that are not full."""
        return [box for box, count in self.needed.items() if count]

    def _move(self, kind: int, box: int, count: int) -> None:
        if count:
            self.placed[kind][box] = self.placed[kind].get(box, 0) + count
            self.left[kind] -= count
            self.needed[box] -= count

    def _depths(self) -> dict[int, int]:
        """How many kinds move until a class (negative), or a kind, passes on what is needed, until some are left."""
        layer, depth, ended = self.needing, 0, False
        depths = {-box: 0 for box in layer}
        while layer and not ended:
            depth, reached = depth + 1, [kind for box in layer for kind in self._kinds[box]]
            layer = []
            for kind in reached:
                if kind not in depths:
                    depths[kind] = depth
                    ended = ended or self.left[kind] > 0
                    further = [box for box in self.placed[kind] if -box not in depths]
                    depths.update((-box, depth) for box in further)
                    layer += further
        return depths

    def _moved(self, depths: Mapping[int, int]) -> bool:
        """Whether anybody was moved along the shortest chains: each kind that moves makes room for the one before."""
        ended = set[int]()
        steps = {box: self._steps(box, depths, ended) for box in self._kinds if -box in depths}
        moved = False
        for start in self.needing:
            while self.needed[start] and (chain := self._chain(start, steps)):
                self._pass_on(chain)
                moved = True
        return moved

    def _steps(self, box: int, depths: Mapping[int, int], ended: set[int]) -> Iterator[Route]:
        """The kinds that may fill a class, each with the class that it leaves for it; that is 0 for who is left."""
        depth = depths[-box] + 1
        for kind in self._kinds[box]:
            held = self.placed[kind]
            while self.left[kind]:
                yield kind, _NOWHERE
            for other in list(held) if depths.get(kind) == depth else ():
                while other in held and other not in ended and depths.get(-other) == depth:
                    yield kind, other
        ended.add(box)

    @staticmethod
    def _chain(start: int, steps: Mapping[int, Iterator[Route]]) -> list[Route]:
        """Kinds, each with the class it is to go to, from `start` to a kind of which somebody is left; or nothing."""
        chain: list[Route] = []
        path = [start]
        while path:
            kind, other = next(steps[path[-1]], (_NOWHERE, _NOWHERE))
            if kind == _NOWHERE:
                path.pop()
                chain[-1:] = []
                continue
            chain.append((kind, path[-1]))
            if other == _NOWHERE:
                return chain
            path.append(other)
        return []

    def _pass_on(self, chain: Sequence[Route]) -> None:
        start, last = chain[0][1], chain[-1][0]
        given = [self.placed[kind][other] for (kind, _), (_, other) in pairwise(chain)]
        count = min(self.needed[start], self.left[last], *given)
        for (kind, _), (_, other) in pairwise(chain):
            self._move(kind, other, -count)
            if not self.placed[kind][other]:
                del self.placed[kind][other]
        for kind, box in chain:
            self._move(kind, box, count)

    def impossible(self) -> list[Route]:
        """The routes that no placing takes that fills all classes, as this one does."""
        if len(self._kinds) == 1:
            return []
        holders: defaultdict[int, list[int]] = defaultdict(list)
        for kind, held in self.placed.items():
            for box in held:
                holders[-box].append(kind)
        free = [kind for kind, count in self.left.items() if count]
        nowhere = [_NOWHERE] if free else []

        def after(node: int) -> list[int]:
            if node > 0:
                return [*(-box for box in self._boxes[node]), *nowhere]
            return free if node == _NOWHERE else holders[node]

        number = circles([*self._boxes, *(-box for box in self._kinds), *nowhere], after)
        return [
            (kind, box) for kind, box in self._routes if box not in self.placed[kind] and number[kind] != number[-box]
        ]


def circles(nodes: Iterable[int], after: Callable[[int], Iterable[int]]) -> dict[int, int]:
    """The strongly connected component of each node of a graph (Tarjan 1972), by the first of its nodes."""
    found: dict[int, int] = {}
    lowest: dict[int, int] = {}
    waiting: list[int] = []
    for root in nodes:
        path = [] if root in lowest else [(root, len(lowest), iter(after(root)))]
        while path:
            node, own, rest = path[-1]
            if node not in lowest:
                lowest[node] = own
                waiting.append(node)
            following = next((one for one in rest if one not in found), None)
            if following is None:
                path.pop()
                if lowest[node] == own:
                    while node not in found:
                        found[waiting.pop()] = node
                elif path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
            elif following in lowest:
                lowest[node] = min(lowest[node], lowest[following])
            else:
                path.append((following, len(lowest), iter(after(following))))
    return found
