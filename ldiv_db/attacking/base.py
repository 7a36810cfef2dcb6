"""The base of attacks, and the table that they are made on.

All that is known of an attack is said in its class; nothing else asks which one it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.covering import known_axes, within
from ldiv_db.attacking.gains import Attack, Bounds, Gain, Prior
from ldiv_db.attacking.matching import Lost, Matches, Prefixes, prefixes_of
from ldiv_db.attacking.populations import refuse_shared
from ldiv_db.attacking.question import Knowledge
from ldiv_db.auditing.counting import Counted
from ldiv_db.auditing.refusals import require_listed
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import Problem
from ldiv_db.database.names import Relation
from ldiv_db.requirements import Attribute, Categories, Classes, Requirement, promised_by
from ldiv_db.requirements.guarantees import Guarantee

#: Verdicts of a report on an attack.
WITHIN, ABOVE, UNDECIDED, NOTHING = "within the threshold", "above the threshold", "undecided", "nothing to try"
NO_THRESHOLD = "no threshold"
#: What figures of several attacks count, where their names do not say it.
WORDS = {
    "mean": "mean posterior",
    "no_class": "people in no class",
    "one_class": "people in one class alone",
    "one_value": "people with one value left",
}
#: A person who may be in a class costs as many kept pairs where they are looked at with all their sides.
CANDIDATE = 4


class Attacker:
    """An attack on a table: who makes it, what they know, and how a report judges what they gain."""

    #: The names of its attacks in reports.
    names: ClassVar[tuple[str, ...]] = ()
    #: What asks for it, an option by its key; empty if it is always made.
    key: ClassVar[str] = ""
    #: The people by whom it is made, by the key of their table: it has no verdict if none of them stands in a class.
    people: ClassVar[str] = ""
    #: True if it reads what labels stand for, which a policy says.
    reads_labels: ClassVar[bool] = False
    #: True if it learns sensitive values; others look for rows, and are made on one table, not on an anatomised pair.
    of_values: ClassVar[bool] = True
    #: True if it is made on people, where requirements count these.
    on_people: ClassVar[bool] = False
    #: True if it takes one value a row.
    one_value: ClassVar[bool] = False
    #: Its place in a report; 0 if a report has no verdict on it.
    place: ClassVar[int] = 0
    #: What a report says where its people are not to be had; empty if it is tried without them.
    lacking: ClassVar[str] = "needs people of the source"
    #: True if it takes minutes where there are many quasi-identifiers.
    slow_if_wide: ClassVar[bool] = False
    #: What further figures of its count.
    words: ClassVar[Mapping[str, str]] = {}

    def __init__(self, table: AttackedTable) -> None:
        """Make ready what attacks on all sensitive attributes share."""
        self.table = table

    @classmethod
    def needs_policy(cls, columns: Columns) -> bool:
        """True if it cannot be made on these columns without a policy."""
        return cls.reads_labels and not columns.axes

    @classmethod
    def problems(cls, engine: Engine, columns: Columns, known: Knowledge) -> Iterator[Problem]:
        """What is wrong with the question beside what any attack needs."""
        yield from ()

    def on(self, target: AttackedAttribute) -> Iterable[Attack]:
        """The attacks on one sensitive attribute."""
        return ()

    def attacks(self) -> Iterable[Attack]:
        """The attacks on all of the table."""
        return ()

    @classmethod
    def verdict(cls, attack: Attack, promised: float | None, no_bound: str, threshold: float) -> Verdict:
        """The verdict of a report, by default against the share that is `promised` of a value in a class."""
        if promised is None:
            return Verdict(attack.gains[0], None, NO_THRESHOLD, no_bound)
        return held_against(attack, attack.gains[0], promised)


@dataclass(frozen=True)
class Verdict:
    """A verdict on what was gained, what a report holds that against, and perhaps a reason."""

    gain: Gain
    threshold: float | None
    verdict: str
    why: str | None = None


def held_against(attack: Attack, gain: Gain, most: float) -> Verdict:
    """What was found is enough for a bad verdict, and only all of it for a good one."""
    if gain.gain is not None and gain.gain > most:
        return Verdict(gain, most, ABOVE)
    if attack.untried is not None or attack.at_least:
        return Verdict(gain, most, UNDECIDED, str(attack.untried) if attack.untried else None)
    return Verdict(gain, most, NOTHING if gain.gain is None else WITHIN)


# -- one sensitive attribute ---------------------------------------------------------------------------


class AttackedAttribute:
    """One sensitive attribute: its classes, its categories if any, its values' `priors`, what is promised of it.

    Nothing is promised of `harmless` values, and of any other at most the share `others`. Rows may have several values
    if they are `of_sets`.
    """

    def __init__(
        self,
        engine: Engine,
        attribute: Attribute,
        classes: Classes,
        promise: Guarantee,
        of_sets: bool = False,
        on_people: bool = False,
    ) -> None:
        """Raise PolicyError if a value of the table is of no category; of a promise `on_people` rows keep a part."""
        self.engine, self.classes, self.promise, self.of_sets = engine, classes, promise, of_sets
        self.sensitive, self.categories, self.harmless = attribute.name, attribute.categories, attribute.harmless
        self.histogram = classes.histogram
        if self.categories:
            require_listed(engine, self.sensitive, self.categories, classes.totals)
        of_rows = promise.of_rows if on_people else promise
        self.priors = place_values(engine, classes.totals, of_rows, self.categories)
        self.bounds = bounds_of(engine, self.priors, of_rows)
        self.others = max([of_rows.share, *(share for value, share in of_rows.shares if value not in self.harmless)])

    @cached_property
    def rows(self) -> int:
        """The rows, those of sets as often as they have values."""
        return self.engine.total(self.classes.totals, "rows")

    def share(self, rows: int) -> Fraction | None:
        """The share of the table that so many rows are."""
        return Fraction(rows, self.rows) if self.rows else None


def bounds_of(engine: Engine, priors: Relation, promise: Guarantee) -> Bounds:
    """The bounds that a promise puts on attacks on a table with the `priors` of `place_values`."""
    kinds = sorted(engine.tally(priors, "rows", "numerator", "denominator", "category"))
    alike = [Prior(values, rows, Fraction(int(n), int(d)), category) for rows, n, d, category, values in kinds]
    return Bounds(promise, alike)


def place_values(
    engine: Engine, totals: Relation, promise: Guarantee, categories: Categories | None = None
) -> Relation:
    """Every value with its category, 1 without any, and the share promised."""
    listed = categories.members() if categories else []
    members = engine.load("members", {"value": "VARCHAR", "category": "INTEGER"}, listed)
    columns = {"value": "VARCHAR", "numerator": "HUGEINT", "denominator": "HUGEINT"}
    shares = engine.load("shares", columns, [(value, s.numerator, s.denominator) for value, s in promise.shares])
    priors = engine.materialise(
        "priors",
        "attacking/place_values",
        totals=totals,
        members=members,
        shares=shares,
        null_category=categories.null_category if categories else 1,
        numerator=promise.share.numerator,
        denominator=promise.share.denominator,
    )
    engine.drop(members, shares)
    return priors


# -- a table -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SecretColumn:
    """A sensitive attribute of a published table: what is required of it, and its counts there."""

    attribute: Attribute
    required: Sequence[Requirement]
    counts: Counted


class AttackedTable:
    """A published table, counted for each sensitive attribute, and the people whom attackers know in its classes.

    The classes are the same for all attributes. Each table of people is encoded once for all attacks, and is there
    until the `stack` closes; `lost` says who of them stands in no class.
    """

    def __init__(
        self,
        engine: Engine,
        stack: ExitStack,
        columns: Columns,
        known: Knowledge,
        secrets: Mapping[str, SecretColumn],
    ) -> None:
        """Tell what is promised of each attribute; raises PolicyError for values of no category."""
        self.engine, self.stack, self.columns, self.known, self.secrets = engine, stack, columns, known, secrets
        self.required = [one for secret in secrets.values() for one in secret.required]
        self.counts: Mapping[str, Counted] = {name: secret.counts for name, secret in secrets.items()}
        self.first = next(iter(self.counts.values()))
        self.classes, self.rows, self.budget = self.first.listed, self.first.rows, known.asked.budget
        self.axes = within(self.first, columns.axes)
        self.lost: dict[str, Lost] = {}
        #: What is dropped at the end.
        self.made: list[Relation] = []
        self._encoded: dict[Table, tuple[Prefixes, Lost]] = {}
        self.targets: list[AttackedAttribute] = []
        for name, secret in secrets.items():
            of_sets = secret.counts.subject.counts_once(name)
            # Shares of what weighs less where there is more bound no rows.
            promised = [one for one in secret.required if not of_sets or one.on_people == "counts"]
            promise = promised_by(promised)
            told = (promise, of_sets, columns.on_people and not self.first.subject.person)
            self.targets.append(AttackedAttribute(engine, secret.attribute, secret.counts.classes, *told))
            self.made.append(self.targets[-1].priors)

    @property
    def histograms(self) -> dict[str, Relation]:
        """The histogram (class_no, value, rows) of each sensitive attribute."""
        return {name: counts.classes.histogram for name, counts in self.counts.items()}

    # -- people --------------------------------------------------------------------------------------

    def prefixes(self, key: str) -> Prefixes:
        """The people and the labels of classes, to be matched."""
        people = self.known.people[key]
        if people not in self._encoded:
            columns = columns_of(self.engine, people)
            person = self.known.person_among(columns) if self.first.subject.person else None
            known = known_axes(self.axes, columns, key)
            matched = prefixes_of(self.engine, self.classes, known, people, self.budget, person)
            found = self.stack.enter_context(matched)
            self._encoded[people] = found, Lost.among(found)
        found, self.lost[key] = self._encoded[people]
        return found

    def cells(self, key: str) -> Relation | None:
        """The different combinations of these people's values, where they are encoded."""
        found = self._encoded.get(self.known.people[key])
        return found and found[0].cells

    def count_lost(self, key: str) -> None:
        """Tell who of these people stands in no class, if it was not told."""
        people = self.known.people[key]
        if people in self._encoded:
            self.lost[key] = self._encoded[people][1]
            return
        known = known_axes(self.axes, columns_of(self.engine, people), key)
        with prefixes_of(self.engine, self.classes, known, people) as numbered:
            self.lost[key] = Lost.among(numbered)

    def matches(self, key: str, cost: int, by_classes: bool = False) -> Matches:
        """The classes that cover the people; drawn ones beyond the budget, a pair being as many as its cost."""
        return self.stack.enter_context(self.prefixes(key).matched(self.budget // cost, by_classes))

    @cached_property
    def everybody(self) -> Matches | None:
        """The whole population in classes, for those who look at all of it together; None without one."""
        if "population" not in self.known.people:
            return None
        return self.matches("population", CANDIDATE, by_classes=True)

    @cached_property
    def bound(self) -> Fraction | None:
        """The largest risk of re-identification that is promised of a row."""
        bounds = [target.bounds.record for target in self.targets]
        return min((one for one in bounds if one is not None), default=None)

    @cached_property
    def population_bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """The largest risk that is promised of the people of a population, and the largest share who are in the table.

        Raises PolicyError for classes that share people, where something is promised that is known only if they do not.
        """
        name = self.known.promised_population
        if not name:
            return None, None
        if self.everybody:
            refuse_shared(self.engine, self.everybody, [one for one in self.required if one.named_population == name])
        promise = promised_by(self.required)
        fewest, most = promise.fewest_people(name), promise.most_present(name)
        return Fraction(1, fewest) if fewest > 1 else None, most if most < 1 else None
