"""The risk-utility map as one page: charts that lead to each variant, and a table; whole without scripts, no request.

The same exploration gives the same bytes: nothing on it is of the moment at which it was made. Its script shows one
variant at a time, with a button to copy the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from ldiv_db.database.errors import rows_phrase
from ldiv_db.reporting.charts import Bar, Point, bar_chart, scatter
from ldiv_db.reporting.drawing import CHART_STYLE, element, joined_lines, page_templates, printable
from ldiv_db.requirements.risk import RISK
from ldiv_db.running.exploring.outcomes import Axis, Exploration, VariantOutcome, findings, is_beaten

STYLE = joined_lines("exploration.css")
#: Without it all variants are on the page, one below the other.
SCRIPT = joined_lines("exploration.js")
#: So many characters are for variants that have a part of their own: with more a page would be too large.
_ROOM = 600_000
#: A policy longer than this is shown by what changes in it.
_LONGEST_POLICY = 4_000
#: The groups of rows that are drawn, those that lose most, and what of them is.
_GROUPS, _PAYING = 8, ("mean LM of a cell", "share of the rows", "left out of these")
#: What four digits would write as nothing.
_LEAST = 0.00005
#: What can be held against risk: what the choice is called, and the axis.
_AXES: Mapping[Axis, tuple[str, str]] = {
    "loss": ("Loss", "loss, mean LM of a cell (0 to 1)"),
    "counts": ("Error of a count", "median error of a count over two columns (0 to 1)"),
    "answers": ("Error of the policy's queries", "mean error of the answers (0 to 1)"),
}
_POSTERIOR = "largest share of a value in a class (0 to 1)"
_PROSECUTOR = "1 / rows of the smallest class (0 to 1)"


def write_page(found: Exploration, path: Path) -> None:
    """Write the page to a file, in place of one that is there."""
    path.write_text(page(found), encoding="utf-8", newline="")


def page(found: Exploration) -> str:
    """The page of an exploration."""
    parts, best = parts_of(found), {one.variant.number for one in found.frontier}
    risks = {**({"posterior": _POSTERIOR} if found.sensitive else {}), "prosecutor": _PROSECUTOR}
    axes = {axis: _AXES[axis][0] for axis in found.axes}
    heads = ["Variant", "Frontier", *axes.values(), *(["Largest share"] if found.sensitive else [])]
    whole = _rendered(
        "exploration.html.j2",
        found=found,
        rehearsed=f"{len(found.done):,}, rehearsed on {rows_phrase(found.rows)}",
        findings=list(findings(found)),
        axes=axes,
        charts=[
            (axis, _chart(found, axis, risk, name, set(parts)))
            for axis in (found.axes if found.done else ())
            for risk, name in risks.items()
        ],
        heads=[*heads, "1 / smallest class", "Classes", "Rows left out", "Algorithm"],
        rows=[_row(found, one, best, set(parts)) for one in found.ranked],
        others=[one for one in found.outcomes if one.loss is None],
        parts=Markup("").join(parts[number] for number in sorted(parts)),
        chart_style=CHART_STYLE,
        style=STYLE,
        script=SCRIPT,
    )
    return str(whole)


def _rendered(template: str, **params: Any) -> Markup:
    environment = page_templates(finalize=printable, keep_trailing_newline=True)
    return Markup(environment.get_template(template).render(params))


def _chart(found: Exploration, axis: Axis, risk: str, name: str, linked: Set[int]) -> Markup:
    points = [_point(found, one, axis, risk, one.variant.number in linked) for one in found.ranked]
    places = [(point.x, point.y) for point in points]
    best = sorted({place for place in places if not is_beaten(place, places)})
    points.sort(key=lambda point: (point.x, point.y) in best)  # drawn last they lie above the others
    groups = sorted({point.group for point in points})
    line = [next(point for point in points if (point.x, point.y) == place) for place in best]
    title, unit = _AXES[axis]
    return scatter(f"{title} against risk", points, name, unit, line, groups)


def _point(found: Exploration, outcome: VariantOutcome, axis: Axis, risk: str, linked: bool) -> Point:
    at = getattr(outcome.risk, risk) or 0.0
    anchor = _anchor(outcome) if linked else None
    mark = ", ".join(f"{key} {value}" for key, value in outcome.variant.varied.items() if key in ("l", "k", RISK))
    return Point(at, found.measured(outcome, axis), outcome.variant.label, _group(outcome), anchor, mark)


def _group(outcome: VariantOutcome) -> str:
    varied = outcome.variant.varied
    kind = "a column left out" if "without" in varied else "one level fewer" if "coarser" in varied else ""
    return kind or outcome.algorithm


def _anchor(outcome: VariantOutcome) -> str:
    return f"v{outcome.variant.number}"


# -- tables ------------------------------------------------------------------------------------------


def _row(found: Exploration, outcome: VariantOutcome, best: Set[int], linked: Set[int]) -> dict[str, Any]:
    loss, risk = outcome.loss, outcome.risk
    assert loss is not None and risk is not None  # noqa: S101 - it was rehearsed
    risks = [risk.posterior, risk.prosecutor] if found.sensitive else [risk.prosecutor]
    numbers = [*(_decimal(found.measured(outcome, axis)) for axis in found.axes), *map(_decimal, risks)]
    return {
        "label": outcome.variant.label,
        "anchor": _anchor(outcome) if outcome.variant.number in linked else None,
        "is_best": outcome.variant.number in best,
        "numbers": [*numbers, f"{loss.classes:,}", f"{loss.rows_suppressed:,}"],
        "algorithm": outcome.algorithm,
    }


def _decimal(number: float | None) -> str:
    if number is None:
        return "–"
    return "< 0.0001" if 0 < number < _LEAST else f"{number:.4f}"


# -- variants ----------------------------------------------------------------------------------------


def parts_of(found: Exploration) -> dict[int, Markup]:
    """The parts of variants by their numbers: of the frontier first, then by risk and loss, as far as there is room."""
    parts: dict[int, Markup] = {}
    room = _ROOM
    for outcome in [*found.frontier, *found.ranked]:
        if outcome.variant.number not in parts:
            part = _part(found, outcome)
            room -= len(part)
            if room < 0:
                break
            parts[outcome.variant.number] = part
    return parts


def _part(found: Exploration, outcome: VariantOutcome) -> Markup:
    loss, label = outcome.loss, outcome.variant.label
    assert loss is not None  # noqa: S101 - it was rehearsed
    bars = [Bar(name, (lost,)) for name, lost in loss.lm_by_column.items()]
    groups = sorted(outcome.groups, key=lambda group: -group.lm_mean)[:_GROUPS]
    paying = [Bar(str(group), (group.lm_mean, group.share, group.left_out)) for group in groups]
    return _rendered(
        "variant.html.j2",
        anchor=_anchor(outcome),
        is_first=outcome is found.outcomes[0],
        label=label,
        facts=_facts(found, outcome),
        chart=bar_chart(f"Loss by column, {label}", bars, "mean LM of a cell (0 to 1)"),
        paying=bar_chart(f"Who pays, {label}", paying, "0 to 1", _PAYING) if paying else None,
        policy=_policy(found, outcome),
    )


def _facts(found: Exploration, outcome: VariantOutcome) -> list[tuple[str, str]]:
    loss, risk = outcome.loss, outcome.risk
    assert loss is not None and risk is not None  # noqa: S101 - it was rehearsed
    sizes = f"{loss.average_class_size:.2f} rows on average, {loss.smallest_class:,} to {loss.largest_class:,}"
    shares = f"{_decimal(risk.posterior)} at most, {_decimal(risk.posterior_mean)} on average"
    facts = [
        ("Algorithm", outcome.algorithm),
        *((_AXES[axis][0], _decimal(found.measured(outcome, axis))) for axis in found.axes),
        ("Loss of what is published", _decimal(loss.lm_mean)),
        *([("Largest share", shares)] if found.sensitive else []),
        ("1 / class", f"{_decimal(risk.prosecutor)} at most, {_decimal(risk.prosecutor_mean)} on average"),
        ("Classes", f"{loss.classes:,}"),
        ("Class size", sizes),
        ("Rows", f"{loss.rows_published:,} published, {loss.rows_suppressed:,} left out"),
        ("Cells that are *", f"{loss.stars:,}"),
        ("Precision", "; ".join(map(str, loss.precision))),
    ]
    said = [*([loss.counts] if loss.counts else []), *outcome.answers]
    return [*facts, *([("Accuracy", "; ".join(map(str, said)))] if said else [])]


def _policy(found: Exploration, outcome: VariantOutcome) -> Markup:
    """The policy as YAML, without its secrets; a long one by what changes in it."""
    text = _yaml(found.policy_of(outcome))
    if len(text) > _LONGEST_POLICY or found.document is None:
        keys = outcome.variant.keys
        text = f"# your policy, except for\n{_yaml(dict(keys))}" if keys else "# your policy\n"
    elif found.kept_back:
        text = f"# from your policy, and not shown here: {', '.join(found.kept_back)}\n{text}"
    return Markup("\n").join(element("span", line) for line in text.splitlines())


def _yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True) if document else ""
