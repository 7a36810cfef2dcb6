"""Forms in which people look at what is returned: a screen, a line, a frame, and in a notebook a page with charts.

How each class looks is said above (`reporting/forms.py`), and imported when an object is looked at. A table that is too
wide for the screen loses columns before words are cut, and the screen says which.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from io import StringIO
from typing import IO, Any, ClassVar

from markupsafe import Markup
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Column, Table

#: The heading of what a table is looked at for; the first column and this one are dropped last.
_VERDICT = "holds"
#: Characters beside the text of each column, and of a table.
_FRAME, _EDGE = 3, 1


def per_cent(share: float | Fraction) -> str:
    """The share in whole per cent, rounded; `less than 1 %` and `more than 99 %` are neither nothing nor all."""
    if 0 < share < 0.01:
        return "less than 1 %"
    return "more than 99 %" if 0.99 < share < 1 else f"{math.floor(200 * share + 1) // 2} %"


def fitted(table: Table, width: int) -> tuple[Table, list[str]]:
    """The table with the columns that have room on a screen of `width` characters, and the headings of the others.

    In a table without headings no column is dropped: it has names and what belongs to them. Words are cut where one
    alone is longer than there is room for.
    """
    columns = list(table.columns)
    dropped: list[str] = []
    while table.show_header and _needed(columns) > width and len(columns) > 1:
        others = [column for column in columns[1:] if column.header != _VERDICT]
        last = others[-1] if others else columns[-1]
        dropped.insert(0, str(last.header))
        columns.remove(last)
    return _of_columns(table, columns, width), [heading for heading in dropped if heading]


def _needed(columns: Sequence[Column]) -> int:
    return sum(_longest_word(column) + _FRAME for column in columns) + _EDGE


def _longest_word(column: Column) -> int:
    return _longest([str(column.header), *map(str, column.cells)])


def _longest(texts: Sequence[str]) -> int:
    return max((cell_len(word) for text in texts for word in text.split()), default=0)


def _of_columns(table: Table, columns: Sequence[Column], width: int) -> Table:
    """A table of these columns, none of which is narrower than its words if there is room for them."""
    found = Table(title=table.title, show_header=table.show_header, min_width=min(_longest([str(table.title)]), width))
    for column, own in zip(columns, _widths(columns, width - len(columns) * _FRAME - _EDGE), strict=True):
        found.add_column(column.header, overflow="fold", min_width=own, max_width=own)
    for cells in zip(*(column.cells for column in columns), strict=True):
        found.add_row(*cells)
    return found


def _widths(columns: Sequence[Column], room: int) -> list[int]:
    """The width of each column: of its lines, or less, the widest first, down to that of its words; at last of any."""
    widths = [min(_longest_line(column), max(room, 1)) for column in columns]
    for least in (list(map(_longest_word, columns)), [1] * len(columns)):
        while sum(widths) > room and any(width > few for width, few in zip(widths, least, strict=True)):
            wide = max(range(len(widths)), key=lambda n: (widths[n] > least[n], widths[n]))
            widths[wide] -= 1
    return widths


def _longest_line(column: Column) -> int:
    texts = [str(column.header), *map(str, column.cells)]
    return max((cell_len(line) for text in texts for line in text.splitlines()), default=1)


#: Columns of output that is no terminal, unless COLUMNS says otherwise.
_WIDTH = 140


class Screen(Console):
    """A console that drops columns before it cuts words, and leaves long lines to the terminal: they can be copied.

    It leaves it to the command what becomes of a reader that went away.
    """

    def print(self, *objects: Any, **how: Any) -> None:
        """As any console; of a table that is too wide the columns that have room, and which have none."""
        if len(objects) != 1 or not isinstance(objects[0], Table):
            super().print(*objects, **({"soft_wrap": True} if all(isinstance(o, str) for o in objects) else {}) | how)
            return
        table, dropped = fitted(objects[0], self.width)
        super().print(table, **how)
        if dropped:
            super().print(f"no room for: {', '.join(dropped)} (--json has all)", soft_wrap=True)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def printer(stderr: bool = False, file: IO[str] | None = None) -> Console:
    """A console that prints text as it is: no name or value of the user's is read as markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH
    return Screen(stderr=stderr, file=file, markup=False, highlight=False, emoji=False, width=width)


def table_of(title: str, headings: Sequence[str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table with a row for each of `rows`."""
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*("NULL" if value is None else str(value) for value in row))
    return table


def fields_of(thing: Any, *names: str) -> dict[str, Any]:
    """The fields of a result that JSON has as they are, by their names."""
    return {name: getattr(thing, name) for name in names}


def facts_of(title: str, facts: Iterable[tuple[str, str]]) -> Table:
    """A table without headings: names, and what belongs to them."""
    table = Table(title=title, show_header=False)
    for fact in facts:
        table.add_row(*fact)
    return table


#: What stands on a screen: a line, a table or a tree.
Part = RenderableType


@dataclass(frozen=True)
class Form:
    """The forms of a class's objects: on a screen, in a line, as rows of a frame (column to value), and as HTML."""

    text: Callable[..., Iterable[Part]]
    line: Callable[[Any], str] = object.__repr__
    records: Callable[[Any], Iterable[Mapping[str, Any]]] = list
    page: Callable[[Any], Markup] = Markup


class Printed:
    """An object that `print` and a command show in the same lines and tables."""

    #: Returns the forms by the name of their class; entered from above, called when an object is looked at.
    forms: ClassVar[Callable[[], Mapping[str, Form]]] = dict

    def text(self, **how: Any) -> Iterator[Part]:
        """Yield what a screen shows; `how` are the options of the object's form."""
        yield from self._form.text(self, **how)

    def __str__(self) -> str:
        written = StringIO()
        screen = printer(file=written)
        for part in self.text():
            screen.print(part)
        return written.getvalue().rstrip("\n")

    @property
    def _form(self) -> Form:
        forms = Printed.forms()
        return next(forms[kind.__name__] for kind in type(self).__mro__ if kind.__name__ in forms)


class Shown(Printed):
    """An object with all forms; line, frame and page hold no row of the data, and no value but those of the policy."""

    def to_frame(self) -> Any:
        """The figures as a frame of pandas'."""
        from pandas import DataFrame  # noqa: PLC0415 - takes long

        return DataFrame(list(self._form.records(self)))

    def __repr__(self) -> str:
        return self._form.line(self)

    def _repr_html_(self) -> str:
        return str(self._form.page(self))
