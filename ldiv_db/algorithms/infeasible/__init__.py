"""Why a policy cannot be met, in words: what the data are too poor for, with the nearest that they allow."""

from ldiv_db.algorithms.infeasible.frequent import HINT, MOST_VALUES, blame_values, frequent_values
from ldiv_db.algorithms.infeasible.numbers import no_class, no_cut, none_found, too_few_values, too_frequent
from ldiv_db.algorithms.infeasible.reasons import (
    NOTHING_MEETS,
    Failure,
    cannot_promise,
    explain,
    explained,
    fails_for_those_who_know,
    failures,
    met_by_table,
)

__all__ = [
    "HINT",
    "MOST_VALUES",
    "NOTHING_MEETS",
    "Failure",
    "blame_values",
    "cannot_promise",
    "explain",
    "explained",
    "fails_for_those_who_know",
    "failures",
    "frequent_values",
    "met_by_table",
    "no_class",
    "no_cut",
    "none_found",
    "too_few_values",
    "too_frequent",
]
