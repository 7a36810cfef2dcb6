"""Bounds on attacks: no class that meets a requirement exceeds them, and where it can be some class reaches them."""

import itertools
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import oracle
import pytest
from strategies import draws, search

from ldiv_db.attacking.gains import Bounds, Prior
from ldiv_db.requirements import REQUIREMENTS, Attribute, RequirementSpec, make_categories
from ldiv_db.requirements.guarantees import Guarantee

GROUPS = [["a", "b"], ["c", "d"], ["e"]]
CATEGORY = {value: number for number, group in enumerate(GROUPS, 1) for value in group}
WEIGHING = oracle.Weighing(GROUPS, oracle.weights([1, 1]))


def required(name, parameters):
    of_numbers = name in ("range", "proximity")
    return RequirementSpec(name, parameters).resolve(None, Attribute("s", make_categories(GROUPS), None, of_numbers))


def is_good(values, table, name, parameters):
    """Whether a class of these values meets a requirement, by the oracle."""
    if name == "t_closeness":
        gap = oracle.transport(oracle.shares(values), oracle.shares(table), oracle.ground("equal", table))
        return gap <= Fraction(str(parameters["t"]))
    if name in ("beta_likeness", "delta_disclosure"):
        return oracle.gain_is_allowed(values, table, name, parameters)
    if name.endswith("_alpha"):
        return WEIGHING.is_good(values, name, parameters)
    if name in ("range", "proximity"):
        return oracle.class_is_good(["abcde".index(value) for value in values], name, parameters)
    several = name in ("threshold", "recursive", "alpha_k", "p_sensitive")
    return oracle.class_is_good(values, name, parameters if several else next(iter(parameters.values())))


def promised(name, parameters):
    return required(name, parameters).promise()


def bounds_of(promise, table):
    """The bounds on a table of these values."""
    counts = Counter(table)
    return Bounds(promise, [Prior(1, n, promise.share_of(v), CATEGORY[v]) for v, n in counts.items()])


def exceeded(bounds, classes, m):
    """The bounds that classes exceed."""
    rows = [(number, value) for number, values in enumerate(classes) for value in values]
    ratio, difference = oracle.skewness(rows)
    best, certain = oracle.background(rows, m)
    figures = {
        "one_value": (oracle.single(rows), bounds.one_value),
        "one_category": (oracle.single([(k, CATEGORY[v]) for k, v in rows]), bounds.one_category),
        "ratio": (ratio, bounds.ratio),
        "difference": (difference, bounds.difference),
        "background": (best, bounds.excluded(m)),
        "certain": (certain, bounds.few_values(m + 1)),
        "posterior": (max(oracle.posteriors(rows)), bounds.posterior),
        "record": (Fraction(1, min(map(len, classes))), bounds.record),
    }
    return {name for name, (figure, bound) in figures.items() if bound is not None and figure > bound}


REQUIRED = [
    ("k", {"k": 3}), ("risk", {"max": Decimal("0.3")}),
    ("distinct", {"l": 2}), ("distinct", {"l": 3}), ("unique_distinct", {"l": 3}),
    ("frequency", {"l": Decimal(2)}), ("frequency", {"l": Decimal("2.5")}), ("frequency", {"l": Decimal(4)}),
    ("threshold", {"default": Decimal("0.5"), "a": Decimal("0.2")}),
    ("threshold", {"default": 1, "a": Decimal("0.4")}),
    ("threshold", {"default": Decimal("0.4"), "a": Decimal("0.9")}),
    ("alpha_k", {"alpha": Decimal("0.5"), "k": 3}), ("p_sensitive", {"p": 2, "k": 4}), ("entropy", {"l": 2.5}),
    ("recursive", {"c": Decimal(2), "l": 3}), ("recursive", {"c": Decimal("0.5"), "l": 2}), ("recursive", {"c": 3, "l": 1}),  # noqa: E501
    ("t_closeness", {"t": Decimal("0.2")}), ("t_closeness", {"t": Decimal("0.5"), "distance": "equal"}),
    ("distinct_alpha", {"l": 2, "alpha": 1}), ("distinct_alpha", {"l": 1, "alpha": 3}),
    ("entropy_alpha", {"l": 2, "alpha": 0}),
    ("recursive_alpha", {"c": 2, "l": 2, "alpha": 0}), ("recursive_alpha", {"c": Decimal("0.9"), "l": 2, "alpha": 1}),
    ("beta_likeness", {"beta": Decimal("0.5")}), ("beta_likeness", {"beta": 1, "kind": "basic"}),
    ("delta_disclosure", {"delta": Decimal("0.6")}), ("delta_disclosure", {"delta": 1, "log": "e"}),
    ("recursive", {"c": Decimal("0.5"), "l": 1}), ("recursive_alpha", {"c": 3, "l": 3, "alpha": 0}),
    ("range", {"k": 3, "e": 3}), ("proximity", {"epsilon": 1, "m": 2}), ("proximity", {"epsilon": "0.5", "m": 3}),
]  # fmt: skip


