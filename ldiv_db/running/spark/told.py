"""What an executor tells the driver of its work besides rows: a result, or an error that is raised there again."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.errors import LdivError
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


def packed(told: Any) -> bytes:
    """What is told, or an error of ours, as bytes."""
    return pickle.dumps(told)


def unpacked(data: bytes) -> Any:
    """What was told; raises the error if it was one."""
    told = pickle.loads(data)  # noqa: S301 - our own executors wrote it
    if isinstance(told, LdivError):
        raise told
    return told
