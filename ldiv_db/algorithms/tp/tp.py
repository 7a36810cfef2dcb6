"""TP suppresses quasi-identifiers of few rows (Xiao, Yi, Tao, EDBT 2010); three more algorithms are variants of it.

In an l-eligible class no sensitive value is in more than 1/l of the rows. A union of such classes is one, so a
table has any if and only if it is one as a whole. A class that is not empty then has at least l rows and l different
values; its entropy is at least ln l, as its largest share is at most 1/l; and of its n rows at least n (l - l' + 1) / l
are left without the l' - 1 most frequent values, which bounds recursive (c,l') as in classes of different values.

Coarsening: at level 0 of a taxonomy values are leaves; at level k a value stands for its ancestor k levels above the
deepest leaves, or for itself if that is a leaf nearer to the root. Fewer values make larger QI-groups, and fewer stars
(Section 5.6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task, Traits
from ldiv_db.algorithms.infeasible import cannot_promise, too_frequent
from ldiv_db.algorithms.tp.three_phases import Histogram, Phases, run_phases
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, Problem, nearest, refuse
from ldiv_db.database.names import NamedAfter, Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import Axis
from ldiv_db.taxonomies.taxonomy import Taxonomy


def eligible_l(task: Task, name: str) -> int:
    """The smallest l, from 2, such that l-eligible classes meet every requirement.

    Raises PolicyError for those that no l promises, for several sensitive attributes and for individuals.
    """
    problems = [
        cannot_promise(name, requirement, "it bounds how frequent a value is in a class")
        for requirement in task.requirements
        if not requirement.met_by_eligible
    ]
    if len(task.encoded.sensitive) > 1:
        problems.append(Problem("sensitive", f"{name} takes one sensitive attribute", "bsgi takes several"))
    if task.encoded.individual is not None:
        problems.append(Problem("individual", f"{name} does not distinguish individuals", "bsgi does"))
    refuse(problems)
    least = max(2, *(requirement.unique_class_size() or 2 for requirement in task.requirements))
    # Without the rows of one value, which NULL is, a class that is (l + 1)-eligible is still l-eligible.
    return least + task.encoded.leaves_unjudged


def _one_message(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """The columns to coarsen; one message if it is neither of the two things that it may be."""
    try:
        return read(value)
    except ValidationError:
        raise ValueError("takes auto, or a level from 0 for each column, e.g. {age: 2}") from None


class TpOptions(Options):
    """The form of removed rows, stars or the range or label of their class, and the columns that are coarsened."""

    form: Literal["stars", "ranges"] = "stars"
    coarsen: Annotated[
        Literal["auto"] | dict[str, Annotated[int, Field(ge=0, le=1_000)]], WrapValidator(_one_message)
    ] = Field(default_factory=dict)


class Tp(Algorithm):
    """The fewest suppressed rows, within a factor that is proved."""

    name = "tp"
    options_type = TpOptions
    options: TpOptions
    traits = Traits(counts=True)

    @property
    def excludes_sets(self) -> str:
        """Stars and coarsened values say more than occurs in a class; a set would be what occurs."""
        if self.options.form == "stars":
            return "stars"
        return "coarsened values" if self.options.coarsen else ""

    def check(self, task: Task) -> Feasibility:
        """Raises InfeasibleError if a value is too frequent in the table, PolicyError for what TP cannot promise."""
        if self.options.coarsen != "auto":
            _check_levels(task.encoded.axes, self.options.coarsen)
        l, (axis,) = eligible_l(task, self.name), task.encoded.sensitive
        counts, rows = axis.distribution.counts, axis.distribution.rows
        if not counts or counts[0] * l > rows:
            raise InfeasibleError(too_frequent(task.encoded, axis, l), l)
        return Feasibility(l, rows // l, task.encoded.left_out, ("the number of classes is at most that",))

    def run(self, task: Task) -> Plan:
        levels = {} if self.options.coarsen == "auto" else self.options.coarsen
        return self._publish(task, self.check(task).l, levels)

    def at(self, levels: Mapping[str, int]) -> Tp:
        """The same algorithm with quasi-identifiers at these levels of their taxonomies."""
        return type(self)({**self.options.model_dump(exclude_unset=True), "coarsen": dict(levels)})

    def _publish(self, task: Task, l: int, levels: Mapping[str, int]) -> Plan:
        engine = task.engine
        task, coarse = _coarsen(task, levels)
        assigned, search = self._classes(task, l)
        bounds = task.encoded.bound_classes(engine, assigned)
        stars = int(engine.scalar("tp/count_stars", bounds=bounds, axes=task.encoded.axes))
        search = {"form": self.options.form, "coarsened": dict(levels), "stars": stars, **search}
        shown = {"axes": coarse, "stars": self.options.form == "stars"}
        classes = engine.materialise("widened", "tp/widen_bounds", bounds=bounds, **shown)
        engine.drop(bounds, *(axis.cut for axis in coarse if axis.cut))
        return Plan(assigned, l, (), search, classes=classes, stars=self.options.form == "stars")

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:
        """(row_id, class_id), and what the result says of the work."""
        encoded = task.encoded
        with task.engine.scope() as scope:
            histogram = Histogram(task.engine, count_groups(task), l)
            first = max(1, histogram.gap)
            phases = run_phases(histogram, lambda gap: task.progress(max(0, first - gap), first))
            histogram.know(rows=encoded.rows, axes=encoded.axes, sensitive=encoded.sensitive[0], seed=task.seed)
            assigned = scope.keep(histogram.step("assigned", "assign_rows"))  # removed rows are in class 0
        if phases.residues[-1].rows:
            assigned = self._split(task, assigned, l)
        return assigned, _guarantees(phases, l, len(encoded.axes))

    def _split(self, task: Task, assigned: Relation, l: int) -> Relation:
        """The removed rows, which are class 0, in their classes: TP leaves them in one."""
        return assigned


def count_groups(task: Task) -> Relation:
    """(group_no, the codes of all quasi-identifiers, code, rows): QI-groups, from 1, by sensitive value."""
    engine, encoded = task.engine, task.encoded
    with engine.scope() as scope:
        cells = encoded.count_cells(engine, (encoded.sensitive[0].code.name, "code"))
        return scope.keep(engine.number_groups("cells", cells, *encoded.codes, number="group_no", columns=()))


def kept_rows(engine: Engine, assigned: Relation) -> Relation:
    """The rows that are in no class 0."""
    return engine.select("kept", assigned, where=[Where("class_id", 0, "<>")])


def _guarantees(phases: Phases, l: int, dimensions: int) -> dict[str, Any]:
    """The figures of the work, and the most that it can be away from the optimum."""
    first, last = phases.residues[0], phases.residues[-1]
    fewest = max(first.rows, l * first.height)  # any solution removes as many rows (Corollary 5.10)
    bounds = {1: fewest, 2: l * first.height + l - 1, 3: l * fewest}
    most = bounds[phases.last]
    return {
        "phase": phases.last,
        "removed_rows": [residue.rows for residue in phases.residues],
        "pillar_heights": [residue.height for residue in phases.residues],
        "fewest_rows": fewest,
        "most_rows": most,
        "ratio": last.rows / fewest if fewest else 1.0,
        "most_stars": dimensions * most,
        "batches": phases.batches,
        "rounds": phases.rounds,
    }


@dataclass(frozen=True, kw_only=True)
class Coarse(Axis):
    """A quasi-identifier with its cut: `cut` is (code, low, high), the span of codes that each is published as."""

    cut: Relation | None

    #: The cut once more, for the other end of a span.
    upper = NamedAfter("{0.table.name}_upper")

    @property
    def last(self) -> int:
        """The last code, NULL's included."""
        return max(self.scale, self.null_code or 0)


