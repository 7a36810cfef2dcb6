"""What a run leaves in the ledger for a later one that has the same to publish: figures of the release, and its hash.

The later run says these again, in place of making the release anew, if the release stands where it was published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from ldiv_db.auditing.audit import Audit, Individuals
from ldiv_db.publishing.result import Result
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.verdict import Verdict

#: What a result says of its release, whichever run publishes it.
_FIGURES = ("algorithm", "l", "loss", "search", "notes", "similarity", "answers", "people", "tables")


@dataclass(frozen=True)
class RunReport:
    """The hash of a release, its figures by their names in a `Result`, and its audits without their requirements."""

    release: str = field(repr=False)
    figures: dict[str, Any]
    audits: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, result: Result, release: str) -> RunReport:
        figures = {name: _form(name).dump_python(getattr(result, name)) for name in _FIGURES}
        verdicts = [[vars(v) | {"requirement": None} for v in audit.verdicts] for audit in result.audits]
        return cls(release, figures, [vars(a) | {"verdicts": v} for a, v in zip(result.audits, verdicts, strict=True)])

    @classmethod
    def read(cls, text: str) -> RunReport:
        found = cls(**json.loads(text))
        return cls(found.release, {n: _form(n).validate_python(v) for n, v in found.figures.items()}, found.audits)

    def __str__(self) -> str:
        return json.dumps(vars(self), default=float)

    def audited(self, wanted: Mapping[str, Sequence[Requirement]]) -> list[Audit]:
        """The audits, with the requirements that the policy has of each attribute."""
        return [_audit(found, wanted.get(found["sensitive"], [Individuals()])) for found in self.audits]


def _audit(found: dict[str, Any], requirements: Sequence[Requirement]) -> Audit:
    verdicts = [Verdict(**v | {"requirement": r}) for v, r in zip(found["verdicts"], requirements, strict=True)]
    return Audit(**found | {"verdicts": tuple(verdicts), "warnings": tuple(found["warnings"])})


@cache
def _form(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(Result)[name])
