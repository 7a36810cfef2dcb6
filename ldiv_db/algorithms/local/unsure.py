"""Requirements that are not monotone, which a search keeps by checking every class that it makes.

The union of two good classes may be bad, and so may the whole table where parts of it are good. Whatever is split,
joined or exchanged is judged before it is done, so that good classes stay good; a search that starts with a class that
is bad may end with one: there are no good ones for all rows, or it did not find them.
"""

from __future__ import annotations

from ldiv_db.algorithms.base import Task
from ldiv_db.algorithms.local.candidate_classes import ClassChecker, unsure_labels
from ldiv_db.database.errors import InfeasibleError
from ldiv_db.database.templates import Relation
from ldiv_db.requirements import Classes, judge


def nothing_found(task: Task, name: str, what: str, hint: str) -> InfeasibleError:
    """That a search found no good classes, which does not say that there are none; and what the whole table meets."""
    found = f"{name} found no classes of all rows that meet {unsure_labels(task)}: {what}; {hint}"
    return InfeasibleError("\n".join([found, *_nearest(task)]))


def _nearest(task: Task) -> list[str]:
    """What the whole table as one class meets of each requirement that is not monotone and that it violates."""
    engine, lines = task.engine, []
    for axis in task.encoded.sensitive:
        with engine.scope():
            histogram = engine.materialise("whole", "requirements/take_whole", dictionary=axis.reference)
            for requirement in (r for r in task.wanted[axis.column.name] if not r.monotone):
                verdict = judge(engine, requirement, Classes(engine, histogram, axis.reference))
                nearest = requirement.nearest_whole(verdict.worst, axis.judged_distribution)
                if not verdict.holds:
                    lines.append(
                        f"{requirement.label} on {axis.column.name}: the whole table as one class meets {nearest}"
                    )
    return lines


def require_good(task: Task, name: str, assigned: Relation) -> None:
    """Raise InfeasibleError if a class of (row_id, class_id) is bad; monotone requirements need no such look."""
    if not unsure_labels(task):
        return
    engine = task.engine
    with engine.scope():
        members = engine.materialise("members", "local/name_classes", assigned=assigned)
        holes = {"members": members, "rows": task.encoded.rows, "sensitive": task.encoded.sensitive}
        margins = ClassChecker(task).margins(engine.materialise("counts", "local/count_classes", **holes))
        classes, bad = engine.count(margins), engine.count(margins) - engine.scalar("local/count_good", margins=margins)
    if bad:
        what = "the whole table does not, and no part of it was split off" if classes == 1 else f"{bad:,} do not"
        raise nothing_found(task, name, what, "algorithm: peel looks for others")
