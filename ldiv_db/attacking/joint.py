"""Joint inference: which values people can have by several releases at once, over all people and classes together.

A value is possible for somebody if every release has a class for them with it, and if in a class whose people are
known all of them can have values at the same time. Of people who fit one class alone, as many must have a value of a
set as there are rows of it once they can have no others (Hall's theorem): the set is full, and its values are not
left for anybody else. What that rules out may fill other sets, in other releases too, so it is repeated until nothing
changes. Within a class the outcome is exact: each value that is left is somebody's in a complete matching of people and
rows. Over several classes at once it is not: that is a hard problem, and more may follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import Relation, Value

#: All sets of values are tried in classes of up to so many values, in larger ones those that people can have.
MOST_VALUES = 10
#: Larger classes are left as they are.
MOST_PLACES = 60


@dataclass(frozen=True)
class Joint:
    """What several releases leave possible.

    `told` are their classes' values (release_no, class_no, value_no, rows, place, values); `first` the options
    (release_no, cell_no, class_no, value_no) of each release by itself, `options` those that are left; `intersected`
    are the candidates (cell_no, value_no) by intersection alone, `candidates` those that are left.
    """

    told: Relation
    first: Relation
    options: Relation
    intersected: Relation
    candidates: Relation
    rounds: int


def infer(engine: Engine, cells: Relation, fits: Relation, shown: Relation) -> Joint:
    """What is possible for the people of `cells` (cell_no, people, releases), each in so many of the releases.

    `fits` says in which classes they may be (release_no, cell_no, class_no), `shown` which values classes have
    (release_no, class_no, value, rows). The caller's scope drops what is returned.
    """
    told = engine.materialise("told", "attacking/joint/number_values", shown=shown)
    first = engine.materialise("options", "attacking/joint/list_options", fits=fits, told=told)
    intersected = _candidates(engine, first, cells)
    options, candidates, rounds, before = first, intersected, 0, -1
    while before != engine.count(options):
        before, rounds = engine.count(options), rounds + 1
        options = _narrowed(engine, cells, told, options, candidates)
        candidates = _candidates(engine, options, cells)
    return Joint(told, first, options, intersected, candidates, rounds)


def _candidates(engine: Engine, options: Relation, cells: Relation) -> Relation:
    return engine.materialise("candidates", "attacking/joint/list_candidates", options=options, cells=cells)


def _narrowed(engine: Engine, cells: Relation, told: Relation, options: Relation, candidates: Relation) -> Relation:
    """The options whose value all releases allow, and that no full set keeps for others."""
    with engine.scope() as scope:
        kept = engine.materialise("kept", "attacking/joint/keep_options", options=options, candidates=candidates)
        members = engine.materialise(
            "members", "attacking/joint/list_members", options=kept, told=told, cells=cells, most=Value(MOST_PLACES)
        )
        full = engine.materialise(
            "full_sets", "attacking/joint/find_full_sets", members=members, told=told, most=Value(MOST_VALUES)
        )
        if not engine.count(full):
            return scope.keep(kept)
        left = {"options": kept, "told": told, "members": members, "full_sets": full}
        return scope.keep(engine.materialise("options", "attacking/joint/drop_options", **left))
