"""The best cut where numbers have no taxonomy, against brute force over all intervals, and as published."""

import datetime
import json
import random
from collections import Counter
from fractions import Fraction

import cut_oracle
import duckdb
import pytest
import test_cuts
import test_judged_cuts
from cut_oracle import Numbers
from cut_search import assert_same_in_any_order, found
from tables import fill
from times import seeds

import ldiv_db
from ldiv_db.algorithms.cuts import boxes as cut_boxes
from ldiv_db.algorithms.cuts import intervals
from ldiv_db.algorithms.cuts import search as finding
from ldiv_db.algorithms.cuts.intervals import Stretch, stretched
from ldiv_db.algorithms.cuts.problem import intervals_of
from ldiv_db.algorithms.cuts.search import bounding, coarser
from ldiv_db.database.engine import Engine
from ldiv_db.policy.reading import parse_policy
from ldiv_db.recoding.statement import find_run, recoding_sql

KINDS, COMBINATIONS = test_judged_cuts.KINDS, test_cuts.COMBINATIONS


class _Numbered:
    """Some of a case's quasi-identifiers are numbers without a taxonomy, one of them perhaps with NULL."""

    def number(self, seed, most_values=6):
        draw = random.Random(f"{seed} numbers")
        several = len(self.trees) > 1 and draw.random() < 0.3
        for place in draw.sample(range(len(self.trees)), 2 if several else 1):
            values = sorted(draw.sample(range(-3, 12), draw.randint(1, 3 if several else most_values)))
            self.trees[place] = Numbers(tuple(values), draw.random() < 0.3)
        drawn = [tuple(draw.choice(cut_oracle.leaves(tree)) for tree in self.trees) for _ in self.rows]
        self.rows = [(codes, *row[1:]) for codes, row in zip(drawn, self.rows, strict=True)]
        self.trees = [self._occurring(tree, place) for place, tree in enumerate(self.trees)]

    def _occurring(self, tree, place):
        """The numbers that occur: others part nothing, and the range is theirs."""
        if not isinstance(tree, Numbers):
            return tree
        values = {row[0][place] for row in self.rows}
        if values == {None}:  # the tables have a number at least
            self.rows[0] = ((*self.rows[0][0][:place], 1, *self.rows[0][0][place + 1 :]), *self.rows[0][1:])
            values = {row[0][place] for row in self.rows}
        return Numbers(tuple(sorted(values - {None})), None in values)

    def policy(self, **algorithm):
        policy = super().policy(**algorithm)
        for place, tree in enumerate(self.trees):
            if isinstance(tree, Numbers):
                policy["quasi_identifiers"][f"q{place}"] = {"numeric": True}
        return policy | {"nulls": "value"}

    def place(self, con, folder, kind="INTEGER"):
        super_columns = {f"q{i}": kind if isinstance(tree, Numbers) else "VARCHAR" for i, tree in enumerate(self.trees)}
        attributes = getattr(self, "attributes", ["s"])
        columns = super_columns | dict.fromkeys([*attributes, "y"], "VARCHAR")
        values = [(row[1],) if isinstance(row[1], str) else row[1] for row in self.rows]
        fill(con, "source", columns, [(*row[0], *own, row[2]) for row, own in zip(self.rows, values, strict=True)])
        for i, tree in enumerate(self.trees):
            if not isinstance(tree, Numbers):
                (folder / f"q{i}.json").write_text(json.dumps(tree))
        (folder / "ills.json").write_text(json.dumps(test_judged_cuts.ILLS))


class Judged(_Numbered, test_judged_cuts.Case):
    """What is required is any list of requirements, each kind in its turn."""

    def __init__(self, number, most_rows=30, with_whole=True):
        super().__init__(number, most_rows, with_whole)
        self.number(number)


class Shares(_Numbered, test_cuts.Case):
    """What is required are thresholds."""

    def __init__(self, seed, rows=None):
        super().__init__(seed, rows)
        self.number(seed)

    def evaluator(self, con, folder, metric, scheme):
        return test_cuts.evaluator_of(self.task(con, folder), metric, scheme)


@pytest.fixture
def con():
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


