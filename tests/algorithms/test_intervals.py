"""The best cut where numbers have no taxonomy, against brute force over all intervals, and as published."""

import datetime
import json
import random
from collections import Counter
from fractions import Fraction

import pytest
from cut_cases import EACH_KIND, Judged, Shares, numbered
from cut_oracle import Numbers
from refusals import refuses
from strategies import draws, search, seeded, some
from tables import fill

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

pytestmark = pytest.mark.usefixtures("no_remedies")


@pytest.mark.parametrize(
    ("kind", "values", "labels"),
    some(
        [
            ("DECIMAL(6,2)", [0.5, 1.25, 9.0, 10.5], ["[0.50 .. 1.25]", "[9.00 .. 10.50]"]),
            ("INTEGER", [None, 4, 5, None, None], ["[4 .. 5]", "NULL"]),
            ("DATE", [datetime.date(2000, 1, d) for d in (1, 3, 28, 31)],
             ["[2000-01-01 .. 2000-01-03]", "[2000-01-28 .. 2000-01-31]"]),
            ("DOUBLE", [0.5, 1.25, 9.0, 10.5], ["[0.5 .. 1.25]", "[9 .. 10.5]"]),
            ("INTEGER", [None, 7, None, None, 7], ["7", "NULL"]),
            ("INTEGER", [None, 7, 7, 8], ["*"]),
        ]
    ),
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


# -- grids -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, *EACH_KIND])
@search(1, draw=seeded)
def test_bounds_on_all_partitions_hold_on_every_grid(con, tmp_path, kind, draw):
    """Under thresholds, and for all that may be required."""
    case = numbered(Judged(draw, kind) if kind else Shares(draw), draw)
    schemes = case.schemes if kind else [draw.choice(["none", "allRec", "vioRec"])]
    for scheme in schemes:
        problem = grid = case.evaluator(con, tmp_path, "LM", scheme).problem
        least = case.costs("LM", scheme)[:1]
        while (grid := coarser(grid)) is not None:
            problems = bounding(problem, grid)
            bound = sum(finding.Finder(1, True, None)._least(one) for one in problems)
            assert len(problems) == 2 and (not least or Fraction(bound, problem.scale) <= least[0])


def far_apart(rows=60):
    """A table of twenty numbers, each with its neighbour, and a second quasi-identifier."""
    draw = random.Random(7)
    return [(10 * (i % 20), draw.choice("pq"), draw.choice("xyz")) for i in range(rows)]


def policy_of(**algorithm):
    return {"source": "source", "target": {"table": "out", "if_exists": "replace"}, "sensitive": ["s"], "seed": 1,
            "quasi_identifiers": {"n": {"numeric": True}, "q": {"taxonomy": {"flat": True}}},
            "require": [{"distinct": 3}], "algorithm": {"name": "cuts", **algorithm}}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "limit"), [("none", "boxes"), ("allRec", "values")])
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
    if limit == "boxes":
        search = ldiv_db.run(con, policy_of(scheme=scheme, unproved="publish", metric="DM"), folder=tmp_path).search
        assert (search["bound"], search["gap"]) == (0, 1)


def test_where_no_grid_is_coarse_enough_it_is_said(con, tmp_path, monkeypatch):
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, far_apart())
    monkeypatch.setattr(cut_boxes, "MOST_BOXES", 1)
    with pytest.raises(ldiv_db.PolicyError, match="n: the intervals of 20 values"):
        ldiv_db.run(con, policy_of(unproved="publish"), folder=tmp_path)


@search(20, draw=draws)
def test_values_are_put_together_by_their_rows(draw):
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


def test_what_numbers_cannot_be_is_refused(con, tmp_path):
    rows = [(i % 20, i * 2 % 21, i % 30, "xyz"[i % 3]) for i in range(120)]
    fill(con, "source", {"n": "INTEGER", "m": "INTEGER", "w": "INTEGER", "s": "VARCHAR"}, rows)
    wide = {"*": {f"p{i}": {f"{2 * i}": {}, f"{2 * i + 1}": {}} for i in range(15)}}
    (tmp_path / "w.json").write_text(json.dumps(wide))
    keys = {"n": {"numeric": True}, "m": {"numeric": True}, "w": {"taxonomy": {"file": "w.json"}}}
    for columns, algorithm, words in (
        ("nm", "cuts", "n: 20 values without a taxonomy have too many cuts beside those of m (taxonomy: {ranges"),
        ("n", {"name": "cuts", "top": 2}, "as top asks for several"),
        ("nw", "cuts", "n: has no taxonomy, and that of w has 32,769 cuts, more than 2,000"),
    ):
        policy = policy_of() | {"quasi_identifiers": {name: keys[name] for name in columns}, "algorithm": algorithm}
        with refuses("quasi_identifiers") as told:
            ldiv_db.run(con, policy | {"identifiers": list(keys.keys() - set(columns))}, folder=tmp_path)
        assert words in str(told.value)


@pytest.mark.parametrize(("scheme", "nulls"), some([pytest.param("vioRec", True), pytest.param("allRec", False)]))
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


@pytest.mark.slow
def test_counts_of_rows_give_the_release_of_the_rows(con, tmp_path):
    rows = far_apart()
    fill(con, "source", {"n": "INTEGER", "q": "VARCHAR", "s": "VARCHAR"}, rows)
    con.execute("CREATE TABLE counted AS SELECT n, q, s, count(*) AS w FROM source GROUP BY ALL")
    alone = ldiv_db.run(con, policy_of(), folder=tmp_path)
    released = Counter(con.execute("FROM out").fetchall())
    counted = ldiv_db.run(con, policy_of() | {"source": "counted", "weight": "w"}, folder=tmp_path)
    assert counted.search == alone.search and Counter(con.execute("FROM out").fetchall()) == released


@search(1, draw=draws)
def test_intervals_know_their_places_and_cuts(con, tmp_path, draw):
    case, numbers = Shares(draw), Numbers((1, 2, 5, 9), True)
    case.trees, case.rows = [numbers], [((value,), "s", "y") for value in (1, 2, 5, 9, None)]
    (tree,) = intervals_of(case.evaluator(con, tmp_path, "LM", "none").problem)
    assert len(tree.all_cuts) == tree.cuts == 9 == len(list(numbers.cuts()))
    shown = {tuple(tree.labels(list(cut))) for cut in tree.all_cuts}
    labels = ([label for label, _ in cut.values()] for cut in numbers.cuts())
    assert shown == {tuple(dict.fromkeys("NULL" if label is None else label for label in own)) for own in labels}


@pytest.mark.parametrize(("kind", "scheme"), some([pytest.param("DATE", "vioRec"), pytest.param("DOUBLE", "allRec")]))
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
