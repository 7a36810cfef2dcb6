"""The entropy of the sensitive values of a class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.steps import Steps
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.counts import CountRequirement
from ldiv_db.requirements.distribution import Ceiling, Distribution, eligible_ceiling
from ldiv_db.requirements.guarantees import Guarantee
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.parameters import at_least_one, rounded

#: Entropies (natural logarithms) this close to `ln l` count as reaching it, so that l equal shares do.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class EntropyL(CountRequirement):
    """Entropy l-diversity: `-sum p ln p >= ln l` over the sensitive values (Machanavajjhala et al. 2006).

    Entropies within `TOLERANCE` below `ln l` reach it. What a class reaches is given as `exp(entropy)`,
    the number of equally frequent values that would be as diverse.
    """

    name = "entropy"
    reaches = "exp of entropy"
    of_tallies = False
    fields = {"l": at_least_one}  # noqa: RUF012
    l: Decimal  # noqa: E741

    def holes(self, steps: Steps) -> dict[str, Any]:
        return {"l": Value(float(self.l)), "tolerance": Value(TOLERANCE)}

    def mend(self, engine: Engine, classes: Classes, measures: Relation) -> Relation:
        holes = self.holes(engine)
        layers = engine.materialise("layers", "requirements/list_layers", measures=measures, sizes=classes.sizes)
        levellings = engine.materialise("levellings", "requirements/list_levellings", layers=layers, **holes)
        mended = engine.materialise(
            "mended", "requirements/mend_entropy", measures=measures, levellings=levellings, **holes
        )
        engine.drop(layers, levellings)
        return mended

    def promise(self) -> Guarantee:
        """An entropy of ln l takes l values; one within the tolerance below it counts as reaching it."""
        return Guarantee(values=math.ceil(float(self.l) * math.exp(-TOLERANCE)))

    def ceiling(self, distribution: Distribution) -> Ceiling | None:
        """An entropy below ln l takes a value in more than 1/l of the rows, but not the other way round."""
        reached = distribution.entropy >= math.log(self.l) - TOLERANCE
        return None if reached else eligible_ceiling(Fraction(self.l), distribution)

    @property
    def least_rows(self) -> int:
        return math.ceil(self.l)

    def weaker_whole(self, reached: float | None, distribution: Distribution) -> Mapping[str, Any]:
        return {"l": Decimal(rounded((reached or 1) * (1 + TOLERANCE), 3))}

    def weaker_at(self, size: int) -> Mapping[str, Any]:
        return {"l": size}
