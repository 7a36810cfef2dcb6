"""What a policy says of sensitive attributes, read: their categories, weights and taxonomies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ldiv_db.database.catalog import Column, without_members
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.policy.parts import Sensitive
from ldiv_db.recoding.encoded import SensitiveAxis
from ldiv_db.requirements import (
    Attribute,
    Categories,
    Distribution,
    Requirement,
    RequirementSpec,
    make_categories,
)
from ldiv_db.requirements.named import Named, in_order, in_type, listing, twice
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.readers import read_taxonomy
from ldiv_db.taxonomies.taxonomy import Taxonomy


def read_attributes(
    engine: Engine, settings: Mapping[str, Sensitive], columns: Sequence[Column], folder: Path
) -> dict[str, Attribute]:
    """The sensitive attributes by name; raises PolicyError naming every taxonomy that is not to be had."""
    types = {column.name.lower(): column for column in columns}
    found, problems = {}, []
    for name, setting in settings.items():
        column = types.get(name.lower(), Column(name, "VARCHAR"))
        try:
            categories = _categories(engine, setting, column)
            taxonomy = _taxonomy(engine, setting, folder)
        except PolicyError as error:
            problems += [Problem(f"sensitive.{name}.{p.key}", p.what, p.hint) for p in error.problems]
            continue
        found[name] = Attribute(name, categories, taxonomy, column.is_number, column.is_time, column.type)
    if problems:
        raise PolicyError(problems)
    return found


def _categories(engine: Engine, setting: Sensitive, column: Column) -> Categories | None:
    """The categories, of values as the column writes them."""
    if setting.categories is None:
        return None
    categories = make_categories(setting.categories, setting.weights)
    texts = _texts(engine, "categories", column.type, categories.values, takes_others=False)
    return categories.written_as(texts)


def _texts(engine: Engine, key: str, kind: str, values: Sequence[Named], takes_others: bool) -> Mapping[Named, Named]:
    """What a column writes for values that are named; raises PolicyError for two that are one, and for what is none."""
    texts, others = in_type(engine, kind, values)
    if others and not takes_others:
        what = f"{len(others):,} of the values named are no {without_members(kind)}: {listing(others)}"
        raise PolicyError([Problem(key, what)])
    if pairs := twice(texts):
        raise PolicyError([Problem(key, f"names one value twice: {listing(pair)}") for pair in pairs])
    return texts


def _read(engine: Engine, place: int, requirement: Requirement, attribute: Attribute, is_only: bool) -> Requirement:
    """The requirement with the values that it names as their column writes them.

    Where it is for several attributes, a value need not be one of each.
    """
    if not requirement.named:
        return requirement
    key, takes_others = f"require.{place}.{requirement.name}", requirement.absent or not is_only
    return requirement.written_as(_texts(engine, key, attribute.type, requirement.named, takes_others), place)


def absent_values(
    engine: Engine,
    requirements: Mapping[str, Sequence[Requirement]],
    columns: Mapping[str, tuple[Relation | FileRelation, str]],
) -> list[Named]:
    """The values with thresholds of their own that no row has; `columns` says where those of each attribute stand.

    Raises PolicyError unless the policy allows them to be absent: one that is misspelt would be protected by nothing.
    """
    missing: dict[int, set[Named]] = {}
    names: dict[int, str] = {}
    allowed: set[int] = set()
    for name, wanted in requirements.items():
        for found in [one for one in wanted if one.named]:
            here = found.missing(engine, *columns[name])
            names[found.place] = found.name
            missing[found.place] = missing.get(found.place, here) & here
            allowed |= {found.place} if found.absent else set()
    problems = [
        Problem(
            f"require.{place}.{names[place]}",
            f"{len(values):,} of the values named are in no row: {listing(sorted(values, key=in_order))}",
            "`absent: allow` beside them allows it",
        )
        for place, values in sorted(missing.items())
        if values and place not in allowed
    ]
    if problems:
        raise PolicyError(problems)
    return sorted({value for values in missing.values() for value in values}, key=in_order)


def columns_in(axes: Iterable[SensitiveAxis]) -> dict[str, tuple[Relation | FileRelation, str]]:
    """Where the values of encoded attributes stand."""
    return {axis.column.name: (axis.dictionary, "value") for axis in axes}


def _taxonomy(engine: Engine, setting: Sensitive, folder: Path) -> Taxonomy | None:
    spec = setting.taxonomy
    if spec is None:
        return None
    if spec.file is not None:
        return read_taxonomy(folder / spec.file, spec.tree)
    return taxonomies.require(engine, spec.name or "")


def smallest_class(requirements: Iterable[Requirement]) -> int | None:
    """The l that average class sizes are in units of: the smallest class that meets all, 2 where no size promises that.

    None if nothing is asked for. A run and a measurement of its release both take it from the policy.
    """
    sizes = [requirement.unique_class_size() or 2 for requirement in requirements]
    return max(2, *sizes) if max(sizes, default=1) > 1 else None


def resolve_all(
    engine: Engine,
    specs: Sequence[RequirementSpec],
    attributes: Mapping[str, Attribute],
    distributions: Mapping[str, Distribution] | None = None,
) -> dict[str, list[Requirement]]:
    """The requirements on each sensitive attribute; raises PolicyError for those that lack what they need.

    The values that they name are then as their column writes them.
    """
    problems = [
        problem
        for number, spec in enumerate(specs)
        for attribute in attributes.values()
        if spec.concerns(attribute.name)
        for problem in spec.problems(f"require.{number}", attribute)
    ]
    if problems:
        raise PolicyError(problems)
    return {
        name: [
            _read(
                engine,
                place,
                spec.resolve(distributions[name] if distributions else None, attribute),
                attribute,
                is_only=sum(map(spec.concerns, attributes)) == 1,
            )
            for place, spec in enumerate(specs)
            if spec.concerns(name)
        ]
        for name, attribute in attributes.items()
    }
