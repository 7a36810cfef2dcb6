"""The attack of those who know one row of everybody, on tables that protect against one row of one person.

Nothing is promised against them. They know everybody's rows in the tables of people, and of each one row more: that
which fewest others show. All ways to give the people of a class the pseudonyms of the class are equally likely in which
everybody has one that shows what is known of them. They are counted, person by person, by the pseudonyms that are
taken; so classes of a few people alone are tried, and how many those are is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import accumulate

from ldiv_db.attacking.base import Attacker
from ldiv_db.attacking.gains import UNIT, Attack, gain_of
from ldiv_db.auditing.joined_tables import value_of, with_column
from ldiv_db.auditing.one_row import OneRow
from ldiv_db.database.engine import Engine
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.requirements import Attribute

#: The most people of a class that is tried, and so many sets of pseudonyms that are taken in all, about.
_MOST, _SETS = 12, 4_000_000


class OneRowOfEverybody(Attacker):
    """The attack's name and words: it is made of tables, by those who know one row."""

    names = ("one row of everybody",)
    key = "one row of everybody"


def attack_everybody(reading: OneRow, attributes: Mapping[str, Attribute]) -> Iterator[Attack]:
    """The attack on each sensitive column of any table."""
    engine = reading.joined.engine
    flow = EngineFlow(engine, "attacking/everybody", people=reading.people, shown=reading.shown, unit=UNIT)
    with engine.scope():
        told, numbered = flow.step("told", "list_told"), flow.step("numbered", "number_people")
        most = _most_people(engine, numbered)
        flow.step("fits", "list_fits", most=most)
        counted = _counted(flow, most)
        for name in attributes if counted else ():
            own = with_column(reading.joined.tables, name)
            assert own is not None and told  # noqa: S101 - attributes are those of the tables
            rows = {"rows": reading.joined.rows[own.name], "value": value_of(own, name)}
            found = flow.record("find_surest", counted=counted, **rows)
            gain = gain_of("posterior, one row of everybody known", Fraction(int(found["largest"]), UNIT), None)
            figures = {"people_tried": found["people"], "people": engine.count(numbered), "one_value": found["sure"]}
            yield Attack(OneRowOfEverybody.names[0], name, (gain,), figures).counting_people()


def _most_people(engine: Engine, numbered: Relation) -> int:
    """The most people of classes that are tried: their sets of pseudonyms, two to their number, are not too many."""
    sizes = sorted((int(size), count) for size, count in engine.tally(numbered, "size") if size <= _MOST)
    sets = accumulate(count * 2**size for size, count in sizes)
    return max((size for (size, _), made in zip(sizes, sets, strict=True) if made <= _SETS), default=0)


def _counted(flow: EngineFlow, most: int) -> Relation | None:
    """(class, one, other, ways) of all classes of so many people; None if there are none."""
    engine, before, after = flow.engine, dict[int, Relation](), dict[int, Relation]()
    if not engine.count(flow["fits"]):
        return None
    before[0] = flow.step("ways", "begin_ways", all=False, size=0)
    for one in range(1, most):
        before[one] = flow.step("ways", "place_person", ways=before[one - 1], one=one, back=False)
    for one in range(most, 0, -1):
        after[one] = flow.step("ways", "begin_ways", all=True, size=one)
        if one < most:
            further = flow.step("ways", "place_person", ways=after[one + 1], one=one + 1, back=True)
            engine.extend(after[one], further)
    first = flow.step("counted", "count_ways", before=before[0], after=after[1], one=1)
    for one in range(2, most + 1):
        engine.extend(first, flow.step("more", "count_ways", before=before[one - 1], after=after[one], one=one))
    return first
