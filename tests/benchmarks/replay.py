"""`python -m tests.benchmarks.replay`: what releases of small tables tell to who replays the method, seed known.

Every assignment of a few values to a few people is a table; the program is run on all of them. Who sees a release, and
knows the people, the policy and the seed, is left with the assignments that give it.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import ldiv_db
from ldiv_db.database.connections import open_database
from ldiv_db.database.context import working_engine
from ldiv_db.database.engine import Engine
from ldiv_db.database.errors import InfeasibleError, LdivError
from ldiv_db.database.names import Relation
from ldiv_db.policy.reading import parse_policy
from ldiv_db.running.replay_methods import MadeRelease, Method, ReplaySubject, method_of
from tests.benchmarks.command import AsJson, Columns, command_of, refuse_unknown, show

#: What is measured: the algorithm with its options, by the name that the table has for it.
VARIANTS: dict[str, dict[str, Any]] = {
    "auto": {"name": "auto"},
    "fast": {"name": "fast"},
    "bsgi greedy": {"name": "bsgi", "select": "greedy"},
    "bsgi refine": {"name": "bsgi"},
    "bsgi bisect": {"name": "bsgi", "select": "bisect"},
    "topdown": {"name": "topdown"},
    "mondrian": {"name": "mondrian"},
    "peel": {"name": "peel"},
    "stratified": {"name": "stratified"},
    "cuts none": {"name": "cuts", "scheme": "none"},
    "cuts vioRec": {"name": "cuts"},
    "cuts allRec": {"name": "cuts", "scheme": "allRec"},
    "cuts vioSA": {"name": "cuts", "scheme": "vioSA"},
    "cuts allSA": {"name": "cuts", "scheme": "allSA"},
    "incognito": {"name": "incognito"},
    "tds": {"name": "tds"},
    "annealing": {"name": "annealing", "steps": 20},
    "tp": {"name": "tp"},
    "tp_plus": {"name": "tp_plus"},
    "hilbert": {"name": "hilbert"},
    "anatomy": {"name": "anatomy"},
    "decomposition": {"name": "decomposition"},
    "decomposition_plus": {"name": "decomposition_plus"},
    "auto, suppression": {"name": "auto"},
    "bsgi, suppression": {"name": "bsgi"},
    "topdown, suppression": {"name": "topdown"},
    "mondrian, suppression": {"name": "mondrian"},
    "peel, suppression": {"name": "peel"},
}
#: Variants whose names end like this may leave out this share of the rows.
_BUDGET, _SHARE = ", suppression", 0.25
#: l, the values that are assigned in all ways, and whether several people are of an age.
TABLES = ((2, "AABBCC", False), (2, "AAABBC", True), (2, "AAAABBBB", False), (3, "AABBCC", False), (3, "AABBCC", True))
_TREE = {"taxonomy": {"ranges": [5, 10, 20, 40]}}
_TAKES_TREES = ("cuts", "incognito", "tds", "annealing")
_ANATOMISED = ("anatomy", "decomposition", "decomposition_plus")
_MOVES = {"world_no": "BIGINT", "row_no": "BIGINT", "payload_no": "BIGINT"}


@dataclass(frozen=True)
class Case:
    """One algorithm on all tables of some values; `draw` is the seed of people's ages."""

    variant: str
    l: int
    values: str
    repeated: bool
    draw: int

    @property
    def ages(self) -> list[int]:
        coins, people = random.Random(self.draw), len(self.values)
        span = range(20, 20 + people) if self.repeated else range(20, 60)
        return sorted(coins.choices(span, k=people) if self.repeated else coins.sample(span, people))

    @property
    def policy(self) -> dict[str, Any]:
        algorithm = VARIANTS[self.variant]
        document = {"source": "people", "algorithm": algorithm, "seed": 0, "key": "id"}
        if algorithm["name"] in _ANATOMISED:
            sensitive = {"value": {"l": self.l}}
            return document | {"target": {"prefix": "r"}, "quasi_identifiers": ["age"], "sensitive": sensitive}
        del document["key"]
        require = {"unique_distinct" if algorithm["name"] == "bsgi" else "frequency": self.l}
        left_out: dict[str, Any] = {"suppressed": "unknown"} if algorithm.get("scheme") in ("vioSA", "allSA") else {}
        left_out |= {"suppression": _SHARE} if self.variant.endswith(_BUDGET) else {}
        age = _TREE if algorithm["name"] in _TAKES_TREES else {"numeric": True}
        columns = {"identifiers": ["id"], "quasi_identifiers": {"age": age}, "sensitive": ["value"]}
        return document | columns | left_out | {"target": "r", "require": [require]}


def measure_case(case: Case) -> dict[str, Any]:
    """How much is told of all tables of a case: shares of tables, and posteriors of people's likeliest values."""
    with open_database(":memory:") as connection:
        worlds = sorted(set(itertools.permutations(case.values)))
        told = _told(_releases(connection, case, worlds))
    found: dict[str, Any] = {"variant": case.variant, "l": case.l, "values": case.values, "repeated": case.repeated}
    return found | {"draw": case.draw, "tables": len(worlds), **told}


