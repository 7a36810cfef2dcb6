"""The keys of a release's context, as a caller of a report says them one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.database.requests import asked
from ldiv_db.policy.context import GivenContext, ReleaseContext, ReleaseModel


@dataclass(frozen=True, kw_only=True)
class RecipientContext:
    """Who receives the release, under what model, and what they could do with it."""

    recipient: str | None = asked(None, ReleaseContext.asks("recipient"))
    purpose: str | None = asked(None, ReleaseContext.asks("purpose"))
    release_model: ReleaseModel | None = asked(None, ReleaseContext.asks("release_model"), of=ReleaseModel | None)
    security: str | None = None
    motives: str | None = None
    capacity: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataContext:
    """Whose data it is, and what could harm them."""

    principals: str | None = None
    data_type: str | None = None
    sampling_fraction: str | None = None
    threshold_reason: str | None = None
    harms: str | None = None
    stakeholders: str | None = None


@dataclass(frozen=True, kw_only=True)
class Governance:
    """Who answers for the release, and by what rules; `context` has keys that are not said here."""

    context: GivenContext = asked(
        None,
        "A YAML file with the context; overrides the policy's `context:`. See --context-template.",
        of=Path | None,
    )
    final: bool = asked(False, "Refuse the report while keys of the context are blank, and name them.")
    why: str | None = asked(None, ReleaseContext.asks("why"))
    review: str | None = asked(None, ReleaseContext.asks("review"))
    contract: str | None = None
    prohibition: str | None = None
    incidents: str | None = None
    expert: str | None = None
    roles: Mapping[str, str] | None = None
    reasons: Mapping[str, str] | None = None
    not_applicable: Mapping[str, str] | None = None
