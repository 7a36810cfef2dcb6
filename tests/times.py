"""How many random cases are drawn: with LDIV_TEST_TIMES=10 in the environment ten times as many, for a long check;
with LDIV_TEST_FEW=1 a third of most, for a second pass with another version of the database."""

import os

TIMES = int(os.environ.get("LDIV_TEST_TIMES", "1"))
FEW = bool(os.environ.get("LDIV_TEST_FEW"))


def seeds(count: int, first: int = 0) -> range:
    """So many seeds, or their multiple, or a part of them."""
    return range(first, first + often(count))


def often(count: int) -> int:
    """So many cases, or their multiple, or a part of them."""
    return max(1, count // 3) if FEW else count * TIMES
