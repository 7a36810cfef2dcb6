"""Which people can be in which classes, by their numbers: a transport problem, and the routes that no solution takes.

Everybody of a kind is in one of the classes that cover the kind, or in none if there are more people than rows; each
class has as many people as rows. One solution, a maximum flow, tells all of them: in its residual graph a route that it
does not take is taken by some other solution exactly if its ends lie on a common circle, in one strongly connected
component (Régin 1994, 1996).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldiv_db.database.errors import PolicyError, Problem

Route = tuple[int, int]


@dataclass(frozen=True)
class Component:
    """Kinds of people and classes that are linked: `people` by kind, `rows` by class, routes (kind, class)."""

    people: Mapping[int, int]
    rows: Mapping[int, int]
    routes: Sequence[Route]


@dataclass
class Solved:
    """The routes that no solution takes, and how many people are in components that were not solved.

    `skipped` are those of components that are too large, `contradicted` of those where rows find no people.
    """

    impossible: list[Route] = field(default_factory=list)
    skipped: int = 0
    contradicted: int = 0


def require_networkx() -> Any:
    """The library; raises PolicyError if it is not installed."""
    try:
        return importlib.import_module("networkx")
    except ModuleNotFoundError:
        raise PolicyError([Problem("counting", "needs networkx", "pip install 'ldiv-db[matching]'")]) from None


def solve(people: Mapping[int, int], rows: Mapping[int, int], routes: Sequence[Route], most: int) -> Solved:
    """The routes (kind, class) that no placing of the people on the rows takes.

    Of the components `most` routes are solved, the smallest first; people of the others stay as they are.
    """
    networkx = require_networkx()
    solved = Solved()
    for part in sorted(_components(networkx, people, rows, routes), key=lambda part: len(part.routes)):
        everybody = sum(part.people.values())
        most -= len(part.routes)
        if most < 0:
            solved.skipped += everybody
        elif (impossible := _impossible(networkx, part)) is None:
            solved.contradicted += everybody
        else:
            solved.impossible += impossible
    return solved


def _components(
    networkx: Any, people: Mapping[int, int], rows: Mapping[int, int], routes: Sequence[Route]
) -> Iterator[Component]:
    """The components of the graph of routes, in the order of their routes; kinds are positive, classes negative."""
    graph = networkx.Graph()
    graph.add_edges_from((kind, -box) for kind, box in routes)
    number = {node: i for i, part in enumerate(networkx.connected_components(graph)) for node in part}
    by_part: dict[int, list[Route]] = {}
    for kind, box in routes:
        by_part.setdefault(number[kind], []).append((kind, box))
    for part in by_part.values():
        kinds, boxes = dict.fromkeys(kind for kind, _ in part), dict.fromkeys(box for _, box in part)
        yield Component({kind: people[kind] for kind in kinds}, {box: rows[box] for box in boxes}, part)


def _impossible(networkx: Any, part: Component) -> list[Route] | None:
    """The routes of a component that no solution takes; None if there is no solution."""
    if sum(part.people.values()) < sum(part.rows.values()):
        return None
    if len(part.rows) == 1:
        return []
    flows = _flows(networkx, part)
    if sum(flows.values()) < sum(part.rows.values()):
        return None
    number = _circles(networkx, part, flows)
    return [(kind, box) for kind, box in part.routes if not flows[kind, box] and number[kind] != number[-box]]


def _flows(networkx: Any, part: Component) -> dict[Route, int]:
    """How many people each route takes in a maximum flow."""
    graph = networkx.DiGraph()
    graph.add_edges_from((("source", kind, {"capacity": people}) for kind, people in part.people.items()))
    graph.add_edges_from(((-box, "sink", {"capacity": rows}) for box, rows in part.rows.items()))
    graph.add_edges_from((kind, -box) for kind, box in part.routes)
    residual = networkx.algorithms.flow.preflow_push(graph, "source", "sink")
    return {(kind, box): residual[kind][-box]["flow"] for kind, box in part.routes}


def _circles(networkx: Any, part: Component, flows: Mapping[Route, int]) -> dict[int, int]:
    """The strongly connected component of each kind and class in the residual graph; 0 is being in no class."""
    graph = networkx.DiGraph()
    graph.add_edges_from((kind, -box) for kind, box in part.routes)
    graph.add_edges_from((-box, kind) for (kind, box), people in flows.items() if people)
    left = dict(part.people)
    for (kind, _), people in flows.items():
        left[kind] -= people
    if any(left.values()):
        graph.add_edges_from((kind, 0) for kind in left)
        graph.add_edges_from((0, kind) for kind, people in left.items() if people)
    return {node: i for i, circle in enumerate(networkx.strongly_connected_components(graph)) for node in circle}
