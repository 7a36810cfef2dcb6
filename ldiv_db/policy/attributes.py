"""What a policy says of sensitive attributes, read: their categories, weights, taxonomies and harmless values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ldiv_db.database.catalog import Column, without_members
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.hierarchies import read_named_taxonomy
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.problems import Problems
from ldiv_db.requirements import Attribute, Categories, make_categories
from ldiv_db.requirements.named import Named, folded, in_order, in_type, listing, named_value, twice


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
            refuse_same(name, setting, column)
            categories = _categories(engine, setting, column)
            taxonomy = read_named_taxonomy(engine, setting.taxonomy, folder)
            if taxonomy and setting.same:
                leaves: dict[Named, Named] = {leaf.label: leaf.label for leaf in taxonomy.leaves}
                taxonomy = taxonomy.with_leaves(folded(engine, leaves, setting.same))
            kind = (column.is_number, column.is_time, column.type, _harmless(engine, setting, column))
            found[name] = Attribute(name, categories, taxonomy, *kind, same=tuple(setting.same))
    return found


def _categories(engine: Engine, setting: Sensitive, column: Column) -> Categories | None:
    """The categories, of values as the column writes them."""
    if setting.categories is None:
        return None
    categories = make_categories(setting.categories, setting.weights)
    texts = texts_of(engine, "categories", column.type, categories.values, False, setting.same)
    return categories.written_as(texts)


def _harmless(engine: Engine, setting: Sensitive, column: Column) -> tuple[Named, ...]:
    """The values of which nothing is promised, as the column writes them."""
    written = [named_value(value) for value in setting.harmless or []]
    if pairs := [value for value, times in Counter(written).items() if times > 1]:
        raise PolicyError([Problem("harmless", f"names one value twice: {listing(pairs)}")])
    texts = texts_of(engine, "harmless", column.type, written, takes_others=False, same=setting.same)
    return tuple(sorted(texts.values(), key=in_order))


def refuse_same(name: str, setting: Sensitive, column: Column) -> None:
    """Raise PolicyError for steps that make texts one, of a column that has none."""
    if setting.same and column.type != "VARCHAR":
        what = f"makes texts one, and {name} is of type {column.shown}"
        raise PolicyError([Problem("same", what, "leave it out, or give the text of it in a view")])


def texts_of(
    engine: Engine,
    key: str,
    kind: str,
    values: Sequence[Named],
    takes_others: bool,
    same: Sequence[Step] = (),
) -> Mapping[Named, Named]:
    """What a column writes for values that are named, after the steps by which its texts are the `same`.

    Raises PolicyError for two that are one, and for what is none.
    """
    texts, others = in_type(engine, kind, values)
    texts = folded(engine, texts, same)
    if others and not takes_others:
        what = f"{len(others):,} of the values named are no {without_members(kind)}: {listing(others)}"
        raise PolicyError([Problem(key, what)])
    if pairs := twice(texts):
        raise PolicyError([Problem(key, f"names one value twice: {listing(pair)}") for pair in pairs])
    return texts
