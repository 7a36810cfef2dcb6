"""The contract of algorithms: tasks, options, traits, feasibility and plans.

Counts alone bound the most classes there can be. Rows of a class differ on every key: on each sensitive attribute, and
in the individual. So every key bounds l and the number of classes, and the one that bounds them most is the hardest.
For up to two keys the bounds are reached by some classes (rows are edges of a bipartite graph, classes are matchings of
l edges; de Werra 1971); for more they need not be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ldiv_db.algorithms.infeasible import too_many_left_out
from ldiv_db.database.errors import PolicyError, Problem, SuppressionError, nearest, refuse, what_is_wrong
from ldiv_db.database.names import Identifier, Relation
from ldiv_db.recoding.recode import Assignment
from ldiv_db.requirements import Requirement

if TYPE_CHECKING:  # of what a task is made of
    from ldiv_db.database.engine import Engine
    from ldiv_db.policy.release_columns import Form
    from ldiv_db.recoding.cross_tables import CrossTables
    from ldiv_db.recoding.encoded import Encoded, Renamed
    from ldiv_db.recoding.units import Units

#: Who sees the people of a population.
SEEING = "algorithm: auto, tds or incognito, in a run of its own"
#: Called with (done, total) units of work while an algorithm runs.
Progress = Callable[[int, int], None]
#: Called with a line on how a search stands, or with the name of a stage that begins.
Announce = Callable[[str], None]
#: Stages by name, each with its work: the cells that it looks at, or what an algorithm says.
Stages = Sequence[tuple[str, int]]


def forming(algorithm: str) -> str:
    """The stage in which an algorithm makes classes."""
    return f"forming classes by {algorithm}"


class Options(BaseModel):
    """The options of an algorithm, as written in the policy beside its name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Given = TypeVar("Given", bound=BaseModel)


def read_options(name: str, options_type: type[Given], given: Mapping[str, Any]) -> Given:
    """The options of the algorithm of that name; raises PolicyError for what it does not have or take."""

    def problem(item: Any) -> Problem:
        key = ".".join(["algorithm", *map(str, item["loc"])])
        if item["type"] == "extra_forbidden":
            known = [field.alias or name for name, field in options_type.model_fields.items()]
            return Problem(key, f"{name} has no such option", nearest(str(item["loc"][-1]), known))
        return Problem(key, what_is_wrong(item))

    try:
        return options_type.model_validate(given)
    except ValidationError as error:
        raise PolicyError(map(problem, error.errors())) from None


@dataclass(frozen=True)
class PopulationCells:
    """The people of populations, as algorithms see them that publish nodes of taxonomies.

    `spans` are intervals of codes, by the column of a quasi-identifier's, each from 1 on; `cells` is, by the name of a
    population, (these columns, sensitive, rows), where a code is less the number of the smallest interval whose label
    covers the value, and `sensitive` 1. Those of whom some value has no such label are not there: they are in
    `left_out`, by the name.
    """

    spans: Mapping[Identifier, Sequence[tuple[int, int]]]
    cells: Mapping[str, Relation]
    left_out: Mapping[str, int]


