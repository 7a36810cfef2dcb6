"""What a policy requires of sensitive attributes, read: the values that it names are as their columns write them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.attributes import texts_of
from ldiv_db.policy.problems import Problems, is_said
from ldiv_db.requirements import Attribute, Distribution, Requirement, RequirementSpec, Threshold
from ldiv_db.requirements.named import Named, in_order, listing


@dataclass(frozen=True)
class Required:
    """What is required of each attribute; parameters that are `auto` wait for the distribution of its values.

    `read` are requirements that name values, by their number in the policy and the attribute.
    """

    specs: Sequence[RequirementSpec]
    attributes: Mapping[str, Attribute]
    read: Mapping[tuple[int, str], Requirement]

    def resolved(self, distribution: Distribution | None = None) -> dict[str, list[Requirement]]:
        """The requirements on each attribute."""
        return {
            name: [
                self.read.get((number, name)) or spec.resolve(distribution, attribute)
                for number, spec in enumerate(self.specs)
                if spec.concerns(name)
            ]
            for name, attribute in self.attributes.items()
        }


def resolve_all(
    engine: Engine, specs: Sequence[RequirementSpec], attributes: Mapping[str, Attribute]
) -> dict[str, list[Requirement]]:
    """The requirements on each attribute, none being `auto`; raises PolicyError for those that lack what they need."""
    problems = Problems()
    required = collect_required(engine, specs, attributes, problems)
    problems.refuse()
    return required.resolved()


def collect_required(
    engine: Engine,
    specs: Sequence[RequirementSpec],
    attributes: Mapping[str, Attribute],
    problems: Problems,
    names: Collection[str] | None = None,
) -> Required:
    """What is required of the attributes; what is wrong with requirements is added to `problems`.

    `names` are all sensitive attributes, where not all of them are to be had.
    """
    wanted = [(n, spec, a) for n, spec in enumerate(specs) for a in attributes.values() if spec.concerns(a.name)]
    wrong = [problem for n, spec, attribute in wanted for problem in spec.problems(f"require.{n}", attribute)]
    problems.add(wrong)
    read: dict[tuple[int, str], Requirement] = {}
    for number, spec, attribute in wanted:
        if spec.name != Threshold.name or is_said(f"require.{number}", wrong):
            continue
        with problems.collected():
            read[number, attribute.name] = _read_threshold(engine, number, spec, attribute, names or attributes)
    return Required(specs, attributes, read)


def _read_threshold(
    engine: Engine, number: int, spec: RequirementSpec, attribute: Attribute, attributes: Iterable[str]
) -> Requirement:
    """The requirement with the values that it names as their column writes them.

    Where it is for several attributes, a value need not be one of each.
    """
    found = spec.resolve(None, attribute)
    if not isinstance(found, Threshold) or not found.named:
        return found
    takes_others = found.absent or sum(map(spec.concerns, attributes)) != 1
    key = f"require.{number}.{found.name}"
    return found.written_as(texts_of(engine, key, attribute.type, found.named, takes_others), number)


def absent_values(
    engine: Engine,
    requirements: Mapping[str, Sequence[Requirement]],
    columns: Mapping[str, tuple[Relation | FileRelation, str]],
) -> list[Named]:
    """The values with thresholds of their own that no row has; `columns` says where those of each attribute stand.

    Raises PolicyError unless the policy allows them to be absent: one that is misspelt would be protected by nothing.
    """
    missing: dict[int, set[Named]] = {}
    allowed: set[int] = set()
    for name, wanted in requirements.items():
        for found in [one for one in wanted if isinstance(one, Threshold) and one.named]:
            here = _missing(engine, found, *columns[name])
            missing[found.place] = missing.get(found.place, here) & here
            allowed |= {found.place} if found.absent else set()
    problems = [
        Problem(
            f"require.{place}.{Threshold.name}",
            f"{len(values):,} of the values named are in no row: {listing(sorted(values, key=in_order))}",
            "`absent: allow` beside them allows it",
        )
        for place, values in sorted(missing.items())
        if values and place not in allowed
    ]
    if problems:
        raise PolicyError(problems)
    return sorted({value for values in missing.values() for value in values}, key=in_order)


def _missing(engine: Engine, found: Threshold, table: Relation | FileRelation, column: str) -> set[Named]:
    """The values, as the policy names them, that the column of the table does not have."""
    names = dict(zip(found.named, found.written, strict=True))
    members = engine.load("members", {"value": "VARCHAR"}, [(value,) for value in found.named])
    rows = engine.rows("requirements/list_absent", totals=table, members=members, column=Identifier(column))
    engine.drop(members)
    return {names[value] for (value,) in rows}


def smallest_class(requirements: Iterable[Requirement]) -> int | None:
    """The l that average class sizes are in units of: the smallest class that meets all, 2 where no size promises that.

    None if nothing is asked for. A run and a measurement of its release both take it from the policy.
    """
    sizes = [requirement.unique_class_size() or 2 for requirement in requirements]
    return max(2, *sizes) if max(sizes, default=1) > 1 else None
