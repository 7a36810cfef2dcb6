"""How many random cases are drawn: half of what a test names.

With LDIV_TEST_TIMES=10 in the environment ten times as many, for a long check. With LDIV_TEST_FEW=7, for a pass that
is to be short, a third of them, and of the tests that are marked `heavy` a quarter; the number is the pass's turn: the
next one runs another quarter, four in a row run all.
"""

import os

TIMES = int(os.environ.get("LDIV_TEST_TIMES", "1"))
FEW = bool(os.environ.get("LDIV_TEST_FEW"))
TURN = int(os.environ.get("LDIV_TEST_FEW") or 0)
#: Of so many heavy tests one is run in a short pass.
HEAVY = 4


def seeds(count: int, first: int = 0) -> range:
    """Half of so many seeds, or a multiple of that, or a third."""
    return range(first, first + often(count))


def often(count: int) -> int:
    """Half of so many cases, at least one, or a multiple of that, or a third."""
    return max(1, count // 3) if FEW else (count + 1) // 2 * TIMES
