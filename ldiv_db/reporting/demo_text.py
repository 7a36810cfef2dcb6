"""The demonstrations as a screen shows them: rows before and after, the run, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ldiv_db.database.errors import rows_phrase
from ldiv_db.display import Part, table_of
from ldiv_db.publishing.result import Result
from ldiv_db.reporting.text import examples_text, result_text
from ldiv_db.running.demo import Demo, next_steps


def demo_text(demo: Demo) -> Iterator[Part]:
    """The demonstration in words and tables, what joins of several tables have, and what to try next."""
    result = demo.result
    before, after = _clinic_in_words(result) if demo.joined else _adult_in_words(result)
    yield before
    yield from (table_of(f"before: {name}", columns, rows) for name, columns, rows in demo.before)
    yield from examples_text(result.examples)
    yield after
    yield from (
        table_of(f"after: {name}" if name else "one class", columns, rows) for name, columns, rows in demo.after
    )
    if demo.joined:
        yield "\nThe tables are joined as before: only rows that are left out are missing.\n"
        rows = [(name, f"{one:,}", f"{one - other:,}", f"{other:,}") for name, (one, other) in demo.joined.items()]
        yield table_of("joins", ("join of", "rows before", "left out", "rows after"), rows)
        yield "\nBy what an attacker knows, rows that are left out, and the mean loss of a label (0 to 1):\n"
        yield table_of("attackers", ("who knows", "left out", *demo.policy.tables), list(_attackers(demo)))
    yield ""
    yield from result_text(replace(result, examples=()))
    verdict = "holds" if all(found.holds for found in result.audits) else "FAILS"
    read = "tables and their join alone" if demo.joined else "table alone"
    yield f"\nThe audit read the published {read}: the policy {verdict}.\n\nWhat to try next:"
    yield "\n".join(f"  {line}" for line in next_steps(demo))


def _attackers(demo: Demo) -> Iterator[tuple[str, ...]]:
    """Against each attacker how many rows are left out, and the mean loss of a cell of each table."""
    for who, result in demo.attackers.items():
        losses = [f"{one.loss.lm_mean:.3f}" if one.weight else "-" for one in result.tables]
        yield who, f"{result.loss.rows_suppressed:,}", *losses


def _adult_in_words(result: Result) -> tuple[str, str]:
    frequency = next(found["parameters"]["l"] for found in result.requirements if found["name"] == "frequency")
    return (
        f"Adult (US census, 1994): {result.loss.rows_published + result.loss.rows_suppressed:,} people, one a row."
        " Whoever knows a neighbour's age,\nschooling, family and so on could look up his or her occupation. Three"
        " people before, and as the release has them:\n",
        f"\nNow everybody shares what identifies them with at least {result.loss.smallest_class - 1} others, and no"
        f" occupation is that of more than\none in {frequency} of them. One of these groups (classes):\n",
    )


def _clinic_in_words(result: Result) -> tuple[str, str]:
    counts = [f"{rows_phrase(t['rows_in'])} of {t['table']}" for t in (one.as_dict() for one in result.tables)]
    others = (result.loss.smallest_class or 1) - 1
    return (
        f"A made-up clinic: {', '.join(counts)}. Whoever knows when somebody was born and admitted could look\nup"
        " what he or she had. Some patients:\n",
        f"\nNow everybody shares what identifies them, in all tables, with at least {others} others, and no value is\n"
        "that of more than one in three of them. Numbers of this release stand for keys. Other patients:\n",
    )
