"""What a policy may not say beside `same`: what compares values as they are written."""

from __future__ import annotations

from ldiv_db.database.errors import Problem
from ldiv_db.policy.document import Policy


def same_problems(policy: Policy) -> list[Problem]:
    """What is at odds with sensitive columns whose texts are one after some steps, if there are any."""
    why = (
        "a transparent release: how a row is written distinguishes it from others of its value"
        if policy.transparent
        else "releases over time, which are compared by what they write"
        if policy.is_series
        else ""
    )
    columns = [name for name, setting in policy.sensitive.items() if setting.same] if why else []
    return [Problem(f"sensitive.{name}.same", f"does not go with {why}", "leave it out") for name in columns]
