"""The classes of a table to be judged, counted once for all requirements, and which of their rows to suppress.

That is what is beyond the l-eligible core, the fewest rows whose suppression brings every share under its threshold.
For counts `n_i` and thresholds `theta_i` the greatest fixpoint of `n' <- sum_i min(n_i, floor(theta_i n'))` is what
can be kept. Each step also solves the equation for the values that are clipped, as if fractions of rows could be
kept: no fixpoint lies above that, so a few steps do where plain iteration would take thousands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refused
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Figure, Relation, Value
from ldiv_db.database.steps import Steps
from ldiv_db.requirements.guarantees import Distribution
from ldiv_db.requirements.values import Categories, Named

#: Who counts the people of a population.
COUNTED_BY = "a run by tds or incognito, its audit, and check by a policy do"


#: What a requirement reads of people; None if its definition does not carry over to them.
OnPeople = Literal["counts", "shares"] | None


#: What templates take of classes by the names of their headers.
OF_CLASSES = ("histogram", "sizes", "summary", "tallies", "totals", "total")


@dataclass(frozen=True)
class OfPeople:
    """The other readings of classes of people, each where it can be made.

    `shared` makes those in which every person is spread evenly over their values: what a share of people is read from.
    `by_rows` are the same classes by their rows, where they must be good by these as well.
    """

    shared: Callable[[], Classes | None] | None = None
    by_rows: Classes | None = None


class Classes:
    """A histogram `(class_no, value, rows, class_rows)` and what follows from it, each made when first asked for.

    Classes that are not the table, such as candidates that overlap, say what its distribution (value, rows) is. Who has
    counted (class_no, rows, values, largest) already, with the rows of the first value as `largest`, gives `tallies`.

    Where people are counted, `rows` are the people who have a value and `class_rows` those of the class.
    """

    def __init__(
        self,
        steps: Steps,
        histogram: Relation,
        whole: Relation | None = None,
        tallies: Relation | None = None,
        of_people: OfPeople | None = None,
    ):
        self._steps = steps
        self.histogram = histogram
        self._whole = whole
        self._tallies = tallies
        self.of_people = of_people is not None
        self._shared = of_people.shared if of_people else None
        self.by_rows = of_people.by_rows if of_people else None
        self._people: Mapping[str, Relation] = {}
        self._made: list[Relation] = []
        self._others: dict[Hashable, Classes] = {}

    @classmethod
    def tallied(cls, steps: Steps, tallies: Relation) -> Classes:
        """Classes of which nothing but their tallies is known, their `summary` then."""
        classes = cls(steps, tallies)
        classes.summary = tallies
        return classes

    @cached_property
    def sizes(self) -> Relation:
        """(class_no, class_rows, size, values): how many values of a class stand in `size` rows each."""
        return self._make("sizes", "requirements/count_sizes", histogram=self.histogram)

    @cached_property
    def summary(self) -> Relation:
        """(class_no, rows, values, largest, log_units): a row a class."""
        return self._make("summary", "requirements/summarise_sizes", sizes=self.sizes)

    @property
    def tallies(self) -> Relation:
        """(class_no, rows, values, largest): a row a class."""
        return self._tallies or self.summary

    @cached_property
    def totals(self) -> Relation:
        """(value, rows): the table's distribution of the sensitive attribute."""
        if self._whole is not None:
            return self._whole
        return self._make("totals", "requirements/total_values", histogram=self.histogram)

    @cached_property
    def shares(self) -> Classes | None:
        """The classes with every person spread over their values; None where that cannot be made."""
        return self._shared() if self._shared else None

    @cached_property
    def total(self) -> Value | Figure:
        """The number of rows of the table, as a parameter of a template takes them."""
        return self._steps.sum_of(self.totals, "rows")

    def by_category(self, categories: Categories) -> Classes:
        """The same classes with every sensitive value replaced by the number of its category."""
        columns, rows = {"value": "VARCHAR", "category": "INTEGER"}, categories.members()
        more = {"null_category": categories.null_category}
        return self._derived(categories, "by_category", "categorise", columns, rows, **more)

    def exempting(self, harmless: tuple[Named, ...]) -> Classes:
        """The same classes where these values have no rows, which count in the size of their class all the same."""
        if not harmless:
            return self
        columns, rows = {"value": "VARCHAR", "is_harmless": "BOOLEAN"}, [(value, True) for value in harmless]
        return self._derived(harmless, "sparing", "spare_values", columns, rows)

    def _derived(
        self, key: Hashable, name: str, template: str, columns: dict[str, str], rows: Sequence[Any], **more: Any
    ) -> Classes:
        """The classes of the histogram that a template makes of this one and of values that are listed."""
        if key not in self._others:
            members = self._steps.load("members", columns, rows)
            params = {"histogram": self.histogram, "members": members, **more}
            self._others[key] = Classes(self._steps, self._make(name, f"requirements/{template}", **params))
            self._steps.drop(members)
        return self._others[key]

    def distribution(self, engine: Engine, harmless: tuple[Named, ...] = ()) -> Distribution:
        """The values of a table that is one class, harmless ones as rows beside."""
        counts = sorted(filter(None, engine.column(self.exempting(harmless).histogram, "rows")), reverse=True)
        return Distribution(counts, engine.total(self.totals, "rows") - sum(counts))

    def place_people(self, people: Mapping[str, Relation]) -> None:
        """Set the people that each class covers, (class_no, rows), by the name of their population.

        People of no class have a number that no class has.
        """
        self._people = people

    def people_of(self, population: str, label: str) -> Relation:
        """The people of each class; raises PolicyError where they were not counted, for the requirement `label`."""
        if population not in self._people:
            what = f"{label} cannot be judged here: the people of {population} that each class covers are not counted"
            raise refused("require", what, COUNTED_BY)
        return self._people[population]

    def drop(self) -> None:
        """Drop all that was made, the histogram aside."""
        for other in [*self._others.values(), vars(self).get("shares"), self.by_rows]:
            if other:
                other.drop()
        self._steps.drop(*self._made)

    def _make(self, name: str, template: str, **params: object) -> Relation:
        relation = self._steps.materialise(name, template, **params)
        self._made.append(relation)
        return relation


