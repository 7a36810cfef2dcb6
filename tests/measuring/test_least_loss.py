"""The bound on what any local recoding loses, against all recodings of small tables, and from its prices by SQL."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_recodings import NEEDS, TREES, cells_of, drawn, least_cost, meets, nodes_of
from strategies import draws, search, seeded, some

import ldiv_db
from ldiv_db.database.context import Listener
from ldiv_db.database.errors import PolicyError
from ldiv_db.measuring.least_loss import cells as arrays
from ldiv_db.measuring.least_loss import labels as listing
from ldiv_db.measuring.least_loss import prices
from ldiv_db.measuring.least_loss.best_classes import best_classes
from ldiv_db.measuring.least_loss.bounds import LossBound, Need
from ldiv_db.measuring.least_loss.cells import UNIT, Cells, ranges
from ldiv_db.measuring.least_loss.labels import list_labels, most_gained
from ldiv_db.measuring.least_loss.prices import Ascent
from ldiv_db.measuring.least_loss.search import fewest_rows
from ldiv_db.requirements import parse_requirement, promised_by
from ldiv_db.requirements.guarantees import Guarantee


def proved(cells: Cells, need: Need) -> Ascent:
    return Ascent(cells, need, 2_000_000).run()


@search(8, draw=draws)
def test_no_recoding_costs_less(draw: random.Random) -> None:
    rows, need = drawn(draw, draw.randint(5, 7)), draw.choice(NEEDS)
    least = least_cost(rows, need, [nodes_of(tree) for tree in TREES])
    assert proved(cells_of(rows), need).bound <= least


def test_the_bound_is_mostly_near_the_least() -> None:
    """What is left is the gap of the relaxation, and of steps that end."""
    near = total = 0
    for seed, need in product(range(2), NEEDS):
        rows = drawn(random.Random(seed), 7)
        least = least_cost(rows, need, [nodes_of(tree) for tree in TREES])
        found = proved(cells_of(rows), need).bound
        near, total = near + (found >= 0.98 * least), total + 1
    assert near > total / 2


@search(4, draw=draws)
def test_numbers_in_groups_cost_no_more(draw: random.Random) -> None:
    """All ranges are tried where numbers are few; where they are many, what is proved is less."""
    rows = [(code * 3, leaf, value) for code, leaf, value in drawn(draw, 7)]
    codes = np.array([row[0] for row in rows], np.int64)
    every = [ranges(codes, 12), nodes_of(TREES[1])]
    least = least_cost(rows, Need(1, 2), every)
    exact = proved(cells_of(rows, every), Need(1, 2)).bound
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "MOST_NUMBERS", 3)
        assert proved(cells_of(rows, [ranges(codes, 12), nodes_of(TREES[1])]), Need(1, 2)).bound <= exact <= least


def best_of(members: list[tuple[int, int]], need: Need) -> int:
    """The most that a class of some of these rows gains, each a value and its gain."""
    found = 0
    for chosen in product((False, True), repeat=len(members)):
        taken = [member for member, is_in in zip(members, chosen, strict=True) if is_in]
        if taken and meets(need, [value for value, _ in taken]):
            found = max(found, sum(gain for _, gain in taken))
    return found


@search(6, draw=draws)
def test_the_best_class_is_that_of_all_choices(draw: random.Random) -> None:
    """Of one need exactly; of several no less, since the best by one of them is taken."""
    need, cells = draw.choice(NEEDS), cells_of(drawn(draw, 9))
    price = np.array([draw.randrange(UNIT) for _ in cells.rows], np.int64)
    labels = list_labels(cells, np.full(len(price), cells.full), Need(), 10**6)
    assert labels is not None
    gained, covered = 0, np.zeros(len(price), np.int64)
    for one in each_label(labels):
        members = [
            (int(cells.value[cell]), int(price[cell] - one.cost[0]))
            for cell in one.cell
            for _ in range(cells.rows[cell])
        ]
        found, taken = best_classes(cells, one, price, need)
        best = best_of(members, need)
        assert found == best if (need.values == 1 or need == Need(1, need.values)) else found >= best
        assert best <= max(most_gained(cells, one, price, need)[0], 0)
        gained, covered = gained + found, covered + taken
    together, rows = best_classes(cells, labels, price, need)
    assert (together, rows.tolist()) == (gained, covered.tolist())


def each_label(labels: listing.Labels) -> Iterator[listing.Labels]:
    for number in range(len(labels.start)):
        yield labels.having(np.arange(len(labels.start)) == number)


@pytest.mark.parametrize("seed", range(2))
def test_labels_that_are_not_listed_gain_nothing(seed: int) -> None:
    draw = random.Random(seed)
    cells, need = cells_of(drawn(draw, 30)), Need(2, 2)
    price = np.array([draw.randrange(UNIT) for _ in cells.rows], np.int64)
    every, some = (list_labels(cells, ceiling, need, 10**6) for ceiling in (np.full(len(price), cells.full), price))
    assert every is not None and some is not None and len(some.start) < len(every.start)
    of_all, of_some = (best_classes(cells, labels, price, need) for labels in (every, some))
    assert of_all[0] == of_some[0] > 0


#: The bound by its prices: every label with its best class, of so many rows or of so many values.
REPLAYED = """
WITH pairs AS (
    SELECT c.cell, c.value, c.rows, a.node AS a, b.node AS b, c.price - a.loss - b.loss AS gain
    FROM cells AS c
    JOIN nodes AS a ON a.axis = 0 AND a.place = c.place_0
    JOIN nodes AS b ON b.axis = 1 AND b.place = c.place_1
),
ranked AS (
    SELECT *, sum(rows) OVER (PARTITION BY a, b ORDER BY gain DESC, cell) - rows AS before,
        row_number() OVER (PARTITION BY a, b, value ORDER BY gain DESC, cell) AS place
    FROM pairs
),
led AS (
    SELECT *, row_number() OVER (PARTITION BY a, b, place ORDER BY gain DESC, cell) AS lead FROM ranked
),
best AS (
    SELECT sum(gain * CASE
        WHEN gain > 0 THEN rows
        WHEN $values > 1 THEN CASE WHEN place = 1 AND lead <= $values THEN 1 ELSE 0 END
        ELSE least(greatest($rows - before, 0), rows)
    END) AS gained
    FROM led GROUP BY a, b HAVING sum(rows) >= $rows AND count(DISTINCT value) >= $values
)
SELECT (SELECT sum(rows * price) FROM cells) - sum(greatest(gained, 0)) FROM best
"""


@pytest.mark.parametrize("need", [Need(4), Need(1, 3)], ids=str)
def test_the_prices_prove_the_bound(con: Any, need: Need) -> None:
    cells = cells_of(drawn(random.Random(1), 60))
    found = proved(cells, need)
    con.execute("CREATE TABLE cells (cell INT, value INT, rows INT, price BIGINT, place_0 INT, place_1 INT)")
    places = [nodes.place for nodes in cells.nodes]
    listed = np.stack([np.arange(len(cells.rows)), cells.value, cells.rows, found.kept, *places]).T.tolist()
    con.executemany("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?)", listed)
    con.execute("CREATE TABLE nodes (axis INT, place INT, node INT, loss BIGINT)")
    for axis, nodes in enumerate(cells.nodes):
        of_place = np.repeat(np.arange(len(nodes.first) - 1), np.diff(nodes.first))
        rows = np.stack([np.full(len(of_place), axis), of_place, nodes.node, nodes.loss[nodes.node]]).T.tolist()
        con.executemany("INSERT INTO nodes VALUES (?, ?, ?, ?)", rows)
    ((replayed,),) = con.execute(REPLAYED, {"rows": need.rows, "values": need.values}).fetchall()
    assert replayed == found.bound > 0


@search(20, draw=draws)
def test_the_dearest_rows_are_as_few_as_can_be(draw: random.Random) -> None:
    """Of all rows one by one; parts of a whole number of eighths are exact."""
    cells = [(draw.randrange(5), draw.randrange(1, 4)) for _ in range(draw.randint(1, 5))]
    part = draw.randrange(1, 8) / 8
    every = sorted((price for price, rows in cells for _ in range(rows)), reverse=True)
    fewest = next(n for n in range(len(every) + 1) if sum(every[:n]) >= part * sum(every))
    price, rows = (np.array(column, np.int64) for column in zip(*cells, strict=True))
    assert fewest_rows(price, rows, part) == fewest


def test_what_does_not_fit_is_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few pairs at a time prices rise more slowly, and what is proved holds all the same."""
    cells = cells_of(drawn(random.Random(2), 60))
    whole = proved(cells, Need(3)).bound
    monkeypatch.setattr(prices, "MOST_PAIRS", 300)
    assert 0 < proved(cells, Need(3)).bound <= whole


