"""TP suppresses quasi-identifiers of few rows (Xiao, Yi, Tao, EDBT 2010); three more algorithms are variants of it.

In an l-eligible class no sensitive value is in more than 1/l of the rows. A union of such classes is one, so a
table has any if and only if it is one as a whole. A class that is not empty then has at least l rows and l different
values; its entropy is at least ln l, as its largest share is at most 1/l; and of its n rows at least n (l - l' + 1) / l
are left without the l' - 1 most frequent values, which bounds recursive (c,l') as in classes of different values.

`matching` publishes the fewest stars where they can be had in polynomial time: two sensitive values and l = 2 (Section
4). Then half of the rows have either value, and any release is as good as one of pairs with a row of each: a perfect
matching whose weight is the stars. Equal rows pair off first, as weights keep the triangle inequality; the rest is
a flow between the QI-groups that have too many rows of one value and those of the other, of least cost as networkx's
network simplex finds it on their counts. Only these counts are read from the database, never rows.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from ldiv_db.algorithms.base import Algorithm, Feasibility, Options, Plan, Task, Traits
from ldiv_db.algorithms.infeasible import cannot_promise, too_frequent
from ldiv_db.algorithms.tp.three_phases import Histogram, Phases, run_phases
from ldiv_db.algorithms.tp.variants import check_levels, coarsen, cut
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem, refuse
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where


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
            check_levels(task.encoded.axes, self.options.coarsen)
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
        task, coarse = coarsen(task, levels)
        assigned, search = self._classes(task, l)
        bounds = task.encoded.bound_classes(engine, assigned)
        stars = int(engine.scalar("tp/count_stars", bounds=bounds, axes=task.encoded.axes))
        search = {"form": self.options.form, "coarsened": dict(levels), "stars": stars, **search}
        shown = {"axes": coarse, "stars": self.options.form == "stars"}
        classes = engine.materialise("widened", "tp/widen_bounds", bounds=bounds, **shown)
        engine.drop(bounds, *(axis.cut for axis in coarse if axis.cut))
        return Plan(assigned, l, (), search, classes, stars=self.options.form == "stars")

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:
        """(row_id, class_id), and what the result says of the work."""
        assigned, phases = _assign(task, l)
        if phases.residues[-1].rows:
            assigned = self._split(task, assigned, l)
        return assigned, _guarantees(phases, l, len(task.encoded.axes))

    def _split(self, task: Task, assigned: Relation, l: int) -> Relation:
        """The removed rows, which are class 0, in their classes: TP leaves them in one."""
        return assigned


class TpPlus(Tp):
    """TP, the removed rows being cut into classes along a Hilbert curve: never more stars."""

    name = "tp_plus"

    def _split(self, task: Task, assigned: Relation, l: int) -> Relation:
        engine, rows = task.engine, task.encoded.rows
        kept = _kept_rows(engine, assigned)
        removed = engine.select_others("removed", rows, kept, "row_id")
        classes, last = cut(task, removed, l)
        engine.insert(classes, "bsgi/residue/shift_classes", assigned=kept, last=last)
        engine.drop(removed, kept, assigned)  # all the rows, before classes are bounded
        return classes


class Hilbert(Tp):
    """The paper's baseline: the whole table cut into classes along a Hilbert curve."""

    name = "hilbert"
    traits = Traits()

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:
        return cut(task, task.encoded.rows, l)[0], {}


def _assign(task: Task, l: int) -> tuple[Relation, Phases]:
    """(row_id, class_id), class 0 being the removed rows, and what the phases did."""
    engine = task.engine
    with engine.scope() as scope:
        cells = _count_cells(task)
        histogram = Histogram.of_cores(engine, cells, l)
        first = max(1, histogram.gap)
        phases = run_phases(histogram, lambda gap: task.progress(max(0, first - gap), first))
        return scope.keep(assign_groups(task, cells, histogram.state)), phases


def _count_cells(task: Task) -> Relation:
    """(group_no, the codes of all quasi-identifiers, code, rows): QI-groups, from 1, by sensitive value."""
    engine, encoded = task.engine, task.encoded
    with engine.scope() as scope:
        cells = encoded.count_cells(engine, (encoded.sensitive[0].code.name, "code"))
        return scope.keep(engine.number_groups("cells", cells, *encoded.codes, number="group_no", columns=()))


def _kept_rows(engine: Engine, assigned: Relation) -> Relation:
    return engine.select("kept", assigned, where=[Where("class_id", 0, "<>")])


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
        seed=task.seed,
    )


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


