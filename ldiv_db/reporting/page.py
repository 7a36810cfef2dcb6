"""The page of a report: one HTML file that asks for nothing else, made from its document alone, or a PDF of it.

It brings its charts and its glossary. A browser or WeasyPrint of the system converts to PDF, and nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.policy.context import ReleaseContext
from ldiv_db.reporting.attacks_text import figure_name
from ldiv_db.reporting.charts import Axes, Bar, Bin, Later, Mark, bar_chart, histogram
from ldiv_db.reporting.drawing import CHART_STYLE, number, page_templates

#: Columns whose distributions are drawn; a page of more would be long, and the document has them all.
MOST_COLUMNS = 24
Document = Mapping[str, Any]


@dataclass(frozen=True)
class ReportFigure:
    """A chart with its caption."""

    caption: str
    chart: Markup


def figures(document: Document) -> dict[str, list[ReportFigure]]:
    """The charts by the sections in which they stand; those of numbers that the document lacks are left out."""
    source = document.get("source") or {}
    measured = measured_in(source)
    return {
        "audit": [*_sizes(document), *_largest_shares(document)],
        "identifiability": _risks(document["identifiability"], source),
        "attacks": _attacks(document["attacks"]["attacks"]),
        **{f"loss of {name}": _loss(one["loss"]["lm_by_column"]) for name, one in measured.items()},
        **{f"columns of {name}": list(_columns(one["spreads"])) for name, one in measured.items()},
    }


def measured_in(source: Document) -> Mapping[str, Document]:
    """What was measured of each table by its name, which is empty where there is one alone."""
    utility = source.get("utility")
    return utility.get("measured", {"": utility}) if utility else {}


def _sizes(document: Document) -> list[ReportFigure]:
    sizes = document["classes"]["sizes"]
    if not sizes["bins"]:
        return []
    unit = "people" if any(one["of_people"] for one in document["audit"]["attributes"]) else "rows"
    bins = [_size_bin(one, sizes["width"], unit) for one in sizes["bins"]]
    marks = [Mark(sizes["least"], f"smallest class: {number(sizes['least'])} {unit}")]
    chart = histogram("Class sizes", bins, Axes(f"{unit} of a class", "number of classes", whole=True), marks)
    return [ReportFigure("Class sizes", chart)]


def _size_bin(one: Document, width: int, unit: str) -> Bin:
    low, high = one["from"], one["from"] + width - 1
    label = f"{number(low)} {unit}" if width == 1 else f"{number(low)} to {number(high)} {unit}"
    return Bin(low - 0.5, high + 0.5, one["classes"], label)


def _largest_shares(document: Document) -> Iterator[ReportFigure]:
    """Chart the number of classes by the share of their most frequent value, with the bound that is promised."""
    bounds = {
        attack["sensitive"]: attack["gains"][0]["bound"]
        for attack in document["attacks"]["attacks"]
        if attack["attack"] == "posterior"
    }
    for name, counts in document["classes"]["largest_shares"].items():
        if not sum(counts):
            continue
        parts = len(counts)
        bins = [
            Bin(place / parts, (place + 1) / parts, count, f"above {place / parts:g}, at most {(place + 1) / parts:g}")
            for place, count in enumerate(counts)
        ]
        bound = bounds.get(name)
        marks = [] if bound is None else [Mark(bound, f"bound {number(bound)}")]
        title = f"Largest share of a value of {name} in a class"
        axes = Axes("largest share (0 to 1)", "number of classes")
        yield ReportFigure(title, histogram(title, bins, axes, marks))


def _risks(found: Document, source: Document) -> list[ReportFigure]:
    """Initial and residual risk, maximum and average, each in the sample or the population; initial as far as known."""
    sample = source.get("risk_before")
    people = source.get("risk_before_of_population") or sample
    rows = []
    for risk in found["risks"]:
        is_of_sample = risk["risk"] == "prosecutor" or len(found["risks"]) < 3
        of, before = ("sample", sample) if is_of_sample else ("population", people)
        for key, word in (("largest", "maximum"), ("mean", "average")):
            if risk[key] is not None:
                values = (before[key], risk[key]) if sample and before else (risk[key],)
                rows.append(Bar(f"{risk['risk'].capitalize()} ({of}), {word}", values, found["threshold"]))
    title = "Risk of re-identification" + (", initial and residual" if sample else "")
    series = ("initial (source)", "residual (release)") if sample else ()
    return [ReportFigure(title, bar_chart(title, rows, "probability (0 to 1)", series, "threshold"))]


def _attacks(attacks: Sequence[Document]) -> list[ReportFigure]:
    """Chart gains of attackers against promised bounds; ratios do not fit an axis of shares and stay in the table."""
    several = len({attack["sensitive"] for attack in attacks} - {None}) > 1
    rows = [
        Bar(_gain_name(attack, gain["measure"], several), (gain["gain"],), gain["bound"])
        for attack in attacks
        for gain in attack["gains"]
        if gain["bound"] is not None and gain["measure"] != "posterior / prior"
    ]
    title = "Attacks against what is promised"
    return [ReportFigure(title, bar_chart(title, rows, "gain (share or probability, 0 to 1)"))] if rows else []


def _gain_name(attack: Document, measure: str, several: bool) -> str:
    knows = f", {attack['knows']} known" if "knows" in attack else ""
    about = f" of {attack['sensitive']}" if several and attack["sensitive"] else ""
    same = measure == attack["attack"]
    return f"{attack['attack'].capitalize()}{about}{knows}{'' if same else f': {measure}'}"


def _loss(by_column: Mapping[str, float]) -> list[ReportFigure]:
    rows = [Bar(name, (value,)) for name, value in by_column.items()]
    title = "Information lost by column"
    return [ReportFigure(title, bar_chart(title, rows, "LM per cell (0: as in the source, 1: all lost)"))]


def _columns(spreads: Sequence[Document]) -> Iterator[ReportFigure]:
    for spread in spreads[:MOST_COLUMNS]:
        before, after = (_shares(spread[key]) for key in ("before", "after"))
        places = list(zip(spread["edges"], spread["edges"][1:], strict=False))
        bins, later = (
            [Bin(low, high, share, _range_label(low, high)) for (low, high), share in zip(places, shares, strict=True)]
            for shares in (before, after)
        )
        order = "by falling frequency" if spread["role"] == "sensitive" else "in their order"
        axes = Axes(f"place among the {number(spread['values'])} values, {order}", "share of rows (%)", whole=True)
        chart = histogram(spread["column"], bins, axes, later=Later(later, ("before", "after")))
        yield ReportFigure(f"{spread['column']}, before and after", chart)
        paid = [replace(one, count=lost or 0.0) for one, lost in zip(later, spread["lost"], strict=True)]
        chart = histogram(f"{spread['column']}, who pays", paid, replace(axes, y="mean LM of all cells (0 to 1)"))
        yield ReportFigure(f"{spread['column']}, who pays", chart)


def _shares(rows: Sequence[float]) -> list[float]:
    whole = sum(rows)
    return [100 * one / whole if whole else 0.0 for one in rows]


def _range_label(low: int, high: int) -> str:
    return f"value {low + 1}" if high == low + 1 else f"values {low + 1} to {high}"


def page_of(document: Mapping[str, Any]) -> str:
    """The page as text, the same for the same document."""
    environment = page_templates()
    environment.filters |= {"number": number, "per_cent": _per_cent, "words": _words, "figure_name": figure_name}
    environment.filters["entry_name"] = _entry_name
    shown = _printable(document)
    template = environment.get_template("report.html.j2")
    reasons = {column.lower(): reason for column, reason in shown["context"].get("reasons", {}).items()}
    more = {
        "asked_of_people": ReleaseContext.model_fields,
        "reasons": reasons,
        "measured": measured_in(shown["source"] or {}),
    }
    return template.render(**shown, **more, figures=figures(shown), chart_style=CHART_STYLE)


def _per_cent(share: float | None) -> str:
    return "–" if share is None else f"{number(round(100 * share, 2))} %"


def _entry_name(key: str) -> str:
    """A key of the context as people read it; other words stay."""
    name, _, column = key.partition(".")
    field = ReleaseContext.model_fields.get(name)
    return f"reason for {column}" if column and name == "reasons" else field.title or key if field else key


def _words(value: Any) -> str:
    if isinstance(value, list):
        return (" to " if len(value) == 2 else " ").join(_words(one) for one in value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return number(value) if isinstance(value, int | float) else str(value)


def _printable(value: Any) -> Any:
    """The document without characters that a page does not have, or that turn around what stands beside them."""
    if isinstance(value, str):
        return "".join(one if one.isprintable() or one in " \n\t" else "\ufffd" for one in value)
    if isinstance(value, Mapping):
        return {_printable(key): _printable(one) for key, one in value.items()}
    return [_printable(one) for one in value] if isinstance(value, list | tuple) else value


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OTHERS = ("weasyprint",)
#: A page is converted in a second or two; a browser that hangs is given up.
_SECONDS = 120


def converter() -> str | None:
    """The path of the first converter that is installed, None if none is."""
    return next((path for name in (*_BROWSERS, *_OTHERS) if (path := shutil.which(name))), None)


def write_pdf(page: str, target: Path) -> None:
    """Write the page to a PDF file; raises PolicyError if no converter is installed, or if it fails."""
    program = converter()
    if program is None:
        names = ", ".join((_BROWSERS[0], *_OTHERS))
        raise PolicyError([Problem("out", "no program that converts to PDF is installed", f"one of {names}")])
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_text(page, encoding="utf-8")
        call = _pdf_command(program, source, made, Path(folder))
        try:
            done = subprocess.run(call, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - a path of ours
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PolicyError([Problem("out", f"{program} did not convert the page: {type(error).__name__}")]) from None
        if done.returncode or not made.is_file():
            raise PolicyError([Problem("out", f"{program} did not convert the page, exit code {done.returncode}")])
        shutil.copyfile(made, target)


def _pdf_command(program: str, source: Path, made: Path, folder: Path) -> list[str]:
    """The command; a browser gets a profile of its own, and no sandbox where it runs as root, which it refuses."""
    if Path(program).name in _OTHERS:
        return [program, str(source), str(made)]
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    options = ["--headless", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={folder / 'profile'}", *root]
    return [program, *options, f"--print-to-pdf={made}", source.as_uri()]
