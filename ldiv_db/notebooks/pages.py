"""What is returned as a page in a notebook: a line, charts and tables.

All text is escaped, and no row of the data is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from ldiv_db.attacking.attacks import Attacks
from ldiv_db.auditing.audit import Audit
from ldiv_db.measuring.measure import Measurement
from ldiv_db.measuring.profile import Profile
from ldiv_db.notebooks import lines, rows
from ldiv_db.publishing.result import Released, Result
from ldiv_db.recoding.loss import Loss
from ldiv_db.reporting.charts import Bar, bar_chart
from ldiv_db.reporting.drawing import standalone
from ldiv_db.running.preparation import Preparation
from ldiv_db.running.preview import describe_plan

#: The columns of the tables.
_AUDIT = ("sensitive", "name", "holds", "worst", "worst_is", "margin", "violating_classes", "violating_rows")
_PROFILE = ("column", "type", "role", "reason", "distinct", "nulls", "largest_share")
_ATTACKS = ("attack", "sensitive", "measure", "gain", "bound", "holds", "finished")
_PLAN = ("column", "role", "generalised_by")


def result_page(result: Result) -> Markup:
    """What a run did: what it lost, and the audit's verdicts."""
    return _page(lines.result_line(result), _loss(result.loss), audit_table(result.audits), _notes(result.said))


def measurement_page(measurement: Measurement) -> Markup:
    return _page(lines.measurement_line(measurement), _loss(measurement.loss))


def released_page(released: Released) -> Markup:
    return _page(lines.released_line(released), audit_table(released.audits), _notes(released.notes))


def audits_page(audits: Sequence[Audit]) -> Markup:
    warnings = [warning for audit in audits for warning in audit.warnings]
    return _page(lines.audits_line(audits), audit_table(audits), _notes(warnings))


def profile_page(profile: Profile) -> Markup:
    """Which columns tell rows apart, and what each column is taken for."""
    few = profile.uniqueness.small if profile.uniqueness else ()
    bars = [Bar(", ".join(one.columns), (one.unique_rows / profile.rows,)) for one in few]
    chart = bar_chart("Rows that few columns single out", bars, "share of all rows") if bars else None
    return _page(lines.profile_line(profile), chart, _table(_PROFILE, rows.profile_rows(profile)))


def attacks_page(attacks: Attacks) -> Markup:
    """What attackers gain against what is promised."""
    found = list(rows.attack_rows(attacks))
    # What is a probability or a share alone goes on one axis.
    bars = [
        Bar(", ".join(filter(None, (row["attack"], row["sensitive"], row["measure"]))), (row["gain"],), row["bound"])
        for row in found
        if row["gain"] is not None and row["bound"] is not None and max(row["gain"], row["bound"]) <= 1
    ]
    chart = bar_chart("Attackers' gains", bars, "probability, or share of the rows") if bars else None
    return _page(lines.attacks_line(attacks), chart, _table(_ATTACKS, found))


def plan_page(ready: Preparation) -> Markup:
    document = describe_plan(ready)
    return _page(lines.plan_line(ready), _table(_PLAN, document["columns"]), _notes(document["notes"]))


def audit_table(audits: Sequence[Audit]) -> Markup:
    """The verdicts of audits."""
    return _table(_AUDIT, list(rows.audit_rows(audits)))


def _loss(loss: Loss) -> Markup | None:
    bars = [Bar(name, (lost,)) for name, lost in loss.lm_by_column.items()]
    return bar_chart("Information lost by column", bars, "loss per cell (LM), 0 to 1") if bars else None


def _page(line: str, *parts: Markup | None) -> Markup:
    """The line, and under it the parts that there are; the first chart brings the style of all."""
    shown = [standalone(part) if part.startswith("<svg") else part for part in parts if part]
    return Markup("<div><p><strong>{}</strong></p>{}</div>").format(line, Markup("").join(shown))


def _table(columns: Sequence[str], found: Sequence[rows.Row]) -> Markup:
    head = _cells("th", [column.replace("_", " ") for column in columns])
    body = Markup("").join(Markup("<tr>{}</tr>").format(_cells("td", map(row.get, columns))) for row in found)
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def _cells(tag: str, values: Iterable[Any]) -> Markup:
    cell = Markup(f"<{tag}>{{}}</{tag}>")
    return Markup("").join(cell.format(_text(value)) for value in values)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _notes(notes: Iterable[str]) -> Markup:
    return Markup("").join(Markup("<p>note: {}</p>").format(note) for note in notes)
