"""Refinement by counting: against all placings of a few people in overlapping classes, and where it tells nothing."""

import random
from collections import Counter
from fractions import Fraction

import pytest
from strategies import draws, search, seeds
from tables import fill

import ldiv_db
from ldiv_db.attacking import counting
from ldiv_db.attacking.gains import Untried
from ldiv_db.attacking.matching import BUDGET
from ldiv_db.attacking.transport import Placing, circles


def policy(**require):
    keys = {"quasi_identifiers": {"a": {"numeric": True}}, "sensitive": ["s"], "require": [require or {"k": 1}]}
    return {"source": "x", "target": "y", "output": {"class_id": True}, **keys}


def place(con, classes):
    """The table of classes {(low, high, number): values}."""
    rows = [(number, f"[{low} .. {high}]", v) for (low, high, number), values in classes.items() for v in values]
    fill(con, "t", {"class_id": "INTEGER", "a": "VARCHAR", "s": "VARCHAR"}, rows)


def attacked(con, ages, **require):
    fill(con, "everybody", {"a": "INTEGER"}, [(age,) for age in ages])
    result = ldiv_db.attack(con, "t", policy=policy(**require), population="everybody", counting=True)
    (attack,) = [attack for attack in result.attacks if attack.name == "counting"]
    return attack


def placings(fits, rows):
    """Every way to put each person in one class that fits, or in none, so that all classes are full."""
    if not fits:
        if not any(rows.values()):
            yield ()
        return
    for g in [*fits[0], None]:
        if g is None or rows[g]:
            left = rows if g is None else {**rows, g: rows[g] - 1}
            for rest in placings(fits[1:], left):
                yield (g, *rest)


def by_brute_force(ages, classes):
    """The classes that everybody can be in, of each part of the table that does not overlap with others."""
    fits = [[g for g in classes if g[0] <= age <= g[1]] for age in ages]
    parts = []
    for of in filter(None, fits):
        linked = [part for part in parts if part & set(of)]
        parts = [part for part in parts if part not in linked] + [set(of).union(*linked)]
    found, contradicted = [set(of) for of in fits], 0
    for part in parts:
        people = [p for p, of in enumerate(fits) if set(of) & part]
        ways = list(placings([fits[p] for p in people], {g: len(classes[g]) for g in part}))
        contradicted += 0 if ways else len(people)
        for i, p in enumerate(people if ways else []):
            found[p] = {way[i] for way in ways} - {None}
    return fits, found, contradicted


def random_classes(draw, ages):
    """Classes of people in a random order, their labels a little too wide: they overlap; some people are left out."""
    order, classes = draw.sample(range(len(ages)), len(ages) - draw.choice([0, 0, 1])), {}
    while order:
        chosen, order = order[: draw.randint(1, 3)], order[draw.randint(1, 3) :]
        own = [ages[i] for i in chosen]
        values = [draw.choice("uvw") for _ in own]
        classes[min(own) - draw.choice([0, 0, 1]), max(own) + draw.choice([0, 1, 2]), len(classes)] = values
    return classes


@search(3, draw=draws)
def test_what_is_ruled_out_is_what_no_placing_has(con, draw):
    ages = [draw.randint(1, 9) for _ in range(draw.randint(3, 8))]
    classes = random_classes(draw, ages)
    place(con, classes)
    fits, found, contradicted = by_brute_force(ages, classes)
    attack = attacked(con, ages)
    values = [[v for g in of for v in classes[g]] for of in found]
    before = [{v for g in of for v in classes[g]} for of in fits]
    figures = attack.figures
    assert figures["people"] == len(ages) and figures["no_class"] == sum(not of for of in fits)
    assert figures["people_contradicted"] == contradicted
    assert figures["fewer_classes"] == sum(len(a) < len(b) for a, b in zip(found, fits, strict=True))
    assert figures["fewer_values"] == sum(len(set(a)) < len(b) for a, b in zip(values, before, strict=True))
    assert figures["one_class"] == sum(len(of) == 1 for of in found)
    assert figures["one_value"] == sum(len(set(v)) == 1 for v in values)
    assert figures["one_value_before"] == sum(len(v) == 1 for v in before)
    told = [Fraction(max(Counter(v).values()), len(v)) for v in values if v]
    assert attack.gains[0].gain == (float(max(told)) if told else None)
    least = [
        min(Fraction(classes[g].count(value), len(classes[g])) for g in of) for of in found if of for value in "uvw"
    ]
    assert attack.gains[1].gain == float(max(least, default=0))