def _check_levels(axes: Sequence[Axis], levels: Mapping[str, int]) -> None:
    """Raise PolicyError for columns that are no quasi-identifiers with a taxonomy, and levels that it lacks."""
    known, problems = {axis.name: axis.taxonomy for axis in axes}, []
    for name, level in levels.items():
        key = f"algorithm.coarsen.{name}"
        if name not in known:
            problems.append(Problem(key, "is not a quasi-identifier", nearest(name, known)))
            continue
        taxonomy = known[name]
        if taxonomy is None:
            problems.append(Problem(key, "has no taxonomy to coarsen by"))
        elif level > taxonomy.height:
            problems.append(Problem(key, f"the taxonomy has no level {level}", f"the highest is {taxonomy.height}"))
    refuse(problems)


def _spans_at(taxonomy: Taxonomy, level: int) -> list[tuple[int, int]]:
    """The spans of leaf numbers of the nodes at a level, in order: together they are all leaves."""
    depth = max(0, taxonomy.height - level)
    return [(node.low, node.high) for node in taxonomy.nodes if node.depth == depth] + [
        (leaf.low, leaf.high) for leaf in taxonomy.leaves if leaf.depth < depth
    ]


def _coarsen(task: Task, levels: Mapping[str, int]) -> tuple[Task, list[Coarse]]:
    """The task on coarse codes, the first of what each stands for, and the quasi-identifiers with their cuts."""
    engine, encoded = task.engine, task.encoded
    coarse = [Coarse(**vars(axis), cut=_cut(engine, axis, levels.get(axis.name, 0))) for axis in encoded.axes]
    if all(axis.cut is None for axis in coarse):
        return task, coarse
    rows = engine.materialise(
        "coarse", "tp/coarsen_rows", rows=encoded.rows, axes=coarse, sensitive=encoded.sensitive[0]
    )
    return replace(task, encoded=replace(encoded, rows=rows, kept=(), cells=None)), coarse


def _cut(engine: Engine, axis: Axis, level: int) -> Relation | None:
    if not level or axis.taxonomy is None:
        return None
    rows = [(code, low, high) for low, high in _spans_at(axis.taxonomy, level) for code in range(low, high + 1)]
    return engine.load(f"cut_{axis.code.name}", {"code": "BIGINT", "low": "BIGINT", "high": "BIGINT"}, rows)
