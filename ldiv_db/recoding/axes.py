"""Axes of a source: every quasi-identifier and sensitive value gets an integer code, by the counts of its values.

A code's distance is what generalisation costs: for a taxonomy the leaf's number, for numbers the place between the
column's bounds. NULL has the last code, alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem, count_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation, Value
from ldiv_db.database.queries import Where
from ldiv_db.policy.parts import Problems
from ldiv_db.policy.resolve import QuasiColumn, Source
from ldiv_db.policy.settings import most_of
from ldiv_db.recoding.encoded import NUMBER_SCALE, Axis, Domain, Encoded, OpenEnds, Renamed, SensitiveAxis
from ldiv_db.recoding.snapshot import Copied, CopiedColumns, bounds_of, names_of, refuse_odd_years, renamed
from ldiv_db.requirements import ROWS_ALONE, Classes, Distribution
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.making import end_labels, from_ranges, from_values, read_ends
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: What becomes of values that stand for none, whatever the taxonomy.
NULLED = "nullif(…) in a view or in `source: {query: …}` makes NULL of what is no value"
#: The way to have values named that an error only counts.
NAMED = "--show-values (in Python show_values=True) names up to ten"


def as_numbered(engine: Engine, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes in the order in which they number rows: by the rows of their most frequent values, most first.

    With the most uniform quasi-identifier first, rows of a rare value are neighbours: mixing them with the rest is
    what costs most.
    """
    return tuple(sorted(axes, key=lambda axis: int(engine.most(axis.dictionary, "rows")), reverse=True))


def scan(
    engine: Engine,
    source: Source,
    show_values: bool = False,
    side_columns: Sequence[Renamed] = (),
    counted: bool = False,
) -> tuple[Copied, list[Axis]]:
    """The source copied and its quasi-identifiers encoded, with `side_columns` in the copy; raises as `encode`."""
    snapshot = CopiedColumns(engine, source, side_columns, counted=counted)
    copied = snapshot.taken()
    encoder = Encoder(engine, source, copied, show_values)
    try:
        snapshot.check(copied.snapshot, copied.weight)
    except InfeasibleError as nulls:
        try:  # what else is wrong is said as well
            encoder.axes()
        except PolicyError as error:
            raise PolicyError([*error.problems, Problem("nulls", str(nulls))]) from None
        raise
    return copied, encoder.axes()


