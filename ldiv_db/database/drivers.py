"""Drivers of Python's: whose dialect they speak, the rows that they fetch, and the types of these."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import DatabaseError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.traits_there import TRAITS

#: Rows that are fetched, or sent, at once.
AT_ONCE = 10_000
#: Types of PostgreSQL's, by their numbers, that are read as they are: numbers, truth, days and times. All others are
#: read as text, as `bpchar` is equal to it without its blanks, and an enum's type lists values that no row need have.
_PLAIN_OIDS = (16, 20, 21, 23, 700, 701, 1082, 1114, 1184, 1700)
_TEXT_OIDS = (25, 1043)
#: Types of Spark that are read, by its schemas' names; not nested and collated ones, and those without a counterpart.
_SPARK_READS = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
                "timestamp", "timestamp_ntz")  # fmt: skip
#: The types of our own database by those of Python's values.
_TYPES: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", date: "DATE", datetime: "TIMESTAMP"}
#: More than a BIGINT holds.
_WIDE = 2**63
_NO_DECIMAL = "a value has more than 38 digits, or is not a number: give it a type in a view"


def dialect_of(connection: Any) -> str:
    """The dialect that a connection's driver speaks, or an empty text."""
    vendor = ""
    if hasattr(connection, "adbc_get_info"):
        vendor = str(connection.adbc_get_info().get("vendor_name", "")).lower()
    module = type(connection).__module__.split(".")[0]
    named = [name for name, there in TRAITS.items() if (vendor == there.vendor if vendor else module in there.modules)]
    return named[0] if named else ""


def fetch_parts(cursor: Any, sql: str) -> Iterator[Sequence[Any]]:
    """The rows of a SELECT, so many at once: psycopg streams them, as its client would first hold all."""
    if hasattr(cursor, "stream"):
        rows = cursor.stream(sql)
        while part := list(itertools.islice(rows, AT_ONCE)):
            yield part
        return
    cursor.execute(sql)
    while part := cursor.fetchmany(AT_ONCE):
        yield part


def fetch_rows(engine: Engine, name: str, parts: Iterable[Sequence[Any]], columns: Sequence[str]) -> Relation:
    """Rows that come in parts as a TEMP table of the engine's, of these columns; later values may widen their types."""
    told, before, made = [Told() for _ in columns], dict.fromkeys(columns, "VARCHAR"), None
    for part in parts:
        for one, values in zip(told, zip(*part, strict=True), strict=True):
            one.add(values)
        types = {column: one.type for column, one in zip(columns, told, strict=True)}
        made = made or engine.load(name, types, [])
        for column in columns:
            if types[column] != before[column] and engine.count(made):
                engine.execute(f"ALTER TABLE {made.sql()} ALTER {Identifier(column).sql()} TYPE {types[column]}")
        engine.append(made, types, part)
        before = types
    return made or engine.load(name, before, [])


def fetch_arrow(engine: Engine, name: str, cursor: Any, columns: Sequence[str]) -> Relation:
    """As `fetch_rows`, by a driver that hands Arrow on; raises what the driver does where it cannot go on."""
    lost: list[BaseException] = []
    try:
        return engine.copy(name, engine.register(name, _plain(cursor.fetch_record_batch(), columns, lost)))
    except DatabaseError:
        if lost:  # of which our own database knows nothing
            raise lost[0] from None
        raise


def told_type(kind: Any, dialect: str, is_adbc: bool) -> str:
    """The type of a column as far as a driver tells: `text` that may be read as it is, `other`, `plain` or `unread`."""
    if dialect == "spark":
        return "text" if kind in _SPARK_READS or kind.startswith(("decimal(", "varchar(", "char(")) else "unread"
    if dialect != "postgres":
        return "text"
    if is_adbc:
        named = str(getattr(kind, "type_name", kind))
        return "plain" if named == "numeric" or ("extension" not in str(kind) and named != "string") else "other"
    return "plain" if kind in _PLAIN_OIDS else "text" if kind in _TEXT_OIDS else "other"


@dataclass
class Told:
    """What the values of a column tell of its type, as far as they have come."""

    kinds: set[type] = field(default_factory=set)
    scale: int = 0
    is_wide: bool = False
    has_zone: bool = False

    def add(self, values: Sequence[Any]) -> None:
        """Look at more values; raises DatabaseError for numbers without an end."""
        kinds = {type(value) for value in values} - {type(None)}
        if Decimal in kinds:
            decimals = [value for value in values if isinstance(value, Decimal)]
            if not all(value.is_finite() for value in decimals):
                raise DatabaseError(_NO_DECIMAL)
            self.scale = max(self.scale, *(-int(value.as_tuple().exponent) for value in decimals))
        if int in kinds:
            self.is_wide |= max(abs(value) for value in values if type(value) is int) >= _WIDE
        if datetime in kinds:
            self.has_zone |= any(value.tzinfo for value in values if type(value) is datetime)
        self.kinds |= kinds

    @property
    def type(self) -> str:
        """Our type for the column, text where it has no values; raises DatabaseError if they are of several."""
        kinds = self.kinds
        if Decimal in kinds and kinds <= {Decimal, int}:
            return f"DECIMAL(38, {self.scale})"
        if kinds == {int} and self.is_wide:
            return "HUGEINT"
        if kinds == {datetime} and self.has_zone:
            return "TIMESTAMP WITH TIME ZONE"
        if kinds == {int, float}:
            return "DOUBLE"
        if len(kinds) > 1:
            what = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise DatabaseError(f"a column has values of several types, {what}: give it one in a view")
        return _TYPES.get(next(iter(kinds), str), "VARCHAR")


def _plain(rows: Any, renamed: Sequence[str], lost: list[BaseException]) -> Any:
    """Rows of Arrow's, their columns renamed, without types of a driver's own.

    Numbers that it hands on as text are decimals. Where there are no such types a part is read at a time, and the
    error that ends that is added to `lost`.
    """
    import pyarrow  # noqa: PLC0415 - an extra

    def parts() -> Iterator[Any]:
        try:
            for part in rows:
                yield pyarrow.record_batch(part.columns, schema=schema)
        except BaseException as error:
            lost.append(error)
            raise

    if not any(isinstance(f.type, pyarrow.BaseExtensionType) or pyarrow.types.is_null(f.type) for f in rows.schema):
        schema = pyarrow.schema([field.with_name(name) for field, name in zip(rows.schema, renamed, strict=True)])
        return pyarrow.RecordBatchReader.from_batches(schema, parts())
    table = rows.read_all().rename_columns(list(renamed))
    for place, entry in enumerate(table.schema):
        if isinstance(entry.type, pyarrow.BaseExtensionType):
            column = table.column(place).cast(entry.type.storage_type)
            if getattr(entry.type, "type_name", "") == "numeric":
                column = _decimals(column)
            table = table.set_column(place, entry.name, column)
        elif pyarrow.types.is_null(entry.type):
            table = table.set_column(place, entry.name, table.column(place).cast(pyarrow.string()))
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
