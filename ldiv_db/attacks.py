"""`ldiv attack`: what attackers gain from any published table, and what its requirements promise at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from ldiv_db.catalog import columns_of
from ldiv_db.categorise import Groups
from ldiv_db.disclosure import Attack, disclosures, make_target
from ldiv_db.encoded import Renamed
from ldiv_db.engine import Engine
from ldiv_db.errors import PolicyError, Problem, nearest
from ldiv_db.labels import LabelAxis, Matches, known_axes, matched, read_ladders
from ldiv_db.linking import Exposure, linking, marketer, population_attacks, prosecutor
from ldiv_db.policy import Policy
from ldiv_db.promises import promise_of_all
from ldiv_db.published import CLASS_ID, columns_as
from ldiv_db.requirements import RequirementSpec
from ldiv_db.templates import FileRelation, Identifier, Relation

Source = Relation | FileRelation


@dataclass(frozen=True)
class Columns:
    """The columns of a published table that attackers see.

    `identifying` make a class; `quasi_identifiers` are those of them that people may be known by, each with its
    label's column or its two bounds, and how it covers values (by a policy only).
    """

    identifying: Sequence[str]
    sensitive: Sequence[str]
    quasi_identifiers: Sequence[LabelAxis] = ()


@dataclass(frozen=True)
class Attackers:
    """What attackers know and what they look for.

    `excluded` is how many values of a class they can exclude; a risk of re-identification above `threshold` is
    high; `known` and `population` hold people's quasi-identifiers.
    """

    excluded: int = 1
    threshold: Decimal = Decimal("0.2")
    known: Source | None = None
    population: Source | None = None
    show_values: bool = False

    def problems(self) -> Iterator[Problem]:
        if self.excluded < 0:
            yield Problem("m", f"takes a whole number from 0, not {self.excluded}")
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
        found = [attack.as_dict() for attack in self.attacks]
        return {"rows": self.rows, "classes": self.classes, "holds": self.holds, "attacks": found}


def columns_asked(
    engine: Engine, table: Source, quasi_identifiers: Sequence[str], sensitive: Sequence[str], class_column: str | None
) -> Columns:
    """The columns that a caller names; raises PolicyError for those that the table lacks, and if there are none."""
    names = [column.name for column in columns_of(engine, table)]
    asked = [("qi", name) for name in quasi_identifiers] + [("sensitive", name) for name in sensitive]
    asked += [("class", class_column)] if class_column else []
    problems = _missing(names, asked)
    problems += [] if quasi_identifiers or class_column else [Problem("qi", "is missing", "or give a policy")]
    problems += [] if sensitive else [Problem("sensitive", "is missing", "or give a policy")]
    if problems:
        raise PolicyError(problems)
    return Columns([*quasi_identifiers, *([class_column] if class_column else [])], sensitive)


def columns_by_policy(engine: Engine, table: Source, policy: Policy, folder: Path) -> Columns:
    """The columns of a release under a policy: a quasi-identifier is a column of its name, or its two bounds."""
    ladders = read_ladders(engine, policy.quasi_identifiers, folder)
    names = [column.name for column in columns_of(engine, table)]
    known = {name.lower() for name in names}
    found: dict[str, tuple[str, ...]] = {}
    for name in policy.quasi_identifiers:
        bounds = columns_as(name, "bounds")
        by_bounds = name.lower() not in known and all(bound.lower() in known for bound in bounds)
        found[name] = bounds if by_bounds and ladders[name].by_range else (name,)
    identifying = [column for columns in found.values() for column in columns]
    asked = [("qi", name) for name in identifying] + [("sensitive", name) for name in policy.sensitive]
    problems = _missing(names, asked)
    if problems:
        raise PolicyError(problems)
    aliases = {column: renamed.alias for column, renamed in zip(identifying, _renamed(identifying), strict=True)}
    axes = [LabelAxis(n, tuple(aliases[c] for c in columns), ladders[n]) for n, columns in found.items()]
    ids = [CLASS_ID] if policy.publishes_class_id and CLASS_ID in known else []
    return Columns([*identifying, *ids], list(policy.sensitive), axes)


def _missing(names: Sequence[str], asked: Sequence[tuple[str, str]]) -> list[Problem]:
    known = {name.lower() for name in names}
    return [
        Problem(key, f"the table has no column {name!r}", nearest(name, names))
        for key, name in asked
        if name.lower() not in known
    ]


def attack_table(
    engine: Engine,
    table: Source,
    columns: Columns,
    require: Sequence[RequirementSpec],
    categories: Mapping[str, Groups],
    attackers: Attackers,
) -> Attacks:
    """All attacks on a published table, with the bounds that `require` promises.

    Raises PolicyError for requirements that are none, values of no category, and labels that cannot be read.
    """
    _refuse(columns, require, attackers)
    promise = promise_of_all(spec.resolve(None) for spec in require)
    renamed = _renamed(columns.identifying)
    classes = engine.materialise("classes", "attack/list_classes", published=table, class_columns=renamed)
    found: list[Attack] = []
    bounds: list[Fraction] = []
    with ExitStack() as stack:
        known = stack.enter_context(_matches(engine, classes, columns, attackers.known, "known"))
        for name in columns.sensitive:
            with _histogram(engine, table, classes, renamed, name) as histogram:
                target = make_target(engine, name, histogram, promise, categories.get(name))
                found += disclosures(target, categories.get(name), attackers.excluded)
                found += [linking(target, known, attackers.show_values)] if known else []
                bounds += [target.bounds.record] if target.bounds.record is not None else []
                rows = target.rows
                engine.drop(target.priors)
    exposure = Exposure(engine, classes, attackers.threshold, min(bounds, default=None))
    found += _recognised(exposure, columns, attackers)
    count = engine.scalar("input/count_rows", rows=classes)
    engine.drop(classes)
    return Attacks(rows, count, tuple(found))


def _recognised(exposure: Exposure, columns: Columns, attackers: Attackers) -> list[Attack]:
    """The attacks that look for people's rows."""
    with _matches(exposure.engine, exposure.classes, columns, attackers.population, "population") as population:
        others = population_attacks(exposure, population) if population else [marketer(exposure)]
    return [*prosecutor(exposure), *others]