class Encoder:
    """Encodes the copy of one source."""

    def __init__(self, engine: Engine, source: Source, copied: Copied, show_values: bool = False):
        self._engine = engine
        self._source = source
        self._snapshot = copied.snapshot
        self._show_values = show_values
        self._flow = EngineFlow(engine, "recoding/input", rows=copied.snapshot, weight=copied.weight)

    # -- quasi-identifiers -----------------------------------------------------------------------------

    def axes(self) -> list[Axis]:
        """The axes in the policy's order; values that a taxonomy lacks are reported for all of them at once."""
        columns = renamed("q", [qi.name for qi in self._source.quasi_identifiers])
        nulls = self._flow.record("count_nulls", columns=columns) if columns else {}
        axes: list[Axis] = []
        problems = Problems()
        for number, qi in enumerate(self._source.quasi_identifiers, 1):
            if qi.hierarchy.is_shown:
                continue
            with problems.collected():
                axes.append(self._axis(number, qi, bool(nulls[f"q{number}"])))
        problems.refuse()
        return axes

    def _axis(self, number: int, qi: QuasiColumn, nullable: bool) -> Axis:
        make = self._number_axis if qi.hierarchy.is_plain else self._tree_axis
        return make(number, qi, nullable)

    def _tree_axis(self, number: int, qi: QuasiColumn, nullable: bool) -> Axis:
        code = Identifier(f"q{number}")
        taxonomy = qi.hierarchy.taxonomy or self._made_taxonomy(code, qi)
        if nullable:
            taxonomy = taxonomy.with_null()
        last = taxonomy.nodes[0].high
        null_code = last if nullable else None
        nodes = taxonomies.load(self._engine, taxonomy, code.name)
        leaves = {"nodes": nodes, "levels": qi.hierarchy.levels, "by_range": taxonomy.by_range, "null_code": null_code}
        dictionary = self._dictionary("taxonomies/map_leaves", code, **leaves)
        self._refuse_missing(qi, taxonomy, dictionary)
        shown = nodes, taxonomy, most_of(qi.recode)
        return Axis(Identifier(qi.name), code, dictionary, last, null_code, qi.weight, *shown)

    def _dictionary(self, template: str, column: Identifier, **more: Any) -> Relation:
        return self._flow.step(f"dictionary_{column.name}", template, column=column, **more)

    def _refuse_missing(self, qi: QuasiColumn, taxonomy: Taxonomy, dictionary: Relation) -> None:
        shown = self._show_values
        missing = self._engine.rows("taxonomies/list_missing_values", dictionary=dictionary, show_values=shown)
        if not missing:
            return
        count = missing[0][1]
        found = count_phrase(count, "value of the source", "values of the source")
        if shown:
            found = ", ".join(repr(value) for value, _ in missing)
            found += f" and {count - len(missing):,} more" if count > len(missing) else ""
        what = f"taxonomy {taxonomy.origin} has no leaf for {found}"
        ways = [*([qi.hierarchy.form] if qi.hierarchy.form else []), NULLED, *([] if shown else [NAMED])]
        raise PolicyError([Problem(f"quasi_identifiers.{qi.name}", what, "; ".join(ways))])

    def _made_taxonomy(self, code: Identifier, qi: QuasiColumn) -> Taxonomy:
        """The taxonomy that is described by ranges, prefixes or stretches of time."""
        hierarchy = qi.hierarchy
        if not hierarchy.levels:
            return self._ranges(code, qi)
        if hierarchy.by_time:
            refuse_odd_years(self._engine, self._snapshot, code, qi.column)
        return from_values(self._engine, self._snapshot, code, hierarchy.levels, hierarchy.origin)

    def _ranges(self, code: Identifier, qi: QuasiColumn) -> Taxonomy:
        bounds = bounds_of(self._engine, self._snapshot, code, qi.column)
        widths, start = qi.hierarchy.widths or (), qi.hierarchy.start
        problems = Problems()
        with problems.collected(f"quasi_identifiers.{qi.name}.taxonomy"):
            return from_ranges(widths, start, *bounds, qi.column.is_integer, qi.hierarchy.ends)
        raise PolicyError(problems.found)

    def _number_axis(self, number: int, qi: QuasiColumn, nullable: bool) -> Axis:
        code, kind = Identifier(f"q{number}"), qi.column.kind
        smallest, largest = bounds_of(self._engine, self._snapshot, code, qi.column)
        ends = self._ends(qi, largest)
        smallest, largest = ends.clamped(smallest), ends.clamped(largest)
        width = largest - smallest
        shifted = kind != "real" and width <= NUMBER_SCALE
        scale = int(width) if shifted else NUMBER_SCALE
        null_code = scale + 1 if nullable else None
        line = {"kind": kind, "shifted": shifted, "smallest": smallest, "width": width or 1.0, "scale": scale}
        dictionary = self._dictionary("map_numbers", code, null_code=null_code, ends=ends, **line)
        seconds = {"date": 86_400.0, "timestamp": 1e-6, "instant": 1e-6}.get(kind, 1.0)
        domain = Domain(float(width) * seconds, qi.column.is_time, ends)
        return Axis(Identifier(qi.name), code, dictionary, scale, null_code, qi.weight, domain=domain)

    def _ends(self, qi: QuasiColumn, largest: float) -> OpenEnds:
        """The ends of plain numbers, all below the first a step below it; raises PolicyError if they do not fit."""
        problems = Problems()
        with problems.collected(f"quasi_identifiers.{qi.name}"):
            bottom, top = read_ends(qi.hierarchy.ends, qi.column.is_integer)
            own = int if qi.column.is_integer else float
            first, last = (None if end is None else own(end) for end in (bottom, top))
            step = 1 if own is int or first is None else max(largest - first, 1.0) / NUMBER_SCALE
            floor = None if first is None else first - step
            return OpenEnds(first, last, floor, *map(Value, end_labels(qi.hierarchy.ends)))
        raise PolicyError(problems.found)

    def axes_like(self, known: Source, axes: Sequence[Axis]) -> Iterator[Axis]:
        """The axes of quasi-identifiers that a copy has as `known`: its own `axes` where these generalise alike."""
        pairs = zip(known.quasi_identifiers, axes, strict=True)
        numbered = {own.name: (number, own, axis) for number, (own, axis) in enumerate(pairs, 1)}
        for qi in self._source.quasi_identifiers:
            number, own, axis = numbered[qi.name]
            is_alike = (own.hierarchy, own.recode) == (qi.hierarchy, qi.recode)
            yield replace(axis, weight=qi.weight) if is_alike else self._axis(number, qi, axis.null_code is not None)

    # -- sensitive attributes --------------------------------------------------------------------------

    def sensitive(self, own: Sequence[Renamed]) -> tuple[SensitiveAxis, ...]:
        """The sensitive attributes, their values numbered by the source's seed; the rows alone if there are none."""
        names = names_of(self._source.sensitive) or [ROWS_ALONE.name]
        return tuple(self._sensitive(number, name, own) for number, name in enumerate(names, 1))

    def _sensitive(self, number: int, name: str, own: Sequence[Renamed]) -> SensitiveAxis:
        code = Identifier(f"s{number}")
        shown = next((column.alias for column in own if column.column.name == name), None)
        dictionary = self._dictionary("map_sensitive", code, seed=self._source.seed, individuals=False)
        distribution = self._distribution(dictionary)
        judged = None if self._source.judges_null else self._judged(dictionary, distribution)
        sets = name in self._source.sets  # whose members some may be of no harm
        spared = None if sets else self._spared(name, judged[0] if judged else dictionary)
        axis = SensitiveAxis(Identifier(name), code, dictionary, distribution)
        return replace(axis, judged=judged, own=shown, spared=spared)

    def _spared(self, name: str, dictionary: Relation) -> Distribution | None:
        """The distribution of the values that are not harmless; None if all are not."""
        engine, harmless = self._engine, self._source.harmless.get(name, ())
        if not harmless:
            return None
        with engine.scope():
            histogram = engine.materialise("whole", "requirements/take_whole", dictionary=dictionary)
            return Classes(engine, histogram).distribution(engine, harmless)

    def _judged(self, dictionary: Relation, distribution: Distribution) -> tuple[Relation, Distribution] | None:
        """The dictionary without NULL, with its distribution; None if there is no NULL."""
        values = self._engine.select("judged", dictionary, "value", "rows", "code", where=[Where("value", None, "<>")])
        found = self._distribution(values)
        if found.distinct < distribution.distinct:
            return values, found
        self._engine.drop(values)
        return None

    def _distribution(self, dictionary: Relation) -> Distribution:
        return Distribution(sorted(self._engine.column(dictionary, "rows"), reverse=True))

    def individual(self) -> SensitiveAxis | None:
        """The individual of a row, encoded; None if no column says. Each row of nobody known is somebody else's."""
        column = self._source.individual
        if column is None:
            return None
        code, engine = Identifier("p1"), self._engine
        dictionary = self._dictionary("map_sensitive", code, seed=None, weight=None, individuals=True)
        known = engine.tally(dictionary, "rows", where=[Where("code", None, "<>")])
        counts = [rows for rows, individuals in sorted(known, reverse=True) for _ in range(individuals)]
        counts += [1] * engine.total(dictionary, "rows", Where("code", None))
        return SensitiveAxis(Identifier(column.name), code, dictionary, Distribution(counts))


