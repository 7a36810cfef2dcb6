"""How many random cases are drawn: with LDIV_TEST_TIMES=10 in the environment ten times as many, for a long check."""

import os

TIMES = int(os.environ.get("LDIV_TEST_TIMES", "1"))


def seeds(count: int, first: int = 0) -> range:
    """So many seeds, or their multiple."""
    return range(first, first + count * TIMES)
