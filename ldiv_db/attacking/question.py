"""The question of an attack: the columns that attackers see, what they know and whom they look for.

Its options on the command line, the arguments of the Python call and what is refused are made of the one dataclass
`AttackRequest`; `Knowledge` is what it names, opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.attacking.columns import Columns, columns_asked, columns_by_policy
from ldiv_db.attacking.known import AttackWork, KnownPeople, KnownValues, Narrowing
from ldiv_db.auditing.check import (
    CheckRequest,
    NamedPair,
    NamedTable,
    asked_pair,
    check_request,
    refuse_request,
)
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.context import Listening, hearing_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.database.frames import is_frame
from ldiv_db.database.names import Identifier
from ldiv_db.database.requests import asked, number_problems
from ldiv_db.measuring.population_uniqueness import MOST_PEOPLE
from ldiv_db.policy.document import Policy
from ldiv_db.policy.parts import LARGEST_SEED
from ldiv_db.policy.quasi_identifiers import open_columns, read_columns
from ldiv_db.policy.reading import (
    GivenRequirement,
    names_of,
    parse_policy,
    read_policy,
    read_requirements,
    read_sensitive,
)
from ldiv_db.policy.sensitive import of_groups
from ldiv_db.policy.settings import Individual
from ldiv_db.policy.sources import open_given
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.parameters import LARGEST
from ldiv_db.requirements.risk import HIGH, bounded_risk

#: Another release of the same people, and the columns that its policy gives it.
OtherRelease = tuple[Table, Columns]
#: More digits than any seed has are as wrong as one more.
_DIGITS = 60


def _seed_of(written: str | None) -> int | None:
    """A seed as an option writes it; raises PolicyError if it is none."""
    if written is not None and not (written.isascii() and written.isdigit()):
        raise PolicyError([Problem("replay_seed", f"takes a whole number, not {written!r}")])
    return None if written is None else int(written[:_DIGITS])


@dataclass(frozen=True)
class Replay:
    """Options of a replay: the seed (None for that of the policy, or of the ledger), and about how many worlds.

    With `tries` the attacker lacks the seed: every world is run so often, with seeds drawn anew; the true one serves to
    find out which rows the classes of the release have.
    """

    seed: int | None = asked(None, "The seed of the release; by default that of the policy or the ledger.", _seed_of)
    tries: int = asked(
        0, "Replay without the seed: draw this many seeds for each world.", of=int | None, least=1, most=LARGEST
    )
    limit: int = asked(
        2_000, "About how many worlds (assignments of sensitive values) to try at most.", least=2, most=LARGEST
    )


@dataclass(frozen=True, kw_only=True)
class OtherReleases:
    """Other releases of the same people, by policies of theirs."""

    also: Any = asked((), "Another release that holds the known people too; may be repeated.", of=list[str] | None)
    also_policies: Sequence[Policy | Mapping[str, Any] | Path] = asked(
        (),
        "The policy of the other releases, or one for each in their order; by default --policy.",
        of=list[Path] | None,
        name="also-policy",
    )


@dataclass(frozen=True)
class AttackRequest(KnownPeople, KnownValues, Narrowing, OtherReleases, AttackWork, NamedPair, Listening, NamedTable):
    """The knowledge of attackers of a published table, the attacks that they try, and the promises of the table."""

    require: GivenRequirement | Iterable[GivenRequirement] | None = None
    _: KW_ONLY
    policy: Policy | Mapping[str, Any] | None = None
    folder: str | Path = "."
    class_column: str | None = asked(None, name="class")
    individual: str | None = asked(None, "The column that identifies the person: count people, not rows.")
    m: int = asked(1, "How many sensitive values of a class the attacker can rule out.", least=0, most=LARGEST)
    population_size: int | None = asked(None, of=int | None, least=1, most=MOST_PEOPLE)
    counting: bool = asked(False, "Work out who can be in which class if --population lists everybody.")
    seed: int = asked(0, "The seed of random draws.", least=0)
    show_values: bool = asked(False, "List known people and what is revealed about them.")
    replay: Replay | None = asked(
        None, "Replay: run the program again on other sensitive values that the release allows.", of=Replay
    )

    def promised(self, policy: Policy | None) -> list[RequirementSpec]:
        """The requirements that the table is held to: those asked for, or else those of the policy."""
        if self.require is not None:
            return read_requirements(self.require)
        return list(of_groups(policy) if policy.decomposes else policy.require) if policy else []

    def high_risk(self, policy: Policy | None) -> Decimal:
        """The risk above which one is high; raises PolicyError for what is no number."""
        promised = bounded_risk(self.promised(policy)) or HIGH
        return read_threshold(promised if self.threshold is None else self.threshold)

    def columns(self, engine: Engine, published: Table, policy: Policy | None) -> Columns:
        """The columns that attackers see, by name or by the policy; raises PolicyError for both."""
        pair = asked_pair(self, policy, partial(open_given, engine))
        folder, require = Path(self.folder), self.promised(policy)
        if policy is None:
            named = names_of(self.qi), read_sensitive(self.sensitive), require, self.class_column
            question = CheckRequest(*named, pair=pair, folder=folder, individual=self.individual)
            return columns_asked(engine, published, question)
        if policy.decomposes and not (self.qi or self.sensitive or self.class_column):
            question = check_request(policy, pair=pair, require=require, folder=folder)
            return columns_asked(engine, published, replace(question, quasi_identifiers=[*policy.quasi_identifiers]))
        if self.qi or self.sensitive or self.class_column or pair:
            raise PolicyError([Problem("policy", "already names the columns: leave this out")])
        found = replace(columns_by_policy(engine, published, policy, folder), require=require)
        if self.individual is None:
            return found
        found = found.counting(replace(found, individual=self.individual))
        refuse_request(engine, published, replace(found, require=[]))
        return found

    def opened(self, engine: Engine, policy: Policy | None) -> Knowledge:
        """What attackers know, with its tables opened; raises PolicyError."""
        people = self._people(engine, policy, ("known", "population", "definetti"))
        owned = None
        if policy is not None and policy.individual is not None and not (policy.is_aligned or policy.decomposes):
            owned = OwnedRows.of(engine, policy, policy.individual, Path(self.folder))
        if owned is not None:
            people["source"] = owned.source
        threshold = self.high_risk(policy)
        also = self._others(engine, policy)
        if self.targets is None:
            what, needing = "needs targets, people who are in the release", ("control", "link_columns")
            refuse([Problem(key, what) for key in needing if getattr(self, key) is not None])
        people |= self._people(engine, policy, ("targets", "control"))
        whose = policy.individual.column if policy and policy.individual else None
        return Knowledge(self, people, threshold, also, owned, person=whose)

    def _people(self, engine: Engine, policy: Policy | None, keys: Iterable[str]) -> dict[str, Table]:
        """The tables of people by their keys, their columns read as those of the policy's source."""
        given = {key: getattr(self, key) for key in keys}
        opened = {key: open_given(engine, one, key) for key, one in given.items() if one is not None}
        return {key: read_columns(engine, policy, table) if policy else table for key, table in opened.items()}

    def _others(self, engine: Engine, policy: Policy | None) -> list[OtherRelease]:
        """The other releases, each by its policy or all by one; raises PolicyError if they do not go together."""
        tables = [self.also] if isinstance(self.also, str) or is_frame(self.also) else self.also
        policies = self.also_policies or ([] if policy is None else [policy])
        if tables and not policies:
            raise PolicyError([Problem("also", "needs a policy, which says what labels stand for", "give --policy")])
        if len(policies) > 1 and len(policies) != len(tables):
            raise PolicyError([Problem("also-policy", f"{len(policies)} policies for {len(tables)} other releases")])
        found = []
        for number, name in enumerate(tables):
            given = policies[number if len(policies) > 1 else 0]
            folder = given.parent if isinstance(given, Path) else Path(self.folder)
            read = read_policy(given) if isinstance(given, Path) else parse_policy(given)
            table = open_given(engine, name, "also")
            found.append((table, columns_by_policy(engine, table, read, folder)))
        return found


