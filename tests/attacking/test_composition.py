"""The composition attack: against brute force over all matchings of people and rows, class by class."""

from fractions import Fraction

import pytest
from strategies import search, seeded
from tables import fill

import ldiv_db


def policy(**keys):
    keys = keys or {"a": {"numeric": True}}
    forms = {"quasi_identifiers": keys, "sensitive": ["s"], "require": [{"k": 1}], "output": {"class_id": True}}
    return {"source": "x", "target": "y", **forms}


def composition(result):
    (attack,) = [attack for attack in result.attacks if attack.name == "composition"]
    return attack


# -- brute force ---------------------------------------------------------------------------------------


def seatings(members, rows):
    """Every way to give the members different rows (their values) that they may have."""
    if not members:
        yield ()
        return
    for place, value in enumerate(rows):
        if value in members[0]:
            for rest in seatings(members[1:], rows[:place] + rows[place + 1 :]):
                yield ((value, place), *rest)


def narrowed(members, others, rows):
    """What members of a class, and others who may be in it, can have of its rows; None if members cannot all be seated.

    Members are in no other class, so all of them are seated in any case; of the others any may join.
    """
    ways = list(seatings(members, rows))
    if not ways:
        return None
    ours = [{way[i][0] for way in ways} for i in range(len(members))]
    left = set()
    for way in ways:
        free = list(rows)
        for value, _ in way:
            free.remove(value)
        left |= set(free)
    return ours, [other & left for other in others]


def possible(fits, releases):
    """The options of everybody, {(release, person): {class: values}}, narrowed class by class until nothing changes."""
    options = {
        (r, p): {g: set(releases[r][g]) for g in classes} for r, of in enumerate(fits) for p, classes in of.items()
    }
    people = range(len(fits[0]))
    while True:
        before = {key: {g: set(v) for g, v in found.items()} for key, found in options.items()}
        for p in people:
            common = set.intersection(
                *(set().union(*options[r, p].values()) if options[r, p] else set() for r in range(len(releases)))
            )
            for r in range(len(releases)):
                options[r, p] = {g: v & common for g, v in options[r, p].items() if v & common}
        seen = {key: {g: set(v) for g, v in found.items()} for key, found in options.items()}
        for r, classes in enumerate(releases):
            for g, rows in classes.items():
                members = [p for p in people if set(seen[r, p]) == {g}]
                others = [p for p in people if g in seen[r, p] and len(seen[r, p]) > 1]
                found = narrowed(
                    [seen[r, p][g] for p in members], [seen[r, p][g] for p in others], sorted(rows, key=repr)
                )
                if found:
                    for p, values in zip(members + others, [*found[0], *found[1]], strict=True):
                        options[r, p][g] = values
        options = {key: {g: v for g, v in found.items() if v} for key, found in options.items()}
        if options == before:
            return options


def posterior(options, person, releases):
    """The product of a value's rows in the classes that are left, in every release; {} if nothing is left."""
    weights = {}
    for value in set().union(*(set().union(*found.values()) for (_, p), found in options.items() if p == person)):
        weight = 1
        for r, classes in enumerate(releases):
            weight *= sum(classes[g].count(value) for g, v in options[r, person].items() if value in v)
        weights[value] = weight
    total = sum(weights.values())
    return {value: Fraction(weight, total) for value, weight in weights.items() if weight}


# -- against it ----------------------------------------------------------------------------------------


def cut(draw, people, overlap):
    """A release: classes of people next to each other in a random order, ranges as labels, values as they are."""
    order = sorted(range(len(people)), key=lambda i: (people[i][0], draw.random()))
    classes, start = {}, draw.choice([0, 0, 1])
    order = order[start:]
    while order:
        size = min(len(order), draw.randint(2, 4))
        chosen, order = order[:size], order[size:]
        ages = [people[i][0] for i in chosen]
        classes[min(ages) - overlap, max(ages) + draw.choice([0, overlap]), len(classes)] = [
            people[i][1] for i in chosen
        ]
    return classes


def place(con, name, classes):
    rows = [(number, f"[{low} .. {high}]", v) for (low, high, number), values in classes.items() for v in values]
    fill(con, name, {"class_id": "INTEGER", "a": "VARCHAR", "s": "VARCHAR"}, rows)


