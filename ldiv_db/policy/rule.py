"""One rule on what a policy must say, or may not say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ldiv_db.database.errors import Problem
from ldiv_db.policy.document import Policy

#: Texts for the braces of a rule's words, which distinguish the cases in which it is broken.
Args = tuple[Any, ...]
When = Callable[[Policy], bool | Iterable[Args]]


class PolicyRule(NamedTuple):
    """A rule that a policy breaks when `when` is true, or in each of the cases that `when` lists, and its problem.

    In the texts `{algorithm}` is the policy's.
    """

    when: When
    key: str
    message: str
    remedy: str = ""

    def problems(self, policy: Policy, **said: str) -> Iterator[Problem]:
        """The problem, once for each case; `said` are further words for the texts."""
        cases, words = self.when(policy), {"algorithm": policy.algorithm.name, **said}
        for case in [()] * cases if isinstance(cases, bool) else cases:
            yield Problem(*(text.format(*case, **words) for text in self[1:]))
