"""Small random schemas, their releases, and every world that these allow to who knows everything but the values."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb
import tables

from tests import worlds

#: A row: its number, its quasi-identifier or label, its sensitive value, and the rows that belong to it, by table.
Node = tuple[int, Any, str, dict[str, list[Any]]]
#: The rows of a person, by table.
Tree = Mapping[str, Sequence[Node]]
_AGED = {"quasi_identifiers": {"age": {"numeric": True}}}
_VALUED = _AGED | {"sensitive": ["value"]}
_BY_DAY = {"order": "day", "identifiers": ["day"]}
TABLES: dict[str, dict[str, Any]] = {
    "patients": {"person": "who", **_AGED},
    "stays": {"person": "who", "key": "stay", **_BY_DAY, **_VALUED},
    "labs": {"parent": {"stay": "stays"}, "sensitive": ["value"]},
    "scans": {"parent": {"stay": "stays"}, "rows": "together", **_VALUED},
    "visits": {"person": "who", "rows": "together", **_VALUED},
    "orders": {"person": "buyer", **_BY_DAY, **_VALUED},
}
CHOICES = (
    ("patients", "stays", "labs"), ("patients", "stays"), ("stays", "labs"), ("stays",), ("patients", "orders"),
    ("patients", "stays", "orders"), ("patients", "visits"), ("stays", "scans"), ("stays", "labs", "visits"),
)  # fmt: skip
#: The tables whose rows belong to those of stays, and those whose rows stand together.
OF_STAYS, TOGETHER = ("labs", "scans"), ("scans", "visits")


def drawn(
    rng: random.Random, names: Sequence[str], people: int, most: int = 3, values: str = "abcde"
) -> dict[int, Tree]:
    """The rows of so many people, up to `most` of each table but the first, and one of that if it has one a person."""
    number = iter(range(10**6))

    def node(name: str) -> Node:
        own = [other for other in OF_STAYS if name == "stays" and other in names]
        below = {other: nodes(other, rng.randrange(most)) for other in own}
        return next(number), rng.randrange(8), rng.choice(values), below

    def nodes(name: str, count: int) -> list[Node]:
        """The rows in the order by which some of them are left out."""
        made = [node(name) for _ in range(count)]
        return sorted(made, key=lambda one: one[1]) if name in TOGETHER else made

    found = {}
    for person in range(people):
        least = 0 if "patients" in names else 1
        own = [name for name in names if name not in OF_STAYS]
        counts = {name: 1 if name == "patients" else rng.randrange(least, most + 1) for name in own}
        found[person] = {name: nodes(name, count) for name, count in counts.items()}
    return found


def fill(con: duckdb.DuckDBPyConnection, names: Sequence[str], people: Mapping[int, Tree]) -> None:
    """The tables of all rows, those of people in any order; keys say nothing."""
    con.execute("CREATE SCHEMA IF NOT EXISTS published")
    made = {
        "patients": "no INT, who INT, age INT",
        "stays": "no INT, who INT, stay VARCHAR, day INT, age INT, value VARCHAR",
        "labs": "no INT, stay VARCHAR, value VARCHAR",
        "orders": "no INT, buyer INT, day INT, age INT, value VARCHAR",
        "scans": "no INT, stay VARCHAR, age INT, value VARCHAR",
        "visits": "no INT, who INT, age INT, value VARCHAR",
    }
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for person, tree in people.items():
        for name, nodes in tree.items():
            for day, (no, age, value, below) in enumerate(nodes):
                rows[name].append(
                    {
                        "patients": (no, person, age),
                        "stays": (no, person, f"s{no}", day, age, value),
                        "orders": (no, person, day, age, value),
                        "visits": (no, person, age, value),
                    }[name]
                )
                rows["labs"] += [(lab, f"s{no}", result) for lab, _, result, _ in below.get("labs", ())]
                rows["scans"] += [(scan, f"s{no}", *known) for scan, *known, _ in below.get("scans", ())]
    for name in names:
        columns = dict(column.split() for column in made[name].split(", "))
        tables.fill(con, name, columns, random.Random(1).sample(rows[name], len(rows[name])))


def policy_of(names: Sequence[str], **changes: Any) -> dict[str, Any]:
    """A policy of these tables, which keeps the numbers of rows, so that a test knows whose they are."""
    return {
        "individual": "who",
        "tables": {
            name: copy.deepcopy(TABLES[name]) | {"source": name, "keep": ["no"], "target": target(name)}
            for name in names
        },
        "require": [{"frequency": 2}], "algorithm": "topdown", "output": {"bounds": True}, "over_time": "independent",
        "seed": 7, **changes,
    }  # fmt: skip


def target(name: str) -> dict[str, str]:
    return {"table": f"published.{name}", "if_exists": "replace"}


def published(con: duckdb.DuckDBPyConnection, names: Sequence[str]) -> dict[int, Tree]:
    """The rows of each pseudonym, in the order that is published, with their labels (low, high)."""
    of_stays: dict[int, dict[str, list[Node]]] = defaultdict(dict)
    for name in (name for name in OF_STAYS if name in names):
        label = "NULL, NULL" if name == "labs" else "age_min, age_max"
        rows = con.execute(f"SELECT no, stay, {label}, value FROM published.{name}").fetchall()
        for no, stay, low, high, value in rows:
            of_stays[stay].setdefault(name, []).append((no, None if low is None else (low, high), value, {}))
    found: dict[int, dict[str, list[Node]]] = defaultdict(dict)
    for name in (name for name in names if name not in OF_STAYS):
        owner = TABLES[name]["person"]
        value = "''" if name == "patients" else "value"
        key = "stay" if name == "stays" and {*OF_STAYS} & {*names} else "0"
        order = "position" if "order" in TABLES[name] else "no"
        shown = f"SELECT {owner}, no, age_min, age_max, {value}, {key} FROM published.{name} ORDER BY {order}"
        for who, no, low, high, known, stay in con.execute(shown).fetchall():
            below = of_stays[stay] if name == "stays" else {}
            found[who].setdefault(name, []).append((no, (low, high), known, below))
    return found


def shape_of(tree: Tree) -> Any:
    """How many rows of each table there are, and of each row's own."""
    return sorted((name, [shape_of(below) for *_, below in nodes]) for name, nodes in tree.items() if nodes)


