"""Rows that have waited too long join a group made in the same release that lacks their primary value.

They never join a group of an earlier release: the values that the group gets would be theirs. A group takes a row only
if it reaches every l with it, perhaps by noise; a row tries the groups by its diversity penalty.
"""

from __future__ import annotations

from ldiv_db.algorithms.decomposition.grouping import Grouping, with_counts
from ldiv_db.algorithms.decomposition.noise import list_refused
from ldiv_db.database.templates import Relation, Value

#: How many groups a row tries at most.
ATTEMPTS = 100


def place_starved(task: Grouping, members: Relation, threshold: int) -> tuple[Relation, int]:
    """The members with rows placed that have waited longer than the threshold, and how many were."""
    engine = task.engine
    openings = _openings(task, members, threshold)
    placed = 0
    for _ in range(ATTEMPTS):
        if not engine.count(openings):
            break
        chosen = engine.materialise("chosen", "decomposition/choose_openings", openings=openings)
        accepted = _accepted(task, members, chosen)
        placed += engine.count(accepted)
        joined = engine.materialise(
            "members", "decomposition/join_rows", members=members, accepted=accepted, secrets=task.secrets
        )
        still_open = engine.materialise(
            "openings", "decomposition/keep_openings", openings=openings, chosen=chosen, accepted=accepted
        )
        engine.drop(members, openings, chosen, accepted)  # all the rows, once an attempt
        members, openings = joined, still_open
    engine.drop(openings)
    return members, placed


def _openings(task: Grouping, members: Relation, threshold: int) -> Relation:
    with task.engine.scope() as scope:
        openings = task.engine.materialise(
            "openings",
            "decomposition/list_openings",
            members=members,
            primary=task.primary,
            attributes=with_counts(task, members).others,
            starvation=Value(threshold),
        )
        return scope.keep(openings)


def _accepted(task: Grouping, members: Relation, chosen: Relation) -> Relation:
    """The chosen rows whose groups reach every l with them."""
    engine = task.engine
    with engine.scope() as scope:
        trial = engine.materialise(
            "trial", "decomposition/list_trial", members=members, chosen=chosen, secrets=task.secrets
        )
        refused = list_refused(task, trial)
        return scope.keep(engine.materialise("accepted", "decomposition/keep_accepted", chosen=chosen, refused=refused))
