"""Releases by TP, TP+ and along the Hilbert curve: what is published, what it loses, what is refused."""

import itertools
import math
import random
from collections import Counter

import duckdb
import oracle
import oracle_tp
import pytest
from tables import fill

import ldiv_db
from ldiv_db.algorithms.tp.hilbert import Dimension, Hilbert, TpPlus, order
from ldiv_db.algorithms.tp.tp import Tp
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation

NAMES = ("tp", "tp_plus", "hilbert")
TOWNS = {"*": {"North": {"Ash": {}, "Bay": {}}, "South": {"Cod": {}, "Dun": {}, "Elm": {}}}}
COLUMNS = {"age": "INTEGER", "town": "VARCHAR", "secret": "VARCHAR", "rid": "INTEGER"}


class Star:
    """What a star loses: all, wherever the rows of a class differ."""

    def __init__(self, scale):
        self._scale = scale

    def lm(self, values):
        return self._scale.lm(values) if len(set(values)) == 1 else 1

    def ncp(self, values):
        return self.lm(values)


def draw_rows(draw, l):
    n = draw.randint(2 * l, 60)
    while True:
        rows = [
            (
                draw.choice((30, 30, 31, 45, None)),
                draw.choice(("Ash", "Bay", "Cod", "Elm", None)),
                draw.choice("uuvwxyz"),
                i,
            )
            for i in range(n)
        ]
        if oracle_tp.eligible([[row[2] for row in rows].count(value) for value in "uvwxyz"], l):
            return rows


