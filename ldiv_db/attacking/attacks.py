"""`ldiv attack`: what attackers gain from any published table, and what its requirements promise at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ldiv_db.attacking.article29 import PeopleTrial
from ldiv_db.attacking.base import AttackedTable, Attacker, SecretColumn
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.composition import Composition
from ldiv_db.attacking.counting import Counting
from ldiv_db.attacking.definetti import DeFinetti
from ldiv_db.attacking.disclosure import (
    OF_SETS,
    BackgroundKnowledge,
    Homogeneity,
    Linking,
    Posterior,
    Similarity,
    Skewness,
)
from ldiv_db.attacking.downcoding import Downcoding
from ldiv_db.attacking.everybody import OneRowOfEverybody, attack_everybody
from ldiv_db.attacking.exposure import Form, Journalist, PopulationUniqueness, Prosecutor
from ldiv_db.attacking.gains import Attack, all_hold
from ldiv_db.attacking.matching import Lost
from ldiv_db.attacking.question import Knowledge
from ldiv_db.attacking.refinement import Refinement
from ldiv_db.attacking.replay import Replayer
from ldiv_db.attacking.several_rows import SeveralRows
from ldiv_db.auditing.check import request_problems
from ldiv_db.auditing.counting import counted
from ldiv_db.auditing.joined_tables import JoinedTables
from ldiv_db.auditing.kept import warn_of_release
from ldiv_db.auditing.one_row import OneRow
from ldiv_db.auditing.people_names import people_warning
from ldiv_db.auditing.subject import Subject
from ldiv_db.auditing.tables import PublishedTables
from ldiv_db.database.catalog import columns_of
from ldiv_db.database.csv_files import as_spelt
from ldiv_db.database.data_files import Table
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import read_as_one
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.sources import resolve_source
from ldiv_db.database.stages import timed, work_of
from ldiv_db.display import Shown
from ldiv_db.policy.tables import named_in
from ldiv_db.requirements import ROWS_ALONE, Requirement
from ldiv_db.requirements.reading import find_sets

#: All attacks, in the order in which they are made. Replays need the program: `running/attack.py` makes them.
ATTACKERS: tuple[type[Attacker], ...] = (
    *(Homogeneity, Similarity, Skewness, BackgroundKnowledge, Posterior),
    *(Linking, Counting, Composition, DeFinetti, SeveralRows, OneRowOfEverybody),
    *(Prosecutor, Journalist, PopulationUniqueness, Downcoding, Refinement, Form, PeopleTrial, Replayer),
)
#: Whoever knows the quasi-identifiers of all of several tables.
ALL = "all tables"
#: The attacks by which somebody is recognised, whom requirements count.
RISKS = ("prosecutor", "journalist", "marketer", "population uniqueness")
#: What is said where rows stand for people in these.
UNCOUNTED = (
    "people cannot be counted, as no column says whose a row is (`--individual COLUMN`): a person is recognised at"
    " least as surely as a row"
)
#: The class of each attack, by its name.
ATTACKER_OF = {name: kind for kind in ATTACKERS for name in kind.names}
#: The keys of people, in the order in which those in no class are told of; these need not be in the table.
_PEOPLE, _ANYBODY = ("known", "population", "definetti", "source", "targets", "control"), ("population", "control")


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

    @classmethod
    def of_tables(cls, each: Mapping[str, Attacks]) -> Attacks:
        """The attacks on tables that nothing links, by who knows people's quasi-identifiers in each."""
        found = [
            replace(attack, knows=name, sensitive=attack.sensitive and named_in(name, attack.sensitive))
            for name, attacks in each.items()
            for attack in attacks.attacks
        ]
        warnings = tuple(f"{name}: {line}" for name, attacks in each.items() for line in attacks.warnings)
        lost = tuple(f"{name}: {line}" for name, attacks in each.items() for line in attacks.lost)
        rows, classes = sum(a.rows for a in each.values()), sum(a.classes for a in each.values())
        return cls(rows, classes, tuple(found), warnings, lost)

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
        """True if an attack was not finished, or could not count people, that might break a promise."""
        open_attacks = [attack for attack in self.attacks if attack.untried or attack.at_least]
        return any(gain.bound is not None for attack in open_attacks for gain in attack.gains)

    def as_dict(self) -> dict[str, Any]:
        attacks = [attack.as_dict() for attack in self.attacks]
        counts = {"rows": self.rows, "classes": self.classes}
        told = {"attacks": attacks, "warnings": [*self.lost, *self.warnings]}
        return {**counts, "holds": self.holds, "finished": self.finished, **told}


