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

    In the texts `{algorithm}` is the policy's, and `{series}` that of a decomposition or the words for other series.
    """

    when: When
    key: str
    message: str
    remedy: str = ""

    def problems(self, policy: Policy) -> Iterator[Problem]:
        """The problem, once for each case."""
        cases, name = self.when(policy), policy.algorithm.name
        said = {"algorithm": name, "series": name if policy.decomposes else "releases over time"}
        for case in [()] * cases if isinstance(cases, bool) else cases:
            yield Problem(*(text.format(*case, **said) for text in self[1:]))


def within(scope: Callable[[Policy], bool], beginning: str, *rules: tuple[Any, ...]) -> Iterator[PolicyRule]:
    """The rules where `scope` holds, each message after the same beginning."""
    for when, key, message, *remedy in rules:
        yield PolicyRule(_both(scope, when), key, beginning + message, *remedy)


def _both(scope: Callable[[Policy], bool], when: When) -> When:
    return lambda policy: scope(policy) and when(policy)
