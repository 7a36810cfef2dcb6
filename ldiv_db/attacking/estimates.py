"""How often an attack succeeds, and how much of that is due to people being in the release.

After Giomi et al., "A Unified Framework for Quantifying Privacy Risk in Synthetic Data" (PoPETs 2023), as their
program Anonymeter computes it: a rate of successes is estimated by the centre of its Wilson score interval (Wilson,
JASA 22, 1927) of 95 %, half as wide is its error. The risk is what the rate on targets, who are in the release, has
above the rate on a control, people like them who are not: `(r - c) / (1 - c)`, of what there was to gain. Errors are
propagated to first order; risk and interval are cut to 0..1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.disclosure import Attack, Gain, gain_of

#: The 97.5 % quantile of the normal distribution: of intervals of 95 %.
Z = 1.959963984540054


@dataclass(frozen=True)
class Tried:
    """How often an attack was tried, and how often it succeeded."""

    attempts: int
    successes: int

    @property
    def share(self) -> Fraction | None:
        return Fraction(self.successes, self.attempts) if self.attempts else None

    @property
    def rate(self) -> float:
        """The centre of the Wilson interval."""
        return (self.successes + Z * Z / 2) / (self.attempts + Z * Z)

    @property
    def error(self) -> float:
        """Half the width of the Wilson interval; half of all that a rate may be if nothing was tried."""
        if not self.attempts:
            return 0.5
        spread = self.successes * (self.attempts - self.successes) / self.attempts + Z * Z / 4
        return Z / (self.attempts + Z * Z) * math.sqrt(spread)

    @property
    def interval(self) -> list[float]:
        """The Wilson interval of 95 %: from 0 if nothing succeeded, to 1 if all did, which rounding would miss."""
        low, high = _cut(self.rate, self.error)
        return [low if self.successes else 0.0, high if self.successes < self.attempts else 1.0]


def _cut(value: float, error: float) -> list[float]:
    return [min(max(bound, 0.0), 1.0) for bound in (value - error, value + error)]


@dataclass(frozen=True)
class Risk:
    """What a success rate has above that of a control, of what it could have, and its interval of 95 %; all 0..1."""

    value: float
    interval: list[float]


def risk_beyond(targets: Tried, control: Tried) -> Risk:
    """The risk of the targets beyond that of the control."""
    left = 1 - control.rate
    value = (targets.rate - control.rate) / left
    error = math.hypot(targets.error / left, control.error * (targets.rate - 1) / left**2)
    return Risk(min(max(value, 0.0), 1.0), _cut(value, error))


def tried_attack(
    name: str, sensitive: str | None, measure: str, tried: Tried, guessed: Tried, pair: tuple[Tried, Tried] | None
) -> Attack:
    """The attack as a report has it: nothing is promised of it.

    `guessed` is the same by random guesses; `pair` is what succeeds on targets and on as many of the control, if
    there is one.
    """
    gains: tuple[Gain, ...] = (gain_of(measure, tried.share, None),)
    figures: dict[str, Any] = {**_counts("", tried), **_counts("random_", guessed)}
    if pair:
        risk = risk_beyond(*pair) if pair[0].attempts and pair[1].attempts else None
        gains += (Gain("risk beyond the control", risk.value if risk else None, None, None),)
        figures |= {**_counts("control_", pair[1]), "risk_interval": risk.interval if risk else None}
    return Attack(name, sensitive, gains, figures)


def _counts(prefix: str, tried: Tried) -> dict[str, Any]:
    """The counts and the interval as figures."""
    counts = {"attempts": tried.attempts, "successes": tried.successes}
    return {f"{prefix}{key}": value for key, value in {**counts, "interval": tried.interval}.items()}
