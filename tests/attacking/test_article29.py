"""Singling out, linkability and inference: against brute force, and where they must and must not succeed."""

import hashlib
import itertools
import random
from collections import Counter

import oracle
import pytest
import tables
from strategies import search, seeded, some
from tables import fill

import ldiv_db
from ldiv_db.attacking import singling_out
from ldiv_db.attacking.singling_out import SETS, _drawn_sets
from ldiv_db.attacking.trials import Tried, risk_beyond

NAMES = ["singling out by one column", "singling out by several columns", "linkability", "inference"]


def found(result, name):
    (attack,) = [attack for attack in result.attacks if attack.name == name]
    return attack


def counts(result, name, prefix=""):
    figures = found(result, name).figures
    return figures[f"{prefix}attempts"], figures[f"{prefix}successes"]


# -- estimates -------------------------------------------------------------------------------------------


#: Attempts and successes, on targets and on a control, and what Anonymeter 1.1.0 makes of them: the rate and its error,
#: the risk and its interval.
ESTIMATED = [
    ((2000, 1306, 2000, 296), (0.6527066917659684, 0.020843984509362274), (0.5920556463, 0.5664610097, 0.6176502829)),
    ((500, 250, 400, 10), (0.5, 0.04365873469751569), (0.4847919126, 0.4390218338, 0.5305619913)),
    ((10, 0, 10, 0), (0.1387663999314446, 0.13876639993144463), (0.0, 0.0, 0.2278653838)),
    ((7, 7, 9, 3), (0.8228347824666563, 0.17716521753334372), (0.7127714220, 0.4005942853, 1.0)),
    ((100, 20, 100, 30), (0.2110980494620957, 0.07773111613106319), (0.0, 0.0, 0.0446841964)),
    ((1, 1, 1, 0), (0.6032746571886187, 0.3967253428113813), (0.3423802275, 0.0, 1.0)),
]


def wilson(attempts, successes):
    """The bounds between which a rate is not refuted: where (p - s/n)^2 = z^2 p (1 - p) / n, by bisection."""
    share, z = successes / attempts, 1.959963984540054

    def refuted(p):
        return (share - p) ** 2 * attempts > z * z * p * (1 - p)

    def edge(inside, outside):
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if refuted(middle) else (middle, outside)
        return inside

    return [0.0 if share == 0 else edge(share, 0.0), 1.0 if share == 1 else edge(share, 1.0)]


@pytest.mark.parametrize(("attempts", "successes"), [(2000, 1306), (10, 0), (7, 7), (100, 20), (1, 1), (1, 0)])
def test_intervals_are_wilsons(attempts, successes):
    assert Tried(attempts, successes).interval == pytest.approx(wilson(attempts, successes), abs=1e-9)


def test_nothing_tried_tells_nothing():
    assert Tried(0, 0).share is None and Tried(0, 0).interval == [0.0, 1.0]


@pytest.mark.parametrize(("counted", "rate", "risk"), ESTIMATED)
def test_estimates_are_those_of_anonymeter(counted, rate, risk):
    attempts, successes, of_control, control = counted
    tried, other = Tried(attempts, successes), Tried(of_control, control)
    value, interval = risk_beyond(tried, other)
    assert (tried.rate, tried.error) == pytest.approx(rate, abs=1e-12)
    assert (value, *interval) == pytest.approx(risk, abs=1e-9)


# -- brute force -------------------------------------------------------------------------------------------


def label_of(row, case):
    return tuple((row[f"{name}_min"], row[f"{name}_max"]) if f"{name}_min" in row else row[name] for name in case.names)


def covers(label, value, scale):
    if isinstance(label, tuple):
        return label[0] is None or (value is not None and label[0] <= value <= label[1])
    if value is None and isinstance(scale, oracle.Tree) and None not in scale._ways:
        return label == "*"  # the column that was published held no NULL
    return scale.covers(label, value)


def text(value):
    return None if value is None else str(value)


def best(values):
    """The most frequent value, the first of equally frequent ones, NULL before all."""
    tally = Counter(map(text, values))
    return min(tally, key=lambda value: (-tally[value], value is not None, (value or "").encode()))


def infer(classes, everybody, person, scales):
    """The guess of somebody's value."""
    fit = [values for (labels, _), values in classes.items() if all(map(covers, labels, person, scales))]
    return best(itertools.chain(*(fit or [everybody])))


