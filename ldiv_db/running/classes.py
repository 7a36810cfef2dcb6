"""From a prepared run to its classes and how they are published, and what these lose and reveal.

The similarity attack knows a value's category for certain where all values of a class are of one, however many
different values there are ((l,alpha) paper, Section 2). It is counted on the source, where rows that agree on all
quasi-identifiers are a class, and on the classes that can be told apart in the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.local.class_checker import ClassedRows, count_classes
from ldiv_db.algorithms.tp.tp import Tp
from ldiv_db.database.context import side_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.database.queries import Where
from ldiv_db.measuring.counts import measure_planned_counts
from ldiv_db.measuring.measure import MeasureRequest, measure_table
from ldiv_db.publishing.draft import NewClasses
from ldiv_db.publishing.fingerprints import keyed
from ldiv_db.publishing.result import Similarity
from ldiv_db.recoding.encoded import Encoded, Renamed, SensitiveAxis
from ldiv_db.recoding.loss import Loss, measure_recoding
from ldiv_db.recoding.recode import Recoding, keep_types
from ldiv_db.recoding.units import PERSON_NO, Link, with_numbers
from ldiv_db.requirements import Attribute, Categories, Classes
from ldiv_db.running.run_spec import PreparedRun
from ldiv_db.solving.auto import Auto
from ldiv_db.solving.improve import LEAST, recode
from ldiv_db.solving.people import notes_on_people, plan_of_rows
from ldiv_db.solving.solve import PartwiseSolver


def work_out(ready: PreparedRun, workers: int | None) -> tuple[Plan, Recoding]:
    """The algorithm's plan, made by so many processes, and how its classes are published."""
    task = ready.task
    effort = ready.algorithm.effort if isinstance(ready.algorithm, Auto) else LEAST
    solver = PartwiseSolver(ready.resolved.part_rows, workers, effort)
    if isinstance(ready.algorithm, Tp) and ready.algorithm.options.coarsen == "auto":
        plan = _least_divergent(ready, ready.algorithm, task, solver)
    else:
        plan = solver.plan(ready.algorithm, task)
    return _recoded(ready, task, plan)


def _recoded(ready: PreparedRun, task: Task, plan: Plan) -> tuple[Plan, Recoding]:
    if ready.units is not None:
        plan, task = plan_of_rows(task, plan), replace(task, encoded=ready.encoded)
    elif ready.encoded.individual is not None:
        told = notes_on_people(task.engine, ready.encoded, plan.assigned, task.wanted)
        plan = replace(plan, notes=(*plan.notes, *told))
    return plan, recode(task, plan)


def _least_divergent(ready: PreparedRun, algorithm: Tp, task: Task, solver: PartwiseSolver) -> Plan:
    """The plan of least KL divergence among those tried.

    From the leaves on every quasi-identifier is raised by a level in turn, and the one stays raised that lowers the
    divergence most, until none does.
    """
    heights = {axis.name: axis.taxonomy.height for axis in task.encoded.axes if axis.taxonomy}
    best, levels, tried = solver.plan(algorithm.at({}), task), dict.fromkeys(heights, 0), 1
    least = _divergence_of_plan(ready, task, best)
    quiet = replace(task, stage=lambda text: None, report=lambda text: None)
    while raised := [{**levels, name: level + 1} for name, level in levels.items() if level < heights[name]]:
        before = least
        for candidate in raised:
            plan = solver.plan(algorithm.at(candidate), quiet)
            found, tried = _divergence_of_plan(ready, task, plan), tried + 1
            worse = plan
            if found < least:
                worse, best, least, levels = best, plan, found, candidate
            task.engine.drop(*(table for table in (worse.assigned, worse.classes) if table))
        if least == before:
            break
    return replace(best, search={**best.search, "tried": tried, "kl": least})


def _divergence_of_plan(ready: PreparedRun, task: Task, plan: Plan) -> float:
    _, recoding = _recoded(ready, task, plan)
    found = divergence(NewClasses(task.engine, ready.resolved, ready.encoded, recoding, {}))["kl"]
    task.engine.drop(*(span.relation for span in recoding.spans))
    return math.inf if found is None else float(found)


