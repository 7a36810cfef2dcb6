"""Who pays for a recoding: what groups of rows lose, beside how many they are.

A group has one value of a quasi-identifier, or numbers of one range. What it loses is that of all cells of its rows,
not of this column alone: people of a rare age may lose their town.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.recoding.encoded import LOSS_UNIT, Encoded
from ldiv_db.recoding.recode import Recoding

#: The ranges of equal width that a column's numbers are taken in, and the groups of a column, those that lose most.
RANGES, MOST = 10, 10


@dataclass(frozen=True)
class GroupLoss:
    """The rows with values from `low` to `high` of a quasi-identifier: their share of all rows, what they lose.

    `lm_mean` is the mean LM of all their cells, `left_out` the share of them that is left out. The values are None
    where none may be shown; `place` is the group's among those of the column, from 1, the most loss first.
    """

    column: str
    place: int
    low: str | None
    high: str | None
    share: float
    lm_mean: float
    left_out: float

    def __str__(self) -> str:
        if self.low is None:
            return f"{self.column}, group {self.place}"
        return f"{self.column} {self.low}" if self.low == self.high else f"{self.column} {self.low} to {self.high}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def lost_by_group(engine: Engine, encoded: Encoded, recoding: Recoding, show_values: bool) -> tuple[GroupLoss, ...]:
    """What the groups of each quasi-identifier lose that lose most, of the rows that no NULL leaves out."""
    spans, dealt = recoding.spans, recoding.dealt
    if not spans:
        return ()
    told = [{"number": number, "by": span} for number, span in enumerate(spans)]
    axes = [{"number": number, "of": span.axis} for number, span in enumerate(spans)]
    weight = encoded.weight if dealt else None
    params: dict[str, Any] = {"rows": encoded.members(dealt), "weight": weight, "dealt": dealt}
    params |= {"assigned": recoding.assigned, "classes": recoding.classes, "told": told, "show_values": show_values}
    params |= {"axes": axes, "ranges": RANGES, "most": MOST, "unit": LOSS_UNIT}
    found = list[GroupLoss]()
    for number, place, low, high, rows, left_out, lm in sorted(engine.rows("recoding/loss/sum_groups", **params)):
        mean = int(lm) / LOSS_UNIT / (int(rows) * len(spans))
        share, gone = int(rows) / encoded.row_count, int(left_out) / int(rows)
        found.append(GroupLoss(spans[number].axis.name, place, low, high, share, mean, gone))
    return tuple(found)
