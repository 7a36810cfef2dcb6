"""Incognito, top-down specialisation and annealing against brute force over all vectors and cuts."""

import json
import random
from collections import Counter
from fractions import Fraction
from itertools import product

import cut_oracle
import oracle
import pytest
from tables import fill
from times import seeds

import ldiv_db
from ldiv_db.database.engine import Engine
from ldiv_db.recoding.statement import find_run, recoding_sql

SHAPES = [
    *cut_oracle.SHAPES,
    {"*": {"P": {"a": {}, "b": {}, "c": {}}, "Q": {"R": {"d": {}, "e": {}}, "S": {"f": {}, "g": {}}}}},
]
REQUIREMENTS = [
    [{"k": 3}], [{"distinct": 2}], [{"frequency": "1.5"}], [{"k": 2}, {"distinct": 2}], [{"entropy": "1.6"}],
    [{"recursive": {"c": 2, "l": 2}}],
    [{"threshold": {"default": "0.7", "s": "0.5"}}], [{"p_sensitive": {"p": 2, "k": 4}}],
]  # fmt: skip


class Case:
    """A random table with its trees and requirements."""

    def __init__(self, con, folder, seed, algorithm, require=None, rows=None):
        draw = random.Random(seed)
        con.execute("SET threads = 1")
        self.trees = [draw.choice(SHAPES) for _ in range(draw.choice([1, 2, 2, 3]))]
        values = "stuv"[: draw.randint(2, 4)]
        self.rows = [
            (tuple(draw.choice(cut_oracle.leaves(tree)) for tree in self.trees), draw.choice(values), draw.choice("yn"))
            for _ in range(rows or draw.randint(8, 60))
        ]
        self.require = require or REQUIREMENTS[seed % len(REQUIREMENTS)]
        names = [f"q{i}" for i in range(len(self.trees))]
        fill(con, "source", dict.fromkeys([*names, "s", "y"], "VARCHAR"), [(*q, s, y) for q, s, y in self.rows])
        for name, tree in zip(names, self.trees, strict=True):
            (folder / f"{name}.json").write_text(json.dumps(tree))
        self.policy = {
            "source": "source", "target": "out.released", "sensitive": ["s"], "keep": ["y"], "seed": seed,
            "quasi_identifiers": {name: {"taxonomy": {"file": f"{name}.json"}} for name in names},
            "require": self.require, "algorithm": algorithm,
        }  # fmt: skip

    def holds(self, cut):
        """Whether all classes of the cut are good, by the oracle."""
        classes = [[row[1] for row in part] for part in cut_oracle.partitions(self.rows, cut).values()]
        return all(
            oracle.class_is_good(values, name, argument)
            for entry in self.require
            for name, argument in entry.items()
            for values in classes
        )

    def run(self, con, folder):
        """The result of the run, None if the whole table fails; what is published is what its cut says."""
        if not self.holds([next(cut_oracle.cuts(tree)) for tree in self.trees]):
            with pytest.raises(ldiv_db.InfeasibleError, match="whole table as one class"):
                ldiv_db.run(con, self.policy, folder=folder)
            return None, None
        result = ldiv_db.run(con, self.policy, folder=folder)
        cut = self.cut_of(result.search["cut"])
        shown = Counter((*(one[leaf][0] for one, leaf in zip(cut, q, strict=True)), s, y) for q, s, y in self.rows)
        assert Counter(con.execute("SELECT * FROM out.released").fetchall()) == shown
        return result, cut

    def cut_of(self, labels):
        """The oracle's cut that has these labels, those of chains standing for any node of theirs."""
        return [
            next(cut for cut in cut_oracle.cuts(tree) if {label for label, _ in cut.values()} == set(own))
            for tree, own in zip(self.trees, labels.values(), strict=True)
        ]


@pytest.mark.parametrize("seed", seeds(12))
def test_incognito_finds_the_vector_of_least_cost(con, tmp_path, seed):
    metric = ("LM", "DM", "CM")[seed % 3]
    case = Case(
        con, tmp_path, seed, {"name": "incognito", "metric": metric, **({"class": "y"} if metric == "CM" else {})}
    )
    result, cut = case.run(con, tmp_path)
    if result is None:
        return
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


@pytest.mark.parametrize("seed", seeds(10, 100))
def test_no_single_specialisation_of_tds_is_valid(con, tmp_path, seed):
    case = Case(con, tmp_path, seed, {"name": "tds"} | ({"class": "y"} if seed % 2 else {}))
    result, cut = case.run(con, tmp_path)
    if result is None:
        return
    assert case.holds(cut)
    for place, tree in enumerate(case.trees):
        for other in finer(cut[place], tree):
            assert not case.holds([*cut[:place], other, *cut[place + 1 :]])


