"""What attacks found as a screen shows it: a line a gain, and the figures that go with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ldiv_db.database.errors import classes_phrase, in_unit, rows_phrase
from ldiv_db.display import Part, table_of
from ldiv_db.reporting.table_text import notes_text, number_or_dash, yes_or_no

if TYPE_CHECKING:  # of what is shown, which is there
    from ldiv_db.attacking.attacks import Attacks
    from ldiv_db.attacking.gains import Attack, Gain

_GAINS = ("attack", "sensitive", "what is measured", "best gain", "bound promised", "holds")


def attacks_text(found: Attacks, table: str = "the table") -> Iterator[Part]:
    """The attacks as a table, a line a gain, and the counts that go with them."""
    rows = [
        (
            attack.title,
            attack.sensitive or "-",
            gain.measure,
            number_or_dash(gain.gain),
            "nothing promised" if gain.bound is None else number_or_dash(gain.bound),
            _verdict(attack, gain),
        )
        for attack in found.attacks
        for gain in attack.gains
    ]
    yield table_of(
        f"{table}: {rows_phrase(found.rows)}, {classes_phrase(found.classes, 'distinct ')}",
        _GAINS,
        rows,
    )
    for attack in found.attacks:
        yield from _attack_figures(attack)
    yield from notes_text((*found.lost, *found.warnings))
    for attack in found.attacks:
        if attack.untried:
            more = "--budget, or --replay-limit," if attack.name == "replay" else "--budget"
            yield f"not finished: {attack.name} was {attack.untried}; a larger {more} tries more"
    if found.holds is None and not found.undecided:
        yield "nothing is promised of this table: --require or --policy say what should hold"


def _verdict(found: Attack, gain: Gain) -> str:
    """Say if the promise is kept; an unfinished attack can only show that it is broken."""
    if gain.holds is not False and (found.untried or (found.at_least and gain.bound is not None)):
        return "not finished" if found.untried else "not known"
    return yes_or_no(gain.holds)


def figure_name(attack: str, figure: str, of_people: bool = False) -> str:
    """A figure of an attack as people read it."""
    from ldiv_db.attacking.attacks import ATTACKER_OF  # noqa: PLC0415 - all attacks, for what shows the figures of one
    from ldiv_db.attacking.base import WORDS  # noqa: PLC0415

    name = {**WORDS, **ATTACKER_OF[attack].words}.get(figure, figure.replace("_", " "))
    return in_unit(name, "people") if of_people else name


def _attack_figures(found: Attack) -> Iterator[Part]:
    if found.figures:
        named = ((figure_name(found.name, name, found.of_people), value) for name, value in found.figures.items())
        figures = ", ".join(f"{name} {_figure(value)}" for name, value in named)
        yield f"{found.title}{f' of {found.sensitive}' if found.sensitive else ''}: {figures}"
    if found.shown:
        rows = [map(_figure, row.values()) for row in found.shown]
        yield table_of(f"most certain: {found.sensitive}", list(found.shown[0]), rows)


def _figure(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(number_or_dash, value)) if len(value) > 2 else " to ".join(map(number_or_dash, value))
    if isinstance(value, float):
        return number_or_dash(value)
    return f"{value:,}" if isinstance(value, int) else "NULL" if value is None else str(value)
