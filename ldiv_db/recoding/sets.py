"""Sets: the values of a class in place of the lowest common ancestor, where that loses less.

A set of m leaves has LM (m - 1) / (leaves - 1) and NCP m / leaves, as a node with m leaves would have; it is
published where m is less than the leaves of the ancestor. Written, it is `{a, b}`: its leaves' labels in the
order of the tree, NULL for the leaf of NULL. A label that is empty, says NULL, begins or ends with a blank, or
has one of , " { } in it stands in double quotes, which are doubled in it. A node whose own label begins with {
is published as a set of one, so that a value that begins with { is a set and any other is the label of a node.
Only distinct sets are labelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Identifier, Relation, Value
from ldiv_db.recoding.encoded import LOSS_UNIT, Axis, Encoded


@dataclass(frozen=True)
class Sets:
    """The sets of one quasi-identifier.

    `spans` is (low, high, set_no, label, lm, ncp) for spans (set_no 0) and sets; `assigned` is (class_id, set_no)
    for the classes that are published as a set.
    """

    axis: Axis
    spans: Relation
    assigned: Relation

    @property
    def column(self) -> Identifier:
        """The classes' column that holds the number of their set."""
        return Identifier(f"{self.axis.code.name}_set")


def find_sets(
    engine: Engine, encoded: Encoded, axis: Axis, assigned: Relation, classes: Relation, spans: Relation
) -> Sets:
    """The sets of an axis that has a taxonomy; `spans` are its spans as they would be without sets."""
    code = axis.code.name
    members = engine.materialise(
        f"members_{code}",
        "recoding/publish/list_set_members",
        classes=classes,
        spans=spans,
        assigned=assigned,
        rows=encoded.rows,
        axis=axis,
    )
    sets = engine.materialise(f"sets_{code}", "recoding/publish/list_sets", members=members, spans=spans)
    numbered = engine.materialise(f"numbered_{code}", "recoding/publish/number_sets", sets=sets)
    placed = engine.materialise(f"placed_{code}", "recoding/publish/assign_sets", sets=sets, numbered=numbered)
    engine.drop(sets)
    labelled = engine.materialise(
        f"labelled_{code}",
        "recoding/publish/label_sets",
        spans=spans,
        numbered=numbered,
        members=members,
        nodes=axis.nodes,
        leaves=Value(axis.leaves),
        null_code=Value(axis.null_code),
        unit=Value(LOSS_UNIT),
    )
    engine.drop(members, numbered)
    return Sets(axis, labelled, placed)


def place_sets(engine: Engine, classes: Relation, sets: Sequence[Sets]) -> Relation:
    """The classes with the number of the set of each quasi-identifier that may have one; `classes` is dropped."""
    placed = engine.materialise("classes_with_sets", "recoding/publish/place_sets", classes=classes, sets=sets)
    engine.drop(classes, *(found.assigned for found in sets))
    return placed
