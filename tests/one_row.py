"""Who knows one row of a person: the worlds that published tables allow them, each counted.

They know everybody's row in the table of people, if there is one, and of the person sought one row of another table
with those that it belongs to. A world gives everybody a pseudonym whose labels cover their row in the table of people,
and the person sought one with a row whose labels cover the row that is known.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests import worlds
from tests.running import schemas
from tests.running.schemas import Node, Tree

#: A row as it is known, or shown: the table of each row from the person's own to it, and what its column has.
Path = tuple[tuple[str, Any], ...]


def rows_of(tree: Tree, above: Path = ()) -> Iterator[tuple[Path, Node]]:
    """All rows, each with what its path has."""
    for name, nodes in tree.items():
        for node in nodes:
            path = (*above, (name, node[1]))
            yield path, node
            yield from rows_of(node[3], path)


def covers(label: Path, known: Path) -> bool:
    """Whether a row that shows this may be one that is known."""
    return [name for name, _ in label] == [name for name, _ in known] and all(
        shown is None or shown[0] <= value <= shown[1] for (_, shown), (_, value) in zip(label, known, strict=True)
    )


def surest(people: Mapping[Any, Tree], shown: Mapping[Any, Tree], of_people: Sequence[str]) -> dict[Any, Fraction]:
    """What who knows one row is sure of at most, by sensitive column: of a value in any row, and of that row (`each`).

    Tables `of_people` have one row of everybody. Rows are known to be published by their numbers.
    """
    own = {n: [(path, node) for path, node in rows_of(tree)] for n, tree in shown.items()}
    numbers = {node[0]: n for n, rows in own.items() for _, node in rows}
    published = {p: tree for p, tree in people.items() if any(node[0] in numbers for _, node in rows_of(tree))}
    alike = {p: {n: 1 for n in shown if _alike(shown[n], tree, of_people)} for p, tree in published.items()}
    found: dict[Any, Fraction] = defaultdict(Fraction)
    for person, tree in published.items():
        rows = {path for path, node in rows_of(tree) if node[0] in numbers and path[0][0] not in of_people}
        for known in (None, *rows):
            fits = {n: 1 for n in alike[person] if known is None or any(covers(path, known) for path, _ in own[n])}
            sure: Counter[Any] = Counter()
            for n, share in worlds.shares({**alike, person: fits}, person).items():
                for value in {(path[-1][0], node[2]) for path, node in own[n] if node[2]}:
                    sure[value] += share
                like = [node[2] for path, node in own[n] if known and covers(path, known) and node[2]]
                for value in like:
                    sure["each", known[-1][0] if known else "", value] += share / len(like)
            for value, share in sure.items():
                found[value[:-1]] = max(found[value[:-1]], share)
    return found


def _alike(shown: Tree, known: Tree, of_people: Sequence[str]) -> bool:
    return all(covers(((name, shown[name][0][1]),), ((name, known[name][0][1]),)) for name in of_people)


def policy_of(names: Sequence[str], **changes: Any) -> dict[str, Any]:
    """A policy of these tables against who knows one row."""
    policy = schemas.policy_of(names, **{"known": 1, **changes})
    for name in names:
        table = policy["tables"][name]
        ordered = table.pop("order", None)
        table.pop("rows", None)
        table["identifiers"] = [ordered] if ordered else []
    del policy["algorithm"]
    return policy


def published(con: Any, names: Sequence[str]) -> dict[Any, Tree]:
    """The rows of each pseudonym, with their labels (low, high)."""
    below: dict[Any, dict[str, list[Node]]] = defaultdict(dict)
    for name in (name for name in names if name in schemas.OF_STAYS):
        label = "NULL, NULL" if name == "labs" else "age_min, age_max"
        for no, stay, *bounds, value in con.execute(
            f"SELECT no, stay, {label}, value FROM published.{name}"
        ).fetchall():
            below[stay].setdefault(name, []).append((no, _label(bounds), value, {}))
    found: dict[Any, dict[str, list[Node]]] = defaultdict(dict)
    for name in (name for name in names if name not in schemas.OF_STAYS):
        owner, value = schemas.TABLES[name]["person"], "''" if name == "patients" else "value"
        key = "stay" if name == "stays" and {*schemas.OF_STAYS} & {*names} else "NULL"
        shown = f"SELECT {owner}, no, age_min, age_max, {value}, {key} FROM published.{name}"
        for who, no, *bounds, known, stay in con.execute(shown).fetchall():
            found[who].setdefault(name, []).append((no, _label(bounds), known, below.get(stay, {})))
    return found


def _label(bounds: Sequence[Any]) -> Any:
    return None if bounds[0] is None else tuple(bounds)


def labelled(rng: random.Random, people: Mapping[int, Tree]) -> dict[int, Tree]:
    """A release of people with `patients`: some classes, labels of rows that are cut at random, and some wider ones."""
    order = sorted(people, key=lambda person: people[person]["patients"][0][1])
    cuts = sorted({0, len(order), *(rng.sample(range(len(order)), 1) if rng.random() < 0.5 else ())})
    found: dict[int, Tree] = {}
    for low, high in pairwise(cuts):
        members = order[low:high]
        ages = [people[person]["patients"][0][1] for person in members]
        label, told = (min(ages), max(ages)), dict[Any, list[Any]]()
        for person in members:
            ((no, *_),) = people[person]["patients"]
            others = {name: nodes for name, nodes in people[person].items() if name != "patients"}
            found[person] = {"patients": [(no, label, "", {})], **_relabelled(rng, others, (), told)}
    return found


def _relabelled(rng: random.Random, tree: Tree, above: Path, told: dict[Any, list[Any]]) -> dict[str, list[Node]]:
    """The rows with a label for each, of those that cut the line for rows of the same path."""
    found: dict[str, list[Node]] = {}
    for name, nodes in tree.items():
        labels = told.setdefault((above, name), _cut(rng))
        for no, age, value, below in nodes:
            label = None if name == "labs" else next(one for one in labels if one[0] <= age <= one[1])
            path = (*above, (name, label))
            found.setdefault(name, []).append((no, label, value, _relabelled(rng, below, path, told)))
    return found


def _cut(rng: random.Random) -> list[tuple[int, int]]:
    cuts = sorted({0, 8, *rng.sample(range(1, 8), rng.randrange(3))})
    found = [(low, high - 1) for low, high in pairwise(cuts)]
    if len(found) > 1 and rng.random() < 0.2:
        found[1] = (found[1][0] - 1, found[1][1])
    return found


def publish(con: Any, names: Sequence[str], shown: Mapping[int, Tree]) -> None:
    """Write the tables of a release as a run would."""
    made = {"patients": "who INT", "stays": "who INT, stay INT, value VARCHAR", "orders": "buyer INT, value VARCHAR"}
    made |= {"visits": "who INT, value VARCHAR", "labs": "stay INT, value VARCHAR", "scans": "stay INT, value VARCHAR"}
    con.execute("CREATE SCHEMA IF NOT EXISTS published")
    for name in names:
        bounds = "" if name == "labs" else ", age_min INT, age_max INT"
        con.execute(f"CREATE OR REPLACE TABLE published.{name} (no INT, {made[name]}{bounds})")
    for person, tree in shown.items():
        _insert(con, names, tree, 100 - person)


def _insert(con: Any, names: Sequence[str], tree: Tree, owner: int) -> None:
    for name, nodes in tree.items():
        for no, label, value, below in nodes:
            key = [no] if name == "stays" else []
            row = [no, owner, *key, *([value] if name != "patients" else []), *(label if name != "labs" else ())]
            con.execute(f"INSERT INTO published.{name} VALUES ({', '.join('?' * len(row))})", row)
            _insert(con, names, below, no)