def of_most_known(found: Attacks) -> Attacks:
    """The attacks by who knows all tables; where one row is known, by who recognises somebody best by theirs."""
    best = max(
        (attack for attack in found.attacks if attack.name == "prosecutor"),
        key=lambda attack: (attack.knows in ("", ALL), attack.gains[0].gain or 0),
    )
    return replace(found, attacks=tuple(one for one in found.attacks if one.knows == best.knows))


def attack_table(engine: Engine, table: Table, columns: Columns, known: Knowledge) -> Attacks:
    """All attacks on a published table, with the bounds that its requirements promise.

    Without a sensitive attribute those on rows alone. Raises PolicyError for requirements that are none, values of no
    category, labels that cannot be read, and classes that share people of a population of which something is promised
    that is known only where they do not.
    """
    _refuse(engine, columns, known)
    home = columns.pair.table if columns.pair else table
    attributes, required = columns.requirements(engine, columns_of(engine, home))
    known = _with_population(engine, columns, required, known)
    subject = columns.subject(table).of_rows
    with ExitStack() as stack:
        secrets = {name.lower() for name in columns.sensitive}
        shown = [column for column in columns_of(engine, home) if column.name.lower() in secrets]
        texts = [column.name for column in shown if column.type == "VARCHAR"]
        known = known.reading(
            lambda truths: stack.enter_context(read_as_one(engine, as_spelt(engine, truths, texts), columns.same))
        )
        read = {
            name: SecretColumn(attribute, required[name], stack.enter_context(counted(engine, subject, name)))
            for name, attribute in attributes.items()
        }
        attacked = AttackedTable(engine, stack, columns, known, read)
        whose = list(_by_people(attacked, subject))
        every = [attacked, *whose]
        attacks = list(attacks_on(attacked, whose))
        found, lost = _judged(attacks, {key: one for table in every for key, one in table.lost.items()})
        sets = list(_of_sets(engine, read))
        classes = engine.count((whose or [attacked])[0].classes)
        engine.drop(*(relation for table in every for relation in table.made))
    told = UNCOUNTED if columns.is_open else ""
    told = told if columns.counts_people else people_warning(engine, subject, list(columns.sensitive))
    kept = warn_of_release(engine, subject, list(columns.sensitive), columns.kept)
    warnings = (*((told,) if told else ()), *sets, *kept)
    return Attacks(attacked.rows, classes, tuple(found), warnings, tuple(lost))


def _by_people(table: AttackedTable, subject: Subject) -> Iterator[AttackedTable]:
    """The table with people in place of rows, where a column says whose these are: told apart by all their rows.

    Where these are in their order and a population is known, the second tells people apart by one row.
    """
    engine, columns, known = table.engine, table.columns, table.known
    places = [columns.position, *([None] if columns.position and "population" in known.people else [])]
    for position in places if columns.individual else ():
        read = replace(subject, person=columns.individual, position=position)
        secrets = {
            name: replace(secret, counts=table.stack.enter_context(counted(engine, read, name)))
            for name, secret in table.secrets.items()
        }
        shown = replace(columns, axes=[] if position else columns.axes)
        yield AttackedTable(engine, table.stack, shown, known, secrets)