@pytest.mark.slow
@pytest.mark.parametrize("number", seeds(2 * len(KINDS)))
def test_the_cost_is_the_least_of_all_partitions_into_intervals(con, tmp_path, number):
    case = Judged(number)
    for scheme in test_judged_cuts.schemes_of(case):
        metric = ("LM", "LM", "DM", "CM")[number % 4]
        top = random.Random(number).choice([1, 1, 4])
        expected = case.costs(metric, scheme)[:top]
        assert found(case.evaluator(con, tmp_path, metric, scheme), top, number % 3 == 0) == expected, case.require


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(2 * len(COMBINATIONS), 100))
def test_the_cost_is_the_least_under_every_scheme(con, tmp_path, seed):
    case, (metric, scheme) = Shares(seed), COMBINATIONS[seed % len(COMBINATIONS)]
    expected = cut_oracle.all_costs(case.rows, case.trees, case.thetas, metric, scheme)[:1]
    assert found(case.evaluator(con, tmp_path, metric, scheme), several=seed % 2) == expected


# -- what is published -----------------------------------------------------------------------------------


def cuts_with(tree, labels):
    """The oracle's cut of the tree that has these labels."""
    return next(
        cut
        for cut in cut_oracle.cuts(tree)
        if Counter({("NULL" if label is None else label) for label, _ in cut.values()}) == Counter(labels)
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", seeds(2 * len(KINDS), 1000))
def test_what_is_published_is_the_best_cut_less_what_violates(con, tmp_path, number):
    case = Judged(number)
    scheme = test_judged_cuts.schemes_of(case)[-1 if number % 3 else 0]
    case.place(con, tmp_path)
    expected = case.costs("LM", scheme)
    keeps = cut_oracle.keeps_rows(case.rows, case.trees, case.good)
    if not expected or not keeps:
        with pytest.raises(ldiv_db.InfeasibleError, match=r"whole table as one class|no cut is allowed|leaves out all"):
            ldiv_db.run(con, case.policy(scheme=scheme), folder=tmp_path)
        return
    result = ldiv_db.run(con, case.policy(scheme=scheme), folder=tmp_path)
    assert result.search["proved"] and result.search["cost"] == pytest.approx(float(expected[0]))
    assert result.search["cuts"] == len(list(cut_oracle.product(*(list(cut_oracle.cuts(t)) for t in case.trees))))
    cut = [cuts_with(tree, own) for tree, own in zip(case.trees, result.search["cut"].values(), strict=True)]
    parts = cut_oracle.partitions(case.rows, cut)
    kept = {
        tuple(label for label, _ in labels): Counter(row[1] for row in members)
        for labels, members in parts.items()
        if case.good(members)
    }
    found = {}
    for row in con.execute("SELECT * FROM out.released").fetchall():
        count = len(case.attributes)
        shown = tuple(None if value is None else str(value) for value in row[: -1 - count])
        found.setdefault(shown, Counter())[row[-1 - count : -1]] += 1
    assert found == kept
    beside = len(case.trees) * result.loss.rows_suppressed
    assert result.loss.lm + beside == pytest.approx(result.search["cost"])


@pytest.mark.parametrize(
    ("kind", "values", "labels"),
    [
        ("DOUBLE", [0.5, 1.25, 9.0, 10.5], ["[0.5 .. 1.25]", "[9 .. 10.5]"]),
        ("DECIMAL(6,2)", [0.5, 1.25, 9.0, 10.5], ["[0.50 .. 1.25]", "[9.00 .. 10.50]"]),
        ("DATE", [datetime.date(2000, 1, d) for d in (1, 3, 28, 31)],
         ["[2000-01-01 .. 2000-01-03]", "[2000-01-28 .. 2000-01-31]"]),
        ("INTEGER", [None, 4, 5, None, None], ["[4 .. 5]", "NULL"]),
        ("INTEGER", [None, 7, None, None, 7], ["7", "NULL"]),
        ("INTEGER", [None, 7, 7, 8], ["*"]),
    ],
)  # fmt: skip
def test_intervals_are_written_as_those_of_any_release(con, tmp_path, kind, values, labels):
    fill(con, "source", {"n": kind, "s": "VARCHAR"}, [(value, "ab"[i % 2]) for i, value in enumerate(values)])
    policy = {"source": "source", "target": "out", "quasi_identifiers": {"n": {"numeric": True}}, "sensitive": ["s"],
              "require": [{"k": 2}], "algorithm": "cuts", "nulls": "value", "seed": 1}  # fmt: skip
    result = ldiv_db.run(con, policy, folder=tmp_path)
    assert result.search["cut"]["n"] == labels
    written = {str(label) if label is not None else "NULL" for (label,) in con.execute("SELECT n FROM out").fetchall()}
    assert written == set(labels)
    assert ldiv_db.check(con, "out", policy=policy).holds


def test_bounds_are_those_of_the_whole_table_not_of_a_class(con, tmp_path):
    """What `b` has lies between 3 and 4, and is shown as all that is published alike."""
    rows = [(n, "a", "xy"[i % 2]) for i, n in enumerate((1, 1, 2, 6))] + [(3, "b", "x"), (4, "b", "y")]
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, rows)
    ldiv_db.run(con, policy_of(scheme="none") | {"require": [{"distinct": 2}]}, folder=tmp_path)
    shown = con.execute("SELECT DISTINCT n, q FROM out ORDER BY ALL").fetchall()
    assert shown == [("1", "a"), ("[2 .. 6]", "a"), ("[2 .. 6]", "b")]


