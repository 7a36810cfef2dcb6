"""Plan of a run, for machines and for people: feasibility, algorithm, the columns' roles, the SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from ldiv_db.database.templates import Statement
from ldiv_db.policy.release_columns import Form
from ldiv_db.publishing.result import CLASSES_MADE, print_inferred, print_rows
from ldiv_db.recoding.encoded import Axis
from ldiv_db.running.estimate import about, size
from ldiv_db.running.preparation import Preparation

#: The name under which the engine sends what is no template: look-ups, and tables of metadata.
_BUILT_IN = "(built in)"


def describe_plan(ready: Preparation, statements: Sequence[Statement] | None = None) -> dict[str, Any]:
    """The plan as JSON has it, keys as in the README; `statements` adds those that come from templates."""
    feasible, resolved = ready.feasibility, ready.resolved
    document: dict[str, Any] = {
        "source": resolved.source.name,
        "target": str(resolved.target),
        "algorithm": ready.algorithm.name,
        "options": ready.algorithm.options.model_dump(by_alias=True),
        "l": feasible.l,
        "largest_l": None if ready.algorithm.traits.any_class else _largest_l(ready),
        "rows_in": ready.encoded.rows_in,
        "rows_suppressed": feasible.rows_suppressed,
        "most_suppressed": _most_suppressed(ready),
        "classes_made": feasible.classes,
        "tries": list(feasible.tries),
        "requirements": [
            {
                "name": requirement.name,
                "parameters": requirement.parameters,
                "sensitive": name or None,
                "strictest": ready.met_by_table.get(name, {}).get(requirement),
            }
            for name, own in ready.requirements.items()
            for requirement in own
        ],
        "columns": list(_columns(ready)),
        "inferred": [inferred.as_dict() for inferred in resolved.inferred],
        "needs": ready.estimate.as_dict(),
        "unchanged": ready.earlier.unchanged,
        "notes": [*ready.earlier.told(), *ready.reasons, *feasible.notes, *ready.warnings, *ready.estimate.notes],
    }
    if ready.tried:
        document["tried"] = list(ready.tried)
    if statements is not None:
        sent = [statement for statement in statements if statement.template != _BUILT_IN]
        document["statements"] = [{"template": s.template, "sql": s.sql} for s in sent]
    return document


def _largest_l(ready: Preparation) -> int | None:
    """The most rows of a class of which no two have equal values, such that all rows are in one."""
    return min((key.asked_distribution.largest_l for key in ready.encoded.keys if key.is_said), default=None)


def _most_suppressed(ready: Preparation) -> int | None:
    """The most rows that may be left out, with those that a NULL takes out; None for any."""
    most = ready.task.most_left_out
    return None if most is None else most + ready.encoded.left_out


def _columns(ready: Preparation) -> Iterator[dict[str, Any]]:
    """Every column with its role, and how a quasi-identifier is generalised."""
    axes = {axis.name: axis for axis in ready.encoded.axes}
    shown = ready.resolved.released.forms
    for key, name in ready.resolved.roles:
        role = {"identifiers": "identifier", "quasi_identifiers": "quasi-identifier"}.get(key, key)
        axis = axes.get(name) if key == "quasi_identifiers" else None
        yield {"column": name, "role": role, "generalised_by": _generalisation(axis, shown[name]) if axis else None}


def _generalisation(axis: Axis, form: Form) -> str:
    if axis.taxonomy is None:
        return "ranges of numbers" + (", as two columns" if form == "bounds" else "")
    sets = ", or sets" if form == "set" else ""
    return f"taxonomy {axis.taxonomy.origin}: {axis.leaves:,} leaves, height {axis.taxonomy.height}{sets}"


def print_plan(console: Console, document: dict[str, Any]) -> None:
    """The plan as tables, then the notes and the SQL if it is there."""
    options = ", ".join(f"{name}: {value}" for name, value in document["options"].items())
    table = Table(title=f"{document['source']} → {document['target']}", show_header=False)
    table.add_row("algorithm", f"{document['algorithm']} ({options})")
    if document["tries"]:
        table.add_row("tries", ", ".join(document["tries"]))
    if document["largest_l"] is not None:
        table.add_row("l", f"{document['l']}; up to {document['largest_l']} is feasible without suppression")
    table.add_row("rows of the source", f"{document['rows_in']:,}")
    most = "" if document["most_suppressed"] is None else f"; up to {document['most_suppressed']:,} are allowed"
    table.add_row("rows suppressed", f"{document['rows_suppressed']:,}{most}")
    table.add_row(CLASSES_MADE, f"up to {document['classes_made']:,}")
    needs = document["needs"]
    table.add_row("time", about(needs["seconds"]))
    table.add_row("memory", f"about {size(needs['memory_bytes'])}; {size(needs['memory_limit_bytes'])} are allowed")
    table.add_row("the release", f"about {size(needs['release_bytes'])}")
    for requirement in document["requirements"]:
        parameters = ", ".join(f"{name} = {value}" for name, value in requirement["parameters"].items())
        of = f"{requirement['sensitive']}: " if requirement["sensitive"] else ""
        strictest = f"; all rows as one class meet {requirement['strictest']}" if requirement["strictest"] else ""
        table.add_row("requirement", f"{of}{requirement['name']}: {parameters}{strictest}")
    console.print(table)
    rows = [(c["column"], c["role"], c["generalised_by"] or "") for c in document["columns"]]
    print_rows(console, "columns", ("column", "role", "generalised by"), rows)
    print_inferred(console, document["inferred"])
    console.print("a plan: nothing was written")
    for note in document["notes"]:
        console.print(f"note: {note}")
    for statement in document.get("statements", ()):
        console.print(f"\n-- {statement['template']}\n{statement['sql']};", soft_wrap=True)
