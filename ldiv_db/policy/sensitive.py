"""Sensitive attributes of a policy, and requirements on them, with values as their columns write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ldiv_db.database import csv_files
from ldiv_db.database.catalog import Column, columns_of, without_members
from ldiv_db.database.data_files import FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step, is_nested, looseness
from ldiv_db.database.errors import PolicyError, Problem, refuse, refused
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems, Sensitive, is_reported
from ldiv_db.policy.quasi_identifiers import read_named_taxonomy
from ldiv_db.requirements import Attribute, Categories, Distribution, Requirement, RequirementSpec, make_categories
from ldiv_db.requirements.parameters import plain
from ldiv_db.requirements.values import Named, folded, in_order, in_type, listing, named_value, twice


def of_groups(policy: Policy) -> list[RequirementSpec]:
    """What each sensitive attribute has to meet in groups; NULL and harmless values are none that count."""
    is_open = policy.nulls_sensitive == "value"
    return [
        RequirementSpec(asked, setting.l, (name,))
        for name, setting in policy.sensitive.items()
        for asked in ("frequency", "distinct")[: 1 if is_open or setting.harmless or setting.set else 2]
    ]


def read_attributes(
    engine: Engine, settings: Mapping[str, Sensitive], columns: Sequence[Column], folder: Path
) -> dict[str, Attribute]:
    """The sensitive attributes by name; raises PolicyError naming every taxonomy that is not to be had."""
    problems = Problems()
    found = collect_attributes(engine, settings, columns, folder, problems)
    problems.refuse()
    return found


def collect_attributes(
    engine: Engine, settings: Mapping[str, Sensitive], columns: Sequence[Column], folder: Path, problems: Problems
) -> dict[str, Attribute]:
    """The sensitive attributes that are to be had; what is wrong with the others is added to `problems`."""
    types = {column.name.lower(): column for column in columns}
    found = {}
    for name, setting in settings.items():
        column = types.get(name.lower(), Column(name, "VARCHAR"))
        with problems.collected(f"sensitive.{name}"):
            if setting.same and column.type != "VARCHAR":
                what = f"makes texts one, and {name} is of type {column.shown}"
                raise refused("same", what, "leave it out, or give the text of it in a view")
            column = member_column(name, setting, column)
            categories = _categories(engine, setting, column)
            taxonomy = read_named_taxonomy(engine, setting.taxonomy, folder)
            if taxonomy and setting.same:
                leaves: dict[Named, Named] = {leaf.label: leaf.label for leaf in taxonomy.leaves}
                taxonomy = taxonomy.with_leaves(folded(engine, leaves, setting.same))
            kind = (column.is_number, column.is_time, column.type, _harmless(engine, setting, column))
            found[name] = Attribute(name, categories, taxonomy, *kind, tuple(setting.same), bool(setting.set))
    return found


def _categories(engine: Engine, setting: Sensitive, column: Column) -> Categories | None:
    if setting.categories is None:
        return None
    categories = make_categories(setting.categories, setting.weights)
    texts = texts_of(engine, "categories", column.type, categories.values, False, setting.same)
    return categories.written_as(texts)


def _harmless(engine: Engine, setting: Sensitive, column: Column) -> tuple[Named, ...]:
    written = [named_value(value) for value in setting.harmless or []]
    if pairs := [value for value, times in Counter(written).items() if times > 1]:
        raise refused("harmless", f"names one value twice: {listing(pairs)}")
    texts = texts_of(engine, "harmless", column.type, written, allow_others=False, same=setting.same)
    return tuple(sorted(texts.values(), key=in_order))


def as_published(engine: Engine, source: Table, policy: Policy) -> Table:
    """The source; of a CSV file the columns that are published as they are, as the file writes them.

    A sensitive column that would be text keeps its type where requirements ask for its order or distances, where equal
    values of it are written differently, and where the policy names values otherwise than the file: 2.5 for 2.50.
    """
    if not (isinstance(source, FileRelation) and source.form and source.form.spelt):
        return source
    placed = [spec for spec in policy.require if spec.kind.places_values]
    counted = [name for name in policy.sensitive if not any(spec.concerns(name) for spec in placed)]
    texts, types = csv_files.as_spelt(engine, source, counted, counted), dict(source.form.columns)
    read_as_text = [column.name for column in columns_of(engine, texts) if column.type == "VARCHAR"]
    respelt = {name.lower(): types[name] for name in read_as_text if types.get(name, "VARCHAR") != "VARCHAR"}
    lowered = {name.lower() for name in policy.sensitive}
    spelt = [name for name, written in source.form.spelt if written != "VARCHAR" and name.lower() in lowered]
    for name in [name for name in counted if name.lower() in respelt]:
        named = _named(policy, name)
        missing = _absent(engine, texts, name, named)
        read, _ = in_type(engine, respelt[name.lower()], named if missing else [])
        if not missing or len(_absent(engine, source, name, list(read.values()))) == len(missing):
            spelt.append(name)
    as_they_are = policy.quasi_identifiers if policy.decomposes else ()
    return csv_files.as_spelt(engine, source, [*policy.keep, *as_they_are, *spelt])


def _named(policy: Policy, name: str) -> list[Named]:
    setting, attribute = policy.sensitive[name], Attribute(name)
    named = [*map(named_value, setting.harmless or []), *map(named_value, chain(*(setting.categories or [])))]
    specs = [spec for spec in policy.require if spec.concerns(name) and not spec.problems("require", attribute)]
    return [*named, *(value for spec in specs for value in spec.provisional(attribute).named)]


def respelt_lines(name: str, source: Table, sensitive: Iterable[Column]) -> list[str]:
    """A line for each sensitive column of a CSV file, called `name`, that is not published as it is written there."""
    form = source.form if isinstance(source, FileRelation) else None
    written = {column.lower(): kind for column, kind in form.spelt} if form else {}
    why = "the policy asks for its values, or the file writes equal ones differently"
    return [
        f"{column.name} is published as {column.shown} writes it, not as {name} does: {why}"
        for column in sensitive
        if written.get(column.name.lower(), column.type) != column.type
    ]


def member_column(name: str, setting: Sensitive, column: Column) -> Column:
    """The column as its values are counted: that of the members of a set; raises PolicyError for what is none."""
    if not setting.set:
        return column
    if column.is_list and (is_nested(column.member) or looseness(column.member)):
        what = f"takes members that are texts, whole numbers or times, and {name} is of type {column.shown}"
        raise refused("set", what, "give a list of such members in a view")
    if column.is_list and setting.set is not True:
        raise refused("set", f"{name} is a list, whose members nothing stands between", "set: true")
    if not column.is_list and column.type != "VARCHAR":
        what = f"takes a list or a text, and {name} is of type {column.shown}"
        raise refused("set", what, "leave it out, or give a list in a view")
    if not column.is_list and setting.set is True:
        what = f"{name} is text: name what stands between its members"
        raise refused("set", what, 'as `set: ","`')
    return column.member


def texts_of(
    engine: Engine, key: str, kind: str, values: Sequence[Named], allow_others: bool, same: Sequence[Step] = ()
) -> Mapping[Named, Named]:
    """The texts of a column for values that are named, after the steps of `same`; raises PolicyError for others."""
    texts, others = in_type(engine, kind, values)
    texts = folded(engine, texts, same)
    if others and not allow_others:
        what = f"{len(others):,} of the values named are not of type {without_members(kind)}: {listing(others)}"
        raise refused(key, what)
    if pairs := twice(texts):
        raise PolicyError([Problem(key, f"names one value twice: {listing(pair)}") for pair in pairs])
    return texts


@dataclass(frozen=True)
class Required:
    """The requirements on each attribute; parameters that are `auto` wait for the distribution of its values.

    `texts` are the values that requirements name as their columns write them, by the number of the requirement in the
    policy and the attribute.
    """

    specs: Sequence[RequirementSpec]
    attributes: Mapping[str, Attribute]
    texts: Mapping[tuple[int, str], Mapping[Named, Named]]

    def settled(self, found: Iterable[Mapping[str, Any]]) -> Required:
        """The same with `auto` as it was `found`: verdicts of an earlier release, with the attribute of each."""
        known = list(found)

        def settled(spec: RequirementSpec) -> RequirementSpec:
            own = [one for one in known if one["name"] == spec.name and spec.concerns(one["sensitive"])]
            return spec.settled(own[-1]["parameters"]) if spec.is_auto and own else spec

        return replace(self, specs=[settled(spec) for spec in self.specs])

    def resolved(self, distribution: Distribution | None = None) -> dict[str, list[Requirement]]:
        """The requirements on each attribute."""
        found: dict[str, list[Requirement]] = {name: [] for name in self.attributes}
        for name, attribute in self.attributes.items():
            for number, spec in enumerate(self.specs):
                if spec.concerns(name):
                    requirement, texts = spec.resolve(distribution, attribute), self.texts.get((number, name))
                    found[name].append(requirement if texts is None else requirement.written_as(texts, number))
        return found


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
    """The requirements on attributes that are to be had, of all `names`; what is wrong is added to `problems`."""
    wanted = [(n, spec, a) for n, spec in enumerate(specs) for a in attributes.values() if spec.concerns(a.name)]
    wrong = [problem for n, spec, attribute in wanted for problem in spec.problems(f"require.{n}", attribute)]
    problems.add(wrong)
    texts: dict[tuple[int, str], Mapping[Named, Named]] = {}
    for number, spec, attribute in wanted:
        found = None if is_reported(f"require.{number}", wrong) else spec.provisional(attribute)
        if found is not None and found.named:
            with problems.collected():
                # Where it is for several attributes, a value need not be one of each.
                allow_others = found.absent or sum(map(spec.concerns, names or attributes)) != 1
                key = f"require.{number}.{found.name}"
                named = texts_of(engine, key, attribute.type, found.named, allow_others, attribute.same)
                if both := [value for value, text in named.items() if text in attribute.harmless]:
                    what = f"names {listing(both)}, harmless in {attribute.name}: nothing is promised of it"
                    raise refused(key, what, "leave it out here or there")
                texts[number, attribute.name] = named
    return Required(specs, attributes, texts)


def unknown_harmless(
    engine: Engine, attributes: Mapping[str, Attribute], columns: Mapping[str, tuple[Table, str]]
) -> list[str]:
    """A line for every attribute that has harmless values in no row; `columns` says where its values stand."""
    return [
        f"no row has the value {listing(missing)}, which is harmless in {name}"
        for name, attribute in attributes.items()
        if attribute.harmless and (missing := _absent(engine, *columns[name], attribute.harmless))
    ]


def _absent(engine: Engine, table: Table, column: str, values: Sequence[Named]) -> list[Named]:
    """Those of the values that no row has in the column."""
    if not values:
        return []
    listed = engine.load("members", {"value": "VARCHAR"}, [(value,) for value in values])
    missing = engine.rows("requirements/list_absent", totals=table, members=listed, column=column)
    engine.drop(listed)
    return [value for (value,) in missing]


def absent_values(
    engine: Engine,
    requirements: Mapping[str, Sequence[Requirement]],
    columns: Mapping[str, tuple[Table, str]],
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
    refuse(
        Problem(
            f"require.{place}.{names[place]}",
            f"{len(values):,} of the values named are in no row: {listing(sorted(values, key=in_order))}",
            "`absent: allow` beside them allows it",
        )
        for place, values in sorted(missing.items())
        if values and place not in allowed
    )
    return sorted({value for values in missing.values() for value in values}, key=in_order)


def asked_l(requirements: Iterable[Requirement]) -> int | float | None:
    """The largest l of the requirements that have one; None if none has."""
    asked = [plain(found.parameters["l"]) for found in requirements if "l" in found.fields]
    return max(asked, default=None)


def smallest_class(requirements: Iterable[Requirement]) -> int | None:
    """The l that average class sizes are in units of: the smallest class that meets all, 2 where no size promises that.

    None if nothing is asked for. A run and a measurement of its release both take it from the policy.
    """
    sizes = [requirement.unique_class_size() or 2 for requirement in requirements]
    return max(2, *sizes) if max(sizes, default=1) > 1 else None
