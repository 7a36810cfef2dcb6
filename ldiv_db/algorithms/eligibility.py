"""Classes of different values: how large they are, how many there are of them, and which tables have any."""

from __future__ import annotations

from collections.abc import Sequence

from ldiv_db.algorithms.base import Feasibility, Task
from ldiv_db.algorithms.infeasible import cannot_promise, too_few_values, too_frequent
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements.guarantees import most_classes

#: What BSGI does with `residue: suppress`, in words.
LEAVES = "it leaves out the rows of values that are too frequent"


def quotas(counts: Sequence[int], l: int, classes: int | None = None) -> list[int]:
    """The rows of each value to select for so many classes, by default `most_classes`; `counts` fall.

    No quota exceeds the number of classes, and they sum to l times it. What is beyond is taken off the
    largest buckets: one row each where that is enough, so that residual rows differ if the table is
    l-eligible (Corollary 1).
    """
    classes = most_classes(counts, l) if classes is None else classes
    clipped = [min(count, classes) for count in counts]
    surplus = sum(clipped) - classes * l
    while surplus >= len(clipped):  # only where another key allows fewer classes
        clipped = [min(count, max(clipped) - max(1, surplus // len(clipped))) for count in clipped]
        surplus = sum(clipped) - classes * l
    return [quota - (place < surplus) for place, quota in enumerate(clipped)]


def class_size(task: Task) -> int:
    """The l of a task: the smallest class of different sensitive values that meets every requirement, at least 2.

    One more where NULL is not judged, of which a class may have a row. Raises PolicyError for requirements that no size
    promises.
    """
    sizes = {requirement: requirement.unique_class_size() for requirement in task.requirements}
    lacking = [one for one, size in sizes.items() if size is None or (one.harmless and not one.shares_only)]
    if lacking and task.encoded.individual:
        labels = ", ".join(requirement.label for requirement in lacking)
        what = f"rows of one individual are kept apart in classes of different values, which cannot promise {labels}"
        raise PolicyError([Problem("individual", what, "leave it out, or ask for distinct, frequency or k")])
    if lacking:
        why = "different sensitive values are not enough for it"
        raise PolicyError(cannot_promise("bsgi", requirement, why) for requirement in lacking)
    return max([2, *(size for size in sizes.values() if size is not None)]) + task.encoded.leaves_unjudged


def class_count(encoded: Encoded, l: int) -> int:
    """The most classes of l rows that differ on every key, by counts alone."""
    return min(most_classes(key.parted_distribution.counts, l, key.free) for key in encoded.keys)


def hardest_first(encoded: Encoded) -> list[SensitiveAxis]:
    """The sensitive attributes, the one with the most frequent value first; of equal ones those of fewer values."""
    return sorted(encoded.sensitive, key=lambda key: (-key.distribution.counts[0], key.distribution.distinct))


def check_counts(task: Task, suppress: bool) -> Feasibility:
    """Feasibility by counts; raises InfeasibleError if a key has too few values, or one too frequent to incorporate."""
    encoded, l = task.encoded, class_size(task)
    for key in encoded.keys:
        if l > key.parted_distribution.distinct + key.free:
            raise InfeasibleError(too_few_values(encoded, key, l))
    for key in encoded.keys:
        if max(key.parted_distribution.counts, default=0) * l > key.distribution.rows and not suppress:
            raise InfeasibleError(too_frequent(encoded, key, l), l)
    classes = class_count(encoded, l)
    suppressed = encoded.row_count - classes * l if suppress else 0
    return Feasibility(l, classes, suppressed + encoded.left_out, tuple(_notes(encoded)))


def _notes(encoded: Encoded) -> list[str]:
    notes = []
    for key in encoded.sensitive:
        if key.parted_distribution.largest_l == 1:
            where = f" of {key.column.name}" if len(encoded.sensitive) > 1 else ""
            notes.append(
                f"one sensitive value{where} holds more than half of the {encoded.noun}: not all of them find a class"
            )
    if len(encoded.keys) > 1:
        names = " and ".join(key.column.name for key in encoded.keys)
        notes.append(f"{encoded.noun} of a class differ in {names}; {encoded.noun} that find no class are left out")
    return notes
