"""Effort: how much work `auto` takes for less loss, in counted work, so that the same table gives the same release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ldiv_db.algorithms.neighbours.passes import ASKED

Name = Literal["quick", "normal", "thorough"]


@dataclass(frozen=True)
class Effort:
    """The work of `trials` after the first candidate's, and what improvements are `asked` to gain; None for none.

    Work is in that of the quickest algorithm on the table. A gain is asked of each tenth of it, in millionths of what
    all classes cost. With `every` pass those are tried as well that seldom gain much under what is required.
    `lasting` is how much longer improvements were measured to last than by the normal effort, about.
    """

    trials: int = 0
    asked: int | None = None
    every: bool = False
    lasting: int = 1


#: Nothing but the first candidate.
LEAST = Effort()
#: By its name in a policy.
EFFORTS: dict[Name, Effort] = {
    "quick": LEAST,
    "normal": Effort(asked=ASKED),
    "thorough": Effort(trials=20, asked=40, every=True, lasting=3),
}
