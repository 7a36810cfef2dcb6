"""Why a policy cannot be met, in words: what the data are too poor for, with the nearest that they allow.

The union of two classes that meet a monotone requirement meets it too, so the whole table as one class is the best
there can be: what fails there fails in every table of all rows. Requirements that hold there may still ask for
classes of more different values than the table has enough of, which is what an algorithm finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem
from ldiv_db.database.templates import Value
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements import Classes, Requirement, Verdict, judge
from ldiv_db.requirements.distribution import Ceiling, eligible_ceiling, most_classes
from ldiv_db.requirements.parameters import rounded

#: What is said in place of values that are data.
HINT = "--show-values (in Python show_values=True) names the values that are too frequent"
#: What is said where the whole table as one class violates a requirement, the best there can be.
NOTHING_MEETS = "no table of all these rows meets the policy"
#: The most values that one line names.
MOST_VALUES = 20


@contextmanager
def explained(
    engine: Engine,
    encoded: Encoded,
    requirements: Mapping[str, Sequence[Requirement]],
    says_why: bool = False,
    takes_any_class: bool = False,
    show_values: bool = False,
) -> Iterator[None]:
    """Adds to an error which requirements and values are to blame; what no table of these rows meets is infeasible.

    Where the error `says_why` itself no requirements are added; if the algorithm `takes_any_class` only those that the
    whole table violates. Values are named if `show_values` is set, otherwise
    a hint says how to see them.
    """
    try:
        yield
    except (InfeasibleError, PolicyError) as error:
        reasons = [
            reason
            for axis in encoded.sensitive
            for reason in ([] if says_why else explain(engine, axis, requirements[axis.column.name], takes_any_class))
        ]
        if not reasons and isinstance(error, PolicyError):
            raise
        l = error.l if isinstance(error, InfeasibleError) else None  # noqa: E741
        values = [
            line
            for axis in encoded.sensitive
            for line in blame_values(engine, axis, requirements[axis.column.name], l, show_values)
        ]
        values = values if show_values else values[:1]
        raise InfeasibleError("\n".join([*reasons, str(error), *values]), l) from error


def blame_values(
    engine: Engine,
    axis: SensitiveAxis,
    requirements: Sequence[Requirement],
    l: int | None,  # noqa: E741 - the field's name for it
    show_values: bool,
) -> list[str]:
    """A line for every bound that sensitive values exceed in the whole table, a requirement's or 1/l: the hint, or
    the values with their rows and the most that they may have.
    """
    ceilings: dict[Ceiling, str] = {}
    for requirement in requirements:
        if ceiling := requirement.ceiling(axis.judged_distribution):
            ceilings.setdefault(ceiling, requirement.label)
    if l is not None:
        ceilings.setdefault(eligible_ceiling(l, axis.judged_distribution), f"l = {l}")
    exceeded = [(ceiling, name, _frequent(engine, axis, ceiling, show_values)) for ceiling, name in ceilings.items()]
    return [
        f"too frequent in {axis.column.name} for {name}: {_listed(axis, ceiling, rows)}" if show_values else HINT
        for ceiling, name, rows in exceeded
        if rows
    ]


def _frequent(
    engine: Engine, axis: SensitiveAxis, ceiling: Ceiling, show_values: bool
) -> list[tuple[str | None, int, int]]:
    """The most frequent of the values above their ceiling, one more than are listed: (value, rows, ceiling)."""
    ceilings = engine.load("ceilings", {"value": "VARCHAR", "ceiling": "BIGINT"}, ceiling.own)
    rows = engine.rows(
        "requirements/list_frequent",
        dictionary=axis.reference,
        ceilings=ceilings,
        ceiling=Value(ceiling.rows),
        most=Value(MOST_VALUES + 1),
        show_values=show_values,
    )
    engine.drop(ceilings)
    return rows


def _listed(axis: SensitiveAxis, ceiling: Ceiling, frequent: Sequence[tuple[str | None, int, int]]) -> str:
    """The values; of those with thresholds the smallest that can be met, which is their share of the whole table."""
    rows, listed = axis.judged_distribution.rows, []
    for value, count, most in frequent[:MOST_VALUES]:
        least = f"; smallest threshold {rounded(count / rows, 9, up=True)}" if ceiling.by_threshold else ""
        name = "NULL" if value is None else repr(value)
        listed.append(f"{name} ({count:,} of {rows:,} rows, at most {most:,}{least})")
    return ", ".join([*listed, *(["…"] if len(frequent) > MOST_VALUES else [])])


def explain(
    engine: Engine, axis: SensitiveAxis, requirements: Sequence[Requirement], takes_any_class: bool = False
) -> list[str]:
    """A line for every requirement that the sensitive attribute cannot meet: what it is, and what is nearest."""
    histogram = engine.materialise("whole", "requirements/take_whole", dictionary=axis.reference)
    classes = Classes(engine, histogram)
    lines = [
        line for requirement in requirements if (line := _reason(engine, axis, classes, requirement, takes_any_class))
    ]
    classes.drop()
    engine.drop(histogram)
    return lines


def _reason(
    engine: Engine, axis: SensitiveAxis, classes: Classes, requirement: Requirement, takes_any_class: bool
) -> str:
    """Why the requirement cannot be met, empty if it can."""
    if requirement.monotone:
        verdict = judge(engine, requirement, classes)
        if not verdict.holds:
            nearest = requirement.nearest_in(engine, classes, verdict.worst, axis.judged_distribution)
            return f"{_fails(requirement, axis)}; the nearest it meets is {nearest}"
    size, most = requirement.unique_class_size(), axis.asked_distribution.largest_l
    if takes_any_class or size is None or size <= max(most, 1):
        return ""
    return (
        f"{_about(requirement, axis)} asks for classes of {size} different values; classes of {most} meet"
        f" {requirement.nearest_at(most)}"
    )


def _about(requirement: Requirement, axis: SensitiveAxis) -> str:
    return f"{requirement.label} on {axis.column.name}" if axis.is_said else requirement.label


def _fails(requirement: Requirement, axis: SensitiveAxis) -> str:
    return f"{_about(requirement, axis)} fails even in the whole table as one class"


def fails_for_those_who_know(
    requirement: Requirement, axis: SensitiveAxis, known: Sequence[SensitiveAxis], verdict: Verdict
) -> str:
    """That the whole table violates the requirement for those who know the other sensitive attributes."""
    names = ", ".join(other.column.name for other in known)
    reached = "nothing" if verdict.worst is None else f"{verdict.worst:.9g}"
    return (
        f"{_fails(requirement, axis)}: of {verdict.classes:,} classes for those who know {names}"
        f" {verdict.violating_classes:,} violate it, the worst reaches {reached}"
    )


# -- what counts alone tell --------------------------------------------------------------------------


def cannot_promise(algorithm: str, requirement: Requirement, why: str, hint: str = "") -> Problem:
    """That no classes of the algorithm are sure to meet the requirement, whatever the data."""
    return Problem("require", f"{algorithm} cannot promise {requirement.label}: {why}", hint)


def no_class(what: str, l: int, name: str, distinct: int, rows: int) -> str:  # noqa: E741
    """That there are not even enough different values for one class or group."""
    return (
        f"{what} of {l} different values of {name} are impossible: it has {distinct} in {rows:,} rows."
        f" The largest feasible l is {distinct}"
    )


def none_found(encoded: Encoded, l: int) -> str:  # noqa: E741
    """That no rows differ in every key."""
    names = ", ".join(key.column.name for key in encoded.keys)
    return f"no {l} rows were found that differ in each of {names}: lower l"


def _what(encoded: Encoded, key: SensitiveAxis, plain: str, individual: str) -> str:
    """How a message calls a key's value; which attribute it is of is said where there are several."""
    if key is encoded.individual:
        return individual
    return f"{plain} of {key.column.name}" if len(encoded.keys) > 1 else plain


