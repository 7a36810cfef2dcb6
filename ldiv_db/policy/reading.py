"""Policies read from YAML or a mapping, with everything that is wrong with them at once.

So are the parts that callers give in place of a policy: names, requirements and sensitive attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import fields
from inspect import BoundArguments, Signature
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ldiv_db.database.connections import Settings
from ldiv_db.database.counted import CountedConnection, open_counted
from ldiv_db.database.documents import read_document
from ldiv_db.database.errors import PolicyError, Problem, refuse, refused
from ldiv_db.database.frames import only_frame
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import BESIDE, VALUES, Sensitive, problem_of, read_requirement
from ldiv_db.policy.release_columns import CLASS_ID, columns_as
from ldiv_db.policy.rules import lacking, problems_of
from ldiv_db.policy.targets import Target
from ldiv_db.requirements import RequirementSpec, parse_requirement

__all__ = ["GivenPolicy", "Policy", "load_file", "load_policy", "parse_policy", "read_policy"]

#: Stands where a requirement could not be read, so that those after it keep their numbers.
_NO_REQUIREMENT = {"k": 1}
#: Where a policy lists columns, and where they are keys of a mapping.
_LISTS, _MAPPINGS = ("identifiers", "keep", "individual", "weight"), ("quasi_identifiers", "sensitive")
#: What the release is called where nothing says it.
RELEASE = "release"
#: What decides how the rest of a policy is understood.
_DECISIVE = ("algorithm", "key")

#: The arguments of calls that name columns of tables.
_NAMING = ("qi", "sensitive", "individual", "class_column", "class_label", "link_columns", "group", "count")

#: A policy as a caller gives it.
GivenPolicy = Policy | Mapping[str, Any]


def read_policy(path: str | Path) -> Policy:
    """The policy in a YAML file; raises PolicyError with everything that is wrong with it.

    It may lack a source and a target, which are then to be given by a frame.
    """
    return _checked(load_file(path))


def parse_policy(document: Any) -> Policy:
    """The policy of a mapping; raises PolicyError with everything that is wrong with it."""
    return _checked(load_policy(document))


def _checked(policy: Policy) -> Policy:
    """The policy, perhaps without a source and a target; raises PolicyError if anything else is wrong."""
    problems = problems_of(policy)
    if set(problems) - set(lacking(())):
        raise PolicyError(problems)
    return policy


def of_one_table(policy: Policy, why: str = "several tables are one release, and this looks at one table") -> Policy:
    """The policy; raises PolicyError, and says `why`, for one of several tables."""
    if policy.tables:
        raise refused("tables", why, "run, plan, explore, check, attack, measure and report take it")
    return policy


#: The fields of requests that are said of one table, or of people as they are known in one: why, and the way out.
_OF_ONE_TABLE = {
    **dict.fromkeys(
        (
            *("table", "published", "source", "qi", "sensitive", "class_column", "class_label", "suppressed"),
            *("individual", "position", "sensitive_table", "group", "count", "known", "population", "population_size"),
            *("counting", "also", "also_policies", "definetti", "downcoding", "targets", "control", "link_columns"),
            "replay",
        ),
        ("is said of one table", "leave it out"),
    ),
    "vary": ("leaves out columns of one table", "vary l, k or algorithm"),
    "by": ("counts are of one table", "`ldiv measure` has joins"),
}


def said_of_one_table(request: Any, but: Sequence[str] = ()) -> Iterator[Problem]:
    """The problems of what a request about several tables says of one, `but` in these fields."""
    for one in fields(request):
        value = getattr(request, one.name)
        unsaid = value is one.default or (isinstance(value, Sequence | Mapping) and (not value or value == one.default))
        if one.name in _OF_ONE_TABLE and one.name not in but and not unsaid:
            why, way_out = _OF_ONE_TABLE[one.name]
            yield Problem(one.name, f"{why}, and the policy names several", way_out)


def load_file(path: str | Path) -> Policy:
    """As `load_policy`, of a YAML file; raises PolicyError as well if it cannot be read or is not YAML."""
    document = read_document(Path(path), "policy", VALUES)
    return load_policy(document).read_from(Path(path), document)


def load_policy(document: Any) -> Policy:
    """The policy of a mapping without the parts that cannot be read, whose problems `resolve` reports with all others.

    Raises PolicyError if what is left would be understood in another way, or is no policy.
    """
    if isinstance(document, Policy):
        return document
    if not isinstance(document, Mapping):
        raise refused("policy", "is empty" if document is None else "is not a mapping of keys")
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        errors = error.errors()
    return _load_rest(document, errors)


def described_policy(
    source: Any, qi: str | Sequence[str] | Mapping[str, Any] | None, sensitive: str | Sequence[str]
) -> Policy:
    """The policy that says what the columns are, and asks for nothing."""
    refuse(
        Problem(key, "is required where no policy is given")
        for key, value in (("source", source), ("qi", qi))
        if value is None or (isinstance(value, str | Sequence | Mapping) and not value)
    )
    return parse_policy(
        {
            "source": source,
            "target": {"table": "none"},
            "quasi_identifiers": qi,
            "sensitive": names_of(sensitive),
            "require": [{"k": 1}],
        }
    )


def completed(policy: Policy | Mapping[str, Any], source: Any = None) -> Policy | Mapping[str, Any]:
    """The policy with this source, if one is given, and with a target in memory where it names none.

    A table of several that names no source has the frame of its own name.
    """
    if isinstance(policy, Policy):
        is_full = policy.tables or "target" in policy.model_fields_set
        found = policy if is_full else policy.model_copy(update={"target": Target(table=RELEASE)})
        return found if source is None else found.with_source(source)
    if isinstance(tables := policy.get("tables"), Mapping):
        whole = {
            name: {"source": name, "target": {"table": f"{RELEASE}_{name}"}, **said}
            if isinstance(said, Mapping)
            else said
            for name, said in tables.items()
        }
        return {**policy, "tables": whole}
    return {"target": {"table": RELEASE}, **policy, **({} if source is None else {"source": source})}


def columns_asked(said: Mapping[str, Any]) -> set[str]:
    """The columns, in lower case, that a call may ask about by its arguments; raises PolicyError if none is named."""
    given = [said.get("policy"), *(said.get("also_policies") or ())]
    read = [read_policy(one) if isinstance(one, str | Path) else parse_policy(one) for one in given if one]
    policies = [of_one_table(one) for one in read]
    if not policies and not any(said.get(key) for key in ("qi", "class_column", "group")):
        raise refused("qi", "is missing: a warehouse counts rows by the columns that are named")
    texts = [*_texts([said.get(key) for key in _NAMING])]
    names = {part.strip() for text in texts for part in (text, *re.split("[,|]", text), text.rpartition("=")[0])}
    for policy in policies:
        released = policy.released
        names |= {*policy.quasi_identifiers, *policy.sensitive, *released.identifying}
        names |= {policy.weight} if policy.weight else set()
        whose = policy.individual
        names |= {whose.column, whose.order or whose.column, *released.people} if whose else set()
    return {name.lower() for known in names for name in (known, *columns_as(known, "bounds"))} | {CLASS_ID}


def counted_there(
    given: Any, said: Mapping[str, Any], settings: Settings | None = None
) -> AbstractContextManager[CountedConnection]:
    """A warehouse as counts of the columns that the arguments of a call ask about; raises as `columns_asked`."""
    return open_counted(given, columns_asked(said), settings)


def _texts(said: Any) -> Iterator[str]:
    """The texts of what a caller gives as one, in lists, or as the keys of a mapping."""
    if isinstance(said, str):
        yield said
    elif said is not None:
        for part in said:
            yield from _texts(part)


def take_for_source(shape: Signature, given: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
    """A call with a policy: the frame in place of a database is its source, whatever the policy names.

    Of several frames the policy names one, or there is but one.
    """
    bound = shape.bind_partial(None, *args, **kwargs)
    policy = bound.arguments.get("policy")
    if isinstance(policy, Policy | Mapping):
        keys = policy.model_fields_set if isinstance(policy, Policy) else policy
        if "tables" in keys and not isinstance(given, Mapping):
            raise refused("tables", "are several, and this is one frame", "map their names to frames")
        is_named = isinstance(given, Mapping) and ("source" in keys or "tables" in keys)
        bound.arguments["policy"] = completed(policy, None if is_named else only_frame(given))
    return bound


def _load_rest(written: Mapping[str, Any], errors: Sequence[Any]) -> Policy:
    unread = [problem_of(item, Policy) for item in errors]
    refusal = PolicyError([*lacking(written), *unread])
    if any(item["type"] == "missing" or item["loc"][0] in _DECISIVE for item in errors):
        raise refusal
    try:
        policy = Policy.model_validate(_without(written, [item["loc"] for item in errors]))
    except ValidationError:
        raise refusal from None
    # Columns may be listed in a list of them, as keys of a mapping, or under a key misspelt.
    places = [(item["loc"][0], len(item["loc"])) for item in errors]
    lists_all = not any(
        key in _LISTS or (depth <= 2 if key in _MAPPINGS else key not in Policy.model_fields) for key, depth in places
    )
    return policy.without(unread, lists_all)


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


#: A requirement as a caller gives it.
GivenRequirement = str | Mapping[str, Any] | RequirementSpec


def read_requirements(written: GivenRequirement | Iterable[GivenRequirement]) -> list[RequirementSpec]:
    """The requirements as written, `"distinct:3"`, `{"distinct": 3}` or built; raises PolicyError for what is none."""
    specs, problems = [], []
    for item in [written] if isinstance(written, str | Mapping | RequirementSpec) else written:
        try:
            specs += [parse_requirement(item)] if isinstance(item, str) else _of_mapping(item)
        except ValueError as error:
            problems.append(Problem("require", str(error)))
    if not specs and not problems:
        problems.append(Problem("require", "is empty", "say what must hold, e.g. distinct:3"))
    refuse(problems)
    return specs


def _of_mapping(item: Any) -> list[RequirementSpec]:
    if isinstance(item, RequirementSpec):
        return [item]
    if not isinstance(item, Mapping) or not item:
        raise ValueError("a requirement is written 'distinct:3' or {'distinct': 3}")
    if not {*BESIDE}.isdisjoint(item):
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
    refuse(problems)
    return found


def names_of(columns: str | Sequence[str]) -> list[str]:
    """One column's name or several."""
    return [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))
