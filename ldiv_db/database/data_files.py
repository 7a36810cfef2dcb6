"""Data files that the database reads by its table functions, and how it reads those of CSV."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from ldiv_db.database.names import Identifier, Relation, SqlType, literal

#: The ending of the files in which a table of Iceberg has its states.
ICEBERG_STATE = ".metadata.json"
#: Options for a CSV file that `Engine.export` wrote: nothing between two commas is NULL, two quotes are the empty text.
_AS_EXPORTED = ", nullstr = '', allow_quoted_nulls = false"


def _as_text(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, "VARCHAR") for name in names)


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is read: nothing is guessed, so that each of its lines is part of a row, or an error.

    All of it is read as text, and cast here: the database's own reader skips a type where a statement asks for the text
    of its values alone, and would show them as the file writes them, but not everywhere. `columns` are (name, type);
    `spelt` are those whose type writes some values otherwise than the file, each with the type that writes them as the
    file does. `patterns` are (type, pattern) of times that are not written as in ISO 8601.
    """

    options: str
    columns: tuple[tuple[str, str], ...]
    spelt: tuple[tuple[str, str], ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()

    def sql(self) -> str:
        """The reader's arguments."""
        types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name, _ in self.columns)
        return f", auto_detect = false, {self.options}, columns = {{{types}}}"

    @property
    def is_text(self) -> bool:
        return all(kind == "VARCHAR" for _, kind in self.columns)

    @property
    def read(self) -> list[str]:
        """The columns in their types, as SQL."""
        patterns, found = dict(self.patterns), []
        for name, kind in self.columns:
            column = Identifier(name).sql()
            value = f"strptime({column}, {literal(patterns[kind])})" if kind in patterns else column
            found.append(column if kind == "VARCHAR" else f"CAST({value} AS {SqlType(kind).sql()}) AS {column}")
        return found

    @classmethod
    def exported(cls, names: Sequence[str]) -> CsvForm:
        """That of a file that `Engine.export` wrote with these columns: all of it is text."""
        return cls(f"header = true, delim = ',', quote = '\"', escape = '\"'{_AS_EXPORTED}", _as_text(names))

    @property
    def is_exported(self) -> bool:
        """True if NULL and the empty text are told apart as `Engine.export` does."""
        return self.options.endswith(_AS_EXPORTED)

    def as_text(self, as_exported: bool = False) -> CsvForm:
        """The same with all columns as text; `as_exported` tells NULL and the empty text apart."""
        more = _AS_EXPORTED if as_exported and not self.is_exported else ""
        return replace(self, options=f"{self.options}{more}", columns=_as_text(name for name, _ in self.columns))

    def typed(self, column: str, kind: str) -> CsvForm:
        """The same with a column of this type."""
        return replace(self, columns=tuple((name, kind if name == column else own) for name, own in self.columns))

    def as_spelt(self, names: Collection[str]) -> CsvForm:
        """The same with the columns of these names in types that write their values as the file does."""
        lowered, spelt = {name.lower() for name in names}, dict(self.spelt)
        columns = [(name, spelt.get(name, kind) if name.lower() in lowered else kind) for name, kind in self.columns]
        return replace(self, columns=tuple(columns))


@dataclass(frozen=True)
class FileRelation:
    """A data file that the database reads with one of its table functions."""

    reader: str
    path: str
    #: True if the names of folders, as `year=2020`, are columns.
    hive: bool = False
    #: The version of a table of Delta Lake that is read, also where others write meanwhile.
    version: int | None = None
    #: How a CSV file is read.
    form: CsvForm | None = None

    READERS: ClassVar = {".parquet": "read_parquet", ".csv": "read_csv", ".tsv": "read_csv", ".json": "read_json",
                         ".jsonl": "read_json", ".ndjson": "read_json"}  # fmt: skip
    #: Endings of text that is packed, after that of what it is.
    PACKED: ClassVar = (".gz", ".zst")

    @classmethod
    def of(cls, path: str) -> FileRelation | None:
        """The file's relation, or None if its ending is none that the database reads."""
        suffixes = [suffix.lower() for suffix in Path(path).suffixes]
        packed = len(suffixes) > 1 and suffixes[-1] in cls.PACKED and suffixes[-2] != ".parquet"
        reader = cls.READERS.get(suffixes[-2] if packed else (suffixes or [""])[-1])
        return cls(reader, path) if reader else None

    @property
    def options(self) -> str:
        """The reader's arguments besides the path, as SQL."""
        version = "" if self.version is None else f", version = {self.version}"
        form = "" if self.form is None else self.form.sql()
        return f"{', hive_partitioning = true' if self.hive else ''}{version}{form}"

    def sql(self, bound: str = "") -> str:
        """What FROM takes: the table function's call and its columns' types; `bound` is what stands for the path."""
        call = f"{self.reader}({bound or literal(self.path)}{self.options})"
        if self.form is None or self.form.is_text:
            return call
        folders = (
            [f"* EXCLUDE ({', '.join(Identifier(name).sql() for name, _ in self.form.columns)})"] if self.hive else []
        )
        return f"(SELECT {', '.join([*self.form.read, *folders])} FROM {call})"

    @property
    def among(self) -> str:
        """The file, the pattern, or the folder of a table, whose files are read."""
        is_state = self.reader == "iceberg_scan" and self.path.endswith(ICEBERG_STATE)
        return str(Path(self.path).parent.parent) if is_state else self.path

    def __str__(self) -> str:
        return self.path


#: Rows that a statement reads: a table or view, or a data file.
Table = Relation | FileRelation
#: The tables of a release by their names; of one table it is empty.
Tables = Mapping[str, Table]
