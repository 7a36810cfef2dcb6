"""Problems collected, so that all of them are reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ldiv_db.database.errors import PolicyError, Problem


class Problems:
    """The problems found so far, in their order."""

    def __init__(self, found: Iterable[Problem] = ()):
        self.found = list(found)

    def add(self, found: Iterable[Problem]) -> None:
        self.found += found

    @contextmanager
    def collected(self, under: str = "") -> Iterator[None]:
        """Within, a PolicyError ends the work without being raised; its keys stand under the one that is given."""
        try:
            yield
        except PolicyError as error:
            self.found += [Problem(f"{under}.{p.key}", p.what, p.hint) if under else p for p in error.problems]

    def refuse(self) -> None:
        """Raise PolicyError if there are any."""
        if self.found:
            raise PolicyError(self.found)


def unsaid(found: Iterable[Problem], known: Sequence[Problem]) -> list[Problem]:
    """The problems that are not about a part in which, or in a part of which, there is a known one."""
    return [problem for problem in found if not is_said(problem.key, known)]


def is_said(key: str, known: Iterable[Problem]) -> bool:
    """Whether a known problem is about that part of a policy, a part of it, or what it is a part of."""
    return any(
        key == problem.key or key.startswith(f"{problem.key}.") or problem.key.startswith(f"{key}.")
        for problem in known
    )
