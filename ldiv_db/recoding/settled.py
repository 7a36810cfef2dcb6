"""What people of each shape publish so that enough publish the same: as many rows as they can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush

from ldiv_db.recoding.shapes import Option, Shapes


def settled(shapes: Shapes, least: int) -> dict[int, Option] | None:
    """What the people of each shape publish so that at least so many publish the same; None if they cannot.

    Shapes that enough have stay as they are. Others keep as many rows as they can and have others do as well.
    """
    banned, forced = set(shapes.banned), dict[int, int]()
    while True:
        allowed = _allowed(shapes, least, banned, forced)
        choice = _Choice(shapes.people, allowed, least, len(shapes.needs) == 1)
        choice.open_levels({*forced.values()} - banned)
        if small := choice.small():
            banned |= small
            continue
        left = [shape for shape, found in choice.chosen.items() if found is None]
        if not left:
            return {shape: found for shape, found in choice.chosen.items() if found}
        down = choice.come_down(left)
        if not down:
            return None
        forced |= down


def _allowed(shapes: Shapes, least: int, banned: Collection[int], forced: Mapping[int, int]) -> dict[int, list[Option]]:
    """What is left of each shape that is not banned, and that enough people can publish or are forced to."""
    backing = Counter[int]()
    for shape, options in shapes.options.items():
        people, only = shapes.people[shape], forced.get(shape)
        for option in options:
            if only is None or only == option.kept:
                backing[option.kept] += people
    able = {kept for kept, people in backing.items() if people >= least} | {*forced.values()}
    able -= set(banned)
    return {
        shape: [o for o in options if o.kept in able and forced.get(shape, o.kept) == o.kept]
        for shape, options in shapes.options.items()
    }


class _Choice:
    """What is chosen of the options of each shape, so that people keep as many rows as they can.

    In one table, whose shapes have the order of their rows, who has more publishes no fewer.
    """

    def __init__(
        self, people: Mapping[int, int], options: Mapping[int, Sequence[Option]], least: int, in_one_table: bool
    ) -> None:
        self.chosen: dict[int, Option | None] = dict.fromkeys(options)
        self._in_one_table = in_one_table
        self._people, self._options, self._least = people, options, least
        self._having: dict[int, list[tuple[int, Option]]] = {}
        for shape, own in options.items():
            for option in own:
                self._having.setdefault(option.kept, []).append((shape, option))

    def open_levels(self, first: Collection[int]) -> None:
        """Open levels: those that are named, shapes that enough people have, then what most rows are kept by."""
        whole = {own[0].kept for shape, own in self._options.items() if own and self._people[shape] >= self._least}
        for kept in sorted({*first, *whole}):
            self._open(kept)
        # What more is kept by a level gets less with each that is opened: counted anew only when it seems to be most.
        most = [(-self._gain(kept)[1], kept) for kept in self._having]
        heapify(most)
        while most:
            _, kept = heappop(most)
            people, gain = self._gain(kept)
            if people < self._least or not gain:
                continue
            if most and most[0] < (-gain, kept):
                heappush(most, (-gain, kept))
            else:
                self._open(kept)

    def small(self) -> set[int]:
        """The levels that have fewer people than a level must have."""
        sizes = Counter[int]()
        for shape, found in self.chosen.items():
            if found:
                sizes[found[1]] += self._people[shape]
        return {kept for kept, people in sizes.items() if people < self._least}

    def come_down(self, left: Collection[int]) -> dict[int, int]:
        """What enough people publish with those of whom nothing is chosen: others who lose the fewest rows by that."""
        asked = {kept: rows for shape in left for rows, kept, *_ in self._options[shape]}
        for kept, rows in sorted(asked.items(), key=lambda one: (-one[1], one[0])):

            def lost(shape: int, rows_kept: int = rows) -> tuple[int, int]:
                now = None if self._in_one_table else self.chosen[shape]
                return (self._people[shape] * (now[0] - rows_kept) if now else -1, shape)

            taken, people = dict[int, int](), 0
            for shape in sorted((shape for shape, _ in self._having[kept]), key=lost):
                if people < self._least or self.chosen[shape] is None:
                    taken[shape] = kept
                    people += self._people[shape]
            if people >= self._least:
                return taken
        return {}

    def _open(self, kept: int) -> None:
        """Have all publish this who publish less."""
        for shape, option in self._having.get(kept, ()):
            now = self.chosen[shape]
            if now is None or option.rows > now.rows:
                self.chosen[shape] = option

    def _gain(self, kept: int) -> tuple[int, int]:
        """How many people would keep more rows by a level than they do, and how many more rows that are."""
        people = gain = 0
        for shape, option in self._having[kept]:
            now = self.chosen[shape]
            more = option.rows - now.rows if now else option.rows
            if more > 0:
                people += self._people[shape]
                gain += self._people[shape] * more
        return people, gain
