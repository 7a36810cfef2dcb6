"""Downcoding: against all sets of people that may be a class, and on tables where it must and must not succeed."""

import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction

import oracle
import pytest
import tables
from hypothesis import assume
from strategies import search, seeded, some
from tables import fill

import ldiv_db
from ldiv_db.attacking import downcoding
from ldiv_db.attacking.matching import BUDGET


def found(result):
    (attack,) = [attack for attack in result.attacks if attack.name == "downcoding"]
    return attack


def gains(result):
    return {gain.measure.removeprefix("share of "): gain.gain for gain in found(result).gains}


# -- what labels say, stated again ----------------------------------------------------------------------


def rule_of(label, scale):
    """(whether every side is occupied, how many are) of a label; None if it says nothing."""
    if isinstance(scale, oracle.Ranges) or label in (None, (None, None)):
        return None
    if isinstance(scale, oracle.Numbers):
        low, high = span_of(label)
        return (True, 2) if low != high else None
    if scale.sets and label.startswith("{"):
        members = oracle.parse_set(label)
        return (True, len(members)) if len(members) > 1 else None
    return None if label in scale._ways else (False, 2)


def span_of(label):
    if isinstance(label, tuple):
        return tuple(Fraction(str(bound)) for bound in label)
    if label == "*":
        return None, None
    return tuple(Fraction(str(bound)) for bound in oracle._span(label)[:2])


def side_of(label, value, scale):
    """The end, the member, or the child that a value is of."""
    if isinstance(scale, oracle.Numbers):
        number = None if value is None else Fraction(str(value))
        return number if number is not None and number in span_of(label) else None
    if scale.sets and label.startswith("{"):
        return next((member,) for member in oracle.parse_set(label) if scale._node_covers(member, value))
    way = scale._ways[scale.leaf(value)]
    return way[way.index(label) + 1]


def conclude(labels, size, people, scales):
    """(who fits, who may be in the class, who is singled out, whether the people explain the labels), by the rules."""
    rules = {i: rule for i, scale in enumerate(scales) if (rule := rule_of(labels[i], scale))}

    def side(i, person):
        return side_of(labels[i], people[person][i], scales[i])

    fitting = [p for p, person in people.items() if covered(labels, person, scales)]
    possible = fitting
    if size == 2:
        together = [
            (p, q)
            for p, q in itertools.permutations(fitting, 2)
            if all(
                needed == 2 and None not in (side(i, p), side(i, q)) and side(i, p) != side(i, q)
                for i, (_, needed) in rules.items()
            )
        ]
        possible = sorted({p for p, _ in together})
    explained, singled = len(possible) >= size, set()
    for i, (every, needed) in rules.items():
        by_side = defaultdict(list)
        for p in possible:
            by_side[side(i, p)].append(p)
        sides = {key: alike for key, alike in by_side.items() if key is not None}
        explained = explained and needed <= len(sides) and needed <= size
        if every or len(sides) == 2:
            singled |= {alike[0] for alike in sides.values() if len(alike) == 1}
    if not explained or len(singled) > size:
        return fitting, fitting, set(), False
    return fitting, sorted(singled) if len(singled) == size else possible, singled, True


def covered(labels, person, scales):
    def covers_one(label, value, scale):
        if isinstance(label, tuple):
            return label[0] is None or (value is not None and label[0] <= value <= label[1])
        return scale.covers(label, value)

    return all(map(covers_one, labels, person, scales))


# -- the truth: all sets of people that a class may be ----------------------------------------------------


def is_class(labels, members, scales):
    """Whether these people would be published with these labels, as far as labels are read backwards."""
    for label, values, scale in zip(labels, zip(*members, strict=True), scales, strict=True):
        if isinstance(scale, oracle.Ranges) or (
            label in (None, "*", (None, None)) and isinstance(scale, oracle.Numbers)
        ):
            continue
        if isinstance(scale, oracle.Numbers):
            numbers = [Fraction(str(value)) for value in values]
            if (min(numbers), max(numbers)) != span_of(label):
                return False
        elif (shown := scale.members(values)) is not None:
            if not label or not label.startswith("{") or oracle.parse_set(label) != shown:
                return False
        elif scale.label(values) != label:
            return False
    return True


