"""Plan of a run as a document: feasibility, algorithm, the columns' roles, the SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ldiv_db.database.templates import Statement
from ldiv_db.policy.release_columns import CENTRES, Form
from ldiv_db.publishing.result import Result
from ldiv_db.recoding.encoded import Axis
from ldiv_db.running.preparation import Preparation
from ldiv_db.running.run_spec import l_of
from ldiv_db.running.tables import PreparedTables

#: The name under which the engine sends what is no template: look-ups, and tables of metadata.
_BUILT_IN = "(built in)"


def describe_plan(
    ready: Preparation | PreparedTables | Result, statements: Sequence[Statement] | None = None
) -> dict[str, Any]:
    """The plan as JSON has it, keys as in docs/reference/result.md; `statements` adds those of templates."""
    document = _described(ready) if isinstance(ready, Preparation) else ready.as_dict()
    return document | ({} if statements is None else {"statements": sent(statements)})


def sent(statements: Sequence[Statement]) -> list[dict[str, str]]:
    """The statements of templates as JSON has them."""
    return [{"template": one.template, "sql": one.sql} for one in statements if one.template != _BUILT_IN]


def _described(ready: Preparation) -> dict[str, Any]:
    feasible, resolved, task = ready.feasibility, ready.resolved, ready.task
    apart = [key.asked_distribution.largest_l for key in task.encoded.keys if key.is_said]
    document: dict[str, Any] = {
        "source": resolved.source.name,
        "target": str(resolved.target),
        "algorithm": ready.algorithm.name,
        "options": ready.algorithm.options.model_dump(by_alias=True),
        "l": l_of(ready.algorithm.name, task.requirements, feasible.l),
        "largest_l": None if ready.algorithm.traits.meets_whole else min(apart, default=None),
        "rows_in": ready.encoded.rows_in,
        "rows_suppressed": feasible.rows_suppressed,
        "most_suppressed": None if task.most_left_out is None else task.most_left_out + ready.encoded.left_out,
        "classes_made": feasible.classes,
        "tries": list(feasible.tries),
        "requirements": [
            {
                "name": requirement.name,
                "parameters": requirement.parameters,
                "sensitive": name or None,
                "strictest": ready.met_by_table.get(name, {}).get(requirement),
            }
            for name, own in task.wanted.items()
            for requirement in own
        ],
        "columns": list(_columns(ready)),
        "inferred": [inferred.as_dict() for inferred in resolved.inferred],
        "needs": ready.estimate.as_dict(),
        "unchanged": ready.earlier.unchanged,
        "notes": ready.notes,
    }
    if resolved.policy.expand:
        document["expand"] = resolved.policy.expand.view
    if ready.units and ready.encoded.individual:
        document["people"] = ready.encoded.individual.distribution.distinct
    if ready.encoded.different:
        document["rows_different"] = ready.encoded.different
    if ready.efforts:
        document["efforts"] = dict(ready.efforts)
    if ready.bound:
        document["bound"] = ready.bound.as_dict()
    if ready.tried:
        document["tried"] = list(ready.tried)
    return document


def _columns(ready: Preparation) -> Iterator[dict[str, Any]]:
    axes = {axis.name: axis for axis in ready.encoded.axes}
    shown = ready.resolved.released.forms
    for key, name in ready.resolved.roles:
        if key == "weight" and ready.resolved.source.place:  # a column of ours, of the counts that a warehouse sent
            continue
        role = {"identifiers": "identifier", "quasi_identifiers": "quasi-identifier"}.get(key, key)
        axis = axes.get(name) if key == "quasi_identifiers" else None
        yield {"column": name, "role": role, "generalised_by": _generalisation(axis, shown[name]) if axis else None}


def _generalisation(axis: Axis, form: Form) -> str:
    if axis.taxonomy is None:
        beside = f", beside the {form} of each class" if form in CENTRES else ""
        return "ranges of numbers" + (", as two columns" if form == "bounds" else beside)
    sets = ", or sets" if form == "set" else ""
    return f"taxonomy {axis.taxonomy.origin}: {axis.leaves:,} leaves, height {axis.taxonomy.height}{sets}"
