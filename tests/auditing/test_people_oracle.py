"""Requirements on people as `oracle.py` has them: worked out by hand, beside those on rows, and of unions."""

from __future__ import annotations

import functools
import random
from fractions import Fraction
from typing import Any

import oracle
import pytest
from strategies import draws, search

Pairs = list[tuple[Any, Any]]

#: Three people: N = 3, of whom 2 have flu; shares in which each weighs one are 1/2 of flu, 1/3 of a cold, 1/6 of HIV.
CLASS: Pairs = [("A", "flu"), ("A", "HIV"), ("B", "flu"), ("C", "cold"), ("C", "cold")]
#: The table: five people, of whose shares .3 are flu, .5 HIV, .2 a cold.
TABLE: Pairs = [*CLASS, ("D", "HIV"), ("E", "HIV")]

#: What the class just meets, and what it just fails.
BY_HAND: dict[str, list[tuple[Any, Any]]] = {
    "k": [(3, 4)],
    "risk": [("1/3", 0.33)],
    "unique_distinct": [],
    "distinct": [(2, 3)],  # one person alone has no flu
    "p_sensitive": [({"p": 2, "k": 3}, {"p": 3, "k": 3}), ({"p": 1, "k": 3}, {"p": 1, "k": 4})],
    "frequency": [(1.5, "1.500001")],
    "alpha_k": [({"alpha": "0.67", "k": 3}, {"alpha": "0.66", "k": 3}), ({"alpha": 1, "k": 3}, {"alpha": 1, "k": 4})],
    "threshold": [("0.67", "0.66"), ({"default": 1, "HIV": "0.34"}, {"default": 1, "HIV": "0.33"})],
    # 2^(1/2) * 3^(1/3) * 6^(1/6) = 2.7495
    "entropy": [("2.749", "2.750")],
    "recursive": [({"c": "1.01", "l": 2}, {"c": 1, "l": 2}), ({"c": "3.01", "l": 3}, {"c": 3, "l": 3})],
    # (1/2 - .3) + (1/3 - .2) = 1/3
    "t_closeness": [("0.334", "0.333"), ({"t": "0.334", "distance": "equal"}, {"t": "0.333", "distance": "equal"})],
    # flu: 1/2 is 5/3 of .3, and a cold 5/3 of .2
    "beta_likeness": [({"beta": "0.667", "kind": "basic"}, {"beta": "0.666", "kind": "basic"}), ("0.667", "0.666")],
    # HIV: 1/6 is a third of .5; log2 3 = 1.585, ln 3 = 1.0986
    "delta_disclosure": [(1.59, 1.58), ({"delta": 1.1, "log": "e"}, {"delta": 1.09, "log": "e"})],
}
ARGUMENTS = {name: [argument for pair in pairs for argument in pair] for name, pairs in BY_HAND.items()} | {
    "k": [1, 2, 4],
    "unique_distinct": [1, 2, 3],
    "distinct": [1, 2, 3],
    "frequency": [1.5, 2, 3],
    "entropy": [1.5, 2, 3],
    "recursive": [{"c": c, "l": n} for c in (1, 2, "0.5") for n in (1, 2, 3)],
    "t_closeness": [0.2, 0.4],
    "beta_likeness": [1, {"beta": 0.5, "kind": "basic"}],
    "delta_disclosure": [1, {"delta": 1.5, "log": "e"}],
}
VALUES = ("flu", "HIV", "cold", None)


def people(draw: random.Random, names: Any, most_rows: int = 3) -> Pairs:
    """Some of the people, with up to so many rows each; a name of None is nobody known."""
    values = VALUES[: draw.randint(2, 4)]
    some = draw.sample(names, draw.randint(1, len(names)))
    return [(name, draw.choice(values)) for name in some for _ in range(draw.randint(1, most_rows))]


@pytest.mark.parametrize(("name", "meets", "fails"), [(n, *pair) for n, pairs in BY_HAND.items() for pair in pairs])
def test_a_class_worked_out_by_hand(name: str, meets: Any, fails: Any) -> None:
    assert oracle.people_are_good(CLASS, name, meets, TABLE)
    assert not oracle.people_are_good(CLASS, name, fails, TABLE)


def test_closeness_of_shares_has_any_distance() -> None:
    """In the order HIV, cold, flu it is (|1/6 - .5| + |1/2 - .7|) / 2 = 4/15."""
    distance = oracle.ground("ordered", ["HIV", "cold", "flu"])
    for t, expected in (("0.2666", False), ("0.2667", True)):
        argument = {"t": t, "distance": "ordered"}
        assert oracle.people_are_good(CLASS, "t_closeness", argument, TABLE, distance=distance) == expected


def test_different_values_are_of_people_with_one_row() -> None:
    assert oracle.people_are_good([("A", "flu"), ("B", "cold"), (None, "HIV")], "unique_distinct", 3)
    assert not oracle.people_are_good(CLASS, "unique_distinct", 1)
    assert not oracle.people_are_good([("A", "flu"), ("A", "cold")], "unique_distinct", 2)


