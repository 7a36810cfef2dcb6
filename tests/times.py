"""How many random cases are drawn: half of what a test names; with LDIV_TEST_TIMES=10 in the environment ten times as
many, for a long check, and with LDIV_TEST_FEW=1 fewer, for a second pass with another version of the database."""

import os

TIMES = int(os.environ.get("LDIV_TEST_TIMES", "1"))
FEW = bool(os.environ.get("LDIV_TEST_FEW"))


def seeds(count: int, first: int = 0) -> range:
    """Half of so many seeds, or a multiple of that, or a third."""
    return range(first, first + often(count))


def often(count: int) -> int:
    """Half of so many cases, at least one, or a multiple of that, or a third."""
    return max(1, count // 3) if FEW else (count + 1) // 2 * TIMES