# -- in plans and runs --------------------------------------------------------------------------------


def place(con: Any, folder: Path, rows: int = 40) -> dict[str, Any]:
    """A table with a number, a NULL in it, and a tree, and its policy."""
    draw = random.Random(3)
    con.execute("CREATE TABLE source (age INTEGER, city VARCHAR, s VARCHAR)")
    listed = [(draw.choice([None, *range(20, 30)]), draw.choice("abcd"), draw.choice("xyzw")) for _ in range(rows)]
    con.executemany("INSERT INTO source VALUES (?, ?, ?)", listed)
    (folder / "city.csv").write_text("a;ab;*\nb;ab;*\nc;cd;*\nd;cd;*")
    columns = {"age": {"numeric": True}, "city": {"taxonomy": {"file": "city.csv"}}}
    return {"source": "source", "target": "released", "quasi_identifiers": columns, "sensitive": ["s"],
            "require": [{"k": 4}], "algorithm": "topdown", "seed": 1}  # fmt: skip


@pytest.mark.parametrize(
    "require", some([[{"distinct": 3}], [{"k": 4}], [{"frequency": 2}], [{"p_sensitive": {"p": 2, "k": 4}}]])
)
def test_a_run_tells_how_far_it_may_be_from_the_least(con: Any, tmp_path: Path, require: list[Any]) -> None:
    asked = place(con, tmp_path) | {"require": require}
    result = ldiv_db.run(con, asked, folder=tmp_path, bound=True)
    told = result.as_dict()["bound"]
    assert 0 < told["lm_mean"] <= result.loss.lm_mean and told["weaker"] == []
    assert 0 < told["dearest_rows"] <= result.loss.rows_published
    assert told["above"] == pytest.approx(result.loss.lm_mean / told["lm_mean"] - 1)
    assert "more than the least" in str(list(result.text()))
    planned = ldiv_db.plan(
        con, asked | {"target": {"table": "released", "if_exists": "replace"}}, folder=tmp_path, bound=True
    )
    assert planned.bound == result.bound and "no local recoding" in str(list(planned.text()))
    # Nothing else has the bound: it follows from the source, so the ledger, from which reports are made, keeps none.
    secret = (str(told["lm_mean"]), "more than the least", "no local recoding")
    tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ldiv'").fetchall()
    kept = [str(con.execute(f"SELECT * FROM ldiv.{name}").fetchall()) for (name,) in tables]
    assert any("released" in text for text in kept)
    assert not [text for text in kept if any(words in text for words in secret)]


