"""The loss of any published table against its source: nothing needs to be known of how it was made.

Rows are not identified, so what is suppressed is the difference of the row counts. Losses are those of a run
(`loss`), worked out from what stands in the published table alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from ldiv_db.database.catalog import columns_of
from ldiv_db.database.context import Listening, Stage
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one, read_exactly
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.database.requests import asked
from ldiv_db.database.stages import timed
from ldiv_db.display import Shown, fields_of
from ldiv_db.measuring.answers import Answer, ask
from ldiv_db.measuring.counts import SourceCells, measure_counts
from ldiv_db.measuring.resolve import ResolvedColumn, Spread, compare_columns, resolve_axes, resolve_sensitive
from ldiv_db.measuring.utility import (
    QueryErrors,
    draw_queries,
    fewer_queries,
    grow_tries,
    measure_divergence,
    measure_queries,
)
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import LARGEST_SEED
from ldiv_db.policy.release_columns import published_columns
from ldiv_db.policy.resolve import Described
from ldiv_db.policy.sensitive import smallest_class
from ldiv_db.recoding.axes import scan
from ldiv_db.recoding.encoded import Axis, Renamed
from ldiv_db.recoding.labels import as_labels
from ldiv_db.recoding.loss import Loss, loss_of, measure_precision
from ldiv_db.recoding.snapshot import Copied
from ldiv_db.requirements import Distribution
from ldiv_db.requirements.parameters import LARGEST

_CLASS, _LABEL = Identifier("class_id"), Identifier("class_label")
#: What is shown of a measurement. What covers what is looked for of KL and of random queries.
COMPARING, COVERING, ASKING = "comparing columns", "looking for what covers what", "answering random queries"
DIVERGING = "measuring the divergence"
#: More random queries than this say nothing more of a table.
MOST_QUERIES = 1_000_000


#: The endings of files that hold a taxonomy.
_TAXONOMY_FILES = (".csv", ".yml", ".yaml", ".json")


def _keys(texts: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Quasi-identifiers as a policy has them: of `age`, or `country=country.csv`."""
    return dict(map(_key, texts or ()))


def _key(text: str) -> tuple[str, dict[str, Any]]:
    name, equals, taxonomy = text.rpartition("=")
    if not equals:
        return text, {}
    is_file = Path(taxonomy).suffix.lower() in _TAXONOMY_FILES
    return name, {"taxonomy": {"file": taxonomy} if is_file else taxonomy}


@dataclass(frozen=True, kw_only=True)
class AgainstSource:
    """The source that a release is held against, and the seed of what is drawn of both."""

    source: Any = asked(None, "The source table or file; by default the policy's.")
    seed: int = asked(0, "The seed of random draws.", least=0, most=LARGEST_SEED)


@dataclass(frozen=True)
class MeasureRequest(AgainstSource, Listening):
    """The question of a measurement: the two tables, their columns, and what is measured besides the losses."""

    published: Any = None
    policy: Policy | Mapping[str, Any] | None = None
    _: KW_ONLY
    qi: str | Sequence[str] | Mapping[str, Any] | None = asked(
        None,
        "Without a policy: a quasi-identifier (numbers and times generalise to ranges), or NAME=TAXONOMY (a file, or a"
        " name in the catalog); repeated.",
        _keys,
        of=list[str] | None,
    )
    sensitive: str | Sequence[str] = asked(
        (), "Without a policy: a sensitive attribute; repeated.", of=list[str] | None
    )
    folder: str | Path = "."
    l: int | None = asked(None, "The l of CAVG; the policy's by default.", of=int | None, least=1, most=LARGEST)
    class_column: str | None = asked(None, name="class")
    class_label: str | None = asked(None, "A published column: the class label of CM.")
    queries: int = asked(0, "Random COUNT queries to answer.", least=0, most=MOST_QUERIES)
    kl: bool = asked(True, "Compute the KL divergence.")
    show_values: bool = asked(False)


