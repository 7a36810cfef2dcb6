"""What random tests draw from, by Hypothesis, which shrinks what fails.

By default a test draws the same few cases in each pass, whatever else of the code changes. `--hypothesis-profile=whole`
draws ten times as many, also the same each time; `search` draws a thousand times as many, others each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

#: How many times as many cases as by default.
TIMES = {"default": 1, "whole": 10, "search": 1_000}
#: A `random.Random` of which Hypothesis chooses, and shrinks, what it draws: for tables that are made by code.
draws = st.randoms(use_true_random=False)
#: The seed of a run, or of draws of thousands of numbers, which Hypothesis would choose one by one.
seeds = st.integers(0, 2**31 - 1)
#: A `random.Random` by a seed: the first case is random already, so that one is enough where a case takes long.
seeded = seeds.map(random.Random)


def register_profiles() -> None:
    """Tests take connections and folders of pytest's, which all cases of one share, and databases take their time."""
    for name in TIMES:
        settings.register_profile(
            name,
            derandomize=name != "search",
            database=None,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
    settings.load_profile("default")


def search(count: int, **drawn: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    """A test that is given what each strategy draws, `count` times by default; `@example` above it adds known cases.

    The first case is the simplest that there is, so that two are the least that say something.
    """
    profile = settings.get_current_profile_name()

    def decorated(test: Any) -> Any:
        found = settings(max_examples=count * TIMES[profile])(given(**drawn)(test))
        # The seed is not that of the test's source, which a comment would change.
        return found if profile == "search" else seed(0)(found)

    return decorated


def numbers(count: int) -> range:
    """The numbers of so many cases, of which a test says something in all, as that a bound is reached: of worlds."""
    return range(count * TIMES[settings.get_current_profile_name()])


def some(cases: Iterable[Any], first: int = 1) -> list[Any]:
    """The cases of a test, tuples of several parameters: the first are of every pass, the others are `slow`."""
    params = type(pytest.param())
    listed = [
        case if isinstance(case, params) else pytest.param(*(case if isinstance(case, tuple) else [case]))
        for case in cases
    ]
    slow = [pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id) for case in listed[first:]]
    return [*listed[:first], *slow]