def busiest_first(tree: Tree) -> Tree:
    """The stays of a person with those first that have the most labs, of equals in their order."""
    stays = sorted(tree.get("stays", ()), key=lambda stay: -len(stay[3].get("labs", ())))
    return {**tree, "stays": stays}


def rows_of(tree: Tree) -> Iterator[tuple[str, Node]]:
    for name, nodes in tree.items():
        for one in nodes:
            yield name, one
            yield from rows_of(one[3])


def covers(labels: Tree, known: Tree, free: Collection[str] = ()) -> bool:
    """Whether the rows of a pseudonym may be some of a person's, each with a label that covers it.

    They are in their order, but for those of tables that are `free`.
    """
    return all(_fits(nodes, known.get(name, ()), name in free, free) for name, nodes in labels.items() if nodes)


def _fits(nodes: Sequence[Node], known: Sequence[Node], is_free: bool, free: Collection[str]) -> bool:
    """Whether each row may be one of those known after that of the row before, or any other if that `is_free`."""
    if not nodes:
        return True
    (_, label, _, below), *others = nodes
    return any(
        (label is None or label[0] <= age <= label[1])
        and covers(below, own, free)
        and _fits(others, [*known[: place if is_free else 0], *known[place + 1 :]], is_free, free)
        for place, (_, age, _, own) in enumerate(known)
    )


def posteriors(
    people: Mapping[int, Tree], shown: Mapping[int, Tree], free: Collection[str] = ()
) -> dict[tuple[int, str, str], Fraction]:
    """The share of the worlds in which a person has a value in some published row of a table.

    Rows of tables that are `free` are not in their order.
    """
    numbers = {no: pseudonym for pseudonym, tree in shown.items() for _, (no, *_) in rows_of(tree)}
    named = {p: [numbers[no] for _, (no, *_) in rows_of(tree) if no in numbers] for p, tree in people.items()}
    true = {person: own[0] for person, own in named.items() if own}  # who gave up all rows is not there
    shapes = {pseudonym: shape_of(tree) for pseudonym, tree in shown.items()}
    # Who knows how many rows everybody has, and the method, knows how many everybody publishes.
    fits = {
        person: {n: 1 for n in shown if shapes[n] == shapes[pseudonym] and covers(shown[n], people[person], free)}
        for person, pseudonym in true.items()
    }
    values = {n: {(name, value) for name, (_, _, value, _) in rows_of(tree) if value} for n, tree in shown.items()}
    return {(who, *value): share for (who, value), share in worlds.posteriors(fits, values).items()}
