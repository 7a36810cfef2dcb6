"""Taxonomies that are made: of ranges of numbers, of the beginnings of values, of stretches of time.

Some come with the program, by name; `fixtures/taxonomies/ORIGIN.md` has their origins and licences.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from functools import partial

from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step
from ldiv_db.database.errors import Problem, count_phrase, nearest, refuse, refused
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.taxonomy import ROOT_LABEL, Taxonomy, Tree, number, range_label, rooted, tree_of_paths

#: More leaves than this are no taxonomy but a mistake in its widths.
MAX_LEAVES = 1_000_000
#: Widths, and what they are reckoned with: as many digits as the widest takes in terms of the narrowest, with room.
_NARROWEST, _WIDEST, _EXACT = Decimal("1e-18"), Decimal("1e38"), Context(prec=100)


#: What stands for infinity where the first range or the last has no end: no number beyond it has a leaf.
_BEYOND = Decimal("1e37")
#: Between which numbers are told apart: all below the first are one value, and so are all from the second on.
Ends = tuple[float | None, float | None]


def from_ranges(
    widths: Sequence[float], origin: float, smallest: float, largest: float, integers: bool, ends: Ends = (None, None)
) -> Taxonomy:
    """The taxonomy of nested numeric ranges that covers `smallest..largest`.

    `widths` go from the leaves up, each a multiple of the one before; ranges start at `origin` plus
    multiples of their width, and are cut off at the `ends`. Raises PolicyError if the widths do not nest.
    """
    trees = range_trees(widths, origin, smallest, largest, integers, ends)
    return number(rooted(trees), f"ranges {', '.join(map(str, widths))}")


def range_trees(
    widths: Sequence[float], origin: float, smallest: float, largest: float, integers: bool, ends: Ends = (None, None)
) -> list[Tree]:
    """The trees of the widest ranges, as `from_ranges` puts them under one root, and those beyond the `ends`."""
    if not all(map(math.isfinite, [*widths, origin, smallest, largest, *(end or 0 for end in ends)])):
        raise refused("ranges", "takes finite numbers")
    bottom, top = read_ends(ends, integers)
    with localcontext(_EXACT):
        exact, start = [Decimal(str(width)) for width in widths], Decimal(str(origin))
        _refuse_widths(exact, start, integers)
        leaf, within = exact[0], (Decimal("-inf") if bottom is None else bottom, Decimal("inf") if top is None else top)
        least, most = max(Decimal(str(smallest)), within[0]), min(Decimal(str(largest)), within[1])
        if (most - least) / leaf > MAX_LEAVES:
            raise refused("ranges", f"{leaf} makes more than {MAX_LEAVES:,} leaves", "widen it")
        first, last = math.floor((least - start) / leaf), math.floor((most - start) / leaf)
        begins = [start + i * leaf for i in range(first, last + 1) if start + i * leaf < within[1]]
        level = [(begin, _range_tree(begin, leaf, integers, within)) for begin in begins]
        for width in exact[1:]:
            groups: dict[Decimal, Tree] = {}  # the next level up, by where its ranges begin
            for begin, tree in level:
                low = start + math.floor((begin - start) / width) * width
                groups.setdefault(low, _range_tree(low, width, integers, within)).children.append(tree)
            # One that is cut off at an end may be no wider than what it holds.
            level = [(low, t.children[0] if t.children[0].label == t.label else t) for low, t in groups.items()]
    under, over = end_labels(ends)
    below = [] if bottom is None else [Tree(under, bounds=(float(-_BEYOND), float(bottom)))]
    above = [] if top is None else [Tree(over, bounds=(float(top), float(_BEYOND)))]
    return [*below, *(tree for _, tree in level), *above]


def end_labels(ends: Ends) -> tuple[str, str]:
    """The labels of all numbers below the first of the ends, and of all from the second on."""
    bottom, top = ("" if end is None else f"{Decimal(str(end)).normalize():f}" for end in ends)
    return f"<{bottom}", f"{top}+"


def read_ends(ends: Ends, integers: bool) -> tuple[Decimal | None, Decimal | None]:
    """The ends as they are written; raises PolicyError if they do not fit the numbers, or each other."""
    bottom, top = (None if end is None else Decimal(str(end)) for end in ends)
    named = {"bottom": bottom, "top": top}
    given = {name: end for name, end in named.items() if end is not None}
    problems = [
        Problem(name, f"is a number of at most {_WIDEST / 100:e}, and whole where the column is")
        for name, end in given.items()
        if not end.is_finite() or abs(end) > _WIDEST / 100 or (integers and _EXACT.remainder(end, Decimal(1)))
    ]
    if bottom is not None and top is not None and bottom >= top:
        problems.append(Problem("top", "lies above `bottom`"))
    refuse(problems)
    return bottom, top


def _refuse_widths(widths: Sequence[Decimal], origin: Decimal, integers: bool) -> None:
    """Raise PolicyError unless the widths nest, and are not beyond what can be reckoned with exactly."""
    if not widths or not all(_NARROWEST <= width <= _WIDEST for width in widths) or abs(origin) > _WIDEST:
        what = f"takes rising widths above 0, from {_NARROWEST:e} to {_WIDEST:e}, and an origin up to that"
        raise refused("ranges", what)
    problems = [
        Problem("ranges", f"{wide} is not a multiple of {narrow}")
        for narrow, wide in itertools.pairwise(widths)
        if wide % narrow
    ]
    if sorted(set(widths)) != list(widths):
        problems.append(Problem("ranges", "takes rising widths above 0"))
    if integers and any(width % 1 for width in widths):
        problems.append(Problem("ranges", "whole numbers take whole widths"))
    refuse(problems)


def _range_tree(low: Decimal, width: Decimal, integers: bool, within: tuple[Decimal, Decimal]) -> Tree:
    begin, end = max(low, within[0]), min(low + width, within[1])
    if not integers:
        label = range_label(f"{begin.normalize():f}", f"{end.normalize():f}", ")")
    else:
        label = str(int(begin)) if end - begin == 1 else range_label(int(begin), int(end - 1))
    return Tree(label, bounds=(float(begin), float(end)))


# -- of the values -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """The values that begin with a text from `first` to `last`, which are as long, and their label."""

    first: Value
    last: Value
    label: Value


@dataclass(frozen=True)
class Level:
    """One level of a taxonomy made of the values themselves: the first `prefix` characters, or a stretch of time.

    With neither it is that of the values as they are. Values in one of the `bands` have the label of the first of them.
    Texts are those after the steps of `same`; whole numbers of fewer than so many `digits` get zeros in front.

    A value has a leaf if it is of the `form` of the first level, one of a column of numbers of `number_form`, and in a
    band of each level that is `closed`.
    """

    label: Identifier
    prefix: int | None = None
    unit: str | None = None
    bands: tuple[Band, ...] = ()
    same: tuple[Step, ...] = ()
    digits: int | None = None
    form: Value | None = None
    number_form: Value | None = None
    closed: bool = False


#: The stretches of time that values can be grouped by, from short to long: months lie in years, weeks in those of
#: ISO 8601, which begin with the week of their first Thursday.
UNITS = ("day", "month", "quarter", "year", "decade")
ISO_UNITS = ("day", "week", "iso_year", "decade")


def prefix_levels(lengths: Sequence[int], bands: Sequence[Sequence[Band]] = ()) -> list[Level]:
    """The levels of prefixes of falling length, leaves first; `bands` are those of the last of them, in their order."""
    listed = [*[()] * (len(lengths) - len(bands)), *map(tuple, bands)]
    return [
        Level(Identifier(f"level_{i}"), prefix=length, bands=own)
        for i, (length, own) in enumerate(zip(lengths, listed, strict=True), 1)
    ]


def date_levels(units: Sequence[str], before: int | None = None) -> list[Level]:
    """The levels of stretches of time, short ones first; years `before` one are a single value.

    Above weeks and years of ISO 8601 a decade is one of such years.
    """
    if set(ISO_UNITS[1:3]) & set(units):
        units = ["iso_decade" if unit == "decade" else unit for unit in units]
    bands = () if before is None else (Band(Value("0001"), Value(f"{before - 1:04}"), Value(f"before {before}")),)
    return [Level(Identifier(f"level_{i}"), unit=unit, bands=bands) for i, unit in enumerate(units, 1)]


def from_values(engine: Engine, rows: Table, column: Identifier, levels: Sequence[Level], origin: str) -> Taxonomy:
    """The taxonomy that `levels` make of a column's distinct values.

    Values that these have no leaf for are left out. Raises PolicyError if one is written like the root, which stands
    for all of them.
    """
    paths = engine.rows("taxonomies/list_paths", rows=rows, column=column, levels=levels)
    if any(path[0] == ROOT_LABEL for path in paths):
        raise refused(f"taxonomy {origin}", f"{ROOT_LABEL} is a value, and stands for all of them")
    tree = tree_of_paths([label for label, _ in itertools.groupby(path)][::-1] for path in paths)
    return number(tree if tree.label == ROOT_LABEL else Tree(ROOT_LABEL, [tree]), origin)


def warn_of_lengths(engine: Engine, name: str, counted: Relation, shortest: int = 1) -> str:
    """That codes of digits have several lengths, so that one beginning stands for several things; empty if they do not.

    `counted` is (value, rows) of the column of that name, `shortest` the length of the shortest prefix.
    """
    found = engine.rows("taxonomies/list_lengths", counted=counted)
    if len(found) < 2 or found[-1][0] <= shortest:
        return ""
    counts = [(count_phrase(values, "value", "values"), rows, digits) for digits, values, rows in found]
    listed = ", ".join(f"{values} (rows: {rows:,}) of {digits}" for values, rows, digits in counts)
    quoted = Identifier(name).sql()
    return (
        f"codes of several lengths, {listed} digits: in front of short ones zeros may be lost, so that they begin like"
        f" others; lpad(CAST({quoted} AS VARCHAR), {found[-1][0]}, '0') in a view or in `source: {{query: …}}` restores"
        " them"
    )


# -- of the program ------------------------------------------------------------------------------------

#: The three digits of US ZIP codes whose areas had 20,000 people or fewer in the census of 2000.
SMALL_ZIPS = (
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878", "879", "884", "890",
    "893",
)  # fmt: skip
#: Ages from here on are one value under HIPAA's Safe Harbor, and no age is so high.
OLD, _ENDLESS = 90, 1_000
#: The most characters of a code of ICD-10-CM, with its dot; those of its category.
LONGEST, _CATEGORY = 8, 3


#: ZIP codes as text, perhaps with four digits more; and as numbers, the smallest 501. Three digits as text may be a
#: code that lost two zeros as well as the first digits of one.
_ZIP, _ZIP_NUMBER = "[0-9]{4}|[0-9]{5}(-?[0-9]{4})?", "(50[1-9]|5[1-9][0-9]|[6-9][0-9]{2}|[0-9]{4,5})([.]0*)?"
#: Codes of ICD-10-CM, in capitals.
ICD10CM = r"[A-Z][0-9][0-9AB](\.?[0-9A-Z]{1,4})?"


def _hipaa_zip() -> list[Level]:
    """Three digits and one, of five."""
    bands = [Band(Value(small), Value(small), Value("000")) for small in SMALL_ZIPS]
    levels = [replace(level, digits=5) for level in prefix_levels([3, 1], [bands, bands])]
    return [replace(levels[0], form=Value(_ZIP), number_form=Value(_ZIP_NUMBER)), *levels[1:]]


def _icd10cm() -> list[Level]:
    """Codes, categories, blocks and chapters."""
    rows = _rows("icd10cm.csv")
    bands = [
        [Band(*(Value(row[key]) for key in ("first", "last", above))) for row in rows] for above in ("block", "chapter")
    ]
    codes, *above = prefix_levels([LONGEST, *[_CATEGORY] * 3], bands)
    return [replace(codes, form=Value(ICD10CM)), *above[:-1], replace(above[-1], closed=True)]


def _hipaa_age() -> Taxonomy:
    """Ages by year, 5, 10 and 30 years, and `90+`."""
    old = Tree(f"{OLD}+", bounds=(OLD, _ENDLESS))
    return number(rooted([*range_trees((1, 5, 10, 30), 0, 0, OLD - 1, True), old]), "hipaa_age")


def _countries(key: str) -> Taxonomy:
    """Countries by their `key`, the UN's subregions and regions; one without a region is under the root."""
    regions: dict[str, dict[str, list[Tree]]] = {}
    for row in _rows("countries.csv"):
        regions.setdefault(row["region"], {}).setdefault(row["subregion"], []).append(Tree(row[key]))
    alone = [tree for trees in regions.pop("", {}).values() for tree in trees]
    above = [Tree(name, [Tree(part, trees) for part, trees in parts.items()]) for name, parts in regions.items()]
    return number(rooted([*above, *alone]), f"country_{key}")