def nearest(classes, places, person, known, scales):
    """The classes that cover some of a person's values at the least distance."""
    distances = {}
    for key in classes:
        labels = key[0]
        if all(covers(labels[i], person[i], scales[i]) for i in places):
            distances[key] = sum(
                sum(covers(labels[i], value, scales[i]) for value in known[i]) * 10**9 // len(known[i]) for i in places
            )
    least = min(distances.values(), default=None)
    return {key for key, distance in distances.items() if distance == least}


def predicates_of(rows, width):
    """Every (labels, value, uses_value, columns used) that holds for one row of (labels, value)."""
    all_places = [places for size in range(1, width + 2) for places in itertools.combinations(range(width + 1), size)]
    predicates = set()
    for places in all_places:
        tally = Counter(
            (tuple(labels[i] if i in places else (None,) for i in range(width)), value if width in places else None)
            for labels, value in rows
        )
        predicates |= {(labels, value, width in places, len(places)) for (labels, value), n in tally.items() if n == 1}
    return predicates


def fits(predicate, person, secret, scales):
    labels, value, uses_value, _ = predicate
    return (not uses_value or value == secret) and all(
        label == (None,) or covers(label, known, scale)
        for label, known, scale in zip(labels, person, scales, strict=True)
    )


def is_everything(label):
    return label in ("*", (None, None))


def distinct(predicates):
    """Predicates by what they say: a label that covers everything asks for nothing, but is counted as used."""
    return {
        (tuple((None,) if is_everything(label) else label for label in labels), *rest) for labels, *rest in predicates
    }