def policy(name, l, **changes):
    document = {
        "source": "source",
        "target": {"table": "released", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": {"file": "town.json"}}},
        "sensitive": ["secret"],
        "keep": ["rid"],
        "require": [{"frequency": l}],
        "algorithm": {"name": name},
        "output": {"class_id": True},
        "seed": 3,
    }
    return document | changes


@pytest.fixture
def place(tmp_path):
    (tmp_path / "town.json").write_text(str(TOWNS).replace("'", '"'))
    return tmp_path


def publish(con, place, rows, document):
    fill(con, "source", COLUMNS, rows)
    result = ldiv_db.run(con, document, folder=place)
    return result, con.execute("SELECT class_id, age, town, secret, rid FROM released").fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("l", [2, 3])
def test_random_tables(con, place, name, l):
    draw = random.Random(l)
    for turn in range(4):
        rows = draw_rows(draw, l)
        form = ("stars", "ranges")[turn % 4 == 3]
        result, release = publish(con, place, rows, policy(name, l, algorithm={"name": name, "form": form}))
        assert {(row[3], row[4]) for row in release} == {row[2:] for row in rows}
        assert len(release) == len(rows), "no row is lost"
        original = {row[3]: row[:2] for row in rows}
        classes = {}
        for row in release:
            classes.setdefault(row[0], []).append(original[row[4]])
        assert not oracle.violations([(row[0], row[3]) for row in release], "frequency", l)
        assert not oracle.violations([(row[1:3], row[3]) for row in release], "frequency", l)
        scales = [oracle.Numbers(row[0] for row in rows), oracle.Tree(TOWNS, any(row[1] is None for row in rows))]
        if form == "stars":
            for row in release:
                for shown, values in zip(row[1:3], zip(*classes[row[0]], strict=True), strict=True):
                    value = None if values[0] is None else str(values[0])
                    assert shown == (value if len(set(values)) == 1 else "*")
            scales = [Star(scale) for scale in scales]
        expected = oracle.loss(scales, (1, 1), list(classes.values()), 0)
        assert result.loss.lm == pytest.approx(float(expected["lm"]), rel=1e-6)
        assert result.loss.ncp == pytest.approx(float(expected["ncp"]), rel=1e-6)
        columns = [column for members in classes.values() for column in zip(*members, strict=True)]
        stars = sum(len(column) for column in columns if len(set(column)) > 1)
        assert result.search["stars"] == stars
        if form == "stars":
            assert result.loss.stars == stars == sum(cell == "*" for row in release for cell in row[1:3])
        if name != "hilbert":
            check_search(result.search, classes, l)


def check_search(search, classes, l):
    first, last = search["removed_rows"][0], search["removed_rows"][-1]
    assert search["phase"] == len(search["removed_rows"]) == len(search["pillar_heights"])
    assert search["fewest_rows"] == max(first, l * search["pillar_heights"][0]) <= last <= search["most_rows"]
    assert search["stars"] <= search["most_stars"] == 2 * search["most_rows"]
    alike = sum(len(members) for members in classes.values() if len(set(members)) == 1)
    assert alike >= sum(map(len, classes.values())) - last


@pytest.mark.slow
def test_tp_plus_has_no_more_stars(con, place):
    draw, fewer = random.Random(9), 0
    for _ in range(8):
        rows = draw_rows(draw, 2)
        stars = [publish(con, place, rows, policy(name, 2))[0].search["stars"] for name in ("tp", "tp_plus")]
        assert stars[1] <= stars[0]
        fewer += stars[1] < stars[0]
    assert fewer


def test_groups_that_are_eligible_stay_as_they_are(con, place):
    rows = [(30 + i // 4, "Ash", "uvwx"[i % 4], i) for i in range(40)]
    for name in ("tp", "tp_plus"):
        result, release = publish(con, place, rows, policy(name, 4))
        assert result.loss.lm == result.loss.stars == 0 and result.search["phase"] == 1
        assert {row[1] for row in release} == {str(30 + i) for i in range(10)}
        assert result.search["ratio"] == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_same_table_for_any_order_and_number_of_threads(place, name):
    rows = draw_rows(random.Random(4), 3)
    found = []
    for threads, some in ((1, rows), (2, rows[::-1]), (2, random.Random(1).sample(rows, len(rows)))):
        with duckdb.connect(config={"threads": threads}) as con:
            found.append(publish(con, place, some, policy(name, 3))[1])
    assert found[0] == found[1] == found[2]


def test_bounds_are_null_where_there_would_be_a_star(con, place):
    rows = draw_rows(random.Random(8), 2)
    fill(con, "source", COLUMNS, rows)
    result = ldiv_db.run(con, policy("tp", 2, output={"bounds": True, "class_id": True}), folder=place)
    shown = con.execute("SELECT age_min, age_max FROM released").fetchall()
    assert all(low == high for low, high in shown) and (None, None) in shown
    assert result.loss.stars >= result.search["stars"]


def test_what_is_not_eligible_is_refused(con, place):
    fill(con, "source", COLUMNS, [(30, "Ash", "u" if i < 4 else "vwxyz"[i % 5], i) for i in range(10)])
    for name in NAMES:
        with pytest.raises(
            ldiv_db.InfeasibleError, match=r"holds 4 of 10 rows, more than 1/3\. The largest l of this algorithm is 2"
        ) as refused:
            ldiv_db.run(con, policy(name, 3), folder=place)
        assert refused.value.exit_code == 1
    fill(con, "source", COLUMNS, [(30, "Ash", "u" if i < 8 else "v", i) for i in range(11)])
    with pytest.raises(
        ldiv_db.InfeasibleError,
        match=r"the nearest it meets is l: 1\.375\n(.*) This algorithm reaches no whole l above 1",
    ):
        ldiv_db.run(con, policy("tp", 2), folder=place)
    fill(con, "source", COLUMNS, [])
    with pytest.raises(ldiv_db.InfeasibleError):
        ldiv_db.run(con, policy("tp", 2), folder=place)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"require": [{"frequency": 2}, {"unique_distinct": 2}]}, "tp cannot promise unique_distinct"),
        ({"require": [{"t_closeness": 0.5}]}, "tp cannot promise t_closeness"),
        ({"sensitive": ["secret", "rid"], "keep": []}, "tp takes one sensitive attribute"),
        (
            {"individual": "town", "quasi_identifiers": {"age": {"numeric": True}}},
            "tp takes one sensitive value a person",
        ),
        ({"recode": "set"}, "publishes stars, not sets"),
        (
            {"recode": "set", "algorithm": {"name": "tp", "form": "ranges", "coarsen": {"town": 1}}},
            "publishes coarsened values, not sets",
        ),
        ({"algorithm": {"name": "tp", "form": "star"}}, "algorithm.form"),
        ({"algorithm": {"name": "tp", "residue": "suppress"}}, "tp has no such option"),
        ({"algorithm": {"name": "tp_plsu"}}, "did you mean 'tp_plus'"),
        *(
            (
                {"algorithm": {"name": "tp", "coarsen": levels}},
                r"^algorithm.coarsen: takes auto, or a level from 0 for each column, e.g. \{age: 2\}$",
            )
            for levels in ({"town": -1}, {"town": 1.5}, 3, 1.5, "car")
        ),
    ],
)
def test_what_tp_cannot_do_is_refused(con, place, changes, message):
    fill(con, "source", COLUMNS, [(30, "Ash", "uvwx"[i % 4], i) for i in range(8)])
    with pytest.raises(ldiv_db.PolicyError, match=message):
        ldiv_db.run(con, policy("tp", 2, **changes), folder=place)


