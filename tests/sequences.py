"""Random tables that change from release to release, with people who come, leave and change."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tables import fill


@dataclass
class Sequence:
    """A table `people` with the column `person` that tells everybody apart, and sensitive attributes s1.. ."""

    draw: random.Random
    ls: list[int]
    domains: list[list[str]]
    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    gone: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    published: set[int] = field(default_factory=set)
    next: int = 1

    @property
    def names(self) -> list[str]:
        return [f"s{i}" for i in range(1, len(self.ls) + 1)]

    def add(self, count: int) -> None:
        for _ in range(count):
            values = tuple(self.draw.choice(domain) for domain in self.domains)
            self.rows[self.next] = (self.draw.randrange(9), *values)
            self.next += 1

    def step(self) -> None:
        """Some come, some leave, some change, some come back."""
        draw = self.draw
        for key in draw.sample(sorted(self.rows), min(len(self.rows) // 2, draw.randrange(4))):
            self.gone[key] = self.rows.pop(key)
        for key in draw.sample(sorted(self.rows), min(len(self.rows), draw.randrange(3))):
            values = tuple(draw.choice(domain) for domain in self.domains)
            self.rows[key] = (self.rows[key][0], *values)
        if self.gone and draw.random() < 0.3:
            key = draw.choice(sorted(self.gone))
            self.rows[key] = self.gone.pop(key)
        self.add(draw.choice([0, 1, 2, 5, 9]))

    def place(self, con: Any, name: str = "people") -> None:
        types = {"id": "INTEGER", "person": "INTEGER", "town": "INTEGER"} | dict.fromkeys(self.names, "VARCHAR")
        rows = [(key, key, *values) for key, values in self.rows.items()]
        self.draw.shuffle(rows)
        fill(con, name, types, rows)

    def policy(self, prefix: str = "pub.p", **algorithm: Any) -> dict[str, Any]:
        return {
            "source": "people",
            "target": {"prefix": prefix},
            "key": "id",
            "quasi_identifiers": ["person", "town"],
            "sensitive": {name: {"l": least} for name, least in zip(self.names, self.ls, strict=True)},
            "algorithm": {"name": "decomposition_plus", "primary": "s1", **algorithm},
            "seed": self.draw.randrange(99),
        }

    def policy_of_classes(self, prefix: str = "pub.c") -> dict[str, Any]:
        """One table a release, by BSGI on the first attribute, or on the first two."""
        secret = self.names[: 1 + (self.draw.random() < 0.3)]
        return {
            "source": "people",
            "target": {"prefix": prefix},
            "key": "id",
            "quasi_identifiers": {"person": {"numeric": True}, "town": {"numeric": True}},
            "sensitive": secret,
            "identifiers": [name for name in self.names if name not in secret],
            "require": [{"unique_distinct": self.ls[0]}],
            "algorithm": {"name": "bsgi", "residue": self.draw.choice(["incorporate", "suppress"])},
            "seed": self.draw.randrange(99),
        }


#: A table `people` of two sensitive attributes, s1 and s2.
COLUMNS = {"id": "INTEGER", "person": "INTEGER", "s1": "VARCHAR", "s2": "VARCHAR"}


def policy_of_pairs(**algorithm: Any) -> dict[str, Any]:
    """A series of `people` by groups, in which s1 has three values and s2 two."""
    return {
        "source": "people",
        "target": {"prefix": "pub.p"},
        "key": "id",
        "quasi_identifiers": ["person"],
        "sensitive": {"s1": {"l": 3}, "s2": {"l": 2}},
        "algorithm": {"name": "decomposition_plus", **algorithm},
    }


def random_sequence(seed: int, most: int = 40) -> Sequence:
    draw = random.Random(seed)
    l = draw.choice([2, 2, 3, 4])
    ls = [l, *(draw.randint(1, l) for _ in range(draw.randint(1, 4)))]
    domains = [[f"{chr(97 + i)}{j}" for j in range(draw.randint(2 * l, 3 * l))] for i in range(len(ls))]
    # Some values are much more frequent than others.
    domains = [[*domain, *[domain[0]] * draw.randint(0, len(domain))] for domain in domains]
    found = Sequence(draw, ls, domains)
    found.add(draw.randint(3 * l, most))
    return found