@pytest.mark.parametrize("call", some([ldiv_db.plan, ldiv_db.run]))
def test_ctrl_c_leaves_the_best_bound_so_far(con: Any, tmp_path: Path, call: Any) -> None:
    """The search ends, and what follows goes on."""

    def stop(told: str) -> None:
        if told.startswith("nothing loses less"):
            heard.append(float(told.rsplit(maxsplit=1)[-1]))
            raise KeyboardInterrupt  # as a signal does there, whatever handlers other tests have left

    heard: list[float] = []
    listener = Listener(on_search=stop)
    result = call(con, place(con, tmp_path), folder=tmp_path, bound=True, listener=listener)
    assert result.bound is not None and result.bound.interrupted and len(heard) == 1
    assert 0 < result.bound.lm_mean == pytest.approx(heard[0], abs=1e-4)
    assert result.bound.as_dict()["interrupted"] and "Ctrl-C" in str(list(result.bound.said()))
    assert call is ldiv_db.plan or con.execute("SELECT count(*) FROM released").fetchall() == [(40,)]


def test_values_count_only_where_they_are_asked_for(con: Any, tmp_path: Path) -> None:
    """Rows of different values are one cell under `k` alone."""
    asked = place(con, tmp_path)
    of_k, of_values = (
        ldiv_db.plan(con, asked | {"require": [wanted]}, folder=tmp_path, bound=True).bound
        for wanted in ({"k": 4}, {"distinct": 3})
    )
    assert of_k is not None and of_values is not None
    assert len(of_k.proof.cells.rows) < len(of_values.proof.cells.rows)


