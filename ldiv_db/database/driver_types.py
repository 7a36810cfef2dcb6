"""Types of what drivers hand on: of Python's values, and of columns of Arrow's that have a type of the driver's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ldiv_db.database.errors import DatabaseError

#: The types of our own database by those of Python's values.
_TYPES: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", date: "DATE", datetime: "TIMESTAMP"}
#: More than a BIGINT holds.
_WIDE = 2**63
_NO_DECIMAL = "a value has more than 38 digits, or is not a number: give it a type in a view"


def type_of_values(kinds: set[type], values: Sequence[Any]) -> str:
    """The type of our own database for a column of Python's values, of these types; raises DatabaseError for several.

    What there is no type for, as a UUID, is read as text.
    """
    kinds = kinds - {type(None)}
    if Decimal in kinds and not all(value.is_finite() for value in values if isinstance(value, Decimal)):
        raise DatabaseError(_NO_DECIMAL)
    if Decimal in kinds and kinds <= {Decimal, int}:
        scale = max(0, *(-int(value.as_tuple().exponent) for value in values if isinstance(value, Decimal)))
        return f"DECIMAL(38, {scale})"
    if kinds == {int} and max(abs(value) for value in values if value is not None) >= _WIDE:
        return "HUGEINT"
    if kinds == {datetime} and any(value.tzinfo for value in values if value is not None):
        return "TIMESTAMP WITH TIME ZONE"
    if kinds <= {int, float} and len(kinds) == 2:
        return "DOUBLE"
    if len(kinds) > 1:
        what = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise DatabaseError(f"a column has values of several types, {what}: give it one in a view")
    return _TYPES.get(next(iter(kinds), str), "VARCHAR")


def read_plainly(table: Any) -> Any:
    """A table of Arrow's without types of its driver's own: numbers that it hands on as text are decimals."""
    import pyarrow  # noqa: PLC0415 - an extra

    for place, field in enumerate(table.schema):
        if isinstance(field.type, pyarrow.BaseExtensionType):
            column = table.column(place).cast(field.type.storage_type)
            if getattr(field.type, "type_name", "") == "numeric":
                column = _decimals(column)
            table = table.set_column(place, field.name, column)
        elif pyarrow.types.is_null(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pyarrow.string()))
    return table


def _decimals(column: Any) -> Any:
    """Texts of numbers as decimals, with the digits that the longest has after its point."""
    import pyarrow  # noqa: PLC0415 - an extra

    texts = [text for chunk in column.chunks for text in chunk.to_pylist()]
    scale = max((len(text.partition(".")[2]) for text in texts if text), default=0)
    try:
        return pyarrow.array(texts, pyarrow.string()).cast(pyarrow.decimal128(38, scale))
    except pyarrow.ArrowInvalid:  # NaN, infinity, or more digits
        raise DatabaseError(_NO_DECIMAL) from None
