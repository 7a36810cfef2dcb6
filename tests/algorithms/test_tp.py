"""Releases by TP, TP+ and along the Hilbert curve: what is published, what it loses, what is refused."""

import itertools
import math
import random
from collections import Counter

import duckdb
import oracle
import oracle_tp
import pytest
from adult import make_adult
from refusals import refuses
from strategies import search, seeded, seeds, some
from tables import fill

import ldiv_db
from ldiv_db.algorithms.tp.hilbert import Dimension, Hilbert, TpPlus, order
from ldiv_db.algorithms.tp.tp import Tp
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Identifier, Relation

pytestmark = pytest.mark.usefixtures("no_remedies")

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
    secrets = [draw.choice("uuvwxyz") for _ in range(n)]
    while not oracle_tp.eligible(list(Counter(secrets).values()), l):  # the most frequent value gives way
        secrets[secrets.index(Counter(secrets).most_common(1)[0][0])] = min("uvwxyz", key=secrets.count)
    ages, towns = (30, 30, 31, 45, None), ("Ash", "Bay", "Cod", "Elm", None)
    return [(draw.choice(ages), draw.choice(towns), secret, i) for i, secret in enumerate(secrets)]


def policy(name, l, **changes):
    document = {
        "source": "source", "target": {"table": "released", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"numeric": True}, "town": {"taxonomy": {"file": "town.json"}}},
        "sensitive": ["secret"], "keep": ["rid"], "require": [{"frequency": l}], "algorithm": {"name": name},
        "output": {"class_id": True}, "seed": 3,
    }  # fmt: skip
    return document | changes


@pytest.fixture
def place(tmp_path):
    (tmp_path / "town.json").write_text(str(TOWNS).replace("'", '"'))
    return tmp_path


def publish(con, place, rows, document):
    fill(con, "source", COLUMNS, rows)
    result = ldiv_db.run(con, document, folder=place)
    return result, con.execute("SELECT class_id, age, town, secret, rid FROM released").fetchall()


@pytest.mark.parametrize("name", some(NAMES[::-1], 2))
@search(1, draw=seeded)
def test_random_tables(con, place, name, draw):
    l, form = draw.choice([2, 3]), draw.choice(["stars", "ranges"])
    rows = draw_rows(draw, l)
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


