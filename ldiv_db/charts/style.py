"""The colours of charts, dark and light: those of Okabe and Ito, which colour-blind readers tell apart."""

from __future__ import annotations

from markupsafe import Markup

_LIGHT = "--c1:#0072B2;--c2:#D55E00;--c3:#009E73;--c4:#7A4A68;--ink:#1b1f24;--soft:#57606a;--grid:#d8dee4;--paper:#fff"
_DARK = (
    "--c1:#56B4E9;--c2:#E69F00;--c3:#2FC4A0;--c4:#CC79A7;--ink:#e6edf3;--soft:#9da7b3;--grid:#343b44;--paper:#14181d"
)
#: The style of charts; a page has it once. Paper is white.
CHART_STYLE = Markup(
    f".chart{{{_LIGHT};display:block;width:100%;height:auto;max-width:32rem;overflow:visible}}"
    f"@media screen and (prefers-color-scheme:dark){{.chart{{{_DARK}}}}}"
    ".chart text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:var(--ink);"
    "paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}"
    ".chart .soft{fill:var(--soft)}.chart .tick{font-size:11px;fill:var(--soft);font-variant-numeric:tabular-nums}"
    ".chart .grid{stroke:var(--grid);stroke-width:1}.chart .axis{stroke:var(--soft);stroke-width:1}"
    ".chart .bound{stroke:var(--ink);stroke-width:2}.chart .dashed{stroke-dasharray:4 3}"
    ".chart .s1{fill:var(--c1)}.chart .s2{fill:var(--c2)}.chart .s3{fill:var(--c3)}.chart .s4{fill:var(--c4)}"
    ".chart .outline{fill:none;stroke:var(--c2);stroke-width:2}"
    ".chart .frontier{fill:none;stroke:var(--ink);stroke-width:1.5}"
    ".chart .point{stroke:var(--paper);stroke-width:1}"
    ".chart a:focus .point,.chart a:hover .point{stroke:var(--ink);stroke-width:2}"
)


def standalone(chart: Markup) -> Markup:
    """A chart that brings its style, for a page of others such as a notebook."""
    return Markup("<style>{}</style>{}").format(CHART_STYLE, chart)
