"""Values that a policy names: read as they are written, then compared in the type of their column.

What is written is a text, or None for NULL. In the type of a column `1.5` is 1.50 of a DECIMAL(4,2), and `010` is 10 of
an INTEGER but itself of a VARCHAR. A value is then the text that the database writes for it, which is what every
statement compares; so `in_type` is the only place where names and types meet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Step
from ldiv_db.database.templates import SqlType

#: A value as it is named: its text, or None for NULL.
Named = str | None
#: Types whose values have several spellings; of the others (texts, enums, nested) the text is the value.
_SPELT = re.compile(
    r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|BOOLEAN|UUID|DATE|TIME(STAMP)?(_S|_MS|_NS)?"
    r"( WITH TIME ZONE)?)"
)
_EXACT = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL.*")
_NULLS = ("", "~", "null", "Null", "NULL")


def named_value(written: Any) -> Named:
    """The value that is written: a text, or what Python has for a number, a truth value or a time; None for NULL.

    Raises ValueError for what is no value.
    """
    if written is None or isinstance(written, str):
        return written
    if isinstance(written, bool):
        return str(written).lower()
    if isinstance(written, datetime):
        return written.isoformat(" ")
    if isinstance(written, bytes | Mapping | Sequence | Set):
        raise ValueError("names values: texts, numbers, times, true, false and null")
    return str(written)


def read_named(text: str) -> Named:
    """The value that a command line names: `null` is NULL, and what stands in double quotes is a text as it is."""
    text = text.strip()
    if is_quoted(text):
        return text[1:-1].replace('""', '"')
    return None if text in _NULLS[1:] else text


def is_quoted(text: str) -> bool:
    """Whether a text on a command line stands in double quotes."""
    return len(text) >= 2 and text[0] == text[-1] == '"'


def shown_value(value: Named, reserved: Sequence[str] = ()) -> str:
    """The value as a command line names it; `reserved` words have a meaning of their own there."""
    if value is None:
        return "null"
    plain = value == value.strip() and value not in (*_NULLS, *reserved) and not value.startswith('"')
    return value if plain else '"{}"'.format(value.replace('"', '""'))


def in_order(value: Named) -> tuple[bool, str]:
    """Sorts named values, NULL first."""
    return value is not None, value or ""


def in_type(engine: Engine, kind: str, values: Sequence[Named]) -> tuple[dict[Named, Named], list[Named]]:
    """What a column of the SQL type `kind` writes for each of the values, and those that are none of that type."""
    asked = [value for value in values if value is not None]
    if not asked or not _SPELT.fullmatch(kind):
        return {value: value for value in values}, []
    listed = engine.load("named", {"place": "INTEGER", "value": "VARCHAR"}, list(enumerate(asked)))
    rows = engine.rows("requirements/read_values", named=listed, type=SqlType(kind))
    engine.drop(listed)
    read = {asked[place]: text for place, text in rows if _is_same(kind, asked[place], text)}
    texts: dict[Named, Named] = {value: read.get(value, value) for value in asked}
    return texts | ({None: None} if None in values else {}), [value for value in asked if value not in read]


def folded(engine: Engine, texts: Mapping[Named, Named], same: Sequence[Step]) -> dict[Named, Named]:
    """The texts, by the names that stand for them, after the steps by which those of a column are the same."""
    asked = [(place, name, text) for place, (name, text) in enumerate(texts.items()) if text is not None]
    if not asked or not same:
        return dict(texts)
    rows = [(place, text) for place, _, text in asked]
    listed = engine.load("named", {"place": "INTEGER", "value": "VARCHAR"}, rows)
    found = dict(engine.rows("requirements/fold_named", named=listed, same=list(same)))
    engine.drop(listed)
    return dict(texts) | {name: found[place] for place, name, _ in asked}


def _is_same(kind: str, written: str, text: str | None) -> bool:
    """Whether nothing was rounded away when the value was read."""
    if text is None or not _EXACT.fullmatch(kind):
        return text is not None
    try:
        return Decimal(written) == Decimal(text)
    except InvalidOperation:
        return False


def twice(values: Mapping[Named, Named]) -> list[tuple[Named, Named]]:
    """The pairs of names that stand for one value."""
    first: dict[Named, Named] = {}
    pairs = []
    for name, value in values.items():
        if value in first:
            pairs.append((first[value], name))
        first.setdefault(value, name)
    return pairs


def listing(values: Sequence[Named], most: int = 10) -> str:
    """The values in a message; the policy names them itself."""
    return ", ".join(
        [*("NULL" if value is None else repr(value) for value in values[:most]), *["…"] * (len(values) > most)]
    )