@dataclass(frozen=True, repr=False)
class Measurement(Shown):
    """The loss of a published table against its source.

    `rows_unmatched` of its rows cover no row of the source, `rows_uncovered` of the source's are covered by none of its
    (both None if KL was not asked for). `cm` is None without a class label, `queries` without queries, `spreads` if
    columns' distributions were not asked for.
    """

    published: str
    source: str
    l: int | None
    loss: Loss
    rows_in: int
    rows_unmatched: int | None
    rows_uncovered: int | None
    cm: int | None
    queries: QueryErrors | None
    spreads: tuple[Spread, ...] | None = None
    #: What queries answer of the release, if they were asked.
    answers: tuple[Answer, ...] = ()
    #: Whether the policy's requirements are on people; classes are measured in rows all the same.
    of_people: bool = False

    @property
    def rows_added(self) -> int:
        """By how many rows the table has more than the source."""
        return max(0, self.loss.rows_published - self.rows_in)

    def as_dict(self) -> dict[str, Any]:
        """The measurement as JSON has it, keys as those of a run."""
        return {
            **fields_of(self, "published", "source", "rows_in"),
            **fields_of(self.loss, "rows_published", "rows_suppressed"),
            **fields_of(self, "rows_added", "rows_unmatched", "rows_uncovered"),
            **fields_of(self.loss, "cells_suppressed", "classes"),
            "avg_class_size": self.loss.average_class_size,
            "l": self.l,
            "loss": {**self.loss.as_dict(self.l), "cm": self.cm},
            "queries": vars(self.queries) if self.queries else None,
            "answers": [answer.as_dict() for answer in self.answers],
            **({} if self.spreads is None else {"spreads": list(map(vars, self.spreads))}),
        }


@dataclass(frozen=True)
class Besides:
    """The questions besides losses: how far `counts` over two columns are off, and the distributions of columns.

    `preserve` are queries to ask of both tables, usual ones if it is empty. `scanned` is the source, copied and with
    its values, where the caller knows them. `fewer`: of a large table fewer random queries are answered.
    """

    counts: bool = False
    spreads: bool = False
    preserve: Sequence[str] | None = None
    scanned: tuple[Copied, Sequence[Axis]] | None = None
    fewer: bool = False


def measure_table(
    engine: Engine,
    published: Table,
    original: Described,
    wanted: MeasureRequest,
    besides: Besides = Besides(),
) -> Measurement:
    """The loss of `published` against the source that is described, and what is asked `besides`.

    Raises PolicyError for columns that the table lacks
    and for published values that nothing knows, and for values of the source that a taxonomy lacks.
    """
    return _Measuring(engine, original, published, wanted).measure(besides)


def answers_of(engine: Engine, published: Relation, original: Described, queries: Sequence[str]) -> tuple[Answer, ...]:
    """What the policy's queries answer of `published`; nothing if there are none."""
    if not queries:
        return ()
    return measure_table(engine, published, original, MeasureRequest(kl=False), Besides(preserve=queries)).answers


