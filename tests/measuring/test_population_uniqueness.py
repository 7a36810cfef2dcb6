"""Estimates of how many people are unique in a population, against plain sums, other definitions and known populations.

What follows from a formula is worked out another way here: likelihoods as products over draws, distributions term by
term, maxima on a grid.
"""

import itertools
import json
import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import reject
from refusals import refuses
from strategies import search, seeds, some

import ldiv_db
from ldiv_db.database.errors import PolicyError
from ldiv_db.measuring import population_uniqueness as population

SIZES = {1: 50, 2: 20, 3: 5, 7: 2, 40: 1}


def draw(source: random.Random) -> dict[int, int]:
    """Classes of at least one and two rows, as a sample has them."""
    sizes = Counter(1 + int(source.expovariate(source.choice([0.4, 1, 2]))) for _ in range(source.randint(3, 60)))
    return dict(sizes + Counter({1: 1, 2: 1}))


def rows_of(sizes: dict[int, int]) -> int:
    return sum(size * count for size, count in sizes.items())


# -- Pitman -------------------------------------------------------------------------------------------


def log_likelihood(alpha: float, theta: float, sizes: dict[int, int]) -> float:
    """The logarithm of the probability of the classes, drawn row by row, whatever their order."""
    found, drawn, classes = 0.0, 0, 0
    for size, count in sizes.items():
        for _ in range(count):
            for rows in range(size):
                chance = theta + classes * alpha if rows == 0 else rows - alpha
                found += math.log(chance / (theta + drawn)) if drawn else 0
                drawn += 1
            classes += 1
    return found


@search(3, seed=seeds)
def test_pitmans_parameters_are_the_likeliest(seed: int) -> None:
    """No point of a grid over both, and none nearby, has a greater likelihood."""
    source = random.Random(seed)
    sizes = draw(source)
    fitted = population.fit_pitman(sizes)
    best = log_likelihood(fitted.alpha, fitted.theta, sizes)
    for alpha in (0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, fitted.alpha, fitted.alpha + 1e-3):
        for excess in (*(2.0**i for i in range(-6, 12)), fitted.excess * 0.99, fitted.excess * 1.01):
            assert log_likelihood(alpha, excess - alpha, sizes) <= best + 1e-7


def test_pitmans_expectation_is_that_of_drawing_row_by_row() -> None:
    """Classes of one after each draw: one more for a new class, one less for a row that joins one."""
    model = population.Pitman(alpha=0.3, excess=2.5)
    classes, ones = 1.0, 1.0
    for drawn in range(1, 500):
        opened = (model.theta + classes * model.alpha) / (model.theta + drawn)
        ones += opened - ones * (1 - model.alpha) / (model.theta + drawn)
        classes += opened
    assert model.expected_uniques(500) == pytest.approx(ones, rel=1e-12)


@pytest.mark.parametrize(("alpha", "excess"), [(0.4, 30.0), (0.8, 5.0), (1e-5, 700.0)])
def test_for_large_populations_it_comes_near_hoshinos_limit(alpha: float, excess: float) -> None:
    model = population.Pitman(alpha, excess)
    limit = math.exp(math.lgamma(model.theta + 1) - math.lgamma(excess) + alpha * math.log(10**9))
    assert model.expected_uniques(10**9) == pytest.approx(limit, rel=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2, 31, 33, 5_000])
def test_reciprocals_are_summed(count: int) -> None:
    for first, step in itertools.product([1e-9, 0.3, 7.0, 1e6], [0, 1e-6, 0.2, 1]):
        plain = math.fsum(1 / (first + i * step) for i in range(count))
        assert population.sum_reciprocals(first, step, count) == pytest.approx(plain, rel=1e-12), (first, step)


# -- Zayatz -------------------------------------------------------------------------------------------


@search(10, seed=seeds)
def test_zayatz_by_whole_numbers(seed: int) -> None:
    source = random.Random(seed)
    sizes = draw(source)
    rows = rows_of(sizes)
    people = rows + source.randint(0, 3 * rows)

    def one_drawn(size: int) -> Fraction:
        """The hypergeometric probability that one row of a class of the population is in the sample."""
        return Fraction(size * math.comb(people - size, rows - 1), math.comb(people, rows)) if size <= people else 0

    singly = sum(count * one_drawn(size) for size, count in sizes.items())
    unique = sizes[1] * one_drawn(1) / singly
    assert population.zayatz(sizes, people) == pytest.approx(float(sizes[1] * unique * people / rows), rel=1e-10)


def test_zayatz_of_a_class_larger_than_what_is_left() -> None:
    assert population.zayatz({1: 3, 2: 1, 50: 1}, 56) == pytest.approx(3 * 3 / (3 + 2 * Fraction(1, 55)) * 56 / 55)


