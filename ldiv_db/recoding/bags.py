"""Bags: the values that a person has, or a row of a set, which count once for whoever has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation

#: People with more units than this, so that all their shares are whole numbers of them, are refused by shares.
MOST_UNITS = 10**9
#: The units of a person whose rows share them evenly, where one of these is known: exact for up to 22 rows, else shares
#: are rounded up.
ROW_UNITS = lcm(*range(1, 23))


def person_units(sizes: Sequence[int]) -> int:
    """The units of a person that are a whole number for each of these numbers of values; 0 if they are too many."""
    units = lcm(1, *sizes)
    return units if units <= MOST_UNITS else 0


@dataclass(frozen=True)
class Bags:
    """The bags of a sensitive attribute: the values that people have, by the code of each.

    `listed` is (code, value, size): a person has `scale` units in all, which their values share, `size` of them; 0 if
    no number up to 10^9 can be shared evenly by all.
    `whole` and `shares` are (value, rows): how many people of the whole table have a value, and their units of it.
    Where classes must be good by their rows as well, `rows` is (value, rows) of the whole table, and where rows have
    sets `row_shares` as `shares`: bags are told apart by the `held` rows that have a value, of which a person has
    `counted` in all, and their shares of it are `weighed`.
    """

    listed: Relation
    scale: int
    whole: Relation
    shares: Relation
    rows: Relation | None = None
    row_shares: Relation | None = None

    @classmethod
    def of(cls, engine: Engine, listed: Relation, scale: int, whole: Relation) -> Bags:
        """The bags of people, where the whole table is (value, rows, units)."""
        return cls(listed, scale, whole, engine.select("shares", whole, "value", ("units", "rows")))

    @property
    def tables(self) -> list[Relation]:
        """All that they refer to."""
        return [table for table in (self.listed, self.whole, self.shares, self.rows, self.row_shares) if table]
