"""The three risks of the Article 29 Working Party (Opinion 05/2014, WP216): singling out, linkability, inference.

Each is tried on a sample of targets, on one of the control, and by random guesses; nothing is promised against any.

`singling_out` describes the first. Linkability puts two parts of what is known of somebody together. One attacker knows
some quasi-identifiers of a person, another one others. Each looks for the classes nearest to the part: of those whose
labels cover it the ones whose labels say most, by the share of the known values that a label covers, summed over the
part's columns. The parts are linked if exactly one class is among the nearest of both. (Anonymeter takes the nearest
row for each part, and links if it is the same: here a row is nowhere nearer than the rest of its class.) The random
guess draws two rows, which link if they are of one class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from ldiv_db.attacking.base import ABOVE, NOTHING, UNDECIDED, WITHIN, Attacker, Verdict
from ldiv_db.attacking.covering import KnownAxis
from ldiv_db.attacking.gains import Attack
from ldiv_db.attacking.matching import KEPT, prefixes_of
from ldiv_db.attacking.singling_out import KINDS, singling_out
from ldiv_db.attacking.trials import TrialPeople, inference, tried_attack, tried_on
from ldiv_db.database.errors import Problem, refuse
from ldiv_db.database.flow import EngineFlow
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import names_of

#: Distances are summed in parts of a column's known values.
_UNIT = 10**9
Parts = tuple[tuple[KnownAxis, ...], tuple[KnownAxis, ...]]


class PeopleTrial(Attacker):
    """The attacks on people that are named: on targets, who are in the release, and perhaps on a control.

    Raises PolicyError for columns that people lack, and for parts to be linked that are none.
    """

    names = (*KINDS.values(), "linkability", "inference")
    key = people = "targets"
    reads_labels = True
    one_value = True
    place = 1
    words: ClassVar = {
        "interval": "95 % interval",
        "random_interval": "95 % interval at random",
        "risk_interval": "95 % interval of the risk",
    }

    def attacks(self) -> Iterator[Attack]:
        table = self.table
        people = TrialPeople.among(table)
        parts = parts_of(people)
        with table.engine.scope():
            yield from singling_out(people)
            drawn = people.drawn()
            if parts:
                yield linkability(people, drawn, parts)
            yield from inference(people, drawn)
        for key in ("targets", "control"):
            if key in table.known.people:
                table.count_lost(key)

    @classmethod
    def verdict(cls, attack: Attack, promised: float | None, no_bound: str, threshold: float) -> Verdict:
        """The interval of 95 % against the threshold of recognition.

        A rate bounds from above the risk beyond a control. So without a control a rate within the threshold decides,
        and one above leaves open how much of it is due to being in the release.
        """
        figures, controlled, gain = attack.figures, len(attack.gains) > 1, attack.gains[-1]
        interval = figures["risk_interval" if controlled else "interval"]
        told = gain.gain is not None and interval is not None
        why = f"95 % interval {interval[0]:.3g} to {interval[1]:.3g}" if told else None
        if attack.untried is not None and attack.untried.tried == 0:
            verdict = UNDECIDED
        elif not figures["attempts"]:
            verdict = NOTHING
        elif interval is not None and interval[1] <= threshold:
            verdict = WITHIN
        else:
            verdict = ABOVE if controlled and interval is not None and interval[0] > threshold else UNDECIDED
        return Verdict(gain, threshold, verdict, why)


def parts_of(people: TrialPeople) -> Parts | None:
    """The two parts of a person: those that are asked for, or halves; None of a single quasi-identifier.

    Raises PolicyError for parts with columns that are not known, or in both parts, and for empty ones.
    """
    linked = people.table.known.asked.link_columns
    if linked is None:
        half = (len(people.axes) + 1) // 2
        halves = people.axes[:half], people.axes[half:]
        return None if not halves[1] else (_numbered(halves[0]), _numbered(halves[1]))
    asked = [names_of(part) for part in linked]
    known = {axis.name.lower(): axis for axis in people.axes}
    names = [name.lower() for part in asked for name in part]
    unknown = [name for part in asked for name in part if name.lower() not in known]
    problems = [Problem("link_columns", f"{name} is not a quasi-identifier that targets have") for name in unknown]
    if not all(asked):
        problems.append(Problem("link_columns", "takes two lists of columns", "a,b|c,d"))
    if len(set(names)) < len(names):
        problems.append(Problem("link_columns", "has a column twice"))
    refuse(problems)
    first, second = ([known[name.lower()] for name in part] for part in asked)
    return _numbered(first), _numbered(second)


def _numbered(axes: Sequence[KnownAxis]) -> tuple[KnownAxis, ...]:
    return tuple(replace(axis, number=number) for number, axis in enumerate(axes, 1))


# -- linkability ---------------------------------------------------------------------------------------


def linkability(people: TrialPeople, drawn: Relation, parts: Parts) -> Attack:
    """The attack on `drawn` people."""
    table = people.table
    flow = EngineFlow(table.engine, "attacking/linkability", classes=table.classes)
    with ExitStack() as stack:
        for place, part in zip(("first", "second"), parts, strict=True):
            side = stack.enter_context(_side(people, drawn, part))
            flow.know(**{f"{place}_{name}": found for name, found in side.items()})
        pair = tried_on(flow.rows("count_linked"))
    compared = None if people.control is None else pair
    found = tried_attack("linkability", None, "share of people linked", pair[0], people.guessed(flow), compared)
    return found.with_untried("people", sum(one.attempts for one in pair), table.engine.count(drawn))


@contextmanager
def _side(people: TrialPeople, drawn: Relation, axes: tuple[KnownAxis, ...]) -> Iterator[dict[str, Any]]:
    """Who has which cell, the nearest boxes of each, as the holder of one part finds them, and the boxes of classes."""
    table, engine = people.table, people.table.engine
    with prefixes_of(engine, table.classes, axes, drawn) as numbered, engine.scope():
        distanced = [  # spans are shares of the known values
            {"code": a.code, "table": a.table, "spans": a.spans, "codes": engine.count(a.dictionary)}
            for a in numbered.axes
        ]
        nearest = engine.load("nearest", {"cell_no": "BIGINT", "box": "BIGINT"}, [])
        tried = engine.load("tried", {"cell_no": "BIGINT"}, [])
        for found, part, _ in numbered.drawn(table.budget // KEPT):
            flow = found.flow("attacking/linkability", last=numbered.last, unit=_UNIT)
            flow.insert(nearest, "find_nearest", axes=distanced)
            engine.extend(tried, part, "cell_no")
        cells = engine.select_among("kept", numbered.cells, tried, "cell_no")
        placed = people.placed(drawn, cells, axes)
        yield {"people": placed, "nearest": nearest, "boxes": numbered.boxes, "last": numbered.last}
