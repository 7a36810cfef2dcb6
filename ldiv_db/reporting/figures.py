"""The charts of a report, drawn from its document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ldiv_db.charts.bars import Bar, bar_chart
from ldiv_db.charts.histogram import Bin, Mark, histogram
from ldiv_db.charts.scales import number

#: Columns whose distributions are drawn; a page of more would be long, and the document has them all.
MOST_COLUMNS = 24
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A chart with its caption."""

    caption: str
    chart: Markup


def figures(document: Document) -> dict[str, list[Figure]]:
    """The charts by the sections in which they stand; those of numbers that the document lacks are left out."""
    source = document.get("source") or {}
    utility = source.get("utility")
    return {
        "audit": [*_sizes(document["classes"]["sizes"]), *_largest_shares(document)],
        "identifiability": _risks(document["identifiability"], source.get("risk_before")),
        "attacks": _attacks(document["attacks"]["attacks"]),
        "loss": _loss(utility["loss"]["lm_by_column"]) if utility else [],
        "columns": list(_columns(utility["spreads"])) if utility else [],
    }


def _sizes(sizes: Document) -> list[Figure]:
    """How many classes have how many rows."""
    if not sizes["bins"]:
        return []
    bins = [_size_bin(one, sizes["width"]) for one in sizes["bins"]]
    marks = [Mark(sizes["least"], f"smallest class: {number(sizes['least'])} rows")]
    chart = histogram("Class sizes", bins, "rows of a class", "number of classes", marks=marks, whole=True)
    return [Figure("Class sizes", chart)]


def _size_bin(one: Document, width: int) -> Bin:
    low, high = one["from"], one["from"] + width - 1
    label = f"{number(low)} rows" if width == 1 else f"{number(low)} to {number(high)} rows"
    return Bin(low - 0.5, high + 0.5, one["classes"], label)


def _largest_shares(document: Document) -> Iterator[Figure]:
    """How many classes have a most frequent value of which share, and the bound of what is promised."""
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
        yield Figure(title, histogram(title, bins, "largest share (0 to 1)", "number of classes", marks=marks))


def _risks(found: Document, before: Document | None) -> list[Figure]:
    """Risk before and after, each kind's largest and mean."""
    threshold = found["threshold"]
    rows = []
    for risk in found["risks"]:
        for key, word in (("largest", "largest"), ("mean", "mean")):
            if risk[key] is not None:
                was = before[key] if before and risk["risk"] == "prosecutor" else None
                rows.append(Bar(f"{risk['risk'].capitalize()}, {word}", (was, risk[key]), threshold))
    if before is None:
        rows = [Bar(row.label, row.values[1:], row.bound) for row in rows]
    title = "Risk of re-identification" + (", before and after" if before else "")
    series = ("before (source)", "after (release)") if before else ()
    return [Figure(title, bar_chart(title, rows, "probability (0 to 1)", series, "threshold"))]


def _attacks(attacks: Sequence[Document]) -> list[Figure]:
    """What attackers gain against what is promised; ratios, which no axis of shares holds, stand in the table."""
    several = len({attack["sensitive"] for attack in attacks} - {None}) > 1
    rows = [
        Bar(_gain_name(attack, gain["measure"], several), (gain["gain"],), gain["bound"])
        for attack in attacks
        for gain in attack["gains"]
        if gain["bound"] is not None and gain["measure"] != "posterior / prior"
    ]
    title = "Attacks against what is promised"
    return [Figure(title, bar_chart(title, rows, "gain (share or probability, 0 to 1)"))] if rows else []


def _gain_name(attack: Document, measure: str, several: bool) -> str:
    """The attack and what it gains; the attribute too if there are several."""
    about = f" of {attack['sensitive']}" if several and attack["sensitive"] else ""
    same = measure == attack["attack"]
    return f"{attack['attack'].capitalize()}{about}{'' if same else f': {measure}'}"


def _loss(by_column: Mapping[str, float]) -> list[Figure]:
    rows = [Bar(name, (value,)) for name, value in by_column.items()]
    title = "Information lost by column"
    return [Figure(title, bar_chart(title, rows, "LM per cell (0: as in the source, 1: all lost)"))]


def _columns(spreads: Sequence[Document]) -> Iterator[Figure]:
    """The distribution of each column before and after, without its values."""
    for spread in spreads[:MOST_COLUMNS]:
        before, after = (_shares(spread[key]) for key in ("before", "after"))
        places = list(zip(spread["edges"], spread["edges"][1:], strict=False))
        bins, later = (
            [Bin(low, high, share, _place(low, high)) for (low, high), share in zip(places, shares, strict=True)]
            for shares in (before, after)
        )
        order = "by falling frequency" if spread["role"] == "sensitive" else "in their order"
        x = f"place among the {number(spread['values'])} values, {order}"
        chart = histogram(
            spread["column"], bins, x, "share of rows (%)", after=later, series=("before", "after"), whole=True
        )
        yield Figure(f"{spread['column']}, before and after", chart)


def _shares(rows: Sequence[float]) -> list[float]:
    """The rows in per cent of all of them."""
    whole = sum(rows)
    return [100 * one / whole if whole else 0.0 for one in rows]


def _place(low: int, high: int) -> str:
    return f"value {low + 1}" if high == low + 1 else f"values {low + 1} to {high}"
