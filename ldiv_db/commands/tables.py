"""Tables on narrow screens: columns are dropped before words are cut, and it is said which."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Column, Table

#: The heading of what a table is looked at for; the first column and this one are dropped last.
_VERDICT = "holds"
#: Characters beside the text of each column, and of a table.
_FRAME, _EDGE = 3, 1


def fitted(table: Table, width: int) -> tuple[Table, list[str]]:
    """The table with the columns that have room on a screen of `width` characters, and the headings of the others.

    In a table without headings no column is dropped: it has names and what belongs to them. Words are cut where one
    alone is longer than there is room for.
    """
    columns = list(table.columns)
    dropped: list[str] = []
    while table.show_header and _needed(columns) > width and len(columns) > 1:
        last = _first_to_go(columns)
        dropped.insert(0, str(last.header))
        columns.remove(last)
    return _of_columns(table, columns, width), [heading for heading in dropped if heading]


def _first_to_go(columns: Sequence[Column]) -> Column:
    """The column farthest to the right, the verdict's if there is no other but the first."""
    others = [column for column in columns[1:] if column.header != _VERDICT]
    return others[-1] if others else columns[-1]


def _needed(columns: Sequence[Column]) -> int:
    """The characters that a table of these columns takes if no word is cut."""
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
