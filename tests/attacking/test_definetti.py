"""The deFinetti attack: against the definition in floating point, on a table that teaches and on one that does not."""

import math
import random
from collections import Counter, defaultdict

import pytest
from hypothesis import assume
from strategies import draws, search, seeded
from tables import fill

import ldiv_db
from ldiv_db.attacking.definetti import ROUNDS

KEYS = {"a": {"numeric": True}, "b": {"numeric": True}}


def policy(require="k", value=1):
    keys = {"quasi_identifiers": KEYS, "sensitive": ["s"], "require": [{require: value}]}
    return {"source": "x", "target": "y", "output": {"class_id": True}, **keys}


def definetti(result):
    (attack,) = [attack for attack in result.attacks if attack.name == "definetti"]
    return attack


def scaled(units, keys, targets):
    """One step of iterative proportional fitting."""
    sums = defaultdict(float)
    for key, n in units.items():
        sums[keys(key)] += n
    return {key: n * targets[keys(key)] / sums[keys(key)] for key, n in units.items()}


def learn(seats, classes, axes=2, rounds=ROUNDS):
    """What is believed of every combination of quasi-identifiers before and after learning, {cell: {value: n}}."""
    size = {g: len(values) for g, values in classes.items()}
    counts = {g: Counter(values) for g, values in classes.items()}
    seated = defaultdict(float)
    for (g, _), n in seats.items():
        seated[g] += n
    of_values = {(g, v): seated[g] * n / size[g] for g in counts for v, n in counts[g].items()}
    beliefs = {(g, c, v): n * k / size[g] for (g, c), n in seats.items() for v, k in counts[g].items()}
    first = summed(beliefs)
    for _ in range(rounds):
        likely = likelihoods(summed(beliefs), axes)
        weights = {(g, c, v): k * likely[c][v] for g, c in seats for v, k in counts[g].items()}
        beliefs = scaled(weights, lambda key: key[:2], seats)
        beliefs = scaled(beliefs, lambda key: (key[0], key[2]), of_values)
    return first, summed(beliefs)


def summed(beliefs):
    told = defaultdict(lambda: defaultdict(float))
    for (_, cell, value), n in beliefs.items():
        told[cell][value] += n
    return told


def likelihoods(told, axes):
    """Naive Bayes, with one more person for every value of a quasi-identifier."""
    likely = defaultdict(lambda: defaultdict(lambda: 1.0))
    for axis in range(axes):
        pairs, totals, domain = defaultdict(float), defaultdict(float), {cell[axis] for cell in told}
        for cell, values in told.items():
            for value, n in values.items():
                pairs[cell[axis], value] += n
                totals[value] += n
        for cell, values in told.items():
            for value in values:
                likely[cell][value] *= (pairs[cell[axis], value] + 1) / (totals[value] + len(domain))
    return likely


def guessed(told, people, frequent):
    """The least and the most people that are guessed: beliefs that are nearly equal may be told apart by rounding."""
    least = most = 0
    for cell, value in people:
        values = told.get(cell)
        if values:
            top = max(values.values())
            near = [v for v in values if math.isclose(values[v], top, rel_tol=1e-3)]
            exact = [v for v in values if math.isclose(values[v], top, rel_tol=1e-12)]
            pick = min(exact, key=frequent.index)
            sure = len(near) == len(exact)
            least += value == pick if sure else near == [value]
            most += value == pick if sure else value in near
    return least, most


def spread(people, classes, covers):
    """How many people of every combination sit in every class that covers them."""
    cells = Counter(cell for cell, _ in people)
    seats = {(g, c): float(n) for g in classes for c, n in cells.items() if covers(g, c)}
    rows = {g: len(values) for g, values in classes.items()}
    for _ in range(2):
        seats = scaled(seats, lambda key: key[0], rows)
        seats = scaled(seats, lambda key: key[1], cells)
    return seats


def by_frequency(classes):
    counts = Counter(value for values in classes.values() for value in values)
    return sorted(counts, key=lambda value: (-counts[value], value is not None, value or ""))


def check(figures, gain, first, told, people, classes):
    frequent = by_frequency(classes)
    matched = [(cell, value) for cell, value in people if cell in told]
    assert (figures["people"], figures["no_class"]) == (len(people), len(people) - len(matched))
    least, most = guessed(told, matched, frequent)
    assert least <= round(gain * len(matched)) <= most
    low, high = guessed(first, matched, frequent)
    assert low <= round(figures["by_shares"] * len(matched)) <= high
    chance = sum(first[cell].get(value, 0) / sum(first[cell].values()) for cell, value in matched) / len(matched)
    assert figures["by_chance"] == pytest.approx(chance, abs=1e-4)
    assert figures["by_the_table"] == pytest.approx(sum(value == frequent[0] for _, value in matched) / len(matched))
    return most - least


