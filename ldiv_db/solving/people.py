"""Plans of units as plans of rows: every class is held against the people whose rows it has.

Algorithms count units. Where all rows of a person are one unit, that is to count people. Where they stand apart, two
units of a class may be one person's, who counts once: classes are counted anew by the reading of the audit, which asks
rows as well, so that nobody's many rows make a value frequent. In those that lack people units change places with near
ones of equal values; what is bad still is put into the class with which it loses least, until all are good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.auditing.counting import counted
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import Members
from ldiv_db.database.errors import AuditError, InfeasibleError, PolicyError, Problem, count_phrase
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.database.queries import Where
from ldiv_db.recoding.encoded import Encoded
from ldiv_db.recoding.units import Units, units_of
from ldiv_db.requirements import Requirement
from ldiv_db.requirements.reading import spreading
from ldiv_db.requirements.verdict import measure_table

#: Pairs of classes, or of units, that one round compares, about; and the nearest that a unit may change places with.
PAIRS, NEAR = 20_000_000, 32
#: The column of classes in the table whose people are counted.
_CLASS = "class_id"


def plan_of_rows(task: Task, plan: Plan) -> Plan:
    """The plan of a task's units as one of rows, every class good by its people.

    Raises InfeasibleError if that cannot be reached, or leaves out more rows than may be, and PolicyError for a plan
    that blanks values of bags.
    """
    engine, units, wanted = task.engine, task.units, task.wanted
    assert units is not None  # noqa: S101 - people are planned
    if plan.blanked is not None and any(axis.bags for axis in units.encoded.sensitive):
        raise PolicyError([Problem("individual", "values are not blanked one by one where people have several")])
    with engine.scope() as scope:
        assigned = plan.assigned if units.together else _Mended(engine, units, wanted).assigned(plan)
        rows = scope.keep(units.assign_rows(engine, assigned))
        if units.levels:
            _require_sequences(engine, units, assigned, rows)
        classes = plan.classes
        if classes is not None:
            counts = engine.count_groups("counts", rows, "class_id")
            bounds = [bound.name for axis in units.rows.axes for bound in (axis.low, axis.high)]
            shown = {"left_columns": ["class_id", *bounds], "right_columns": ["rows"]}
            classes = scope.keep(engine.join("classes", classes, counts, "class_id", **shown))
    notes = (*plan.notes, *notes_on_people(engine, units.rows, rows, wanted, units.together, bool(units.levels)))
    plan = replace(plan, assigned=rows, classes=classes, notes=notes)
    replace(task, encoded=units.rows).refuse_left_out(units.rows.row_count - plan.row_count(engine))
    return plan


def people_apart(task: Task) -> Task | None:
    """The task of all people as units, where the rows of each stand apart, of whom there may be too few for a class.

    Classes with people in common keep nothing else when they are put together. None where nothing is to be asked.
    """
    if task.units is None or task.units.together or task.units.levels:
        return None
    encoded = units_of(task.engine, task.units.rows, together=True).encoded
    wanted = {
        name: [one for one in _of_class(own) if (one.unique_class_size() or 0) > encoded.row_count]
        for name, own in task.wanted.items()
    }
    every = [one for own in wanted.values() for one in own]
    return replace(task, encoded=encoded, units=None, wanted=wanted, requirements=every) if every else None


def _of_class(wanted: Iterable[Requirement]) -> list[Requirement]:
    """What is asked of the people of a class; of those of a population whom its labels cover algorithms ask."""
    return [one for one in wanted if not one.named_population]


def _require_sequences(engine: Engine, units: Units, assigned: Relation, rows: Relation) -> None:
    """Raise AuditError unless everybody who has a class publishes as many rows as their level."""
    expected = 0
    for level in units.levels:
        with engine.scope():
            expected += level.rows * engine.count(
                engine.join("planned", assigned, level.numbers, ("row_id", "whole_id"), left_columns=["row_id"])
            )
    if expected != engine.count(rows):
        raise AuditError(f"{engine.count(rows):,} rows would be published of people who have {expected:,} in classes")


class _Mended:
    """Classes of units held against their people, and mended where they lack some."""

    def __init__(self, engine: Engine, units: Units, wanted: Mapping[str, Sequence[Requirement]]) -> None:
        assert units.rows.individual is not None  # noqa: S101 - units are made of it
        self._engine, self._units, self._wanted = engine, units, wanted
        self._person = units.rows.individual.code
        self._flow = EngineFlow(engine, "solving", members=units.members, axes=units.encoded.axes, person=self._person)

    def assigned(self, plan: Plan) -> Relation:
        """(row_id, class_id) of units, the classes that lack people put into others."""
        flow, engine = self._flow, self._engine
        flow.know(assigned=plan.assigned)
        if plan.classes is None:
            self._swap()
        while bad := self._bad_classes():
            lacking = engine.count(bad)
            classes = engine.count(self._bound())
            if plan.classes is not None or classes == 1:
                classes_lack = count_phrase(lacking, "class lacks", "classes lack")
                what = f"{classes_lack} people, or have too many rows of one value, once people are told apart"
                raise InfeasibleError(f"{what}: `individual: {{column: …, rows: together}}` plans by people")
            flow.step("merges", "choose_merges", most=max(1, PAIRS // classes))
            flow.step("assigned", "merge_classes")
            flow.drop("bad", "classes", "merges")
        return flow["assigned"]  # type: ignore[no-any-return]

    def _swap(self) -> None:
        """Have units of people who are in a bad class already change places with some of other classes."""
        flow, encoded, rows = self._flow, self._units.encoded, self._units.rows.rows
        values = min(self._engine.count(axis.dictionary) for axis in encoded.sensitive)
        most = max(1, PAIRS * values // encoded.row_count)
        flow.step("owners", "list_owners", rows=rows)
        while self._bad_classes():
            self._bound()
            units = {"rows": encoded.rows, "sensitive": encoded.sensitive}
            swaps = flow.step("swaps", "choose_swaps", most=most, near=NEAR, **units)
            flow.drop("classes")
            if not self._engine.count(swaps):
                break
            flow.know(assigned=self._engine.reassign(flow["assigned"], swaps))
            flow.drop("bad", "swaps")

    def _bound(self) -> Relation:
        classes = self._units.encoded.bound_classes(self._engine, self._flow["assigned"])
        self._flow.know(classes=classes)
        return classes

    def _bad_classes(self) -> Relation | None:
        """(class_id) of the classes that violate a requirement by their people or rows; None if there are none."""
        engine, rows = self._engine, self._units.rows
        with engine.scope() as scope:
            table = self._flow.step("people", "list_class_people", rows=rows.rows, sensitive=rows.sensitive)
            bad = scope.keep(engine.load("bad", {_CLASS: "BIGINT"}, []))
            same = {axis.code.name: [Members()] for axis in rows.sensitive if axis.bags}
            subject = Subject(table, [_CLASS], person=self._person.name, by_rows=True, same=same)
            for axis in rows.sensitive:
                with counted(engine, subject, axis.code.name, as_it_lies=True) as found:
                    for requirement in _of_class(self._wanted[axis.column.name]):
                        measures = measure_table(engine, requirement, found.classes)
                        violating = engine.select("violating", measures, "class_no", where=[Where("margin", 0, "<")])
                        listed = engine.select_among(
                            "listed", found.listed, violating, "class_no", columns=[("c1", _CLASS)]
                        )
                        engine.extend_others(bad, listed, bad, _CLASS, _CLASS)
        self._flow.know(bad=bad)
        return bad if engine.count(bad) else None


def notes_on_people(
    engine: Engine,
    rows: Encoded,
    assigned: Relation,
    wanted: Mapping[str, Sequence[Requirement]],
    together: bool = False,
    aligned: bool = False,
) -> list[str]:
    """Notes on people with several rows, by the class of each row."""
    person = rows.individual
    assert person is not None  # noqa: S101 - the caller has looked
    found = engine.record("solving/count_scattered", rows=rows.rows, assigned=assigned, person=person.code)
    if not found["people"]:
        return []
    several = f"{count_phrase(found['people'], 'person has', 'people have')} several rows"
    spread = ", ".join(filter(None, dict.fromkeys(map(spreading, (wanted[axis.column.name] for axis in rows.told)))))
    if together:
        placed = "each published in its place" if aligned else "each person's in one class"
        number = "and how many everybody has" if aligned else "but not how many there are"
        known = f"whoever knows them all, {number}, learns no more of what is published than from one"
        return [f"{several}, {placed}: {f'under {spread} everybody there may have one value' if spread else known}"]
    if not found["scattered"]:
        return []
    known = "whoever knows one of a person's rows learns no more than is promised, whoever knows several may"
    bounds = "" if spread else " (`rows: together` bounds that)"
    return [f"{several}, {found['scattered']:,} of them in several classes: {known}{bounds}"]
