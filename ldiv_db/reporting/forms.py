"""The forms of results: a screen, a line for `repr`, rows of a frame, a page for notebooks with charts and tables.

All text is escaped, and no row of the data is in it. `FORMS` has the form of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ldiv_db.auditing.audit import Audit, hold_together
from ldiv_db.database.errors import classes_phrase, count_phrase, rows_phrase
from ldiv_db.display import Form
from ldiv_db.reporting.answers import answers_line, answers_rows, answers_text
from ldiv_db.reporting.attacks_text import attacks_text
from ldiv_db.reporting.charts import Bar, bar_chart
from ldiv_db.reporting.drawing import standalone
from ldiv_db.reporting.table_text import (
    audits_text,
    measurement_text,
    profile_text,
    tables_measurement_text,
)
from ldiv_db.reporting.text import (
    exploration_text,
    inference_text,
    l_in_words,
    plan_text,
    plans_apart_text,
    result_text,
    tables_plan_text,
    verification_text,
)
from ldiv_db.running.preview import describe_plan

if TYPE_CHECKING:  # of what is shown, which is there
    from ldiv_db.attacking.attacks import Attacks
    from ldiv_db.measuring.asking.answer import Answers
    from ldiv_db.measuring.measure import Measurement
    from ldiv_db.measuring.profile import Profile
    from ldiv_db.measuring.tables import TablesMeasurement
    from ldiv_db.publishing.result import Result
    from ldiv_db.recoding.loss import Loss
    from ldiv_db.running.preparation import Preparation
    from ldiv_db.running.tables import PreparedTables
    from ldiv_db.running.tables_apart import PlansApart


def result_line(result: Result) -> str:
    if result.figures:
        return f"Release {result.figures.get('release', '')}: {_verdict_in_words(result.audits)}"
    l = l_in_words(found.requirement for audit in result.audits for found in audit.verdicts)
    where = f"{result.source} → {result.target}, {result.algorithm}{l}"
    return f"Release of {where}: {_loss_in_words(result.loss)}; {_verdict_in_words(result.audits)}"


def measurement_line(measurement: Measurement) -> str:
    return f"Loss of {measurement.published} against {measurement.source}: {_loss_in_words(measurement.loss)}"


def tables_measurement_line(found: TablesMeasurement) -> str:
    whole = found.as_dict()
    rows = f"{rows_phrase(whole['rows_published'])} of {whole['rows_in']:,}, {whole['lm_mean']:.4f} of 1 lost per cell"
    return f"Loss of {found.published} against {found.source}: {rows}"


def tables_measurement_rows(found: TablesMeasurement) -> list[Row]:
    """A row a table."""
    return [one.as_dict() for one in found.losses]


def tables_measurement_page(found: TablesMeasurement) -> Markup:
    counted = [f"{one.parent} with {one.child}: {one.counts}" for one in found.joins]
    columns = ("table", "rows_in", "rows_published", "lm_mean")
    return _page(tables_measurement_line(found), _table(columns, tables_measurement_rows(found)), _notes(counted))


def answers_page(found: Answers) -> Markup:
    rows = answers_rows(found)
    return _page(answers_line(found), _table([*rows[0]] if rows else [], rows), _notes(found.notes))


def audits_line(audits: Sequence[Audit]) -> str:
    parts = [
        f"{audit.sensitive or 'rows alone'}: {classes_phrase(audit.classes)}, {rows_phrase(audit.rows)}"
        for audit in audits
    ]
    return f"Audit of {'; '.join(parts)}: {_verdict_in_words(audits)}"


def profile_line(profile: Profile) -> str:
    unique = profile.uniqueness.unique_rows if profile.uniqueness else 0
    rows = f"{rows_phrase(profile.rows)}, {unique:,} of them unique"
    return f"Profile of {profile.table}: {len(profile.columns)} columns, {rows}"


def attacks_line(attacks: Attacks) -> str:
    said = {True: "every promise is kept", False: "a promise is broken", None: "nothing is promised"}[attacks.holds]
    if attacks.undecided and attacks.holds is None:
        said = "whether every promise is kept is not known"
    left = "" if attacks.finished else "; not all attacks were finished"
    return f"Attacks on {classes_phrase(attacks.classes)}, {rows_phrase(attacks.rows)}: {said}{left}"


def plan_line(ready: Preparation) -> str:
    feasible, resolved = ready.feasibility, ready.resolved
    l = l_in_words(ready.task.requirements)
    where = f"{resolved.source.name} → {resolved.target}, {ready.algorithm.name}{l}"
    suppressed = f"{feasible.rows_suppressed:,} of {ready.encoded.rows_in:,} rows suppressed"
    return f"Plan of {where}: up to {classes_phrase(feasible.classes)}, {suppressed}; nothing was written"


def _loss_in_words(loss: Loss) -> str:
    rows = f"{rows_phrase(loss.rows_published)} in {classes_phrase(loss.classes)}"
    left_out = f", {loss.rows_suppressed:,} suppressed" if loss.rows_suppressed else ""
    return f"{rows}{left_out}, {loss.lm_mean:.4f} of 1 lost per cell"


def _verdict_in_words(audits: Sequence[Audit]) -> str:
    said = {True: "every requirement holds", False: "NOT every requirement holds", None: "nothing is judged"}
    return said[hold_together(audits)]


Row = Mapping[str, Any]


def loss_rows(found: Result | Measurement) -> list[Row]:
    """One row of the same columns, so that runs are compared by putting their frames together."""
    return [_figures(getattr(found, "figures", None) or found.as_dict())]


def audit_rows(audits: Sequence[Audit]) -> Iterator[Row]:
    """A row a requirement of a sensitive attribute."""
    for audit in audits:
        for verdict in audit.verdicts:
            found = verdict.as_dict()
            del found["parameters"], found["worst_class"]
            yield {"sensitive": audit.sensitive or None, **found, "name": str(verdict.requirement)}


def profile_rows(profile: Profile) -> list[Row]:
    """A row a column of the table."""
    return list(profile.as_dict()["columns"])


def attack_rows(attacks: Attacks) -> Iterator[Row]:
    """A row a gain of an attacker; rows of the data, which an attack may hold for those who asked, are not there."""
    for attack in attacks.attacks:
        for gain in attack.gains:
            yield {
                "attack": attack.name,
                "sensitive": attack.sensitive,
                **({"knows": attack.knows} if attack.knows else {}),
                **gain.as_dict(),
                "finished": attack.untried is None,
            }


def _figures(document: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers and texts of a document, and those of its loss; the loss of a column is `lm.<column>`.

    The seed is not among them: who has it can replay the run, and frames are shown around.
    """
    loss = document.get("loss") or {}
    by_column = {f"lm.{name}": lost for name, lost in loss.get("lm_by_column", {}).items()}
    nested = {key: value for key, value in {**document, **loss}.items() if key != "seed"}
    return {
        key: value for key, value in nested.items() if isinstance(value, int | float | str | bool | None)
    } | by_column