@pytest.mark.slow
@pytest.mark.parametrize("number", seeds(6, 2000))
def test_neither_threads_nor_the_order_of_rows_change_anything(tmp_path, number):
    assert_same_in_any_order(Judged(number, with_whole=False), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(6, 300))
@pytest.mark.parametrize("scheme", ["none", "allRec", "vioRec"])
def test_no_taxonomy_of_ranges_costs_less(con, tmp_path, seed, scheme):
    """All of 0 to 7 are leaves and occur, so that a taxonomy loses as much, and its cuts are partitions of them."""
    draw = random.Random(seed)
    rows = [(n, draw.choice("pq"), draw.choice("xyz")) for n in [*range(8), *draw.choices(range(8), k=30)]]
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, rows)
    costs = []
    for place, own in enumerate(({"numeric": True}, {"taxonomy": {"ranges": [1, 2, 4, 8], "origin": 0}})):
        policy = {"source": "source", "target": f"out_{place}", "sensitive": ["s"], "seed": 1,
                  "quasi_identifiers": {"n": own, "q": {"taxonomy": {"flat": True}}},
                  "require": [{"frequency": 1.4}], "algorithm": {"name": "cuts", "scheme": scheme}}  # fmt: skip
        result = ldiv_db.run(con, policy, folder=tmp_path)
        assert result.search["proved"]
        costs.append(result.search["cost"])
    assert costs[0] <= costs[1] + 1e-9


# -- grids -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(24, 400))
def test_bounds_on_all_partitions_hold_on_every_grid(con, tmp_path, seed):
    case, scheme = Shares(seed), ("none", "allRec", "vioRec")[seed % 3]
    evaluator = case.evaluator(con, tmp_path, "LM", scheme)
    least = cut_oracle.all_costs(case.rows, case.trees, case.thetas, "LM", scheme)[:1]
    problem = grid = evaluator.problem
    while (grid := coarser(grid)) is not None:
        problems = bounding(problem, grid)
        assert len(problems) == 2
        bound = sum(finding.Finder(1, True, None)._least(one) for one in problems)
        assert not least or Fraction(bound, problem.scale) <= least[0]


@pytest.mark.slow
@pytest.mark.parametrize("number", seeds(2 * len(KINDS), 500))
def test_bounds_hold_for_all_that_may_be_required(con, tmp_path, number):
    case = Judged(number)
    for scheme in test_judged_cuts.schemes_of(case):
        problem = case.evaluator(con, tmp_path, "LM", scheme).problem
        least, grid = case.costs("LM", scheme)[:1], coarser(problem)
        if grid is not None:
            bound = sum(finding.Finder(1, True, None)._least(one) for one in bounding(problem, grid))
            assert not least or Fraction(bound, problem.scale) <= least[0]


def far_apart(rows=60):
    """A table of twenty numbers, each with its neighbour, and a second quasi-identifier."""
    draw = random.Random(7)
    return [(10 * (i % 20), draw.choice("pq"), draw.choice("xyz")) for i in range(rows)]


def policy_of(**algorithm):
    return {"source": "source", "target": {"table": "out", "if_exists": "replace"}, "sensitive": ["s"], "seed": 1,
            "quasi_identifiers": {"n": {"numeric": True}, "q": {"taxonomy": {"flat": True}}},
            "require": [{"distinct": 3}], "algorithm": {"name": "cuts", **algorithm}}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["none", "allRec"])
