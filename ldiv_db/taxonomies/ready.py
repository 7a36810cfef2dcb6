"""Taxonomies that come with the program, by name; `fixtures/taxonomies/ORIGIN.md` has their origins and licences."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.names import Value
from ldiv_db.database.templates import resource_folder
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.ranges import range_trees
from ldiv_db.taxonomies.readers import Band, Level, prefix_levels
from ldiv_db.taxonomies.taxonomy import Taxonomy, Tree, number, rooted

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
    bands = [Band.of(small, small, "000") for small in SMALL_ZIPS]
    levels = [replace(level, digits=5) for level in prefix_levels([3, 1], [bands, bands])]
    return [replace(levels[0], form=Value(_ZIP), number_form=Value(_ZIP_NUMBER)), *levels[1:]]


def _icd10cm() -> list[Level]:
    """Codes, categories, blocks and chapters."""
    rows = _rows("icd10cm.csv")
    bands = [[Band.of(row["first"], row["last"], row[above]) for row in rows] for above in ("block", "chapter")]
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
    if name not in taxonomies.stored(engine):
        if name in TREES:
            return TREES[name]()
        if name in LEVELS:
            what = f"{name} is made of the values of a quasi-identifier, and has no tree without them"
            raise PolicyError([Problem("taxonomy", what, "it takes no `skip`")])
    return taxonomies.require(engine, name, (*TREES, *LEVELS))
