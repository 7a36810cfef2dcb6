"""Remedies for a policy that cannot be met: each change is tried on the counts before it is named.

In the order of what is given up: nothing, by another algorithm; a little of one requirement; the protection of a value
that is too frequent; rows. A remedy that is named is one that a run accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from ldiv_db.algorithms import algorithm_of
from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.algorithms.infeasible import MOST_VALUES, Failure, failures, frequent_values
from ldiv_db.auditing.refusals import refuse_unknown
from ldiv_db.database.context import Listener
from ldiv_db.database.errors import (
    InfeasibleError,
    LdivError,
    PolicyError,
    Remedy,
    SuppressionError,
    UnprovedError,
    count_phrase,
    refuse,
)
from ldiv_db.policy.changes import Change, Place, changed, replaced
from ldiv_db.policy.document import Policy
from ldiv_db.policy.rules import problems_of
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.parameters import DIGITS, rounded
from ldiv_db.requirements.values import Named
from ldiv_db.running.policy_algorithm import make_algorithm
from ldiv_db.running.run_spec import PreparedRun
from ldiv_db.running.tasks import task_of
from ldiv_db.solving.known_rows import KnownTopDown
from ldiv_db.solving.levels import check_levels, level_tasks
from ldiv_db.solving.people import plan_of_rows
from ldiv_db.solving.solve import PartwiseSolver

#: The algorithm and the task of a run under another policy; raises PolicyError or InfeasibleError.
Again = Callable[[Policy], tuple[Algorithm, Task]]


@dataclass(frozen=True)
class WhatIf:
    """A run as prepared under a policy that may not be met, of one table or of several, and as it would be by others.

    Where people publish their rows by levels `task` has some, whether or not these can be met.
    """

    policy: Policy
    task: Task
    again: Again
    #: Whether remedies write out values of the data.
    show_values: bool
    #: The rows of all tables, and what is tried last.
    stacked: Encoded | None = None
    last: Sequence[Change] = ()

    @property
    def others(self) -> list[str]:
        """The algorithms that are tried in place of the policy's."""
        return [name for name in ("auto", "topdown", "bsgi") if name != self.policy.algorithm.name]

    @cached_property
    def tasks(self) -> list[Task]:
        """What is planned by itself: the task, or those of its levels."""
        return [own for _, own in level_tasks(self.task)] or [self.task]

    @property
    def rows(self) -> Encoded:
        """What is counted as left out."""
        units = self.task.units
        if self.stacked:
            return self.stacked
        return units.rows if units and (units.levels or not units.together) else self.task.encoded

    @property
    def attributes(self) -> list[str]:
        """The sensitive attributes, or the empty name of rows alone."""
        return [name for name in self.task.wanted if name] or list(self.task.wanted)

    @cached_property
    def places(self) -> dict[Place, Requirement]:
        """The requirements by their number in the policy and their attribute."""
        found: dict[Place, Requirement] = {}
        for name in self.attributes:
            numbers = [number for number, spec in enumerate(self.policy.require) if spec.concerns(name)]
            # What is asked of people beside stands last.
            found |= {(number, name): one for number, one in zip(numbers, self.task.wanted[name], strict=False)}
        return found

    @cached_property
    def failures(self) -> list[tuple[Place, Failure]]:
        """The requirements that the whole table, or the people of a level, violate, each with its place."""
        found = dict[Place, Failure]()
        for axis in (axis for task in self.tasks for axis in task.encoded.sensitive):
            asked = {p: one for p, one in self.places.items() if p[1] == axis.column.name and not one.each}
            failed = {f.requirement: f for f in failures(self.task.engine, axis, [*asked.values()]) if f.is_of_table}
            found |= {place: failed[one] for place, one in asked.items() if one in failed}
        return list(found.items())

    def rows_left_out(self, change: Change) -> int | None:
        """The rows that a run leaves out under the policy so changed.

        None if it is refused, or if any single row as a class meets a requirement that took more before.
        """
        engine = self.task.engine
        with engine.scope():
            try:
                policy = changed(self.policy, change.keys)
                refuse(problems_of(policy))
                algorithm, task = self.again(policy)
                if _met_by_any_row(task) > _met_by_any_row(self.task):
                    return None
                algorithm.refuse_unfit(task)
                levels = [own for _, own in level_tasks(task)]
                feasible = check_levels(algorithm, task, False) if levels else algorithm.checked(task)
                apart = task.units is not None and not task.units.together
                is_counted = not (apart or task.transparent or self.policy.is_series)
                is_alone = all(len(own.encoded.keys) == 1 for own in levels or [task])
                if is_counted and (is_alone or isinstance(algorithm, KnownTopDown)):
                    return feasible.rows_suppressed
                plan = (
                    PartwiseSolver(self.policy.part_rows).plan(algorithm, task)
                    if levels or task.cross
                    else algorithm.run(task)
                )
                if levels or apart:
                    plan = plan_of_rows(task, plan)
                left_out = self.rows.row_count - plan.row_count(engine)
                replace(task, encoded=self.rows).refuse_left_out(left_out)
                return self.rows.left_out + left_out
            except (InfeasibleError, PolicyError):
                return None

    def tried(self, change: Change) -> list[Remedy]:
        """The change with what it costs; none if it is refused."""
        rows = self.rows_left_out(change)
        return [] if rows is None else [_remedy(self, change, max(rows, change.least))]


