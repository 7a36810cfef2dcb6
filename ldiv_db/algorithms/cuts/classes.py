"""What a cut publishes: its partitions as classes, less what its scheme suppresses."""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.algorithms.cuts.evaluation import Cut, CutNode, Evaluator
from ldiv_db.algorithms.cuts.problem import CutProblem
from ldiv_db.algorithms.cuts.trees import CutTree
from ldiv_db.database.templates import Relation, Value


@dataclass(frozen=True)
class Published:
    """(row_id, class_id) of the published rows, the classes with their bounds, and the values not shown."""

    assigned: Relation
    classes: Relation
    blanked: Relation | None


def publish_cut(evaluator: Evaluator, cut: Cut) -> Published:
    """The classes of the cut under the problem's scheme; rows of a value go in an order that the seed gives."""
    problem, engine = evaluator.problem, evaluator.problem.task.engine
    with engine.scope() as scope:
        places, judged = evaluator.partitions(CutNode(frozenset(), cut))
        parts = engine.materialise(
            "numbered",
            "cuts/number_parts",
            parts=judged,
            words=problem.words,
            labels=problem.labels,
            values=problem.values,
            both=problem.cost.both,
        )
        thetas = _thetas(problem)
        assigned = _assign(problem, places, parts, thetas)
        classes = engine.materialise(
            "classes",
            "cuts/bound_classes",
            rows=problem.task.encoded.rows,
            assigned=assigned,
            places=places,
            axes=problem.axes,
            bounds=[tree.axis for tree in problem.trees],
        )
        blanked = _blank(problem, assigned, parts, thetas)
        return Published(scope.keep(assigned), scope.keep(classes), scope.keep(blanked) if blanked else None)


def _assign(problem: CutProblem, places: Relation, parts: Relation, thetas: Relation) -> Relation:
    """(row_id, class_id) of the rows that the scheme leaves in their partitions."""
    return problem.task.engine.materialise(
        "assigned",
        "cuts/assign_rows",
        rows=problem.task.encoded.rows,
        places=places,
        parts=parts,
        thetas=thetas,
        labels=problem.label_codes,
        axes=problem.axes,
        words=problem.words,
        sensitive=problem.task.encoded.sensitive[0].code,
        label=problem.cost.label.alias if problem.cost.label else None,
        seed=Value(problem.task.seed),
        scheme=problem.cost.scheme,
    )


def _blank(problem: CutProblem, assigned: Relation, parts: Relation, thetas: Relation) -> Relation | None:
    """The sensitive values that are not shown, if the scheme blanks any."""
    if problem.cost.scheme not in ("vioSA", "allSA"):
        return None
    return problem.task.engine.materialise(
        "blanked",
        "cuts/list_blanked",
        rows=problem.task.encoded.rows,
        assigned=assigned,
        parts=parts,
        thetas=thetas,
        sensitive=problem.task.encoded.sensitive[0].code,
        scheme=problem.cost.scheme,
    )


def _thetas(problem: CutProblem) -> Relation:
    """(code, over, under): the threshold of every sensitive value."""
    rows = [(value.code, value.theta.numerator, value.theta.denominator) for value in problem.values]
    return problem.task.engine.load("thetas", {"code": "INTEGER", "over": "BIGINT", "under": "BIGINT"}, rows)


def labels_of(trees: tuple[CutTree, ...], cut: Cut) -> dict[str, list[str]]:
    """The labels of a cut by quasi-identifier, in the order of the leaves, as they are published."""
    return {tree.axis.name: tree.labels([node for number, node in cut if number == tree.number]) for tree in trees}
