"""Columns read as what they stand for: texts that say there is no value are NULL, and the others numbers or times.

Many programs write a missing number as text (`NA`, `?`, `.`) or with a comma, so that a column of a file, or of a table
that was loaded from one, is text. A view reads it; the source stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.data_files import FileRelation
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import in_from
from ldiv_db.database.errors import Problem, count_phrase, refuse
from ldiv_db.database.names import Identifier, Relation, literal

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


def read_by(engine: Engine, source: Relation | FileRelation, readings: Sequence[Reading]) -> Relation | FileRelation:
    """A view of the source with columns read so, or itself; raises PolicyError for values that no type takes."""
    wanted = {reading.column.lower(): reading for reading in readings}
    columns = columns_of(engine, source) if wanted else []
    told = [(column, wanted[column.name.lower()]) for column in columns if column.name.lower() in wanted]
    told = [(column, reading) for column, reading in told if column.type == "VARCHAR" or column.is_number]
    if not told:
        return source
    fitting = _fitting(engine, source, told)
    refuse(_unread(told, fitting))
    read = {column.name: _expression(column, reading, fitting[column.name]) for column, reading in told}
    names = {column.name: Identifier(column.name).sql() for column in columns}
    listed = ", ".join(f"{read[name]} AS {sql}" if name in read else sql for name, sql in names.items())
    return engine.view_of("read", f"SELECT {listed} FROM {in_from(source)}")


def _unread(told: Sequence[tuple[Column, Reading]], fitting: dict[str, tuple[str | None, int]]) -> Iterator[Problem]:
    for column, reading in told:
        found, unread = fitting[column.name]
        if found is None and reading.types and not reading.optional and column.type == "VARCHAR":
            kinds = "numbers" if reading.types == NUMBERS else "times" if reading.types == TIMES else "numbers or times"
            what = f"leaves {count_phrase(unread, 'row', 'rows')} whose values are no {kinds}"
            yield Problem(
                f"quasi_identifiers.{column.name}.null_values", what, "list all texts that stand for no value"
            )


def _fitting(
    engine: Engine, source: Relation | FileRelation, told: Sequence[tuple[Column, Reading]]
) -> dict[str, tuple[str | None, int]]:
    """The first type that takes all values of each column, and how many rows the one has not that takes most."""
    asked = [(column, kind, _misfits(column, reading, kind)) for column, reading in told for kind in reading.types]
    if not asked:
        return {column.name: (None, 0) for column, _ in told}
    counted = ", ".join(f"count(CASE WHEN {misfit} THEN 1 END)" for _, _, misfit in asked)
    (counts,) = engine.execute(f"SELECT {counted} FROM {in_from(source)}")
    found: dict[str, tuple[str | None, int]] = {}
    for column, _ in told:
        of = [(kind, count) for (one, kind, _), count in zip(asked, counts, strict=True) if one is column]
        fits = [kind for kind, count in of if not count]
        found[column.name] = (fits[0] if fits else None, min((count for _, count in of), default=0))
    return found


def _misfits(column: Column, reading: Reading, kind: str) -> str:
    value = _value(column, reading)
    if column.is_number:
        return f"{value} <> floor({value}) OR abs({value}) > 1e15" if kind == "BIGINT" else "false"
    forms = {value: _FORMS[kind]} if kind in _FORMS else {}
    if reading.decimal and reading.types:
        forms[_digits(column, reading)] = _GROUPED.format(sign=reading.decimal, other=_other(reading.decimal))
    misses = "".join(f"NOT regexp_matches({of}, '{form}') OR " for of, form in forms.items())
    return f"{value} IS NOT NULL AND ({misses}TRY_CAST({value} AS {kind}) IS NULL)"


def _value(column: Column, reading: Reading) -> str:
    """The value of a column that is to be cast, as SQL: NULL where it stands for none."""
    if column.is_number:
        name = Identifier(column.name).sql()
        numbers = ", ".join(f"CAST({literal(text.strip())} AS DOUBLE)" for text in reading.nulls if _is_number(text))
        return f"CASE WHEN {name} NOT IN ({numbers}) THEN {name} END" if numbers else name
    if reading.types and reading.decimal:
        digits = _digits(column, reading)
        return f"replace(replace({digits}, '{_other(reading.decimal)}', ''), '{reading.decimal}', '.')"
    value = _text(column, reading)
    return f"trim({value})" if reading.types else value


def _text(column: Column, reading: Reading) -> str:
    name, nulls = Identifier(column.name).sql(), ", ".join(literal(text.strip()) for text in reading.nulls)
    return f"CASE WHEN trim({name}) NOT IN ({nulls}) THEN {name} END" if nulls else name


def _digits(column: Column, reading: Reading) -> str:
    """The text of a number, as SQL, without blanks, apostrophes and per cent signs."""
    return f"regexp_replace({_text(column, reading)}, '{_BETWEEN}', '', 'g')"


def _other(sign: str) -> str:
    """The sign that parts thousands beside a decimal sign."""
    return "." if sign == "," else ","


def _is_number(text: str) -> bool:
    try:
        return bool(float(text.replace("_", "?"))) or True
    except ValueError:
        return False


def _expression(column: Column, reading: Reading, fitting: tuple[str | None, int]) -> str:
    kind, _ = fitting
    if column.is_number:
        value = _value(column, reading)
        return f"CAST({value} AS BIGINT)" if column.is_float and kind == "BIGINT" else value
    if kind is None:
        return _value(column, Reading(reading.column, reading.nulls))
    return f"CAST({_value(column, reading)} AS {kind})"
