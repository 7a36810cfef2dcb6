"""The part of a class that is good by itself, where requirements bound the shares of sensitive values.

Rows alike are mostly too one-sided: more men than women drive lorries. A class need not wait for others until its
shares are those that are asked for: it keeps as many rows of each value as go together, and the others are generalised
further.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ldiv_db.algorithms.base import Task
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.requirements import promised_by
from ldiv_db.requirements.guarantees import ONE

#: So many numbers of rows are tried, from the bound downward: fractions of rows may leave it out of reach.
TRIES = 6


@dataclass(frozen=True)
class Limits:
    """`shares` (code, share, most) of the sensitive values, and the most by which all together may exceed theirs.

    A value has a bound of its own where shares are `capped`.
    """

    shares: Relation
    difference: float
    capped: bool
    key: Identifier

    @classmethod
    def of(cls, task: Task) -> Limits | None:
        """Those of a task; None if a class that is too one-sided is not to keep a part of its rows."""
        if not passes_on(task):
            return None
        axis, promise = task.encoded.sensitive[0], promised_by(task.requirements)
        params = {"share": float(promise.share), "difference": float(promise.difference)}
        shares = task.engine.materialise("shares", "local/peel/list_shares", dictionary=axis.reference, **params)
        return cls(shares, params["difference"], promise.share < ONE, axis.code)

    def bound(self, make: Callable[..., Relation], counts: Relation, least: int) -> Relation:
        """The counts of classes that may keep as many rows as `least`, and how many: no others do with fewer rows."""
        params = {"shares": self.shares, "difference": self.difference, "key": self.key, "least": max(least, 2)}
        asked = {"near": self.difference < ONE, "capped": self.capped}
        return make("bounded", "local/peel/bound_classes", counts=counts, **params, **asked)

    def fit(self, make: Callable[..., Relation], bounded: Relation, least: int) -> Relation:
        """(class_no, the code, rows): what classes with these bounds keep, if it is as many as `least`."""
        params = {"difference": self.difference, "key": self.key, "least": max(least, 2), "tries": TRIES}
        return make("fitted", "local/peel/fit_classes", bounded=bounded, **params)


def passes_on(task: Task) -> bool:
    """True if classes keep the part of their rows that is not too one-sided: all shares have the same bounds.

    Where a bound is a multiple of a value's share, rare values are in no small class, and too much is passed on.
    """
    axes, promise = task.encoded.sensitive, promised_by(task.requirements)
    plain = all(r.monotone and not r.harmless and not r.others_known for r in task.requirements)
    decides = all(r.bounds_shares or r.promise().share == ONE for r in task.requirements)
    alike = not promise.shares and promise.ratio is None and (promise.share < ONE or promise.difference < ONE)
    return plain and decides and alike and len(axes) == 1 and axes[0].bags is None and axes[0].judged is None
