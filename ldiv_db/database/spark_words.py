"""Words of Spark's: what it says when it fails, in one sentence, its types that are read, and names as it takes them.

A sentence has no traces of Java's, and no values that they may quote.
"""

from __future__ import annotations

import re

from ldiv_db.database.names import Relation

_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\]\s*(.*)")
#: The names of Java's exceptions, which stand before their messages.
_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error):?\s*")
#: Conditions whose sentences quote values of the data.
_QUOTING = ("CAST_", "INVALID_INPUT", "CANNOT_PARSE", "MALFORMED", "DIVIDE", "ARITHMETIC", "NUMERIC_VALUE", "UDF")


def sentence(error: BaseException) -> str:
    """The first sentence of what Spark says, or the name of its condition where that would quote data."""
    text = str(error).strip() or type(error).__name__
    if found := _CONDITION.search(text):
        condition, said = found.groups()
        return condition if condition.startswith(_QUOTING) else said.strip() or condition
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in lines if line.startswith("Caused by:")), lines[0] if lines else text)
    return _CLASS.sub("", cause.removeprefix("Caused by:").strip())[:300] or type(error).__name__


#: Types of Spark that are read, by the names that its schemas have for them; decimals and texts of a length are, too.
_READ = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
         "timestamp_ntz")  # fmt: skip


def is_read(kind: str) -> bool:
    """True if values of a type are read; not of nested and collated ones, and those without a counterpart."""
    return kind in _READ or kind.startswith(("decimal(", "varchar(", "char("))


def quoted(table: Relation) -> str:
    """The table's name as Spark takes it, whatever characters are in it."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in table.parts)
