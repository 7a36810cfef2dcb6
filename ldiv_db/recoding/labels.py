"""The grammar of published labels, and its one reader; `sql/macros/labels.j2` has what writes them.

A label is the text of a value or of a taxonomy's node, a range (`[a .. b]`, `[a .. b)`, `a .. b`, also with `-`, `~`,
`,` or `to` between the ends, two columns of bounds; with one end `a+`, `>a`, `>=a`, `<a`, `<=a`, `a and over`, `under
a`), a code with some characters starred (`816**`), `*` for everything, NULL, or a set `{a, "b, c", NULL}` of such
labels. In a set a label that has one of `, " { }` in it stands in double quotes, doubled within: `{a"b, c}` cannot be
read. What begins like a set may also be the label of a node: the whole is read first, or the set where it is known that
sets were written.

Reading has three steps: labels become parts; the caller finds the codes that each part covers, as it knows them; and
the reading that holds is chosen. Only distinct labels are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.names import DIALECT, Identifier, Relation
from ldiv_db.database.steps import Steps
from ldiv_db.policy.quasi_identifiers import Hierarchy
from ldiv_db.policy.release_columns import LABELS

if TYPE_CHECKING:
    from ldiv_db.database.composer import Composer

#: The remedy in an error about labels that cannot be read as ranges.
RANGE_FORMS = (
    "ranges are written [20 .. 30], [20 .. 30), 20-30, 20~30, 20 to 30, 60+, >60, >=60, <20, <=20, 60 and over or under"
    " 20"
)


@dataclass(frozen=True)
class LabelAxis:
    """One quasi-identifier of a published table: the columns of its label (or bounds) among its rows, its hierarchy.

    `sets_first` says that sets are known to be written.
    """

    name: str
    columns: tuple[Identifier, ...]
    hierarchy: Hierarchy
    sets_first: bool = False

    @property
    def bounded(self) -> bool:
        """True if the label is two columns of bounds."""
        return len(self.columns) > 1


#: The template that reads lists of labels as the labels that they stand for.
LISTS = "recoding/labels/read_lists"


def lists_among(engine: Engine, table: Table, names: Collection[str] | None = None) -> list[Identifier]:
    """The columns of these `names`, or all, that hold lists of labels."""
    wanted = None if names is None else {name.lower() for name in names}
    listed = [column for column in columns_of(engine, table) if column.type == LABELS]
    return [Identifier(column.name) for column in listed if wanted is None or column.name.lower() in wanted]


def as_labels(engine: Engine, table: Table, names: Collection[str] | None = None) -> Table:
    """The published table with labels in place of their lists, in columns of these `names`: the way in of every reader.

    The table itself if it has no lists there; else a view that is there as long as the engine, or its scope.
    """
    lists = lists_among(engine, table, names)
    return engine.view("labels", LISTS, published=table, lists=lists) if lists else table


def labels_there(at: Composer, table: Table, lists: Sequence[Identifier]) -> Table:
    """The same as a step of a statement; raises PolicyError for lists unless it is DuckDB's."""
    if lists and at.dialect != DIALECT:
        names = ", ".join(column.name for column in lists)
        raise refused("dialect", f"{names}: lists are read by DuckDB's statement alone", "--dialect duckdb")
    return at.materialise("labelled", LISTS, published=table, lists=lists) if lists else table


def number_labels(engine: Engine, rows: Table, axis: LabelAxis) -> Relation:
    """The different labels of a quasi-identifier among rows: (its columns, value_no, written, rows)."""
    return engine.materialise("labels", "recoding/labels/number_labels", classes=rows, axis=axis)


def read_parts(steps: Steps, labels: Relation) -> Relation:
    """The parts (value_no, part, text, word) of the labels (value_no, written): the whole, and a set's members."""
    return steps.materialise("parts", "recoding/labels/list_parts", values_of=labels)


def read_ranges(steps: Steps, parts: Relation, kind: str) -> Relation:
    """The positions that parts name on a kind's line: (value_no, part, word, start, stop, start_side, stop_side)."""
    return steps.materialise("ranges", "recoding/labels/read_ranges", parts=parts, kind=kind)


def read_starred(
    steps: Steps, parts: Relation, dictionary: Relation, nodes: Relation | None = None, null_code: int | None = None
) -> Relation:
    """The codes (text, code) of `dictionary` (value, code) and of leaves that parts with starred characters cover."""
    params = {"dictionary": dictionary, "nodes": nodes, "null_code": null_code}
    return steps.materialise("starred", "recoding/labels/list_starred", parts=parts, **params)


def span_ranges(engine: Engine, ranges: Relation, ranks: Relation, null_code: int | None, last: int) -> Relation:
    """The codes that ranges cover of `ranks` (position, code): (value_no, part, low, high, start, stop).

    Codes run from 0 to `last`; without a `null_code` NULL covers all of them.
    """
    params = {"ranges": ranges, "ranks": ranks, "null_code": null_code, "last": last}
    return engine.materialise("found", "recoding/labels/span_ranges", **params)


def find_values(steps: Steps, parts: Relation, dictionary: Relation, null_code: int, **known: Any) -> Relation:
    """The codes of `dictionary` (value, code) that parts cover: (value_no, part, low, high).

    By the `nodes` of a taxonomy or `levels` made of values; those of a `type` may be written otherwise.
    """
    starred = read_starred(steps, parts, dictionary)
    given = {"parts": parts, "dictionary": dictionary, "starred": starred, "null_code": null_code, **known}
    found = steps.materialise("found", "recoding/labels/find_values", **given)
    steps.drop(starred)
    return found


def choose_reading(steps: Steps, found: Relation, sets_first: bool) -> tuple[Relation, Relation]:
    """The parts that hold of (value_no, part, low, high), low being NULL where a part is no label, and their spans. Of
    a set and the whole label the whole holds, or the set with `sets_first`. Spans are (value_no, low, high) and do not
    touch. A label without a part that holds cannot be read. `found` is dropped."""
    chosen = steps.materialise("chosen", "recoding/labels/choose_parts", found=found, sets_first=sets_first)
    spans = steps.materialise("spans", "recoding/labels/merge_spans", chosen=chosen)
    steps.drop(found)
    return chosen, spans


def count_unread(engine: Engine, labels: Relation, read: Relation) -> dict[str, int]:
    """The number of labels (value_no, rows) that are not among those that were read, and of the rows that have them."""
    unread = engine.select_others("unread", labels, read, "value_no")
    found = {"count": engine.count(unread), "rows": engine.total(unread, "rows")}
    engine.drop(unread)
    return found
