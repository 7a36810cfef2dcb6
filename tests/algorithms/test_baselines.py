"""Incognito, top-down specialisation and annealing against brute force over all vectors and cuts."""

import json
import random
from collections import Counter
from fractions import Fraction
from itertools import product

import cut_cases
import cut_oracle
import oracle
import pytest
from hypothesis import reject
from refusals import refuses
from strategies import search, seeded, some
from tables import fill

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.recoding.statement import find_run, recoding_sql

pytestmark = pytest.mark.usefixtures("no_remedies")

SHAPES = [
    *cut_oracle.SHAPES,
    {"*": {"P": {"a": {}, "b": {}, "c": {}}, "Q": {"R": {"d": {}, "e": {}}, "S": {"f": {}, "g": {}}}}},
]
REQUIREMENTS = [
    [{"k": 2}, {"distinct": 2}], [{"frequency": "1.5"}], [{"recursive": {"c": 2, "l": 2}}], [{"entropy": "1.6"}],
    [{"k": 3}], [{"distinct": 2}],
    [{"threshold": {"default": "0.7", "s": "0.5", "absent": "allow"}}], [{"p_sensitive": {"p": 2, "k": 4}}],
]  # fmt: skip
EACH = some(REQUIREMENTS)


class Case(cut_cases.Case):
    """A random table with its trees, under these requirements."""

    def __init__(self, draw, algorithm, require, rows=None):
        self.algorithm, self.require = algorithm, require
        self.trees = [draw.choice(SHAPES) for _ in range(draw.choice([1, 2, 2, 3]))]
        values = "stuv"[: draw.randint(2, 4)]
        self.rows = [
            (tuple(draw.choice(cut_oracle.leaves(tree)) for tree in self.trees), draw.choice(values), draw.choice("yn"))
            for _ in range(rows or draw.randint(8, 40))
        ]

    def holds(self, cut):
        """Whether all classes of the cut are good, by the oracle."""
        classes = [[row[1] for row in part] for part in cut_oracle.partitions(self.rows, cut).values()]
        wanted = [(name, argument) for entry in self.require for name, argument in entry.items()]
        return all(oracle.class_is_good(values, *each) for each in wanted for values in classes)

    def cut_published(self, con, folder, **algorithm):
        """The result and the cut of a run, None if the whole table fails; what is published is what the cut says."""
        self.place(con, folder)
        if not self.holds([next(cut_oracle.cuts(tree)) for tree in self.trees]):
            cut_cases.refuses_all(self, con, folder, "whole table as one class", **algorithm)
            return None, None
        result = self.run(con, folder, **algorithm)
        cut = self.cut_of(result.search["cut"])
        shown = Counter((*(one[leaf][0] for one, leaf in zip(cut, q, strict=True)), s, y) for q, s, y in self.rows)
        assert Counter(con.execute("SELECT * FROM out.released").fetchall()) == shown
        return result, cut


@pytest.mark.parametrize("require", EACH, ids=str)
@search(1, draw=seeded)
def test_incognito_finds_the_vector_of_least_cost(con, tmp_path, require, draw):
    metric, case = draw.choice(["LM", "DM", "CM"]), Case(draw, "incognito", require)
    result, cut = case.cut_published(con, tmp_path, metric=metric, **({"class": "y"} if metric == "CM" else {}))
    if result is None:
        reject()
    thetas = dict.fromkeys("stuv", Fraction(1))
    every = [vector for vector in product(*map(cut_oracle.full_domains, case.trees)) if case.holds(vector)]
    costs = [cut_oracle.cost(case.rows, case.trees, vector, thetas, metric, "none") for vector in every]
    assert result.search["cost"] == pytest.approx(float(min(costs)))
    assert cut_oracle.cost(case.rows, case.trees, cut, thetas, metric, "none") == min(costs)
    assert [{v[1] for v in one.values()} for one in cut] in [[{v[1] for v in one.values()} for one in v] for v in every]


def finer(cut, tree):
    """The cuts that specialise one value of the cut."""
    nodes = {leaf: set(way) for leaf, way in cut_oracle.ways(tree)}
    for own in {value[1] for value in cut.values()}:
        if len(own) > 1:
            split = {}
            for leaf in own:
                below = [part for part in nodes[leaf] if set(part) < set(own)]
                split[leaf] = (max(below, key=len),) * 2
            yield {**cut, **split}


@pytest.mark.parametrize("require", EACH, ids=str)
@search(1, draw=seeded)
def test_no_single_specialisation_of_tds_is_valid(con, tmp_path, require, draw):
    case = Case(draw, "tds", require)
    result, cut = case.cut_published(con, tmp_path, **({"class": "y"} if draw.random() < 0.5 else {}))
    if result is None:
        reject()
    assert case.holds(cut)
    for place, tree in enumerate(case.trees):
        for other in finer(cut[place], tree):
            assert not case.holds([*cut[:place], other, *cut[place + 1 :]])