def attacks_on(table: AttackedTable, by_people: Sequence[AttackedTable] = ()) -> Iterator[Attack]:
    """Those on each sensitive attribute, then those on rows: a pair shows who has which quasi-identifiers, no value.

    Of a table that has people in place of rows those alone that are made on people.
    """
    given, columns, listener = table.known.given, table.columns, table.known.asked.heard
    of_people = table.first.subject.person is not None
    asked = [kind for kind in ATTACKERS if (not kind.key or kind.key in given) and kind.on_people >= of_people]
    wanted = [kind for kind in asked if (columns.sensitive if kind.of_values else columns.pair is None)]
    ready: dict[type[Attacker], Attacker] = {}
    by_target = [kind for kind in wanted if kind.on is not Attacker.on]
    turns: list[tuple[type[Attacker], int | None]] = [
        (kind, n) for n in range(len(table.targets)) for kind in by_target
    ]
    turns += [(kind, None) for kind in wanted if kind.attacks is not Attacker.attacks]
    cells = table.rows * max(len(columns.quasi_identifiers), 1)
    listener.on_expected([timed(_trying(kind), cells, len(columns.quasi_identifiers)) for kind, _ in turns])
    for kind, place in turns:
        listener.on_stage(_trying(kind))
        attacker = ready[kind] = ready.get(kind) or kind(_counted_for(kind, table, by_people))
        made = attacker.attacks() if place is None else attacker.on(attacker.table.targets[place])
        yield from _told(attacker, made)


#: What is shown before it is known which attacks are tried.
PREPARING = "preparing attacks"


def _trying(kind: type[Attacker]) -> str:
    return f"trying {kind.names[0]}"


def _counted_for(kind: type[Attacker], table: AttackedTable, by_people: Sequence[AttackedTable]) -> AttackedTable:
    if not (kind.on_people and by_people):
        return table
    return by_people[-1 if kind.people == "population" else 0]


def _told(attacker: Attacker, attacks: Iterable[Attack]) -> Iterator[Attack]:
    """The attacks, each with whom it counts: a row is found less surely than a person, who may have several."""
    for attack in attacks:
        if attacker.table.first.subject.person:
            yield attack.counting_people()
        elif attack.name in RISKS and attacker.table.columns.is_open:
            yield attack.counting_rows()
        else:
            yield attack


def attack_published(found: PublishedTables, known: Knowledge) -> Attacks:
    """The attacks on several tables by who knows people's quasi-identifiers in one of them, and last in all.

    Numbers in place of keys link the rows of a person. So whoever finds those who look alike in one table reads what
    all tables say of them, and the classes of the attack are of people. A person has a value who has it in any row.
    Attacks that are made of one value a row are not tried, nor those by the form of a table, whose rows stand by their
    numbers. Raises PolicyError for wrong numbers; AuditError for rows that belong to nobody.
    """
    refuse(known.problems())
    attacks, classes = list[Attack](), 0
    with found.joined() as joined:
        one = OneRow.of(joined) if found.policy.knows_one else None
        knowing = {who: (reading, known.by(f"who knows {who}")) for who, reading in _knowing(found, joined, one)}
        cells = work_of(found.engine, *(table.rows for table in found.tables))
        each = [timed(PREPARING, *cells).of(f"who knows {who}") for who in knowing for _ in found.wanted]
        known.asked.heard.on_expected(each)
        for who, (reading, own) in knowing.items():
            for name in found.wanted:
                own.asked.heard.on_stage(PREPARING)
                with found.engine.scope():
                    made, classes = _attacks_by(found, reading(name), name, own)
                attacks += [replace(attack, knows=who) for attack in made]
        attacks += attack_everybody(one, found.attributes) if one else []
        rows = joined.count
    told = [f"{name}: attacks count the values of all rows of a person; {OF_SETS}" for name in found.attributes]
    return Attacks(rows, classes, tuple(attacks), (*told, *found.warnings()))


def _knowing(
    found: PublishedTables, joined: JoinedTables, reading: OneRow | None
) -> Iterator[tuple[str, Callable[[str], Subject]]]:
    """Who attacks, and what they see of a sensitive column: by all rows of one table, or of all, or by one row."""
    if reading is not None:
        people = [table.name for table in joined.tables if table.name in reading.of_people]
        others = [table.name for table in joined.tables if table.name not in reading.of_people]
        for name in others or [""]:
            row = f"one row of {name}"
            yield " and ".join([*people, *([row] if name else [])]), reading.knowing(filter(None, [name])).subject
        return
    knowing = {table.name: [table.name] for table in found.tables if table.labels}
    for who, tables in {**knowing, ALL: [table.name for table in found.tables]}.items():
        yield who, partial(joined.seen, joined.people(tables))


