"""A policy as a report has it: in one form however it was written, without what is secret or says where the data is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import yaml

from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.policy import Policy
from ldiv_db.policy.sources import Frame, SourceQuery
from ldiv_db.requirements import RequirementSpec

#: Never shown: who has the seed can repeat the run, and addresses may hold passwords.
_SECRET = ("seed", "databases")
#: What says where the data is and who is in it, which is no business of those outside.
_INTERNAL = ("source", "target", "identifiers", "individual", "key", "weight")
#: A policy may hold whole taxonomies; so much of it is printed.
MOST_TEXT = 60_000


def written_policy(policy: Policy, public: bool = False) -> dict[str, Any]:
    """The policy as a mapping that reads as the same policy; of a frame as source only that it is one."""
    left_out = {*_SECRET, *(_INTERNAL if public else ())}
    found = policy.model_dump(exclude_unset=True, exclude=left_out | {"source", "require"})
    source = {} if "source" in left_out else {"source": _source(policy)}
    require = [_requirement(spec) for spec in policy.require]
    return {str(key): _plain(value) for key, value in {**source, **found, "require": require}.items()}


def policy_hash(document: Mapping[str, Any]) -> str:
    """SHA-256 of a written policy, the same for any order of its keys but those of columns."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def policy_text(document: Mapping[str, Any]) -> str:
    """The policy as YAML, cut if it is very long."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n… {len(text) - MOST_TEXT:,} characters more"


def read_again(document: Mapping[str, Any]) -> Policy:
    """The policy of a report; raises PolicyError for one whose source a report cannot name, or of a public report."""
    if "source" not in document:
        what = "is needed: a public report leaves out where the data is, and a frame has no name"
        raise PolicyError([Problem("policy", what, "give --policy")])
    return Policy.model_validate(dict(document))


def _source(policy: Policy) -> Any:
    if isinstance(policy.source, Frame):
        return "(a frame)"
    return {"query": policy.source.query} if isinstance(policy.source, SourceQuery) else policy.source


def _requirement(spec: RequirementSpec) -> dict[str, Any]:
    """The requirement as a policy writes it."""
    more = {"sensitive": list(spec.sensitive)} if spec.sensitive else {}
    return {spec.name: spec.argument, **more, **({"others_known": True} if spec.others_known else {})}


def _plain(value: Any) -> Any:
    """The value as JSON and YAML have it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