#: The most pairs of groups that a flow may run between: about this many edges are held in memory.
MOST_PAIRS = 250_000


@dataclass(frozen=True)
class Surplus:
    """A QI-group, its codes, and how many rows more of its more frequent value it has."""

    group_no: int
    code: int
    rows: int
    point: tuple[int, ...]

    def stars(self, other: Surplus) -> int:
        """The quasi-identifiers on which two groups differ."""
        return sum(a != b for a, b in zip(self.point, other.point, strict=True))


class Matching(Tp):
    """The fewest stars, for two sensitive values and l = 2."""

    name = "matching"
    traits = Traits()

    def check(self, task: Task) -> Feasibility:
        """Raises PolicyError without networkx, and unless there are two sensitive values and l is 2."""
        feasible = super().check(task)
        _networkx()
        distinct = task.encoded.sensitive[0].distribution.distinct
        if feasible.l != 2 or distinct != 2:
            what = f"matching takes l = 2 and two sensitive values, these are l = {feasible.l} and {distinct} values"
            raise PolicyError([Problem("algorithm.name", what, "tp_plus takes any")])
        return feasible

    def _classes(self, task: Task, l: int) -> tuple[Relation, dict[str, Any]]:
        engine, encoded = task.engine, task.encoded
        keys = {"rows": encoded.rows, "axes": encoded.axes, "sensitive": encoded.sensitive[0]}
        with engine.scope() as scope:
            cells = _count_cells(task)
            state = engine.materialise("state", "tp/keep_cores", cells=cells, l=l)
            listed = engine.rows("tp/list_surplus", cells=cells, state=state, axes=encoded.axes)
            surplus = [Surplus(group_no, code, rows, tuple(point)) for group_no, code, rows, *point in listed]
            flows = number_pairs(match(surplus), engine.most(cells, "group_no") or 0)
            assigned = assign_groups(task, cells, state)
            kept = scope.keep(_kept_rows(engine, assigned))
            loaded = engine.load("flows", dict.fromkeys(("group_no", "first", "last", "class_id"), "BIGINT"), flows)
            params = {"assigned": assigned, "cells": cells, "flows": loaded, **keys}
            engine.insert(kept, "tp/pair_rows", seed=task.seed, **params)
        return kept, {"optimal": True, "matched_groups": len(surplus)}


def match(surplus: Sequence[Surplus]) -> list[tuple[int, int, int]]:
    """(group, group, rows): how many rows of either are paired, so that the stars are fewest.

    Raises InfeasibleError if there are more than `MOST_PAIRS` pairs of groups.
    """
    sides: dict[int, list[Surplus]] = defaultdict(list)
    for group in surplus:
        sides[group.code].append(group)
    if not sides:
        return []
    (_, ours), (_, theirs) = sorted(sides.items())
    if len(ours) * len(theirs) > MOST_PAIRS:
        raise InfeasibleError(
            f"matching takes at most {MOST_PAIRS:,} pairs of groups to be matched, these are"
            f" {len(ours) * len(theirs):,}: coarsen, or take tp_plus, which is not an exact optimum"
        )
    networkx = _networkx()
    graph = networkx.DiGraph()
    graph.add_nodes_from((group.group_no, {"demand": -group.rows}) for group in ours)
    graph.add_nodes_from((-group.group_no, {"demand": group.rows}) for group in theirs)
    graph.add_weighted_edges_from((one.group_no, -other.group_no, one.stars(other)) for one in ours for other in theirs)
    _, flow = networkx.network_simplex(graph)
    return [(one, -other, rows) for one, flows in sorted(flow.items()) for other, rows in sorted(flows.items()) if rows]


def number_pairs(flows: Sequence[tuple[int, int, int]], last_class: int) -> list[tuple[int, int, int, int]]:
    """(group, first, last, class): the rows of a group, numbered from 0, that are in classes from this one on."""
    taken: dict[int, int] = defaultdict(int)
    numbered = []
    for one, other, rows in flows:
        for group_no in (one, other):
            numbered.append((group_no, taken[group_no], taken[group_no] + rows - 1, last_class + 1))
            taken[group_no] += rows
        last_class += rows
    return numbered


def _networkx() -> Any:
    """The library; raises PolicyError if it is not installed."""
    try:
        return importlib.import_module("networkx")
    except ModuleNotFoundError:
        raise PolicyError(
            [Problem("algorithm.name", "matching needs networkx", "pip install 'ldiv-db[matching]', or take tp_plus")]
        ) from None