def truth(labels, size, fitting, people, scales):
    """(who is in some set of so many people that would be published so, who is in all); None if there are too many."""
    if math.comb(len(fitting), size) > 2_000:
        return None
    sets = [
        set(members)
        for members in itertools.combinations(fitting, size)
        if is_class(labels, [people[p] for p in members], scales)
    ]
    return (set.union(*sets), set.intersection(*sets)) if sets else (set(), set())


def label_of(row, case):
    return tuple((row[f"{name}_min"], row[f"{name}_max"]) if f"{name}_min" in row else row[name] for name in case.names)


@search(1, draw=seeded)
def test_conclusions_are_those_of_brute_force(con, tmp_path, draw):
    case = tables.random_case(draw, "bisect", largest=16)
    # Too close to 10**12 for a domain as wide: one code, one label.
    assume(not any(10**12 + 1 in row for row in case.rows))
    case.place(con, tmp_path)
    ldiv_db.run(con, case.policy, folder=tmp_path)
    width = len(case.names)
    everybody = [row[:width] for row in case.rows]
    everybody += [tuple(draw.choice(case.rows)[i] for i in range(width)) for _ in range(draw.choice([0, 4]))]
    fill(con, "everybody", {name: case.columns[name] for name in case.names}, everybody)
    words = {"policy": case.policy, "folder": tmp_path, "downcoding": True}
    result = ldiv_db.attack(con, "out.released", population="everybody", **words)
    people = dict(enumerate(everybody))
    sizes = defaultdict(int)
    for row in tables.published(con, case):
        sizes[label_of(row, case), row["class_id"]] += 1
    rows, narrowed, cells, singled, before, after = sum(sizes.values()), 0, 0, 0, 0, 0
    for (labels, _), size in sizes.items():
        fitting, possible, singles, explained = conclude(labels, size, people, case.scales)
        assert explained, "the source is among the people"
        true = truth(labels, size, fitting, people, case.scales)
        assert true is None or (set(possible) >= true[0] and singles <= true[1])
        assert true is None or size != 2 or set(possible) == true[0]
        rest = set(possible) - singles
        narrowed += size if singles or len(possible) < len(fitting) else 0
        singled += len(singles)
        before += size * len(fitting)
        after += len(singles) + (size - len(singles)) * len(rest)
        for i in range(width):
            values, left = ({people[p][i] for p in some} for some in (fitting, rest))
            cells += len(singles) * (len(values) > 1) + (size - len(singles)) * (len(left) < len(values))
    told, figures = gains(result), found(result).figures
    assert told["rows narrowed by the population"] == narrowed / rows
    assert told["cells narrowed by the population"] == float(Fraction(cells, rows * width))
    assert told["rows singled out"] == singled / rows
    means = figures["people_alike"], figures["people_alike_narrowed"]
    assert means == (float(Fraction(before, rows)), float(Fraction(after, rows)))
    assert (figures["rows_unexplained"], figures["rows_untried"]) == (0, 0)
    assert [gain.bound for gain in found(result).gains] == [None] * 5 and result.holds
    # By the release alone: the cells of classes of two rows whose range has something inside.
    halved = [
        sum(is_wide(label) for label, scale in zip(labels, case.scales, strict=True) if type(scale) is oracle.Numbers)
        for (labels, _), size in sizes.items()
        if size == 2
    ]
    alone = gains(ldiv_db.attack(con, "out.released", **words))
    assert alone == {
        "rows narrowed by the release": 2 * sum(map(bool, halved)) / rows,
        "cells narrowed by the release": float(Fraction(2 * sum(halved), rows * width)),
    }
    assert alone.items() <= told.items()


def is_wide(label):
    """Whether a range has other values than its ends."""
    low, high = (None, None) if label in (None, (None, None)) else span_of(label)
    text = str(label).replace(" .. ", "")
    whole = "." not in text and "e" not in text.lower().replace("decimal", "")
    return low is not None and high - low > (1 if whole else 0)


# -- tables where it must succeed, and where it must fail ----------------------------------------------------


POLICY = {
    "source": "x",
    "target": "y",
    "quasi_identifiers": {"age": {"numeric": True}, "zip": {"taxonomy": {"prefix": [4, 2]}}},
    "sensitive": ["s"],
    "require": [{"k": 2}],
}


