"""Columns read as what they stand for: texts that say there is no value are NULL, and the others numbers or times.

Many programs write a missing number as text (`NA`, `?`, `.`) or with a comma, so that a column of a file, or of a table
that was loaded from one, is text. A view reads it; the source stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem, count_phrase, refuse
from ldiv_db.database.names import Identifier, literal

NUMBERS, TIMES = ("BIGINT", "DOUBLE"), ("DATE", "TIMESTAMP")
#: What every text of a type looks like, where a cast would take more, or round it.
_FORMS = {"BIGINT": r"^[-+]?[0-9]+$", "DOUBLE": r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$"}
#: What may stand between digits, and numbers with a decimal sign: the other one parts thousands alone, so that `2.5`
#: is not read as 25 where the decimal sign is a comma.
_BETWEEN = r"[\s\pZ%'']"
_GROUPED = r"^[-+]?([0-9]*|[0-9]{{1,3}}([{other}][0-9]{{2,3}})*[{other}][0-9]{{3}})([{sign}][0-9]*)?([eE][-+]?[0-9]+)?$"


@dataclass(frozen=True)
class Reading:
    """How a column is read: texts that are NULL, its decimal sign, types of which one takes all unless `optional`."""

    column: str
    nulls: Sequence[str] = ()
    decimal: str | None = None
    types: Sequence[str] = ()
    optional: bool = False


@dataclass(frozen=True)
class _Told:
    """A column of the source with how it is read; what is made of it is SQL."""

    column: Column
    reading: Reading

    @property
    def name(self) -> str:
        return Identifier(self.column.name).sql()

    @property
    def other(self) -> str:
        """The sign that parts thousands beside the decimal sign."""
        return "." if self.reading.decimal == "," else ","

    @property
    def text(self) -> str:
        """NULL where the text stands for no value."""
        nulls = ", ".join(literal(null.strip()) for null in self.reading.nulls)
        return f"CASE WHEN trim({self.name}) NOT IN ({nulls}) THEN {self.name} END" if nulls else self.name

    @property
    def digits(self) -> str:
        """The text of a number without blanks, apostrophes and per cent signs."""
        return f"regexp_replace({self.text}, '{_BETWEEN}', '', 'g')"

    @property
    def value(self) -> str:
        """The value that is to be cast: NULL where it stands for none."""
        reading, name = self.reading, self.name
        if self.column.is_number:
            nulls = ", ".join(f"CAST({literal(text.strip())} AS DOUBLE)" for text in reading.nulls if _is_number(text))
            return f"CASE WHEN {name} NOT IN ({nulls}) THEN {name} END" if nulls else name
        if reading.types and reading.decimal:
            return f"replace(replace({self.digits}, '{self.other}', ''), '{reading.decimal}', '.')"
        return f"trim({self.text})" if reading.types else self.text

    def misfits(self, kind: str) -> str:
        """The condition that a value is not of a type."""
        value, reading = self.value, self.reading
        if self.column.is_number:
            return f"{value} <> floor({value}) OR abs({value}) > 1e15" if kind == "BIGINT" else "false"
        forms = {value: _FORMS[kind]} if kind in _FORMS else {}
        if reading.decimal and reading.types:
            forms[self.digits] = _GROUPED.format(sign=reading.decimal, other=self.other)
        misses = "".join(f"NOT regexp_matches({of}, '{form}') OR " for of, form in forms.items())
        return f"{value} IS NOT NULL AND ({misses}TRY_CAST({value} AS {kind}) IS NULL)"

    def read_as(self, kind: str | None) -> str:
        """The column of the view by the type that takes all values; without one it stays text."""
        if self.column.is_number:
            return f"CAST({self.value} AS BIGINT)" if self.column.is_float and kind == "BIGINT" else self.value
        return self.text if kind is None else f"CAST({self.value} AS {kind})"


def read_by(
    engine: Engine,
    source: Table,
    readings: Sequence[Reading],
    way_of: Callable[[Column], str] = lambda column: "",
) -> Table:
    """A view of the source with columns read so, or itself; raises PolicyError for values that no type takes.

    `way_of` says how else texts of a column are read, empty if nothing is known.
    """
    wanted = {reading.column.lower(): reading for reading in readings}
    columns = columns_of(engine, source) if wanted else []
    told = [_Told(column, wanted[column.name.lower()]) for column in columns if column.name.lower() in wanted]
    told = [one for one in told if one.column.type == "VARCHAR" or one.column.is_number]
    if not told:
        return source
    asked = [(one, kind) for one in told for kind in one.reading.types]
    misfits: dict[tuple[str, str], int] = {}
    if asked:
        counted = ", ".join(f"count(CASE WHEN {one.misfits(kind)} THEN 1 END)" for one, kind in asked)
        (counts,) = engine.execute(f"SELECT {counted} FROM {source.sql()}")
        misfits = {(one.column.name, kind): count for (one, kind), count in zip(asked, counts, strict=True)}
    read, problems = {}, []
    for one in told:
        name, kinds = one.column.name, one.reading.types
        fits = [kind for kind in kinds if not misfits[name, kind]]
        if kinds and not (fits or one.reading.optional or one.column.is_number):
            what = "numbers" if kinds == NUMBERS else "times" if kinds == TIMES else "numbers or times"
            what += "" if kinds == NUMBERS else " such as 2024-05-31"
            unread = count_phrase(min(misfits[name, kind] for kind in kinds), "row", "rows")
            where = f"quasi_identifiers.{name}.null_values"
            way_out = way_of(one.column) or "list all texts that stand for no value"
            problems.append(Problem(where, f"leaves {unread} whose values are no {what}", way_out))
        read[name] = one.read_as(next(iter(fits), None))
    refuse(problems)
    names = {column.name: Identifier(column.name).sql() for column in columns}
    listed = ", ".join(f"{read[name]} AS {sql}" if name in read else sql for name, sql in names.items())
    return engine.view_of("read", f"SELECT {listed} FROM {source.sql()}")


def _is_number(text: str) -> bool:
    try:
        return bool(float(text.replace("_", "?"))) or True
    except ValueError:
        return False
