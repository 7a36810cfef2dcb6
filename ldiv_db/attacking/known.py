"""What attackers know and try, as a caller names it, part by part: attacks and reports ask for the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ldiv_db.attacking.matching import BUDGET
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.requests import asked
from ldiv_db.requirements.parameters import LARGEST

#: So many targets, people of a control, and predicates are tried unless it is said; more say nothing more of a rate.
TRIES, MOST_TRIES = 2_000, 100_000


@dataclass(frozen=True, kw_only=True)
class KnownPeople:
    """The people of whom quasi-identifiers are known, and the risk above which one of them is too easily found."""

    known: Any = asked(None, "A table or file of people whose quasi-identifiers are known.")
    population: Any = asked(None, "A table or file of everybody who could be in the release, e.g. the source.")
    control: Any = asked(None)
    #: By default that of the requirement `risk`, or else of any report.
    threshold: float | str | Decimal | None = asked(
        None, "A risk above this (0 to 1) is high; by default that of the requirement `risk`, else 0.2."
    )


@dataclass(frozen=True, kw_only=True)
class AttackWork:
    """The work that attacks may take."""

    tries: int = asked(TRIES, "How many people to try attacks on.", least=1, most=MOST_TRIES)
    budget: int = asked(BUDGET, least=1, most=LARGEST)


@dataclass(frozen=True, kw_only=True)
class Narrowing:
    """The ways in which the labels of classes are narrowed."""

    downcoding: bool = asked(False, "Narrow labels, since a class has rows at both ends of each range.")
    refine: bool = asked(False, "Narrow labels of k-anonymous classes, as ARX's local recoding would have split them.")


def _two_parts(written: str | None) -> tuple[list[str], list[str]] | None:
    """The two lists of columns that an option parts by `|`."""
    if written is None:
        return None
    parts = [[name.strip() for name in part.split(",") if name.strip()] for part in written.split("|")]
    if len(parts) != 2:
        raise PolicyError([Problem("link_columns", f"takes two lists of columns, not {len(parts)}", "a,b|c,d")])
    return parts[0], parts[1]


@dataclass(frozen=True, kw_only=True)
class KnownValues:
    """The people whose true values are known, by which guesses are judged."""

    definetti: Any = asked(
        None, "Guess the sensitive values of the people in this table or file, which has the true ones."
    )
    targets: Any = asked(None, "A table or file of people in the release, with sensitive values.")
    link_columns: tuple[Sequence[str], Sequence[str]] | None = asked(
        None, "The two parts of a person's record to link, e.g. 'age,sex|zip'.", _two_parts
    )