def place(con, release, everybody):
    fill(con, "t", {"age": "VARCHAR", "zip": "VARCHAR", "s": "VARCHAR"}, release)
    fill(con, "everybody", {"age": "INTEGER", "zip": "VARCHAR"}, everybody)


def test_two_rows_are_told_apart_by_the_ends_of_their_range(con):
    """Of five people that fit two have the ends, one pair of them in two different towns."""
    release = [("[20 .. 30]", "12*", "Flu"), ("[20 .. 30]", "12*", "HIV")]
    place(con, release, [(20, "1234"), (25, "1234"), (30, "1234"), (30, "1235"), (25, "1299"), (20, "9999")])
    result = ldiv_db.attack(con, "t", policy=POLICY, population="everybody", downcoding=True)
    assert gains(result) == {
        "rows narrowed by the release": 1.0,
        "cells narrowed by the release": 0.5,
        "rows narrowed by the population": 1.0,
        "cells narrowed by the population": 1.0,
        "rows singled out": 1.0,
    }
    expected = {"people_alike": 5.0, "people_alike_narrowed": 1.0, "rows_unexplained": 0, "rows_untried": 0}
    assert found(result).figures == expected


def classes_of(label, rows):
    """A class of so many rows."""
    return [(*label, f"s{row}") for row in range(rows)]


def test_people_are_singled_out_of_larger_classes(con):
    """Alone under a child of three, alone at an end of four, and all rows with nobody else of five."""
    labels = [("20", "12*"), ("[40 .. 50]", "1234"), ("[60 .. 70]", "12*")]
    everybody = [(20, 1234), (20, 1235), (20, 1235), (40, 1234), (45, 1234), (50, 1234), (50, 1234)]
    everybody += [(60, 1234), (70, 1234), (65, 1299), (65, 1234), (66, 1234)]
    place(con, [row for label in labels for row in classes_of(label, 3)], everybody)
    result = ldiv_db.attack(con, "t", policy=POLICY, population="everybody", downcoding=True)
    assert gains(result)["rows singled out"] == 5 / 9 and gains(result)["rows narrowed by the population"] == 1.0
    assert found(result).figures["people_alike"] == 4
    assert found(result).figures["people_alike_narrowed"] == float(Fraction((1 + 2 + 2) + (1 + 3 + 3) + 3, 9))


#: Classes of whose rows nothing follows: a label, the number of its rows, and the people.
NOTHING = [
    (("[20 .. 30]", "12*"), 3, [*itertools.product([20, 30], ["1234", "1235"])]),  # two at each end
    (("[40 .. 41]", "1234"), 2, [(40, "1234"), (41, "1234")] * 2),  # no value inside
    (("45", "1234"), 2, [(45, "1234")] * 2),
    (("*", "9999"), 2, [(20, "9999"), (30, "9999"), (None, "9999")]),
    (("50", "12*"), 2, [(50, "1234"), (50, "1235"), (50, "1236")]),
    *(((label, "8888"), 2, []) for label in ("60+", ">=60", "<=90", "[60 .. 90)", "(60-90]", "{60, 90}", "75")),
    (("[60 .. 60]", "7777"), 0, [(age, "8888") for age in (60, 70, 90, 75)]),
]


def test_nothing_follows(con):
    release = [row for label, rows, _ in NOTHING for row in classes_of(label, rows)]
    place(con, release, [person for _, _, people in NOTHING for person in people])
    result = ldiv_db.attack(con, "t", policy=POLICY, population="everybody", downcoding=True)
    assert set(gains(result).values()) == {0.0}
    figures = found(result).figures
    assert figures["people_alike"] == figures["people_alike_narrowed"] > 1


def test_a_population_that_does_not_explain_a_class_tells_nothing(con):
    """Nobody is at an end, one row has two, and an end is wider than the people are."""
    labels = [("[20 .. 30]", 2), ("[40 .. 50]", 1), ("[60 .. 71]", 2)]
    ages = [20, 25, 26, 40, 50, 50, 60, 70, 70]
    release = [row for label, rows in labels for row in classes_of((label, "1234"), rows)]
    place(con, release, [(age, "1234") for age in ages])
    result = ldiv_db.attack(con, "t", policy=POLICY, population="everybody", downcoding=True)
    assert gains(result)["rows singled out"] == gains(result)["rows narrowed by the population"] == 0.0
    assert gains(result)["rows narrowed by the release"] == 4 / 5
    assert found(result).figures["rows_unexplained"] == 5


