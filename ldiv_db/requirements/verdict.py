"""Verdicts on whether a requirement holds on the classes of a table.

Values may differ and be one to a reader: spellings of one text, one value beside NULL, numbers that hardly differ.
Requirements count such values as many. What is said here holds nothing up: it says how many rows it bears on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.steps import OneStatement, Steps
from ldiv_db.database.templates import Relation
from ldiv_db.requirements.base import Attribute, Requirement
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import plain
from ldiv_db.requirements.sets import find_sets

#: Is shown the measures of a requirement on the classes before they are dropped.
Watch = Callable[[Requirement, Classes, Relation], None]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a requirement of a table: the classes that violate it, and the worst class.

    The worst class is, of those that violate, or of all if none does, the one that reaches the worst figure, and of
    several the one of the least margin. `worst_class` is its number, `worst_rows` are its rows, `worst` is the figure
    that it reaches and `margin` its own, which is negative if it violates: all None for a table without classes. Where
    people are counted and rows as well, figure and margin are those of the worse of the two, and `by_rows` says which;
    `violating_by_rows` are the classes that violate by rows.
    `holds` is None where rows were counted and people are asked about, which leaves it open.
    `second` are the classes that violate by a second reading of the table, `once` why there is none where it was asked
    for.
    """

    requirement: Requirement
    holds: bool | None
    worst: float | None
    classes: int
    violating_classes: int
    violating_rows: int
    worst_class: int | None = None
    worst_rows: int | None = None
    margin: float | None = None
    second: int | None = None
    once: str | None = None
    by_rows: bool = False
    violating_by_rows: int | None = None

    @property
    def agrees(self) -> bool:
        """True unless a second reading, which counts rows, found another number of classes that violate."""
        first = self.violating_classes if self.violating_by_rows is None else self.violating_by_rows
        return self.second in (None, first)

    @property
    def otherwise(self) -> str:
        """The words that a message adds where the second reading disagrees."""
        return "" if self.agrees else f"; a second reading found {self.second:,}: one of the two is wrong, report it"

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.requirement.name,
            "parameters": {k: plain(v) for k, v in self.requirement.parameters.items()},
            "holds": self.holds,
            "worst": self.worst,
            "worst_is": self.requirement.reaches,
            "worst_class": self.worst_class,
            "worst_class_rows": self.worst_rows,
            "margin": self.margin,
            "classes": self.classes,
            "violating_classes": self.violating_classes,
            "violating_rows": self.violating_rows,
            "second_reading": self.second,
            "read_once": self.once,
        }


def judge(engine: Engine, requirement: Requirement, classes: Classes, watch: Watch | None = None) -> Verdict:
    """The verdict on one requirement over the classes of a published table."""
    measures = measure_table(engine, requirement, classes)
    read = {"measures": measures, "both": classes.by_rows is not None}
    summary = engine.record("requirements/summarise_measures", **read)
    order = {"most_is_worst": requirement.most_is_worst}
    worst = next(iter(engine.records("requirements/find_worst", **read, **order)), {})
    if watch is not None:
        watch(requirement, classes, measures)
    engine.drop(measures)
    return Verdict(
        requirement,
        holds=summary["violating_classes"] == 0,
        worst=worst.get("reached"),
        classes=summary["classes"],
        violating_classes=summary["violating_classes"],
        violating_rows=int(summary["violating_rows"] or 0),
        worst_class=worst.get("class_no"),
        worst_rows=worst.get("rows"),
        margin=worst.get("margin"),
        by_rows=worst.get("by_rows", False),
        violating_by_rows=summary.get("violating_by_rows"),
    )


def measure_table(steps: Steps, requirement: Requirement, classes: Classes) -> Relation:
    """(class_no, rows, reached, margin) of the classes of a whole table; a negative margin violates.

    Where people are counted `rows` are these, and the figures those of the worse of all readings.
    """
    people, *rows = [requirement.measure_table(steps, found) for found in classes.readings(requirement)]
    if not classes.of_people:
        return people
    params = {"rows": rows[0] if rows else None, "tallies": classes.tallies, "most_is_worst": requirement.most_is_worst}
    worse = steps.materialise("worse", "requirements/take_worse", people=people, **params)
    steps.drop(people, *rows)
    return worse


#: Numbers are near if they lie within one such part of the column's range.
PARTS = 100
_APART = "`range` or `proximity` ask for values that are apart"
_SPELLINGS = "`same: [trim, casefold]` counts them as one"


