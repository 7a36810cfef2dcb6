"""`ldiv attack`: what attackers gain from any published table, and what its requirements promise at most.

The form of a table says something beyond its classes: the order of its rows, its numbers, what lies beside it. Whoever
has the source, or a table in the same order, holds the k-th row of a class for the k-th of its people. So rows are
looked at in the order in which they lie. Where the values of a class rise or fall they stand as anybody could put them,
and nothing is told; any other order may be that of the source. Numbers of classes that do not rise with the labels may
be the order in which classes were made, which follows from sensitive values. Nothing is promised of either; a release
of ours has neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from ldiv_db.attacking.article29 import try_attacks
from ldiv_db.attacking.attackers import Attackers, OtherRelease, refuse_question
from ldiv_db.attacking.columns import Columns, Table
from ldiv_db.attacking.composition import OverlappingPeople, composition, people_in_all
from ldiv_db.attacking.counting import Counting, count_places, counting
from ldiv_db.attacking.covering import LabelAxis, known_axes, within
from ldiv_db.attacking.definetti import SLOT, GuessedPeople, by_groups, by_labels, definetti
from ldiv_db.attacking.disclosure import (
    OF_SETS,
    AttackedAttribute,
    Exposure,
    disclosures,
    linking,
    make_target,
    marketer,
    population_attacks,
    population_uniqueness,
    prosecutor,
)
from ldiv_db.attacking.downcoding import CANDIDATE, downcoding
from ldiv_db.attacking.gains import Attack, all_hold, gain_of
from ldiv_db.attacking.matching import Lost, Matches, Prefixes, prefixes_of, refuse_shared
from ldiv_db.attacking.several_rows import OwnedRows, PlacedPeople, placed_people, several_rows
from ldiv_db.attacking.trials import AttackedRelease
from ldiv_db.auditing.counts import Counted, counted
from ldiv_db.auditing.individuals import people_warning
from ldiv_db.auditing.kept import warn_of_release
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import catalog_of, columns_of, full_name, relations_in
from ldiv_db.database.csv_files import as_spelt
from ldiv_db.database.databases import free_bytes, metadata_entries
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one, read_exactly
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.templates import FileRelation, Identifier, Relation, Value
from ldiv_db.display import Shown
from ldiv_db.policy.sensitive import read_attributes, resolve_all
from ldiv_db.recoding.encoded import Renamed
from ldiv_db.requirements import ROWS_ALONE, Attribute, Requirement, RequirementSpec
from ldiv_db.requirements.guarantees import Guarantee, together
from ldiv_db.requirements.reading import find_sets

#: The database of temporary tables, and of frames.
TEMPORARY = "temp"


def look_at_form(engine: Engine, counts: Counted, sensitive: Sequence[str]) -> Attack:
    """The attack by order, numbers and surroundings of a table; `counts` are its classes by any sensitive attribute."""
    table = counts.subject.table
    if isinstance(table, Relation) and hasattr(engine.connection, "there"):
        return Attack("form", None, (), _numbers(engine, counts) | {"order": "a warehouse's counts have none"})
    order = _order(engine, counts, sensitive) if sensitive else Attack("form", None, ())
    figures = order.figures | _numbers(engine, counts) | _surroundings(engine, table)
    return replace(order, figures=figures)


def _order(engine: Engine, counts: Counted, sensitive: Sequence[str]) -> Attack:
    """The attack by the order of rows, which may tell their sensitive values."""
    table = counts.subject.table
    values = [Renamed(Identifier(name), Identifier(f"v{i}")) for i, name in enumerate(sensitive, 1)]
    params: dict[str, Any] = {"class_columns": counts.columns, "values": values}
    with engine.scope():
        with read_exactly(engine, table) as read:
            placed = engine.materialise("placed", "attacking/form/place_rows", published=read, **params)
        beyond = Value(counts.rows + 1)  # more than any rank
        unordered = engine.record("attacking/form/count_unordered_rows", placed=placed, beyond=beyond, **params)
    share = Fraction(unordered["rows"], unordered["all_rows"]) if unordered["all_rows"] else None
    gain = gain_of("share of rows that may still be in the source's order (0 is best)", share, None)
    return Attack("form", None, (gain,), {"classes_with_an_order": unordered["classes"]})


def _numbers(engine: Engine, counts: Counted) -> dict[str, Any]:
    """Counts numbers of classes that fall where labels rise; nothing for classes without numbers, or without labels."""
    labels, ids = counts.columns[: len(counts.subject.labels)], counts.columns[len(counts.subject.labels) :]
    if not labels or not ids:
        return {}
    params = {"classes": counts.listed, "labels": labels, "ids": ids}
    return {"numbers_against_labels": engine.scalar("attacking/form/count_falling_numbers", **params)}


def _surroundings(engine: Engine, table: Relation | FileRelation) -> dict[str, Any]:
    """Counts what else the file holds: other tables and dropped data in a database, entries in Parquet metadata."""
    if isinstance(table, FileRelation):
        if table.reader != "read_parquet":
            return {}
        return {"metadata_entries": metadata_entries(engine, table.path)}
    database = catalog_of(engine, table)
    if database.lower() == TEMPORARY:  # a frame, or what its caller keeps: nobody is given what lies beside it
        return {}
    _, *own = full_name(engine, table)
    others = [other for other in relations_in(engine, database) if [part.lower() for part in other.parts] != own]
    return {"other_tables": len(others), "free_bytes": free_bytes(engine, database)}


@dataclass(frozen=True, repr=False)
class Attacks(Shown):
    """All attacks on one table."""

    rows: int
    classes: int
    attacks: tuple[Attack, ...] = field(default=())
    #: What is to be said of the table besides.
    warnings: tuple[str, ...] = ()
    #: Warnings of people who stand in no class, by the tables that attackers know.
    lost: tuple[str, ...] = ()

    @property
    def holds(self) -> bool | None:
        """True if every promise is kept; None where nothing is promised, or it is `undecided`."""
        found = all_hold(attack.holds for attack in self.attacks)
        return None if found and self.undecided else found

    @property
    def finished(self) -> bool:
        """True if all attacks were finished within their budget."""
        return all(attack.untried is None for attack in self.attacks)

    @property
    def undecided(self) -> bool:
        """True if an attack was not finished that might break a promise."""
        return any(gain.bound is not None for attack in self.attacks if attack.untried for gain in attack.gains)

    def as_dict(self) -> dict[str, Any]:
        attacks = [attack.as_dict() for attack in self.attacks]
        counts = {"rows": self.rows, "classes": self.classes}
        told = {"attacks": attacks, "warnings": [*self.lost, *self.warnings]}
        return {**counts, "holds": self.holds, "finished": self.finished, **told}


def attack_table(
    engine: Engine, table: Table, columns: Columns, require: Sequence[RequirementSpec], attackers: Attackers
) -> Attacks:
    """All attacks on a published table, with the bounds that `require` promises.

    Without a sensitive attribute those on rows alone. Raises PolicyError for requirements that are none, values of no
    category, labels that cannot be read, and classes that share people of a population of which something is promised
    that is known only where they do not.
    """
    refuse_question(engine, columns, require, attackers)
    home = columns.pair.table if columns.pair else table
    attributes = read_attributes(engine, columns.sensitive, columns_of(engine, home), columns.folder)
    attributes = attributes or {ROWS_ALONE.name: ROWS_ALONE}
    wanted = resolve_all(engine, require, attributes)
    same = {name: setting.reading for name, setting in columns.sensitive.items()}
    attackers = _with_population(engine, columns, wanted, attackers)
    subject = Subject(table, columns.labels, columns.ids, pair=columns.pair, same=same)
    with ExitStack() as stack:
        secrets = {name.lower() for name in columns.sensitive}
        shown = [column for column in columns_of(engine, home) if column.name.lower() in secrets]
        texts = [column.name for column in shown if column.type == "VARCHAR"]
        attackers = attackers.reading(
            lambda truths: stack.enter_context(read_as_one(engine, as_spelt(engine, truths, texts), same))
        )
        counts = {name: stack.enter_context(counted(engine, subject, name)) for name in attributes}
        found = _attack_counted(engine, columns, attributes, counts, wanted, attackers)
        sets = list(_of_sets(engine, attributes, counts))
    told = people_warning(engine, subject, list(columns.sensitive))
    kept = warn_of_release(engine, subject, list(columns.sensitive), columns.kept)
    return replace(found, warnings=(*((told,) if told else ()), *sets, *kept))


def _of_sets(engine: Engine, attributes: Mapping[str, Attribute], counts: Mapping[str, Counted]) -> Iterator[str]:
    """What is to be said of columns of sets, and of those that look like it."""
    for name, attribute in attributes.items():
        if attribute.of_sets:
            yield f"{name}: attacks count the members of its sets; {OF_SETS}"
        elif name and (sets := find_sets(engine, counts[name].classes.totals, attribute.type)):
            yield f"{name}: {sets}"


def _with_population(
    engine: Engine, columns: Columns, wanted: Mapping[str, Sequence[Requirement]], attackers: Attackers
) -> Attackers:
    """With the population that a requirement names, and its name where it is that which attackers have."""
    names = sorted({r.named_population for required in wanted.values() for r in required} - {""})
    for name in names if columns.quasi_identifiers else []:
        people = resolve_source(engine, name, columns.folder, "require.population")
        if attackers.population in (None, people):
            return replace(attackers, population=people, promised_population=name)
    return attackers


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
    attacks: list[Attack] = []
    bounds: list[Fraction] = []
    promise = together(found.promise() for required in wanted.values() for found in required)
    with _knowledge(engine, first, columns, attackers) as known:
        for name, attribute in attributes.items():
            of_sets = counts[name].subject.is_set(name)  # shares of what weighs less where there is more bound no rows
            promised = [found for found in wanted[name] if not of_sets or found.on_people == "counts"]
            own = together(found.promise() for found in promised)
            of_rows = own.of_rows if columns.on_people else own
            target = make_target(engine, attribute, counts[name].classes, of_rows, of_sets)
            if columns.sensitive:
                attacks += disclosures(target, attackers.excluded)
                attacks += _by_knowledge(target, known, attackers, len(attributes), own)
            bounds += [target.bounds.record] if target.bounds.record is not None else []
            engine.drop(target.priors)
        if columns.pair is None:  # a pair shows who has which quasi-identifiers, and no value beside them
            exposure = Exposure(engine, first.listed, attackers.threshold, min(bounds, default=None))
            if attackers.promised_population:
                if known.everybody:
                    required = [found for required in wanted.values() for found in required]
                    on_them = [r for r in required if r.named_population == attackers.promised_population]
                    refuse_shared(engine, known.everybody, on_them)
                exposure = exposure.promised_of(promise, attackers.promised_population)
            attacks += _on_rows(exposure, first, columns, attackers, known)
            attacks.append(look_at_form(engine, first, list(columns.sensitive)))
    if attackers.trial:
        histograms = {name: counts[name].classes.histogram for name in attributes}
        attacks += try_attacks(_attacked(engine, first, columns, attackers), attackers.trial, histograms)
    lost = {**known.lost, **_lost_of_trial(engine, first, columns, attackers, known.lost)}
    found = tuple(_on_people(attack, lost) for attack in attacks)
    return Attacks(first.rows, engine.count(first.listed), found, lost=tuple(_lines(found, lost)))


def _lost_of_trial(
    engine: Engine, first: Counted, columns: Columns, attackers: Attackers, lost: Mapping[str, Lost]
) -> dict[str, Lost]:
    """The people of a trial whom no label covers; those of the targets are the known people's if these are they."""
    trial, found = attackers.trial, dict[str, Lost]()
    if trial is None:
        return found
    for key, people in (("targets", trial.targets), ("control", trial.control)):
        if people is not None and people == attackers.known:
            found[key] = lost["known"]
        elif people is not None:
            axes = known_axes(within(first, columns.quasi_identifiers), columns_of(engine, people), key)
            with prefixes_of(engine, first.listed, axes, people) as numbered:
                found[key] = Lost.among(numbered)
    return found