@dataclass(frozen=True)
class Task:
    """An encoded table and what its classes must meet, also by the name of the sensitive attribute (`wanted`)."""

    engine: Engine
    encoded: Encoded
    requirements: Sequence[Requirement]
    seed: int = 0
    progress: Progress = lambda done, total: None
    report: Announce = lambda text: None
    wanted: Mapping[str, Sequence[Requirement]] = field(default_factory=dict)
    #: Whether classes must tell no more to whoever knows how they were made.
    transparent: bool = False
    #: The form in which each quasi-identifier is published.
    forms: Mapping[str, Form] = field(default_factory=dict)
    #: Whether these are some rows of a table that is divided, so that they are split as those of a large one.
    is_part: bool = False
    #: The people of the populations that requirements name; None where they were not counted.
    people: PopulationCells | None = None
    #: The share of the rows that may be left out, None for any.
    suppression: Decimal | None = None
    #: Told in a few words what begins.
    stage: Announce = lambda text: None
    #: Told what an algorithm has before it after all.
    ahead: Callable[[Stages], None] = lambda stages: None
    #: Whose the rows are that are published, where the table has their units.
    units: Units | None = None
    #: Plans of levels that were made to see what they lose, by the algorithm and the rows of their tasks.
    made: Mapping[tuple[str, Relation], Plan] = field(default_factory=dict)
    #: The cells of cross-tables of which no class may have rows of two.
    cross: CrossTables | None = None
    #: Whether passes that gain more go on with the classes that an algorithm makes.
    goes_on: bool = False

    @property
    def cell_count(self) -> int:
        """The cells of quasi-identifiers."""
        return self.encoded.row_count * len(self.encoded.axes)

    @property
    def compares_with_table(self) -> bool:
        """True if a requirement compares classes with all rows that are published."""
        return any(requirement.compares_with_table for requirement in self.requirements)

    def kept_column(self, name: str | None) -> Renamed | None:
        """The column of that name that is published as it is; None if there is no such name, or column."""
        kept = (kept for kept in self.encoded.kept if name is not None and kept.column.name.lower() == name.lower())
        return next(kept, None)

    @property
    def most_left_out(self) -> int | None:
        """The most rows that may be left out, of those that a NULL has not taken out; None for any."""
        return None if self.suppression is None else int(Fraction(self.suppression) * self.encoded.row_count)

    def refuse_left_out(self, rows: int) -> None:
        """Raise SuppressionError if `rows` left out are more than may be."""
        most = self.most_left_out
        if most is not None and self.suppression is not None and rows > most:
            message = too_many_left_out(self.encoded, rows, most, self.suppression)
            raise SuppressionError(message, rows)


@dataclass(frozen=True)
class Plan(Assignment):
    """An assignment by an algorithm, where the class size that was aimed at is `l`.

    `notes` is what the user should hear, `search` what the algorithm has to say of its own work. `algorithm` is whose
    plan it is, if that was left open, `parts` how many parts it was made in, `told` what is said of that choice, by the
    mean LM of the release.
    """

    l: int
    notes: tuple[str, ...] = ()
    search: dict[str, Any] = field(default_factory=dict)
    algorithm: str = ""
    parts: int = 1
    told: Callable[[float], str] | None = None

    def notes_by(self, lm_mean: float) -> tuple[str, ...]:
        """The notes, once it is known what the release loses."""
        return (*self.notes, *([self.told(lm_mean)] if self.told else []))

    def row_count(self, engine: Engine) -> int:
        """The rows that are in classes."""
        return engine.count_weighted(self.assigned, self.dealt)

    def in_rows(self, engine: Engine) -> Plan:
        """The plan of rows: those of a cell that is dealt out to several classes go by the numbers of these."""
        if self.dealt is None:
            return self
        assigned = engine.materialise(
            "assigned", "recoding/publish/deal_rows", assigned=self.assigned, dealt=self.dealt
        )
        engine.drop(self.assigned)
        return replace(self, assigned=assigned, dealt=None)


@dataclass(frozen=True)
class Traits:
    """The abilities of an algorithm, whatever its options are.

    `recodes_globally`: it says itself what every value is published as.
    `explains`: its errors say which requirements cannot be met, and what is nearest. `any_class`: its classes may have
    equal values as well, so that it meets what the whole table as one class meets. `rows_alone`: it makes classes
    without a sensitive attribute. `harmless`: classes may have rows of which nothing is promised. `populations`: it
    counts the people of a population that its classes cover. `counts`: it plans from counts of equal rows, without the
    rows. `suppressing`: the options under which it leaves out rows where not all can be published, none if it cannot.
    `outliers`: rows may be left out of its classes, once they are made. `foresees_left_out`: its check tells how many
    rows it leaves out. `divides`: a table can be solved in parts. `bags`: people may have several values, as it
    judges classes by counts of whatever it is given.
    """

    recodes_globally: bool = False
    explains: bool = False
    any_class: bool = False
    rows_alone: bool = False
    harmless: bool = False
    populations: bool = False
    counts: bool = False
    suppressing: Mapping[str, Any] = field(default_factory=dict)
    outliers: bool = False
    foresees_left_out: bool = True
    divides: bool = False
    bags: bool = False

    @property
    def meets_whole(self) -> bool:
        """True if it meets what the whole table as one class meets, as classes may have equal values."""
        return self.any_class or self.recodes_globally


