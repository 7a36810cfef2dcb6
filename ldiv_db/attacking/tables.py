"""Attacks on a release of several tables, by who knows people's quasi-identifiers in one of them, or in all.

Numbers in place of keys link the rows of a person. So whoever finds those who look alike in one table reads what all
tables say of them, and the classes of the attack are of people. A person has a value who has it in any row. Attacks
that are made of one value a row are not tried, nor those by the form of a table, whose rows stand by their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ldiv_db.attacking.attacks import Attacks, attacks_on
from ldiv_db.attacking.base import AttackedTable
from ldiv_db.attacking.columns import Columns
from ldiv_db.attacking.disclosure import OF_SETS
from ldiv_db.attacking.gains import Attack
from ldiv_db.attacking.question import AttackRequest, Knowledge
from ldiv_db.auditing.check_tables import PublishedTables, open_published, warn_of_tables, with_requirements
from ldiv_db.auditing.subject import counted
from ldiv_db.auditing.tables import joined_rows, seen_people, shown_people
from ldiv_db.database.context import Listener
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import refuse
from ldiv_db.database.names import Relation
from ldiv_db.policy.document import Policy
from ldiv_db.policy.reading import refuse_of_one_table
from ldiv_db.requirements import ROWS_ALONE

#: What a request says of one table, or of people as they are known in one.
_OF_ONE = (
    *("table", "qi", "sensitive", "class_column", "individual", "known", "population", "population_size", "counting"),
    *("also", "also_policies", "definetti", "sensitive_table", "group", "count", "downcoding", "targets", "control"),
    *("link_columns", "replay"),
)
#: Whoever knows the quasi-identifiers of all tables.
ALL = "all tables"


def attack_tables(engine: Engine, policy: Policy, asked: AttackRequest) -> Attacks:
    """The attacks on each sensitive column, and on people alone, by who knows one table and by who knows all.

    Raises PolicyError for what is asked of one table, and for what is not there; AuditError for rows that belong to
    nobody.
    """
    refuse_of_one_table(asked, *_OF_ONE)
    known = Knowledge(asked, threshold=asked.high_risk(policy))
    refuse(known.problems())
    folder = Path(asked.folder)
    return attack_published(
        engine, policy, open_published(engine, with_requirements(policy, asked.require), folder), known
    )


def attack_published(engine: Engine, policy: Policy, found: PublishedTables, known: Knowledge) -> Attacks:
    """The attacks on published tables, which come last by who knows all of them."""
    knowing = {table.name: [table.name] for table in found.tables if table.labels}
    knowing[ALL] = [table.name for table in found.tables]
    attacks, classes = list[Attack](), 0
    tell = (known.asked.listener or Listener()).on_stage
    with engine.scope():
        joined = joined_rows(engine, found.tables)
        for who, tables in knowing.items():
            tell(f"trying attacks by who knows {who}")
            people = shown_people(engine, (joined[one] for one in tables))
            for name in found.wanted:
                made, classes = _attacks(engine, found, joined, people, name, known)
                attacks += [replace(attack, knows=who) for attack in made]
        rows = sum(engine.count(one) for one in joined.values())
    told = [f"{name}: attacks count the values of all rows of a person; {OF_SETS}" for name in found.attributes]
    return Attacks(rows, classes, tuple(attacks), (*told, *warn_of_tables(engine, policy, found.tables)))


def _attacks(
    engine: Engine,
    found: PublishedTables,
    joined: Mapping[str, Relation],
    people: Relation,
    name: str,
    known: Knowledge,
) -> tuple[list[Attack], int]:
    """The attacks on a sensitive column by who knows what is shown of people, and how many classes that tells apart."""
    with engine.scope(), ExitStack() as stack:
        subject = seen_people(engine, found.tables, joined, people, name)
        counts = stack.enter_context(counted(engine, subject, name))
        settings = {name: found.settings[name]} if name else {}
        columns = Columns(subject.labels, subject.ids, settings)
        one = {name: found.attributes.get(name, ROWS_ALONE)}
        table = AttackedTable(engine, stack, columns, known, {name: counts}, {name: found.wanted[name]}, one)
        made = [one for one in attacks_on(table) if bool(one.sensitive) is bool(name)]
        classes = engine.count(table.classes)
        engine.drop(*table.made)
        return made, classes
