"""What l-eligible classes promise, and whether a table has any: shared by the algorithms of TP's family.

In an l-eligible class no sensitive value is in more than 1/l of the rows. A union of such classes is one, so a
table has any if and only if it is one as a whole. A class that is not empty then has at least l rows and l different
values; its entropy is at least ln l, as its largest share is at most 1/l; and of its n rows at least n (l - l' + 1) / l
are left without the l' - 1 most frequent values, which bounds recursive (c,l') as in classes of different values.
"""

from __future__ import annotations

from ldiv_db.algorithms.base import Feasibility, Task
from ldiv_db.algorithms.infeasible import cannot_promise, too_frequent
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem


def eligible_l(task: Task, name: str) -> int:
    """The smallest l, from 2, such that l-eligible classes meet every requirement.

    Raises PolicyError for those that no l promises, for several sensitive attributes and for individuals.
    """
    problems = [
        cannot_promise(name, requirement, "it bounds how frequent a value is in a class")
        for requirement in task.requirements
        if not requirement.of_eligible
    ]
    if len(task.encoded.sensitive) > 1:
        problems.append(Problem("sensitive", f"{name} takes one sensitive attribute", "bsgi takes several"))
    if task.encoded.individual is not None:
        problems.append(Problem("individual", f"{name} does not distinguish individuals", "bsgi does"))
    if problems:
        raise PolicyError(problems)
    least = max(2, *(requirement.unique_class_size() or 2 for requirement in task.requirements))
    # Without the rows of one value, which NULL is, a class that is (l + 1)-eligible is still l-eligible.
    return least + task.encoded.leaves_unjudged


def check_eligible(task: Task, name: str) -> Feasibility:
    """What the counts allow; raises InfeasibleError if a value is too frequent in the whole table."""
    l, (axis,) = eligible_l(task, name), task.encoded.sensitive  # noqa: E741
    counts, rows = axis.distribution.counts, axis.distribution.rows
    if not counts or counts[0] * l > rows:
        raise InfeasibleError(too_frequent(task.encoded, axis, l), l)
    return Feasibility(l, rows // l, task.encoded.left_out, ("the number of classes is at most that",))
