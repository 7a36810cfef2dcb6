"""The types of Spark's columns by those of our own database, and which of them have none there."""

from __future__ import annotations

from typing import Any

#: Types of Spark by the names that its schemas have for them; decimals keep their digits.
_TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


def type_of(field: Any) -> str | None:
    """Our own type of a field of Spark's schema; None for nested and collated ones, and those without a counterpart."""
    name = str(field.dataType.simpleString())
    if name.startswith("decimal("):
        return name.upper()
    return "VARCHAR" if name.startswith(("varchar(", "char(")) else _TYPES.get(name)


def shown(field: Any) -> str:
    """The field's type as people may see it: of nested types the kind alone, whose members may have telling names."""
    return str(field.dataType.simpleString()).partition("<")[0]