def test_of_whom_nothing_is_known_is_somebody_else_in_every_row() -> None:
    assert oracle.people_are_good([(None, "flu"), (None, "cold")], "frequency", 2)
    assert not oracle.people_are_good([("A", "flu"), ("A", "cold")], "frequency", "1.01")


def test_who_has_a_harmless_value_counts() -> None:
    good = functools.partial(oracle.people_are_good, harmless=["flu"])
    assert good(CLASS, "frequency", 3) and not good(CLASS, "frequency", 4)
    assert good(CLASS, "distinct", 2) and not good(CLASS, "distinct", 3)
    assert good([("A", "flu")], "distinct", 3) and not good([("A", "flu")], "p_sensitive", {"p": 3, "k": 2})
    assert good(CLASS, "alpha_k", {"alpha": 0.34, "k": 3}) and good(CLASS, "threshold", 0.34)


@search(30, draw=draws)
def test_where_everybody_has_one_row_rows_are_people(draw: random.Random) -> None:
    pairs = people(draw, [*range(10), None], most_rows=1)
    table = [*pairs, *people(draw, range(10, 20), most_rows=1)]
    values, whole = ([value for _, value in some] for some in (pairs, table))
    for name in ARGUMENTS:
        argument = draw.choice(ARGUMENTS[name])
        if name == "t_closeness":
            t = Fraction(str(argument["t"] if isinstance(argument, dict) else argument))
            moved = oracle.transport(oracle.shares(values), oracle.shares(whole), oracle.ground("equal", whole))
            expected = moved <= t
        elif name in ("beta_likeness", "delta_disclosure"):
            asked = argument if isinstance(argument, dict) else {name.partition("_")[0]: argument}
            expected = oracle.gain_is_allowed(values, whole, name, asked)
        else:
            expected = oracle.class_is_good(values, name, argument)
        assert oracle.people_are_good(pairs, name, argument, table) == expected, (name, argument)


# -- unions ------------------------------------------------------------------------------------------

#: Two people who change places: together both have both.
SWAPPED: tuple[Pairs, Pairs] = ([("A", "x"), ("B", "y")], [("A", "y"), ("B", "x")])
#: Who is in both counts once: together one of three has x.
SHARED: tuple[Pairs, Pairs] = ([("A", "x"), ("B", "y")], [("A", "x"), ("C", "y")])
#: Good classes of people in common, whose union is not; in the table there is D, who has x.
BAD_UNIONS: dict[str, tuple[Any, tuple[Pairs, Pairs]]] = {
    "distinct": (2, SWAPPED),
    "p_sensitive": ({"p": 2, "k": 2}, SWAPPED),
    "frequency": (2, SHARED),
    "alpha_k": ({"alpha": 0.5, "k": 2}, SHARED),
    "threshold": (0.5, SHARED),
    "entropy": (2, SHARED),
    "recursive": ({"c": 1.5, "l": 2}, SHARED),
    "t_closeness": (0.1, SHARED),
    "beta_likeness": ({"beta": 0.2, "kind": "basic"}, SHARED),
    "delta_disclosure": (0.4, SHARED),
}


@pytest.mark.parametrize("name", BAD_UNIONS)
def test_people_in_both_may_spoil_a_union(name: str) -> None:
    argument, (one, other) = BAD_UNIONS[name]
    judged = functools.partial(oracle.people_are_good, name=name, argument=argument, whole=[*one, *other, ("D", "x")])
    assert [judged(pairs) for pairs in (one, other, one + other)] == [True, True, False]
    assert len({person for person, _ in one}) == len(one), "nobody has two rows in either"


@search(60, draw=draws)
def test_a_union_without_people_in_both_is_good(draw: random.Random) -> None:
    """Where nothing but the number of people is asked for, some may be in both."""
    one, rest = people(draw, range(6)), people(draw, range(20, 25))
    apart, overlapping = people(draw, range(6, 12)), people(draw, range(5, 12))
    for name in sorted(set(ARGUMENTS) - {"unique_distinct"}):
        other = overlapping if name == "k" else apart
        for argument in ARGUMENTS[name]:
            judged = functools.partial(oracle.people_are_good, name=name, argument=argument, whole=one + other + rest)
            if judged(one) and judged(other):
                assert judged(one + other), (name, argument)


@search(40, draw=draws)
def test_whoever_joins_a_class_keeps_it_good(draw: random.Random) -> None:
    one, joins = people(draw, range(6)), people(draw, ["joins"])
    for name in ("k", "distinct", "p_sensitive"):
        for argument in ARGUMENTS[name]:
            if oracle.people_are_good(one, name, argument):
                assert oracle.people_are_good(one + joins, name, argument), (name, argument)
