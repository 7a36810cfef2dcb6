"""Attackers: what they know, what they look for, and what is wrong with that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from ldiv_db.attacking.columns import Columns, Table
from ldiv_db.attacking.matching import BUDGET
from ldiv_db.attacking.several_rows import OwnedRows
from ldiv_db.attacking.trials import PeopleTrial
from ldiv_db.auditing.check import request_problems
from ldiv_db.database.catalog import missing_columns
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.parameters import LARGEST
from ldiv_db.requirements.risk import HIGH

#: Attacks that take one value a row, beside those on targets.
_OF_ONE = ("definetti", "counting", "also")


@dataclass(frozen=True)
class OtherRelease:
    """Another release of the same people, by the columns that its policy gives it."""

    table: Table
    columns: Columns


@dataclass(frozen=True)
class Attackers:
    """The knowledge of attackers, and what they look for.

    `excluded` is how many values of a class they can exclude; a risk of re-identification above `threshold` is
    high; `known` and `population` hold people's quasi-identifiers, `definetti` those of people to be guessed, with
    their true values, by which guesses are judged; the rows are a sample of `population_size` people. The known people
    are in the tables of `also` too; with `counting` the population is everybody, of whom each is in one class at most.
    With `downcoding` labels are read backwards; a `trial` names people who are in the release, and perhaps others who
    are not. Each attack makes about as many pairs of people and classes as the `budget` says, and says what it left.
    """

    excluded: int = 1
    threshold: Decimal = HIGH
    known: Table | None = None
    population: Table | None = None
    population_size: int | None = None
    #: What requirements call the population, if they are about it.
    promised_population: str = ""
    definetti: Table | None = None
    also: Sequence[OtherRelease] = ()
    counting: bool = False
    downcoding: bool = False
    trial: PeopleTrial | None = None
    #: The source's rows, each known to be somebody's: several rows of a person are looked for.
    owned: OwnedRows | None = None
    show_values: bool = False
    budget: int = BUDGET

    def reading(self, read: Callable[[Table], Table]) -> Attackers:
        """The same, with what `read` makes of the tables that have people's true values."""
        trial = self.trial and replace(
            self.trial, targets=read(self.trial.targets), control=self.trial.control and read(self.trial.control)
        )
        return replace(self, definetti=self.definetti and read(self.definetti), trial=trial)

    def problems(self) -> Iterator[Problem]:
        if not 0 <= self.excluded <= LARGEST:
            yield Problem("m", f"takes a whole number from 0 to {LARGEST:,}")
        within = self.threshold.is_finite() and 0 <= self.threshold <= 1
        if not within or self.threshold != round(self.threshold, 9):
            yield Problem("threshold", f"takes a number from 0 to 1 with at most 9 digits, not {self.threshold}")
        if not 1 <= self.budget <= LARGEST:
            yield Problem("budget", f"takes a whole number from 1 to {LARGEST:,}")
        yield from self.trial.problems() if self.trial else ()


def read_threshold(written: float | str | Decimal) -> Decimal:
    """The threshold of a risk as a number; raises PolicyError for other texts."""
    try:
        return Decimal(str(written))
    except InvalidOperation:
        raise PolicyError([Problem("threshold", f"takes a number, not {written!r}")]) from None


def refuse_question(engine: Engine, columns: Columns, require: Sequence[RequirementSpec], attackers: Attackers) -> None:
    """Raise PolicyError with everything that is wrong with the question."""
    problems = [*attackers.problems(), *request_problems(require, columns.sensitive)]
    paired = columns.pair is not None
    if paired and attackers.population_size is not None:
        problems.append(Problem("population-size", "goes with one table: a pair publishes values as they are"))
    people = {"known": attackers.known, "population": attackers.population, "definetti": attackers.definetti}
    looking = [key for key, given in {**people, "targets": attackers.trial}.items() if given]
    what = "needs a sensitive attribute"
    problems += [Problem(key, what) for key in looking if key != "population" and not columns.sensitive]
    for key in [*looking, *(["downcoding"] if attackers.downcoding else [])]:
        if not columns.quasi_identifiers and not (paired and key == "definetti"):
            problems.append(Problem(key, "needs a policy, which says what labels stand for", "give --policy"))
    if attackers.definetti is not None:
        asked = [("definetti", name) for name in (*columns.sensitive, *(columns.labels if paired else ()))]
        problems += missing_columns(engine, attackers.definetti, asked, "table of people")
        if not columns.labels:
            problems.append(Problem("qi", "is missing: the attack has nothing to learn from"))
    problems += list(_others(engine, columns, attackers))
    sets = [name for name, setting in columns.sensitive.items() if setting.set]
    of_one = {key: getattr(attackers, key) for key in _OF_ONE} | {"targets": attackers.trial}
    what = f"takes one value a row, and {', '.join(sets)} has sets"
    problems += [Problem(key, what) for key, given in of_one.items() if sets and given]
    refuse(problems)


def _others(engine: Engine, columns: Columns, attackers: Attackers) -> Iterator[Problem]:
    """Problems of other releases, and of counting."""
    if attackers.also and attackers.known is None:
        yield Problem("also", "needs people who are in all releases", "give --known")
    for other in attackers.also:
        yield from missing_columns(engine, other.table, [("also", name) for name in columns.sensitive], "other release")
    if attackers.counting and attackers.population is None:
        yield Problem("counting", "needs everybody's quasi-identifiers", "give --population")