@pytest.mark.parametrize(
    ("require", "need", "weaker"),
    some(
        [
            ([{"frequency": 2.5}, {"k": 5}], Need(5, 1, 2), 1),
            ([{"t_closeness": 0.4}], Need(1, 3), 1),
            ([{"distinct": 3}, {"k": 5}], Need(5, 3), 0),
            ([{"entropy": 3}], Need(1, 3), 1),
            ([{"threshold": {"default": 0.5, "x": 0.2}}], Need(1, 1, 2), 1),
        ]
    ),
)
def test_what_is_not_taken_whole_is_named(
    con: Any, tmp_path: Path, require: list[Any], need: Need, weaker: int
) -> None:
    asked = place(con, tmp_path) | {"require": require}
    bound = ldiv_db.plan(con, asked, folder=tmp_path, bound=True).bound
    assert isinstance(bound, LossBound) and bound.need == need and len(bound.weaker) == weaker
    assert 0 < bound.lm_mean <= ldiv_db.run(con, asked, folder=tmp_path).loss.lm_mean
    assert ("no row is left out" in str(list(bound.said()))) == ("t_closeness" in require[0])


def test_people_and_rows_left_out_count(con: Any, tmp_path: Path) -> None:
    """Of people rows are needed, and a row that NULL leaves out loses all."""
    asked = place(con, tmp_path)
    con.execute("ALTER TABLE source ADD COLUMN who INTEGER")
    con.execute("UPDATE source SET who = rowid // 2")
    counted = asked | {"individual": {"column": "who", "rows": "apart"}}
    bound = ldiv_db.plan(con, counted, folder=tmp_path, bound=True).bound
    assert bound is not None and bound.need == Need(4) and len(bound.weaker) == 1
    dropped = asked | {"nulls": "suppress", "identifiers": ["who"]}
    least = ldiv_db.plan(con, dropped, folder=tmp_path, bound=True).bound
    ((missing,),) = con.execute("SELECT count(*) FROM source WHERE age IS NULL").fetchall()
    assert least is not None and missing and least.lm_mean > Fraction(missing, 40)


def partitions(numbers: list[int]) -> Iterator[list[list[int]]]:
    if not numbers:
        yield []
        return
    first, *rest = numbers
    for found in partitions(rest):
        yield [[first], *found]
        yield from ([*found[:i], [first, *one], *found[i + 1 :]] for i, one in enumerate(found))


def releases(rows: list[tuple[int | None, Any]], most: int) -> Iterator[tuple[float, list[tuple[Any, Any]]]]:
    """All releases of rows (a number, a value) that leave out so many at most, each with its mean LM."""
    known = [number for number, _ in rows if number is not None]
    wide = max(known) - min(known)
    for kept in product((True, False), repeat=len(rows)):
        if kept.count(False) > most:
            continue
        for classes in partitions([i for i, is_in in enumerate(kept) if is_in]):
            lost, published = Fraction(kept.count(False)), list[tuple[Any, Any]]()
            for members in classes:
                numbers = [rows[i][0] for i in members]
                label, own = "*", Fraction(1)
                if None not in numbers:
                    low, high = min(numbers), max(numbers)  # type: ignore[type-var]
                    label, own = f"[{low} .. {high}]", Fraction(high - low, wide)  # type: ignore[operator]
                elif set(numbers) == {None}:
                    label, own = None, Fraction(0)  # type: ignore[assignment]
                lost += own * len(members)
                published += [(label, rows[i][1]) for i in members]
            yield float(lost / len(rows)), published


#: What a policy asks for, and rows of which some release loses less than one that leaves none out, or judges all.
ALLOWED = [
    ({"require": [{"t_closeness": {"t": 0.4, "distance": "equal"}}], "suppression": 0.3},
     [(4, "a"), (3, "a"), (5, "b"), (4, "b")]),
    ({"require": [{"t_closeness": {"t": 0.2, "distance": "equal"}}], "suppression": 0.45},
     [(1, "a"), (1, "a"), (5, "a"), (2, "b"), (3, "c")]),
    ({"require": [{"risk": {"average": 0.5}}]}, [(2, "c"), (4, "c"), (2, "a"), (2, "b")]),
    ({"require": [{"alpha_k": {"alpha": 0.6, "k": 2}}], "suppressed": "ignore"}, [(5, None), (3, "c"), (2, "b")]),
    ({"require": [{"distinct": 2}], "suppressed": "ignore"}, [(None, "a"), (3, "a"), (3, "b"), (7, "a"), (8, "b")]),
    ({"require": [{"frequency": 2}], "suppressed": "unknown"}, [(1, None), (5, "a"), (6, "b"), (9, None)]),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "rows"), some(ALLOWED))