def test_groups_that_are_eligible_stay_as_they_are(con, place):
    rows = [(30 + i // 4, "Ash", "uvwx"[i % 4], i) for i in range(40)]
    result, release = publish(con, place, rows, policy("tp_plus", 4))
    assert result.loss.lm == result.loss.stars == 0 and result.search["phase"] == 1
    assert {row[1] for row in release} == {str(30 + i) for i in range(10)}
    assert result.search["ratio"] == 1.0


def test_bounds_are_null_where_there_would_be_a_star(con, place):
    rows = draw_rows(random.Random(8), 2)
    fill(con, "source", COLUMNS, rows)
    result = ldiv_db.run(con, policy("tp", 2, output={"bounds": True, "class_id": True}), folder=place)
    shown = con.execute("SELECT age_min, age_max FROM released").fetchall()
    assert all(low == high for low, high in shown) and (None, None) in shown
    assert result.loss.stars >= result.search["stars"]


def test_what_is_not_eligible_is_refused(con, place):
    fill(con, "source", COLUMNS, [(30, "Ash", "u" if i < 4 else "vwxyz"[i % 5], i) for i in range(10)])
    for name in NAMES[1:]:
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


def test_what_tp_cannot_do_is_refused(con, place):
    fill(con, "source", COLUMNS, [(30, "Ash", "uvwx"[i % 4], i) for i in range(8)])
    ranges = {"name": "tp", "form": "ranges", "coarsen": {"town": 1}}
    for changes, code, words in (
        ({"require": [{"frequency": 2}, {"unique_distinct": 2}]}, "require", "tp cannot promise unique_distinct"),
        ({"require": [{"t_closeness": 0.5}]}, "require", "tp cannot promise t_closeness"),
        ({"sensitive": ["secret", "rid"], "keep": []}, "sensitive", "tp takes one sensitive attribute"),
        ({"individual": "town", "quasi_identifiers": {"age": {"numeric": True}}}, "individual", "one sensitive value"),
        ({"recode": "set"}, "recode", "publishes stars, not sets"),
        ({"recode": "set", "algorithm": ranges}, "recode", "publishes coarsened values, not sets"),
        ({"algorithm": {"name": "tp", "form": "star"}}, "algorithm.form", ""),
        ({"algorithm": {"name": "tp", "residue": "suppress"}}, "algorithm.residue", "tp has no such option"),
        ({"algorithm": {"name": "tp_plsu"}}, "algorithm.name", "did you mean 'tp_plus'"),
        *(({"algorithm": {"name": "tp", "coarsen": levels}}, "algorithm.coarsen", "takes auto, or a level from 0")
          for levels in ({"town": 1.5}, 3, "car")),
        *(({"algorithm": {"name": "tp", "coarsen": {name: level}}}, f"algorithm.coarsen.{name}", words)
          for name, level, words in (("age", 1, "has no taxonomy"), ("town", 3, "has no level 3"),
                                     ("twon", 1, "did you mean 'town'"))),
    ):  # fmt: skip
        with refuses(code) as told:
            ldiv_db.run(con, policy("tp", 2, **changes), folder=place)
        assert words in str(told.value)


REQUIRED = [
    [{"k": 3}, {"entropy": 2.5}], [{"recursive": {"c": 1, "l": 2}}], [{"distinct": 3}],
    [{"recursive": {"c": 0.5, "l": 1}}], [{"alpha_k": {"alpha": 0.4, "k": 3}}, {"p_sensitive": {"p": 3, "k": 2}}],
    [{"threshold": {"default": 0.5, "u": 0.35}}], [{"frequency": 2.5}],
]  # fmt: skip


@pytest.mark.parametrize("name", some(["tp_plus", "tp", "hilbert"]))
@pytest.mark.parametrize("require", some(REQUIRED), ids=str)
def test_requirements_that_eligible_classes_meet(con, place, name, require):
    """The audit of the release says so; the l is the smallest whole one that promises it."""
    result, _ = publish(con, place, draw_rows(random.Random(6), 3), policy(name, 3, require=require))
    assert result.l == 3 and all(verdict["holds"] for verdict in result.requirements)


def test_several_requirements_take_the_largest_l(con, place):
    rows = [(30 + i % 2, "Ash", "uvwxyz"[i % 6], i) for i in range(24)]
    fill(con, "source", COLUMNS, rows)
    wanted = policy("tp", 2, require=[{"frequency": 2}, {"k": 4}])
    assert ldiv_db.plan(con, wanted, folder=place).feasibility.l == 4


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


@pytest.mark.parametrize("name", some(["tp_plus", "tp"]))
@search(1, seed=seeds)
def test_a_star_spreads_over_the_whole_domain(con, place, name, seed):
    """KL of a run with stars, by the definition; and what `measure` finds in the release is what the run said."""
    rows, document = draw_rows(random.Random(seed), 2), policy(name, 2)
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
    assert result.loss.kl == pytest.approx(kl, abs=1e-9)
    measured = ldiv_db.measure(con, "released", document, folder=place).loss
    assert (measured.stars, measured.kl) == (result.loss.stars, result.loss.kl)
    assert measured.lm == pytest.approx(result.loss.lm, rel=1e-6)
    assert measured.ncp == pytest.approx(result.loss.ncp, rel=1e-6)


# -- coarsening --------------------------------------------------------------------------------------


EACH = [pytest.param(name, form) for name in ("tp_plus", "hilbert", "tp") for form in ("ranges", "stars")]


@pytest.mark.parametrize(("name", "form"), some(EACH))
@search(1, seed=seeds)
def test_coarse_values_are_those_of_their_level(con, place, name, form, seed):
    regions = {town: region for region, towns in TOWNS["*"].items() for town in towns}
    rows, algorithm = draw_rows(random.Random(seed), 2), {"name": name, "form": form, "coarsen": {"town": 1}}
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [12, 13])
def test_auto_takes_the_level_of_least_divergence(con, place, seed):
    fill(con, "source", COLUMNS, draw_rows(random.Random(seed), 3))
    levels = {}
    for level in (0, 1, "auto"):
        coarsen = level if level == "auto" else {"town": level}
        document = policy("tp_plus", 3, algorithm={"name": "tp_plus", "coarsen": coarsen})
        levels[level] = ldiv_db.run(con, document, folder=place, kl=True)
    auto = levels.pop("auto")
    assert auto.search["kl"] == auto.loss.kl <= min(found.loss.kl for found in levels.values())
    chosen = auto.search["coarsened"].get("town", 0)
    assert chosen not in levels or auto.loss.kl == levels[chosen].loss.kl


# -- Adult --------------------------------------------------------------------------------------------

QI = ("education", "marital_status", "race", "sex")
#: The rows that are removed by phase one of all 30,162, and the most of one value.
AFTER_PHASE_ONE = {2: (1012, 783), 4: (5001, 1850)}


@pytest.mark.slow
@pytest.mark.parametrize("l", [2, 4, 7])
def test_stars_of_the_three_on_adult(fixtures, l):
    """The quick tests beside it are those of random tables."""
    stars, keys = {}, {name: {"taxonomy": {"file": f"{name}.csv"}} for name in QI}
    with duckdb.connect(config={"threads": 2}) as con:
        make_adult(con, fixtures, [*QI, "occupation"])
        for name in NAMES:
            document = policy(name, l, quasi_identifiers=keys, sensitive=["occupation"], keep=[], output={})
            result = ldiv_db.run(con, document | {"source": "adult"}, folder=fixtures / "adult" / "taxonomies")
            release = con.execute("SELECT * FROM released").fetchall()
            assert len(release) == 30162
            assert not oracle.violations([(row[:4], row[4]) for row in release], "frequency", l)
            shown = sum(cell == "*" for row in release for cell in row[:4])
            assert result.loss.stars == shown == result.search["stars"]
            stars[name] = shown
            if name != "hilbert":
                first = (result.search["removed_rows"][0], result.search["pillar_heights"][0])
                assert first == AFTER_PHASE_ONE.get(l, first) and result.search["phase"] == 2
                assert result.search["removed_rows"][-1] <= l * first[1] + l - 1 == result.search["most_rows"]
    assert stars["tp_plus"] <= stars["tp"] and stars["tp_plus"] < stars["hilbert"]
