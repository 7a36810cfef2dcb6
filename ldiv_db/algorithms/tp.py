"""TP: suppress quasi-identifiers of few rows, with a worst-case guarantee (Xiao, Yi, Tao, EDBT 2010).

Rows that agree on all quasi-identifiers are a QI-group. TP removes rows from the groups until no sensitive value is in
more than 1/l of the rows of any group, nor of the rows removed, in three phases (`phases`). What is left of a group
is published as it is; the removed rows are one class, published with a star wherever they differ, or with the
smallest range or label that covers them.

Removing the fewest rows is NP-hard for l > 2. TP removes the fewest if phase one ends it, at most l - 1 more if phase
two does, always for l = 2, and at most l times as many in any case; its stars are at most l d times the fewest
for d quasi-identifiers.
"""

from __future__ import annotations

from typing import Any, Literal

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task
from ldiv_db.algorithms.eligible import check_eligible
from ldiv_db.algorithms.hilbert import cut
from ldiv_db.algorithms.phases import Histogram, Phases, run_phases
from ldiv_db.templates import Relation, Value


class TpOptions(Options):
    """What the removed rows are published as: stars, or the range or label of their class."""

    form: Literal["stars", "ranges"] = "stars"


class Tp(Algorithm):
    """The fewest suppressed rows, within a factor that is proved."""

    name = "tp"
    options_type = TpOptions
    options: TpOptions

    @property
    def stars(self) -> bool:
        return self.options.form == "stars"

    def check(self, task: Task) -> Feasibility:
        """Raises InfeasibleError if a value is too frequent in the table, PolicyError for what TP cannot promise."""
        return check_eligible(task, self.name)

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        assigned, phases = _assign(task, feasible.l)
        if phases.residues[-1].rows:
            assigned = self._split(task, assigned, feasible.l)
        search = _guarantees(phases, feasible.l, len(task.encoded.axes), count_stars(task, assigned))
        return Plan(assigned, feasible.l, (), {"form": self.options.form, **search}, self.stars)

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
        engine.insert(classes, "residue/shift_classes", assigned=kept, last=Value(last))
        engine.drop(removed, kept, assigned)
        return classes


class Hilbert(Tp):
    """The paper's baseline: the whole table cut into classes along a Hilbert curve."""

    name = "hilbert"

    def run(self, task: Task) -> Plan:
        feasible = self.check(task)
        assigned, _ = cut(task, task.encoded.rows, feasible.l)
        search = {"form": self.options.form, "stars": count_stars(task, assigned)}
        return Plan(assigned, feasible.l, (), search, self.stars)


def _assign(task: Task, l: int) -> tuple[Relation, Phases]:  # noqa: E741 - the field's name for it
    """(row_id, class_id), class 0 being the removed rows, and what the phases did."""
    engine, encoded = task.engine, task.encoded
    keys = {"rows": encoded.rows, "axes": encoded.axes, "sensitive": encoded.sensitive[0]}
    cells = engine.materialise("cells", "tp/count_cells", **keys)
    histogram = Histogram.of_cores(engine, cells, l)
    first = max(1, histogram.gap)
    phases = run_phases(histogram, lambda gap: task.progress(max(0, first - gap), first))
    assigned = engine.materialise(
        "assigned", "tp/assign_rows", cells=cells, state=histogram.state, seed=Value(task.seed), **keys
    )
    histogram.drop()
    engine.drop(cells)
    return assigned, phases


def count_stars(task: Task, assigned: Relation) -> int:
    """The cells of quasi-identifiers on which the rows of a class differ."""
    engine, encoded = task.engine, task.encoded
    bounds = engine.materialise(
        "bounds", "publish/bound_classes", rows=encoded.rows, assigned=assigned, axes=encoded.axes
    )
    stars = int(engine.scalar("tp/count_stars", bounds=bounds, axes=encoded.axes))
    engine.drop(bounds)
    return stars


def _guarantees(phases: Phases, l: int, dimensions: int, stars: int) -> dict[str, Any]:  # noqa: E741
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
        "stars": stars,
        "most_stars": dimensions * most,
        "batches": phases.batches,
        "rounds": phases.rounds,
    }