def _releases(connection: Any, case: Case, worlds: Sequence[tuple[str, ...]]) -> dict[str, list[tuple[str, ...]]]:
    """The assignments that give each release; those that give none are left out."""
    left: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    with working_engine(connection) as engine:
        method, payloads = _method(engine, case, worlds)
        moves = [
            (number, row, payloads[value]) for number, world in enumerate(worlds) for row, value in enumerate(world, 1)
        ]
        loaded = engine.load("moves", _MOVES, moves)
        for number, world in enumerate(worlds):
            with engine.scope():
                try:
                    made = method.make(method.people.world(loaded, number), 0)
                except InfeasibleError:
                    continue
                left[_text(engine, made)].append(world)
    return left


def _method(engine: Engine, case: Case, worlds: Sequence[tuple[str, ...]]) -> tuple[Method, Mapping[str, int]]:
    """The method on the first of the tables that can be published, and the number of each value's payload."""
    for world in worlds:
        columns = {"id": "INTEGER", "age": "INTEGER", "value": "VARCHAR"}
        people = engine.load("people", columns, list(zip(range(len(world)), case.ages, world, strict=True)))
        engine.create(Relation(("people",)), "database/list_rows", replace=True, rows=people, columns=[])
        engine.drop(people)
        try:
            ldiv_db.run(engine.connection, case.policy)
        except InfeasibleError:
            continue
        table = Relation(("r",)) if isinstance(case.policy["target"], str) else None
        subject = ReplaySubject(engine, Path(), "r", table, parse_policy(case.policy))
        numbers = {value: number for number, value in enumerate(sorted(set(case.values)), 1)}
        return method_of(subject, 0), numbers
    raise LdivError(f"{case.variant} publishes none of the tables of {case.values}")


def _text(engine: Engine, made: MadeRelease) -> str:
    rows = [engine.rows("database/list_rows", rows=one.table, columns=one.columns) for one in made.tables]
    return repr([sorted(table, key=repr) for table in rows])


def _told(left: Mapping[str, Sequence[tuple[str, ...]]]) -> dict[str, Any]:
    """What each release says to who is left with these assignments, over all that are published."""
    published = sum(map(len, left.values()))
    certain, largest, mean = 0, 0.0, 0.0
    for worlds in left.values():
        people = [max(map(values.count, set(values))) / len(worlds) for values in zip(*worlds, strict=True)]
        certain += len(worlds) * (max(people) == 1)
        largest, mean = max(largest, *people), mean + len(worlds) * sum(people) / len(people)
    return {"published": published, "certain": certain, "largest": largest, "mean": mean / published}


# -- the command ---------------------------------------------------------------------------------------


def cases_of(variants: Sequence[str], draws: int) -> Iterator[Case]:
    """All that is measured."""
    for variant in variants:
        for number, (l, values, repeated) in enumerate(TABLES):
            for draw in range(draws):
                yield Case(variant, l, values, repeated, 100 * number + draw)


def summarised(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each variant and l: over all tables that are published."""
    rows = []
    for key in dict.fromkeys((one["variant"], one["l"]) for one in found):
        own = [one for one in found if (one["variant"], one["l"]) == key]
        published = sum(one["published"] for one in own)
        rows.append(
            {
                "variant": key[0],
                "l": key[1],
                "tables": published,
                "certain": sum(one["certain"] for one in own) / published,
                "largest": max(one["largest"] for one in own),
                "mean": sum(one["mean"] * one["published"] for one in own) / published,
            }
        )
    return rows


#: The columns of the table for people.
COLUMNS: Columns = {
    "algorithm": "{variant}",
    "l": "{l}",
    "tables": "{tables:,}",
    "somebody certain": "{certain:.2f}",
    "largest posterior": "{largest:.2f}",
    "mean posterior": "{mean:.2f}",
}


def replay(
    algorithm: Annotated[
        list[str] | None, typer.Option(help="An algorithm as the table has it; may be repeated. All if not given.")
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="How often people's ages are drawn.")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="How many processes share the work.")] = 2,
    json: AsJson = False,
) -> None:
    """Replay of releases of all tables of six and eight people: how often somebody's value becomes certain.

    \b
    Examples:
      python -m tests.benchmarks.replay
      python -m tests.benchmarks.replay --algorithm "bsgi greedy" --draws 5
    """
    refuse_unknown("--algorithm", algorithm or [], list(VARIANTS))
    found = []
    with ProcessPoolExecutor(processes) as pool:
        for one in pool.map(measure_case, cases_of(algorithm or list(VARIANTS), draws)):
            case = f"{one['variant']}, l = {one['l']}, {one['values']}"
            typer.echo(f"{case}: {one['certain']} of {one['published']}", err=True)
            found.append(one)
    show("replay, seed known", json, summarised(found), COLUMNS)


app = command_of(replay)

if __name__ == "__main__":
    app(prog_name="python -m tests.benchmarks.replay")
