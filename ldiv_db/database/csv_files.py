"""CSV files: how one is read, found once for all who read it, so that each of its lines is part of a row, or an error.

DuckDB guesses from a sample, and what it guesses can lose lines: those that begin with `#` as comments, and as many at
the top as leave it a table. Here nothing is a comment and nothing is passed over: the first line is the header, unless
its values are of the types of those below, and what stands between its names stands between all values. A sample says
which types columns have, and every row is held against them.

A column has two readings where its type writes some values otherwise than the file: `1.50` is 1.5, and `03.05.2024` is
2024-05-03. Numbers and times are read as such, truth values and times of day as they are written (`no` is no false);
`as_spelt` reads all of a column as it is written.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.database.data_files import CsvForm, FileRelation, Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import CONVERT, NOT_UTF_8, DatabaseError, count_phrase, refused
from ldiv_db.database.names import Identifier, NamedAfter, SqlType, Value, literal

#: What may stand between values, and how many lines say which of these does.
_SEPARATORS, _HEAD = (",", ";", "\t", "|"), 1_000
#: Every line as a file of one column, without any marks.
_LINES = "header = false, delim = '\x01', quote = '', escape = '', comment = '', skip = 0, strict_mode = false"
#: Files up to this size have their lines counted too.
_COUNTED_BYTES = 2**26
#: How files in UTF-16 begin; of the other order of bytes the database reads nothing.
_UTF_16, _UTF_16_BE = b"\xff\xfe", b"\xfe\xff"
#: Numbers of up to so many decimals, the same for all, are published by a DECIMAL.
_DECIMALS = 6
_TEXT, _WHOLE, _REAL = "VARCHAR", "BIGINT", "DOUBLE"
#: Types whose values nobody computes with: they are read as they are written, where that is otherwise.
_WORDS = ("BOOLEAN", "TIME")


@dataclass(frozen=True)
class _Typed:
    """A column of a CSV file with the type that a sample gives it."""

    number: int
    named: str
    kind: str
    written_as: str | None = None

    misfits, respelt = NamedAfter("misfits_{0.number}"), NamedAfter("respelt_{0.number}")
    unreal, fewest = NamedAfter("unreal_{0.number}"), NamedAfter("fewest_{0.number}")
    most = NamedAfter("most_{0.number}")

    @property
    def name(self) -> Identifier:
        return Identifier(self.named)

    @property
    def pattern(self) -> Value | None:
        return Value(self.written_as) if self.written_as else None

    @property
    def type(self) -> SqlType:
        return SqlType(self.kind)

    @property
    def is_whole(self) -> bool:
        return self.kind == _WHOLE

    @property
    def is_real(self) -> bool:
        return self.kind == _REAL


def with_form(engine: Engine, file: FileRelation, source: str, key: str) -> FileRelation:
    """The CSV file, or the files of a pattern, with how it is read; raises PolicyError that says why it cannot be."""
    paths = [file.path]
    if file.hive:
        paths = [path for (path,) in engine.execute("SELECT file FROM glob($p) ORDER BY file", {"p": file.path})]
    try:
        return _with_form(engine, file, paths)
    except _UnreadableError as error:
        raise refused(key, f"{source} {error}", error.hint) from None


class _UnreadableError(Exception):
    """What is wrong with a file, after its name, and the way out."""

    def __init__(self, what: str, hint: str = ""):
        super().__init__(what)
        self.hint = hint


def _with_form(engine: Engine, file: FileRelation, paths: Sequence[str]) -> FileRelation:
    encoding = _encoding(paths[0])
    head = _first_lines(engine, paths[0], encoding, _HEAD)
    if any(_first_lines(engine, path, encoding, 1) != head[:1] for path in paths[1:]):
        what = "stands for files of which one has another header than the first"
        raise _UnreadableError(what, "columns are the same in all, and in the same order")
    separator = _separator(head)
    found = _sniffed(engine, paths[0], f", delim = {literal(separator)}, {encoding}comment = '', skip = 0", head)
    quote = "'" if found["Quote"] == "'" else '"'
    escape = "\\" if found["Escape"] == "\\" else quote
    sniffed = (("DATE", found["DateFormat"]), ("TIMESTAMP", found["TimestampFormat"]))
    patterns = tuple((kind, pattern) for kind, pattern in sniffed if pattern and not pattern.startswith("%Y-%m-%d"))
    options = [
        f"header = {str(found['HasHeader']).lower()}, delim = {literal(separator)}",
        f"quote = {literal(quote)}, escape = {literal(escape)}, {encoding}comment = '', skip = 0",
    ]
    columns = tuple((column["name"], column["type"]) for column in found["Columns"])
    form, rows = _held(engine, file, CsvForm(", ".join(options), columns, patterns=patterns))
    if len(paths) == 1:
        _require_all_lines(engine, paths[0], encoding, quote, rows + bool(found["HasHeader"]), len(columns))
    return replace(file, form=form)


def _fields(number: int) -> str:
    return count_phrase(number, "field", "fields")


def _encoding(path: str) -> str:
    """The option for a file that says by its first bytes that it is in UTF-16, else nothing."""
    with open(path, "rb") as file:
        first = file.read(2)
    if first == _UTF_16_BE:
        raise _UnreadableError("is in UTF-16, big-endian", "iconv -f UTF-16 -t UTF-8 converts it")
    return "encoding = 'utf-16', " if first == _UTF_16 else ""


def _lines_of(path: str, encoding: str) -> FileRelation:
    return FileRelation("read_csv", path, form=CsvForm(f"{encoding}{_LINES}", (("line", _TEXT),)))


def _first_lines(engine: Engine, path: str, encoding: str, most: int) -> list[str]:
    """The first lines of the file, as they are; none may stand above the header."""
    lines = _lines_of(path, encoding)
    with _explained():
        sql = f"SELECT line FROM read_csv($p{lines.options}) LIMIT {most}"
        found = [line or "" for (line,) in engine.execute(sql, {"p": path}, [lines])]
    if not "".join(found[:1]).strip():
        raise _UnreadableError("has a blank first line" if found else "is empty", "the first line is its header")
    return found


@contextmanager
def _explained() -> Iterator[None]:
    """Within, what the database cannot read of a file is said in our words, which quote none of it."""
    try:
        yield
    except DatabaseError as error:
        text = str(error.__context__ or error)
        line = next(iter(re.findall(r"CSV Error on Line: (\d+)", text)), "")
        where = f" in line {int(line):,}" if line else ""
        counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text)
        if "nicode" in text:
            raise _UnreadableError(NOT_UTF_8.format(where), CONVERT) from None
        if counts:
            what = f"has {_fields(int(counts[2]))}{where}, and {count_phrase(int(counts[1]), 'column', 'columns')}"
            raise _UnreadableError(what, "mend the line, or put a value with a separator in quotes") from None
        if "state machine" in text:
            what = "has lines that end in different ways (CR, LF, CR LF), or a quote that does not end"
            raise _UnreadableError(what, "write it anew with one of them") from None
        raise _UnreadableError(f"cannot be read as CSV{where}") from None


def _parts(head: Sequence[str], separator: str) -> list[tuple[int, int]]:
    """How many fields records have, each with the number of its last line; blank lines are none."""
    reader = csv.reader((f"{line}\n" for line in head), delimiter=separator)
    try:
        found = [(reader.line_num, len(fields)) for fields in reader if fields]
    except csv.Error:
        return [(1, 1)]
    return found[:-1] if len(head) == _HEAD else found  # the last one may go on


def _separator(head: Sequence[str]) -> str:
    """What stands between the names of the header, and of what may do so between most values."""

    def fit(separator: str) -> tuple[bool, float, int]:
        (_, names), *lines = _parts(head, separator) or [(1, 1)]
        return names > 1, sum(fields == names for _, fields in lines) / max(len(lines), 1), names

    return max(_SEPARATORS, key=fit)


def _sniffed(engine: Engine, path: str, options: str, head: Sequence[str]) -> dict[str, Any]:
    """What the database makes of a sample by options; raises _UnreadableError that says where it is none."""
    names = ("Quote", "Escape", "HasHeader", "Columns", "DateFormat", "TimestampFormat")
    separator = _separator(head)
    (_, columns), *lines = _parts(head, separator) or [(1, 1)]
    try:
        rows = engine.execute(f"SELECT {', '.join(names)} FROM sniff_csv($p{options})", {"p": path})
        found = dict(zip(names, rows[0], strict=True))
    except DatabaseError:
        found = {"Columns": []}
    for sign in _SEPARATORS if columns == 1 else ():
        counts = [fields for _, fields in _parts(head, sign)[1:]]
        if counts and (most := max(counts)) > 1 and counts.count(most) * 2 > len(counts):
            line = next(line for line, fields in _parts(head, sign) if fields == most)
            what = f"has one field in line 1, and {most} in line {line:,}"
            raise _UnreadableError(what, "the first line is the header: take off what stands above it")
    if len(found["Columns"]) == columns:
        return found
    ends, names_phrase = head[0].rstrip().endswith(separator), count_phrase(columns, "name", "names")
    if lines and ends and all(fields == columns - 1 for _, fields in lines):
        what = f"has a header of {columns} names, the last of them empty, over lines of {_fields(columns - 1)}"
        raise _UnreadableError(what, f"take the {literal(separator)} off the end of the header")
    if lines and all(fields == columns + 1 for _, fields in lines):
        what = f"has a header of {names_phrase} over lines of {_fields(columns + 1)}"
        hint = "name the first column too; R's write.table takes col.names = NA or row.names = FALSE"
        raise _UnreadableError(what, hint)
    for line, fields in lines:
        if fields != columns:
            what = f"has {_fields(fields)} in line {line:,}, and a header of {names_phrase}"
            raise _UnreadableError(what, "mend the line, or put a value with a separator in quotes")
    # Nothing is wrong with its first lines: all of it is read as text, or an error says why not.
    types = [{"name": name, "type": _TEXT} for name in next(csv.reader(head[:1], delimiter=separator))]
    return {"Columns": types, "HasHeader": True, **dict.fromkeys(("Quote", "Escape", "DateFormat", "TimestampFormat"))}


def _held(engine: Engine, file: FileRelation, form: CsvForm) -> tuple[CsvForm, int]:
    """How the file is read with types that all of its rows have, and how many these are."""
    patterns = dict(form.patterns)
    typed = [
        _Typed(number, name, kind, patterns.get(kind))
        for number, (name, kind) in enumerate(form.columns, 1)
        if kind != _TEXT
    ]
    texts = replace(file, form=form.as_text())
    with _explained():
        counts = engine.record("database/hold_types", file=texts, columns=typed)
    read = {column.named: _readings(column, counts) for column in typed}
    even = [replace(c, kind=kind) for c in typed if (kind := _even(c, counts)) and read[c.named][0] == _REAL]
    held = engine.record("database/hold_types", file=texts, columns=even) if even else {}
    exact = [column for column in even if not (held[column.misfits.name] or held[column.respelt.name])]
    read |= {column.named: (_REAL, column.kind) for column in exact}
    columns = tuple((name, read[name][0] if name in read else kind) for name, kind in form.columns)
    spelt = tuple((name, written) for name, (kind, written) in read.items() if written != kind)
    return replace(form, columns=columns, spelt=spelt), counts["rows"]


def _readings(column: _Typed, counts: dict[str, Any]) -> tuple[str, str]:
    """The type of a column's values, and that which writes them as the file does."""
    if counts[column.misfits.name]:
        return (_REAL if column.is_whole and not counts[column.unreal.name] else _TEXT), _TEXT
    if not counts[column.respelt.name]:
        return column.kind, column.kind
    return (_TEXT if column.kind in _WORDS else column.kind), _TEXT