def warn_of_values(
    engine: Engine, values: Relation, attribute: Attribute, requirements: Sequence[Requirement]
) -> list[str]:
    """The `values` (value, rows) of a column that a reader takes for one, a sentence each; none names a value.

    NULL is one of the values. Where requirements ask for nothing that is all that is said; where they ask for rows
    alone nothing is, and of numbers nothing where one asks how far they are apart.
    """
    if not requirements:
        return [_unrequired(attribute)]
    if all(requirement.rows_only for requirement in requirements):
        return []
    name, found = attribute.name, _unbounded(attribute, requirements)
    counts = engine.record("requirements/reading/count_nulls", totals=values)
    if 2 * counts["nulls"] > counts["rows"]:
        found.append(f"{name}: NULL, in {_part(counts['nulls'], counts['rows'])}, is judged as a value like any other")
    found += [f"{name}: {sets}" for sets in [find_sets(engine, values, attribute.type)] if sets]
    if attribute.type == "VARCHAR":
        found += _warn_of_spellings(engine, values, name)
    if _is_ordered(attribute) and not any(r.uses_distances for r in requirements):
        found += _warn_of_gaps(engine, values, attribute, counts["values"])
    return found


def _warn_of_spellings(engine: Engine, values: Relation, name: str, classes: Classes | None = None) -> list[str]:
    """Of how many values there are several spellings, and of `classes` how many rows are in those of one such value."""
    parts, said = OneStatement(engine), ""
    folded = parts.materialise("folded", "requirements/reading/fold_values", totals=values)
    counts = parts.record("requirements/reading/count_spellings", folded=folded)
    if not counts["spellings"]:
        return []
    if classes is not None:
        histogram = classes.histogram
        alone = parts.record("requirements/reading/count_respelt", histogram=histogram, folded=folded)["respelt"]
        said = f", and {count_phrase(alone, 'row is', 'rows are')} in classes of one of these alone" if alone else ""
    spellings, rows = f"{counts['spellings']:,} of its values", f"in {counts['rows']:,} rows"
    alike = f"are {counts['values']:,} if case, blanks and dashes are ignored"
    return [f"{name}: {spellings}, {rows}, {alike}{said}; {_SPELLINGS}"]


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
    """The values that a reader takes for one in classes where they count as several, a sentence each.

    Nothing is said where requirements ask for rows alone, and of numbers nothing where one asks how far they are apart.
    """
    if not requirements:
        return [_unrequired(attribute)]
    if all(requirement.rows_only for requirement in requirements):
        return []
    name, found = attribute.name, _unbounded(attribute, requirements)
    counts = engine.record("requirements/reading/count_lone", histogram=classes.histogram)
    if counts["lone"] and not attribute.of_sets:
        what = f"{_part(counts['lone'], counts['rows'])} are in classes of one value beside NULL, which count as two"
        found.append(f"{name}: {what}; `suppressed: ignore` judges rows that have a value alone")
    found += [f"{name}: {sets}" for sets in [find_sets(engine, classes.totals, attribute.type)] if sets]
    if attribute.type == "VARCHAR":
        found += _warn_of_spellings(engine, classes.totals, name, classes)
    if _is_ordered(attribute) and not any(r.uses_distances for r in requirements):
        found += _near_classes(engine, classes, attribute, counts["rows"])
    return found


def _near_classes(engine: Engine, classes: Classes, attribute: Attribute, rows: int) -> list[str]:
    totals = classes.totals
    with engine.scope():
        params = {"histogram": classes.histogram, "places": _places(engine, totals, attribute)}
        near = engine.scalar("requirements/reading/count_near", **params, parts=PARTS)
    if not near:
        return []
    what = f"{_part(near, rows)} are in classes whose values lie within 1/{PARTS} of the column's range"
    return [f"{attribute.name}: {what}; {_APART}"]


def _places(engine: Engine, values: Relation, attribute: Attribute) -> Relation:
    return engine.materialise("places", "requirements/place_values", totals=values, is_time=attribute.is_time)


def _is_ordered(attribute: Attribute) -> bool:
    """True if its values are numbers or times, one a row."""
    return (attribute.is_number or attribute.is_time) and not attribute.of_sets


def _unbounded(attribute: Attribute, requirements: Sequence[Requirement]) -> list[str]:
    """A sentence on sets of which shares alone are required, in which a row weighs one, however many members it has."""
    if not attribute.of_sets or any(r.on_people == "counts" and not r.rows_only for r in requirements):
        return []
    labels = ", ".join(requirement.label for requirement in requirements if not requirement.rows_only)
    what = f"{labels} spreads a row over its members, and all rows of a class may have one in common"
    return [f"{attribute.name}: {what}; `frequency`, `distinct` or `alpha_k` bound how many have it"]


def _unrequired(attribute: Attribute) -> str:
    return f"{attribute.name}: nothing is required of it, and a class may tell its values for certain"


def _part(part: int, rows: int) -> str:
    return f"{part:,} of {rows:,} rows"
