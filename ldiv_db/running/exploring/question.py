"""The question of an exploration: what is varied of a policy, and what its variants are compared by.

Its options on the command line and the arguments of the Python call are made of the one dataclass `ExploreRequest`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ldiv_db.algorithms import ALGORITHMS
from ldiv_db.database.context import Listening
from ldiv_db.database.errors import Problem, nearest, refused
from ldiv_db.database.requests import asked
from ldiv_db.policy.reading import GivenPolicy, names_of
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.parameters import LARGEST
from ldiv_db.requirements.risk import RISK

#: What variants are compared by.
Objective = Literal["loss", "utility"]
#: What can be varied besides parameters and algorithms.
Varied = Literal["taxonomy", "columns"]
VARIED: tuple[str, ...] = get_args(Varied)
#: More variants than this nobody looks at.
MOST_VARIANTS = 300


#: More workers than this no machine of ours has processors for.
_MOST_WORKERS = 256


def _numbers(option: str) -> Callable[[Sequence[str] | None], list[int]]:
    """Reads the whole numbers of an option: `2..7`, `2,4,8`."""
    return lambda texts: [number for part in _names(texts) for number in _range(option, part)]


def _range(option: str, text: str) -> Iterator[int]:
    found = re.fullmatch(r"(\d{1,10})(?:\.\.(\d{1,10}))?", text, re.ASCII)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if first > last:
        raise refused(option, f"takes whole numbers, not {text!r}", "e.g. 2..7, or 2,4,8")
    if last - first >= MOST_VARIANTS:
        raise refused(option, f"{text} are more than {MOST_VARIANTS:,} variants", "ask for fewer")
    yield from range(first, last + 1)


def _names(texts: Sequence[str] | None) -> list[str]:
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]


def _risks(texts: Sequence[str] | None) -> list[float | str]:
    return [text if "/" in text else _number(text) for text in _names(texts)]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@dataclass(frozen=True)
class ExploreRequest(Listening):
    """The policy to explore, what is varied of it, and what its variants are compared by."""

    policy: GivenPolicy
    l: Iterable[int] = asked(
        (),
        "Values of l for every requirement that has one (p of p_sensitive), as 2..7 (the default) or 2,4,8.",
        _numbers("l"),
        of=list[str] | None,
    )
    k: Iterable[int] = asked(
        (), "Values of k for every requirement that has one, written like --l.", _numbers("k"), of=list[str] | None
    )
    algorithms: str | Sequence[str] = asked(
        (),
        "Algorithms to compare, comma-separated or repeated; the first replaces the policy's.",
        _names,
        of=list[str] | None,
        name="algorithm",
    )
    vary: str | Sequence[str] = asked(
        (),
        "columns: leave out each quasi-identifier in turn. taxonomy: each with one level fewer. Comma-separated.",
        _names,
        of=list[str] | None,
    )
    _: KW_ONLY
    risk: Iterable[Any] = asked(
        (),
        "Largest risks of re-identification, as 0.09,1/11, each in place of the policy's.",
        _risks,
        of=list[str] | None,
    )
    by: Objective = asked(
        "loss",
        "Compare variants by loss, or by the error of the `preserve` queries (without any, of counts).",
        of=Objective,
    )
    folder: str | Path = "."
    workers: int | None = asked(
        None,
        "How many variants to try at once; by default one per processor.",
        of=int | None,
        least=1,
        most=_MOST_WORKERS,
    )
    show_values: bool = asked(False)

    @property
    def settled(self) -> ExploreRequest:
        """The same with what is varied in tuples, whatever held it."""
        found = replace(self, l=tuple(self.l), k=tuple(self.k), risk=tuple(self.risk))
        return replace(found, algorithms=tuple(names_of(self.algorithms)), vary=tuple(names_of(self.vary)))

    @property
    def varies(self) -> bool:
        """True if it says what to vary."""
        return bool(self.l or self.k or self.algorithms or self.vary or self.risk)

    def problems(self) -> Iterator[Problem]:
        """Problems of what is to be varied."""
        for key, values in (("l", self.l), ("k", self.k)):
            wrong = [value for value in values if not 1 <= value <= LARGEST]
            yield from (Problem(key, f"takes whole numbers from 1 to {LARGEST:,}, not {value!r}") for value in wrong)
        for name in self.algorithms:
            if name not in ALGORITHMS:
                yield Problem("algorithm", f"no algorithm {name!r}", nearest(name, ALGORITHMS))
        for name in self.vary:
            if name not in VARIED:
                yield Problem("vary", f"takes {' and '.join(VARIED)}, not {name!r}", nearest(name, VARIED))
        for bound in self.risk:
            yield from (Problem("risk", problem.what) for problem in RequirementSpec(RISK, bound).problems(RISK))
