"""Figures of a report by another way: plain counts of the release and the source as they lie.

No template, code or reading of labels of those who audit, attack and measure is used; which texts of a sensitive column
are one by the policy is read as everywhere. What this does not reach is named by `verify`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.equality import read_as_one, read_exactly
from ldiv_db.database.templates import Identifier, Value
from ldiv_db.policy.document import QuasiIdentifier
from ldiv_db.profiling.risk import RARE
from ldiv_db.reporting.evidence import Document, ReportSubject
from ldiv_db.reporting.from_release import Table

Figures = Iterator[tuple[str, Any]]
_PROSECUTOR = "identifiability.risks[0]"


def counted_plainly(subject: ReportSubject, document: Document) -> dict[str, Any]:
    """The figures by their places in the document, which says how they are laid out (bins)."""
    with ExitStack() as stack:
        counting = _Counting(subject, document, stack)
        return dict(counting.figures())


class _Counting:
    """The release, and the source if it is there, being counted."""

    def __init__(self, subject: ReportSubject, document: Document, stack: ExitStack):
        self._subject, self._document, self._engine, self._stack = subject, document, subject.engine, stack
        self._same = {name: setting.same for name, setting in subject.question.sensitive.items()}
        self._release = self._read(subject.table)

    def _read(self, table: Table) -> Table:
        """The table with texts that are one as one, compared by bytes."""
        read = self._stack.enter_context(read_as_one(self._engine, table, self._same))
        return self._stack.enter_context(read_exactly(self._engine, read))

    def figures(self) -> Figures:
        question = self._subject.question
        ids = [question.class_column] if question.class_column else []
        classes = [*question.quasi_identifiers, *ids]
        released = self._groups(self._release, classes)
        yield from _of_release(released)
        if question.suppressed == "judge":
            yield from self._shares(classes)
            yield "classes.sizes.least", released["least"] or 0
            yield "classes.sizes.most", released["most"] or 0
        if self._subject.people is not None and self._document["source"]:
            yield from self._of_source(self._read(self._subject.people), released)

    @property
    def _keys(self) -> Mapping[str, QuasiIdentifier]:
        """The quasi-identifiers as the policy describes them."""
        policy = self._subject.asked.policy
        return policy.quasi_identifiers if policy else {}

    def _groups(self, table: Table, names: Sequence[str]) -> dict[str, int]:
        """How the rows of a table group by some columns."""
        holes = {"rare": Value(RARE), "threshold": Value(Decimal(self._subject.asked.threshold))}
        columns = [Identifier(name) for name in names]
        return self._engine.record("reporting/plainly/count_groups", source=table, columns=columns, **holes)

    def _shares(self, classes: Sequence[str]) -> Figures:
        for name, bins in self._document["classes"]["largest_shares"].items():
            rows = self._engine.rows(
                "reporting/plainly/count_frequent",
                release=self._release,
                columns=[Identifier(one) for one in classes],
                sensitive=Identifier(name),
                bins=Value(len(bins)),
            )
            found = dict(rows)
            for place in range(len(bins)):
                yield f"classes.largest_shares.{name}[{place}]", found.get(place, 0)

    # -- the source ------------------------------------------------------------------------------------

    def _of_source(self, source: Table, released: Mapping[str, int]) -> Figures:
        names = list(self._keys)
        found = self._groups(source, names)
        yield from _of_groups("source.risk_before", found)
        for key, of in {"rows": "rows", "combinations": "groups", "unique_rows": "", "rare_rows": ""}.items():
            yield f"source.uniqueness.{key}", found[of or key]
        for name in self._document["source"]["uniqueness"]["unique_without"]:
            without = self._groups(source, [other for other in names if other.lower() != name.lower()])
            yield f"source.uniqueness.unique_without.{name}", without["unique_rows"]
        suppressed = max(0, found["rows"] - released["rows"])
        utility = "source.utility"
        yield "source.content.rows", found["rows"]
        yield f"{utility}.rows_in", found["rows"]
        yield f"{utility}.rows_suppressed", suppressed
        yield f"{utility}.rows_added", max(0, released["rows"] - found["rows"])
        yield f"{utility}.loss.dm", released["squares"] + suppressed * found["rows"]
        if found["rows"] == released["rows"] and not self._document["source"]["utility"]["cells_suppressed"]:
            yield from self._of_columns(source, found["rows"])

    def _of_columns(self, source: Table, rows: int) -> Figures:
        """The columns of a release that has all rows of its source, and all their sensitive values."""
        kinds = {column.name.lower(): column for column in columns_of(self._engine, source)}
        published = {column.name.lower() for column in columns_of(self._engine, self._release)}
        for number, spread in enumerate(self._document["source"]["utility"]["spreads"]):
            column, place = kinds[spread["column"].lower()], f"source.utility.spreads[{number}]"
            if spread["role"] == "sensitive":
                for bin_, before, after, differing in self._bins(source, spread, by_frequency=True):
                    yield f"{place}.before[{bin_}]", before
                    if not differing:  # else it matters which of two values of the same frequency is the first
                        yield f"{place}.after[{bin_}]", after
            elif self._keys[spread["column"]].numeric:
                for bin_, before, *_ in self._bins(source, spread, by_frequency=False):
                    yield f"{place}.before[{bin_}]", before
                if column.name.lower() in published and (column.is_number or column.kind == "date"):
                    yield from self._ranges(source, spread["column"], column.kind == "date", rows)

    def _bins(self, source: Table, spread: Mapping[str, Any], by_frequency: bool) -> list[tuple[Any, ...]]:
        edges = spread["edges"]
        bins = [(i, edges[i], edges[i + 1] - 1) for i in range(len(edges) - 1)]
        loaded = self._engine.load("bins", {"bin": "INTEGER", "low": "BIGINT", "high": "BIGINT"}, bins)
        holes: dict[str, Any] = {"column": Identifier(spread["column"]), "by_frequency": by_frequency}
        return self._engine.rows(
            "reporting/plainly/count_values", bins=loaded, source=source, release=self._release, **holes
        )

    def _ranges(self, source: Table, name: str, days: bool, rows: int) -> Figures:
        """The loss of a column of numbers or days, if all its labels can be read."""
        holes = {"source": source, "release": self._release, "column": Identifier(name)}
        loss = self._engine.scalar("reporting/plainly/sum_ranges", days=days, **holes)
        if loss is not None:
            yield f"source.utility.loss.lm_by_column.{name}", loss / rows


def _of_release(found: Mapping[str, int]) -> Figures:
    for place in ("statement.rows", "attacks.rows", "annex.release.rows", "source.utility.rows_published"):
        yield place, found["rows"]
    for place in ("statement.classes", "source.utility.classes"):
        yield place, found["groups"]
    yield from _of_groups(_PROSECUTOR, found)
    yield "statement.largest_risk", 1 / found["least"] if found["least"] else None
    yield "source.utility.avg_class_size", found["rows"] / found["groups"] if found["groups"] else 0


def _of_groups(place: str, found: Mapping[str, int]) -> Figures:
    """The risk of who is known by his quasi-identifiers to be in the table: one of the rows of his group."""
    yield f"{place}.largest", 1 / found["least"] if found["least"] else None
    yield f"{place}.mean", found["groups"] / found["rows"] if found["rows"] else None
    yield f"{place}.rows_above", found["rows_above"]
