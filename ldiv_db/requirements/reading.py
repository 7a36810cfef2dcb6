"""Values that differ and are one to a reader: spellings of one text, one value beside NULL, numbers that hardly differ.

Requirements count such values as many. What is said here holds nothing up: it says how many rows it bears on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.base import Attribute, Requirement
from ldiv_db.requirements.histogram import Classes

#: Numbers are near if they lie within one such part of the column's range.
PARTS = 100
_APART = "`range` or `proximity` ask for values that are apart"
_SPELLINGS = "`same: [trim, casefold]` counts them as one"


def warn_of_values(
    engine: Engine, values: Relation, attribute: Attribute, requirements: Sequence[Requirement]
) -> list[str]:
    """What a reader takes for one among the `values` (value, rows) of a column, a sentence each; none names a value.

    NULL is one of the values. Where requirements ask for nothing that is all that is said; where they ask for rows
    alone nothing is, and of numbers nothing where one asks how far they are apart.
    """
    if not requirements:
        return [_unrequired(attribute)]
    if all(requirement.of_rows for requirement in requirements):
        return []
    name, found = attribute.name, []
    counts = engine.record("requirements/reading/count_nulls", totals=values)
    if 2 * counts["nulls"] > counts["rows"]:
        found.append(f"{name}: NULL, in {_part(counts['nulls'], counts['rows'])}, is judged as a value like any other")
    if attribute.type == "VARCHAR":
        found += _warn_of_spellings(engine, values, name)
    if (attribute.is_number or attribute.is_time) and not any(r.of_distances for r in requirements):
        found += _warn_of_gaps(engine, values, attribute, counts["values"])
    return found


def _warn_of_spellings(engine: Engine, values: Relation, name: str, classes: Classes | None = None) -> list[str]:
    """Of how many values there are several spellings, and of `classes` how many rows are in those of one such value."""
    with engine.scope():
        folded = engine.materialise("folded", "requirements/reading/fold_values", totals=values)
        counts, said = engine.record("requirements/reading/count_spellings", folded=folded), ""
        if not counts["spellings"]:
            return []
        if classes is not None:
            histogram = classes.histogram
            alone = engine.scalar("requirements/reading/count_respelt", histogram=histogram, folded=folded)
            said = f", and {alone:,} rows are in classes of one of these alone" if alone else ""
    spellings, rows = f"{counts['spellings']:,} of its values", f"in {counts['rows']:,} rows"
    return [f"{name}: {spellings}, {rows}, are {counts['values']:,} but for case and blanks{said}; {_SPELLINGS}"]


def _warn_of_gaps(engine: Engine, values: Relation, attribute: Attribute, count: int) -> list[str]:
    with engine.scope():
        places = _places(engine, values, attribute)
        gap = engine.scalar("requirements/reading/measure_gaps", places=places)
    if gap is None:
        return []
    unit = " seconds" if attribute.is_time else ""
    what = f"its {count:,} values count as different however near they are"
    return [f"{attribute.name}: {what}, half of the neighbouring ones {gap:.9g}{unit} apart or less; {_APART}"]


def warn_of_classes(
    engine: Engine, classes: Classes, attribute: Attribute, requirements: Sequence[Requirement]
) -> list[str]:
    """What a reader takes for one value in classes that count as several, a sentence each.

    Nothing is said where requirements ask for rows alone, and of numbers nothing where one asks how far they are apart.
    """
    if not requirements:
        return [_unrequired(attribute)]
    if all(requirement.of_rows for requirement in requirements):
        return []
    name, found = attribute.name, []
    counts = engine.record("requirements/reading/count_lone", histogram=classes.histogram)
    if counts["lone"]:
        what = f"{_part(counts['lone'], counts['rows'])} are in classes of one value beside NULL, which count as two"
        found.append(f"{name}: {what}; `suppressed: ignore` judges rows that have a value alone")
    if attribute.type == "VARCHAR":
        found += _warn_of_spellings(engine, classes.totals, name, classes)
    if (attribute.is_number or attribute.is_time) and not any(r.of_distances for r in requirements):
        found += _near_classes(engine, classes, attribute, counts["rows"])
    return found


def _near_classes(engine: Engine, classes: Classes, attribute: Attribute, rows: int) -> list[str]:
    totals = classes.totals
    with engine.scope():
        holes = {"histogram": classes.histogram, "places": _places(engine, totals, attribute)}
        near = engine.scalar("requirements/reading/count_near", **holes, parts=Value(PARTS))
    if not near:
        return []
    what = f"{_part(near, rows)} are in classes whose values lie within 1/{PARTS} of the column's range"
    return [f"{attribute.name}: {what}; {_APART}"]


def _places(engine: Engine, values: Relation, attribute: Attribute) -> Relation:
    return engine.materialise("places", "requirements/place_values", totals=values, is_time=attribute.is_time)


def _unrequired(attribute: Attribute) -> str:
    return f"{attribute.name}: nothing is required of it, and a class may tell its values for certain"


def _part(part: int, rows: int) -> str:
    return f"{part:,} of {rows:,} rows"
