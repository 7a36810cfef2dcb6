"""Columns of text that are numbers or times but for words that stand for no value, or for how numbers are written.

A file of R has `NA` for what is missing, one of SAS a dot, one of Excel `#N/A`, and a German one `3,14`: one of these
makes the whole column text. Codes that begin with a zero stay text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ldiv_db.database.catalog import Column
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import count_phrase
from ldiv_db.database.readings import NUMBERS, TIMES, Reading

#: What programs write where there is no value, in small letters.
_WORDS = (
    "", "na", "n/a", "n.a.", "n. a.", "#n/a", "#na", "<na>", "nan", "-nan", "nat", "null", "#null!", "(null)",
    "\\n", "none", "nil", "missing", "unknown", "undefined", "#div/0!", "#value!", "#ref!", "#num!", "#name?", ".",
    "..", "-", "--", "---", "–", "—", "?", "??", "k.a.", "k. a.", "keine angabe", "s/d", "n/d", "nd", "s.d.", "nc",
    "n.c.", "inconnu", "unbekannt", "desconocido", "sconosciuto", "onbekend", "okänt", "not available",
    "not applicable", "no data", "(missing)", "(blank)",
)  # fmt: skip


#: How a column of text is read as numbers or times, and the words for it.
Told = tuple[Reading, str]


def find_numbers(engine: Engine, table: Table, columns: Sequence[Column]) -> dict[str, Told]:
    """The columns that are numbers or times once they are read so, by name; a statement for each column of text."""
    asked = [column for column in columns if column.type == "VARCHAR" or column.is_float]
    words = engine.load("words", {"word": "VARCHAR"}, [(word,) for word in _WORDS]) if asked else None
    found = {}
    for column in asked:
        if column.is_float:  # of which some may be no number at all
            nans = engine.scalar("measuring/profile/count_nans", source=table, column=column.name)
            reading = Reading(column.name, ["nan"], None, NUMBERS) if nans else None
            nulls = {"nan": int(nans)}
        else:
            rows = engine.rows("measuring/profile/find_numbers", source=table, words=words, column=column.name)
            nulls = {str(spelling): int(count) for kind, spelling, count in rows if kind == "none"}
            kinds = {kind: int(count) for kind, _, count in rows if kind != "none"}
            reading = _reading(column, nulls, kinds)
        if reading is not None:
            found[column.name] = reading, _words_for(reading, nulls)
    if words:
        engine.drop(words)
    return found


def _reading(column: Column, nulls: Mapping[str, int], kinds: Mapping[str, int]) -> Reading | None:
    if not kinds or sum(nulls.values()) > sum(kinds.values()):
        return None
    if set(kinds) == {"date"} and nulls:
        return Reading(column.name, list(nulls), None, TIMES)
    if kinds.keys() <= {"number", "comma", "percent"} and "comma" in kinds:
        return Reading(column.name, list(nulls), ",", NUMBERS)
    if kinds.keys() <= {"number", "grouped", "percent"} and ("grouped" in kinds or "percent" in kinds):
        return Reading(column.name, list(nulls), ".", NUMBERS)
    return Reading(column.name, list(nulls), None, NUMBERS) if set(kinds) == {"number"} and nulls else None


def _words_for(reading: Reading, nulls: Mapping[str, int]) -> str:
    listed = ", ".join(f"`{spelling}`" if spelling else "blanks" for spelling in nulls)
    decimals = {",": ", with decimal commas", ".": ", with commas or `%`", None: ""}[reading.decimal]
    return decimals + (f"; {count_phrase(sum(nulls.values()), 'row', 'rows')} of {listed} as NULL" if nulls else "")


def settings_of(reading: Reading) -> dict[str, Any]:
    """The reading as a policy says it."""
    said = {"null_values": list(reading.nulls), "decimal": reading.decimal}
    return {key: value for key, value in said.items() if value}
