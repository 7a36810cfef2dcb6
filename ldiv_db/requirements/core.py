"""Which rows to suppress. The l-eligible core: the fewest whose suppression brings every share under its threshold.

For counts `n_i` and thresholds `theta_i` the greatest fixpoint of `n' <- sum_i min(n_i, floor(theta_i n'))` is what
can be kept. Each step also solves the equation for the values that are clipped, as if fractions of rows could be
kept: no fixpoint lies above that, so a few steps do where plain iteration would take thousands.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value
from ldiv_db.requirements.histogram import Classes
from ldiv_db.requirements.named import Named


def mend_by_core(
    engine: Engine,
    classes: Classes,
    measures: Relation,
    numerator: int,
    denominator: int,
    own: Sequence[tuple[Named, int]] = (),
    least: int = 0,
) -> Relation:
    """(class_no, suppress) of each violating class; `theta = numerator / denominator`, `own` has other numerators.

    A core of fewer than `least` rows is not kept: the whole class is suppressed.
    """
    numerators = engine.load("numerators", {"value": "VARCHAR", "numerator": "BIGINT"}, own)
    kept = engine.materialise("kept", "requirements/start_core", measures=measures)
    while True:
        shrunk = engine.materialise(
            "kept",
            "requirements/shrink_core",
            kept=kept,
            histogram=classes.histogram,
            numerators=numerators,
            numerator=Value(numerator),
            denominator=Value(denominator),
        )
        changed = engine.scalar("requirements/count_shrunk", kept=kept, shrunk=shrunk)
        engine.drop(kept)
        kept = shrunk
        if not changed:
            break
    mended = engine.materialise("mended", "requirements/mend_core", measures=measures, kept=kept, least=Value(least))
    engine.drop(kept, numerators)
    return mended


def mend_if_few(engine: Engine, classes: Classes, measures: Relation, least: int) -> Relation:
    """All rows of the classes of fewer than `least` values, which nothing else mends; NULL for the others."""
    holes = {"measures": measures, "summary": classes.summary, "least": Value(least)}
    return engine.materialise("mended", "requirements/mend_if_few", **holes)