@search(20, draw=draws)
def test_no_good_table_exceeds_a_bound(draw):
    """Random tables of two classes, even ones among them, by each requirement that they meet."""
    classes = [
        draw.sample("abcde", draw.randint(1, 5)) * draw.randint(1, 2) + draw.choices("abcde", k=draw.randint(0, 3))
        for _ in range(2)
    ]
    table, m = [value for values in classes for value in values], draw.randint(0, 3)
    for name, parameters in REQUIRED:
        if all(is_good(values, table, name, parameters) for values in classes):
            bounds = bounds_of(promised(name, parameters), table)
            assert exceeded(bounds, classes, m) == set(), (name, parameters)


@pytest.mark.parametrize(
    ("name", "parameters", "table", "m", "values"),
    [
        ("frequency", {"l": 3}, "aabbcc", 0, {"posterior": 1 / 3, "excluded": 1 / 3, "record": 1 / 3}),
        ("frequency", {"l": 3}, "aabbcc", 1, {"excluded": 1 / 2, "few_values": 0, "one_value": 0}),
        ("frequency", {"l": 3}, "aabbcc", 2, {"excluded": None, "few_values": None}),
        ("frequency", {"l": 2}, "aabc", 0, {"ratio": 2, "difference": 1 / 4, "one_category": None}),
        ("frequency", {"l": 3}, "aabbce", 0, {"one_category": 0}),
        ("distinct", {"l": 3}, "abcde", 1, {"one_category": 0, "few_values": 0, "posterior": None, "ratio": None}),
        ("distinct", {"l": 2}, "abcde", 1, {"one_category": None, "few_values": None, "record": 1 / 2, "one_value": 0}),
        ("k", {"k": 5}, "aab", 0, {"record": 1 / 5, "posterior": None, "one_value": None, "difference": None}),
        ("k", {"k": 1}, "aab", 0, {"record": None}),
        ("recursive", {"c": 2, "l": 3}, "abc", 1, {"excluded": 2 / 3, "posterior": 2 / 3}),
        ("recursive", {"c": 2, "l": 3}, "abc", 2, {"excluded": None}),
        ("t_closeness", {"t": Decimal("0.25")}, "aabc", 0, {"posterior": 0.75, "difference": 0.25, "ratio": 2}),
        ("t_closeness", {"t": Decimal("0.25"), "distance": "ordered"}, "aabc", 0, {"posterior": None}),
        ("beta_likeness", {"beta": 1, "kind": "basic"}, "aabc", 0, {"posterior": None, "ratio": 2}),
        ("beta_likeness", {"beta": 1, "kind": "basic"}, "aaaabcde", 0, {"ratio": 2, "record": None}),
        ("beta_likeness", {"beta": 2, "kind": "basic"}, "abcdeabcdeabcdeabcde", 0, {"posterior": 0.6, "ratio": 3}),
        ("beta_likeness", {"beta": 9}, "aabb", 0, {"posterior": (1 + math.log(2)) / 2, "ratio": 1 + math.log(2)}),
        ("delta_disclosure", {"delta": 1}, "abcd", 0, {"posterior": 0.5, "ratio": 2, "record": 1 / 2}),
        ("entropy_alpha", {"l": 2, "alpha": 1}, "abcde", 0, {"one_category": 0}),
        ("t_closeness", {"t": Decimal("0.25"), "distance": "ordered"}, "aabc", 0, {"difference": None, "record": None}),
        ("recursive", {"c": Decimal("0.5"), "l": 2}, "abcde", 2, {"few_values": 0, "record": 1 / 4, "one_category": 0}),
        ("recursive", {"c": Decimal("0.25"), "l": 1}, "abcde", 0, {"posterior": 1 / 4, "record": 1 / 5}),
        ("entropy", {"l": Decimal("2.000000001")}, "abcde", 0, {"record": 1 / 2}),
        ("entropy", {"l": Decimal("2.1")}, "abcde", 0, {"record": 1 / 3}),
        ("distinct_alpha", {"l": 2, "alpha": 0}, "abce", 0, {"one_category": None, "record": 1 / 2}),
        ("distinct_alpha", {"l": 2, "alpha": 1}, "abce", 0, {"one_category": 0, "record": 1 / 2}),
        ("distinct_alpha", {"l": 2, "alpha": 1}, "abcd", 0, {"one_category": None}),
        ("distinct_alpha", {"l": 1, "alpha": 3}, "abcd", 0, {"one_value": None, "record": 1 / 3}),
        ("recursive_alpha", {"c": 1, "l": 2, "alpha": 0}, "abcde", 0, {"posterior": 1 / 2, "one_category": 0}),
        ("range", {"k": 3, "e": 9}, "abcde", 0, {"one_value": 0, "one_category": 0, "record": 1 / 3}),
        ("range", {"k": 2, "e": 9}, "abcde", 0, {"one_value": 0, "one_category": None, "record": 1 / 2}),
        ("proximity", {"epsilon": 1, "m": 3}, "aabbcc", 0, {"posterior": 1 / 3, "record": 1 / 3, "ratio": 1}),
    ],
)  # fmt: skip
def test_bounds_of_known_tables(name, parameters, table, m, values):
    bounds = bounds_of(promised(name, parameters), list(table))
    methods = {"excluded": lambda: bounds.excluded(m), "few_values": lambda: bounds.few_values(m + 1)}
    for key, expected in values.items():
        value = methods[key]() if key in methods else getattr(bounds, key)
        assert (value is None) == (expected is None), key
        assert value is None or abs(value - expected) < 1e-12, key


