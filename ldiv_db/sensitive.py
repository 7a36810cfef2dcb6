"""What a policy says of sensitive attributes, read: their categories, weights and taxonomies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ldiv_db import taxonomy as taxonomies
from ldiv_db.catalog import Column
from ldiv_db.engine import Engine
from ldiv_db.errors import PolicyError, Problem
from ldiv_db.policy_parts import Sensitive
from ldiv_db.requirements import Attribute, Distribution, Requirement, RequirementSpec, make_categories
from ldiv_db.taxonomy import Taxonomy
from ldiv_db.taxonomy_sources import read_taxonomy


def read_attributes(
    engine: Engine, settings: Mapping[str, Sensitive], columns: Sequence[Column], folder: Path
) -> dict[str, Attribute]:
    """The sensitive attributes by name; raises PolicyError naming every taxonomy that is not to be had."""
    types = {column.name.lower(): column for column in columns}
    found, problems = {}, []
    for name, setting in settings.items():
        column = types.get(name.lower(), Column(name, "VARCHAR"))
        categories = None if setting.categories is None else make_categories(setting.categories, setting.weights)
        try:
            taxonomy = _taxonomy(engine, setting, folder)
        except PolicyError as error:
            problems += [Problem(f"sensitive.{name}.{p.key}", p.what, p.hint) for p in error.problems]
            continue
        found[name] = Attribute(name, categories, taxonomy, column.is_number, column.is_time)
    if problems:
        raise PolicyError(problems)
    return found


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
    specs: Sequence[RequirementSpec],
    attributes: Mapping[str, Attribute],
    distributions: Mapping[str, Distribution] | None = None,
) -> dict[str, list[Requirement]]:
    """The requirements on each sensitive attribute; raises PolicyError for those that lack what they need."""
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
            spec.resolve(distributions[name] if distributions else None, attribute)
            for spec in specs
            if spec.concerns(name)
        ]
        for name, attribute in attributes.items()
    }