@search(1, draw=seeded)
def test_what_is_possible_is_what_brute_force_finds(con, draw):
    ages = draw.choice([draw.sample(range(1, 40), draw.randint(4, 7)), draw.choices(range(1, 8), k=6)])
    people = [(age, draw.choice(["u", "v", "w", None])) for age in ages]
    releases = [cut(draw, people, draw.choice([0, 0, 1])) for _ in range(draw.choice([2, 2, 3]))]
    names = [f"r{number}" for number in range(len(releases))]
    for name, classes in zip(names, releases, strict=True):
        place(con, name, classes)
    fill(con, "people", {"a": "INTEGER"}, [(age,) for age in ages])
    attack = composition(ldiv_db.attack(con, "r0", policy=policy(), known="people", also=names[1:]))
    fits = [{p: [g for g in classes if g[0] <= age <= g[1]] for p, age in enumerate(ages)} for classes in releases]
    options = possible(fits, releases)
    told = [posterior(options, p, releases) for p in range(len(ages))]
    fitting = [all(of[p] for of in fits) for p in range(len(ages))]
    figures = attack.figures
    assert (figures["people"], figures["releases"]) == (len(ages), len(releases))
    assert figures["no_class"] == len(ages) - sum(fitting)
    assert figures["contradicted"] == sum(fit and not values for fit, values in zip(fitting, told, strict=True))
    assert figures["one_value"] == sum(len(values) == 1 for values in told)
    best = [max(values.values()) for values in told if values]
    assert attack.gains[0].gain == (float(max(best)) if best else None)
    if best:
        assert figures["mean"] == pytest.approx(float(sum(best) / len(best)), abs=1e-8)
    assert figures["above_promise_of_one"] == 0, "k promises nothing that could be exceeded"
    values = [[set().union(*(c[g] for g in of[p])) for of, c in zip(fits, releases, strict=True)] for p in fits[0]]
    assert figures["one_value_in_one_release"] == sum(any(len(v) == 1 for v in each) for each in values)
    assert figures["one_value_by_intersection"] == sum(len(set.intersection(*each)) == 1 for each in values)


def test_all_releases_together_tell_what_no_two_classes_do(con):
    """January's 1, 2, 3 with A, B, C and February's 2, 5 with B, C and 3, 6 with B, C: A is 1's."""
    place(con, "january", {(1, 3, 1): ["A", "B", "C"], (5, 6, 2): ["B", "C"]})
    february = [(1, "x", "B"), (1, "x", "C"), (2, "y", "B"), (2, "y", "C"), (3, "z", "A"), (3, "z", "B"), (3, "z", "C")]
    fill(con, "february", {"class_id": "INTEGER", "b": "VARCHAR", "s": "VARCHAR"}, february)
    fill(con, "people", {"a": "INTEGER", "b": "VARCHAR"}, [(1, "z"), (2, "x"), (3, "y"), (5, "x"), (6, "y")])
    words = {"policy": policy(), "also_policies": [policy(b={"taxonomy": {"prefix": [1]}})], "known": "people"}
    attack = composition(ldiv_db.attack(con, "january", also="february", **words))
    assert [gain.gain for gain in attack.gains] == [1.0, 0.2] and attack.holds is None
    assert attack.figures["one_value_by_intersection"] == 0 and attack.figures["one_value"] == 1


def test_who_is_told_more_than_one_release_promises_is_counted(con):
    place(con, "one", {(1, 3, 1): ["A", "B", "C"]})
    place(con, "other", {(1, 2, 1): ["A", "D"], (3, 5, 2): ["B", "C", "D"]})
    fill(con, "people", {"a": "INTEGER"}, [(1,), (3,), (9,)])
    required = policy() | {"require": [{"frequency": 3}]}
    attack = composition(ldiv_db.attack(con, "one", policy=required, known="people", also=["other"]))
    assert attack.figures["no_class"] == 1
    assert (attack.figures["one_value"], attack.figures["above_promise_of_one"]) == (1, 2)


@pytest.mark.slow
def test_classes_of_many_values_and_copies_are_taken(con):
    """More values than a class's sets are tried for: what people can have is still a set, and tells."""
    values = [f"v{number:02d}" for number in range(14)]
    place(con, "one", {(1, 14, 1): values})
    place(con, "other", {(1, 13, 1): values[1:], (14, 14, 2): ["v00"]})
    place(con, "third", {(number, number, number): [values[14 - number]] for number in range(1, 15)})
    fill(con, "people", {"a": "INTEGER"}, [(a,) for a in range(1, 15)])
    words = {"policy": policy(), "known": "people"}
    attack = composition(ldiv_db.attack(con, "one", also=["other", "third", "third"], **words))
    assert attack.figures["one_value"] == 14 and attack.figures["releases"] == 4
