"""A variant rehearsed: all that a run does, audit included, with a TEMP table in place of the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ldiv_db.attacking.attacks import Attacks, attack_table
from ldiv_db.attacking.disclosure import Attack
from ldiv_db.attacking.question import Attackers, Columns
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, DatabaseError, InfeasibleError, LdivError, PolicyError
from ldiv_db.database.templates import Relation
from ldiv_db.running.exploring.jobs import Job
from ldiv_db.running.exploring.outcomes import Outcome, Risk, Status
from ldiv_db.running.preparation import Listener, check_ready, make_ready
from ldiv_db.running.run import Beside, rehearsed, working_engine

#: What the errors of a rehearsal are called.
_STATUS: Mapping[type[LdivError], Status] = {
    InfeasibleError: "infeasible",
    PolicyError: "refused",
    AuditError: "failed",
    DatabaseError: "error",
}

#: How a line begins that says how to have values named.
_HINT = "--show-values"


def rehearse(job: Job, connection: Any, listener: Listener) -> Outcome:
    """What comes of the variant on that connection, of which nothing is left; errors are outcomes."""
    if job.refused:
        return Outcome(job.variant, "refused", job.refused)
    beside = partial(working_engine, connection, listener)
    try:
        with beside() as engine:
            return _rehearsed(job, engine, beside)
    except LdivError as error:
        found = [word for kind, word in _STATUS.items() if isinstance(error, kind)]
        status: Status = found[0] if found else "error"
        return Outcome(job.variant, status, _shortly(error, status))


def _shortly(error: LdivError, status: Status) -> str:
    """The error's message; of the database's its first line, without the statement.

    It is for a page, so no value is named, and no hint says how.
    """
    lines = error.message.splitlines()
    return lines[0] if status == "error" else "\n".join(line for line in lines if not line.startswith(_HINT))


def _rehearsed(job: Job, engine: Engine, beside: Beside) -> Outcome:
    resolved, algorithm, coding = job.resolved, job.algorithm, job.coding
    assert resolved and algorithm and coding  # noqa: S101 - it was not refused
    encoded = replace(coding, engine=engine).encode(coding.snapshot)
    ready, _, _ = make_ready(resolved, algorithm, encoded, engine, Listener())
    check_ready(ready)
    found = rehearsed(ready, beside)
    name = found.plan.algorithm or ready.algorithm.name
    risk = _risk(_attacked(job, engine, found.release))
    return Outcome(job.variant, "done", algorithm=name, l=found.plan.l, loss=found.loss, risk=risk)


def _attacked(job: Job, engine: Engine, release: Relation) -> Attacks:
    """What attackers gain from the table who know the policy alone."""
    policy, resolved = job.variant.policy, job.resolved
    assert resolved  # noqa: S101 - it was rehearsed
    released = resolved.released
    columns = Columns(released.identifying, released.class_ids, policy.sensitive, folder=resolved.folder)
    return attack_table(engine, release, columns, policy.require, Attackers())


def _risk(attacks: Attacks) -> Risk:
    """The risks among the attacks, of several sensitive attributes the largest."""
    by_name: dict[str, list[Attack]] = {}
    for attack in attacks.attacks:
        by_name.setdefault(attack.name, []).append(attack)
    return Risk(
        # Where some values are harmless the last gain is that of the others.
        posterior=_most(attack.gains[-1].gain for attack in by_name.get("posterior", ())),
        posterior_mean=_most(attack.figures["mean"] for attack in by_name.get("posterior", ())),
        prosecutor=_most(attack.gains[0].gain for attack in by_name["prosecutor"]),
        prosecutor_mean=_most(attack.figures["mean"] for attack in by_name["prosecutor"]),
    )


def _most(found: Any) -> float | None:
    return max((number for number in found if number is not None), default=None)
