"""The composition attack by several releases of overlapping people, and the joint inference behind it.

Ganta, Kasiviswanathan and Smith, "Composition Attacks and Auxiliary Information in Data Privacy" (KDD 2008): each
release keeps its promise, and a person is known by the intersection of what each tells. Releases being independent, a
value's posterior is the product of its shares in them. Values that no assignment of all known people to rows leaves
are ruled out besides.

A value is possible for somebody if every release has a class for them with it, and if in a class whose people are
known all of them can have values at the same time. Of people who fit one class alone, as many must have a value of a
set as there are rows of it once they can have no others (Hall's theorem): the set is full, and its values are not
left for anybody else. That may fill other sets, in other releases too, so it is repeated until nothing changes. Within
a class the outcome is exact: each value that is left is somebody's in a complete matching of people and rows. Over
several classes at once it is not: that is a hard problem, and more may follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.covering import KnownAxis, LabelAxis, known_axes, list_cells, within
from ldiv_db.attacking.disclosure import AttackedAttribute, make_target
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, mean_of, share_in
from ldiv_db.attacking.matching import number_prefixes
from ldiv_db.auditing.counts import counted
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.requirements import Attribute
from ldiv_db.requirements.guarantees import Guarantee

#: All sets of values are tried in classes of up to so many values, in larger ones those that people can have.
MOST_VALUES = 10
#: Larger classes are left as they are.
MOST_PLACES = 60


@dataclass(frozen=True)
class Joint:
    """The values that several releases leave possible.

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
    """Infers what is possible for the people of `cells` (cell_no, people, releases), each in so many of the releases.

    `fits` says in which classes they may be (release_no, cell_no, class_no), `shown` which values classes have
    (release_no, class_no, value, rows). The caller's scope drops what is returned.
    """
    told = engine.materialise("told", "attacking/joint/number_values", shown=shown)
    first = engine.join("options", fits, told, "release_no", "class_no", right_columns=["value_no"])
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
        kept = engine.select_among("kept", options, candidates, "cell_no", "value_no")
        members = engine.materialise(
            "members", "attacking/joint/list_members", options=kept, told=told, cells=cells, most=MOST_PLACES
        )
        full = engine.materialise(
            "full_sets", "attacking/joint/find_full_sets", members=members, told=told, most=MOST_VALUES
        )
        if not engine.count(full):
            return scope.keep(kept)
        left = {"options": kept, "told": told, "members": members, "full_sets": full}
        return scope.keep(engine.materialise("options", "attacking/joint/drop_options", **left))


#: Products of counts are whole numbers, made smaller together beyond this.
MOST = 10**18
#: What follows of a pair of people and a class costs as many pairs: it is looked at again for each of its values.
_PAIR = 2
_SHOWN = {"release_no": "INTEGER", "class_no": "BIGINT", "value": "VARCHAR", "rows": "BIGINT"}
_FITS = {"release_no": "INTEGER", "cell_no": "BIGINT", "class_no": "BIGINT"}


@dataclass(frozen=True)
class OverlappingPeople:
    """People who are in each of several releases: `cells` (cell_no, people), `fits` (release_no, cell_no, class_no).

    They are `everybody` who is known, or those whom a budget was enough for.
    """

    engine: Engine
    cells: Relation
    fits: Relation
    releases: int
    everybody: int