@contextmanager
def _matches(
    engine: Engine, classes: Relation, columns: Columns, people: Source | None, key: str
) -> Iterator[Matches | None]:
    """The classes that cover the people of a table, if there is one."""
    if people is None:
        yield None
        return
    axes = known_axes(columns.quasi_identifiers, columns_of(engine, people), key)
    with matched(engine, classes, axes, _as_text(engine, people)) as found:
        yield found


def _as_text(engine: Engine, people: Source) -> Source:
    """A CSV file read as text, so that no zero in front of a code is lost."""
    if isinstance(people, FileRelation) and Path(people.path).suffix.lower() == ".csv":
        return FileRelation(people.reader, people.path, tuple(column.name for column in columns_of(engine, people)))
    return people


@contextmanager
def _histogram(
    engine: Engine, table: Source, classes: Relation, renamed: Sequence[Renamed], sensitive: str
) -> Iterator[Relation]:
    """The TEMP table (class_no, value, rows, class_rows): one aggregation that all attacks share."""
    histogram = engine.materialise(
        "histogram",
        "attack/count_values",
        published=table,
        classes=classes,
        class_columns=renamed,
        sensitive=Identifier(sensitive),
    )
    yield histogram
    engine.drop(histogram)


def _renamed(names: Sequence[str]) -> list[Renamed]:
    return [Renamed(Identifier(name), Identifier(f"c{i}")) for i, name in enumerate(names, 1)]


def _refuse(columns: Columns, require: Sequence[RequirementSpec], attackers: Attackers) -> None:
    """Raise PolicyError with everything that is wrong with the question."""
    problems = list(attackers.problems())
    for spec in require:
        problems += spec.problems("require")
        if spec.argument == "auto":
            problems.append(Problem("require", f"{spec.name}: auto needs a source, say the number"))
    for key, people in (("known", attackers.known), ("population", attackers.population)):
        if people is not None and not columns.quasi_identifiers:
            problems.append(Problem(key, "needs a policy, which says what labels stand for", "give --policy"))
    if problems:
        raise PolicyError(problems)
