"""What cannot be judged on a published table, or on its people, and is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ldiv_db.auditing.subject import Suppressed
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.names import Relation
from ldiv_db.database.steps import Steps
from ldiv_db.requirements import Categories, Requirement
from ldiv_db.requirements.base import NOT_OF_PEOPLE


def refuse_people(requirements: Iterable[Requirement], suppressed: Suppressed, is_pair: bool = False) -> None:
    """Raise PolicyError for what has no reading where people, or rows with sets, may have several values."""
    problems = []
    if is_pair:
        problems.append(Problem("individual", "the two tables of a pair do not say together whose a row is"))
    if suppressed != "judge":
        problems.append(
            Problem("suppressed", f"{suppressed} is about rows of one value, and some have several", "judge")
        )
    for requirement in dict.fromkeys(requirements):
        if requirement.others_known:
            what = f"{requirement.label}: others_known is about rows of one value, and some have several"
            problems.append(Problem("require", what))
        elif requirement.on_people == "shares" and requirement.harmless:
            what = f"{requirement.label}: what is left without harmless values depends on who has what together"
            problems.append(Problem("require", what))
        elif requirement.on_people is None:
            problems.append(Problem("require", f"{requirement.label} {NOT_OF_PEOPLE[None]}"))
    refuse(problems)


def refuse_unknown(suppressed: Suppressed, requirements: Iterable[Requirement]) -> None:
    """Raise PolicyError for requirements that say nothing where sensitive values are unknown, or rows ignored."""
    problems = []
    if suppressed == "unknown":
        problems = [
            Problem("suppressed", f"unknown values leave open whether {requirement.label} holds")
            for requirement in requirements
            if not requirement.shares_only
        ]
    elif suppressed == "ignore":
        problems = [
            Problem("suppressed", f"{requirement.label} counts all rows, and ignore leaves some out", "judge")
            for requirement in requirements
            if requirement.counts_unjudged_rows
        ]
    refuse(problems)


def refuse_unlisted(steps: Steps, sensitive: str, requirements: Sequence[Requirement], values: Relation) -> None:
    """Raise PolicyError if one of `values` (value, ...), NULL aside, belongs to no category that a requirement uses."""
    for categories in {r.listed for r in requirements if r.listed is not None}:
        require_listed(steps, sensitive, categories, values)


def require_listed(steps: Steps, sensitive: str, categories: Categories, values: Relation) -> None:
    """Raise PolicyError if one of `values` (value, ...), NULL aside, belongs to none of the categories."""
    members = steps.load("members", {"value": "VARCHAR", "category": "INTEGER"}, categories.members())

    def unlisted(found: str) -> Problem:
        what = f"list {sum(categories.sizes):,} values, and not {found} of those in the table"
        return Problem(f"sensitive.{sensitive}.categories", what)

    steps.refuse_any(unlisted, "requirements/count_unlisted", totals=values, members=members)
    steps.drop(members)
