"""Encoding: every quasi-identifier and sensitive value becomes an integer, once, in TEMP tables.

Algorithms see codes and counts only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.policy.resolve import Source
from ldiv_db.recoding.axes import Encoder, as_numbered, scan
from ldiv_db.recoding.encoded import Axis, Encoded, Renamed, SensitiveAxis
from ldiv_db.recoding.snapshot import Copied, loose, names_of, own_columns, renamed, require_keys, shown_of
from ldiv_db.recoding.units import counted_by_members

#: The columns of keys, and of what orders a person's rows, of a copy of the source.
KEY, ORDER = Identifier("h1"), Identifier("o1")


def read_source(
    engine: Engine, source: Source, show_values: bool = False, counted: bool = False, keyed: bool = False
) -> Coding:
    """The source copied, with codes for all its values, and if it is `keyed` with its keys.

    If it counts equal rows, and they may stay `counted`, its counts are copied. Rows without a key are numbered. Raises
    InfeasibleError for an empty source, for NULLs that are to be rejected and for rows without a key of their own,
    PolicyError for values that a taxonomy lacks, which are counted, and with `show_values` up to ten of them named.
    """
    own = own_columns(engine, source)
    key = [Renamed(Identifier(source.key_name or KEY.name), KEY)] if keyed else []
    copied, axes = scan(engine, source, show_values, [*own, *(key if source.key else [])], counted)
    if source.key and keyed:
        require_keys(engine, source, copied.snapshot, KEY)
    elif keyed:  # rows that are equal in what is published beside values are told apart by these alone
        codes = [column.alias for column in renamed("s", names_of(source.sensitive))]
        numbered = engine.materialise("snapshot", "recoding/input/number_copies", rows=copied.snapshot, columns=codes)
        engine.drop(copied.snapshot)
        copied = replace(copied, snapshot=numbered)
    encoder = Encoder(engine, source, copied, show_values)
    return Coding(
        **vars(copied),
        engine=engine,
        source=source,
        axes=tuple(axes),
        ordered=as_numbered(engine, axes),
        sensitive=encoder.sensitive(own),
        individual=encoder.individual(),
        own=own,
        kept=loose(source, [*renamed("q", shown_of(source)), *renamed("k", names_of(source.keep))]),
        key=key[0] if key else None,
    )


@dataclass(frozen=True)
class Coding(Copied):
    """A TEMP copy of a source under working names, and the codes of its values.

    `ordered` are the axes as they number rows; `own`, `kept` and `key` are columns of the copy.
    """

    engine: Engine
    source: Source
    axes: tuple[Axis, ...]
    ordered: tuple[Axis, ...]
    sensitive: tuple[SensitiveAxis, ...]
    individual: SensitiveAxis | None
    own: Sequence[Renamed]
    kept: Sequence[Renamed]
    key: Renamed | None

    def encode(
        self, snapshot: Relation | None = None, side_columns: Sequence[Renamed] = (), carried: Sequence[Identifier] = ()
    ) -> Encoded:
        """The rows of its copy, or of one with values of it in other rows, encoded; `side_columns` stay uncoded.

        So do columns that are `carried`, by which no row is numbered; then the rows may be some of the copy's.
        """
        engine, snapshot = self.engine, snapshot or self.snapshot
        rows = engine.materialise(
            "rows",
            "recoding/input/encode_rows",
            rows=snapshot,
            axes=self.ordered,
            packed=packed(self.ordered),
            sensitive=[*self.sensitive, *([self.individual] if self.individual else [])],
            # Whose a row may be comes last, so that it changes the number of no row that differs from others.
            kept=[
                *self.kept,
                *side_columns,
                *renamed("p", names_of([self.source.person] if self.source.person else [])),
                *loose(self.source, renamed("o", names_of([self.source.order] if self.source.order else []))),
            ],
            own=self.own,
            key=self.key,
            carried=carried,
            weight=self.weight,
        )
        made = engine.count_weighted(rows, self.weight)
        expected = engine.count(snapshot) if carried else self.rows_in - self.left_out
        if made != expected:
            raise AuditError(f"encoding made {made:,} rows of {expected:,}: a value has several codes or none")
        sets = self.source.sets
        sensitive = tuple(
            counted_by_members(engine, axis) if axis.column.name in sets else axis for axis in self.sensitive
        )
        found = Encoded(rows, self.axes, sensitive, tuple(self.kept), self.rows_in, self.left_out, self.individual)
        return self._repeated(found) if self.weight else found

    def _repeated(self, encoded: Encoded) -> Encoded:
        """The same with its counts as cells, and a view of the rows that these stand for."""
        codes = [*(axis.code for axis in self.axes), *(axis.code for axis in self.sensitive)]
        columns = [*codes, *(column.alias for column in (*self.own, *self.kept))]
        rows = self.engine.view(
            "repeated", "recoding/input/repeat_rows", cells=encoded.rows, columns=columns, weight=self.weight
        )
        return replace(encoded, rows=rows, cells=encoded.rows, different=self.engine.count(encoded.rows))

    def reseeded(self, seed: int) -> Coding:
        """The same with the codes that sensitive values have by another seed; the copy must be there still."""
        source = replace(self.source, seed=seed)
        sensitive = Encoder(self.engine, source, self).sensitive(self.own)
        return replace(self, source=source, sensitive=sensitive)

    def generalising(self, source: Source) -> Coding:
        """The same with quasi-identifiers that generalise as those of `source`, which may lack some; their codes.

        The copy must be there still, of which the rows do not depend on the quasi-identifiers.
        """
        axes = tuple(Encoder(self.engine, source, self).axes_like(self.source, self.axes))
        return replace(self, source=source, axes=axes, ordered=as_numbered(self.engine, axes))

    def relocated(self, move: Callable[[Relation], Relation]) -> Coding:
        """The same with each of its tables where `move` takes it, as where other connections read; its engine stays."""

        def axis(found: Axis) -> Axis:
            nodes = None if found.nodes is None else move(found.nodes)
            return replace(found, dictionary=move(found.dictionary), nodes=nodes)

        def sensitive(found: SensitiveAxis) -> SensitiveAxis:
            judged = found.judged and (move(found.judged[0]), found.judged[1])
            return replace(found, dictionary=move(found.dictionary), judged=judged)

        return replace(
            self,
            snapshot=move(self.snapshot),
            axes=tuple(map(axis, self.axes)),
            ordered=tuple(map(axis, self.ordered)),
            sensitive=tuple(map(sensitive, self.sensitive)),
            individual=self.individual and sensitive(self.individual),
        )


def packed(axes: Sequence[Axis]) -> list[list[Axis]]:
    """The axes in parts, in their order, of so many that one whole number of 64 bits tells all their codes apart."""
    parts, room = list[list[Axis]](), 0
    for axis in axes:
        room //= axis.leaves + 1
        if not room:
            parts.append([])
            room = 2**63 // (axis.leaves + 1)
        parts[-1].append(axis)
    return parts
