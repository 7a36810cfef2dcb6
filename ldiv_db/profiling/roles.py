"""What a column is taken for where nobody has said so: an identifier or a quasi-identifier, and why."""

from __future__ import annotations

import re

from ldiv_db.policy.people_columns import FEW_VALUES, NEARLY_UNIQUE, tells_somebody
from ldiv_db.profiling.people import OFTEN_UNIQUE, may_name, names_people
from ldiv_db.profiling.summary import Summary

IDENTIFIER, QUASI_IDENTIFIER, SENSITIVE = "identifier", "quasi-identifier", "sensitive"
#: What columns are called that number rows.
_NUMBERING = re.compile(r"(?i:(^|_)(id|uuid|guid)$|[a-z]_?key$)|[a-z]I[dD]$")


def why_by_values(summary: Summary) -> str:
    """Why a column is taken for an identifier by its values and how they are spread; empty if it is not."""
    if summary.is_measure:
        return ""  # a birthday or a cost is one of many things that are known of somebody
    if summary.distinct > NEARLY_UNIQUE * summary.rows:
        return "nearly every row has its own value"
    if summary.texts is None:
        return ""
    if summary.distinct > max(FEW_VALUES, OFTEN_UNIQUE * summary.rows):
        return "different values in more than half the rows"
    return "its values are addresses or numbers of people" if summary.texts.addressed * 2 > summary.distinct else ""


def why_by_name(summary: Summary) -> str:
    """Why a column is taken for an identifier by its name; empty if it is not."""
    name = summary.column.name
    if names_people(summary):
        return "its name says whose a row is"
    if summary.texts is not None and may_name(summary) and tells_somebody(name):
        return "its name says who somebody is"
    return "its name: a key" if _NUMBERING.search(name) and summary.has_few_rows and not summary.is_measure else ""
