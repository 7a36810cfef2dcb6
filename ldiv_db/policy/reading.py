"""Policies read from YAML or a mapping, with everything that is wrong with them at once.

So are the parts that callers give in place of a policy: names, requirements and sensitive attributes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from inspect import BoundArguments, Signature
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ldiv_db.database.documents import read_document
from ldiv_db.database.errors import PolicyError, Problem, nearest
from ldiv_db.database.frames import only_frame
from ldiv_db.policy.document import Policy, Target
from ldiv_db.policy.parts import VALUES, Sensitive, problem_of, read_requirement, unsaid
from ldiv_db.policy.rules import same_problems, series_problems, transparent_problems, weight_problems
from ldiv_db.requirements import RequirementSpec, parse_requirement

__all__ = ["Examined", "GivenPolicy", "Policy", "examine", "examine_file", "parse_policy", "problems_of", "read_policy"]

#: Stands where a requirement could not be read, so that those after it keep their numbers.
_NO_REQUIREMENT = {"k": 1}
#: Where a policy lists columns, and where they are keys of a mapping.
_LISTS, _MAPPINGS = ("identifiers", "keep", "individual", "weight"), ("quasi_identifiers", "sensitive")
#: What the release is called where nothing says it.
RELEASE = "release"
#: What is wrong where nothing says where rows come from, or go to.
_LACKING = {key: Problem(key, "is required") for key in ("source", "target")}
#: What decides how the rest of a policy is understood.
_DECISIVE = ("algorithm", "key")


@dataclass(frozen=True)
class Examined:
    """What could be read of a policy, None if nothing could, and what is wrong with what is written.

    Where `lists_all` is false columns may have been listed in what could not be read.
    """

    policy: Policy | None
    problems: Sequence[Problem] = ()
    lists_all: bool = True

    @property
    def databases(self) -> Mapping[str, str]:
        """The addresses of databases that its source names, by their names."""
        return {} if self.policy is None else self.policy.databases

    @property
    def written(self) -> str | None:
        """The name of the one of them that the release goes to, None if it goes to none."""
        return None if self.policy is None else self.policy.target.database

    @property
    def is_series(self) -> bool:
        """Whether it is surely a policy of releases over time."""
        return self.policy is not None and self.policy.is_series

    def without_places(self) -> Policy:
        """The policy, perhaps without a source and a target; raises PolicyError if anything else is wrong."""
        if self.policy is None or set(self.problems) - set(_LACKING.values()):
            raise PolicyError(self.problems)
        return self.policy

    def required(self) -> Policy:
        """The policy; raises PolicyError if anything is wrong."""
        if self.policy is None or self.problems:
            raise PolicyError(self.problems)
        return self.policy


#: A policy as a caller gives it.
GivenPolicy = Policy | Mapping[str, Any] | Examined


def read_policy(path: str | Path) -> Policy:
    """The policy in a YAML file; raises PolicyError with everything that is wrong with it.

    It may lack a source and a target, which are then to be given by a frame.
    """
    return examine_file(path).without_places()


def parse_policy(document: Any) -> Policy:
    """The policy of a mapping; raises PolicyError with everything that is wrong with it."""
    return examine(document).without_places()


def examine_file(path: str | Path) -> Examined:
    """What is written in a YAML file; raises PolicyError if it cannot be read or is not YAML."""
    reading = examine(read_document(Path(path), "policy", VALUES))
    if reading.policy is not None:
        reading.policy.read_from(Path(path))
    return reading


def examine(document: Any) -> Examined:
    """What is written in a mapping, and everything that is wrong with it."""
    if isinstance(document, Examined):
        return document
    if isinstance(document, Policy):
        return Examined(document, [*_lacking(document.model_fields_set), *problems_of(document)])
    if not isinstance(document, Mapping):
        return Examined(None, [Problem("policy", "is empty" if document is None else "is not a mapping of keys")])
    try:
        policy = Policy.model_validate(document)
    except ValidationError as error:
        return _examine_rest(document, error.errors())
    return Examined(policy, [*_lacking(document), *problems_of(policy)])


def _lacking(keys: Container[str]) -> list[Problem]:
    """That a policy of these keys names no source, or no target, which it may leave to a frame."""
    return [problem for key, problem in _LACKING.items() if key not in keys]


def completed(policy: Policy | Mapping[str, Any], source: Any = None) -> Policy | Mapping[str, Any]:
    """The policy with this source, if one is given, and with a target in memory where it names none."""
    if isinstance(policy, Policy):
        target = {} if "target" in policy.model_fields_set else {"target": Target(table=RELEASE)}
        found = policy.model_copy(update=target)
        return found if source is None else found.with_source(source)
    return {"target": {"table": RELEASE}, **policy, **({} if source is None else {"source": source})}


def take_for_source(shape: Signature, given: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """A call with a policy: the frame in place of a database is its source, whatever the policy names.

    Of several frames the policy names one, or there is but one.
    """
    bound = shape.bind_partial(None, *args, **kwargs)
    policy = bound.arguments.get("policy")
    if isinstance(policy, Examined):
        policy = policy.without_places()
    if isinstance(policy, Policy | Mapping):
        keys = policy.model_fields_set if isinstance(policy, Policy) else policy
        is_named = isinstance(given, Mapping) and "source" in keys
        bound.arguments["policy"] = completed(policy, None if is_named else only_frame(given))
    return bound


def _examine_rest(written: Mapping[str, Any], errors: Sequence[Any]) -> Examined:
    """What is written without the parts that cannot be read, and what is wrong with either."""
    problems = [*_lacking(written), *(problem_of(item, Policy) for item in errors)]
    if any(item["type"] == "missing" or item["loc"][0] in _DECISIVE for item in errors):
        return Examined(None, problems)
    try:
        policy = Policy.model_validate(_without(written, [item["loc"] for item in errors]))
    except ValidationError:
        return Examined(None, problems)
    problems += unsaid(problems_of(policy), problems)
    return Examined(policy, problems, not any(_lists_columns(item["loc"]) for item in errors))


def _without(document: Mapping[str, Any], places: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """The document without what stands in these places, or, where they are none of its own, around them."""
    found = {key: part if key == "source" else _copied(part) for key, part in document.items()}  # no frame is copied
    in_order = sorted(places, key=lambda place: [f"{key:>9}" for key in place])
    for place in reversed(in_order):  # the last of a list first
        outer: Any = found
        own = _own_part(found, place)
        if not own:  # it went with another
            continue
        *way, last = own
        for key in way:
            outer = outer[key]
        if way == ["require"]:
            outer[last] = _NO_REQUIREMENT
        else:
            del outer[last]
    return found


def _copied(part: Any) -> Any:
    """The part with containers of its own, in which tuples and sets are lists: members are taken out of these."""
    if isinstance(part, Mapping):
        return {key: _copied(value) for key, value in part.items()}
    return [_copied(one) for one in part] if isinstance(part, list | tuple | Set) else part


def _own_part(document: Mapping[str, Any], place: tuple[Any, ...]) -> list[Any]:
    """As much of the place as leads to a part of the document: the rest is the reader's own."""
    part: Any = document
    found: list[Any] = []
    for key in place:
        has = key in part if isinstance(part, Mapping) else isinstance(part, list) and key in range(len(part))
        if not has:
            break
        part = part[key]
        found.append(key)
    return found


