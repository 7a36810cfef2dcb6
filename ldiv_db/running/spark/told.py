"""What an executor tells the driver of its work besides rows: a result, or an error that is raised there again."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.errors import InfeasibleError, LdivError, PolicyError
from ldiv_db.publishing.result import Result
from ldiv_db.requirements import Requirement


@dataclass(frozen=True)
class Told:
    """The result of a run as its rows were solved, what is required of its release, and how its own audit found it.

    `typed` are the quasi-identifiers that are published in their own types.
    """

    result: Result
    wanted: Mapping[str, Sequence[Requirement]]
    audits: Sequence[Audit]
    typed: tuple[str, ...] = ()


def packed(told: Any | LdivError) -> bytes:
    """What is told, as bytes; of an error its kind, what it is made of, and its remedies."""
    if not isinstance(told, LdivError):
        return pickle.dumps((None, told))
    made: tuple[Any, ...] = (told.message,)
    if isinstance(told, PolicyError):
        made = (told.problems,)
    elif isinstance(told, InfeasibleError):
        made = (told.message, told.l)
    return pickle.dumps((type(told), made, list(told.remedies)))


def unpacked(data: bytes) -> Any:
    """What was told; raises the error if it was one."""
    kind, *rest = pickle.loads(data)  # noqa: S301 - our own executors wrote it
    if kind is None:
        return rest[0]
    error: LdivError = kind(*rest[0])
    error.remedies = rest[1]
    raise error