# -- slide negative binomial --------------------------------------------------------------------------


@search(10, seed=seeds)
def test_the_negative_binomial_expects_the_samples_ones_and_twos(seed: int) -> None:
    """By the distribution term by term, each row being drawn with the same probability."""
    source = random.Random(seed)
    sizes = draw(source)
    people = int(rows_of(sizes) * source.choice([1.5, 2, 4]))
    try:
        model = population.fit_slide(sizes, people)
    except ValueError:
        reject()
    drawn = rows_of(sizes) / people
    ones = twos = ones_there = rows_there = 0.0
    chance = model.beta**model.alpha
    for size in range(1, 40_000):
        ones_there += chance if size == 1 else 0
        rows_there += size * chance
        ones += chance * size * drawn * (1 - drawn) ** (size - 1)
        twos += chance * math.comb(size, 2) * drawn**2 * (1 - drawn) ** (size - 2) if size > 1 else 0
        chance *= (model.alpha + size - 1) / size * (1 - model.beta)
    assert model.classes * ones == pytest.approx(sizes[1], rel=1e-6)
    assert model.classes * twos == pytest.approx(sizes[2], rel=1e-6)
    assert model.expected_uniques == pytest.approx(model.classes * ones_there)
    if model.beta > 0.01:
        assert model.rows == pytest.approx(model.classes * rows_there, rel=1e-6)


def test_the_number_of_classes_by_whole_numbers() -> None:
    """Haas and Stokes's formula as they write it."""
    q = Fraction(1, 4)
    first = sum(i * q**2 * (1 - q**2) ** (i - 1) * f for i, f in SIZES.items())
    first /= sum((1 - q) ** i * ((1 + q) ** i - 1) * f for i, f in SIZES.items())
    second = sum((1 - q) ** i * f for i, f in SIZES.items()) / sum(
        i * q * (1 - q) ** (i - 1) * f for i, f in SIZES.items()
    )
    expected = sum(SIZES.values()) + SIZES[1] * first * second**2
    assert population.estimate_classes(SIZES, 0.25) == pytest.approx(float(expected), rel=1e-12)


