"""Several tables without links: each planned and published as a release of its own, all in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ldiv_db.auditing.audit import Audit
from ldiv_db.database.context import Context, hearing_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, refuse, refused
from ldiv_db.database.stages import work_of
from ldiv_db.display import Shown
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.published import open_each
from ldiv_db.policy.rules import problems_of
from ldiv_db.policy.schema import members_of
from ldiv_db.policy.tables import named_in
from ldiv_db.publishing.destinations import destination_of
from ldiv_db.publishing.fingerprints import versions
from ldiv_db.publishing.in_database import InDatabase
from ldiv_db.publishing.result import Earlier, Result
from ldiv_db.recoding.loss import TableLoss, loss_of_tables
from ldiv_db.running.estimate import unplanned
from ldiv_db.running.preparation import Preparation
from ldiv_db.running.preview import describe_plan

Made = TypeVar("Made")


@dataclass(frozen=True, repr=False)
class PlansApart(Shown):
    """The plan of each table of a policy that publishes several without links."""

    policy: Policy
    plans: Mapping[str, Preparation]

    @property
    def notes(self) -> list[str]:
        """All that the plans say, each with its table."""
        return [f"{name}: {note}" for name, plan in self.plans.items() for note in plan.notes]

    def as_dict(self) -> dict[str, Any]:
        """The plans as JSON has them: under `tables` that of each."""
        tables = [{"table": name, **describe_plan(plan)} for name, plan in self.plans.items()]
        return {"source": self.policy.reads, "target": self.policy.places, "tables": tables, "notes": self.notes}


def plan_apart(
    engine: Engine, context: Context, policy: Policy, plan: Callable[[Context, Policy], Preparation]
) -> PlansApart:
    """The plan of each table by its own policy; raises PolicyError and InfeasibleError with the table's name."""
    _require_one_place(engine, policy, context.folder)
    return PlansApart(policy, _each(engine, context, policy, plan))


def publish_apart(
    engine: Engine, context: Context, policy: Policy, publish: Callable[[Context, Policy], Result]
) -> Result:
    """The results of all tables as one; nothing is published if one of them cannot be."""
    place = _require_one_place(engine, policy, context.folder).place
    with engine.transaction():
        results = _each(engine, context, policy, publish)
    first, every = next(iter(results.values())), list(results.values())
    notes, made = list[str](), {one.run_id for one in every}
    again = [one.earlier.unchanged or "" for one in every]
    for name, result in results.items():
        earlier = replace(result.earlier, run_id=None) if result.earlier.run_id in made else result.earlier
        told = [] if all(again) else earlier.told(result.run_id)
        proved = result.bound.said(result.comparable_loss) if result.bound else []
        notes += [f"{name}: {note}" for note in (*told, *result.notes, *proved)]
    losses = [_loss(name, result, policy) for name, result in results.items()]
    loss = loss_of_tables(losses, [size for one in every for size in (one.loss.smallest_class, one.loss.largest_class)])
    return Result(
        run_id=", ".join(one.run_id for one in every),
        algorithm=", ".join(dict.fromkeys(one.algorithm for one in every)),
        source=policy.reads,
        target=policy.places,
        l=first.l if all(one.l == first.l for one in every) else None,
        loss=replace(
            loss,
            classes=sum(one.loss.classes for one in every),
            classes_made=sum(one.loss.classes_made or 0 for one in every),
            cells_suppressed=sum(one.loss.cells_suppressed for one in every),
        ),
        search={name: result.search for name, result in results.items()},
        seed=policy.seed,
        versions=versions(),
        audits=list(audits_apart({name: result.audits for name, result in results.items()})),
        seconds=every[-1].seconds,
        notes=tuple(notes),
        similarity=[replace(s, sensitive=named_in(n, s.sensitive)) for n, r in results.items() for s in r.similarity],
        inferred=[found for one in every for found in one.inferred],
        earlier=Earlier(", ".join(again), policy.seed) if all(again) else Earlier(),
        place=place,
        tables=losses,
    )


def audits_apart(each: Mapping[str, Sequence[Audit]]) -> Iterator[Audit]:
    """The audits of all tables; one of the rows of a table alone is about the table."""
    for name, audit in ((name, audit) for name, audits in each.items() for audit in audits):
        about = named_in(name, audit.sensitive) if audit.sensitive else name
        yield replace(audit, sensitive=about, warnings=tuple(f"{name}: {warning}" for warning in audit.warnings))


def _loss(name: str, result: Result, policy: Policy) -> TableLoss:
    return TableLoss(name, result.loss, sum(qi.weight for qi in policy.tables[name].quasi_identifiers.values()))


def _require_one_place(engine: Engine, policy: Policy, folder: Path) -> InDatabase:
    """Where all tables go; raises PolicyError unless that is one transaction, and for all that is wrong."""
    refuse(problems_of(policy))
    destination = destination_of(engine, policy.targets, folder)
    if not isinstance(destination, InDatabase):
        what = "tables without links are made in one transaction with the ledger"
        raise refused("individual.rows", what, "name tables of the database that has it, or rows: aligned")
    return destination


def _each(engine: Engine, context: Context, policy: Policy, make: Callable[[Context, Policy], Made]) -> dict[str, Made]:
    """What is made of the policy of each table; who listens hears of them by their names."""
    found, members = dict[str, Made](), members_of(policy)
    work = {n: work_of(engine, one) for n, one in open_each(engine, policy, context.folder, "source", members).items()}
    stages = [one.of(n) for n, own in work.items() for one in unplanned(members[n].algorithm.name, *own)]
    context.listener.on_expected(stages)
    for name, member in members.items():
        with _telling(name):
            found[name] = make(replace(context, listener=hearing_of(name, context.listener)), member)
    return found


@contextmanager
def _telling(name: str) -> Iterator[None]:
    """Within, errors name the table that they are about."""
    problems = Problems()
    with problems.collected(f"tables.{name}"):
        try:
            yield
        except InfeasibleError as error:
            error.args = (f"{name}: {error.args[0]}", *error.args[1:])
            raise
    problems.refuse()