class Algorithm(ABC):
    """A way to make classes; an instance has its options."""

    name: ClassVar[str]
    options_type: ClassVar[type[Options]] = Options
    traits: ClassVar[Traits] = Traits()

    def __init__(self, options: dict[str, Any]):
        """Raises PolicyError for options that the algorithm does not have or take."""
        self.options = read_options(self.name, self.options_type, options)

    def chosen(self, task: Task) -> tuple[Algorithm, str]:
        """The algorithm that does the work, this one by default, and why, if there is anything to say."""
        return self, ""

    def seen(self, task: Task) -> Task:
        """The task as the algorithm sees it."""
        return task

    def unfit(self, task: Task) -> list[Problem]:
        """The parts of the policy that the algorithm cannot take, whatever the counts are."""
        problems = []
        able = self.traits.harmless or task.transparent
        if not able and any(requirement.harmless for requirement in task.requirements):
            what = f"{self.name} protects every value alike, so none can be harmless"
            problems.append(Problem("sensitive", what, "algorithm: auto, topdown, peel or mondrian"))
        if not self.traits.bags and (several := [axis for axis in task.encoded.sensitive if axis.bags]):
            unit, key = (
                ("row", f"sensitive.{several[0].column.name}.set") if several[0].own else ("person", "individual")
            )
            what = f"{self.name} takes one sensitive value a {unit}, and some have several"
            problems.append(Problem(key, what, "algorithm: auto, topdown, peel or mondrian"))
        problems += [
            Problem(
                "require",
                f"{self.name} does not know which people of {found.named_population} its classes cover",
                f"{SEEING}, without `transparent`" if task.transparent else SEEING,
            )
            for found in dict.fromkeys(task.requirements)
            if found.named_population and not (self.traits.populations and task.people)
        ]
        if not self.traits.rows_alone and not all(axis.is_said for axis in task.encoded.sensitive):
            what = f"{self.name} needs a sensitive attribute"
            problems.append(Problem("algorithm.name", what, "algorithm: auto, topdown, peel or mondrian"))
        return problems

    def stages(self, task: Task, feasible: Feasibility) -> Stages:
        """The stages of its work, each with its weight."""
        return [(forming(self.name), task.cell_count)]

    def refuse_unfit(self, task: Task) -> None:
        """Raise PolicyError for what of the policy the algorithm cannot take."""
        refuse(self.unfit(task))

    @property
    def excludes_sets(self) -> str:
        """The output of the algorithm that is at odds with `recode: set`; empty if nothing is."""
        return ""

    @abstractmethod
    def check(self, task: Task) -> Feasibility:
        """Check by counts alone that the task can be done; raises InfeasibleError with the numbers if it cannot."""

    def checked(self, task: Task) -> Feasibility:
        """As `check`; raises SuppressionError as well if more rows would be left out than may be."""
        feasible = self.check(self.seen(task))
        task.refuse_left_out(feasible.rows_suppressed - task.encoded.left_out)
        return feasible

    @abstractmethod
    def run(self, task: Task) -> Plan:
        """The plan; call after `check`."""


@dataclass(frozen=True)
class Feasibility:
    """The numbers known before work starts; `tries` are the algorithms that will be tried, if several are."""

    l: int
    classes: int
    rows_suppressed: int
    notes: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()