def counts_falling(engine: Engine, attribute: SensitiveAxis) -> list[tuple[int, int]]:
    """(code, rows) of the values of a sensitive attribute, the most frequent first, ties in the order of codes."""
    return sorted(engine.columns(attribute.dictionary, "code", "rows"), key=lambda found: (-found[1], found[0]))


def counted_among(engine: Engine, rows: Relation, axis: SensitiveAxis) -> SensitiveAxis:
    """The attribute with the counts that its values have among these rows."""

    def tally(dictionary: Relation) -> tuple[Relation, Distribution]:
        params = {"dictionary": dictionary, "sample": rows, "key": axis.code}
        counted = engine.materialise("counted", "recoding/input/count_sample", **params)
        return counted, Distribution(sorted(engine.column(counted, "rows"), reverse=True))

    dictionary, distribution = tally(axis.dictionary)
    judged = tally(axis.judged[0]) if axis.judged else None
    return replace(axis, dictionary=dictionary, distribution=distribution, judged=judged)


def among(engine: Engine, encoded: Encoded, rows: Relation) -> Encoded:
    """Some of the rows as a table of their own, by the same codes, with the counts that values have among them."""
    count, individual = engine.count(rows), encoded.individual
    if individual is not None:
        code = individual.code.name
        people = engine.count_groups("people", rows, (code, "code"), where=[Where(code, None, "<>")])
        counts = sorted(engine.column(people, "rows"), reverse=True)
        known = Distribution([*counts, *[1] * (count - sum(counts))])  # nobody's rows count as one each
        individual = replace(individual, dictionary=people, distribution=known)
    sensitive = tuple(counted_among(engine, rows, axis) for axis in encoded.sensitive)
    some = replace(encoded, rows=rows, cells=None, sensitive=sensitive, individual=individual)
    return replace(some, rows_in=count, left_out=0)