def _lists_columns(place: tuple[Any, ...]) -> bool:
    """Whether columns may be listed there: in a list of them, as keys of a mapping, or under a key misspelt."""
    first, *rest = place
    return first in _LISTS or (len(rest) <= 1 if first in _MAPPINGS else first not in Policy.model_fields)


def problems_of(policy: Policy) -> list[Problem]:
    """What is wrong with a policy of which every part can be read."""
    problems = [*_lacking_sensitive(policy), *series_problems(policy), *transparent_problems(policy)]
    problems += [*same_problems(policy), *weight_problems(policy)]
    if not policy.decomposes:
        problems += [
            p for name, qi in policy.quasi_identifiers.items() for p in qi.problems(f"quasi_identifiers.{name}")
        ]
    problems += [p for name, attribute in policy.sensitive.items() for p in attribute.problems(f"sensitive.{name}")]
    problems += [*_require_problems(policy), *_twice(policy)]
    problems += policy.target.problems() if "target" in policy.model_fields_set else []
    needing = policy.needs_class_id
    if needing and not policy.publishes_class_id:
        hint = "or require frequency" if needing in [spec.name for spec in policy.require] else ""
        problems.append(Problem("output.class_id", f"{needing} can only be audited with class ids", hint))
    return problems


def _lacking_sensitive(policy: Policy) -> Iterator[Problem]:
    """What has no meaning without a sensitive attribute, if the policy has none."""
    asking = [spec.name for spec in policy.require if not spec.kind.of_rows]
    if policy.decomposes or policy.is_series or policy.transparent:
        asking.append(policy.algorithm.name)
    if asking and not policy.sensitive:
        yield Problem("sensitive", "is required", f"{asking[0]} is about its values; k needs none")


def _require_problems(policy: Policy) -> Iterator[Problem]:
    """Requirements that are none, and those for attributes that are not sensitive."""
    known = {name.lower() for name in policy.sensitive}
    for number, spec in enumerate(policy.require):
        yield from spec.problems(f"require.{number}")
        for name in spec.sensitive:
            if name.lower() not in known:
                what = f"{name!r} is not sensitive"
                yield Problem(f"require.{number}.sensitive", what, nearest(name, policy.sensitive))


def _twice(policy: Policy) -> Iterator[Problem]:
    """Columns that two keys classify; names are compared as the database compares them."""
    first: dict[str, str] = {}
    for key, column in policy.roles():
        if column.lower() in first:
            yield Problem(f"{key}.{column}", f"is classified already under {first[column.lower()]}")
        first.setdefault(column.lower(), key)


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
