"""Bounds on attacks: no class that meets a requirement exceeds them, and where it can be some class reaches them."""

import itertools
import math
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import oracle
import pytest

from ldiv_db.promises import Bounds, Prior, Promise, promise_of, promise_of_all
from ldiv_db.requirements import REQUIREMENTS, parse_requirement

CATEGORY = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3}


def is_good(values, table, name, parameters):
    """Whether a class of these values meets a requirement, by its definition alone."""
    counts = sorted(Counter(values).values(), reverse=True)
    p = parameters
    if name in REQUIREMENTS:
        return oracle.class_is_good(values, name, p if name == "threshold" else next(iter(p.values())))
    if name == "alpha_k":
        return len(values) >= p["k"] and Fraction(counts[0], len(values)) <= Fraction(str(p["alpha"]))
    if name == "p_sensitive":
        return len(values) >= p["k"] and len(counts) >= p["p"]
    if name == "t_closeness":
        gaps = [Fraction(values.count(v), len(values)) - Fraction(table.count(v), len(table)) for v in set(table)]
        return sum(map(abs, gaps)) / 2 <= Fraction(str(p["t"]))
    if name == "distinct_alpha":
        return len(counts) >= p["l"]
    if name in ("entropy_alpha", "recursive_alpha"):
        inner = {key: value for key, value in p.items() if key != "alpha"}
        plain = is_good([CATEGORY[v] for v in values], table, name.removesuffix("_alpha"), inner)
        return len(counts) >= p["l"] and plain
    if name == "entropy":
        shares = [count / len(values) for count in counts]
        return -sum(share * math.log(share) for share in shares) >= math.log(p["l"]) - 1e-9
    if name == "recursive":
        return counts[0] < Fraction(str(p["c"])) * sum(counts[p["l"] - 1 :])
    raise AssertionError(name)


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
    ("k", {"k": 3}), ("distinct", {"l": 2}), ("distinct", {"l": 3}), ("unique_distinct", {"l": 3}),
    ("frequency", {"l": Decimal(2)}), ("frequency", {"l": Decimal("2.5")}), ("frequency", {"l": Decimal(4)}),
    ("threshold", {"default": Decimal("0.5"), "a": Decimal("0.2")}),
    ("threshold", {"default": 1, "a": Decimal("0.4")}),
    ("threshold", {"default": Decimal("0.4"), "a": Decimal("0.9")}),
    ("alpha_k", {"alpha": Decimal("0.5"), "k": 3}), ("p_sensitive", {"p": 2, "k": 4}), ("entropy", {"l": 2.5}),
    ("recursive", {"c": Decimal(2), "l": 3}), ("recursive", {"c": Decimal("0.5"), "l": 2}), ("recursive", {"c": 3, "l": 1}),  # noqa: E501
    ("t_closeness", {"t": Decimal("0.2")}), ("t_closeness", {"t": Decimal("0.5"), "distance": "equal"}),
    ("distinct_alpha", {"l": 2, "alpha": 1}), ("entropy_alpha", {"l": 2, "alpha": 0}),
    ("recursive_alpha", {"c": 2, "l": 2, "alpha": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), REQUIRED)
def test_no_good_table_exceeds_a_bound(name, parameters):
    """Random tables of two classes, even ones among them, as far as they are good."""
    draw, tried = random.Random(name), 0
    for _ in range(1500):
        classes = [
            draw.sample("abcde", draw.randint(1, 5)) * draw.randint(1, 2) + draw.choices("abcde", k=draw.randint(0, 3))
            for _ in range(2)
        ]
        table = [value for values in classes for value in values]
        if all(is_good(values, table, name, parameters) for values in classes):
            tried += 1
            bounds = bounds_of(promise_of(name, parameters), table)
            assert exceeded(bounds, classes, draw.randint(0, 3)) == set(), classes
    assert tried > 10


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
        ("entropy_alpha", {"l": 2, "alpha": 1}, "abcde", 0, {"one_category": 0}),
        ("unheard_of", {"x": 1}, "abcde", 0, {"posterior": None, "record": None}),
    ],
)  # fmt: skip
def test_bounds_of_known_tables(name, parameters, table, m, values):
    bounds = bounds_of(promise_of(name, parameters), list(table))
    methods = {"excluded": lambda: bounds.excluded(m), "few_values": lambda: bounds.few_values(m + 1)}
    for key, expected in values.items():
        value = methods[key]() if key in methods else getattr(bounds, key)
        assert (value is None) == (expected is None), key
        assert value is None or abs(value - expected) < 1e-12, key


def test_every_requirement_promises_something():
    for name, kind in REQUIREMENTS.items():
        spec = parse_requirement(f"{name}:{'0.5' if kind.name == 'threshold' else 2}")
        assert promise_of_all([spec.resolve(None)]) != Promise(), name


def test_promises_add_up():
    together = promise_of("distinct", {"l": 3}) & promise_of(
        "threshold", {"default": Decimal("0.5"), "a": Decimal("0.1")}
    )
    together &= promise_of("frequency", {"l": 4})
    assert (together.values, together.share_of("a"), together.share_of("b")) == (3, Fraction(1, 10), Fraction(1, 4))
    # It takes four of the values that may have a quarter.
    assert bounds_of(together, list("abcde")).record == Fraction(1, 4)


@pytest.mark.parametrize("l", [2, 3, 4])
def test_frequency_bounds_are_reached(l):  # noqa: E741
    """A class of l values alike meets the requirement and gives all that the bounds allow."""
    values = list("abcde"[:l])
    bounds = bounds_of(promise_of("frequency", {"l": l}), values)
    for m in range(l - 1):
        assert oracle.background([(1, value) for value in values], m)[0] == bounds.excluded(m)
    assert bounds.posterior == bounds.record == Fraction(1, l)


def test_the_largest_set_of_shares_decides_what_excluded_values_tell():
    """Every subset is tried: the bound is the largest posterior that shares within their limits can have."""
    limits = {"a": Fraction(2, 5), "b": Fraction(3, 10), "c": Fraction(1, 5), "d": Fraction(1, 5)}
    promise = Promise(share=Fraction(1, 5), shares=tuple(limits.items()))
    for m in range(3):
        best = max(
            limits[value] / (1 - sum(limits[other] for other in others))
            for value in limits
            for others in itertools.combinations(set(limits) - {value}, m)
        )
        assert bounds_of(promise, list("abcd")).excluded(m) == (best if best < 1 else None)
