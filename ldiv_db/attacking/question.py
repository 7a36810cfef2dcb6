"""Requests for attacks: the columns that attackers see, what else they know, and the people of a population."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path

from ldiv_db.attacking.counting import require_networkx
from ldiv_db.attacking.covering import KnownAxis, LabelAxis, as_text, known_axes
from ldiv_db.attacking.matching import BUDGET, Matches, matched
from ldiv_db.attacking.trials import PeopleTrial
from ldiv_db.auditing.audit import Counted, CountPeople
from ldiv_db.auditing.check import CheckRequest, missing_columns, request_problems
from ldiv_db.auditing.subject import Pair
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.policy.document import AlgorithmSpec, Policy
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.quasi_identifiers import infer, read_hierarchies
from ldiv_db.policy.release_columns import published_columns
from ldiv_db.policy.resolve import Described
from ldiv_db.policy.sources import open_source
from ldiv_db.requirements import Requirement, RequirementSpec
from ldiv_db.requirements.parameters import LARGEST

Table = Relation | FileRelation


@dataclass(frozen=True)
class Columns:
    """The columns of a published table that attackers see.

    `labels` and `ids` (of classes) make a class; `quasi_identifiers` are those of the labels that people may be known
    by, each with its label's column or its two bounds, and how it covers values (by a policy only). `sensitive` maps
    each sensitive column to what is known of it; taxonomies lie in `folder`. Of a `pair`, an anatomised table, classes
    are the groups, and labels the quasi-identifiers as they are. `algorithm` is the policy's.
    """

    labels: Sequence[str]
    ids: Sequence[str]
    sensitive: Mapping[str, Sensitive]
    quasi_identifiers: Sequence[LabelAxis] = ()
    folder: Path = field(default_factory=Path)
    pair: Pair | None = None
    algorithm: AlgorithmSpec = field(default_factory=AlgorithmSpec)


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
    threshold: Decimal = Decimal("0.2")
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
    show_values: bool = False
    budget: int = BUDGET

    def people(self) -> dict[str, Table]:
        """The tables of people that are given, by the name of their option."""
        given = {"known": self.known, "population": self.population, "definetti": self.definetti}
        return {key: people for key, people in given.items() if people is not None}

    def reading(self, read: Callable[[Table], Table]) -> Attackers:
        """The same, with what `read` makes of the tables that have people's true values."""
        trial = self.trial and replace(
            self.trial, targets=read(self.trial.targets), control=self.trial.control and read(self.trial.control)
        )
        return replace(self, definetti=self.definetti and read(self.definetti), trial=trial)

    def problems(self) -> Iterator[Problem]:
        if not 0 <= self.excluded <= LARGEST:
            yield Problem("m", f"takes a whole number from 0 to {LARGEST:,}")
        finite = self.threshold.is_finite()
        if not finite or not 0 <= self.threshold <= 1 or self.threshold != round(self.threshold, 9):
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
    if problems:
        raise PolicyError(problems)
    return Columns(quasi_identifiers, ids, sensitive, folder=folder, pair=pair)


def columns_by_policy(engine: Engine, table: Table, policy: Policy, folder: Path) -> Columns:
    """The columns of a release under a policy: a quasi-identifier is a column of its name, or its two bounds.

    What the policy leaves open of quasi-identifiers is inferred from its source; raises PolicyError if there is none.
    """
    policy = _settled(engine, policy, folder)
    hierarchies = read_hierarchies(engine, policy.quasi_identifiers, folder)
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
    return Columns(
        labels, policy.released.class_ids_among(names), policy.sensitive, axes, folder, algorithm=policy.algorithm
    )


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


def refuse(engine: Engine, columns: Columns, require: Sequence[RequirementSpec], attackers: Attackers) -> None:
    """Raise PolicyError with everything that is wrong with the question."""
    problems = [*attackers.problems(), *request_problems(require, columns.sensitive)]
    paired = columns.pair is not None
    if paired and attackers.population_size is not None:
        problems.append(Problem("population-size", "goes with one table: rows of a pair are published as they were"))
    problems += _without_sensitive(columns, attackers)
    knowing = {**attackers.people(), "targets": attackers.trial, "downcoding": attackers.downcoding}
    for key in (key for key, given in knowing.items() if given):
        if not columns.quasi_identifiers and not (paired and key == "definetti"):
            problems.append(Problem(key, "needs a policy, which says what labels stand for", "give --policy"))
    if attackers.definetti is not None:
        asked = [("definetti", name) for name in (*columns.sensitive, *(columns.labels if paired else ()))]
        problems += missing_columns(engine, attackers.definetti, asked, "table of people")
        if not columns.labels:
            problems.append(Problem("qi", "is missing: there is nothing to learn from"))
    problems += list(_others(engine, columns, attackers))
    if problems:
        raise PolicyError(problems)


