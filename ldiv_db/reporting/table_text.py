"""What is said of a table as a screen shows it: audits, losses and profiles, in lines and tables of counts.

Each form yields its lines and tables in their order; `forms.py` enters them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldiv_db.auditing.subject import Suppressed
from ldiv_db.database.documents import POLICY_BYTES, parse_document, read_text
from ldiv_db.database.errors import classes_phrase, count_phrase, in_unit, people_phrase, rows_phrase
from ldiv_db.display import Part, facts_of, table_of
from ldiv_db.publishing.result import DISTINCT_CLASSES
from ldiv_db.requirements import Requirement, Verdict, plain

if TYPE_CHECKING:  # of what is shown, which is there
    from ldiv_db.auditing.audit import Audit
    from ldiv_db.measuring.answers import Answer
    from ldiv_db.measuring.measure import Measurement
    from ldiv_db.measuring.profile import Profile
    from ldiv_db.measuring.tables import TablesMeasurement
    from ldiv_db.recoding.loss import Loss, Precision


def notes_text(notes: Iterable[str]) -> Iterator[str]:
    return (f"note: {note}" for note in notes)


def yes_or_no(holds: bool | None) -> str:
    return "-" if holds is None else "yes" if holds else "NO"


def class_size_of(people: bool) -> str:
    """The name of class sizes, which are of rows: said where requirements count people."""
    return "rows of a class" if people else "class size"


def sizes_in_words(loss: Loss) -> str:
    return f"{loss.average_class_size:.2f} on average, {loss.smallest_class} to {loss.largest_class}"


def number_or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


@cache
def words_in(name: str) -> dict[str, Any]:
    """The words in the file of that name beside this module."""
    found: dict[str, Any] = parse_document(read_text(Path(__file__).with_name(name), POLICY_BYTES))
    return found


# -- audits ------------------------------------------------------------------------------------------

#: The columns of an audit; the worst class is that of the least margin.
_VERDICTS = ("requirement", "holds", "worst reached", "worst class", "margin", "violating classes")
#: How suppressed rows are taken.
_TAKEN: dict[Suppressed, str] = {
    "judge": "judged like any others",
    "ignore": "left out",
    "unknown": "counted in their classes, a NULL sensitive value as no value",
}


def _worst_class(verdict: Verdict, unit: str) -> str:
    if verdict.worst_class is None:
        return "-"
    one = "person" if unit == "people" else "row"
    return f"no. {verdict.worst_class:,}, {count_phrase(verdict.worst_rows or 0, one, unit)}"


def verdicts_text(audits: Sequence[Audit]) -> Iterator[Part]:
    """The verdicts of an audit, one table a sensitive attribute of which something is required."""
    for audit in (audit for audit in audits if audit.verdicts):
        unit = audit.unit
        rows = [
            (
                str(verdict.requirement),
                yes_or_no(verdict.holds),
                _reached(verdict, unit),
                _worst_class(verdict, unit),
                "-" if verdict.margin is None else f"{verdict.margin:g} {_margin_unit(verdict, unit)}".strip(),
                f"{verdict.violating_classes:,} of {verdict.classes:,}",
                f"{verdict.violating_rows:,}",
            )
            for verdict in audit.verdicts
        ]
        about = audit.sensitive or "rows alone"
        people = "" if audit.least_people is None else f", each of at least {people_phrase(audit.least_people)}"
        title = f"audit of {about}: {classes_phrase(audit.classes, 'distinct ')}, {rows_phrase(audit.rows)}{people}"
        yield table_of(title, (*_VERDICTS, f"{unit} in them"), rows)
        yield from audit.readings
        if any(verdict.requirement.others_known for verdict in audit.verdicts):
            yield f"others_known: the {audit.classes:,} classes, split by the other sensitive attributes, are judged"


def _margin_unit(verdict: Verdict, unit: str) -> str:
    counted = words_on(verdict.requirement, "rows" if verdict.by_rows else unit)["margin_unit"]
    one = {"rows": "row", "values": "value", "people": "person"}
    return one.get(counted, counted) if abs(verdict.margin or 0) == 1 else counted


def _reached(verdict: Verdict, unit: str) -> str:
    if verdict.worst is None:
        return "-"
    figure = verdict.requirement.reaches
    told = f"{figure}, by rows" if verdict.by_rows else in_unit(figure, unit)
    return f"{verdict.worst:g} ({told}), {words_on(verdict.requirement)['asked']}"


def words_on(requirement: Requirement, unit: str = "rows") -> dict[str, str]:
    """What a requirement means to who signs, what it asks of the figure that classes reach, what its margin counts."""
    every, name = words_in("requirements.yml"), requirement.name
    parameters = {key: plain(value) for key, value in requirement.parameters.items()}
    form = next((f"{name}_{key}" for key in parameters if f"{name}_{key}" in every), name)
    words = {key: in_unit(text.format_map(parameters), unit) for key, text in every[form].items()}
    beside = [every[key] for key in parameters if isinstance(every.get(key), str)]
    return {**words, "means": " ".join([words["means"], *beside])}


def audits_text(audits: Sequence[Audit]) -> Iterator[Part]:
    """The verdicts, and what became of suppressed rows and of groups that differ in size; then the warnings."""
    yield from verdicts_text(audits)
    for audit in audits:
        if audit.suppressed_rows:
            about = audit.sensitive or "rows alone"
            yield f"{about}: {audit.suppressed_rows:,} suppressed rows, {_TAKEN[audit.suppressed]}"
        if audit.unmatched_groups:
            yield f"{audit.sensitive}: {audit.unmatched_groups:,} groups differ in size between the two tables"
        yield from notes_text(audit.warnings)


# -- losses and columns ------------------------------------------------------------------------------


def told_in_words(precision: Sequence[Precision], most: int | None = None) -> Iterator[tuple[str, str]]:
    """How closely quasi-identifiers are told, a line each: all, or the few that are told least closely."""
    least = sorted(precision, key=lambda one: (-one.nine_tenths, -one.half))[:most]
    yield from (("precision" if one is least[0] else "", str(one)) for one in least)


def answers_in_words(loss: Loss, answers: Sequence[Answer] = ()) -> Iterator[tuple[str, str]]:
    """How far counts and other answers are off, a line each."""
    said = [*([loss.counts] if loss.counts else []), *answers]
    yield from (("" if number else "accuracy", str(one)) for number, one in enumerate(said))


def measurement_text(found: Measurement) -> Iterator[Part]:
    """The measures of a loss, a line each."""
    yield facts_of(f"{found.source} → {found.published}", _measures(found))


def _measures(found: Measurement) -> Iterator[tuple[str, str]]:
    loss = found.loss
    yield "rows of the source", f"{found.rows_in:,}"
    yield "rows published", f"{loss.rows_published:,}"
    yield "rows suppressed", f"{loss.rows_suppressed:,}"
    if found.rows_added:
        yield "rows beyond those of the source", f"{found.rows_added:,}"
    yield "sensitive cells left blank", f"{loss.cells_suppressed:,}"
    yield DISTINCT_CLASSES, f"{loss.classes:,}"
    yield class_size_of(found.of_people), sizes_in_words(loss)
    yield from told_in_words(loss.precision)
    yield from answers_in_words(loss, found.answers)
    yield "LM, NCP", f"{loss.lm_mean:.4f}, {loss.ncp_mean:.4f} of 1 per cell"
    yield from ((f"  LM of {name}", f"{value:.4f}") for name, value in loss.lm_by_column.items())
    yield "fully generalised", count_phrase(loss.stars, "cell", "cells")
    yield "DM", f"{loss.dm:,}"
    if found.l:
        yield f"CAVG for l = {found.l}", f"{loss.cavg(found.l):.4f}"
    if found.cm is not None:
        yield "CM", f"{found.cm:,}"
    if found.rows_uncovered is not None:
        yield "KL", loss.divergence
        yield "source rows that no published row covers", f"{found.rows_uncovered:,}"
        yield "published rows that cover no source row", f"{found.rows_unmatched:,}"
    if errors := found.queries:
        most, mean = errors.nine_tenths_relative_error, errors.mean_relative_error
        off = f"off by {errors.median_relative_error:.1%} (median), {most:.1%} (nine of ten), {mean:.1%} (mean)"
        yield f"{errors.queries:,} random counts", off


def tables_of(tables: Sequence[Mapping[str, Any]]) -> Part:
    """The rows of each of several tables, and what it loses if that is known."""
    figures = {"lm_mean": "lost per cell (LM)"} | ({"kl": "KL"} if any(t.get("kl") is not None for t in tables) else {})
    rows = [
        (
            t["table"],
            f"{t['rows_in']:,}",
            f"{t['rows_published']:,}",
            *(number_or_dash(t.get(name)) for name in figures),
        )
        for t in tables
    ]
    return table_of("tables", ("table", "rows", "published", *figures.values()), rows)


def tables_measurement_text(found: TablesMeasurement) -> Iterator[Part]:
    """What each table lost, how far counts over joined tables are off, and the measures of each table."""
    whole = found.as_dict()
    yield tables_of(whole["tables"])
    yield f"all tables: LM {whole['lm_mean']:.4f}, NCP {whole['ncp_mean']:.4f} of 1 per cell"
    yield from (f"{one.parent} with {one.child}: {one.counts}" for one in found.joins if one.counts)
    for one in found.tables.values():
        yield from measurement_text(one)


_COLUMNS = ("column", "type", "role", "reason", "form", "different values", "NULLs", "most frequent value")
#: Values of a sensitive column whose rows are shown.
_SHOWN = 20
#: Of the unique rows, the share that some column alone must make unique for the columns to be left out in turn.
_TELLING = 0.01


def profile_text(found: Profile) -> Iterator[Part]:
    """The columns, how far they tell rows apart, and the sensitive ones."""
    document = found.as_dict()
    rows = [
        (
            *(c[key] for key in ("column", "type", "role", "reason")),
            ", ".join(c["forms"]) or "-",
            *(f"{c['distinct']:,}", f"{c['nulls']:,}", f"{c['largest_share']:.1%}"),
        )
        for c in document["columns"]
    ]
    if found.individual is not None:
        who, counted = found.individual, found.rows - found.individual.nulls
        belong = count_phrase(counted, "row belongs", "rows belong")
        yield f"{belong} to {people_phrase(who.distinct)} if {who.column.name} identifies people"
    yield table_of(f"{found.table}: {rows_phrase(found.rows)}", _COLUMNS, rows)
    if document["uniqueness"]:
        yield from _uniqueness(document["uniqueness"])
    for column in document["sensitive"]:
        yield facts_of(f"sensitive: {column['column']}", _sensitive_facts(column))
        if column["sets"]:
            yield f"{column['column']}: {column['sets']}"


def _uniqueness(found: dict[str, Any]) -> Iterator[Part]:
    yield facts_of("how identifying the quasi-identifiers are together", _uniqueness_facts(found))
    few = [(", ".join(f["columns"]), f"{f['combinations']:,}", f"{f['unique_rows']:,}") for f in found["few_columns"]]
    if few:  # an attacker rarely knows all columns
        headings = ("columns", "different combinations", "unique rows")
        yield table_of("which few columns single out most rows", headings, few)
    parts = sorted(found["contributions"], key=lambda part: -part["explains"])
    if parts and parts[0]["explains"] >= _TELLING * found["unique_rows"]:
        # where many columns tell who somebody is, none is missed
        rows = [(p["column"], f"{p['unique_rows_without']:,}", f"{p['explains']:,}") for p in parts]
        yield table_of("unique rows without one column", ("without", "unique rows", "fewer by"), rows)


def _uniqueness_facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "different combinations", f"{found['combinations']:,}"
    yield "unique rows", f"{found['unique_rows']:,} ({found['unique_share']:.1%})"
    from ldiv_db.measuring.uniqueness import RARE  # noqa: PLC0415 - which who has a profile has imported

    rare, share = found[f"rows_below_{RARE}"], found[f"share_below_{RARE}"]
    yield f"rows that share theirs with fewer than {RARE - 1} others", f"{rare:,} ({share:.1%})"
    people = found["population"] or {"estimates": {}}
    for name, estimate in people["estimates"].items():
        uniques = estimate["unique_people"]
        number = "no estimate" if uniques is None else f"{uniques:,.0f} ({uniques / people['size']:.2%})"
        reason = f": {estimate['reason']}" if estimate["reason"] else ""
        chosen = ", the one to go by" if name == people["model"] else ""
        yield f"unique among {people['size']:,} people, by {name}{chosen}", f"{number}{reason}"


def _sensitive_facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "different values", f"{found['distinct']:,}"
    if found["distinct_folded"] < found["distinct"]:
        yield "different, ignoring case and blanks", f"{found['distinct_folded']:,}"
    yield "most frequent value", f"{found['largest_share']:.1%} of the rows"
    counts = found["histogram"][:_SHOWN]
    more = found["distinct"] + (found["nulls"] > 0) - len(counts)
    yield "rows by value", ", ".join(f"{count:,}" for count in counts) + (f" and of {more:,} more" if more else "")
    folded = found["largest_l_folded"]
    alike = "" if folded == found["largest_l"] else f", {folded} ignoring case and blanks"
    yield "largest feasible l", f"{found['largest_l']}{alike}"
    yield "entropy", f"{found['entropy']:.2f} bits"
