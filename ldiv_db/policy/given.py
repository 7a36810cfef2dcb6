"""What callers give beside a policy, or in place of one: names, requirements and sensitive attributes as written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.parts import Sensitive, read_requirement
from ldiv_db.requirements import RequirementSpec, parse_requirement

#: A requirement as a caller gives it.
Required = str | Mapping[str, Any] | RequirementSpec


def read_requirements(written: Required | Iterable[Required]) -> list[RequirementSpec]:
    """The requirements as written, `"distinct:3"`, `{"distinct": 3}` or built, one or several.

    Raises PolicyError for all that are none.
    """
    specs, problems = [], []
    for item in [written] if isinstance(written, str | Mapping | RequirementSpec) else written:
        try:
            specs += [parse_requirement(item)] if isinstance(item, str) else _of_mapping(item)
        except ValueError as error:
            problems.append(Problem("require", str(error)))
    if not specs and not problems:
        problems.append(Problem("require", "is empty", "say what must hold, e.g. distinct:3"))
    if problems:
        raise PolicyError(problems)
    return specs


def _of_mapping(item: Any) -> list[RequirementSpec]:
    if isinstance(item, RequirementSpec):
        return [item]
    if not isinstance(item, Mapping) or not item:
        raise ValueError("a requirement is written 'distinct:3' or {'distinct': 3}")
    if {"sensitive", "others_known"} & set(item):
        return [read_requirement(item)]
    return [RequirementSpec(str(name), argument) for name, argument in item.items()]


def read_sensitive(written: str | Sequence[str] | Mapping[str, Any]) -> dict[str, Sensitive]:
    """The sensitive attributes as written: a name, names, or a mapping of names to what a policy says of them."""
    settings = written if isinstance(written, Mapping) else dict.fromkeys(names_of(written))
    found, problems = {}, []
    for name, setting in settings.items():
        try:
            found[name] = Sensitive.model_validate(setting or {})
        except ValidationError as error:
            problems += [Problem(f"sensitive.{name}", str(item["msg"])) for item in error.errors()]
    if problems:
        raise PolicyError(problems)
    return found


def names_of(columns: str | Sequence[str]) -> list[str]:
    """One column's name or several."""
    return [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))
