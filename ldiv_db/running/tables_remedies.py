"""What of a policy of several tables to change where it is refused, or would leave out many rows.

People are planned anew by every change that is named, so that what it leaves out is counted and not guessed. A change
of who is protected against, or of what nothing is promised of, has the tables read anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from ldiv_db.algorithms.base import Algorithm, Task
from ldiv_db.algorithms.infeasible import frequent_values
from ldiv_db.database.context import Listener
from ldiv_db.database.errors import Remedy
from ldiv_db.policy.changes import Change, harmless_in
from ldiv_db.policy.document import Policy
from ldiv_db.policy.sources import DEFAULT_ALGORITHM
from ldiv_db.recoding.stacked import stacked
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.guarantees import Ceiling
from ldiv_db.running.remedies import WhatIf
from ldiv_db.running.tables import People, PreparedTables, encoded_tables, open_tables, resolve_tables

#: Changes are tried where a larger share of the rows is left out.
MANY = Fraction(1, 20)
TRYING = "trying what leaves out fewer rows"


def by_others(whose: People) -> WhatIf | None:
    """What becomes of people by other policies; None where they have no labels."""
    task = whose.undivided()
    return None if task is None else _what_if(whose, task)


def _what_if(whose: People, task: Task) -> WhatIf:
    opened = whose.opened

    def again(policy: Policy) -> tuple[Algorithm, Task]:
        return (whose if policy.tables is opened.policy.tables else _read_by(whose, policy)).planned_by(policy)

    shown, last = opened.context.show_values, _knowing_one(opened.policy)
    return WhatIf(opened.policy, task, again, shown, whose.stack.encoded, last)


def _read_by(whose: People, policy: Policy) -> People:
    """The people of tables that are read anew by another policy; raises PolicyError."""
    engine, context = whose.opened.engine, replace(whose.opened.context, listener=Listener())
    opened = open_tables(engine, context, policy)
    tables = resolve_tables(opened)
    return People(opened, tables, stacked(engine, list(encoded_tables(engine, context, tables))), whose.secret)


def fewer_left_out(ready: PreparedTables) -> list[Remedy]:
    """Changes of the policy by which a run leaves out fewer rows, the fewest first; none where it leaves out few.

    Where people are sought levels for, one column's value is tried, as every search takes about as long as the first.
    """
    whose, left_out = ready.whose, ready.feasibility.rows_suppressed
    if left_out <= MANY * whose.stack.encoded.rows_in:
        return []
    whose.opened.context.listener.on_stage(TRYING)
    what_if, least, found = _what_if(whose, ready.task), left_out, list[Remedy]()
    for one in (one for change in _weaker_promises(whose.opened.policy) for one in what_if.tried(change)):
        found += [one] if one.rows < least else []
        least = min(least, one.rows)
    for one in (one for change in _harmless(whose) for one in what_if.tried(change)):
        found += [one] if one.rows < left_out else []
    return sorted(found, key=lambda one: one.rows)


def _knowing_one(policy: Policy) -> list[Change]:
    """Protection against who knows one row of whom they seek, where tables have it against who knows all."""
    if policy.knows_one or policy.is_series:
        return []
    places = [name for name, table in policy.tables.items() if {"order", "rows"} & table.model_fields_set]
    without = f", without `order` and `rows` of {', '.join(places)}" if places else ""
    by = f" by `algorithm: {DEFAULT_ALGORITHM}`" if policy.algorithm.name != DEFAULT_ALGORITHM else ""
    costs = f"`known: 1`{by}{without}, withstands who knows one row of whom they seek, no longer who knows all"
    return [Change({"known": 1}, costs, is_told=True)]


def _weaker_promises(policy: Policy) -> Iterator[Change]:
    """Who is protected against and what is bounded, changed so that each gives up more than the one before."""
    yield from (known := _knowing_one(policy))
    asked = [*map(_of_each_row, policy.require)]
    if asked != policy.require:
        bounds = "bounds what the known row has, no longer what somebody has in any row (`each: row`)"
        each = Change({"require": [spec.written for spec in asked]}, bounds)
        for one in known:
            yield replace(one, keys={**one.keys, **each.keys}, costs=f"{one.costs}, and {bounds}")
        if policy.knows_one:
            yield each


def _of_each_row(spec: RequirementSpec) -> RequirementSpec:
    """What is required, of the value of the row that is known where that can be asked."""
    each = replace(spec, each="row")
    return spec if spec.each or each.problems_of_each("", "known") else each


def _harmless(whose: People) -> Iterator[Change]:
    """Nothing promised of the most frequent value of a column, of those first that most rows of their column have."""
    opened, found = whose.opened, list[tuple[Fraction, str, str | None]]()
    for axis in whose.stack.encoded.told:
        values = frequent_values(opened.engine, axis, Ceiling(0), show_values=True)[:1]
        found += [(Fraction(rows, axis.judged_distribution.rows), axis.column.name, value) for value, rows, _ in values]
    # Every search for levels takes about as long as the first.
    for _, name, value in sorted(found, key=lambda one: -one[0])[: 3 if opened.policy.knows_one else 1]:
        shown = repr(value) if opened.context.show_values else "its most frequent value"
        costs = f"`harmless` for {shown} of {name}: nothing is promised of it"
        yield Change({"tables": harmless_in(opened.policy, name, value)}, costs, is_told=True)
