"""What counts alone tell: why classes of so many different values are impossible, and which are not."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from ldiv_db.recoding.encoded import Encoded, SensitiveAxis
from ldiv_db.requirements.parameters import plain_decimal, rounded


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


def too_many_left_out(rows: int, total: int, most: int, share: Decimal) -> str:
    """That more rows would be left out than the policy's budget."""
    allowed = f"suppression: {plain_decimal(share)} allows {most:,}"
    return f"{rows:,} of {total:,} rows ({_rounded_up(rows * 100, total, 2)} %) would be left out; {allowed}"


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
    return f"{what} in {distribution.rows:,} rows{_one_more(encoded)}. {_largest(encoded)}"


def too_frequent(encoded: Encoded, key: SensitiveAxis, l: int) -> str:  # noqa: E741
    """That a key has a value in more than 1/l of the rows, and what can be met by an algorithm that minds it."""
    what = _what(encoded, key, "the most frequent sensitive value", "the individual with the most rows")
    rows, most = key.distribution.rows, max(key.distribution.counts, default=0)
    said = f"{what} holds {most:,} of {rows:,} rows, more than 1/{l}{_one_more(encoded)}"
    return f"l = {l} is infeasible for this algorithm: {said}. {_largest(encoded)}"


def _largest(encoded: Encoded) -> str:
    """The largest l by counts alone, which binds algorithms whose rows of a class differ; others may reach more."""
    largest = min(key.distribution.largest_l for key in encoded.keys)
    return (
        f"The largest l of this algorithm is {largest}" if largest > 1 else "This algorithm reaches no whole l above 1"
    )


def no_cut(over: Mapping[int, int], thetas: Mapping[int, Fraction], rows: int, names: Mapping[int, str]) -> str:
    """That values (rows by code) exceed their thresholds in the whole table, and so under every cut."""
    return (
        f"no cut is allowed without suppression: {len(over):,} sensitive values exceed their thresholds in the"
        f" whole table. {_nearest_thresholds(over, thetas, rows, names)}"
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


def _rounded_up(count: int, rows: int, digits: int = 6) -> str:
    """The share with so many digits, no less than it is."""
    return f"{-(-count * 10**digits // rows) / 10**digits:.{digits}f}"