#: The people by whom attacks are made, as options name them; all others need none.
_PEOPLE = {
    "known": ("linking", "composition"),
    "population": ("journalist", "marketer", "presence", "counting", "downcoding"),
    "definetti": ("definetti",),
    "source": ("several rows",),
    "targets": ("singling out by one column", "singling out by several columns", "linkability", "inference"),
}


def _on_people(attack: Attack, lost: Mapping[str, Lost]) -> Attack:
    """The attack; without a verdict if none of the people that it needs stands in a class."""
    nobody = [found for key, found in lost.items() if found.everybody and attack.name in _PEOPLE.get(key, ())]
    return attack.without_people(nobody[0].people) if nobody else attack


def _lines(attacks: Sequence[Attack], lost: Mapping[str, Lost]) -> Iterator[str]:
    """Warnings of people who stand in no class; of those who need not, only where nobody does."""
    for key, found in lost.items():
        told = [attack.figures.get("no_class", 0) for attack in attacks if attack.name in _PEOPLE.get(key, ())[:1]]
        no_class = max(told, default=0)
        if found.everybody or (key not in ("population", "control") and (found.lost or no_class)):
            yield found.line(key, no_class)


@dataclass(frozen=True)
class _Knowledge:
    """People whom attackers know, None where they do not: the classes, of other tables too, that they may be in."""

    known: Prefixes | None
    population: Prefixes | None
    everybody: Matches | None
    places: Counting | None
    guessed: GuessedPeople | None
    releases: OverlappingPeople | None
    placed: PlacedPeople | None
    others: Sequence[Mapping[str, Counted]]
    lost: Mapping[str, Lost]