def _one_more(encoded: Encoded) -> str:
    """Why l is more than the policy asks for; empty if it is not."""
    return ": l is one more than asked for, as rows with NULL are not judged" if encoded.leaves_unjudged else ""


def too_few_values(encoded: Encoded, key: SensitiveAxis, l: int) -> str:  # noqa: E741
    """That a key has fewer than l values, and what can be met."""
    distribution = key.distribution
    if key is encoded.individual:
        who = "a single individual" if distribution.distinct == 1 else f"{distribution.distinct} individuals"
        what = f"classes of {l} different individuals are impossible: there are {who}"
    else:
        most = "a single value" if distribution.distinct == 1 else f"{distribution.distinct} different values"
        which = f" {key.column.name}" if len(encoded.keys) > 1 else ""
        what = f"classes of {l} different sensitive values are impossible: the sensitive attribute{which} has {most}"
    return f"{what} in {distribution.rows:,} rows{_one_more(encoded)}. {_largest(encoded)}{_with_suppression(encoded)}"


def too_frequent(encoded: Encoded, key: SensitiveAxis, l: int, can_suppress: bool = False) -> str:  # noqa: E741
    """That a key has a value in more than 1/l of the rows, and what suppression would allow, if there is any."""
    what = _what(encoded, key, "the most frequent sensitive value", "the individual with the most rows")
    rows, most = key.distribution.rows, max(key.distribution.counts, default=0)
    said = f"{what} holds {most:,} of {rows:,} rows, more than 1/{l}{_one_more(encoded)}. {_largest(encoded)}"
    if not can_suppress:
        return f"l = {l} is infeasible: {said}"
    return (
        f"l = {l} is infeasible without suppression: {said}, or set algorithm.residue: suppress, which leaves out"
        f" {_suppressed(encoded, l)} at l = {l}{_with_suppression(encoded, l)}"
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
    distribution = encoded.sensitive[0].distribution
    least = "at least " if len(encoded.keys) > 1 else ""
    return f"{least}{distribution.rows - classes * l:,} of {distribution.rows:,} rows"


def no_cut(over: Mapping[int, int], thetas: Mapping[int, Fraction], rows: int, names: Mapping[int, str]) -> str:
    """That values (rows by code) exceed their thresholds in the whole table, and so under every cut."""
    return (
        f"no cut is allowed without suppression: {len(over):,} sensitive values exceed their thresholds in the"
        f" whole table. {_nearest_thresholds(over, thetas, rows, names)} Or set algorithm.scheme to"
        " vioRec, vioSA, allRec or allSA"
    )


def _nearest_thresholds(
    over: Mapping[int, int], thetas: Mapping[int, Fraction], rows: int, names: Mapping[int, str]
) -> str:
    """What can be met: of the values that the policy names their shares, of the others, which are data, a factor."""
    shares = [
        f"{names[code]}: {_rounded_up(over[code], rows)} (asked for: {float(thetas[code]):.6g})"
        for code in sorted(over, key=over.__getitem__)
        if code in names
    ]
    factors = [Fraction(count) / (thetas[code] * rows) for code, count in over.items() if code not in names]
    said = [f"The smallest that can be met are their shares there: {', '.join(shares)}."] if shares else []
    if factors:
        times = f"thresholds {rounded(float(max(factors)), 3, up=True)} times as high."
        said.append(f"{'The others, which the policy does not name,' if shares else 'They'} can be met with {times}")
    return " ".join(said)


def _rounded_up(count: int, rows: int) -> str:
    """The share with six digits, no less than it is."""
    return f"{-(-count * 10**6 // rows) / 10**6:.6f}"
