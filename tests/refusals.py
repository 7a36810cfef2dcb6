"""What is refused, by the codes of its problems: words are tested once, where they are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ldiv_db.database.errors import PolicyError, Problem


@contextmanager
def refuses(*codes: str) -> Iterator[pytest.ExceptionInfo[PolicyError]]:
    """What is done inside raises PolicyError with problems of exactly these codes."""
    with pytest.raises(PolicyError) as error:
        yield error
    assert {problem.code for problem in error.value.problems} == set(codes), str(error.value)


def codes_told(stderr: str) -> set[str]:
    """The codes of the problems that a command printed, a line each."""
    lines = [line.removeprefix("error: ") for line in stderr.splitlines() if line.startswith("error: ")]
    return {Problem(line.split(": ")[0], "").code for line in lines}