@contextmanager
def _knowledge(engine: Engine, first: Counted, columns: Columns, attackers: Attackers) -> Iterator[_Knowledge]:
    """The people that attackers know in the classes of a table."""
    with ExitStack() as stack:
        people = _KnownPeople(engine, stack, first, within(first, columns.quasi_identifiers), attackers.budget)
        known = people.prefixes(attackers.known, "known")
        population = people.prefixes(attackers.population, "population")
        everybody, places = None, None
        if attackers.counting or attackers.downcoding or attackers.promised_population:
            everybody = people.matches(attackers.population, "population", CANDIDATE, by_classes=True)
        if attackers.counting and everybody:
            places = count_places(engine, first.listed, everybody, attackers.budget)
        guessed = people.guessed(attackers.definetti, columns.labels)
        others = [_count_other(engine, stack, other, columns.sensitive) for other in attackers.also]
        releases = None
        if attackers.known and others:
            seen = [(first.listed, people.axes), *map(_listed, attackers.also, others)]
            releases = stack.enter_context(people_in_all(engine, seen, attackers.known, attackers.budget))
        placed = people.placed(attackers.owned if columns.sensitive else None)
        yield _Knowledge(known, population, everybody, places, guessed, releases, placed, others, people.lost)
        engine.drop(*(places.made if places else ()))