@dataclass(frozen=True)
class Core:
    """The most rows of a class in which no value has more than its share, `numerator / denominator`.

    `own` has other numerators, harmless values may have all rows. A core of fewer than `least` rows is not kept.
    """

    numerator: int
    denominator: int
    own: Sequence[tuple[Named, int]] = ()
    harmless: Sequence[Named] = ()
    least: int = 0

    @property
    def numerators(self) -> list[tuple[Named, int]]:
        """Those of values with shares of their own."""
        own = [pair for pair in self.own if pair[0] not in self.harmless]
        return [*own, *((value, self.denominator) for value in self.harmless)]


def suppress_by_core(engine: Engine, classes: Classes, measures: Relation, core: Core) -> Relation:
    """(class_no, suppress) of each violating class, which loses the rows beside its core."""
    listed = engine.load("numerators", {"value": "VARCHAR", "numerator": "BIGINT"}, core.numerators)
    known = {"measures": measures, "histogram": classes.histogram, "numerators": listed, "numerator": core.numerator}
    flow = EngineFlow(engine, "requirements", **known, denominator=core.denominator)
    flow.step("kept", "start_core")
    changed = 1
    while changed:
        shrunk = flow.step("shrunk", "shrink_core")
        (changed,) = flow.record("count_shrunk").values()
        flow.drop("kept")
        flow.know(kept=shrunk)
    mended = flow.step("mended", "mend_core", least=core.least)
    flow.drop("kept", "numerators")
    return mended


def suppress_if_few(engine: Engine, classes: Classes, measures: Relation, least: int, unique: bool = False) -> Relation:
    """All rows of the classes of fewer than `least` values, which nothing else mends.

    Of the others all rows but one of each value if values must be `unique`, else NULL: not known.
    """
    params = {"measures": measures, "summary": classes.summary, "least": least, "unique": unique}
    return engine.materialise("mended", "requirements/mend_if_few", **params)