def related(draw, n):
    """People whose value goes with their quasi-identifiers, more or less."""
    people = [(draw.randint(1, 6), draw.randint(1, 4)) for _ in range(n)]
    return [
        (cell, draw.choice("uvw"[: 1 + cell[0] // 3]) if draw.random() < 0.8 else draw.choice(["x", None]))
        for cell in people
    ]


@search(2, draw=draws)
def test_an_anatomised_table_teaches_what_the_definition_says(con, draw):
    """Of people whose group is known too, or only their quasi-identifiers."""
    grouped, people = draw.choice([False, True]), related(draw, draw.randint(6, 30))
    groups = {}
    for i in range(len(people)):
        groups.setdefault(draw.randint(1, 1 + len(people) // 4), []).append(i)
    classes = {g: [people[i][1] for i in rows] for g, rows in groups.items()}
    fill(con, "qit", {"g": "INTEGER", "a": "INTEGER", "b": "INTEGER"},
         [(g, *people[i][0]) for g, rows in groups.items() for i in rows])  # fmt: skip
    fill(con, "st", {"g": "INTEGER", "s": "VARCHAR", "n": "INTEGER"},
         [(g, v, n) for g, values in classes.items() for v, n in Counter(values).items()])  # fmt: skip
    of_group = {i: (g,) if grouped else () for g, rows in groups.items() for i in rows}
    people = [((*cell, *of_group[i]), value) for i, (cell, value) in enumerate(people)]
    columns = {"a": "INTEGER", "b": "INTEGER"} | ({"g": "INTEGER"} if grouped else {}) | {"s": "VARCHAR"}
    fill(con, "truth", columns, [(*cell, value) for cell, value in people])
    pair = {"sensitive_table": "st", "group": "g", "count": "n"}
    attack = definetti(ldiv_db.attack(con, "qit", ["a", "b"], "s", definetti="truth", **pair))
    seats = Counter((g, people[i][0]) for g, rows in groups.items() for i in rows)
    first, told = learn(seats, classes)
    check(attack.figures, attack.gains[0].gain, first, told, people, classes)


@search(1, draw=seeded)
def test_a_generalised_table_teaches_what_the_definition_says(con, draw):
    """Ranges overlap, some classes are equal, and some people are in none."""
    people = related(draw, draw.randint(8, 30))
    classes, rows = {}, []
    for number in range(1, draw.randint(3, 7)):
        low, high = sorted(draw.choices(range(1, 6), k=2))
        bottom, top = sorted(draw.choices(range(1, 5), k=2))
        copies = draw.choice([1, 1, 2])
        values = [draw.choice(["u", "v", "w", "x", None]) for _ in range(draw.randint(1, 5))]
        for copy in range(copies):
            classes[number, copy, low, high, bottom, top] = values
            rows += [(10 * number + copy, f"[{low} .. {high}]", f"[{bottom} .. {top}]", v) for v in values]
    fill(con, "t", {"class_id": "INTEGER", "a": "VARCHAR", "b": "VARCHAR", "s": "VARCHAR"}, rows)
    fill(con, "truth", {"a": "INTEGER", "b": "INTEGER", "s": "VARCHAR"}, [(*cell, value) for cell, value in people])
    covers = lambda g, c: g[2] <= c[0] <= g[3] and g[4] <= c[1] <= g[5]  # noqa: E731
    seats = spread(people, classes, covers)
    assume(seats)
    attack = definetti(ldiv_db.attack(con, "t", policy=policy(), definetti="truth"))
    first, told = learn(seats, {g: v for g, v in classes.items() if any(key[0] == g for key in seats)})
    check(attack.figures, attack.gains[0].gain, first, told, people, classes)


def anatomised(con, value_of, count=400):
    """Groups of two people with different values; whose is whose is not shown."""
    draw = random.Random(1)
    drawn = [(a, value_of(draw, a)) for a in draw.choices(range(10), k=count)]
    pairs = [pair for pair in zip(drawn[::2], drawn[1::2], strict=True) if pair[0][1] != pair[1][1]]
    people = [(g, *person) for g, pair in enumerate(pairs) for person in pair]
    fill(con, "qit", {"g": "INTEGER", "a": "INTEGER"}, [(g, a) for g, a, _ in people])
    fill(con, "st", {"g": "INTEGER", "s": "VARCHAR"}, [(g, s) for g, _, s in people])
    fill(con, "truth", {"g": "INTEGER", "a": "INTEGER", "s": "VARCHAR"}, people)
    return definetti(ldiv_db.attack(con, "qit", "a", "s", definetti="truth", sensitive_table="st", group="g"))


def test_it_succeeds_where_values_go_with_quasi_identifiers(con):
    """Everybody below 5 has one of u and v, others one of w and x; within groups each value is as likely anybody's."""
    attack = anatomised(con, lambda draw, a: draw.choice("uv" if a < 5 else "wx"))
    assert attack.figures["by_chance"] == 0.5 and attack.gains[0].gain > 0.75
    assert attack.gains[0].bound is None and attack.holds is None


def test_it_fails_where_they_do_not(con):
    """Whatever is learned is of no use where values were drawn for everybody alike."""
    attack = anatomised(con, lambda draw, a: draw.choice("uvwxyz"), count=3000)
    assert abs(attack.gains[0].gain - attack.figures["by_chance"]) < 0.06
