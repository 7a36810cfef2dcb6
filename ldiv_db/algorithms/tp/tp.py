"""TP: suppress quasi-identifiers of few rows (Xiao, Yi, Tao, EDBT 2010); `tp_plus` and `hilbert` are variants of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.tp.coarsening import check_levels, coarsen, publish_bounds, try_levels
from ldiv_db.algorithms.tp.eligibility import check_eligible
from ldiv_db.algorithms.tp.hilbert import cut
from ldiv_db.algorithms.tp.three_phases import Histogram, Phases, run_phases
from ldiv_db.database.templates import Relation, Value


def _one_message(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """What to coarsen; one message if it is neither of the two things that it may be."""
    try:
        return read(value)
    except ValidationError:
        raise ValueError("takes auto, or a level from 0 for each column, e.g. {age: 2}") from None


class TpOptions(Options):
    """What the removed rows are published as, stars or the range or label of their class, and what is coarsened."""

    form: Literal["stars", "ranges"] = "stars"
    coarsen: Annotated[
        Literal["auto"] | dict[str, Annotated[int, Field(ge=0, le=1_000)]], WrapValidator(_one_message)
    ] = Field(default_factory=dict)


class Tp(Algorithm):
    """The fewest suppressed rows, within a factor that is proved."""

    name = "tp"
    options_type = TpOptions
    options: TpOptions
    takes_counts = True

    @property
    def excludes_sets(self) -> str:
        """Stars and coarsened values say more than occurs in a class; a set would be what occurs."""
        if self.options.form == "stars":
            return "stars"
        return "coarsened values" if self.options.coarsen else ""

    def check(self, task: Task) -> Feasibility:
        """Raises InfeasibleError if a value is too frequent in the table, PolicyError for what TP cannot promise."""
        if self.options.coarsen != "auto":
            check_levels(task.encoded.axes, self.options.coarsen)
        return check_eligible(task, self.name)

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        if self.options.coarsen == "auto":
            return try_levels(task, lambda levels: self._publish(task, feasible.l, levels))
        return self._publish(task, feasible.l, self.options.coarsen)

    def _publish(self, task: Task, l: int, levels: Mapping[str, int]) -> Plan:  # noqa: E741 - the field's name for it
        """The plan at these levels of the taxonomies."""
        engine = task.engine
        task, coarse = coarsen(task, levels)
        assigned, search = self._classes(task, l)
        bounds = engine.materialise(
            "bounds",
            "recoding/publish/bound_classes",
            rows=task.encoded.rows,
            assigned=assigned,
            axes=task.encoded.axes,
        )
        stars = int(engine.scalar("tp/count_stars", bounds=bounds, axes=task.encoded.axes))
        search = {"form": self.options.form, "coarsened": dict(levels), "stars": stars, **search}
        classes = publish_bounds(engine, bounds, coarse, stars=self.options.form == "stars")
        engine.drop(bounds, *(axis.cut for axis in coarse if axis.cut))
        return Plan(assigned, l, (), search, classes, stars=self.options.form == "stars")

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:  # noqa: E741
        """(row_id, class_id), and what the result says of the work."""
        assigned, phases = _assign(task, l)
        if phases.residues[-1].rows:
            assigned = self._split(task, assigned, l)
        return assigned, _guarantees(phases, l, len(task.encoded.axes))

    def _split(self, task: Task, assigned: Relation, l: int) -> Relation:  # noqa: E741
        """The removed rows, which are class 0, in their classes: TP leaves them in one."""
        return assigned


class TpPlus(Tp):
    """TP, the removed rows being cut into classes along a Hilbert curve: never more stars."""

    name = "tp_plus"

    def _split(self, task: Task, assigned: Relation, l: int) -> Relation:  # noqa: E741
        engine, rows = task.engine, task.encoded.rows
        removed = engine.materialise("removed", "tp/list_removed", rows=rows, assigned=assigned)
        kept = engine.materialise("assigned", "tp/keep_groups", assigned=assigned)
        classes, last = cut(task, removed, l)
        engine.insert(classes, "bsgi/residue/shift_classes", assigned=kept, last=Value(last))
        engine.drop(removed, kept, assigned)  # all the rows, before classes are bounded
        return classes


class Hilbert(Tp):
    """The paper's baseline: the whole table cut into classes along a Hilbert curve."""

    name = "hilbert"
    takes_counts = False

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:  # noqa: E741
        return cut(task, task.encoded.rows, l)[0], {}


def _assign(task: Task, l: int) -> tuple[Relation, Phases]:  # noqa: E741 - the field's name for it
    """(row_id, class_id), class 0 being the removed rows, and what the phases did."""
    engine, encoded = task.engine, task.encoded
    with engine.scope() as scope:
        cells = engine.materialise(
            "cells",
            "tp/count_cells",
            rows=encoded.counted,
            weight=encoded.weight,
            axes=encoded.axes,
            sensitive=encoded.sensitive[0],
        )
        histogram = Histogram.of_cores(engine, cells, l)
        first = max(1, histogram.gap)
        phases = run_phases(histogram, lambda gap: task.progress(max(0, first - gap), first))
        return scope.keep(assign_groups(task, cells, histogram.state)), phases


def assign_groups(task: Task, cells: Relation, state: Relation) -> Relation:
    """(row_id, class_id): kept rows in the class of their group's number, removed ones in class 0."""
    return task.engine.materialise(
        "assigned",
        "tp/assign_rows",
        rows=task.encoded.rows,
        axes=task.encoded.axes,
        sensitive=task.encoded.sensitive[0],
        cells=cells,
        state=state,
        seed=Value(task.seed),
    )


def _guarantees(phases: Phases, l: int, dimensions: int) -> dict[str, Any]:  # noqa: E741
    """What the result says of the work: how far from the optimum it can be at most."""
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