# -- known populations --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1))
def test_the_negative_binomial_finds_a_geometric_populations_uniques(seed: int) -> None:
    """A class has 1 + x rows, x geometric: the model with alpha 1. Within a tenth at half of the people."""
    source = random.Random(seed)
    people = [number for number in range(20_000) for _ in range(1 + int(source.expovariate(0.3)))]
    truth = sum(count == 1 for count in Counter(people).values())
    sample = Counter(Counter(source.sample(people, len(people) // 2)).values())
    found = population.estimate(sample, len(people))
    assert found.chosen == population.SNB
    assert found.uniques == pytest.approx(truth, rel=0.1)


def grow(seed: int) -> list[int]:
    """60,000 people by class, as Pitman's process has them: alpha .6, theta 100."""
    source, alpha, theta, classes = random.Random(seed), 0.6, 100, 0
    people: list[int] = []
    for drawn in range(60_000):
        if source.random() * (theta + drawn) < theta + alpha * classes:
            people.append(drawn)
            classes += 1
        else:  # in proportion to size less alpha: a class's first row counts for that much less
            while (other := source.randrange(drawn)) == people[other] and source.random() < alpha:
                pass
            people.append(people[other])
    return people


@pytest.mark.parametrize("seed", range(1))
def test_pitman_finds_the_uniques_of_populations_grown_by_its_process(seed: int) -> None:
    """From a tenth of the people, in the mean of four populations; one alone varies by some 8 %."""
    ratios = []
    for number in range(4 * seed, 4 * seed + 4):
        people = grow(number)
        truth = sum(count == 1 for count in Counter(people).values())
        drawn = Counter(random.Random(number).sample(people, 6_000))
        found = population.estimate(Counter(drawn.values()), len(people))
        assert found.chosen == population.PITMAN
        ratios.append(found.uniques / truth)
    assert sum(ratios) / 4 == pytest.approx(1, abs=0.15)


# -- which one is shown -------------------------------------------------------------------------------


def test_a_small_sample_is_judged_by_pitman_and_another_by_the_lower_of_two() -> None:
    small = population.estimate(SIZES, rows_of(SIZES) * 10)
    large = population.estimate(SIZES, rows_of(SIZES) * 4)
    assert (small.chosen, large.chosen) == (population.PITMAN, population.SNB)
    assert large.uniques == min(large.estimates[name].uniques for name in (population.ZAYATZ, population.SNB))
    assert large.share == large.uniques / large.population


def test_a_model_that_fits_nothing_says_so_and_another_is_taken() -> None:
    found = population.estimate({1: 10}, 1_000)
    assert found.estimates[population.PITMAN] == population.UniquesEstimate(
        None, "every row is unique: the likelihood grows with theta"
    )
    assert found.estimates[population.SNB].reason == "needs classes of one and of two rows"
    assert (found.chosen, found.uniques) == (population.ZAYATZ, 1_000)


def test_where_nobody_is_unique_or_everybody_is_there_nothing_is_estimated() -> None:
    assert {one.uniques for one in population.estimate({2: 5, 9: 1}, 500).estimates.values()} == {0.0}
    found = population.estimate(SIZES, rows_of(SIZES))
    assert {one.uniques for one in found.estimates.values()} == {50.0}
    assert found.as_dict()["sampling_fraction"] == 1


@search(30, seed=seeds)
def test_every_estimate_is_a_number_of_people_or_has_a_reason(seed: int) -> None:
    source = random.Random(seed)
    sizes = dict(Counter(source.randint(1, source.choice([1, 2, 3, 50])) for _ in range(source.randint(1, 9))))
    people = rows_of(sizes) + source.choice([0, 1, 10, 10**6, 10**11])
    for found in population.estimate(sizes, people).estimates.values():
        assert found.reason if found.uniques is None else 0 <= found.uniques <= people


# -- of tables ----------------------------------------------------------------------------------------


@pytest.fixture
def people(con):
    """SIZES as rows: classes of a."""
    sizes = [size for size, count in SIZES.items() for _ in range(count)]
    con.execute("CREATE TABLE sizes AS SELECT unnest(range(len(?))) AS number, unnest(?) AS size", [sizes, sizes])
    con.execute("CREATE TABLE t AS SELECT 'a' || number AS a, 's' || i % 3 AS s FROM sizes, range(size) AS r(i)")
    return con


def test_a_profile_has_the_estimates_of_its_population(people):
    found = ldiv_db.profile(people, "t", ["a"], ["s"], population_size=500)
    assert found.uniqueness.population == population.estimate(SIZES, 500)
    document = found.as_dict()["uniqueness"]["population"]
    assert set(document) == {
        "size", "sampling_fraction", "model", "unique_people", "unique_share", "estimates"
    }  # fmt: skip
    assert {name: set(one) for name, one in document["estimates"].items()} == {
        name: {"unique_people", "reason"} for name in ("pitman", "zayatz", "snb")
    }
    json.dumps(document, allow_nan=False)
    assert ldiv_db.profile(people, "t", ["a"], ["s"]).as_dict()["uniqueness"]["population"] is None


@pytest.mark.parametrize("size", some([158, True, 0, -1, 1.5, 10**11 + 1], 2))
def test_a_population_that_the_table_is_no_sample_of_is_refused(people, size):
    for asked in (lambda: ldiv_db.profile(people, "t", ["a"], population_size=size),
                  lambda: ldiv_db.attack(people, "t", "a", "s", population_size=size)):  # fmt: skip
        with refuses("population-size"):
            asked()


def test_an_attack_has_the_share_of_rows_that_are_unique_in_the_population(people):
    (found,) = (a for a in ldiv_db.attack(people, "t", "a", "s", population_size=500).attacks if "uniq" in a.name)
    expected = population.estimate(SIZES, 500)
    (gain,) = found.gains
    assert (found.name, gain.gain, gain.bound, gain.holds) == ("population uniqueness", expected.share, None, None)
    assert found.figures == {
        "population": 500,
        "sampling_fraction": rows_of(SIZES) / 500,
        "model": "snb",
        **{f"unique_people_by_{name}": one.uniques for name, one in expected.estimates.items()},
    }


@pytest.mark.parametrize(("least", "holds"), [(1, False), (2, True)])
def test_a_least_class_size_promises_that_no_row_is_unique_there(people, least, holds):
    people.execute("DELETE FROM t WHERE a IN (SELECT a FROM t GROUP BY a HAVING count(*) < ?)", [least])
    result = ldiv_db.attack(people, "t", "a", "s", ["k:2"], population_size=500)
    (gain,) = next(attack.gains for attack in result.attacks if attack.name == "population uniqueness")
    assert (gain.bound, gain.holds) == (0, holds) and (gain.gain == 0) is holds


def test_a_pair_is_refused(people):
    people.execute("CREATE TABLE st AS SELECT 1 AS g, s FROM t")
    people.execute("CREATE TABLE qit AS SELECT 1 AS g, a FROM t")
    with pytest.raises(PolicyError, match="population-size: goes with one table"):
        ldiv_db.attack(people, "qit", "a", "s", sensitive_table="st", group="g", population_size=500)