@pytest.mark.parametrize("limit", ["boxes", "values"])
def test_too_many_intervals_are_put_on_a_grid_only_if_the_policy_says_so(con, tmp_path, monkeypatch, scheme, limit):
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, far_apart())
    best = ldiv_db.run(con, policy_of(scheme=scheme), folder=tmp_path).search
    assert best["proved"]
    if limit == "boxes":
        monkeypatch.setattr(cut_boxes, "MOST_BOXES", 250)
    else:
        monkeypatch.setattr(intervals.interval_tree, "__defaults__", (9,))
    with pytest.raises(ldiv_db.InfeasibleError, match=r"n: the intervals of 20 values make .*ranges: \[5, 10, 20\]"):
        ldiv_db.run(con, policy_of(scheme=scheme), folder=tmp_path)
    result = ldiv_db.run(con, policy_of(scheme=scheme, unproved="publish"), folder=tmp_path)
    search = result.search
    assert not search["proved"] and search["bound"] <= best["cost"] <= search["cost"]
    assert search["gap"] == pytest.approx(1 - search["bound"] / search["cost"])
    assert any("of its 20 values" in note for note in result.notes) and any("within" in note for note in result.notes)
    assert ldiv_db.check(con, "out", policy=policy_of()).holds
    assert (search["bound"] > 0) == (limit == "boxes")  # of more values than are told apart nothing is known
    metric = ldiv_db.run(con, policy_of(scheme=scheme, unproved="publish", metric="DM"), folder=tmp_path).search
    assert (metric["bound"], metric["gap"]) == (0, 1)


def test_where_no_grid_is_coarse_enough_it_is_said(con, tmp_path, monkeypatch):
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, far_apart())
    monkeypatch.setattr(cut_boxes, "MOST_BOXES", 1)
    with pytest.raises(ldiv_db.PolicyError, match="n: the intervals of 20 values"):
        ldiv_db.run(con, policy_of(unproved="publish"), folder=tmp_path)


@pytest.mark.parametrize("seed", seeds(10))
def test_values_are_put_together_by_their_rows(seed):
    draw = random.Random(seed)
    values = [Stretch((i,), draw.choice([1, 1, 2, 30]), str(i), str(i)) for i in range(draw.randint(1, 40))]
    most = draw.randint(1, 45)
    made, rows = stretched(values, most), sum(value.rows for value in values)
    assert len(made) <= max(most, 1) and [c for one in made for c in one.codes] == [v.codes[0] for v in values]
    assert sum(one.rows for one in made) == rows
    assert all((one.first, one.last) == (str(one.codes[0]), str(one.codes[-1])) for one in made)
    if len(values) > most:
        assert all(sum(values[c].rows for c in one.codes[:-1]) <= rows / most for one in made)
    else:
        assert made == tuple(values)


# -- what is refused, and what follows a run ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "changes", "message"),
    [
        ("nm", {}, r"n: 20 values without a taxonomy have too many cuts beside those of m \(taxonomy: {ranges"),
        ("n", {"algorithm": {"name": "cuts", "top": 2}}, "n: 20 values without a taxonomy .* as top asks for several"),
        ("nw", {}, r"n: has no taxonomy, and that of w has 32,769 cuts, more than 2,000"),
        ("n", {"algorithm": "annealing"}, "n: cuts run through taxonomies: it needs one"),
        ("n", {"algorithm": "incognito"}, "incognito publishes nodes of taxonomies: it needs one"),
        ("n", {"algorithm": "tds"}, "tds publishes nodes of taxonomies: it needs one"),
    ],
)
def test_what_numbers_cannot_be_is_refused(con, tmp_path, columns, changes, message):
    rows = [(i % 20, i * 2 % 21, i % 30, "xyz"[i % 3]) for i in range(120)]
    fill(con, "source", {"n": "INTEGER", "m": "INTEGER", "w": "INTEGER", "s": "VARCHAR"}, rows)
    wide = {"*": {f"p{i}": {f"{2 * i}": {}, f"{2 * i + 1}": {}} for i in range(15)}}
    (tmp_path / "w.json").write_text(json.dumps(wide))
    keys = {"n": {"numeric": True}, "m": {"numeric": True}, "w": {"taxonomy": {"file": "w.json"}}}
    policy = policy_of() | {"quasi_identifiers": {name: keys[name] for name in columns}}
    policy |= {"identifiers": [name for name in keys if name not in columns]}
    with pytest.raises(ldiv_db.PolicyError, match=message):
        ldiv_db.run(con, policy | changes, folder=tmp_path)