@pytest.mark.slow
@pytest.mark.parametrize(
    "require",
    [
        [{"distinct": 3}],
        [{"k": 3}, {"entropy": 2.5}],
        [{"recursive": {"c": 1, "l": 2}}],
        [{"recursive": {"c": 0.5, "l": 1}}],
        [{"alpha_k": {"alpha": 0.4, "k": 3}}, {"p_sensitive": {"p": 3, "k": 2}}],
        [{"threshold": {"default": 0.5, "u": 0.35}}],
        [{"frequency": 2.5}],
    ],
)
def test_requirements_that_eligible_classes_meet(con, place, require):
    """The audit of the release says so; the l is the smallest whole one that promises it."""
    draw = random.Random(6)
    for name in NAMES:
        result, _ = publish(con, place, draw_rows(draw, 3), policy(name, 3, require=require))
        assert result.l == 3 and all(verdict["holds"] for verdict in result.requirements)


def test_several_requirements_take_the_largest_l(con, place):
    rows = [(30 + i % 2, "Ash", "uvwxyz"[i % 6], i) for i in range(24)]
    assert publish(con, place, rows, policy("tp", 2, require=[{"frequency": 2}, {"k": 4}]))[0].l == 4


# -- the curve ---------------------------------------------------------------------------------------


def curve(con, dimensions, bits):
    """The places of the whole cube in the order of ours."""
    names = [f"q{i}" for i in range(dimensions)]
    points = list(itertools.product(range(2**bits), repeat=dimensions))
    fill(con, "points", dict.fromkeys(names, "BIGINT"), random.Random(1).sample(points, len(points)))
    engine = Engine(con)
    taken = [Dimension(Identifier(n), 2**bits, i == 0) for i, n in enumerate(names)]
    ordered = order(engine, Relation(("points",)), taken)
    return con.execute(f"SELECT {', '.join(names)} FROM {ordered.sql()} ORDER BY position").fetchall()


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 3), (2, 1), (2, 4), (3, 3), (4, 2), (5, 2), (8, 1)])
def test_the_curve_is_hilberts(con, dimensions, bits):
    found = curve(con, dimensions, bits)
    assert found == sorted(found, key=lambda point: oracle_tp.hilbert_index(point, bits))
    assert len(set(found)) == len(found) == 2 ** (bits * dimensions)
    for one, next_one in itertools.pairwise(found):
        assert sum(abs(a - b) for a, b in zip(one, next_one, strict=True)) == 1, "a step at a time"
    for half in range(1, bits):  # sub-cubes are run through one after the other
        cubes = [tuple(x >> half for x in point) for point in found]
        assert len(list(itertools.groupby(cubes))) == 2 ** ((bits - half) * dimensions)


def test_names_of_the_algorithms():
    assert (Tp.name, TpPlus.name, Hilbert.name) == NAMES


@pytest.mark.parametrize("name", ["tp", "tp_plus"])
def test_a_star_spreads_over_the_whole_domain(con, place, name):
    """KL of a run with stars, by the definition; and what `measure` finds in the release is what the run said."""
    draw = random.Random(21)
    for _ in range(2):
        rows = draw_rows(draw, 2)
        document = policy(name, 2)
        fill(con, "source", COLUMNS, rows)
        result = ldiv_db.run(con, document, folder=place, kl=True)
        release = con.execute("SELECT age, town, secret FROM released").fetchall()
        sizes = (len({row[0] for row in rows}), 5 + any(row[1] is None for row in rows))
        kl = 0.0
        for (*point, secret), count in Counter(row[:3] for row in rows).items():
            shown = [None if value is None else str(value) for value in point]
            mass = sum(
                math.prod(1 / size for size, cell in zip(sizes, cells, strict=True) if cell == "*")
                for *cells, other in release
                if other == secret and all(cell in ("*", value) for cell, value in zip(cells, shown, strict=True))
            )
            kl += count / len(rows) * math.log(count / mass)
        assert result.loss.kl == pytest.approx(kl, abs=1e-9) and kl > 0
        measured = ldiv_db.measure(con, "released", document, folder=place).loss
        assert (measured.stars, measured.kl) == (result.loss.stars, result.loss.kl)
        assert measured.lm == pytest.approx(result.loss.lm, rel=1e-6)
        assert measured.ncp == pytest.approx(result.loss.ncp, rel=1e-6)