@contextmanager
def people_in_all(
    engine: Engine,
    releases: Sequence[tuple[Relation, Sequence[LabelAxis]]],
    people: Relation | FileRelation,
    budget: int,
) -> Iterator[OverlappingPeople]:
    """The known people in all releases, each by its classes and the quasi-identifiers of their labels; or drawn ones.

    Raises PolicyError for people of whom a release has no quasi-identifier, and for labels that cannot be read.
    """
    columns = columns_of(engine, people)
    known = [_numbered(known_axes(axes, columns, "known"), number) for number, (_, axes) in enumerate(releases, 1)]
    with engine.scope() as scope:
        cells = list_cells(engine, [axis for axes in known for axis in axes], people)
        everybody = engine.total(cells, "people")
        fits = engine.load("fits", _FITS, [])
        for number, ((classes, _), axes) in enumerate(zip(releases, known, strict=True), 1):
            prefixes = number_prefixes(engine, classes, axes, cells)
            matches = prefixes.match(budget // (_PAIR * len(releases)))
            cells = matches.cells
            engine.extend(fits, matches.pairs, "cell_no", "class_no", constants={"release_no": number})
        cells, fits = scope.keep(cells), scope.keep(engine.select_among("kept", fits, cells, "cell_no"))
    yield OverlappingPeople(engine, cells, fits, len(releases), everybody)
    engine.drop(cells, fits)


def _numbered(axes: Sequence[KnownAxis], release: int) -> list[KnownAxis]:
    """The axes with values of their own: another policy may read the same column otherwise."""
    return [replace(axis, value=Identifier(f"v{release}_{number}")) for number, axis in enumerate(axes, 1)]


def composition(target: AttackedAttribute, seen: OverlappingPeople, histograms: Sequence[Relation]) -> Attack:
    """The attack by all releases on the known people, whom each of them holds; `histograms` are those of all releases.

    Nothing is promised of several releases; the figures say how many people are told more than the first promises.
    """
    engine = target.engine
    with engine.scope():
        shown = engine.load("shown", _SHOWN, [])
        for number, histogram in enumerate(histograms, 1):
            engine.insert(shown, "attacking/composition/list_cells", histogram=histogram, release=number)
        people = engine.select("people", seen.cells, "cell_no", "people", constants={"releases": seen.releases})
        joint = infer(engine, people, seen.fits, shown)
        measures = _measures(seen, joint)
        summary = engine.record("attacking/summarise_people", measures=measures, unit=UNIT)
        outcomes = _outcomes(engine, joint, measures, target.bounds.posterior)
    everybody, matched = summary["people"], summary["people"] - summary["no_class"]
    figures = {
        "releases": seen.releases,
        "people": everybody,
        "no_class": summary["no_class"] - outcomes["contradicted"],
        "contradicted": outcomes["contradicted"],
        "one_value_in_one_release": outcomes["one_value_in_one_release"],
        "one_value_by_intersection": outcomes["one_value_by_intersection"],
        "one_value": summary["one_value"],
        "mean": mean_of(summary["mean_units"], matched),
        "above_promise_of_one": outcomes["above"],
    }
    gains = (
        gain_of("posterior", share_in(summary), None),
        gain_of(
            "share of known rows with one value", Fraction(summary["one_value"], everybody) if everybody else None, None
        ),
    )
    found = Attack("composition", target.sensitive, gains, figures)
    return found.with_untried("people", everybody, seen.everybody)


def compare_releases(
    engine: Engine,
    releases: Sequence[Subject],
    axes: Sequence[LabelAxis],
    attributes: Mapping[str, Attribute],
    promises: Mapping[str, Guarantee],
    people: Relation | FileRelation,
    budget: int,
) -> tuple[Attack, ...]:
    """The attack on each sensitive attribute by releases of one policy, of which each alone keeps the promises."""
    with ExitStack() as stack:
        counts = [{name: stack.enter_context(counted(engine, one, name)) for name in attributes} for one in releases]
        firsts = [next(iter(by_name.values())) for by_name in counts]
        listed = [(first.listed, within(first, axes)) for first in firsts]
        seen = stack.enter_context(people_in_all(engine, listed, people, budget))
        found = []
        for name, attribute in attributes.items():
            target = make_target(engine, attribute, counts[0][name].classes, promises[name])
            found.append(composition(target, seen, [by_name[name].classes.histogram for by_name in counts]))
            engine.drop(target.priors)
    return tuple(found)


def _measures(seen: OverlappingPeople, joint: Joint) -> Relation:
    """The weight of every combination's likeliest value, and that of all (cell_no, people, classes, …)."""
    engine = seen.engine
    weights = joint.candidates
    for release in range(1, seen.releases + 1):
        params: dict[str, Any] = {"options": joint.options, "told": joint.told, "release": Value(release)}
        params |= {"weights": weights, "start": release == 1, "most": Value(MOST)}
        weights = engine.materialise("weights", "attacking/composition/weigh_candidates", **params)
    return engine.materialise(
        "measures",
        "attacking/composition/measure_people",
        cells=seen.cells,
        fits=seen.fits,
        weights=weights,
        releases=seen.releases,
    )


def _outcomes(engine: Engine, joint: Joint, measures: Relation, promised: Fraction | None) -> dict[str, Any]:
    """People without a value left, told more than one release promises, and with one value by less than all of it."""
    bound = Fraction(1) if promised is None else promised
    return engine.record(
        "attacking/composition/summarise_outcomes",
        measures=measures,
        options=joint.first,
        candidates=joint.intersected,
        numerator=bound.numerator,
        denominator=bound.denominator,
    )
