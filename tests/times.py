"""How many random cases are drawn, and how many of the tests that are marked `heavy`, and of the cases of a test.

A pass by default draws a third of the seeds that a test names, a tenth of the heavy tests, and a quarter of the cases
of a test with parameters, one at least: what finds rare defects is left to long checks. LDIV_TEST_TURN=7 in the
environment draws others; ten turns in a row draw all.
With LDIV_TEST_TIMES=1 half of the cases are drawn and all heavy tests, with LDIV_TEST_TIMES=10 ten times as many cases.
"""

import os

#: Whether this is no long check.
FEW = not os.environ.get("LDIV_TEST_TIMES")
TIMES = int(os.environ.get("LDIV_TEST_TIMES") or 1)
TURN = int(os.environ.get("LDIV_TEST_TURN") or 0)
#: Of so many heavy tests one is run in a pass by default, and of so many cases of a test.
HEAVY, CASES = 10, 4
#: Of so many heavy tests of a share (LDIV_TEST_SHARE) one is run.
HEAVY_OF_SHARE = 6


def seeds(count: int, first: int = 0) -> range:
    """A third of so many seeds, in a long check half or a multiple of that."""
    return range(first, first + often(count))


def often(count: int) -> int:
    """A third of so many cases, at least one; in a long check half or a multiple of that."""
    return max(1, count // 3) if FEW else (count + 1) // 2 * TIMES
