"""`ldiv attack`: what attackers gain from any published table, and what its requirements promise at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from ldiv_db.attacking.covering import LabelAxis, Matches, known_axes, matched
from ldiv_db.attacking.disclosure import Attack, disclosures, make_target
from ldiv_db.attacking.form import look_at_form
from ldiv_db.attacking.linking import Exposure, linking, marketer, population_attacks, prosecutor
from ldiv_db.auditing.audit import Counted, Subject, counted
from ldiv_db.auditing.check import missing_columns, question_problems
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import PolicyError, Problem
from ldiv_db.database.templates import FileRelation, Relation
from ldiv_db.policy.attributes import read_attributes
from ldiv_db.policy.document import Policy
from ldiv_db.policy.hierarchies import read_hierarchies
from ldiv_db.policy.parts import Sensitive
from ldiv_db.policy.release_columns import published_columns
from ldiv_db.policy.required import resolve_all
from ldiv_db.requirements import Attribute, Requirement, RequirementSpec
from ldiv_db.requirements.guarantees import together
from ldiv_db.requirements.parameters import LARGEST

Table = Relation | FileRelation


@dataclass(frozen=True)
class Columns:
    """The columns of a published table that attackers see.

    `labels` and `ids` (of classes) make a class; `quasi_identifiers` are those of the labels that people may be known
    by, each with its label's column or its two bounds, and how it covers values (by a policy only). `sensitive` maps
    each sensitive column to what is known of it; taxonomies lie in `folder`.
    """

    labels: Sequence[str]
    ids: Sequence[str]
    sensitive: Mapping[str, Sensitive]
    quasi_identifiers: Sequence[LabelAxis] = ()
    folder: Path = field(default_factory=Path)


@dataclass(frozen=True)
class Attackers:
    """What attackers know and what they look for.

    `excluded` is how many values of a class they can exclude; a risk of re-identification above `threshold` is
    high; `known` and `population` hold people's quasi-identifiers.
    """

    excluded: int = 1
    threshold: Decimal = Decimal("0.2")
    known: Table | None = None
    population: Table | None = None
    show_values: bool = False

    def problems(self) -> Iterator[Problem]:
        if not 0 <= self.excluded <= LARGEST:
            yield Problem("m", f"takes a whole number from 0 to {LARGEST:,}")
        finite = self.threshold.is_finite()
        if not finite or not 0 <= self.threshold <= 1 or self.threshold != round(self.threshold, 9):
            yield Problem("threshold", f"takes a number from 0 to 1 with at most 9 digits, not {self.threshold}")


@dataclass(frozen=True)
class Attacks:
    """All attacks on one table."""

    rows: int
    classes: int
    attacks: tuple[Attack, ...] = field(default=())

    @property
    def holds(self) -> bool:
        """Whether every promise is kept."""
        return all(attack.holds for attack in self.attacks)

    def as_dict(self) -> dict[str, Any]:
        attacks = [attack.as_dict() for attack in self.attacks]
        return {"rows": self.rows, "classes": self.classes, "holds": self.holds, "attacks": attacks}


def columns_asked(
    engine: Engine,
    table: Table,
    quasi_identifiers: Sequence[str],
    sensitive: Mapping[str, Sensitive],
    class_column: str | None,
    folder: Path,
) -> Columns:
    """The columns that a caller names; raises PolicyError for those that the table lacks, and if there are none."""
    ids = [class_column] if class_column else []
    asked = [("qi", name) for name in quasi_identifiers] + [("sensitive", name) for name in sensitive]
    problems = missing_columns(engine, table, asked + [("class", name) for name in ids], "table")
    problems += [] if quasi_identifiers or ids else [Problem("qi", "is missing", "or give a policy")]
    problems += [] if sensitive else [Problem("sensitive", "is missing", "or give a policy")]
    if problems:
        raise PolicyError(problems)
    return Columns(quasi_identifiers, ids, sensitive, folder=folder)


def columns_by_policy(engine: Engine, table: Table, policy: Policy, folder: Path) -> Columns:
    """The columns of a release under a policy: a quasi-identifier is a column of its name, or its two bounds."""
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
    return Columns(labels, policy.released.class_ids_among(names), policy.sensitive, axes, folder)


def attack_table(
    engine: Engine, table: Table, columns: Columns, require: Sequence[RequirementSpec], attackers: Attackers
) -> Attacks:
    """All attacks on a published table, with the bounds that `require` promises.

    Raises PolicyError for requirements that are none, values of no category, and labels that cannot be read.
    """
    _refuse(columns, require, attackers)
    attributes = read_attributes(engine, columns.sensitive, columns_of(engine, table), columns.folder)
    wanted = resolve_all(engine, require, attributes)
    subject = Subject(table, columns.labels, columns.ids)
    with ExitStack() as stack:
        counts = {name: stack.enter_context(counted(engine, subject, name)) for name in attributes}
        return _attack_counted(engine, columns, attributes, counts, wanted, attackers)


def _attack_counted(
    engine: Engine,
    columns: Columns,
    attributes: Mapping[str, Attribute],
    counts: Mapping[str, Counted],
    wanted: Mapping[str, Sequence[Requirement]],
    attackers: Attackers,
) -> Attacks:
    """All attacks on a table that was counted for each sensitive attribute: its classes are the same for all."""
    first = next(iter(counts.values()))
    axes = _within(first, columns.quasi_identifiers)
    attacks: list[Attack] = []
    bounds: list[Fraction] = []
    with _matches(engine, first.listed, axes, attackers.known, "known") as known:
        for name, attribute in attributes.items():
            target = make_target(
                engine, attribute, counts[name].classes, together(required.promise() for required in wanted[name])
            )
            attacks += disclosures(target, attackers.excluded)
            attacks += [linking(target, known, attackers.show_values)] if known else []
            bounds += [target.bounds.record] if target.bounds.record is not None else []
            engine.drop(target.priors)
    exposure = Exposure(engine, first.listed, attackers.threshold, min(bounds, default=None))
    attacks += _recognised(exposure, axes, attackers)
    attacks.append(look_at_form(engine, first, list(attributes)))
    return Attacks(first.rows, engine.count(first.listed), tuple(attacks))


def _within(counts: Counted, axes: Sequence[LabelAxis]) -> list[LabelAxis]:
    """The axes with the names that their columns have among the classes."""
    aliases = {renamed.column: renamed.alias for renamed in counts.columns}
    return [replace(axis, columns=tuple(aliases[column] for column in axis.columns)) for axis in axes]


def _recognised(exposure: Exposure, axes: Sequence[LabelAxis], attackers: Attackers) -> list[Attack]:
    """The attacks that look for people's rows."""
    with _matches(exposure.engine, exposure.classes, axes, attackers.population, "population") as population:
        others = population_attacks(exposure, population) if population else [marketer(exposure)]
    return [*prosecutor(exposure), *others]


@contextmanager
def _matches(
    engine: Engine, classes: Relation, axes: Sequence[LabelAxis], people: Table | None, key: str
) -> Iterator[Matches | None]:
    """The classes that cover the people of a table, if there is one."""
    if people is None:
        yield None
        return
    known = known_axes(axes, columns_of(engine, people), key)
    with matched(engine, classes, known, _as_text(engine, people)) as matches:
        yield matches


def _as_text(engine: Engine, people: Table) -> Table:
    """A CSV file read as text, so that no zero in front of a code is lost."""
    if isinstance(people, FileRelation) and Path(people.path).suffix.lower() == ".csv":
        return FileRelation(people.reader, people.path, tuple(column.name for column in columns_of(engine, people)))
    return people


def _refuse(columns: Columns, require: Sequence[RequirementSpec], attackers: Attackers) -> None:
    """Raise PolicyError with everything that is wrong with the question."""
    problems = [*attackers.problems(), *question_problems(require, columns.sensitive)]
    for key, people in (("known", attackers.known), ("population", attackers.population)):
        if people is not None and not columns.quasi_identifiers:
            problems.append(Problem(key, "needs a policy, which says what labels stand for", "give --policy"))
    if problems:
        raise PolicyError(problems)