def _met_by_any_row(task: Task) -> int:
    return [requirement.unique_class_size() for requirement in task.requirements].count(1)


def other_policies(
    ready: PreparedRun, show_values: bool, of_rows: Callable[[Algorithm, Task], Task] = lambda _, task: task
) -> WhatIf:
    """What becomes of a run of one table by other policies; `of_rows` may take some rows of a task alone."""
    task, resolved = ready.task, ready.resolved

    def again(policy: Policy) -> tuple[Algorithm, Task]:
        own, algorithm = resolved.under(task.engine, policy), make_algorithm(policy)
        found, _ = task_of(task.engine, Listener(), own, algorithm, ready.read, ready.secret)
        found = replace(found, people=task.people)
        refuse_unknown(own.suppressed, found.requirements)
        return algorithm.chosen(found)[0], of_rows(algorithm, found)

    return WhatIf(resolved.policy, task, again, show_values)


#: The algorithm that leaves rows out where no other can.
_SUPPRESSING = "bsgi"
#: What else there is for values that are too frequent, which only a person can know.
_HARMLESS = ", as does `harmless` under `sensitive` for a value that says nothing of a person"


@dataclass(frozen=True)
class Weaker:
    """A requirement by its number in the policy and its attribute, and weaker parameters, as a policy writes them."""

    number: int
    attribute: str
    requirement: Requirement
    parameters: Mapping[str, Any]

    @property
    def written(self) -> dict[str, Any]:
        """The weaker requirement as it is written, a parameter that is the only one alone."""
        first, *rest = self.parameters
        is_alone = not rest and list(self.requirement.fields) == [first]
        return {self.requirement.name: self.parameters[first] if is_alone else self.parameters}


@contextmanager
def remedied(known: Callable[[], WhatIf | None], is_running: bool = False) -> Iterator[None]:
    """Adds to an error what of the policy to change; if a run fails that counts allowed, another algorithm alone,
    or a larger budget of rows left out where that is what it lacks. What is `known` of the run is asked for then.
    """
    try:
        yield
    except UnprovedError:
        raise
    except (InfeasibleError, PolicyError) as error:
        what, ways = known(), _remedy_finders(error, is_running)
        error.remedies = [remedy for way in ways if what for remedy in _first_accepted(what, way(what))]
        raise


def _remedy_finders(error: LdivError, is_running: bool) -> list[Callable[[WhatIf], Iterator[Change]]]:
    """The ways out of an error, in the order of what they give up."""
    if isinstance(error, SuppressionError) and is_running:
        return [_other_algorithm, partial(_budget_of, rows=error.rows)]
    if isinstance(error, InfeasibleError) and not is_running:
        return [_other_algorithm, _weaker, _own_thresholds, _suppression, lambda one: iter(one.last)]
    return [_other_algorithm]


def _first_accepted(what_if: WhatIf, changes: Iterator[Change]) -> Iterator[Remedy]:
    yield from next(filter(None, map(what_if.tried, changes)), [])


def _remedy(what_if: WhatIf, change: Change, rows: int) -> Remedy:
    """The change with what it costs; values are hidden unless they are to be shown."""
    total, policy = what_if.rows.rows_in, changed(what_if.policy, change.keys)
    traits = algorithm_of(policy.algorithm.name).traits
    left = f"{rows:,} of {total:,} rows are left out" if rows else "every row is published"
    if policy.suppression and traits.outliers:
        left = f"{left}; more are left out where that loses less, within the budget"
    if not traits.foresees_left_out:
        left = "rows are left out where that costs least, how many the run tells"
    costs = f"{change.costs}; {left}"
    if change.is_told:
        return Remedy(None, costs, rows)
    if change.values and not what_if.show_values:
        return Remedy(None, f"{costs}: --show-values (in Python show_values=True) writes it out", rows)
    return Remedy(change.keys, costs, rows)


def _other_algorithm(what_if: WhatIf) -> Iterator[Change]:
    yield from (Change({"algorithm": name}, "meets the policy as it stands") for name in what_if.others)


def _weaker(what_if: WhatIf) -> Iterator[Change]:
    """The nearest parameters that the table meets as one class, then those that classes of different values meet."""
    of_table = [Weaker(*p, f.requirement, f.weaker) for p, f in what_if.failures]
    as_little = ", as little as can be, by classes like the whole table; still weaker loses less"
    sizes = sorted({_largest_size(task) for task in what_if.tasks}, reverse=True)
    for weaker, more in ((of_table, as_little), *((_weaker_at(what_if, size), "") for size in sizes)):
        if weaker and all(found.parameters for found in weaker):
            yield from _with_other_algorithm(what_if, _weakened(what_if, weaker, more))


