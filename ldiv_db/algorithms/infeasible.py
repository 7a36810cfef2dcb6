"""Reasons, in words, why a policy cannot be met: what the data are too poor for, with the nearest that they allow.

The union of two classes that meet a monotone requirement meets it too, so the whole table as one class is the best
there can be: what fails there fails in every table of all rows. Requirements that hold there may still ask for
classes of more different values than the table has enough of, which is what an algorithm finds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, PolicyError, Problem, rows_phrase
from ldiv_db.database.names import Relation
from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements import Classes, Requirement, Verdict, judge
from ldiv_db.requirements.guarantees import Ceiling, eligible_ceiling
from ldiv_db.requirements.parameters import plain_decimal, rounded

#: What is said in place of values that are data.
HINT = "--show-values (in Python show_values=True) names the values that are too frequent"
#: The most values that one line names.
MOST_VALUES = 20


def blame_values(
    engine: Engine, axis: SensitiveAxis, requirements: Sequence[Requirement], l: int | None, show_values: bool
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
    exceeded = [
        (ceiling, name, frequent_values(engine, axis, ceiling, show_values)) for ceiling, name in ceilings.items()
    ]
    return [
        f"too frequent in {axis.column.name} for {name}: {_threshold_list(axis, ceiling, rows)}"
        if show_values
        else HINT
        for ceiling, name, rows in exceeded
        if rows
    ]


def frequent_values(
    engine: Engine, axis: SensitiveAxis, ceiling: Ceiling, show_values: bool
) -> list[tuple[str | None, int, int]]:
    """The most frequent of the values above their ceiling, one more than are listed: (value, rows, ceiling)."""
    ceilings = engine.load("ceilings", {"value": "VARCHAR", "ceiling": "BIGINT"}, ceiling.own)
    rows = engine.rows(
        "requirements/list_frequent",
        dictionary=axis.values,
        ceilings=ceilings,
        ceiling=ceiling.rows,
        most=MOST_VALUES + 1,
        show_values=show_values,
    )
    engine.drop(ceilings)
    return rows


def _threshold_list(axis: SensitiveAxis, ceiling: Ceiling, frequent: Sequence[tuple[str | None, int, int]]) -> str:
    """The values; of those with thresholds the smallest that can be met, which is their share of the whole table."""
    rows, listed = axis.judged_distribution.rows, []
    for value, count, most in frequent[:MOST_VALUES]:
        least = f"; smallest threshold {rounded(count / rows, 9, up=True)}" if ceiling.by_threshold else ""
        name = "NULL" if value is None else repr(value)
        listed.append(f"{name} ({count:,} of {rows:,} rows, at most {most:,}{least})")
    return ", ".join([*listed, *(["…"] if len(frequent) > MOST_VALUES else [])])


def no_class(what: str, l: int, name: str, distinct: int, rows: int) -> str:
    """The message that one class or group needs more different values than there are."""
    return (
        f"{what} of {l} different values of {name} are impossible: it has {distinct} in {rows_phrase(rows)}."
        f" The largest feasible l is {distinct}"
    )


def none_found(encoded: Encoded, l: int) -> str:
    """The message that no rows differ in every key."""
    names = ", ".join(key.column.name for key in encoded.keys)
    return f"no {l} {encoded.noun} were found that differ in each of {names}: lower l"


def too_many_left_out(encoded: Encoded, rows: int, most: int, share: Decimal) -> str:
    """The message that more rows would be left out than the policy's budget."""
    total = encoded.row_count
    allowed = f"suppression: {plain_decimal(share)} allows {most:,}"
    return f"{rows:,} of {total:,} {encoded.noun} ({_rounded_up(rows * 100, total, 2)} %) would be left out; {allowed}"


def _one_more(encoded: Encoded) -> str:
    """The reason for an l above that of the policy; empty if it is not above."""
    return ": l is one more than asked for, as rows with NULL are not judged" if encoded.leaves_unjudged else ""


