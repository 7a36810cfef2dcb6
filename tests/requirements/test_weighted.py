"""Categories, their weights, and which classes of different values a requirement needs."""

import itertools
from fractions import Fraction

import oracle
import pytest

from ldiv_db.requirements import Attribute, RequirementSpec, make_categories

GROUPS = [["a", "b"], ["c"], ["d", "e", "f"], ["g"]]


def test_the_weights_of_the_specification():
    """For four categories and beta = 2; the paper prints 9/61 and 45/61, against its own equation."""
    assert make_categories(GROUPS, {"sensitivity": 2}).weights == (0, Fraction(36, 49), Fraction(45, 49), 1)
    assert make_categories(GROUPS).weights == (0, Fraction(1, 3), Fraction(2, 3), 1)
    assert make_categories(GROUPS, [0, 0.2, "0.25", 1]).weights == (0, Fraction(1, 5), Fraction(1, 4), 1)


@pytest.mark.parametrize("beta", [1, 2, 1.5, 3])
@pytest.mark.parametrize("count", [2, 3, 8, 30])
def test_steps_stand_to_each_other_as_the_equation_says(count, beta):
    weights = make_categories([[str(i)] for i in range(count)], {"sensitivity": beta}).weights
    assert (weights[0], weights[-1]) == (0, 1)
    for i in range(2, count):
        step, before = weights[i] - weights[i - 1], weights[i - 1] - weights[i - 2]
        assert float(step / before) == pytest.approx(((i - 1) / i) ** beta, abs=1e-6)


@pytest.mark.parametrize(
    ("groups", "weights", "says"),
    [
        ("ab", None, "two lists"), ([["a"]], None, "two lists"), ([["a"], []], None, "none of them empty"),
        ([["a"], ["a"]], None, "twice"), ([[1], ["1"]], None, "twice"), (GROUPS, "even", "uniform"),
        (GROUPS, {"sensitivity": 0.5}, "from 1"), (GROUPS, {"sensitivity": "x"}, "from 1"),
        (GROUPS, [0, 1], "2 weights"),
        (GROUPS, [0, 0.5, 0.4, 1], "rise"), (GROUPS, [0, 0, 0, 1.5], "rise"), (GROUPS, [0, 0, 0, "x"], "numbers"),
    ],
)  # fmt: skip
def test_what_is_no_category_is_refused(groups, weights, says):
    with pytest.raises(ValueError, match=says):
        make_categories(groups, weights)


SIZED = [
    ("k", 4), ("distinct", 3), ("entropy", 3), ("entropy", 2.5), ("frequency", 2.5),
    ("alpha_k", {"alpha": 0.3, "k": 2}), ("p_sensitive", {"p": 2, "k": 4}), ("threshold", {"default": 0.5, "a": 0.2}),
    *(("recursive", {"c": c, "l": n}) for c in (0.5, 1, 2, "0.3") for n in (1, 2, 3)),
    *(("distinct_alpha", {"l": n, "alpha": a}) for n in (1, 3) for a in (0, 0.5, 2)),
    *(("entropy_alpha", {"l": n, "alpha": a}) for n in (1, 2, 2.5) for a in (0, 1)),
    *(("recursive_alpha", {"c": c, "l": 2, "alpha": a}) for c in (1, 2) for a in (0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "argument"), SIZED)
def test_the_class_size_is_the_smallest_that_serves_all_choices_of_values(name, argument):
    """By all sets of different values; NULL may occur and is of the first category."""
    values = [*itertools.chain(*GROUPS), None]
    attribute = Attribute("s", make_categories(GROUPS))
    weighing = oracle.Weighing(GROUPS, oracle.weights([Fraction(1)] * 3))
    good = weighing.is_good if name.endswith("_alpha") else oracle.class_is_good
    worst = [
        all(good(chosen, name, argument) for chosen in itertools.combinations(values, size))
        for size in range(1, len(values) + 1)
    ]
    bad = max((size for size, holds in enumerate(worst, 1) if not holds), default=0)
    size = RequirementSpec(name, argument).resolve(None, attribute).unique_class_size()
    if name == "threshold":
        assert size == 5, "a value with a low threshold may be in any class"
    else:
        assert size == (bad + 1 if bad < len(values) else None)


def test_no_size_promises_closeness():
    assert RequirementSpec("t_closeness", 0.2).resolve(None).unique_class_size() is None
