"""HIPAA's Safe Harbor (45 CFR 164.514(b)(2)) for columns of a profile: how their values may be published at most.

Dates are years, those of who is over 89 one value; ages over 89 are one; areas smaller than a state are left out, but
for three digits of a ZIP code whose area has more than 20,000 people. Columns are told by their types and names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ldiv_db.database.catalog import Column
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.measuring.uniqueness import Summary
from ldiv_db.taxonomies.making import OLD

#: What stands over a policy.
HEADING = (
    "By HIPAA's Safe Harbor (45 CFR 164.514(b)(2)): three digits of ZIP codes, years, ages up to 89, no areas.",
    "Columns were recognised by name and type: look for other identifiers of the 18 kinds, also inside texts.",
    "You must also have no actual knowledge that somebody can be identified by what is left.",
)  # fmt: skip
_AGE = re.compile(r"(^|_)ages?($|_)")
_BIRTH = re.compile(r"birth|born|(^|_)(dob|yob)($|_)")
_AREA = re.compile(
    r"(^|_)(address|street|road|city|town|village|place|county|district|municipality|parish|precinct|borough|"
    r"neighbou?rhood|census|tract|block|location|lat|latitude|lon|lng|long|longitude|gps|coordinates?|geo[a-z]*)($|_)"
)


def _name(column: Column) -> str:
    """The column's name in small letters, its words apart."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", column.name)
    return re.sub(r"[^a-z]+", "_", apart.lower())


def why_unfit(summary: Summary) -> str:
    """Why a column, which is none of ZIP codes, may not be published in a form that is known here; empty if it may."""
    column = summary.column
    if _AREA.search(_name(column)):
        return "by its name an area smaller than a state, which Safe Harbor removes"
    if _BIRTH.search(_name(column)) and not column.is_time:
        return "by its name a date of birth: convert it to a date in a view"
    if _AGE.search(_name(column)) and not column.is_integer:
        return "by its name an age: convert it to whole years in a view"
    return ""


def way_of(summary: Summary, postal: bool) -> tuple[dict[str, Any], str] | None:
    """The settings of a column and the words for them; None where Safe Harbor says nothing of it."""
    if postal:
        return {"taxonomy": "hipaa_zip"}, "ZIP codes: three digits, small areas as 000"
    if summary.column.is_time:
        before = datetime.now(UTC).year - OLD + 1  # who was born in it is 89 at most
        return {
            "taxonomy": {"dates": ["year", "decade"], "before": before}
        }, f"times: years, all before {before} as one"
    if _AGE.search(_name(summary.column)):
        return {"taxonomy": "hipaa_age"}, "ages: 90 and older as one"
    return None


def refuse_sensitive(columns: Iterable[Summary]) -> None:
    """Raise PolicyError for sensitive columns of times, which are published as they are."""
    times = [summary.column.name for summary in columns if summary.column.is_time]
    if times:
        what = f"{', '.join(times)}: a sensitive value is published as it is, and Safe Harbor allows years alone"
        raise PolicyError([Problem("sensitive", what, "take the year of it in a view")])