def _largest_size(task: Task) -> int:
    """The most rows of different values that all classes can have, if every row is in one."""
    encoded = task.encoded
    return min(key.distribution.largest_l for key in encoded.keys) - encoded.leaves_unjudged


def _weaker_at(what_if: WhatIf, size: int) -> list[Weaker]:
    """The requirements that take larger classes of different values, with parameters that classes of this size meet."""
    return [
        Weaker(*place, requirement, requirement.weaker_at(size))
        for place, requirement in what_if.places.items()
        if size > 1 and (requirement.unique_class_size() or 0) > size
    ]


def _weakened(what_if: WhatIf, weaker: Sequence[Weaker], more: str = "") -> Change:
    keys = _required(what_if, {(found.number, found.attribute): [found.written] for found in weaker})
    named = ", ".join(dict.fromkeys(f"{found.requirement.label} on {found.attribute}" for found in weaker))
    values = sum(len(found.requirement.named) for found in weaker)
    return Change(keys, f"promises less than {named}{more}", values)


def _required(what_if: WhatIf, others: Mapping[Place, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    return {"require": replaced(what_if.policy, what_if.attributes, others)}


def _with_other_algorithm(what_if: WhatIf, change: Change) -> Iterator[Change]:
    """The change under the policy's algorithm, then under the others."""
    yield change
    yield from (replace(change, keys={**change.keys, "algorithm": name}, least=0) for name in what_if.others)


def _own_thresholds(what_if: WhatIf) -> Iterator[Change]:
    """Thresholds of their own for the values that are too frequent, at the shares that they have in the table."""
    others: dict[Place, Sequence[Mapping[str, Any]]] = {}
    values: dict[str, set[Named]] = {}
    for place, failure in what_if.failures:
        shares = _shares(what_if, failure)
        others[place] = failure.requirement.allowing(shares) if shares else ()
        values.setdefault(failure.axis.column.name, set()).update(shares)
    if not others or not all(others.values()):
        return
    named = " and ".join(f"{count_phrase(len(v), 'value', 'values')} of {name}" for name, v in values.items())
    costs = f"a threshold for {named} at its share, by classes like the whole table; a higher one loses less{_HARMLESS}"
    yield from _with_other_algorithm(what_if, Change(_required(what_if, others), costs, sum(map(len, values.values()))))


def _shares(what_if: WhatIf, failure: Failure) -> dict[Named, Decimal]:
    """The shares of the values that are too frequent, none less than it is; empty if it is not they that fail."""
    distribution = failure.axis.judged_distribution
    ceiling = failure.requirement.ceiling(distribution)
    if ceiling is None:
        return {}
    rows = frequent_values(what_if.task.engine, failure.axis, ceiling, show_values=True)
    if len(rows) > MOST_VALUES:
        return {}
    return {value: Decimal(rounded(count / distribution.rows, DIGITS, up=True)) for value, count, _ in rows}


def _suppression(what_if: WhatIf) -> Iterator[Change]:
    """Leaving out rows, in the policy's algorithm if it can do that; else under the most that this allows."""
    spec = what_if.policy.algorithm
    own = algorithm_of(spec.name).traits.suppressing
    name, options = (spec.name, {**spec.options, **own}) if own else (_SUPPRESSING, {})
    options = options or dict(algorithm_of(name).traits.suppressing)
    suppress = {"algorithm": {"name": name, **options}}
    if what_if.policy.suppression is not None:
        yield from _larger_budget(what_if, Change(suppress, ""))
        return
    yield Change(suppress, "keeps to the policy")
    whole = what_if.task.encoded
    most = min(key.distribution.distinct for key in whole.keys) - whole.leaves_unjudged
    weaker = _weaker_at(what_if, most) if most > _largest_size(what_if.task) else []
    if weaker and all(found.parameters for found in weaker):
        change = _weakened(what_if, weaker)
        yield Change({**change.keys, **suppress}, change.costs, change.values)


def _larger_budget(what_if: WhatIf, leaving: Change) -> Iterator[Change]:
    """An algorithm that leaves rows out, if the budget is for as many; else the budget that it takes."""
    if what_if.rows_left_out(leaving) is not None:
        yield replace(leaving, costs="keeps to the policy")
        return
    rows = what_if.rows_left_out(Change({**leaving.keys, "suppression": None}, ""))
    if rows is not None:
        larger = list(_budget_of(what_if, rows - what_if.rows.left_out))
        yield from larger
        yield from (replace(change, keys={**leaving.keys, **change.keys}) for change in larger)


def _budget_of(what_if: WhatIf, rows: int) -> Iterator[Change]:
    """The least budget that so many rows fit, of four digits if these will do."""
    total = what_if.rows.row_count
    for digits in (4, DIGITS):
        share = Fraction(-(-rows * 10**digits // total), 10**digits)
        if share < 1:
            costs, least = "gives up more rows than the policy allows", rows + what_if.rows.left_out
            yield Change({"suppression": float(share)}, costs, least=least)
            return