def divergence(classes: NewClasses) -> dict[str, Any]:
    """The KL divergence of what is to be published, read off its labels as `measure` does: fields of its loss."""
    if not classes.encoded.axes:
        return {"kl": None}
    with side_engine(classes.engine) as engine:
        release = replace(classes, engine=engine).table()
        loss = measure_table(engine, release, classes.resolved, MeasureRequest()).loss
        return {"kl": loss.kl, "kl_sample": loss.kl_sample}


def new_classes(
    ready: PreparedRun, recoding: Recoding, last_class: int | None = None, last_person: int = 0
) -> NewClasses:
    """The classes as they are to be published; their ids and the numbers of their people follow the last ones."""
    engine, resolved = ready.task.engine, ready.resolved
    shown = keep_types(engine, recoding, resolved.typed)
    encoded = _with_people(ready, recoding, last_person)
    return NewClasses(engine, resolved, encoded, shown, ready.task.wanted, last_class, resolved.source.counts_people)


def _with_people(ready: PreparedRun, recoding: Recoding, last: int) -> Encoded:
    """The encoded table, with numbers of the people who are published if these are to be shown."""
    encoded, name = ready.encoded, ready.resolved.released.person
    if name is None:
        return encoded
    assert encoded.individual is not None  # noqa: S101 - whose rows they are is known
    shown = Renamed(Identifier(name), PERSON_NO)
    link = Link(1, encoded.rows, recoding.assigned, encoded.individual.code, 0, shown)
    # Of a source that stays as it is, the people of two nights would stand in one order.
    secret = keyed(ready.secret, last) if last else ready.secret
    return with_numbers(ready.task.engine, [(encoded, [link])], secret, last)[0]


def measured(ready: PreparedRun, recoding: Recoding) -> tuple[Loss, tuple[Similarity, ...]]:
    """The loss of what is to be published, and how many of its rows are open to the similarity attack."""
    engine, encoded, has_ids = ready.task.engine, ready.encoded, ready.resolved.released.has_class_ids
    similarity = measure_similarity(engine, encoded, recoding, ready.resolved.required.attributes, has_ids)
    loss = measure_recoding(engine, encoded, recoding, has_ids)
    return replace(loss, counts=measure_planned_counts(engine, encoded, recoding)), similarity


def measure_similarity(
    engine: Engine, encoded: Encoded, recoding: Recoding, attributes: Mapping[str, Attribute], class_id: bool
) -> tuple[Similarity, ...]:
    """The attack on every sensitive attribute that has categories; `class_id` says whether classes have one."""
    asked = [
        (axis, categories)
        for axis in encoded.sensitive
        if (categories := attributes[axis.column.name].categories) is not None
    ]
    if not asked:
        return ()
    before = engine.number_groups("cells", encoded.counted, *encoded.codes, number="class_no")
    after = published_members(engine, recoding, class_id)
    source = ClassedRows(encoded.counted, before, weight=encoded.weight)
    made = ClassedRows(encoded.members(recoding.dealt), after, dealt=recoding.dealt)
    similarities = tuple(
        Similarity(
            axis.column.name,
            _open_rows(engine, axis, categories, source),
            _open_rows(engine, axis, categories, made),
        )
        for axis, categories in asked
    )
    engine.drop(before, after)
    return similarities


def published_members(engine: Engine, recoding: Recoding, class_id: bool) -> Relation:
    """(row_id, class_no) of the published rows, or cells with how many of each."""
    labelled = {"classes": recoding.classes, "spans": recoding.spans, "many": False}
    labels = engine.materialise("labels", "recoding/publish/label_classes", **labelled)
    number = ("class_id" if class_id else "label_rank", "class_no")
    columns, tables = ["row_id", *([recoding.dealt.name] if recoding.dealt else [])], (recoding.assigned, labels)
    members = engine.join("members", *tables, "class_id", left_columns=columns, right_columns=[number])
    engine.drop(labels)
    return members


def _open_rows(engine: Engine, axis: SensitiveAxis, categories: Categories, members: ClassedRows) -> int:
    """The rows of the classes that hold one category."""
    counts = count_classes(engine, [axis], members)
    values = {"dictionary": axis.dictionary, "key": axis.code, "summed": False, "as_codes": False}
    histogram = engine.materialise("histogram", "local/list_histogram", counts=counts, **values)
    classes = Classes(engine, histogram)
    summary = classes.by_category(categories).summary
    rows = engine.total(summary, "rows", Where("values", 1, "<="))
    classes.drop()
    engine.drop(counts, histogram)
    return rows