def test_nothing_that_the_policy_allows_loses_less(con: Any, asked: dict[str, Any], rows: list[Any]) -> None:
    """Of the releases of all classes, the first that `check` passes; means, budgets and blanked rows allow more."""
    con.execute("CREATE TABLE source (q INTEGER, s VARCHAR)")
    con.executemany("INSERT INTO source VALUES (?, ?)", rows)
    wanted = {"source": "source", "target": "o", "quasi_identifiers": {"q": {"numeric": True}}, "sensitive": ["s"],
              "algorithm": "topdown", "seed": 1, "nulls_sensitive": "value"} | asked  # fmt: skip
    bound = ldiv_db.plan(con, wanted, bound=True).bound
    assert bound is not None
    most = int(asked.get("suppression", 0) * len(rows))
    for loss, published in sorted(releases(rows, most), key=lambda one: one[0]):
        con.execute("CREATE OR REPLACE TABLE published (q VARCHAR, s VARCHAR)")
        con.executemany("INSERT INTO published VALUES (?, ?)", published)
        if all(audit.holds for audit in ldiv_db.check(con, "published", policy=wanted)):
            assert bound.lm_mean <= loss
            return
    pytest.fail("no class of all rows is good")


def test_a_mean_promises_nothing_of_a_class() -> None:
    """Nor is it wholly in what is proved, while algorithms keep each class below it."""
    mean = parse_requirement("risk:average=0.5").resolve(None)
    assert promised_by([mean]) == Guarantee() and mean.least_rows == 2


@pytest.mark.parametrize(
    ("missing", "judged"), some([("s", "ignore"), ("age", "judge"), ("s", "judge"), ("age", "ignore")])
)
def test_columns_of_nulls_have_a_bound(con: Any, tmp_path: Path, missing: str, judged: str) -> None:
    """NULL is a value of its own, of sensitive columns too unless it is not judged."""
    asked = place(con, tmp_path) | {"require": [{"distinct": 2}], "suppressed": judged}
    asked["nulls_sensitive"] = "value"
    con.execute(f"UPDATE source SET {missing} = NULL WHERE {missing} IS NOT NULL AND (rowid > 5 OR {missing == 'age'})")
    result = ldiv_db.run(con, asked, folder=tmp_path, bound=True)
    assert result.bound is not None and result.bound.need == Need(1, 2)
    assert 0 <= result.bound.lm_mean <= result.loss.lm_mean
    assert bool(result.bound.weaker) == (missing == "s" and judged == "ignore")


@search(1, draw=seeded)
def test_no_classes_with_sets_lose_less(con: Any, draw: random.Random) -> None:
    towns = [draw.choice("abcdef") for _ in range(5)] + ["a", "b"]
    con.execute("CREATE OR REPLACE TABLE source AS SELECT unnest($1) AS town, 's' AS s", [towns])
    policy = {"source": "source", "target": {"table": "out", "if_exists": "replace"}, "quasi_identifiers": "town"}
    policy |= {"keep": ["s"], "require": [{"k": 2}], "over_time": "independent"}
    result = ldiv_db.run(con, policy, bound=True)
    classes = [[[towns[n] for n in own] for own in found] for found in partitions([*range(len(towns))])]
    classes = [found for found in classes if min(map(len, found)) > 1]
    least = min(sum(len(own) * (len(set(own)) - 1) for own in found) for found in classes)
    least = Fraction(least, len(towns) * (len(set(towns)) - 1))
    assert result.bound is not None and 0 <= result.bound.lm_mean <= least <= result.loss.lm_mean + 1e-9
    assert result.bound.grouped == ["town, each set as if it had two values"]


def test_what_has_no_bound_is_refused(con: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = place(con, tmp_path)
    con.execute("ALTER TABLE source ADD COLUMN id INTEGER")
    con.execute("UPDATE source SET id = rowid")
    for call in (ldiv_db.plan, ldiv_db.run):
        with pytest.raises(PolicyError, match="a series has rows of earlier sources"):
            call(con, asked | {"key": "id"}, folder=tmp_path, bound=True)
    con.execute("CREATE TABLE counts AS SELECT age, city, rowid AS s, 2_400_000_000 AS w FROM source")
    counted = asked | {"source": "counts", "weight": "w", "require": [{"distinct": 2}]}
    with pytest.raises(PolicyError, match="too many rows and values"):
        ldiv_db.plan(con, counted, folder=tmp_path, bound=True)
    monkeypatch.setattr("ldiv_db.measuring.least_loss.search.MOST_CELLS", 3)
    with pytest.raises(PolicyError, match="up to 3 rows that differ"):
        ldiv_db.plan(con, asked | {"identifiers": ["id"]}, folder=tmp_path, bound=True)
