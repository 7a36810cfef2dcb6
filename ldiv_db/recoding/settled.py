"""What people of each shape publish so that enough publish the same: as many rows as they can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from ldiv_db.recoding.shapes import Option, Shapes


def settled(shapes: Shapes, least: int) -> dict[int, Option] | None:
    """What the people of each shape publish so that at least so many publish the same; None if they cannot.

    Shapes that enough have stay as they are. Others keep as many rows as they can and have others do as well.
    """
    banned, forced = set(shapes.banned), dict[int, int]()
    while True:
        allowed = {
            shape: [o for o in options if o.kept not in banned and forced.get(shape, o.kept) == o.kept]
            for shape, options in shapes.options.items()
        }
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


class _Choice:
    """What is chosen of the options of each shape, so that people keep as many rows as they can.

    By what could be a level: how many people would keep more rows by it than they do (`backing`), and how many more
    that are (`gain`). In one table, whose shapes have the order of their rows, who has more publishes no fewer.
    """

    def __init__(
        self, people: Mapping[int, int], options: Mapping[int, Sequence[Option]], least: int, in_one_table: bool
    ) -> None:
        self.chosen: dict[int, Option | None] = dict.fromkeys(options)
        self._in_one_table = in_one_table
        self._people, self._options, self._least = people, options, least
        self._backing, self._gain = Counter[int](), Counter[int]()
        self._having: dict[int, list[int]] = {}
        for shape, own in options.items():
            for rows, kept, *_ in own:
                self._backing[kept] += people[shape]
                self._gain[kept] += people[shape] * rows
                self._having.setdefault(kept, []).append(shape)

    def open_levels(self, first: Collection[int]) -> None:
        """Open levels: those that are named, shapes that enough people have, then what most rows are kept by."""
        whole = {own[0][1] for shape, own in self._options.items() if own and self._people[shape] >= self._least}
        for kept in sorted({*first, *whole}):
            self._open(kept)
        while able := [
            kept for kept, people in self._backing.items() if people >= self._least and self._gain[kept] > 0
        ]:
            self._open(max(able, key=lambda kept: (self._gain[kept], -kept)))

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
            for shape in sorted(self._having[kept], key=lost):
                if people < self._least or self.chosen[shape] is None:
                    taken[shape] = kept
                    people += self._people[shape]
            if people >= self._least:
                return taken
        return {}

    def _open(self, kept: int) -> None:
        """Have all publish this who publish less."""
        for shape in self._having.get(kept, ()):
            option = next(one for one in self._options[shape] if one[1] == kept)
            now = self.chosen[shape]
            if now is None or option[0] > now[0]:
                self._keep(shape, now[0] if now else 0, option[0])
                self.chosen[shape] = option

    def _keep(self, shape: int, before: int, after: int) -> None:
        """Count who would keep more rows by each level, once the people of a shape keep so many more."""
        people = self._people[shape]
        for rows, kept, *_ in self._options[shape]:  # most rows first
            if rows <= before:
                break
            if rows <= after:
                self._backing[kept] -= people
            self._gain[kept] -= people * (min(rows, after) - before)
