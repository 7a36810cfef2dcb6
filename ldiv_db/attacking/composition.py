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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from ldiv_db.attacking.base import AttackedAttribute, AttackedTable, Attacker
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.covering import KnownAxis, known_axes, list_cells, within
from ldiv_db.attacking.disclosure import one_value_gain
from ldiv_db.attacking.gains import UNIT, Attack, gain_of, mean_of, share_in
from ldiv_db.attacking.matching import number_prefixes
from ldiv_db.attacking.question import Knowledge
from ldiv_db.auditing.counting import Counted, counted
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.labels import LabelAxis
from ldiv_db.requirements import Attribute
from ldiv_db.requirements.guarantees import Guarantee

#: All sets of values are tried in classes of up to so many values, in larger ones those that people can have.
MOST_VALUES = 10
#: Larger classes are left as they are.
MOST_PLACES = 60


def infer(engine: Engine, cells: Relation, fits: Relation, shown: Relation) -> EngineFlow:
    """Infers what is possible for the people of `cells` (cell_no, people, releases), each in so many of the releases.

    `fits` says in which classes they may be (release_no, cell_no, class_no), `shown` which values classes have
    (release_no, class_no, value, rows). Of the steps `told` are the classes' values (release_no, class_no, value_no,
    rows, place, values); `first` the options (release_no, cell_no, class_no, value_no) of each release by itself,
    `options` those that are left; `intersected` are the candidates (cell_no, value_no) by intersection alone,
    `candidates` those that are left. The caller's scope drops them.
    """
    flow = EngineFlow(engine, "attacking/joint", cells=cells, shown=shown)
    told = flow.step("told", "number_values")
    first = engine.join("options", fits, told, "release_no", "class_no", right_columns=["value_no"])
    flow.know(first=first, options=first)
    flow.know(intersected=flow.step("candidates", "list_candidates"))
    before = -1
    while before != engine.count(flow["options"]):
        before = engine.count(flow["options"])
        with flow.scope("options"):  # those whose value all releases allow, and that no full set keeps for others
            allowed = engine.select_among("kept", flow["options"], flow["candidates"], "cell_no", "value_no")
            flow.know(options=allowed)
            flow.step("members", "list_members", most=MOST_PLACES)
            if engine.count(flow.step("full_sets", "find_full_sets", most=MOST_VALUES)):
                flow.step("options", "drop_options")
        flow.step("candidates", "list_candidates")
    return flow


#: Products of counts are whole numbers, made smaller together beyond this.
MOST = 10**18
#: What follows of a pair of people and a class costs as many pairs: it is looked at again for each of its values.
_PAIR = 2
_SHOWN = {"release_no": "INTEGER", "class_no": "BIGINT", "value": "VARCHAR", "rows": "BIGINT"}
_FITS = {"release_no": "INTEGER", "cell_no": "BIGINT", "class_no": "BIGINT"}