def test_a_step_of_tds_takes_the_best_score(con, tmp_path):
    """One tree against another: the gain in LM over what the smallest class shrinks by and 1 decides."""
    for name in ("p", "q"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"*": {"a": {}, "b": {}}}))
    # p splits 4:4 and q splits 6:2; each alone holds, both together do not.
    rows = [("a", "a")] * 3 + [("a", "b")] + [("b", "a")] * 3 + [("b", "b")]
    fill(con, "source", {"p": "VARCHAR", "q": "VARCHAR", "s": "VARCHAR"}, [(*row, "s") for row in rows])
    keys = {name: {"taxonomy": {"file": f"{name}.json"}} for name in ("q", "p")}
    policy = {"source": "source", "target": "o", "sensitive": ["s"], "require": [{"k": 2}], "algorithm": "tds"}
    result = ldiv_db.run(con, policy | {"quasi_identifiers": keys}, folder=tmp_path)
    assert result.search["cut"] == {"q": ["*"], "p": ["a", "b"]}


@pytest.mark.parametrize("name", some(["incognito", "tds"]))
def test_what_cannot_be_done_is_refused(con, tmp_path, name):
    case = Case(random.Random(1), name, [{"k": 2}])
    case.place(con, tmp_path)
    for changes, options, codes in (
        ({"require": [{"unique_distinct": 2}]}, {}, {"require"}),
        ({"keep": [], "sensitive": ["s", "y"]}, {}, {"sensitive"}),
        ({}, {"metric": "CM", "class": "s"}, {"algorithm.class"} if name == "incognito" else {"algorithm.metric"}),
    ):
        with refuses(*codes):
            ldiv_db.run(con, case.policy(**options) | changes, folder=tmp_path)


@pytest.mark.parametrize("name", some(["tds", "incognito"]))
def test_nulls_are_values_and_the_recoding_can_be_written(con, tmp_path, name):
    case = Case(random.Random(6), name, [{"distinct": 2}], rows=40)
    case.place(con, tmp_path)
    con.execute("UPDATE source SET q0 = NULL WHERE s = 's' OR y = 'n'")
    result = case.run(con, tmp_path)
    assert all(verdict["holds"] for verdict in result.requirements)
    engine = Engine(con)
    sql = recoding_sql(engine, find_run(engine, result.run_id), "duckdb")
    assert Counter(con.execute(sql).fetchall()) == Counter(con.execute("SELECT * FROM out.released").fetchall())


SCHEMES = sorted(cut_cases.COMBINATIONS, key=lambda each: each != ("LM", "vioRec"))


@pytest.mark.parametrize(("metric", "scheme"), some([pytest.param(*each) for each in SCHEMES]))
@search(1, draw=seeded)
def test_annealing_finds_no_better_cut_than_the_best_and_costs_the_same(con, tmp_path, metric, scheme, draw):
    algorithm = {"metric": metric, "scheme": scheme, "steps": 40} | ({"class": "y"} if metric == "CM" else {})
    case = Case(draw, "annealing", [{"frequency": "1.5"}], rows=30)
    case.place(con, tmp_path)
    thetas = dict.fromkeys("stuv", Fraction(2, 3))
    costs = cut_oracle.all_costs(case.rows, case.trees, thetas, metric, scheme)
    try:
        first = case.run(con, tmp_path, **algorithm)
    except ldiv_db.InfeasibleError as error:
        assert ("no cut is allowed" in str(error)) == (not costs) and ("leaves out all" in str(error)) == bool(costs)
        return
    cost = cut_oracle.cost(case.rows, case.trees, case.cut_of(first.search["cut"]), thetas, metric, scheme)
    assert first.search["cost"] == pytest.approx(float(cost)) and cost >= costs[0]
    assert not first.search["proved"] and first.search["steps"] <= 40


@pytest.mark.slow
def test_annealing_comes_by_the_best_cut_given_the_steps_and_stops_at_its_time_limit(con, tmp_path):
    case = Case(random.Random(207), "annealing", [{"frequency": "1.5"}], rows=40)
    case.trees, case.rows = case.trees[:1], [(row[0][:1], *row[1:]) for row in case.rows]
    case.place(con, tmp_path)
    costs = cut_oracle.all_costs(case.rows, case.trees, dict.fromkeys("stuv", Fraction(2, 3)), "LM", "vioRec")
    assert case.run(con, tmp_path, steps=150).search["cost"] == pytest.approx(float(costs[0]))
    assert case.run(con, tmp_path, steps=10_000, time_limit=1e-9).search["steps"] < 100