def _rows(file: str) -> list[dict[str, str]]:
    path = resource_folder("fixtures") / "taxonomies" / file
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter=";"))


#: Taxonomies whose levels are made of the values: ZIP codes, and codes of diagnoses.
LEVELS: dict[str, Callable[[], list[Level]]] = {"hipaa_zip": _hipaa_zip, "icd10cm": _icd10cm}
#: What values are that such a taxonomy has a leaf for, and how others become such.
FORMS = {
    "hipaa_zip": "codes are 02134 or 02134-1234, and 2134 is taken for 02134; three digits are the end of one,"
    " lpad(…, 5, '0'), or the beginning, rpad(…, 5, '0')",
    "icd10cm": "codes are E11.9 or E119, in capitals and without blanks, of a category of ICD-10-CM",
}
#: Taxonomies whose values are known beforehand.
TREES: dict[str, Callable[[], Taxonomy]] = {
    "hipaa_age": _hipaa_age,
    **{f"country_{key}": partial(_countries, key) for key in ("name", "alpha2", "alpha3")},
}


def require(engine: Engine, name: str) -> Taxonomy:
    """The taxonomy of that name in the catalog, or else of the program; raises PolicyError if there is none."""
    if found := taxonomies.fetch(engine, name) or (TREES[name]() if name in TREES else None):
        return found
    if name in LEVELS:
        what = f"{name} is made of the values of a quasi-identifier, and has no tree without them"
        raise refused("taxonomy", what, "it takes no `skip`")
    hint = nearest(name, [*taxonomies.stored(engine), *TREES, *LEVELS])
    raise refused("taxonomy", f"the catalog has no taxonomy {name!r}", hint)