def _attacks_by(found: PublishedTables, subject: Subject, name: str, known: Knowledge) -> tuple[list[Attack], int]:
    """The attacks on a sensitive column by who sees this of people, and how many classes that tells apart."""
    engine = found.engine
    with ExitStack() as stack:
        counts = stack.enter_context(counted(engine, subject, name))
        columns = Columns(subject.labels, {name: found.policy.sensitive[name]} if name else {})
        one = {name: SecretColumn(found.attributes.get(name, ROWS_ALONE), found.wanted[name], counts)}
        table = AttackedTable(engine, stack, columns, known, one)
        made = [attack for attack in attacks_on(table) if bool(attack.sensitive) is bool(name)]
        classes = engine.count(table.classes)
        engine.drop(*table.made)
        return made, classes


def _refuse(engine: Engine, columns: Columns, known: Knowledge) -> None:
    given, sets = known.given, [name for name, setting in columns.sensitive.items() if setting.set]
    asked = [(kind, kind.key or kind.people) for kind in ATTACKERS if (kind.key or kind.people) in given]
    problems = [*known.problems(), *request_problems(columns.require, columns.sensitive)]
    if not columns.sensitive:
        looking = [key for kind, key in asked if kind.of_values and key == kind.people]
        problems += [Problem(key, "needs a sensitive attribute") for key in looking]
    says = ("needs a policy, which says what labels stand for", "give --policy")
    if columns.pair:
        says = ("finds people by labels, and a pair of tables has none", "leave it out")
    problems += [Problem(key, *says) for kind, key in asked if kind.needs_policy(columns)]
    for kind, _ in asked:
        problems += kind.problems(engine, columns, known)
    what = f"takes one value a row, and {', '.join(sets)} has sets"
    problems += [Problem(key, what) for kind, key in asked if sets and kind.one_value]
    refuse(problems)


def _with_population(
    engine: Engine, columns: Columns, required: Mapping[str, Sequence[Requirement]], known: Knowledge
) -> Knowledge:
    """With the population that a requirement names, and its name where it is that which attackers have."""
    names = sorted({one.named_population for required_of in required.values() for one in required_of} - {""})
    for name in names if columns.axes else []:
        people = resolve_source(engine, name, columns.folder, "require.population")
        if known.people.get("population", people) == people:
            return replace(known, people={**known.people, "population": people}, promised_population=name)
    return known


def _judged(attacks: Sequence[Attack], lost: Mapping[str, Lost]) -> tuple[Iterable[Attack], Iterable[str]]:
    """The attacks, without a verdict if none of their people stands in a class, and warnings of such people.

    Of people who need not be in the table, only where nobody is.
    """
    found, lines = [], []
    for attack in attacks:
        people = lost.get(ATTACKER_OF[attack.name].people)
        found.append(attack.without_people(people.people) if people and people.everybody else attack)
    for key in (key for key in _PEOPLE if key in lost):
        by_key = [one for one in found if key == ATTACKER_OF[one.name].key == ATTACKER_OF[one.name].people]
        no_class = max((attack.figures.get("no_class", 0) for attack in by_key), default=0)
        if lost[key].everybody or (key not in _ANYBODY and (lost[key].lost or no_class)):
            lines.append(lost[key].line(key, no_class))
    return found, lines


def _of_sets(engine: Engine, secrets: Mapping[str, SecretColumn]) -> Iterator[str]:
    """What is to be said of columns of sets, and of those that look like it."""
    for name, secret in secrets.items():
        if secret.attribute.of_sets:
            yield f"{name}: attacks count the members of its sets; {OF_SETS}"
        elif name and (sets := find_sets(engine, secret.counts.classes.totals, secret.attribute.type)):
            yield f"{name}: {sets}"
