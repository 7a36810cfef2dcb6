"""What counts alone tell: how many classes there can be, and why not.

Rows of a class differ on every key: on each sensitive attribute, and in the individual. So every key bounds
l and the number of classes, and the one that bounds them most is the hardest. For up to two keys the
bounds are reached by some classes (rows are edges of a bipartite graph, classes are matchings of l edges;
de Werra 1971); for more they need not be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ldiv_db.algorithms.base import Feasibility, Task
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements import Distribution


def most_classes(counts: Sequence[int], l: int) -> int:  # noqa: E741 - the field's name for it
    """The most classes of l rows with different values: `max{k : sum_i min(n_i, k) >= k l}` (Theorem 1)."""
    tally = list(Counter(counts).items())  # individuals are many, their counts few
    low, high = 0, sum(counts) // l
    while low < high:
        k = (low + high + 1) // 2
        if sum(min(count, k) * values for count, values in tally) >= k * l:
            low = k
        else:
            high = k - 1
    return low


def quotas(counts: Sequence[int], l: int, classes: int | None = None) -> list[int]:  # noqa: E741
    """How many rows of each value are selected for so many classes, by default `most_classes`; `counts` fall.

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
    problems = [
        Problem("require", f"bsgi cannot promise {requirement.label}: different sensitive values are not enough for it")
        for requirement, size in sizes.items()
        if size is None
    ]
    if problems:
        raise PolicyError(problems)
    return max([2, *(size for size in sizes.values() if size is not None)]) + task.encoded.leaves_unjudged


def hardest_first(encoded: Encoded) -> list[SensitiveAxis]:
    """The sensitive attributes, the one with the most frequent value first; of equal ones those of fewer values."""
    return sorted(encoded.sensitive, key=lambda key: (-key.distribution.counts[0], key.distribution.distinct))


def check_counts(task: Task, suppress: bool) -> Feasibility:
    """What the counts allow; raises InfeasibleError if a key has too few values, or one too frequent to incorporate."""
    encoded, l = task.encoded, class_size(task)  # noqa: E741
    for key in encoded.keys:
        if l > key.distribution.distinct:
            raise InfeasibleError(_too_few_values(encoded, key, l))
    for key in encoded.keys:
        if key.distribution.counts[0] * l > key.distribution.rows and not suppress:
            raise InfeasibleError(_too_frequent(encoded, key, l), l)
    classes = min(most_classes(key.distribution.counts, l) for key in encoded.keys)
    suppressed = encoded.row_count - classes * l if suppress else 0
    return Feasibility(l, classes, suppressed + encoded.left_out, tuple(_notes(encoded)))


def _notes(encoded: Encoded) -> list[str]:
    notes = []
    for key in encoded.sensitive:
        if key.distribution.largest_l == 1:
            where = f" of {key.column.name}" if len(encoded.sensitive) > 1 else ""
            notes.append(
                f"one sensitive value{where} holds more than half of the rows: no release can bound the risk by 1/2"
            )
    if len(encoded.keys) > 1:
        names = " and ".join(key.column.name for key in encoded.keys)
        notes.append(f"rows of a class differ in {names}; rows that find no class are left out")
    return notes


# -- why not, and what instead ----------------------------------------------------------------------


def _what(encoded: Encoded, key: SensitiveAxis, plain: str, individual: str) -> str:
    """How a message calls a key's value; which attribute it is of is said where there are several."""
    if key is encoded.individual:
        return individual
    return f"{plain} of {key.column.name}" if len(encoded.keys) > 1 else plain


def one_more(encoded: Encoded) -> str:
    """Why l is more than the policy asks for; empty if it is not."""
    return ": l is one more than asked for, as rows with NULL are not judged" if encoded.leaves_unjudged else ""


def _too_few_values(encoded: Encoded, key: SensitiveAxis, l: int) -> str:  # noqa: E741
    distribution = key.distribution
    if key is encoded.individual:
        who = "a single individual" if distribution.distinct == 1 else f"{distribution.distinct} individuals"
        what = f"classes of {l} different individuals are impossible: there are {who}"
    else:
        most = "a single value" if distribution.distinct == 1 else f"{distribution.distinct} different values"
        which = f" {key.column.name}" if len(encoded.keys) > 1 else ""
        what = f"classes of {l} different sensitive values are impossible: the sensitive attribute{which} has {most}"
    return f"{what} in {distribution.rows:,} rows{one_more(encoded)}. {_largest(encoded)}{_with_suppression(encoded)}"


def _too_frequent(encoded: Encoded, key: SensitiveAxis, l: int) -> str:  # noqa: E741
    what = _what(encoded, key, "the most frequent sensitive value", "the individual with the most rows")
    return (
        f"l = {l} is infeasible without suppression: {what} holds {key.distribution.counts[0]:,}"
        f" of {key.distribution.rows:,} rows, more than 1/{l}{one_more(encoded)}. {_largest(encoded)}, or set"
        f" algorithm.residue: suppress, which leaves out {_suppressed(encoded, l)} at l = {l}"
        f"{_with_suppression(encoded, l)}"
    )


def _largest_l(encoded: Encoded) -> int:
    return min(key.distribution.largest_l for key in encoded.keys)


def _largest(encoded: Encoded) -> str:
    largest = _largest_l(encoded)
    return f"The largest feasible l is {largest}" if largest > 1 else "No whole l above 1 is feasible"


def _with_suppression(encoded: Encoded, asked: int = 0) -> str:
    """What suppression allows beyond the l that is feasible without it and the one `asked` for; empty if nothing."""
    most = min(key.distribution.distinct for key in encoded.keys)
    if most in (_largest_l(encoded), asked) or most < 2:
        return ""
    if asked:
        return f" and allows up to l = {most}"
    return (
        f" without suppression, and {most} with algorithm.residue: suppress, which leaves out"
        f" {_suppressed(encoded, most)}"
    )


def _suppressed(encoded: Encoded, l: int) -> str:  # noqa: E741
    """The rows that suppression leaves out by the counts; several keys may cost more."""
    classes = min(most_classes(key.distribution.counts, l) for key in encoded.keys)
    distribution: Distribution = encoded.sensitive[0].distribution
    least = "at least " if len(encoded.keys) > 1 else ""
    return f"{least}{distribution.rows - classes * l:,} of {distribution.rows:,} rows"