@dataclass(frozen=True)
class _KnownPeople:
    """Tables of people held against the classes of a table, as long as the stack is open; None where there is none.

    Each table is encoded once for all attacks that know its people.
    """

    engine: Engine
    stack: ExitStack
    first: Counted
    axes: Sequence[LabelAxis]
    budget: int
    lost: dict[str, Lost] = field(default_factory=dict)
    _encoded: dict[Table, tuple[Prefixes, Lost]] = field(default_factory=dict)

    def prefixes(self, people: Table | None, key: str) -> Prefixes | None:
        """The people and the labels of classes, to be matched."""
        if people is None:
            return None
        if people not in self._encoded:
            known = known_axes(self.axes, columns_of(self.engine, people), key)
            encoding = prefixes_of(self.engine, self.first.listed, known, people, self.budget)
            found = self.stack.enter_context(encoding)
            self._encoded[people] = found, Lost.among(found)
        found, self.lost[key] = self._encoded[people]
        return found

    def matches(self, people: Table | None, key: str, cost: int, by_classes: bool = False) -> Matches | None:
        """The classes that cover the people; drawn ones beyond the budget, a pair being as many as its cost."""
        found = self.prefixes(people, key)
        return self.stack.enter_context(found.matched(self.budget // cost, by_classes)) if found else None

    def guessed(self, people: Table | None, names: Sequence[str]) -> GuessedPeople | None:
        """The people to be guessed: by the labels that cover them, or in the groups of a pair."""
        if people is None:
            return None
        first = self.first
        if first.subject.pair is None:
            matches = self.matches(people, "definetti", SLOT)
            return by_labels(people, matches, first.listed) if matches else None
        group = first.columns[0]
        return self.stack.enter_context(by_groups(self.engine, first.subject.table, first.listed, group, names, people))

    def placed(self, owned: OwnedRows | None) -> PlacedPeople | None:
        """The people with several rows of a source."""
        matches = self.matches(owned.source, "source", 1) if owned else None
        if owned is None or matches is None:
            return None
        return self.stack.enter_context(placed_people(self.engine, owned, matches, self.first))


def _count_other(engine: Engine, stack: ExitStack, other: OtherRelease, sensitive: Iterable[str]) -> dict[str, Counted]:
    """Another release, counted for each sensitive attribute."""
    same = {name: setting.reading for name, setting in other.columns.sensitive.items()}
    subject = Subject(other.table, other.columns.labels, other.columns.ids, same=same)
    return {name: stack.enter_context(counted(engine, subject, name)) for name in sensitive}


def _listed(other: OtherRelease, counts: Mapping[str, Counted]) -> tuple[Relation, list[LabelAxis]]:
    """The classes of another release, and what their labels stand for."""
    first = next(iter(counts.values()))
    return first.listed, within(first, other.columns.quasi_identifiers)


def _by_knowledge(
    target: AttackedAttribute, known: _Knowledge, attackers: Attackers, attributes: int, promise: Guarantee
) -> Iterator[Attack]:
    """The attacks on one sensitive attribute by whoever knows people."""
    if known.known:
        yield linking(target, known.known, attackers.budget // attributes, attackers.show_values)
    if known.places:
        yield counting(target, known.places)
    if known.releases:
        others = [counts[target.sensitive].classes.histogram for counts in known.others]
        yield composition(target, known.releases, [target.histogram, *others])
    if known.guessed:
        yield definetti(target, known.guessed)
    if known.placed:
        yield several_rows(target, known.placed, promise)


def _on_rows(
    exposure: Exposure, first: Counted, columns: Columns, attackers: Attackers, known: _Knowledge
) -> Iterator[Attack]:
    """The attacks that look for people's rows, and labels read backwards, which may do so."""
    yield from prosecutor(exposure)
    population, budget = known.population, attackers.budget
    yield from population_attacks(exposure, population, budget) if population else [marketer(exposure)]
    if attackers.population_size is not None:
        yield population_uniqueness(exposure, first.rows, attackers.population_size)
    if attackers.downcoding:
        yield downcoding(_attacked(exposure.engine, first, columns, attackers), columns.algorithm, known.everybody)


def _attacked(engine: Engine, counts: Counted, columns: Columns, attackers: Attackers) -> AttackedRelease:
    """The release as its labels are held against people."""
    axes = within(counts, columns.quasi_identifiers)
    return AttackedRelease(engine, counts.listed, counts.rows, axes, attackers.budget)
