"""What can go wrong, and the exit code each kind of failure has on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class LdivError(Exception):
    """Any failure that is reported to the user as one clear message."""

    exit_code = 2


class InfeasibleError(LdivError):
    """The data cannot meet the policy; the message carries the numbers that prove it."""

    exit_code = 1


class AuditError(LdivError):
    """The table to be published fails its policy; nothing was written."""

    exit_code = 1


class DatabaseError(LdivError):
    """The database refused: locked, read-only, full, out of memory, or a broken statement."""

    exit_code = 3


class TemplateError(LdivError):
    """A template and what was put into it do not fit: a defect of this program, not of its input."""

    exit_code = 3


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a policy or an argument: where, what, and the way out."""

    key: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.key}: {self.what}{hint}"


class PolicyError(LdivError):
    """Everything that is wrong with a policy, reported at once."""

    def __init__(self, problems: Iterable[Problem]):
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint naming the known word nearest to `name`, or listing the known words."""
    known = list(known)
    lowered = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f"did you mean {lowered[close[0]]!r}?"
    return "known: " + ", ".join(known) if known else ""