def refuse_replay(replay: Replay, policy: Policy | None) -> None:
    """Raise PolicyError for options that are none, for a policy that cannot be replayed, and if there is none."""
    problems = []
    if replay.seed is not None and not 0 <= replay.seed < 2**127:
        problems.append(Problem("replay_seed", "takes a whole number from 0 to 2^127 - 1"))
    problems += number_problems(replay, *(["tries"] if replay.tries else []), "limit", prefix="replay_")
    if policy is None:
        refuse([*problems, Problem("replay", "needs the policy of the release", "give --policy")])
        return
    if policy.decomposes and policy.key is None:
        what = "numbers rows without a key by their values, which worlds exchange"
        problems.append(Problem("replay", what, "name a key in the policy"))
    if any(setting.set for setting in policy.sensitive.values()):
        problems.append(Problem("replay", "compares releases by single values, not sets"))
    elif any(setting.same for setting in policy.sensitive.values()):
        problems.append(Problem("replay", "compares releases as they are written, without `same`"))
    if policy.counts_people:
        problems.append(Problem("replay", "runs the policy on rows, and this one counts people"))
    if not policy.sensitive:
        problems.append(Problem("replay", "needs a sensitive attribute"))
    refuse(problems)


def read_threshold(written: float | str | Decimal) -> Decimal:
    """The threshold of a risk as a number; raises PolicyError for other texts."""
    try:
        return Decimal(str(written))
    except InvalidOperation:
        raise PolicyError([Problem("threshold", f"takes a number, not {written!r}")]) from None