def _even(column: _Typed, counts: dict[str, Any]) -> str:
    """The type that may write numbers as the file does, as all have so many decimals; none if they do not."""
    decimals = counts[column.most.name] if column.is_real and counts[column.respelt.name] else 0
    return f"DECIMAL(18,{decimals})" if 0 < decimals <= _DECIMALS and decimals == counts[column.fewest.name] else ""


def _require_all_lines(engine: Engine, path: str, encoding: str, quote: str, read: int, columns: int) -> None:
    """Raise _UnreadableError if a file without quotes, neither large nor packed, has other lines than were read."""
    if path.lower().endswith(FileRelation.PACKED) or Path(path).stat().st_size > _COUNTED_BYTES:
        return
    lines = _lines_of(path, encoding)
    sql = (
        f"SELECT count({'line' if columns > 1 else '*'}), count(*) FILTER (contains(line, $q))"
        f" FROM read_csv($p{lines.options})"
    )
    ((found, quoted),) = engine.execute(sql, {"p": path, "q": quote}, [lines])
    if found != read and not quoted:
        raise _UnreadableError(f"has {count_phrase(found, 'line', 'lines')}, of which {read:,} were read")


def as_spelt(engine: Engine, file: Table, names: Collection[str], counted: Collection[str] = ()) -> Table:
    """The table; of a CSV file columns as it writes them, and not by their types.

    Those whose values are `counted` keep their types if equal values of theirs are written differently: 1.5 and 1.50
    would count as two.
    """
    form = file.form if isinstance(file, FileRelation) else None
    if form is None or not isinstance(file, FileRelation):
        return file
    lowered, patterns = {name.lower() for name in counted}, dict(form.patterns)
    texts = replace(file, form=form.as_text())
    types, apart = dict(form.columns), set()
    for number, (name, written) in enumerate(form.spelt):
        if written == _TEXT and name.lower() in lowered:
            kind = types[name]
            found = engine.record(
                "database/count_spellings", file=texts, column=_Typed(number, name, kind, patterns.get(kind))
            )
            apart |= {name.lower()} if found["written"] != found["different"] else set()
    return replace(file, form=form.as_spelt({name for name in names if name.lower() not in apart}))