# -- coarsening --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["stars", "ranges"])
def test_coarse_values_are_those_of_their_level(con, place, name, form):
    draw, regions = random.Random(5), {town: region for region, towns in TOWNS["*"].items() for town in towns}
    for _ in range(3):
        rows = draw_rows(draw, 2)
        algorithm = {"name": name, "form": form, "coarsen": {"town": 1}}
        result, release = publish(con, place, rows, policy(name, 2, algorithm=algorithm))
        original = {row[3]: row[:2] for row in rows}
        assert sorted((row[3], row[4]) for row in release) == sorted(row[2:] for row in rows)
        assert not oracle.violations([(row[1:3], row[3]) for row in release], "frequency", 2)
        classes = {}
        for row in release:
            age, town = original[row[4]]
            classes.setdefault(row[0], []).append((age, regions.get(town), row))
        stars = 0
        for members in classes.values():
            ages, areas = ({member[i] for member in members} for i in (0, 1))
            stars += len(members) * ((len(ages) > 1) + (len(areas) > 1))
            for _, area, row in members:
                assert row[2] == (area if len(areas) == 1 else "*")
                assert len(ages) == 1 or form == "ranges" or row[1] == "*"
        assert result.search["stars"] == stars and result.search["coarsened"] == {"town": 1}
        scale = oracle.Tree(TOWNS, any(row[1] is None for row in rows))
        lm = {"North": scale.lm(["Ash", "Bay"]), "South": scale.lm(["Cod", "Elm"]), "*": 1, None: 0}
        expected = sum(lm[row[2]] for row in release) / len(rows)
        assert result.loss.lm_by_column["town"] == pytest.approx(float(expected), rel=1e-6)


def test_the_top_level_leaves_nothing_to_say(con, place):
    rows = draw_rows(random.Random(3), 2)
    algorithm = {"name": "tp", "coarsen": {"town": 2}}
    result, release = publish(con, place, rows, policy("tp", 2, algorithm=algorithm))
    assert {row[2] for row in release} == {"*"} and result.loss.lm_by_column["town"] == 1


@pytest.mark.slow
def test_auto_takes_the_level_of_least_divergence(con, place):
    draw, found = random.Random(12), set()
    for _ in range(2):
        rows = draw_rows(draw, 3)
        levels = {}
        for level in (0, 1, 2, "auto"):
            coarsen = level if level == "auto" else {"town": level}
            document = policy("tp_plus", 3, algorithm={"name": "tp_plus", "coarsen": coarsen})
            fill(con, "source", COLUMNS, rows)
            levels[level] = ldiv_db.run(con, document, folder=place, kl=True)
        auto = levels.pop("auto")
        assert auto.search["kl"] == auto.loss.kl
        assert auto.loss.kl == levels[auto.search["coarsened"].get("town", 0)].loss.kl
        assert auto.loss.kl <= min(levels[0].loss.kl, levels[1].loss.kl)
        found.add(auto.search["coarsened"].get("town", 0))
    assert len(found) > 1, "the level depends on the data"


@pytest.mark.parametrize(
    ("coarsen", "message"),
    [
        ({"age": 1}, "algorithm.coarsen.age: has no taxonomy"),
        ({"town": 3}, "has no level 3.*the highest is 2"),
        ({"twon": 1}, "did you mean 'town'"),
        ({"town": -1}, "algorithm.coarsen"),
        ("best", "algorithm.coarsen"),
    ],
)
def test_levels_that_there_are_not(con, place, coarsen, message):
    fill(con, "source", COLUMNS, [(30, "Ash", "uvwx"[i % 4], i) for i in range(8)])
    with pytest.raises(ldiv_db.PolicyError, match=message):
        ldiv_db.run(con, policy("tp", 2, algorithm={"name": "tp", "coarsen": coarsen}), folder=place)