class _Measuring:
    def __init__(self, engine: Engine, original: Described, published: Table, wanted: MeasureRequest):
        self._engine, self._flow = engine, EngineFlow(engine, "measuring")
        self._required = original.required
        self._source, self._of_people = original.source.bare(), original.source.counts_people
        self._forms = original.released.forms
        self._published = published
        names = [column.name for column in columns_of(engine, published)]
        ids = original.released.class_ids_among(names)
        if wanted.class_column is None and ids:
            wanted = replace(wanted, class_column=ids[0])
        self._wanted = wanted
        others = {"class": wanted.class_column, "class_label": wanted.class_label}
        self._cited = published_columns(original.released, names, others)
        self._classes = [Renamed(Identifier(wanted.class_column), _CLASS)] if wanted.class_column else []

    def measure(self, besides: Besides) -> Measurement:
        engine, flow, wanted, source = self._engine, self._flow, self._wanted, self._source
        copied, axes = besides.scanned or scan(engine, source, wanted.show_values, counted=True)
        listener = wanted.heard
        listener.on_expected(self._stages(copied.rows_in, wanted.queries))
        listener.on_stage(COMPARING)
        label = [Renamed(Identifier(wanted.class_label), _LABEL)] if wanted.class_label else []
        flow.know(snapshot=copied.snapshot, weight=copied.weight, others=self._classes + label)
        published = as_labels(engine, self._published, self._forms)
        with (
            read_as_one(engine, published, source.same) as read,  # the source's copy has texts so
            read_exactly(engine, read) as table,
        ):
            flow.step("counted", "count_published", published=table, columns=self._cited)
        found, sensitive = self._resolve(copied, axes)
        both = [*found, *sensitive]
        numbered = flow.step("numbered", "number_published", columns=both)
        rows_in, kept = copied.rows_in, copied.rows_in - copied.left_out
        sizes = flow.record("sum_classes", columns=found, others=self._classes)
        sums = [column.flow(engine).record("sum_losses") for column in found]
        loss = loss_of(axes, sums, sizes, rows_in, int(sizes["rows"]))
        total, blanks = max(rows_in, loss.rows_published), (c.flow(engine).record("sum_blanks") for c in sensitive)
        precision = measure_precision(engine, axes, found, total)
        loss = replace(loss, cells_suppressed=sum(int(one["rows"]) for one in blanks), precision=precision)
        cm = None
        if label:  # the rows without the most frequent label of their class, and those that are suppressed
            told = flow.record("sum_minorities", columns=found, others=self._classes, label=_LABEL)
            cm = loss.rows_suppressed + int(told["minorities"])
        measured = Measurement(
            published=str(self._published),
            source=str(source.relation),
            l=wanted.l or self._promised(sensitive),
            loss=loss,
            rows_in=rows_in,
            rows_unmatched=None,
            rows_uncovered=None,
            cm=cm,
            queries=None,
            of_people=self._of_people,
        )
        if wanted.kl or wanted.queries or besides.counts:
            cells = flow.step("cells", "count_cells", columns=both)
        if besides.counts:
            counted = measure_counts(
                engine, found, sensitive, SourceCells(cells, kept), lambda _: numbered, wanted.seed
            )
            loss = replace(loss, counts=counted)
        if wanted.kl or wanted.queries:
            listener.on_stage(COVERING)
            tries = grow_tries(engine, both, cells, numbered, kept, loss.rows_published)
        if wanted.kl:
            listener.on_stage(DIVERGING)
            diverged = measure_divergence(engine, tries, kept, loss.rows_published)
            loss = replace(loss, kl=diverged.kl, kl_sample=diverged.sample)
            measured = replace(measured, rows_unmatched=diverged.unmatched, rows_uncovered=diverged.uncovered)
        if wanted.queries:
            queries = fewer_queries(engine, tries, wanted.queries) if besides.fewer else wanted.queries
            draws = draw_queries(found, sensitive, kept, queries, wanted.seed)
            listener.on_expected(self._stages(copied.rows_in, queries)[-1:])
            listener.on_stage(ASKING)
            errors = measure_queries(engine, both, tries, draws, kept, wanted.seed, listener.on_progress)
            measured = replace(measured, queries=errors)
        if besides.spreads:
            measured = replace(measured, spreads=compare_columns(engine, found, sensitive, numbered))
        if besides.preserve is not None:
            measured = replace(measured, answers=ask(engine, source, both, numbered, besides.preserve))
        return replace(measured, loss=loss)

    def _stages(self, rows: int, queries: int) -> list[Stage]:
        """What is before it, with the seconds that so many rows and queries are expected to take."""
        wanted, cells = self._wanted, rows * (len(self._cited) or 1)
        work = {COMPARING: cells, COVERING: cells if wanted.kl or queries else 0, DIVERGING: cells * wanted.kl}
        work[ASKING] = cells * queries // 100
        return [timed(name, amount, len(self._cited)) for name, amount in work.items() if amount]

    def _resolve(self, copied: Copied, axes: Sequence[Axis]) -> tuple[list[ResolvedColumn], list[ResolvedColumn]]:
        engine, counted = self._engine, self._flow["counted"]
        columns = [qi.column for qi in self._source.quasi_identifiers]
        kinds = [column.kind if column.is_number or column.is_time else "text" for column in columns]
        sets = [self._forms[axis.name] == "set" for axis in axes]
        found, sensitive = resolve_axes(engine, counted, axes, kinds, sets), []
        for number, column in enumerate(self._source.sensitive, 1):
            code, mapped = f"s{number}", "recoding/input/map_sensitive"
            how = {"column": code, "seed": self._wanted.seed, "individuals": False}
            dictionary = self._flow.step(f"dictionary_{code}", mapped, rows=copied.snapshot, **how)
            sensitive.append(resolve_sensitive(engine, counted, column.name, code, dictionary))
        return found, sensitive

    def _promised(self, sensitive: Sequence[ResolvedColumn]) -> int | None:
        """The l of the policy's requirements, as a run takes it; None if they ask for nothing."""
        where = [] if self._source.judges_null else [Where("value", None, "<>")]
        counts = [self._engine.find(column.dictionary, "rows", where=where) for column in sensitive]
        judged = [Distribution(sorted((rows for (rows,) in of_values), reverse=True)) for of_values in counts]
        hardest = min(judged, key=lambda found: found.largest_l, default=None)
        wanted = self._required.resolved(hardest)
        return smallest_class(requirement for some in wanted.values() for requirement in some)


def policy_of_source(engine: Engine, policy: Policy, original: Table, source: Any) -> Policy:
    """The policy as it is of another source: a table of rows, unless it has the column of counts as well."""
    names = [column.name.lower() for column in columns_of(engine, original)]
    if source is None or policy.weight is None or policy.weight.lower() in names:
        return policy
    return policy.model_copy(update={"weight": None})