def test_sets_whose_members_overlap_say_nothing(con, tmp_path):
    """Nobody is told by {a, L}, which L covers; both by {d, e}, and the one who is not under M by {M, h}."""
    tree = {"L": {"a": {}, "b": {}}, "d": {}, "e": {}, "M": {"f": {}, "g": {}}, "h": {}}
    (tmp_path / "town.json").write_text(json.dumps({"any": tree}))
    policy = POLICY | {"quasi_identifiers": {"town": {"taxonomy": {"file": "town.json"}}}, "recode": "set"}
    fill(con, "everybody", {"town": "VARCHAR"}, [(town,) for town in "abdefgh"])
    release = [row for label in ("{a, L}", "{d, e}", "{M, h}") for row in classes_of((label,), 2)]
    fill(con, "t", {"town": "VARCHAR", "s": "VARCHAR"}, release)
    words = {"policy": policy, "folder": tmp_path, "population": "everybody", "downcoding": True}
    assert gains(ldiv_db.attack(con, "t", **words))["rows singled out"] == 3 / 6


@pytest.mark.parametrize(
    ("algorithm", "says"),
    some([("cuts", "cuts publishes the labels of its cut"), ("bsgi", None), ("tp_plus", "tp_plus publishes stars")], 2),
)
def test_nothing_follows_from_labels_that_do_not_follow_from_rows(algorithm, says, con):
    place(con, [("[20 .. 30]", "12*", "Flu")] * 2, [(20, "1234"), (30, "1235")])
    attack = found(ldiv_db.attack(con, "t", policy=POLICY | {"algorithm": algorithm}, downcoding=True))
    assert attack.figures.get("note", "").startswith(says or "") and ("note" in attack.figures) == (says is not None)
    assert [gain.gain for gain in attack.gains] == ([0.0, 0.0] if says else [1.0, 0.5])


def test_nested_ranges_have_no_sides(con):
    keys = {"age": {"taxonomy": {"ranges": [5, 10]}}}
    place(con, [("[20 .. 30)", "12*", "Flu")] * 2, [(20, "1234"), (29, "1235")])
    result = ldiv_db.attack(
        con, "t", policy=POLICY | {"quasi_identifiers": keys}, population="everybody", downcoding=True
    )
    assert found(result).figures == {"note": "no label has sides"} and set(gains(result).values()) == {0.0}


def test_times_have_ends_too(con):
    keys = {"day": {"numeric": True}, "at": {"numeric": True}}
    fill(con, "t", {"day": "VARCHAR", "at_min": "TIMESTAMP", "at_max": "TIMESTAMP", "s": "VARCHAR"},
         [("[2020-01-01 .. 2020-01-02]", "2020-01-01 10:00:00", "2020-01-01 10:00:01", s) for s in "xy"])  # fmt: skip
    result = ldiv_db.attack(con, "t", policy=POLICY | {"quasi_identifiers": keys}, downcoding=True)
    assert gains(result) == {"rows narrowed by the release": 1.0, "cells narrowed by the release": 0.5}


def test_what_is_not_tried_is_counted(con, monkeypatch):
    release = [("[20 .. 30]", "12*", s) for s in "ab"] + [("[40 .. 50]", "12*", s) for s in "ab"]
    place(con, release, [(20, "1234"), (25, "1235"), (30, "1235"), *((i, f"12{i}") for i in range(40, 51))])
    monkeypatch.setattr(downcoding, "_PAIR", BUDGET // 9)
    result = ldiv_db.attack(con, "t", policy=POLICY, population="everybody", downcoding=True)
    # Pairs of the second class have 11 * 11 kinds: its ends are told nevertheless.
    assert found(result).figures["rows_untried"] == 2 and gains(result)["rows singled out"] == 1.0


def test_an_empty_release_tells_nothing(con):
    place(con, [], [])
    result = ldiv_db.attack(con, "t", policy=POLICY, downcoding=True)
    assert set(gains(result).values()) == {None}
