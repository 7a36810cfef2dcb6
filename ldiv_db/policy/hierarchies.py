"""How the values of a quasi-identifier generalise, as its policy says, and what of that is known without the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, count_phrase
from ldiv_db.policy.document import QuasiIdentifier
from ldiv_db.policy.parts import TaxonomySpec
from ldiv_db.policy.problems import Problems
from ldiv_db.taxonomies import readers
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.readers import Level
from ldiv_db.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True)
class Hierarchy:
    """By a taxonomy, by levels made of the values themselves (called `origin`), by nested ranges, or as plain numbers.

    Nested ranges have `widths` and begin at `start` plus multiples of them; plain numbers have none of all these.
    """

    taxonomy: Taxonomy | None = None
    levels: tuple[Level, ...] = ()
    #: The most characters of values, if levels are prefixes of them.
    prefix: int | None = None
    origin: str = ""
    widths: tuple[float, ...] | None = None
    start: float = 0

    @property
    def is_plain(self) -> bool:
        """Whether values are numbers of which every range can be published."""
        return self.taxonomy is None and not self.levels and self.widths is None

    @property
    def by_range(self) -> bool:
        """Whether labels are ranges of numbers or times."""
        return not self.levels and (self.taxonomy is None or self.taxonomy.by_range)

    @property
    def is_flat(self) -> bool:
        """Whether its only level is that of the values as they are."""
        return bool(self.levels) and self.prefix is None and not self.of_times

    @property
    def of_times(self) -> bool:
        """Whether its levels are stretches of time."""
        return any(level.unit for level in self.levels)


def read_hierarchy(engine: Engine, qi: QuasiIdentifier, folder: Path) -> Hierarchy:
    """The hierarchy of a quasi-identifier; raises PolicyError for a taxonomy that is not to be had."""
    if qi.numeric:
        return Hierarchy()
    spec = qi.taxonomy or TaxonomySpec()
    if taxonomy := read_named_taxonomy(engine, spec, folder):
        return Hierarchy(taxonomy)
    if spec.prefix:
        levels = tuple(readers.prefix_levels(spec.prefix))
        return Hierarchy(levels=levels, prefix=spec.prefix[0], origin=f"of prefixes {spec.prefix}")
    if spec.dates:
        return Hierarchy(levels=tuple(readers.date_levels(spec.dates)), origin=f"of {', '.join(spec.dates)}")
    if spec.flat:
        return Hierarchy(levels=tuple(readers.value_levels()), origin="of the values")
    return Hierarchy(widths=tuple(spec.ranges or ()), start=spec.origin)


def read_named_taxonomy(engine: Engine, spec: TaxonomySpec | None, folder: Path) -> Taxonomy | None:
    """The taxonomy in a file or in the catalog; None if the policy describes it otherwise."""
    if spec is None or (spec.file is None and spec.name is None):
        return None
    if spec.file is not None:
        found = readers.read_taxonomy(folder / spec.file, spec.tree)
    else:
        found = taxonomies.require(engine, spec.name or "")
    if spec.skip > found.skippable:
        what = f"the taxonomy has {count_phrase(found.skippable, 'level', 'levels')} between its values and its root"
        raise PolicyError([Problem("taxonomy.skip", what)])
    return found.skipping(spec.skip) if spec.skip else found


def read_hierarchies(
    engine: Engine, quasi_identifiers: Mapping[str, QuasiIdentifier], folder: Path
) -> dict[str, Hierarchy]:
    """The hierarchies of all quasi-identifiers; raises PolicyError with all problems with them."""
    problems = Problems()
    found = collect_hierarchies(engine, quasi_identifiers, folder, problems)
    problems.refuse()
    return found


def collect_hierarchies(
    engine: Engine, quasi_identifiers: Mapping[str, QuasiIdentifier], folder: Path, problems: Problems
) -> dict[str, Hierarchy]:
    """The hierarchies that are to be had; what is wrong with the others is added to `problems`."""
    found = {}
    for name, qi in quasi_identifiers.items():
        with problems.collected(f"quasi_identifiers.{name}"):
            found[name] = read_hierarchy(engine, qi, folder)
    return found
