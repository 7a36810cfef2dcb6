"""Encoding: every quasi-identifier and sensitive value becomes an integer, once, in TEMP tables.

Algorithms see codes and counts only. A code's distance is what generalisation costs: for a taxonomy
the leaf's number, for numbers the place between the column's bounds. NULL has the last code, alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ldiv_db.database.catalog import Column
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import AuditError, PolicyError, Problem, numbered
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.policy.parts import TaxonomySpec
from ldiv_db.policy.policy import Policy, QuasiIdentifier
from ldiv_db.recoding.bounds import bounds_of, refuse_odd_years
from ldiv_db.recoding.encoded import NUMBER_SCALE, Axis, Encoded, Renamed, SensitiveAxis
from ldiv_db.recoding.snapshot import Snapshot, renamed, signed_columns
from ldiv_db.requirements import Distribution
from ldiv_db.taxonomies import readers as taxonomy_sources
from ldiv_db.taxonomies import taxonomy as taxonomies
from ldiv_db.taxonomies.readers import Level
from ldiv_db.taxonomies.taxonomy import Taxonomy

#: How to have values named that an error only counts.
NAMED = "--show-values (in Python show_values=True) names up to ten"


class Encoder:
    """Encodes one source under one policy; `folder` is where relative files of the policy lie.

    With a `secret`, rows have key_hash and values_hash: of the policy's key, and of it with their sensitive values.
    Errors count the values that a taxonomy lacks, and with `show_values` name up to ten of them.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        columns: list[Column],
        folder: Path,
        secret: str | None = None,
        show_values: bool = False,
    ):
        self._engine = engine
        self._policy = policy
        self._types = {column.name.lower(): column for column in columns}
        self._folder = folder
        self._secret = secret
        self._show_values = show_values
        self._key = renamed("h", [policy.key]) if policy.key and secret else []

    def encode(self, source: Relation | FileRelation) -> Encoded:
        """The encoded source.

        Raises InfeasibleError for an empty source and for NULLs that the policy rejects, PolicyError
        for taxonomies that are missing or do not cover the values.
        """
        own = signed_columns(self._engine, self._policy, self._types, source)
        snapshot, axes, rows_in, left_out = self.scan(source, own)
        sensitive = tuple(self._sensitive(snapshot, i, name, own) for i, name in enumerate(self._policy.sensitive, 1))
        individual = self._individual(snapshot)
        coded = [*sensitive, *([individual] if individual else [])]
        kept = Snapshot(self._engine, self._policy, self._types).loose(renamed("k", self._policy.keep))
        ordered = sorted(axes, key=self._most_frequent, reverse=True)
        engine = self._engine
        rows = engine.materialise(
            "rows",
            "recoding/input/encode_rows",
            rows=snapshot,
            axes=ordered,
            sensitive=coded,
            kept=kept,
            own=own,
            key=self._key[0] if self._key else None,
            hashed=sensitive,
            secret=Value(self._secret),
        )
        engine.drop(snapshot)
        found = engine.count(rows)
        if found != rows_in - left_out:
            raise AuditError(
                f"encoding made {found:,} rows of {rows_in - left_out:,}: a value has several codes or none"
            )
        return Encoded(rows, tuple(axes), sensitive, tuple(kept), rows_in, left_out, individual)

    def scan(
        self, source: Relation | FileRelation, own: Sequence[Renamed] = ()
    ) -> tuple[Relation, list[Axis], int, int]:
        """A TEMP copy of the columns under working names, the axes, the source's rows, and how many a NULL left out."""
        known = self._known_taxonomies()
        taking = Snapshot(self._engine, self._policy, self._types, [*own, *self._key])
        snapshot, rows_in, left_out = taking.take(source)
        return snapshot, self._axes(snapshot, known), rows_in, left_out

    def _most_frequent(self, axis: Axis) -> int:
        """The rows of the axis's most frequent value.

        Rows are numbered with the most uniform quasi-identifier first, so that those of a rare value are
        neighbours: mixing them with the rest is what costs most.
        """
        return int(self._engine.most(axis.dictionary, "rows"))

    # -- quasi-identifiers -----------------------------------------------------------------------------

    def _known_taxonomies(self) -> dict[str, Taxonomy]:
        """The taxonomies that need no data, by quasi-identifier; all problems with them at once."""
        found, problems = {}, []
        for name, qi in self._policy.quasi_identifiers.items():
            try:
                taxonomy = self._named_taxonomy(qi)
            except PolicyError as error:
                problems += [Problem(f"quasi_identifiers.{name}.{p.key}", p.what, p.hint) for p in error.problems]
                continue
            if taxonomy is not None:
                found[name] = taxonomy
        if problems:
            raise PolicyError(problems)
        return found

    def _named_taxonomy(self, qi: QuasiIdentifier) -> Taxonomy | None:
        spec = qi.taxonomy
        if spec is None or (spec.file is None and spec.name is None):
            return None
        if spec.file is not None:
            return taxonomy_sources.read_taxonomy(self._folder / spec.file, spec.tree)
        return taxonomies.require(self._engine, spec.name or "")

    def _axes(self, snapshot: Relation, known: dict[str, Taxonomy]) -> list[Axis]:
        """The axes in the policy's order; values that a taxonomy lacks are reported for all of them at once."""
        names = list(self._policy.quasi_identifiers)
        nulls = self._engine.record("recoding/input/count_nulls", rows=snapshot, columns=renamed("q", names))
        axes: list[Axis] = []
        problems: list[Problem] = []
        for number, (name, qi) in enumerate(self._policy.quasi_identifiers.items(), 1):
            code = Identifier(f"q{number}")
            try:
                if qi.numeric:
                    axes.append(self._number_axis(snapshot, number, name, qi.weight, bool(nulls[code.name])))
                else:
                    taxonomy = known.get(name) or self._made_taxonomy(
                        snapshot, code, name, qi.taxonomy or TaxonomySpec()
                    )
                    axes.append(self._tree_axis(snapshot, number, name, taxonomy, qi.weight, bool(nulls[code.name])))
            except PolicyError as error:
                problems += error.problems
        if problems:
            raise PolicyError(problems)
        return axes

    def _tree_axis(
        self, snapshot: Relation, number: int, name: str, taxonomy: Taxonomy, weight: float, nullable: bool
    ) -> Axis:
        if nullable:
            taxonomy = taxonomy.with_null()
        last = taxonomy.nodes[0].high
        code = Identifier(f"q{number}")
        nodes = taxonomies.load(self._engine, taxonomy, code.name)
        dictionary = self._engine.materialise(
            f"dictionary_{code.name}",
            "recoding/input/map_leaves",
            rows=snapshot,
            nodes=nodes,
            column=code,
            by_range=taxonomy.by_range,
            levels=self._levels(name),
            null_code=Value(last if nullable else None),
        )
        self._refuse_missing(name, taxonomy, dictionary)
        return Axis.numbered(number, name, dictionary, last, last if nullable else None, weight, nodes, taxonomy)

    def _refuse_missing(self, name: str, taxonomy: Taxonomy, dictionary: Relation) -> None:
        shown = self._show_values
        missing = self._engine.rows("recoding/input/list_missing_values", dictionary=dictionary, show_values=shown)
        if not missing:
            return
        count = missing[0][1]
        found = numbered(count, "value of the source", "values of the source")
        if shown:
            found = ", ".join(repr(value) for value, _ in missing)
            found += f" and {count - len(missing):,} more" if count > len(missing) else ""
        what = f"taxonomy {taxonomy.origin} has no leaf for {found}"
        raise PolicyError([Problem(f"quasi_identifiers.{name}", what, "" if shown else NAMED)])

    def _levels(self, name: str) -> list[Level]:
        """The levels of a taxonomy that is made of the values themselves; none for any other."""
        spec = self._policy.quasi_identifiers[name].taxonomy
        if spec and spec.prefix:
            return taxonomy_sources.prefix_levels(spec.prefix)
        return taxonomy_sources.date_levels(spec.dates) if spec and spec.dates else []

    def _made_taxonomy(self, snapshot: Relation, code: Identifier, name: str, spec: TaxonomySpec) -> Taxonomy:
        """The taxonomy that the policy describes by ranges, prefixes or stretches of time."""
        levels = self._levels(name)
        if not levels:
            return self._ranges(snapshot, code, name, spec)
        if spec.dates:
            refuse_odd_years(self._engine, snapshot, code, self._types[name.lower()])
        origin = f"of prefixes {spec.prefix}" if spec.prefix else f"of {', '.join(spec.dates or ())}"
        return taxonomy_sources.from_values(self._engine, snapshot, code, levels, origin)

    def _ranges(self, snapshot: Relation, code: Identifier, name: str, spec: TaxonomySpec) -> Taxonomy:
        smallest, largest = bounds_of(self._engine, snapshot, code, self._types[name.lower()])
        integers = self._types[name.lower()].is_integer
        try:
            return taxonomy_sources.from_ranges(spec.ranges or [], spec.origin, smallest, largest, integers)
        except PolicyError as error:
            raise PolicyError(
                Problem(f"quasi_identifiers.{name}.taxonomy.{p.key}", p.what, p.hint) for p in error.problems
            ) from None

    def _number_axis(self, snapshot: Relation, number: int, name: str, weight: float, nullable: bool) -> Axis:
        code = Identifier(f"q{number}")
        smallest, largest = bounds_of(self._engine, snapshot, code, self._types[name.lower()])
        width = largest - smallest
        kind = self._types[name.lower()].kind
        shifted = kind != "real" and width <= NUMBER_SCALE
        scale = int(width) if shifted else NUMBER_SCALE
        dictionary = self._engine.materialise(
            f"dictionary_{code.name}",
            "recoding/input/map_numbers",
            rows=snapshot,
            column=code,
            kind=kind,
            shifted=shifted,
            smallest=Value(smallest),
            width=Value(width or 1.0),
            scale=Value(scale),
            null_code=Value(scale + 1 if nullable else None),
        )
        return Axis.numbered(number, name, dictionary, scale, scale + 1 if nullable else None, weight)

    # -- sensitive attributes --------------------------------------------------------------------------

    def _sensitive(self, snapshot: Relation, number: int, name: str, own: Sequence[Renamed]) -> SensitiveAxis:
        code = Identifier(f"s{number}")
        shown = next((column.alias for column in own if column.column.name == name), None)
        dictionary = self._engine.materialise(
            f"dictionary_{code.name}",
            "recoding/input/map_sensitive",
            rows=snapshot,
            column=code,
            seed=Value(self._policy.seed),
        )
        distribution = self._distribution(dictionary)
        judged = self._judged(dictionary, distribution) if self._policy.suppressed == "ignore" else None
        table = Identifier(f"t_{code.name}")
        return SensitiveAxis(Identifier(name), code, table, dictionary, distribution, judged=judged, own=shown)

    def _judged(self, dictionary: Relation, distribution: Distribution) -> tuple[Relation, Distribution] | None:
        """The dictionary without NULL, with its distribution; None if there is no NULL."""
        values = self._engine.materialise("judged", "recoding/input/list_judged", dictionary=dictionary)
        found = self._distribution(values)
        if found.distinct < distribution.distinct:
            return values, found
        self._engine.drop(values)
        return None

    def _distribution(self, dictionary: Relation) -> Distribution:
        return Distribution(sorted(self._engine.column(dictionary, "rows"), reverse=True))

    def _individual(self, snapshot: Relation) -> SensitiveAxis | None:
        """Whose row it is, encoded; None if the policy does not say. Each row of nobody known is somebody else's."""
        if self._policy.individual is None:
            return None
        code, engine = Identifier("p1"), self._engine
        dictionary = engine.materialise("dictionary_p1", "recoding/input/map_individuals", rows=snapshot, column=code)
        counts: list[int] = []
        for rows, individuals in engine.rows("recoding/input/count_individuals", dictionary=dictionary):
            counts += [rows] * individuals
        return SensitiveAxis(
            Identifier(self._policy.individual), code, Identifier("t_p1"), dictionary, Distribution(counts)
        )