#: The columns of the tables.
_AUDIT = ("sensitive", "name", "holds", "worst", "worst_is", "margin", "violating_classes", "violating_rows")
_PROFILE = ("column", "type", "role", "reason", "distinct", "nulls", "largest_share")
_ABOUT = ("attack", "sensitive", "knows", "measure")
_ATTACKS = (*_ABOUT, "gain", "bound", "holds", "finished")
_PLAN, _TABLES = ("column", "role", "generalised_by"), ("table", "rows_in", "rows_published")


def audits_page(audits: Sequence[Audit]) -> Markup:
    warnings = [warning for audit in audits for warning in audit.warnings]
    return _page(audits_line(audits), audit_table(audits), _notes(warnings))


def profile_page(profile: Profile) -> Markup:
    """The page of a profile: the columns that tell rows apart, and the role of each column."""
    few = profile.uniqueness.small if profile.uniqueness else ()
    bars = [Bar(", ".join(one.columns), (one.unique_rows / profile.rows,)) for one in few]
    chart = bar_chart("Rows that few columns single out", bars, "share of all rows") if bars else None
    return _page(profile_line(profile), chart, _table(_PROFILE, profile_rows(profile)))


def attacks_page(attacks: Attacks) -> Markup:
    """The page of attacks: the attackers' gains against the bounds that are promised."""
    found = list(attack_rows(attacks))
    # What is a probability or a share alone goes on one axis.
    bars = [
        Bar(", ".join(filter(None, (row.get(key) for key in _ABOUT))), (row["gain"],), row["bound"])
        for row in found
        if row["gain"] is not None and row["bound"] is not None and max(row["gain"], row["bound"]) <= 1
    ]
    chart = bar_chart("Attackers' gains", bars, "probability, or share of the rows") if bars else None
    return _page(
        attacks_line(attacks), chart, _table([key for key in _ATTACKS if any(key in row for row in found)], found)
    )