def test_it_succeeds_where_a_place_is_taken(con):
    """Two people fit the class of HIV alone: the third, whom its label covers too, must be in the other."""
    place(con, {(1, 3, 1): ["HIV", "HIV"], (3, 9, 2): ["Flu", "Cold"]})
    attack = attacked(con, [1, 2, 3, 9])
    assert (attack.figures["fewer_classes"], attack.figures["one_class"]) == (1, 4)
    assert [attack.figures[name] for name in ("one_value_before", "one_value", "fewer_values")] == [2, 2, 1]
    assert [gain.gain for gain in attack.gains] == [1.0, 1.0, 0.5]


def test_it_fails_where_classes_do_not_overlap(con):
    place(con, {(1, 3, 1): ["HIV", "Flu"], (4, 9, 2): ["Flu", "Cold"]})
    attack = attacked(con, [1, 2, 5, 9], frequency=2)
    assert attack.figures["fewer_classes"] == attack.figures["fewer_values"] == 0
    assert [(gain.gain, gain.bound) for gain in attack.gains] == [(0.5, 0.5), (0.5, 0.5), (0.0, 0.0)] and attack.holds


def test_components_that_are_too_large_are_said(con, monkeypatch):
    monkeypatch.setattr(counting, "ROUTE", BUDGET // 3)  # routes: one of its own, and five that hang together
    place(con, {(1, 3, 1): ["HIV", "HIV"], (3, 9, 2): ["Flu", "Cold"], (20, 30, 3): ["Flu"]})
    attack = attacked(con, [1, 2, 3, 9, 20])
    figures = attack.figures
    assert (figures["people_skipped"], figures["fewer_classes"], figures["one_class"]) == (4, 0, 4)
    assert attack.untried == Untried("people", 1, 5)


def random_transport(draw, kinds, boxes, width):
    """Overlapping intervals of kinds, as labels have them, full of people who are there."""
    people = {kind: draw.randint(1, 4) for kind in range(1, kinds + 1)}
    left, rows, routes = dict(people), {}, []
    for box in range(1, boxes + 1):
        low = draw.randint(1, kinds)
        inside = [kind for kind in range(low, low + draw.randint(1, width)) if kind <= kinds]
        taken = [kind for kind in inside for _ in range(draw.randint(0, left[kind]))]
        for kind in taken:
            left[kind] -= 1
        if taken:
            rows[box] = len(taken)
            routes += [(kind, box) for kind in inside]
    return people, rows, routes


@search(5, seed=seeds)
def test_classes_are_filled_by_the_people_of_their_kinds(seed):
    """As networkx has it, of the flow, and of strongly connected components."""
    networkx = pytest.importorskip("networkx")
    draw = random.Random(seed)
    people, rows, routes = random_transport(draw, 40, 30, 12)
    rows = {box: count + draw.choice([0] * 40 + [1]) for box, count in rows.items()}
    graph = networkx.DiGraph()
    graph.add_edges_from((("source", kind, {"capacity": count}) for kind, count in people.items()))
    graph.add_edges_from(((-box, "sink", {"capacity": count}) for box, count in rows.items()))
    graph.add_edges_from((kind, -box) for kind, box in routes)
    placing = Placing(people, rows, routes)
    assert placing.fill() is (networkx.maximum_flow_value(graph, "source", "sink") == sum(rows.values()))
    for kind, held in placing.placed.items():
        assert sum(held.values()) + placing.left[kind] == people[kind]
        assert all(count > 0 and (kind, box) in routes for box, count in held.items())
    assert all(
        sum(h.get(box, 0) for h in placing.placed.values()) + n == rows[box] for box, n in placing.needed.items()
    )
    arcs = [(draw.randrange(30), draw.randrange(30)) for _ in range(50)]
    number = circles(range(30), lambda node: [to for start, to in arcs if start == node])
    graph = networkx.DiGraph(arcs)
    graph.add_nodes_from(range(30))
    found = {frozenset(node for node in number if number[node] == first) for first in number.values()}
    assert found == set(map(frozenset, networkx.strongly_connected_components(graph)))


def test_all_routes_are_looked_at_a_few_times(monkeypatch):
    """Each phase moves people along all shortest chains: there are no more phases than lengths of chains."""
    placing = Placing(*random_transport(random.Random(1), 8_000, 6_000, 25))
    lengths = []
    moved = placing._moved
    monkeypatch.setattr(placing, "_moved", lambda depths: lengths.append(max(depths.values())) or moved(depths))
    assert placing.fill() and lengths == sorted(set(lengths)) and placing.phases == len(lengths) < 40
