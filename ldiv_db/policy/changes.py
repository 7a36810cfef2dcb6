"""A policy with other requirements or another algorithm, and such changes as a policy writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import read_requirement
from ldiv_db.policy.settings import AlgorithmSpec, QuasiIdentifier
from ldiv_db.policy.targets import Target
from ldiv_db.requirements import RequirementSpec, plain

#: A requirement in place of another: the number of that one among those of its policy, and the sensitive attribute.
Place = tuple[int, str]


def changed(policy: Policy, change: Mapping[str, Any]) -> Policy:
    """The policy with what a change has of `require`, `suppression`, `algorithm` and columns."""
    found: dict[str, Any] = {key: list(change[key]) for key in ("identifiers",) if key in change}
    found |= {key: change[key] for key in ("suppression",) if key in change}
    if "quasi_identifiers" in change:
        written = change["quasi_identifiers"].items()
        found["quasi_identifiers"] = {name: QuasiIdentifier.model_validate(settings) for name, settings in written}
    if "require" in change:
        found["require"] = [read_requirement(written) for written in change["require"]]
    if "algorithm" in change:
        spec = change["algorithm"]
        found["algorithm"] = AlgorithmSpec.model_validate({"name": spec} if isinstance(spec, str) else spec)
    return policy.model_copy(update=found)


def over_earlier(policy: Policy) -> Policy:
    """The policy whose release takes the place of one that is there, for who publishes nothing."""

    def over(target: Target) -> Target:
        stands = target.if_exists == "fail" and target.prefix is None
        return target.model_copy(update={"if_exists": "replace"}) if stands else target

    if policy.tables:
        tables = {name: one.model_copy(update={"target": over(one.target)}) for name, one in policy.tables.items()}
        return policy.model_copy(update={"tables": tables})
    return policy if policy.is_series else policy.model_copy(update={"target": over(policy.target)})


def replaced(
    policy: Policy, attributes: Sequence[str], others: Mapping[Place, Sequence[Mapping[str, Any]]]
) -> list[dict[str, Any]]:
    """The policy's `require` with other requirements on some of its `attributes`, as a policy writes it."""
    return [
        written
        for number, spec in enumerate(policy.require)
        for written in _entries(spec, {name: others.get((number, name)) for name in attributes if spec.concerns(name)})
    ]


def requiring(policy: Policy, parameter: Callable[[RequirementSpec], str], value: int) -> list[dict[str, Any]] | None:
    """The policy's `require` with another value of a parameter that `parameter` names for each; None if none has it."""
    others = [spec.kind.written_with(spec.argument, parameter(spec), value) for spec in policy.require]
    if all(other is None for other in others):
        return None
    pairs = zip(policy.require, others, strict=True)
    return [
        _entry(spec, {spec.name: spec.argument if other is None else other}, spec.sensitive) for spec, other in pairs
    ]


def _entries(
    spec: RequirementSpec, others: Mapping[str, Sequence[Mapping[str, Any]] | None]
) -> Iterator[dict[str, Any]]:
    """The entries in place of a requirement: itself on the attributes that keep it, and those of the others."""
    given = list(others.values())
    if given and given[0] is not None and all(other == given[0] for other in given):
        for written in given[0]:
            yield _entry(spec, written, spec.sensitive)
        return
    keeping = [name for name, other in others.items() if other is None]
    if len(keeping) == len(others):
        yield _entry(spec, {spec.name: spec.argument}, spec.sensitive)
    elif keeping:
        yield _entry(spec, {spec.name: spec.argument}, keeping)
    for name, other in others.items():
        for written in other or ():
            yield _entry(spec, written, [name])


def _entry(spec: RequirementSpec, written: Mapping[str, Any], sensitive: Sequence[str]) -> dict[str, Any]:
    entry = spec.rewritten({name: _plain(argument) for name, argument in written.items()}, sensitive)
    return entry | ({"sensitive": sensitive[0]} if len(sensitive) == 1 else {})


def _plain(argument: Any) -> Any:
    if isinstance(argument, Mapping):
        return {key: _plain(value) for key, value in argument.items()}
    return plain(argument) if isinstance(argument, Decimal) else argument