def too_few_values(encoded: Encoded, key: SensitiveAxis, l: int) -> str:
    """The message that a key has fewer than l values, with the l that can be met."""
    distribution = key.distribution
    if key is encoded.individual:
        who = "a single individual" if distribution.distinct == 1 else f"{distribution.distinct} individuals"
        what = f"classes of {l} different individuals are impossible: there are {who}"
    else:
        most = "a single value" if distribution.distinct == 1 else f"{distribution.distinct} different values"
        which = f" {key.column.name}" if len(encoded.keys) > 1 else ""
        what = f"classes of {l} different sensitive values are impossible: the sensitive attribute{which} has {most}"
    return f"{what} in {distribution.rows:,} {encoded.noun}{_one_more(encoded)}. {_largest(encoded)}"


def too_frequent(encoded: Encoded, key: SensitiveAxis, l: int) -> str:
    """The message that a key has a value in more than 1/l of the rows, with the l that can be met."""
    of_key = f" of {key.column.name}" if len(encoded.keys) > 1 else ""
    value, individual = f"the most frequent sensitive value{of_key}", "the individual with the most rows"
    what = individual if key is encoded.individual else value
    rows, most = key.distribution.rows, max(key.parted_distribution.counts, default=0)
    said = f"{what} holds {most:,} of {rows:,} {encoded.noun}, more than 1/{l}{_one_more(encoded)}"
    return f"l = {l} is infeasible for this algorithm: {said}. {_largest(encoded)}"


def _largest(encoded: Encoded) -> str:
    """The largest l by counts alone, which binds algorithms whose rows of a class differ; others may reach more."""
    largest = min(key.parted_distribution.largest_l for key in encoded.keys)
    return (
        f"The largest l of this algorithm is {largest}" if largest > 1 else "This algorithm reaches no whole l above 1"
    )


def no_cut(over: Mapping[int, int], thetas: Mapping[int, Fraction], rows: int, names: Mapping[int, str]) -> str:
    """The message that values (rows by code) exceed their thresholds in the whole table, and so under every cut."""
    return (
        f"no cut is allowed without suppression: {len(over):,} sensitive values exceed their thresholds in the"
        f" whole table. {_nearest_thresholds(over, thetas, rows, names)}"
    )


def _nearest_thresholds(
    over: Mapping[int, int], thetas: Mapping[int, Fraction], rows: int, names: Mapping[int, str]
) -> str:
    """Thresholds that can be met: shares for values named by the policy, one factor for the others, which are data."""
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


def _rounded_up(count: int, rows: int, digits: int = 6) -> str:
    """The share with so many digits, no less than it is."""
    return f"{-(-count * 10**digits // rows) / 10**digits:.{digits}f}"


@contextmanager
def explained(
    engine: Engine,
    encoded: Encoded,
    requirements: Mapping[str, Sequence[Requirement]],
    explains: bool = False,
    any_class: bool = False,
    show_values: bool = False,
) -> Iterator[None]:
    """Adds to an error which requirements and values are to blame; what no table of these rows meets is infeasible.

    Where the error `explains` itself no requirements are added; if the algorithm `any_class` only those that the
    whole table violates. Values are named if `show_values` is set, otherwise a hint says how to see them.
    """
    try:
        yield
    except (InfeasibleError, PolicyError) as error:
        reasons = [
            reason
            for axis in encoded.sensitive
            for reason in ([] if explains else explain(engine, axis, requirements[axis.column.name], any_class))
        ]
        if not reasons and isinstance(error, PolicyError):
            raise
        l = error.l if isinstance(error, InfeasibleError) else None
        values = [
            line
            for axis in encoded.sensitive
            for line in blame_values(engine, axis, requirements[axis.column.name], l, show_values)
        ]
        values = values if show_values else values[:1]
        raise InfeasibleError("\n".join([*reasons, error.message, *values]), l) from error


@dataclass(frozen=True)
class Failure:
    """A requirement that a sensitive attribute cannot meet: why, and the nearest parameters that it meets.

    `is_of_table` says whether the whole table as one class fails, or an algorithm's classes of different values do.
    """

    axis: SensitiveAxis
    requirement: Requirement
    reason: str
    weaker: Mapping[str, Any]
    is_of_table: bool


def explain(
    engine: Engine,
    axis: SensitiveAxis,
    requirements: Sequence[Requirement],
    any_class: bool = False,
    people: Mapping[str, Relation] | None = None,
) -> list[str]:
    """A line for every requirement that the sensitive attribute cannot meet: what it is, and what is nearest."""
    found = failures(engine, axis, requirements, people)
    return [failure.reason for failure in found if failure.is_of_table or not any_class]