def test_a_step_of_tds_takes_the_best_score(con, tmp_path):
    """One tree against another: the gain in LM over what the smallest class shrinks by and 1 decides."""
    case = Case(con, tmp_path, 0, {"name": "tds"}, [{"k": 2}])
    tree = {"*": {"a": {}, "b": {}}}
    for name in ("p", "q"):
        (tmp_path / f"{name}.json").write_text(json.dumps(tree))
    # p splits 4:4 and q splits 6:2; each alone holds, both together do not.
    rows = [("a", "a")] * 3 + [("a", "b")] + [("b", "a")] * 3 + [("b", "b")]
    fill(con, "source", {"p": "VARCHAR", "q": "VARCHAR", "s": "VARCHAR"}, [(*row, "s") for row in rows])
    keys = {name: {"taxonomy": {"file": f"{name}.json"}} for name in ("q", "p")}
    policy = {**case.policy, "quasi_identifiers": keys, "keep": []}
    result = ldiv_db.run(con, policy, folder=tmp_path)
    assert result.search["cut"] == {"q": ["*"], "p": ["a", "b"]}


@pytest.mark.parametrize("name", ["incognito", "tds"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"require": [{"unique_distinct": 2}]}, "the union of good classes may be bad"),
        ({"keep": [], "sensitive": ["s", "y"]}, "takes one sensitive attribute"),
        ({"algorithm": {"class": "s", "metric": "CM"}}, "list it under keep|no such option"),
        ({"recode": "set"}, "publishes the labels"),
    ],
)
def test_what_cannot_be_done_is_refused(con, tmp_path, name, changes, message):
    case = Case(con, tmp_path, 1, {"name": name})
    policy = case.policy | changes
    policy["algorithm"] = {**policy["algorithm"], "name": name}
    with pytest.raises(ldiv_db.PolicyError, match=message):
        ldiv_db.run(con, policy, folder=tmp_path)


@pytest.mark.parametrize("name", ["incognito", "tds"])
def test_nulls_are_values_and_the_recoding_can_be_written(con, tmp_path, name):
    case = Case(con, tmp_path, 6, {"name": name}, [{"distinct": 2}], rows=40)
    con.execute("UPDATE source SET q0 = NULL WHERE s = 's' OR y = 'n'")
    result = ldiv_db.run(con, case.policy, folder=tmp_path)
    assert all(verdict["holds"] for verdict in result.requirements)
    engine = Engine(con)
    sql = recoding_sql(engine, find_run(engine, result.run_id), "duckdb")
    assert Counter(con.execute(sql).fetchall()) == Counter(con.execute("SELECT * FROM out.released").fetchall())


SCHEMES = [("LM", scheme) for scheme in ("none", "vioSA", "allSA", "vioRec", "allRec")] + [
    ("DM", "vioRec"),
    ("CM", "vioRec"),
]


@pytest.mark.parametrize("seed", seeds(5, 200))
def test_annealing_finds_no_better_cut_than_the_best_and_costs_the_same(con, tmp_path, seed):
    metric, scheme = SCHEMES[seed % len(SCHEMES)]
    algorithm = {"name": "annealing", "metric": metric, "scheme": scheme, "class": "y", "steps": 60}
    case = Case(con, tmp_path, seed, algorithm, [{"frequency": "1.5"}], rows=30)
    thetas = dict.fromkeys("stuv", Fraction(2, 3))
    costs = cut_oracle.all_costs(case.rows, case.trees, thetas, metric, scheme)
    if not costs:
        with pytest.raises(ldiv_db.InfeasibleError, match="no cut is allowed"):
            ldiv_db.run(con, case.policy, folder=tmp_path)
        return
    first = ldiv_db.run(con, case.policy, folder=tmp_path)
    cut = case.cut_of(first.search["cut"])
    cost = cut_oracle.cost(case.rows, case.trees, cut, thetas, metric, scheme)
    assert first.search["cost"] == pytest.approx(float(cost)) and cost >= costs[0]
    assert not first.search["proved"] and first.search["steps"] <= 60
    again = {**case.policy, "target": "again"}
    assert ldiv_db.run(con, again, folder=tmp_path).search == first.search


def test_annealing_comes_by_the_best_cut_given_the_steps(con, tmp_path):
    case = Case(con, tmp_path, 207, {"name": "annealing", "steps": 400}, [{"frequency": "1.5"}], rows=40)
    costs = cut_oracle.all_costs(case.rows, case.trees, dict.fromkeys("stuv", Fraction(2, 3)), "LM", "vioRec")
    assert ldiv_db.run(con, case.policy, folder=tmp_path).search["cost"] == pytest.approx(float(costs[0]))


def test_annealing_stops_at_its_time_limit(con, tmp_path):
    algorithm = {"name": "annealing", "time_limit": 1e-9, "steps": 10_000}
    case = Case(con, tmp_path, 205, algorithm, [{"frequency": "1.5"}])
    assert ldiv_db.run(con, case.policy, folder=tmp_path).search["steps"] < 100