def test_every_requirement_promises_something():
    arguments = {name: parameters for name, parameters in REQUIRED if promised(name, parameters) != Guarantee()}
    assert arguments.keys() == {name for name, kind in REQUIREMENTS.items() if name not in ("k_map", "delta_presence")}


def test_promises_add_up():
    together = promised("distinct", {"l": 3}) & promised("threshold", {"default": Decimal("0.5"), "a": Decimal("0.1")})
    together &= promised("frequency", {"l": 4})
    assert (together.values, together.share_of("a"), together.share_of("b")) == (3, Fraction(1, 10), Fraction(1, 4))
    # It takes four of the values that may have a quarter.
    assert bounds_of(together, list("abcde")).record == Fraction(1, 4)


@pytest.mark.parametrize("l", [2, 3, 4])
def test_frequency_bounds_are_reached(l):
    """A class of l values alike meets the requirement and gives all that the bounds allow."""
    values = list("abcde"[:l])
    bounds = bounds_of(promised("frequency", {"l": l}), values)
    for m in range(l - 1):
        assert oracle.background([(1, value) for value in values], m)[0] == bounds.excluded(m)
    assert bounds.posterior == bounds.record == Fraction(1, l)


def test_the_largest_set_of_shares_decides_what_excluded_values_tell():
    """Every subset is tried: the bound is the largest posterior that shares within their limits can have."""
    limits = {"a": Fraction(2, 5), "b": Fraction(3, 10), "c": Fraction(1, 5), "d": Fraction(1, 5)}
    promise = Guarantee(share=Fraction(1, 5), shares=tuple(limits.items()))
    for m in range(3):
        best = max(
            limits[value] / (1 - sum(limits[other] for other in others))
            for value in limits
            for others in itertools.combinations(set(limits) - {value}, m)
        )
        assert bounds_of(promise, list("abcd")).excluded(m) == (best if best < 1 else None)