def failures(
    engine: Engine,
    axis: SensitiveAxis,
    requirements: Sequence[Requirement],
    people: Mapping[str, Relation] | None = None,
) -> list[Failure]:
    """The requirements that the sensitive attribute cannot meet, by the whole table or in classes of unlike values.

    `people` are those of populations that the whole table covers; of others nothing is known.
    """
    with engine.scope():
        classes = axis.whole_table(engine)
        classes.place_people(people or {})
        known = [r for r in requirements if not r.named_population or r.named_population in (people or {})]
        found = [_failure_of_table(engine, axis, classes, r) or _failure_of_size(axis, r) for r in known]
    return [failure for failure in found if failure]


def met_by_table(engine: Engine, axis: SensitiveAxis, requirements: Sequence[Requirement]) -> dict[Requirement, str]:
    """The strictest parameters, in words, that the table as one class meets, of each requirement where that is known.

    Where a class may have equal values no other class is nearer to what is required.
    """
    found = {}
    with engine.scope():
        classes = axis.whole_table(engine)
        for requirement in requirements:
            if requirement.monotone and not requirement.named_population:
                worst = judge(engine, requirement, classes).worst
                found[requirement] = requirement.nearest_in(engine, classes, worst, axis.judged_distribution)
    return {requirement: words for requirement, words in found.items() if words}


def _failure_of_table(
    engine: Engine, axis: SensitiveAxis, classes: Classes, requirement: Requirement
) -> Failure | None:
    """The message that the whole table violates the requirement, if it does; `classes` are the table as one class."""
    if not requirement.monotone:
        return None
    verdict = judge(engine, requirement, classes)
    if verdict.holds:
        return None
    distribution, said = axis.judged_distribution, ""
    if verdict.by_rows and classes.by_rows:  # people have several, and of one value more than others have
        classes, said = classes.by_rows, ", by its rows"
        distribution = classes.distribution(engine)
    given = (engine, classes, verdict.worst, distribution)
    nearest = requirement.nearest_in(*given)
    reason = _fails(requirement, axis) + said + (f"; the nearest it meets is {nearest}" if nearest else "")
    return Failure(axis, requirement, reason, requirement.weaker_in(*given), is_of_table=True)


def _failure_of_size(axis: SensitiveAxis, requirement: Requirement) -> Failure | None:
    """The message that no class has as many different values as the requirement takes, if none can."""
    size, most = requirement.unique_class_size(), axis.asked_distribution.largest_l
    if size is None or size <= max(most, 1) or not axis.asked_distribution.counts:  # of no value nothing is asked
        return None
    reason = (
        f"{_requirement_words(requirement, axis)} asks for classes of {size} different values; classes of {most} meet"
        f" {requirement.nearest_at(most)}"
    )
    return Failure(axis, requirement, reason, requirement.weaker_at(most), is_of_table=False)


def _requirement_words(requirement: Requirement, axis: SensitiveAxis) -> str:
    return f"{requirement.label} on {axis.column.name}" if axis.is_said else requirement.label


def _fails(requirement: Requirement, axis: SensitiveAxis) -> str:
    return f"{_requirement_words(requirement, axis)} fails even in the whole table as one class"


def fails_for_those_who_know(
    requirement: Requirement, axis: SensitiveAxis, known: Sequence[SensitiveAxis], verdict: Verdict
) -> str:
    """The message that the whole table violates the requirement for those who know the other sensitive attributes."""
    names = ", ".join(other.column.name for other in known)
    reached = "nothing" if verdict.worst is None else f"{verdict.worst:.9g}"
    return (
        f"{_fails(requirement, axis)}: of {verdict.classes:,} classes for those who know {names}"
        f" {verdict.violating_classes:,} violate it, the worst reaches {reached}"
    )


def cannot_promise(algorithm: str, requirement: Requirement, why: str, hint: str = "") -> Problem:
    """The message that no classes of the algorithm are sure to meet the requirement, whatever the data."""
    return Problem("require", f"{algorithm} cannot promise {requirement.label}: {why}", hint)
