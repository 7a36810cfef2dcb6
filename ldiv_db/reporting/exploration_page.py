"""The risk-utility map as one page: charts that lead to each variant, and a table; whole without scripts, no request.

The same exploration gives the same bytes: nothing on it is of the moment at which it was made. Its script shows one
variant at a time, with a button to copy the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import yaml
from markupsafe import Markup

from ldiv_db.database.errors import rows_phrase
from ldiv_db.reporting.charts import Bar, Point, bar_chart, scatter
from ldiv_db.reporting.drawing import CHART_STYLE, element, joined_lines
from ldiv_db.running.exploring.outcomes import Axis, Exploration, VariantOutcome, findings, is_beaten

STYLE = joined_lines("exploration.css")
#: Without it all variants are on the page, one below the other.
SCRIPT = joined_lines("exploration.js")
#: So many characters are for variants that have a part of their own: with more a page would be too large.
_ROOM = 600_000
#: A policy longer than this is shown by what changes in it.
_LONGEST_POLICY = 4_000
#: What four digits would write as nothing.
_LEAST = 0.00005
_INTERNAL = (
    "For those who decide on the release. It reveals more about the data than the release will: keep it as safe as the"
    " source, and do not publish it."
)
#: What can be held against risk: what the choice is called, and the axis.
_AXES: Mapping[Axis, tuple[str, str]] = {
    "loss": ("Loss", "loss, mean LM of a cell (0 to 1)"),
    "counts": ("Error of a count", "median error of a count over two columns (0 to 1)"),
    "answers": ("Error of the policy's queries", "mean error of the answers (0 to 1)"),
}
_POSTERIOR = "largest share of a value in a class (0 to 1)"
_PROSECUTOR = "1 / rows of the smallest class (0 to 1)"
_MEANINGS = (
    ("Loss", "the mean LM of a cell: 0 where every value is published as it is, 1 where nothing is. A quasi-identifier"
     " that is not published, and every cell of a row that is left out, counts as 1."),
    ("Error of a count", "how far an analyst's counts of rows over two columns are off: half of them are off by"
        " less. A quasi-identifier that is not published counts as 1."),
    ("Error of the policy's queries", "how far the answers to its queries (preserve) are off on average, each by its"
     " whole size at most."),
    ("Largest share", "how sure an attacker who finds somebody's class can be of the sensitive value (posterior in"
     " ldiv attack). Variants are compared by it."),
    ("1 / smallest class", "how sure an attacker can be which row is somebody's (prosecutor in ldiv attack). Without a"
     " sensitive attribute variants are compared by it."),
    ("Frontier", "a variant is on it if no other variant is better on both loss and risk."),
)  # fmt: skip


def write_page(found: Exploration, path: Path) -> None:
    """Write the page to a file, in place of one that is there."""
    path.write_text(page(found), encoding="utf-8", newline="")


def page(found: Exploration) -> str:
    """The page of an exploration."""
    parts = parts_of(found)
    body = [
        element("h1", "Risk and utility of ", element("code", found.source)),
        element("p", _INTERNAL, class_="internal"),
        element(
            "p",
            f"Variants of a policy: {len(found.done):,}, rehearsed on {rows_phrase(found.rows)}. Nothing is published.",
        ),
        element("ul", *(element("li", f"{line[:1].upper()}{line[1:]}.") for line in findings(found))),
        *_charts(found, set(parts)),
        *_table(found, set(parts)),
        *_not_rehearsed(found),
        element("section", *(parts[number] for number in sorted(parts)), id="parts"),
        element("section", element("h2", "What the figures mean"), _list(_MEANINGS)),
    ]
    title = f"Risk and utility of {found.source}"
    return str(
        Markup("<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n")
        + Markup("<meta name=viewport content='width=device-width,initial-scale=1'>\n")
        + element("title", title)
        + Markup("\n<style>") + CHART_STYLE + STYLE + Markup("</style>\n</head>\n<body>\n<main>\n")
        + Markup("\n").join(body)
        + Markup("\n</main>\n<script>") + SCRIPT + Markup("</script>\n</body>\n</html>\n")
    )  # fmt: skip


# -- charts ------------------------------------------------------------------------------------------


def _charts(found: Exploration, linked: Set[int]) -> Iterable[Markup]:
    if not found.done:
        return
    risks = {**({"posterior": _POSTERIOR} if found.sensitive else {}), "prosecutor": _PROSECUTOR}
    yield element("h2", "Map")
    yield element("p", "Each mark leads to its variant. The line is the frontier: lower is better, left is less risk.")
    for axis in found.axes if len(found.axes) > 1 else ():
        is_first = "" if axis == found.axes[0] else None
        yield element("input", type="radio", name="axis", id=f"axis-{axis}", checked=is_first)
        yield element("label", _AXES[axis][0], for_=f"axis-{axis}")
    charts = (_chart(found, axis, risk, name, linked) for axis in found.axes for risk, name in risks.items())
    yield element("div", *charts, class_="maps", id="maps")


def _chart(found: Exploration, axis: Axis, risk: str, name: str, linked: Set[int]) -> Markup:
    points = [_point(found, one, axis, risk, _number(one) in linked) for one in found.ranked]
    places = [(point.x, point.y) for point in points]
    best = sorted({place for place in places if not is_beaten(place, places)})
    points.sort(key=lambda point: (point.x, point.y) in best)  # drawn last they lie above the others
    groups = sorted({point.group for point in points})
    line = [next(point for point in points if (point.x, point.y) == place) for place in best]
    title, unit = _AXES[axis]
    return element("figure", scatter(f"{title} against risk", points, name, unit, line, groups), class_=axis)


def _point(found: Exploration, outcome: VariantOutcome, axis: Axis, risk: str, linked: bool) -> Point:
    at = getattr(outcome.risk, risk) or 0.0
    anchor = _anchor(outcome) if linked else None
    return Point(at, found.measured(outcome, axis), outcome.variant.label, _group(outcome), anchor)


def _group(outcome: VariantOutcome) -> str:
    varied = outcome.variant.varied
    kind = "a column left out" if "without" in varied else "one level fewer" if "coarser" in varied else ""
    return kind or outcome.algorithm


def _number(outcome: VariantOutcome) -> int:
    return outcome.variant.number


def _anchor(outcome: VariantOutcome) -> str:
    return f"v{outcome.variant.number}"


# -- tables ------------------------------------------------------------------------------------------


def _table(found: Exploration, linked: Set[int]) -> Iterable[Markup]:
    if not found.done:
        return
    best = set(map(_number, found.frontier))
    heads = ["Variant", "Frontier", *(_AXES[axis][0] for axis in found.axes)]
    heads += ["Largest share"] if found.sensitive else []
    heads += ["1 / smallest class", "Classes", "Rows left out", "Algorithm"]
    rows = [_row(found, one, _number(one) in best, _number(one) in linked) for one in found.ranked]
    yield element("h2", "Variants")
    yield _scrolling(
        element("caption", "By risk, then by loss"),
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *rows),
    )


def _row(found: Exploration, outcome: VariantOutcome, is_best: bool, linked: bool) -> Markup:
    loss, risk = outcome.loss, outcome.risk
    assert loss is not None and risk is not None  # noqa: S101 - it was rehearsed
    label = outcome.variant.label
    name: str | Markup = element("a", label, href=f"#{_anchor(outcome)}") if linked else label
    risks = [risk.posterior, risk.prosecutor] if found.sensitive else [risk.prosecutor]
    numbers = [
        *(_decimal(found.measured(outcome, axis)) for axis in found.axes),
        *map(_decimal, risks),
        f"{loss.classes:,}",
        f"{loss.rows_suppressed:,}",
    ]
    cells = [element("th", name, scope="row"), element("td", "yes" if is_best else "")]
    cells += [element("td", number, class_="n") for number in numbers]
    return element("tr", *cells, element("td", outcome.algorithm), class_="best" if is_best else None)


def _decimal(number: float | None) -> str:
    if number is None:
        return "–"
    return "< 0.0001" if 0 < number < _LEAST else f"{number:.4f}"


def _not_rehearsed(found: Exploration) -> Iterable[Markup]:
    others = [outcome for outcome in found.outcomes if outcome.loss is None]
    if not others:
        return
    yield element("h2", "Not possible, or not tried")
    rows = [
        element(
            "tr",
            element("th", one.variant.label, scope="row"),
            element("td", one.status),
            element("td", "; ".join(one.reason.splitlines())),
        )
        for one in others
    ]
    heads = element("tr", *(element("th", head, scope="col") for head in ("Variant", "Status", "Reason")))
    yield _scrolling(element("thead", heads), element("tbody", *rows))


def _scrolling(*parts: Markup) -> Markup:
    """A table that scrolls by itself where the screen is narrow; the keyboard reaches it."""
    return element("div", element("table", *parts), class_="scroll", tabindex="0", role="region", aria_label="table")


# -- variants ----------------------------------------------------------------------------------------


def parts_of(found: Exploration) -> dict[int, Markup]:
    """The parts of variants by their numbers: of the frontier first, then by risk and loss, as far as there is room."""
    parts: dict[int, Markup] = {}
    room = _ROOM
    for outcome in [*found.frontier, *found.ranked]:
        if _number(outcome) not in parts:
            part = _part(found, outcome)
            room -= len(part)
            if room < 0:
                break
            parts[_number(outcome)] = part
    return parts


def _part(found: Exploration, outcome: VariantOutcome) -> Markup:
    loss, label = outcome.loss, outcome.variant.label
    assert loss is not None  # noqa: S101 - it was rehearsed
    bars = [Bar(name, (lost,)) for name, lost in loss.lm_by_column.items()]
    return element(
        "article",
        element("h2", label),
        _list(_facts(found, outcome)),
        element("h3", "Loss by column"),
        bar_chart(f"Loss by column, {label}", bars, "mean LM of a cell (0 to 1)"),
        element("h3", "Policy"),
        element("pre", _policy(found, outcome), tabindex="0", aria_label="policy"),
        id=_anchor(outcome),
        tabindex="-1",
        data_first="" if outcome is found.outcomes[0] else None,
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


def _list(facts: Sequence[tuple[str, str]]) -> Markup:
    return element("dl", *(element("div", element("dt", name), element("dd", text)) for name, text in facts))


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
