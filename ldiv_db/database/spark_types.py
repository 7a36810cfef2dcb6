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


def arrow_schema(fields: Any, zone: str) -> Any:
    """The fields of Spark's schema as Arrow has them, points in time in the session's zone: of types that we know."""
    import pyarrow  # noqa: PLC0415 - comes with the extra

    plain = {
        "boolean": pyarrow.bool_(),
        "tinyint": pyarrow.int8(),
        "smallint": pyarrow.int16(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "float": pyarrow.float32(),
        "double": pyarrow.float64(),
        "binary": pyarrow.binary(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us", zone),
        "timestamp_ntz": pyarrow.timestamp("us"),
    }

    def found(kind: Any) -> Any:
        name = kind.simpleString()
        decimal = name.startswith("decimal(")
        return pyarrow.decimal128(kind.precision, kind.scale) if decimal else plain.get(name, pyarrow.string())

    return pyarrow.schema([pyarrow.field(field.name, found(field.dataType)) for field in fields])
