"""The page of a report: one HTML file that asks for nothing else, made from its document alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from ldiv_db.charts.scales import number
from ldiv_db.charts.style import CHART_STYLE
from ldiv_db.reporting.figures import figures
from ldiv_db.reporting.glossary import GLOSSARY

_FOLDER = Path(__file__).parent / "templates"


def page_of(document: Mapping[str, Any]) -> str:
    """The page as text, the same for the same document."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "per_cent": _per_cent, "words": _words}
    shown = _printable(document)
    template = environment.get_template("report.html.j2")
    return template.render(**shown, figures=figures(shown), chart_style=CHART_STYLE, glossary=GLOSSARY)


def _per_cent(share: float | None) -> str:
    return "–" if share is None else f"{number(round(100 * share, 2))} %"


def _words(value: Any) -> str:
    """A figure of an attack in words."""
    if isinstance(value, list):
        return " ".join(_words(one) for one in value)
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