# -- opened --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OwnedRows:
    """The rows of a source, and the column that says whose each is; `pseudonym` is that of the policy's release."""

    source: Table
    person: Identifier
    together: bool
    pseudonym: str | None = None

    @classmethod
    def of(cls, engine: Engine, policy: Policy, whose: Individual, folder: Path) -> OwnedRows | None:
        """The rows of a policy's source; None if these, or whose they are, cannot be read."""
        try:
            table = open_columns(engine, policy, folder)
            person = Knowledge(person=whose.column).person_among(columns_of(engine, table))
        except PolicyError:
            return None
        return cls(table, person, whose.rows == "together", policy.output.person) if person else None


@dataclass(frozen=True)
class Knowledge:
    """What a request names, opened: tables of `people` by its keys, other releases, the source's rows with their owner.

    A risk of re-identification above `threshold` is high.
    """

    asked: AttackRequest = AttackRequest()
    people: Mapping[str, Table] = field(default_factory=dict)
    threshold: Decimal = HIGH
    also: Sequence[OtherRelease] = ()
    #: The source's rows, each known to be somebody's: several rows of a person are looked for.
    owned: OwnedRows | None = None
    #: What requirements call the population, if they are about it.
    promised_population: str = ""
    #: The column that says whose a row is in tables of people who may have several.
    person: str | None = None

    def by(self, who: str) -> Knowledge:
        """The same of one of several attackers, whose attacks are told of by who that is."""
        return replace(self, asked=replace(self.asked, listener=hearing_of(who, self.asked.heard)))

    def person_among(self, columns: Iterable[Column]) -> Identifier | None:
        """The column of these that says whose a row is, if there is one."""
        wanted = (self.person or "").lower()
        return next((Identifier(column.name) for column in columns if column.name.lower() == wanted), None)

    @property
    def given(self) -> set[str]:
        """The keys of what is known, and of what is asked for."""
        asked, flags = self.asked, ("counting", "downcoding", "refine")
        more = {"population_size": asked.population_size is not None, "also": self.also, "individual": self.owned}
        more |= {key: getattr(asked, key) for key in flags}
        return {*self.people, *(key for key, given in more.items() if given)}

    def reading(self, read: Callable[[Table], Table]) -> Knowledge:
        """The same, with what `read` makes of the tables that have people's true values."""
        true = {key: read(table) for key, table in self.people.items() if key in ("definetti", "targets", "control")}
        return replace(self, people={**self.people, **true})

    def problems(self) -> Iterator[Problem]:
        """Problems of the numbers."""
        yield from number_problems(self.asked, "m")
        within = self.threshold.is_finite() and 0 <= self.threshold <= 1
        if not within or self.threshold != round(self.threshold, 9):
            yield Problem("threshold", f"takes a number from 0 to 1 with at most 9 digits, not {self.threshold}")
        yield from number_problems(self.asked, "budget")
        if "targets" in self.people:
            yield from number_problems(self.asked, "tries")
            if not 0 <= self.asked.seed <= LARGEST_SEED:
                yield Problem("seed", f"takes a whole number from 0 to {LARGEST_SEED:,}")
