"""Requests for attacks as callers write them: the columns that attackers see, what they know and whom they look for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

from ldiv_db.attacking.counting import require_networkx
from ldiv_db.attacking.covering import LabelAxis
from ldiv_db.attacking.matching import BUDGET, people_counter
from ldiv_db.attacking.replay import Replay
from ldiv_db.attacking.several_rows import OwnedRows, owned_rows
from ldiv_db.attacking.trials import TRIES, PeopleTrial
from ldiv_db.auditing.check import CheckRequest, request_problems
from ldiv_db.auditing.subject import Pair, pair_of
from ldiv_db.database.catalog import columns_of, missing_columns
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem, refuse
from ldiv_db.database.frames import is_frame
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.policy.document import AlgorithmSpec, Policy
from ldiv_db.policy.parts import Problems, Sensitive
from ldiv_db.policy.quasi_identifiers import collect_hierarchies, infer
from ldiv_db.policy.reading import (
    GivenRequirement,
    names_of,
    parse_policy,
    read_policy,
    read_requirements,
    read_sensitive,
)
from ldiv_db.policy.release_columns import published_columns
from ldiv_db.policy.sources import open_given, open_source
from ldiv_db.requirements import RequirementSpec
from ldiv_db.requirements.parameters import LARGEST
from ldiv_db.requirements.risk import HIGH, bounded_risk

Table = Relation | FileRelation


@dataclass(frozen=True)
class Columns:
    """The columns of a published table that attackers see.

    `labels` and `ids` (of classes) make a class; `quasi_identifiers` are those of the labels that people may be known
    by, each with its label's column or its two bounds, and how it covers values (by a policy only). `sensitive` maps
    each sensitive column to what is known of it; taxonomies lie in `folder`. Of a `pair`, an anatomised table, classes
    are the groups, and labels the quasi-identifiers as they are. `algorithm` is the policy's; where requirements are
    `on_people` a class may have several rows of one.
    """

    labels: Sequence[str]
    ids: Sequence[str]
    sensitive: Mapping[str, Sensitive]
    quasi_identifiers: Sequence[LabelAxis] = ()
    folder: Path = field(default_factory=Path)
    pair: Pair | None = None
    algorithm: AlgorithmSpec = field(default_factory=AlgorithmSpec)
    on_people: bool = False


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


def columns_asked(
    engine: Engine,
    table: Table,
    quasi_identifiers: Sequence[str],
    sensitive: Mapping[str, Sensitive],
    class_column: str | None,
    folder: Path,
    pair: Pair | None = None,
) -> Columns:
    """The columns that a caller names; raises PolicyError for those that the table lacks, and if there are none."""
    ids = [class_column] if class_column else []
    asked, classes = [("qi", name) for name in quasi_identifiers], [("class", name) for name in ids]
    secrets = [("sensitive", name) for name in sensitive]
    if pair is None:
        problems = missing_columns(engine, table, [*asked, *secrets, *classes], "table")
        problems += [] if quasi_identifiers or ids else [Problem("qi", "is missing", "or give a policy")]
    else:
        group = ("group", pair.group)
        secrets += [group, *([("count", pair.count)] if pair.count else [])]
        problems = missing_columns(engine, table, [*asked, group, *classes], "table")
        problems += missing_columns(engine, pair.table, secrets, "sensitive table")
        problems += [Problem("class", "does not go with --group: the classes of a pair are its groups") for _ in ids]
    problems += [Problem("sensitive", "is missing: a pair is joined to get at it")] if pair and not sensitive else []
    refuse(problems)
    return Columns(quasi_identifiers, ids, sensitive, folder=folder, pair=pair)


def columns_by_policy(engine: Engine, table: Table, policy: Policy, folder: Path) -> Columns:
    """The columns of a release under a policy: a quasi-identifier is a column of its name, or its two bounds.

    What the policy leaves open of quasi-identifiers is inferred from its source; raises PolicyError if there is none.
    """
    policy = _settled(engine, policy, folder)
    problems = Problems()
    hierarchies = collect_hierarchies(engine, policy.quasi_identifiers, folder, problems)
    problems.refuse()
    names = [column.name for column in columns_of(engine, table)]
    cited = published_columns(policy.released, names, {})[: len(hierarchies)]
    sets = {name for name, form in policy.released.forms.items() if form == "set"}
    axes = [
        LabelAxis(name, (column.column, *([column.high] if column.high else [])), hierarchies[name], name in sets)
        for name, column in zip(policy.quasi_identifiers, cited, strict=True)
    ]
    trees = [axis.name for axis in axes if len(axis.columns) > 1 and not axis.hierarchy.by_range]
    if trees:
        what = "is published as two bounds, and its taxonomy is of labels"
        raise PolicyError([Problem(f"quasi_identifiers.{name}", what) for name in trees])
    labels = [column.name for axis in axes for column in axis.columns]
    ids = policy.released.class_ids_among(names)
    found = Columns(labels, ids, policy.sensitive, axes, folder, algorithm=policy.algorithm)
    return replace(found, on_people=policy.counts_people)


def _settled(engine: Engine, policy: Policy, folder: Path) -> Policy:
    """The policy with how its quasi-identifiers generalise, inferred from the source where it does not say it."""
    names = [name for name, qi in policy.quasi_identifiers.items() if qi.is_open]
    if policy.decomposes or not names:
        return policy
    try:
        source = open_source(engine, policy.source, folder)
    except PolicyError as error:
        what = f"how {', '.join(names)} generalise is inferred from the source"
        raise PolicyError(
            [*error.problems, Problem("quasi_identifiers", what, "say it in the policy where there is no source")]
        ) from error
    return infer(engine, policy, source, columns_of(engine, source))[0]


def refuse_question(engine: Engine, columns: Columns, require: Sequence[RequirementSpec], attackers: Attackers) -> None:
    """Raise PolicyError with everything that is wrong with the question."""
    problems = [*attackers.problems(), *request_problems(require, columns.sensitive)]
    paired = columns.pair is not None
    if paired and attackers.population_size is not None:
        problems.append(Problem("population-size", "goes with one table: rows of a pair are published as they were"))
    people = {"known": attackers.known, "population": attackers.population, "definetti": attackers.definetti}
    looking = [key for key, given in {**people, "targets": attackers.trial}.items() if given]
    what = "looks for sensitive values, and there are none"
    problems += [Problem(key, what) for key in looking if key != "population" and not columns.sensitive]
    for key in [*looking, *(["downcoding"] if attackers.downcoding else [])]:
        if not columns.quasi_identifiers and not (paired and key == "definetti"):
            problems.append(Problem(key, "needs a policy, which says what labels stand for", "give --policy"))
    if attackers.definetti is not None:
        asked = [("definetti", name) for name in (*columns.sensitive, *(columns.labels if paired else ()))]
        problems += missing_columns(engine, attackers.definetti, asked, "table of people")
        if not columns.labels:
            problems.append(Problem("qi", "is missing: there is nothing to learn from"))
    problems += list(_others(engine, columns, attackers))
    refuse(problems)


def _others(engine: Engine, columns: Columns, attackers: Attackers) -> Iterator[Problem]:
    """Problems of other releases, and of counting."""
    if attackers.also and attackers.known is None:
        yield Problem("also", "needs people who are in all releases", "give --known")
    for other in attackers.also:
        yield from missing_columns(engine, other.table, [("also", name) for name in columns.sensitive], "other release")
    if attackers.counting:
        if attackers.population is None:
            yield Problem("counting", "needs everybody's quasi-identifiers", "give --population")
        require_networkx()


def with_people(
    engine: Engine, table: Relation | FileRelation, question: CheckRequest, policy: Policy | None
) -> CheckRequest:
    """The question with who counts the people of populations, if it asks for any and there is a policy.

    Raises PolicyError for a policy by which labels cannot be read, and for other quasi-identifiers than it has.
    """
    if policy is None or not any(spec.counts_people for spec in question.require):
        return question
    columns = columns_by_policy(engine, table, policy, question.folder)
    asked, labels = ({name.lower() for name in names} for names in (question.quasi_identifiers, columns.labels))
    if asked != labels:
        what = "are not the policy's quasi-identifiers, by which people of a population are counted"
        raise PolicyError([Problem("qi", f"{', '.join(question.quasi_identifiers)} {what}", ", ".join(columns.labels))])
    people = people_counter(columns.quasi_identifiers, question.folder)
    return replace(question, quasi_identifiers=columns.labels, people=people)


@dataclass(frozen=True)
class AttackRequest:
    """The knowledge of attackers of a published table, the attacks that they try, and the promises of the table."""

    table: Any = None
    qi: str | Sequence[str] = ()
    sensitive: str | Sequence[str] | Mapping[str, Any] = ()
    require: GivenRequirement | Iterable[GivenRequirement] | None = None
    _: KW_ONLY
    policy: Policy | Mapping[str, Any] | None = None
    folder: str | Path = "."
    class_column: str | None = None
    m: int = 1
    #: By default that of the requirement `risk`, or else of any report.
    threshold: float | str | Decimal | None = None
    known: Any = None
    population: Any = None
    population_size: int | None = None
    counting: bool = False
    also: Any = ()
    also_policies: Sequence[Policy | Mapping[str, Any] | Path] = ()
    definetti: Any = None
    sensitive_table: Any = None
    group: str | None = None
    count: str | None = None
    downcoding: bool = False
    targets: Any = None
    control: Any = None
    link_columns: tuple[Sequence[str], Sequence[str]] | None = None
    tries: int = TRIES
    seed: int = 0
    replay: Replay | None = None
    show_values: bool = False
    budget: int = BUDGET
    listener: Listener | None = None
    catalog: str | None = None

    def promised(self, policy: Policy | None) -> list[RequirementSpec]:
        """The requirements that the table is held to: those asked for, or else those of the policy."""
        if self.require is not None:
            return read_requirements(self.require)
        return list(policy.require) if policy else []

    def columns(self, engine: Engine, published: Relation | FileRelation, policy: Policy | None) -> Columns:
        """The columns that attackers see, by name or by the policy; raises PolicyError for both."""
        pair = pair_of(self.sensitive_table, self.group, self.count, partial(open_given, engine))
        folder = Path(self.folder)
        if policy is None:
            named = read_sensitive(self.sensitive)
            return columns_asked(engine, published, names_of(self.qi), named, self.class_column, folder, pair)
        if self.qi or self.sensitive or self.class_column or pair:
            raise PolicyError([Problem("policy", "says what the columns are, name none beside it")])
        return columns_by_policy(engine, published, policy, folder)

    def attackers(self, engine: Engine, policy: Policy | None) -> Attackers:
        """The attackers with their knowledge, the tables of people opened."""
        named = {key: getattr(self, key) for key in ("known", "population", "definetti")}
        people: dict[str, Any] = {k: open_given(engine, given, k) for k, given in named.items() if given is not None}
        if policy is not None and policy.individual is not None:
            owners = (policy.individual, policy.output.person)
            people["owned"] = owned_rows(engine, policy.source, Path(self.folder), *owners)
        return Attackers(
            self.m,
            self._high(policy),
            **people,
            also=self._others(engine, policy),
            counting=self.counting,
            population_size=self.population_size,
            downcoding=self.downcoding,
            trial=self._trial(engine),
            show_values=self.show_values,
            budget=self.budget,
        )

    def _high(self, policy: Policy | None) -> Decimal:
        """The risk of re-identification above which one is high."""
        if self.threshold is None:
            return bounded_risk(self.promised(policy)) or HIGH
        return read_threshold(self.threshold)

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
            found.append(OtherRelease(table, columns_by_policy(engine, table, read, folder)))
        return found

    def _trial(self, engine: Engine) -> PeopleTrial | None:
        """The trial on people that are named; raises PolicyError for a control or parts without targets."""
        link = self.link_columns
        if self.targets is None:
            what = "needs targets, people who are in the release"
            without = {"control": self.control, "link_columns": link}
            refuse([Problem(key, what) for key, given in without.items() if given is not None])
            return None
        parts = None if link is None else (tuple(names_of(link[0])), tuple(names_of(link[1])))
        targets = open_given(engine, self.targets, "targets")
        control = None if self.control is None else open_given(engine, self.control, "control")
        return PeopleTrial(targets, control, parts, self.tries, self.seed)

    def refuse_replay(self, policy: Policy | None) -> None:
        """Raise PolicyError for a replay that is none, or lacks a policy."""
        if self.replay is None:
            return
        problems = list(self.replay.problems())
        if policy is None:
            problems.append(Problem("replay", "needs the policy of the release", "give --policy"))
        elif any(setting.same for setting in policy.sensitive.values()):
            problems.append(Problem("replay", "compares releases as they are written, without `same`"))
        if policy is not None and policy.counts_people:
            problems.append(Problem("replay", "runs the policy on rows, and this one counts people"))
        if policy is not None and not policy.sensitive:
            problems.append(Problem("replay", "tries what sensitive values could be, and there are none"))
        refuse(problems)
