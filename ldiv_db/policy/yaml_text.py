"""A policy as the YAML document that says it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import yaml

from ldiv_db.policy.parts import Document
from ldiv_db.policy.sources import Frame, SourceQuery
from ldiv_db.requirements import RequirementSpec


def policy_document(policy: Document) -> dict[str, Any]:
    """What was said of the policy, as a mapping that `parse_policy` reads; a frame is none, and left out."""
    written = policy.model_dump(exclude_unset=True, exclude={"source", "require"})
    document: dict[str, Any] = {}
    for key in type(policy).model_fields:
        said = getattr(policy, key)
        if key == "source" and not isinstance(said, Frame):
            document[key] = {"query": said.query} if isinstance(said, SourceQuery) else said
        elif key == "require":
            document[key] = [_requirement(spec) for spec in said]
        elif key in ("quasi_identifiers", "sensitive") and key in written:
            document[key] = written[key] if any(written[key].values()) else list(written[key])
        elif key in written:
            document[key] = written[key]
    return {key: _plain(part) for key, part in document.items()}


def policy_yaml(policy: Document) -> str:
    """The document as text."""
    return yaml.safe_dump(policy_document(policy), sort_keys=False, allow_unicode=True)


def _requirement(spec: RequirementSpec) -> dict[str, Any]:
    beside = {"sensitive": list(spec.sensitive)} if spec.sensitive else {}
    return {spec.name: spec.argument, **beside, **({"others_known": True} if spec.others_known else {})}


def _plain(part: Any) -> Any:
    """The part in what YAML has: a decimal is a number where that is the same, else a text, which reads alike."""
    if isinstance(part, Mapping):
        return {key: _plain(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(value) for value in part]
    if isinstance(part, Decimal):
        number = int(part) if part == int(part) else float(part)
        return number if Decimal(str(number)) == part else str(part)
    return part