class OverlappingPeople:
    """People who are in each of several releases: `cells` (cell_no, people), `fits` (release_no, cell_no, class_no).

    They are `everybody` who is known, or those whom a budget was enough for. `releases` are counted for each attribute.
    """

    def __init__(
        self,
        engine: Engine,
        stack: ExitStack,
        releases: Sequence[tuple[Mapping[str, Counted], Sequence[LabelAxis]]],
        people: Table,
        budget: int,
    ) -> None:
        """Match the known people, or drawn ones, with all releases, each with the quasi-identifiers of its labels.

        What is made is there until the stack closes. Raises PolicyError for people of whom a release has no
        quasi-identifier, and for labels that cannot be read.
        """
        columns = columns_of(engine, people)
        self.releases = [counts for counts, _ in releases]
        firsts = [next(iter(counts.values())) for counts in self.releases]
        axes = [within(first, labelled) for first, (_, labelled) in zip(firsts, releases, strict=True)]
        known = [_numbered(known_axes(one, columns, "known"), number) for number, one in enumerate(axes, 1)]
        with engine.scope() as scope:
            cells = list_cells(engine, [axis for axes in known for axis in axes], people)
            self.everybody = engine.total(cells, "people")
            fits = engine.load("fits", _FITS, [])
            for number, (first, read) in enumerate(zip(firsts, known, strict=True), 1):
                matches = number_prefixes(engine, first.listed, read, cells).match(budget // (_PAIR * len(releases)))
                cells = matches.cells
                engine.extend(fits, matches.pairs, "cell_no", "class_no", constants={"release_no": number})
            self.cells = scope.keep(cells)
            self.fits = scope.keep(engine.select_among("kept", fits, cells, "cell_no"))
        stack.callback(engine.drop, self.cells, self.fits)


def _numbered(axes: Sequence[KnownAxis], release: int) -> list[KnownAxis]:
    """The axes with values of their own: another policy may read the same column otherwise."""
    return [replace(axis, value=Identifier(f"v{release}_{number}")) for number, axis in enumerate(axes, 1)]


class Composition(Attacker):
    """The attack by all releases on the known people, whom each of them holds."""

    names = ("composition",)
    key = "also"
    people = "known"
    one_value = True
    place = 9
    words: ClassVar = {
        "above_promise_of_one": "people above what one release promises",
        "contradicted": "people contradicted",
    }

    @classmethod
    def problems(cls, engine: Engine, columns: Columns, known: Knowledge) -> Iterator[Problem]:
        if "known" not in known.people:
            yield Problem("also", "needs people who are in all releases", "give --known")
        for other, _ in known.also:
            wanted = [("also", name) for name in columns.sensitive]
            yield from missing_columns(engine, other, wanted, "other release")

    def __init__(self, table: AttackedTable) -> None:
        super().__init__(table)
        releases = [(table.counts, table.columns.axes)]
        for other, columns in table.known.also:
            counts = _counted(table.engine, table.stack, columns.subject(other).of_rows, table.columns.sensitive)
            releases.append((counts, columns.axes))
        people = table.known.people["known"]
        self.seen = OverlappingPeople(table.engine, table.stack, releases, people, table.budget)

    def on(self, target: AttackedAttribute) -> Iterator[Attack]:
        yield composition(target, self.seen)


def _counted(engine: Engine, stack: ExitStack, subject: Subject, names: Iterable[str]) -> Mapping[str, Counted]:
    return {name: stack.enter_context(counted(engine, subject, name)) for name in names}


def composition(target: AttackedAttribute, seen: OverlappingPeople) -> Attack:
    """The attack on one sensitive attribute.

    Nothing is promised of several releases; the figures say how many people are told more than the first promises.
    """
    engine, releases = target.engine, len(seen.releases)
    with engine.scope():
        shown = engine.load("shown", _SHOWN, [])
        for number, counts in enumerate(seen.releases, 1):
            histogram = counts[target.sensitive].classes.histogram
            engine.insert(shown, "attacking/composition/list_cells", histogram=histogram, release=number)
        people = engine.select("people", seen.cells, "cell_no", "people", constants={"releases": releases})
        flow = infer(engine, people, seen.fits, shown)
        flow.know(weights=flow["candidates"])
        for number in range(1, releases + 1):
            flow.step("weights", "attacking/composition/weigh_candidates", release=number, start=number == 1, most=MOST)
        made = {"cells": seen.cells, "fits": seen.fits, "releases": releases}
        measures = flow.step("measures", "attacking/composition/measure_people", **made)
        summary = engine.record("attacking/summarise_people", measures=measures, unit=UNIT)
        bound = Fraction(1) if target.bounds.posterior is None else target.bounds.posterior
        told = {"options": flow["first"], "candidates": flow["intersected"]}
        told |= {"numerator": bound.numerator, "denominator": bound.denominator}
        outcomes = flow.record("attacking/composition/summarise_outcomes", **told)
    everybody, matched = summary["people"], summary["people"] - summary["no_class"]
    figures = {
        "releases": releases,
        "people": everybody,
        "no_class": summary["no_class"] - outcomes["contradicted"],
        "contradicted": outcomes["contradicted"],
        "one_value_in_one_release": outcomes["one_value_in_one_release"],
        "one_value_by_intersection": outcomes["one_value_by_intersection"],
        "one_value": summary["one_value"],
        "mean": mean_of(summary["mean_units"], matched),
        "above_promise_of_one": outcomes["above"],
    }
    gains = (gain_of("posterior", share_in(summary), None), one_value_gain(summary, None))
    found = Attack("composition", target.sensitive, gains, figures)
    return found.with_untried("people", everybody, seen.everybody)


def compare_releases(
    engine: Engine,
    releases: Sequence[Subject],
    axes: Sequence[LabelAxis],
    attributes: Mapping[str, tuple[Attribute, Guarantee]],
    people: Table,
    budget: int,
) -> tuple[Attack, ...]:
    """The attack on each sensitive attribute by releases of one policy, of which each alone keeps its promise."""
    with ExitStack() as stack:
        counts = [(_counted(engine, stack, one, attributes), axes) for one in releases]
        seen = OverlappingPeople(engine, stack, counts, people, budget)
        found = []
        for name, (attribute, promise) in attributes.items():
            target = AttackedAttribute(engine, attribute, counts[0][0][name].classes, promise)
            found.append(composition(target, seen))
            engine.drop(target.priors)
    return tuple(found)
