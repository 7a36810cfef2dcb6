"""Taxonomies that come with the program, by name; `fixtures/taxonomies/ORIGIN.md` has their origins and licences."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
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


def _hipaa_zip() -> list[Level]:
    bands = [Band.of(small, small, "000") for small in SMALL_ZIPS]
    return prefix_levels([3, 1], [bands, bands])


def _icd10cm() -> list[Level]:
    """Codes, categories, blocks and chapters."""
    rows = _rows("icd10cm.csv")
    bands = [[Band.of(row["first"], row["last"], row[above]) for row in rows] for above in ("block", "chapter")]
    return prefix_levels([LONGEST, *[_CATEGORY] * 3], bands)


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