@search(1, draw=seeded)
def test_successes_are_those_of_brute_force(con, tmp_path, draw):
    """With so many sets of columns at once, and where a part of the predicates is too few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(singling_out, "_AT_ONCE", draw.choice([1, 4, 100]))
        patch.setattr(singling_out, "_ROWS", draw.choice([1, 100_000]))
        compare_with_brute_force(con, tmp_path, draw)


def compare_with_brute_force(con, tmp_path, draw):
    case = tables.random_case(draw, "bisect", largest=9)
    case.place(con, tmp_path)
    ldiv_db.run(con, case.policy, folder=tmp_path)
    width, place = len(case.names), list(case.columns).index("secret")
    release = tables.published(con, case)
    targets = [(*row[:width], row[place]) for row in case.rows]
    control = [(*(draw.choice(targets)[i] for i in range(width)), draw.choice(targets)[width]) for _ in targets]
    for name, people in (("targets", targets), ("control", control)):
        fill(con, name, {column: case.columns[column] for column in [*case.names, "secret"]}, people)
    result = ldiv_db.attack(
        con, "out.released", policy=case.policy, folder=tmp_path, targets="targets", control="control", tries=5_000
    )
    assert result.holds
    classes = oracle.group(((label_of(row, case), row["class_id"]), row["secret"]) for row in release)
    released = [row["secret"] for row in release]

    def inferred(people):
        return sum(infer(classes, released, person[:width], case.scales) == text(person[-1]) for person in people)

    assert counts(result, "inference") == (len(targets), inferred(targets))
    assert counts(result, "inference", "control_") == (len(control), inferred(control))
    # Linkability: the known quasi-identifiers in two halves.
    half = (width + 1) // 2
    known = [{None, *(person[i] for person in [*targets, *control])} for i in range(width)]

    def linked(people):
        sides = [
            [
                nearest(classes, places, person[:width], known, case.scales)
                for places in (range(half), range(half, width))
            ]
            for person in people
        ]
        return sum(len(first & second) == 1 for first, second in sides)

    if width > 1:
        assert counts(result, "linkability") == (len(targets), linked(targets))
        assert counts(result, "linkability", "control_") == (len(control), linked(control))
    else:
        assert "linkability" not in [attack.name for attack in result.attacks]
    # Singling out.
    predicates = distinct(predicates_of([(label_of(row, case), row["secret"]) for row in release], width))

    def right(people, several):
        return sum(
            sum(fits(predicate, person[:width], person[-1], case.scales) for person in people) == 1
            for predicate in predicates
            if (predicate[3] > 1) == several
        )

    for name, several in zip(NAMES[:2], (False, True), strict=True):
        attempts = sum((predicate[3] > 1) == several for predicate in predicates)
        assert counts(result, name) == (attempts, right(targets, several))
        assert counts(result, name, "control_") == (attempts, right(control, several))
        assert found(result, name).figures["random_attempts"] == attempts


# -- what is drawn --------------------------------------------------------------------------------------------


def drawn(people, seed, most):
    """The people that are drawn, as the md5 of seed, copy and values orders them."""
    copies, lots = Counter(), []
    for person in people:
        copies[person] += 1
        words = "".join(f":{len(str(value))}:{value}" if value is not None else ":-:" for value in person)
        lots.append((hashlib.md5(f"{seed}:{copies[person]}{words}".encode()).hexdigest(), person))
    return [person for _, person in sorted(lots)[:most]]


def number(seed, place, what, below):
    return int(hashlib.md5(f"{seed}:{place}:{what}".encode()).hexdigest(), base=16) % below


POLICY = {
    "source": "x",
    "target": "y",
    "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [3, 1]}}},
    "sensitive": ["s"],
    "require": [{"k": 1}],
}
BY_AGE = POLICY | {"quasi_identifiers": {"age": {"numeric": True}}}
COLUMNS = {"age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR"}


def random_people(seed, count):
    draw = random.Random(seed)
    values = [draw.randint(20, 40) for _ in range(count)]
    return [(age, f"{draw.randint(1, 3)}{age % 3}0", draw.choice(["a", "b", "c", None])) for age in values]


def place(con, release, targets, control=()):
    fill(con, "t", COLUMNS | {"age": "VARCHAR"}, release)
    fill(con, "targets", COLUMNS, list(targets))
    fill(con, "control", COLUMNS, list(control))


def test_people_and_guesses_are_drawn_by_md5(con):
    """Some of the targets, each against a row of the release that is drawn for it."""
    seed = 7
    targets, release = random_people(seed, 60), [("[20-40]", "*", "abbc"[i % 4]) for i in range(12)]
    place(con, release, targets)
    result = ldiv_db.attack(con, "t", policy=POLICY, targets="targets", tries=25, seed=seed)
    chosen = drawn(targets, seed, 25)
    assert counts(result, "inference") == (25, sum(person[2] == "b" for person in chosen))
    values = sorted(row[2] for row in release)
    guesses = [values[number(seed, i, "first_row", len(release))] for i in range(1, 26)]
    right = sum(guess == person[2] for guess, person in zip(guesses, chosen, strict=True))
    assert counts(result, "inference", "random_") == (25, right)


def test_of_many_rows_a_part_of_the_predicates_is_looked_at(con, monkeypatch):
    """The rate among those that are drawn from it is that among all, within its interval."""
    targets = random_people(5, 60)
    rows = [(f"[{age - i % 4}-{age + i % 5}]", zip_code, s) for i, (age, zip_code, s) in enumerate(targets)]
    place(con, rows, targets)

    def tried(tries):
        return ldiv_db.attack(con, "t", policy=POLICY, targets="targets", tries=tries)

    every = tried(500)
    monkeypatch.setattr(singling_out, "_ROWS", 25)
    some, (all_of_them, right) = tried(25), counts(every, NAMES[1])
    assert all_of_them > 2 * 25 and 0 < right < all_of_them and counts(some, NAMES[1])[0] == 25
    low, high = found(some, NAMES[1]).figures["interval"]
    assert low <= right / all_of_them <= high
    assert counts(some, NAMES[0])[0] == min(25, counts(every, NAMES[0])[0])


@pytest.mark.slow
def test_a_smaller_control_is_compared_with_as_many_targets(con):
    """A predicate fits one person more easily among few people: the risk is that of equally many."""
    targets, control = random_people(1, 24), random_people(2, 9)
    rows = [(str(age), zip_code, secret) for age, zip_code, secret in targets]
    place(con, rows, targets, control)
    result = ldiv_db.attack(con, "t", policy=POLICY, targets="targets", control="control", tries=5_000)
    predicates = {p for p in predicates_of([(row[:2], row[2]) for row in rows], 2) if p[3] > 1}

    def right(people):
        values = [dict(enumerate((str(age), zip_code, secret))) for age, zip_code, secret in people]
        return sum(
            sum(
                all(label in ((None,), person[i]) for i, label in enumerate(labels))
                and (not uses or value == person[2])
                for person in values
            )
            == 1
            for labels, value, uses, _ in predicates
        )

    attack = found(result, NAMES[1])
    assert counts(result, NAMES[1]) == (len(predicates), right(targets))
    assert counts(result, NAMES[1], "control_") == (len(predicates), right(control))
    value, interval = risk_beyond(
        Tried(len(predicates), right(drawn(targets, 0, 9))), Tried(len(predicates), right(control))
    )
    assert attack.gains[1].gain == value and attack.figures["risk_interval"] == interval


@pytest.mark.parametrize("seed", [0, 3])
def test_sets_of_columns_are_drawn_where_there_are_many(seed):
    sets = _drawn_sets(seed, 8)
    assert len(sets) == SETS and sets == _drawn_sets(seed, 8) != _drawn_sets(seed + 1, 8)
    assert all(len(places) > 1 and places == tuple(sorted(set(places))) and max(places) < 8 for places in sets)
    assert {len(places) for places in sets} >= {2, 3, 7}


# -- where they must succeed, and where they must fail ----------------------------------------------------------


@pytest.mark.slow
def test_a_table_as_it_is_tells_everything_of_its_people(con):
    targets = [(i, f"{i}0", f"v{i}") for i in range(10, 40)]
    control = [(i, f"{i}0", f"w{i}") for i in range(50, 80)]
    place(con, [(str(age), zip_code, secret) for age, zip_code, secret in targets], targets, control)
    result = ldiv_db.attack(con, "t", policy=POLICY, targets="targets", control="control")
    for name in NAMES:
        success, risk = found(result, name).gains
        if name != "linkability":
            assert success.gain == 1.0 and counts(result, name, "control_")[1] == 0
            assert risk.gain > 0.9 and found(result, name).figures["risk_interval"][1] == 1.0
        assert success.bound is None and risk.bound is None and success.holds is None
    assert counts(result, "inference", "random_")[1] < 10
    # The parts of each are told apart, and so they are linked.
    assert counts(result, "linkability") == (30, 30) and counts(result, "linkability", "control_") == (30, 0)
    assert counts(result, "linkability", "random_")[1] < 10


@pytest.mark.parametrize(
    ("parts", "linked"),
    some([((["AGE"], ["zip"]), 1), (None, 2), (("age", ["zip", "sex"]), 2), ((["sex"], ["zip"]), 2)]),
)
def test_parts_are_linked_as_they_are_asked_for(con, parts, linked):
    """The parts say nothing of what is in neither of them."""
    keys = POLICY["quasi_identifiers"] | {"sex": {"taxonomy": {"prefix": [1]}}}
    columns = {"age": "VARCHAR", "zip": "VARCHAR", "sex": "VARCHAR", "s": "VARCHAR"}
    fill(con, "t", columns, [("20", "123", "m", "x"), ("20", "123", "f", "x"), ("30", "234", "f", "x")])
    fill(con, "targets", columns | {"age": "INTEGER"}, [(20, "123", "m", "x"), (30, "234", "f", "x")])
    words = {"policy": POLICY | {"quasi_identifiers": keys}, "targets": "targets"}
    assert counts(ldiv_db.attack(con, "t", link_columns=parts, **words), "linkability") == (2, linked)


def test_people_may_know_less_than_all_columns(con):
    place(con, [("20", "123", "a"), ("30", "123", "b")], [(20, "123", "a"), (30, "123", "b")])
    con.execute("ALTER TABLE targets DROP age")
    result = ldiv_db.attack(con, "t", policy=POLICY, targets="targets")
    assert [attack.name for attack in result.attacks][-3:] == [*NAMES[:2], "inference"]
    assert counts(result, "inference") == (2, 1)


def test_nobody_is_attacked_where_nobody_is(con):
    place(con, [("20", "123", "a")], [])
    result = ldiv_db.attack(con, "t", policy=BY_AGE, targets="targets", control="control")
    assert {gain.gain for name in NAMES if name != "linkability" for gain in found(result, name).gains} == {None}


def test_an_empty_release_tells_nothing(con):
    place(con, [], [(20, "123", "a")])
    result = ldiv_db.attack(con, "t", policy=BY_AGE, targets="targets")
    assert counts(result, "inference") == (1, 0) and counts(result, NAMES[1]) == (0, 0)
