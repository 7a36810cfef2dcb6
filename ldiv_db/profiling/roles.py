"""What a column is taken for where nobody has said so: an identifier or a quasi-identifier, and why."""

from __future__ import annotations

import re

from ldiv_db.profiling.keys import CATEGORY_ROWS
from ldiv_db.profiling.summary import Summary
from ldiv_db.profiling.ways import FEW_VALUES

IDENTIFIER, QUASI_IDENTIFIER, SENSITIVE = "identifier", "quasi-identifier", "sensitive"
#: A column that has more different values than this share of the rows is taken for an identifier,
NEARLY_UNIQUE = 0.95
#: and so is one of texts or fractions with more than this share of them, and more than a few.
OFTEN_UNIQUE = 0.5
#: What columns are called that tell who somebody is, and those that number rows or people.
_PERSONAL = re.compile(
    r"(^|_)(ssn|e_?mail|phone|telephone|mobile|passport|iban|(first|last|full|sur|given|family)_?name)($|_)|^name$",
    re.IGNORECASE,
)
_NUMBERING = re.compile(r"(?i:(^|_)(id|uuid|guid)$|[a-z]_?key$)|[a-z]I[dD]$")


def why_by_values(summary: Summary) -> str:
    """Why a column is taken for an identifier by how its values are spread; empty if it is not."""
    if summary.column.is_time:
        return ""  # a birthday or a moment is one of many things that are known of somebody
    if summary.distinct > NEARLY_UNIQUE * summary.rows:
        return "nearly every row has its own value"
    loose = summary.texts is not None or summary.column.is_fractional
    if loose and summary.distinct > max(FEW_VALUES, OFTEN_UNIQUE * summary.rows):
        return "different values in more than half the rows"
    return ""


def why_by_name(summary: Summary) -> str:
    """Why a column is taken for an identifier by its name; empty if it is not."""
    name = summary.column.name
    if summary.texts is not None and _PERSONAL.search(name):
        return "its name says who somebody is"
    numbers = summary.distinct > FEW_VALUES and summary.rows < CATEGORY_ROWS * summary.distinct
    if _NUMBERING.search(name) and numbers and not (summary.column.is_fractional or summary.column.is_time):
        return "its name: a key"
    return ""
