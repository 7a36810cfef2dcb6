"""A policy with other requirements, another algorithm or another attacker, and such changes as a policy writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import read_requirement
from ldiv_db.policy.schema import members_of
from ldiv_db.policy.settings import AlgorithmSpec, Individual, QuasiIdentifier, written_recode
from ldiv_db.policy.tables import PolicyTable
from ldiv_db.policy.targets import Target
from ldiv_db.requirements import RequirementSpec, plain

#: A requirement in place of another: the number of that one among those of its policy, and the sensitive attribute.
Place = tuple[int, str]


@dataclass(frozen=True)
class Change:
    """Keys of a policy as they would be, what is said of them, and whether they name values of the data.

    `least` rows are known to be left out then, whatever counts say. Keys deep in a policy are told in words alone.
    """

    keys: Mapping[str, Any]
    costs: str
    values: int = 0
    least: int = 0
    is_told: bool = False


def changed(policy: Policy, change: Mapping[str, Any]) -> Policy:
    """The policy with what a change has of `require`, `suppression`, `algorithm`, columns, tables and who is known."""
    found: dict[str, Any] = {key: list(change[key]) for key in ("identifiers",) if key in change}
    found |= {key: change[key] for key in ("suppression", "tables") if key in change}
    if change.get("known") == 1:
        found |= {"known": 1, "tables": {name: _without_places(table) for name, table in policy.tables.items()}}
        found |= {"individual": policy.individual and Individual(column=policy.individual.column)}
        found |= {"algorithm": AlgorithmSpec()}
    if "quasi_identifiers" in change:
        written = change["quasi_identifiers"].items()
        found["quasi_identifiers"] = {name: QuasiIdentifier.model_validate(settings) for name, settings in written}
    if "require" in change:
        found["require"] = [read_requirement(written) for written in change["require"]]
    if "algorithm" in change:
        spec = change["algorithm"]
        found["algorithm"] = AlgorithmSpec.model_validate({"name": spec} if isinstance(spec, str) else spec)
    return policy.model_copy(update=found)


def _without_places(table: PolicyTable) -> PolicyTable:
    """The table without what it says of the places of its rows."""
    said = {name for name in table.model_fields_set if name not in ("order", "rows")}
    listed = {*table.quasi_identifiers, *table.sensitive, *table.identifiers, *table.keep}
    beside = [table.order] if table.order and table.order not in listed else []
    found = table.model_copy(update={"order": None, "rows": "aligned", "identifiers": [*table.identifiers, *beside]})
    found.model_fields_set.intersection_update({*said, "identifiers"})
    return found


def harmless_in(policy: Policy, column: str, value: str | None) -> dict[str, PolicyTable]:
    """The tables of a policy, in which a value of a sensitive column says nothing of a person."""
    name, _, own = column.partition(".")
    table = policy.tables[name]
    setting = table.sensitive[own]
    harmless = setting.model_copy(update={"harmless": [*(setting.harmless or ()), value]})
    sensitive = {**table.sensitive, own: harmless}
    return {**policy.tables, name: table.model_copy(update={"sensitive": sensitive})}


def labelled_as(policy: Policy, inferred: Sequence[Mapping[str, Any]]) -> Policy:
    """The policy, with the labels that an earlier release `inferred`, where it says nothing of sets itself.

    All releases of a series have labels of one form: what had sets keeps them, and what a version without sets by
    default published as itself or `*` stays so.
    """
    if policy.recode is not None:
        return policy
    if policy.tables:
        tables = dict(policy.tables)
        for name, member in members_of(policy).items():
            own = {"quasi_identifiers": labelled_as(member, inferred).quasi_identifiers}
            tables[name] = tables[name].model_copy(update=own)
        return policy if tables == policy.tables else policy.model_copy(update={"tables": tables})
    settled = dict(policy.quasi_identifiers)
    for name, qi in settled.items():
        said = [one["as"] for one in inferred if one["column"] == name and "recode" not in qi.model_fields_set]
        found = [one.get("recode", "tree") for one in said if one.get("taxonomy") == {"flat": True}]
        by_default = written_recode(policy.recode_of(name)).get("recode", "tree")
        if qi.is_open and found and found == found[:1] * len(found) and found[0] != by_default:
            settled[name] = qi.settled(recode=found[0])
    is_same = settled == policy.quasi_identifiers
    return policy if is_same else policy.model_copy(update={"quasi_identifiers": settled})


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