def _without_sensitive(columns: Columns, attackers: Attackers) -> list[Problem]:
    """Problems of looking for sensitive values of people, where none is named."""
    looking = {"known": attackers.known, "definetti": attackers.definetti, "targets": attackers.trial}
    what = "looks for sensitive values, and there are none"
    return [Problem(key, what) for key, given in looking.items() if given and not columns.sensitive]


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


KEY = "require.population"


def within(counts: Counted, axes: Sequence[LabelAxis]) -> list[LabelAxis]:
    """The axes with the names that their columns have among the classes."""
    aliases = {renamed.column: renamed.alias for renamed in counts.columns}
    return [replace(axis, columns=tuple(aliases[column] for column in axis.columns)) for axis in axes]


def people_counter(axes: Sequence[LabelAxis], folder: Path) -> CountPeople:
    """Counts the people of a population, a table or a file in `folder`, that each class covers.

    It raises PolicyError for a population that is not to be had or lacks a quasi-identifier, for labels that cannot be
    read, and for classes that share people where a requirement takes none that do.
    """

    def count(engine: Engine, counts: Counted, name: str, requirements: Sequence[Requirement]) -> Relation:
        people, known = open_population(engine, name, folder, within(counts, axes))
        with matched(engine, counts.listed, known, people) as found:
            refuse_shared(engine, found, requirements)
            return engine.materialise("people", "attacking/count_people", cells=found.cells, matches=found.pairs)

    return count


def refuse_shared(engine: Engine, matches: Matches, requirements: Iterable[Requirement]) -> None:
    """Raise PolicyError if several classes cover a person and one of the requirements takes none that do."""
    labels = sorted({requirement.label for requirement in requirements if requirement.parts_people})
    if not labels:
        return

    def shared(found: str) -> Problem:
        what = f"only where classes part the people of the population, and {found} of these are in several classes"
        return Problem("require", f"{', '.join(labels)}: known {what}")

    engine.refuse_any(shared, "attacking/count_shared", cells=matches.cells, matches=matches.pairs)


def with_people(
    engine: Engine, table: Relation | FileRelation, question: CheckRequest, policy: Policy | None
) -> CheckRequest:
    """The question with who counts the people of populations, if it asks for any and there is a policy.

    Raises PolicyError for a policy by which labels cannot be read, and for other quasi-identifiers than it has.
    """
    if policy is None or not any(spec.kind.counts_people for spec in question.require):
        return question
    columns = columns_by_policy(engine, table, policy, question.folder)
    asked, labels = ({name.lower() for name in names} for names in (question.quasi_identifiers, columns.labels))
    if asked != labels:
        what = "are not the policy's quasi-identifiers, by which people of a population are counted"
        raise PolicyError([Problem("qi", f"{', '.join(question.quasi_identifiers)} {what}", ", ".join(columns.labels))])
    people = people_counter(columns.quasi_identifiers, question.folder)
    return replace(question, quasi_identifiers=columns.labels, people=people)


def open_population(
    engine: Engine, name: str, folder: Path, axes: Sequence[LabelAxis]
) -> tuple[Relation | FileRelation, list[KnownAxis]]:
    """The table of a population, and the quasi-identifiers by which its people are known: all of them."""
    people = resolve_source(engine, name, folder, KEY)
    columns = columns_of(engine, people)
    names = {column.name.lower() for column in columns}
    lacking = [axis.name for axis in axes if axis.name.lower() not in names]
    if lacking:
        raise PolicyError([Problem(KEY, f"{name} has no column {', '.join(lacking)}", "make a view that has it")])
    return as_text(engine, people), known_axes(axes, columns, KEY)


def label_axes(described: Described) -> list[LabelAxis]:
    """The quasi-identifiers of a release under a policy, each with the columns that it is published in."""
    forms = described.released.forms
    return [
        LabelAxis(
            qi.name,
            tuple(map(Identifier, described.released.columns_of(qi.name))),
            qi.hierarchy,
            forms[qi.name] == "set",
        )
        for qi in described.source.quasi_identifiers
    ]