def tables_plan_line(ready: PreparedTables) -> str:
    plan = ready.as_dict()
    where = f"{plan['source']} → {plan['target']}, {plan['algorithm']}{l_in_words(ready.task.requirements)}"
    what = f"{count_phrase(plan['people'], 'person', 'people')}, up to {classes_phrase(plan['classes_made'])}"
    return f"Plan of {where}: {what}; nothing was written"


def tables_plan_page(ready: PreparedTables) -> Markup:
    plan = ready.as_dict()
    return _page(tables_plan_line(ready), _table(_TABLES, plan["tables"]), _notes(plan["notes"]))


def plans_apart_line(ready: PlansApart) -> str:
    what = f"{len(ready.plans)} tables without links; nothing was written"
    return f"Plans of {ready.policy.reads} → {ready.policy.places}: {what}"


def plans_apart_rows(ready: PlansApart) -> list[Row]:
    return [_figures(table) for table in ready.as_dict()["tables"]]


def plans_apart_page(ready: PlansApart) -> Markup:
    return _page(plans_apart_line(ready), *map(plan_page, ready.plans.values()))


def plan_page(ready: Preparation) -> Markup:
    document = describe_plan(ready)
    return _page(plan_line(ready), _table(_PLAN, document["columns"]), _notes(document["notes"]))


def audit_table(audits: Sequence[Audit]) -> Markup:
    """The verdicts of audits."""
    return _table(_AUDIT, list(audit_rows(audits)))


def _loss(loss: Loss) -> Markup | None:
    bars = [Bar(name, (lost,)) for name, lost in loss.lm_by_column.items()]
    return bar_chart("Information lost by column", bars, "loss per cell (LM), 0 to 1") if bars else None


def _page(line: str, *parts: Markup | None) -> Markup:
    shown = [standalone(part) if part.startswith("<svg") else part for part in parts if part]
    return Markup("<div><p><strong>{}</strong></p>{}</div>").format(line, Markup("").join(shown))


def _table(columns: Sequence[str], found: Sequence[Row]) -> Markup:
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


def _of_one(form: Callable[[Sequence[Audit]], Any]) -> Callable[[Audit], Any]:
    return lambda audit: form([audit])


#: By the name of the class: whoever shows an object has imported its class, and this module need not.
FORMS: dict[str, Form] = {
    "Result": Form(
        result_text,
        result_line,
        loss_rows,
        lambda run: _page(
            result_line(run), None if run.figures else _loss(run.loss), audit_table(run.audits), _notes(run.said)
        ),
    ),
    "Measurement": Form(
        measurement_text, measurement_line, loss_rows, lambda one: _page(measurement_line(one), _loss(one.loss))
    ),
    "TablesMeasurement": Form(
        tables_measurement_text, tables_measurement_line, tables_measurement_rows, tables_measurement_page
    ),
    "Answers": Form(answers_text, answers_line, answers_rows, answers_page),
    "Profile": Form(profile_text, profile_line, profile_rows, profile_page),
    "Attacks": Form(attacks_text, attacks_line, attack_rows, attacks_page),
    "Preparation": Form(plan_text, plan_line, lambda ready: [_figures(describe_plan(ready))], plan_page),
    "PreparedTables": Form(
        tables_plan_text, tables_plan_line, lambda ready: [_figures(ready.as_dict())], tables_plan_page
    ),
    "PlansApart": Form(plans_apart_text, plans_apart_line, plans_apart_rows, plans_apart_page),
    "Audits": Form(audits_text, audits_line, audit_rows, audits_page),
    "Audit": Form(*map(_of_one, (audits_text, audits_line, audit_rows, audits_page))),
    "Exploration": Form(exploration_text),
    "Inference": Form(inference_text),
    "Verification": Form(verification_text),
}
