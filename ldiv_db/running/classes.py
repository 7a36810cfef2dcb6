"""From a prepared run to its classes, and how they are published."""

from __future__ import annotations

import math
from dataclasses import replace

from ldiv_db.algorithms.base import Plan, Task
from ldiv_db.algorithms.tp.tp import Tp
from ldiv_db.database.context import side_engine
from ldiv_db.measuring.measure import MeasureRequest, measure_table
from ldiv_db.recoding.recode import PUBLISHED, Recoding, published_rows
from ldiv_db.running.run_spec import PreparedRun
from ldiv_db.solving.auto import Auto
from ldiv_db.solving.improve import LEAST, recode
from ldiv_db.solving.people import notes_on_people, plan_of_rows
from ldiv_db.solving.solve import PartwiseSolver


def work_out(ready: PreparedRun, workers: int | None) -> tuple[Plan, Recoding]:
    """The algorithm's plan, made by so many processes, and how its classes are published."""
    released = ready.resolved.released
    task = replace(ready.task, forms=released.forms, class_ids=released.has_class_ids)
    effort = ready.algorithm.effort if isinstance(ready.algorithm, Auto) else LEAST
    solver = PartwiseSolver(ready.resolved.part_rows, workers, effort)
    if isinstance(ready.algorithm, Tp) and ready.algorithm.options.coarsen == "auto":
        plan = _least_divergent(ready, ready.algorithm, task, solver)
    else:
        plan = solver.plan(ready.algorithm, task)
    return _recoded(ready, task, plan)


def _recoded(ready: PreparedRun, task: Task, plan: Plan) -> tuple[Plan, Recoding]:
    if ready.units is not None:
        plan = plan_of_rows(task.engine, ready.units, plan, task.wanted)
        task = replace(task, encoded=ready.encoded)
        task.refuse_left_out(ready.encoded.row_count - plan.row_count(task.engine))
    elif ready.encoded.individual is not None:
        plan = replace(plan, notes=(*plan.notes, *notes_on_people(task.engine, ready.encoded, plan.assigned)))
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
    found = divergence(ready, recoding)
    task.engine.drop(*(span.relation for span in recoding.spans))
    return math.inf if found is None else found


def divergence(ready: PreparedRun, recoding: Recoding) -> float | None:
    """The KL divergence of what is to be published, read off its labels as `measure` does for any table."""
    with side_engine(ready.task.engine) as engine:
        with published_rows(engine, ready.encoded, recoding, ready.resolved.released.has_class_ids) as params:
            release = engine.materialise("release", PUBLISHED, **params)
        return measure_table(engine, release, ready.resolved, MeasureRequest()).loss.kl
