"""The grammar of published labels, and its one reader; `sql/macros/labels.j2` has what writes them.

A label is the text of a value or of a taxonomy's node, a range (`[a-b]`, `[a-b)`, `a-b`, `a to b`, two columns of
bounds; of numbers also `a+`, `>a`, `>=a`, `<a`, `<=a`), `*` for everything, NULL, or a set `{a, "b, c", NULL}` of such
labels. In a set a label that has one of `, " { }` in it stands in double quotes, doubled within: `{a"b, c}` cannot be
read. What begins like a set may also be the label of a
node: the whole is read first, or the set where it is known that sets were written.

Reading has three steps: labels become parts; the caller finds the codes that each part covers, as it knows them; and
the reading that holds is chosen. Only distinct labels are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value

#: What an error says of labels that cannot be read as ranges.
RANGE_FORMS = "ranges are written [20-30], [20-30), 20-30, 20 to 30, 60+, >60, >=60, <20 or <=20"


@dataclass(frozen=True)
class LabelReading:
    """What labels were read as.

    `chosen` are the rows found for the parts that hold, `spans` (value_no, low, high) the codes that a label covers, as
    spans that do not touch; a label that is not in `chosen` cannot be read.
    """

    chosen: Relation
    spans: Relation


def read_parts(engine: Engine, labels: Relation) -> Relation:
    """The parts (value_no, part, text, word) of the labels (value_no, written): the whole, and a set's members."""
    sets = engine.materialise("sets", "recoding/labels/split_sets", values_of=labels)
    parts = engine.materialise("parts", "recoding/labels/list_parts", values_of=labels, sets=sets)
    engine.drop(sets)
    return parts


def read_ranges(engine: Engine, parts: Relation, kind: str) -> Relation:
    """The positions that parts name on a kind's line: (value_no, part, word, start, stop, start_side, stop_side)."""
    return engine.materialise("ranges", "recoding/labels/read_ranges", parts=parts, kind=kind)


def span_ranges(engine: Engine, ranges: Relation, ranks: Relation, null_code: int | None, last: int) -> Relation:
    """The codes that ranges cover of `ranks` (position, code): (value_no, part, low, high, start, stop).

    Codes run from 0 to `last`; without a `null_code` NULL covers all of them.
    """
    holes = {"null_code": Value(null_code), "last": Value(last)}
    return engine.materialise("found", "recoding/labels/span_ranges", ranges=ranges, ranks=ranks, **holes)


def choose_reading(engine: Engine, found: Relation, sets_first: bool) -> LabelReading:
    """The reading that holds of (value_no, part, low, high), low being NULL where a part is no label.

    Where both hold the whole does, or with `sets_first` the set. `found` is dropped.
    """
    chosen = engine.materialise("chosen", "recoding/labels/choose_parts", found=found, sets_first=sets_first)
    spans = engine.materialise("spans", "recoding/labels/merge_spans", chosen=chosen)
    engine.drop(found)
    return LabelReading(chosen, spans)


def count_unread(engine: Engine, labels: Relation, read: Relation) -> dict[str, int]:
    """How many labels (value_no, rows) are not among those that were read: their count, and the rows that have them."""
    return engine.record("recoding/labels/count_unread", values_of=labels, read=read)