@pytest.mark.parametrize("scheme", ["none", "allRec", "vioRec"])
@pytest.mark.parametrize("nulls", [False, True])
def test_the_select_of_a_recoding_has_the_intervals(con, tmp_path, scheme, nulls):
    draw = random.Random(3)
    rows = [(None if nulls and i % 7 == 0 else draw.choice([-5, -2, 0, 3, 4, 9]), draw.choice("pq"),
             draw.choice("xxyz")) for i in range(40)]  # fmt: skip
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, rows)
    policy = policy_of(scheme=scheme) | {"nulls": "value", "require": [{"frequency": 1.5}]}
    run = ldiv_db.run(con, policy | {"output": {"types": "text"}}, folder=tmp_path)
    engine = Engine(con)
    text = recoding_sql(engine, find_run(engine, run.run_id), "duckdb", policy=parse_policy(policy))
    assert Counter(con.execute(text).fetchall()) == Counter(con.execute("FROM out").fetchall())
    con.execute("INSERT INTO source VALUES (1000, 'p', 'x')")
    if scheme == "vioRec":
        assert len(con.execute(text).fetchall()) == run.loss.rows_published, "no interval has 1000"


def test_numbers_that_are_not_whole_have_no_select(con, tmp_path):
    rows = [(i % 5 + 0.5, "pq"[i % 2], "xyz"[i % 3]) for i in range(40)]
    fill(con, "source", {"n": "DOUBLE", "q": "VARCHAR", "s": "VARCHAR"}, rows)
    run, engine = ldiv_db.run(con, policy_of(), folder=tmp_path), Engine(con)
    with pytest.raises(ldiv_db.PolicyError, match="intervals of numbers that are not whole"):
        recoding_sql(engine, find_run(engine, run.run_id), "duckdb", policy=parse_policy(policy_of()))


def test_counts_of_rows_give_the_release_of_the_rows(con, tmp_path):
    rows = far_apart()
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, rows)
    con.execute("CREATE TABLE counted AS SELECT n, q, s, count(*) AS w FROM source GROUP BY ALL")
    alone = ldiv_db.run(con, policy_of(), folder=tmp_path)
    released = Counter(con.execute("FROM out").fetchall())
    counted = ldiv_db.run(con, policy_of() | {"source": "counted", "weight": "w"}, folder=tmp_path)
    assert counted.search == alone.search and Counter(con.execute("FROM out").fetchall()) == released


def test_intervals_know_their_places_and_cuts(con, tmp_path):
    case = Shares(1)
    case.trees = [Numbers((1, 2, 5, 9), True)]
    case.rows = [((value,), "s", "y") for value in (1, 2, 5, 9, None)]
    (tree,) = intervals_of(case.evaluator(con, tmp_path, "LM", "none").problem)
    assert len(tree.all_cuts) == tree.cuts == 9 == len(list(case.trees[0].cuts()))
    shown = {tuple(tree.labels(list(cut))) for cut in tree.all_cuts}
    assert shown == {
        tuple(dict.fromkeys("NULL" if label is None else label for label, _ in cut.values()))
        for cut in case.trees[0].cuts()
    }
    assert len(shown) == 9


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["none", "allRec", "vioRec"])
@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "DATE"])
def test_intervals_are_published_as_bounds_of_the_source_s_type(con, scheme, kind):
    con.execute(
        "CREATE TABLE source AS SELECT CAST("
        f"{'DATE ' + repr('2020-01-01') + ' +' if kind == 'DATE' else '0.5 *' if kind == 'DOUBLE' else ''}"
        f" CAST(i * 7 % 11 AS INTEGER) AS {kind}) AS n, 'd' || i * 7 % 11 // 3 AS s FROM range(40) AS r(i)"
    )
    policy = {
        "source": "source", "quasi_identifiers": {"n": {"numeric": True}}, "sensitive": ["s"],
        "require": [{"frequency": 2}], "algorithm": {"name": "cuts", "scheme": scheme}, "seed": 1,
    }  # fmt: skip
    runs = [
        ldiv_db.run(con, policy | {"target": name, "output": {"bounds": bounds}})
        for name, bounds in (("bounds", True), ("labels", False))
    ]
    assert [row[1] for row in con.execute("DESCRIBE bounds").fetchall()] == [kind, kind, "VARCHAR"]
    assert runs[0].loss.lm_mean == runs[1].loss.lm_mean > 0
    text = "CASE WHEN n_min < n_max THEN concat('[', n_min, ' .. ', n_max, ']') ELSE CAST(n_min AS VARCHAR) END"
    found = con.execute(rf"SELECT regexp_replace({text}, '\.0\b', '', 'g'), s FROM bounds").fetchall()
    labels = con.execute("SELECT nullif(n, '*'), s FROM labels").fetchall()
    assert Counter(found) == Counter(labels)
    engine = Engine(con)
    with pytest.raises(ldiv_db.PolicyError, match="bounds in two columns"):
        recoding_sql(engine, find_run(engine, runs[0].run_id), "duckdb")
