"""What a reader may take values of a column for: values may differ and be one to a reader, or one and be several.

Spellings of one text, a value beside NULL, and numbers that hardly differ count as many; texts that look like sets of
members count as one. What is said here holds nothing up: it says how many rows it bears on, and names no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase, rows_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import OneStatement
from ldiv_db.requirements.base import Requirement
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.values import Attribute

#: Numbers are near if they lie within one such part of the column's range.
PARTS = 100
_APART = "`range` or `proximity` ask for values that are apart"
_SPELLINGS = "`same: [trim, casefold]` counts them as one"


@dataclass(frozen=True)
class LikelySets:
    """What looks like sets: a text has a `separator` between its members, a list None.

    `values` split into members which others have too, in `rows` of the `whole`; `most` rows have the most frequent
    member, the `largest` number the most frequent value.
    """

    separator: str | None
    rows: int
    values: int
    largest: int
    most: int
    whole: int

    @property
    def setting(self) -> str:
        """What a policy says of them."""
        return f'set: "{self.separator}"' if self.separator else "set: true"

    def __str__(self) -> str:
        split = f"split at `{self.separator}` into members" if self.separator else "are lists of members"
        known = f"{self.values:,} of its values, in {self.rows:,} of {self.whole:,} rows, {split} that others have too"
        member = f"the most frequent member is in {rows_phrase(self.most)}"
        counted = f"{member}, the most frequent value in {self.largest:,}"
        return f"{known}, and each counts as one value: {counted}; `{self.setting}` counts members"


def find_sets(engine: Engine, values: Relation, kind: str) -> LikelySets | None:
    """The sets that `values` (value, rows) of that SQL type look like; None if they do not, or are of another type."""
    lists = kind.endswith("]")
    if not lists and kind != "VARCHAR":
        return None
    signs = [] if lists else sorted(sign for (sign,) in engine.rows("requirements/reading/list_signs", totals=values))
    if not lists and not signs:
        return None
    found = engine.records("requirements/reading/find_sets", totals=values, lists=lists, signs=signs)
    return LikelySets(**found[0]) if found else None


def spreading(requirements: Iterable[Requirement]) -> str:
    """Those that leave it open how many have a value: on shares, in which a person weighs one, or on rows; '' if none.

    A bound is one on how many of a class have a value; what is asked at each position bounds none of all rows.
    """
    asked = list(requirements)
    counted = [requirement for requirement in asked if requirement.on_people == "counts" and not requirement.each]
    promised = [replace(requirement, harmless=()).promise() for requirement in counted]
    if any(promise.values > 1 or promise.share < 1 for promise in promised):  # `frequency: 1` asks for nothing
        return ""
    return ", ".join(one.label for one in [one for one in asked if not one.rows_only] or asked)


def warn_of_spreading(requirements: Sequence[Requirement], whose: str, figure: str = "") -> Iterator[str]:
    """What is to be said of people, or rows of sets, whose values no requirement bounds; `figure` says how many."""
    if spread := spreading(requirements):
        named = any("own_thresholds" in requirement.shown for requirement in requirements)
        what = f"under {spread} nothing bounds how many {whose} have a value{' without a threshold' if named else ''}"
        may = f"all of a class may have one in common{figure}"
        yield f"{what}: {may}; `frequency`, `distinct` or `alpha_k` beside it does"


def warn_of_values(
    engine: Engine,
    values: Relation | Classes,
    attribute: Attribute,
    requirements: Sequence[Requirement],
    of_bags: bool = False,
    is_shared: bool = False,
) -> list[str]:
    """The values of a column, (value, rows), that a reader takes for one, or for sets, a sentence each.

    Of classes it says how many of their rows that concerns. NULL is one of the values. Where requirements ask for
    nothing that is all that is said; where they ask for rows alone no more than that nothing bounds how many have a
    value, and of numbers nothing where one asks how far they are apart. With `of_bags`, as classes have it of people
    and sets, whoever is counted may have several; where each `is_shared` among their rows, no count is of people.
    """
    if not requirements:
        return [f"{attribute.name}: nothing is required of it, and a class may tell its values for certain"]
    histogram, totals = (values.histogram, values.totals) if isinstance(values, Classes) else (None, values)
    with engine.scope():
        known = {"totals": totals, "histogram": histogram, "is_time": attribute.is_time}
        flow = EngineFlow(engine, "requirements/reading", **known)
        of_bags = values.of_people if isinstance(values, Classes) else of_bags or attribute.of_sets
        counted = {"in_classes": histogram is not None, "of_bags": of_bags, "is_shared": is_shared}
        warnings = _warnings(flow, attribute, requirements, **counted)
        return [f"{attribute.name}: {what}" for what in warnings]


def _warnings(
    flow: EngineFlow,
    attribute: Attribute,
    requirements: Sequence[Requirement],
    in_classes: bool,
    of_bags: bool,
    is_shared: bool,
) -> Iterator[str]:
    counts = flow.record("count_lone" if in_classes else "count_nulls")
    if of_bags and (attribute.of_sets or not in_classes or counts["several"]):
        most = counts["most"] if in_classes and not is_shared else None
        figure = f" ({most['common']:,} of {most['counted']:,} have, in one class)" if most else ""
        yield from warn_of_spreading(requirements, "rows" if attribute.of_sets else "people", figure)
    if all(requirement.rows_only for requirement in requirements):
        return
    if not in_classes and 2 * counts["nulls"] > counts["rows"]:
        yield f"NULL, in {_part(counts['nulls'], counts['rows'])}, is judged as a value like any other"
    if in_classes and counts["lone"] and not attribute.of_sets:
        what = f"{_part(counts['lone'], counts['rows'])} are in classes of one value beside NULL, which count as two"
        yield f"{what}; `suppressed: ignore` judges rows that have a value alone"
    if sets := find_sets(flow.engine, flow["totals"], attribute.type):
        yield str(sets)
    if attribute.type == "VARCHAR":
        yield from _spellings(flow, in_classes)
    one_a_row = (attribute.is_number or attribute.is_time) and not attribute.of_sets
    if one_a_row and not any(requirement.uses_distances for requirement in requirements):
        flow.step("places", "requirements/place_values")
        if in_classes:
            (near,) = flow.record("count_near", parts=PARTS).values()
            what = (
                f"{_part(near, counts['rows'])} are in classes whose values lie within 1/{PARTS} of the column's range"
            )
            if near:
                yield f"{what}; {_APART}"
        else:
            (gap,) = flow.record("measure_gaps").values()
            what = f"its {counts['values']:,} values count as different however near they are"
            unit = " seconds" if attribute.is_time else ""
            if gap is not None:
                yield f"{what}, half of the neighbouring ones {gap:.9g}{unit} apart or less; {_APART}"


def _spellings(flow: EngineFlow, in_classes: bool) -> Iterator[str]:
    """Of how many values there are several spellings, and how many rows are in classes of one such value."""

    def asked(template: str) -> dict[str, Any]:
        return steps.record(flow.path(template), **flow.params(template, folded=folded))

    steps = OneStatement(flow.engine)
    folded = steps.materialise("folded", flow.path("fold_values"), **flow.params("fold_values"))
    counts = asked("count_spellings")
    if not counts["spellings"]:
        return
    (alone,) = asked("count_respelt").values() if in_classes else (0,)
    said = f", and {count_phrase(alone, 'row is', 'rows are')} in classes of one of these alone" if alone else ""
    spellings, rows = f"{counts['spellings']:,} of its values", f"in {counts['rows']:,} rows"
    alike = f"are {counts['values']:,} if case, blanks and dashes are ignored"
    yield f"{spellings}, {rows}, {alike}{said}; {_SPELLINGS}"


def _part(part: int, rows: int) -> str:
    return f"{part:,} of {rows:,} rows"
