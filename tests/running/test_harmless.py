"""Releases, checks and attacks where nothing is promised of some values, against the definitions in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import oracle
import pytest
from strategies import search, seeds, some
from tables import fill

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError

COLUMNS = {"age": "INTEGER", "zip": "VARCHAR", "job": "VARCHAR", "note": "INTEGER"}
REQUIRED: list[tuple[str, Any]] = [
    ("frequency", 2),
    ("frequency", 3),
    ("distinct", 3),
    ("p_sensitive", {"p": 2, "k": 4}),
    ("alpha_k", {"alpha": 0.5, "k": 3}),
    ("threshold", {"default": 0.6, "cook": 0.4}),
    ("recursive", {"c": 2, "l": 3}),
]
LOCAL = ("auto", "topdown", "peel", "mondrian", "stratified", "incognito", "tds")


def people(draw: random.Random, most: int = 30) -> list[tuple[Any, ...]]:
    """A few people, most of whom have no job, or none that is known; the first is a cook."""
    jobs = ["none"] * 4 + [None, None, "cook", "clerk", "smith"]
    count = draw.randint(12, most)
    known = ["cook", *(draw.choice(jobs) for _ in range(count - 1))]
    return [(draw.randrange(20, 44), draw.choice(["1a", "1b", "2a", "2b"]), job, i) for i, job in enumerate(known)]


def policy(
    require: list[dict[str, Any]], algorithm: Any, harmless: Any = ("none", None), **more: Any
) -> dict[str, Any]:
    return {
        "source": "people", "target": {"table": "published", "if_exists": "replace"},
        "quasi_identifiers": {"age": {"taxonomy": {"ranges": [4, 8]}}, "zip": {"taxonomy": {"prefix": [2, 1]}}},
        "sensitive": {"job": {"harmless": list(harmless)}}, "keep": ["note"], "require": require,
        "nulls_sensitive": "value", "algorithm": algorithm, "seed": 3, **more,
    }  # fmt: skip


def published(con: Any) -> list[tuple[Any, Any]]:
    """(class, value) of every row."""
    return [((age, zip_), job) for age, zip_, job in con.execute("SELECT age, zip, job FROM published").fetchall()]


def bad(rows: list[tuple[Any, Any]], name: str, argument: Any, harmless: Any) -> set[Any]:
    """The classes that violate a requirement."""
    classes = oracle.group(rows)
    return {k for k, values in classes.items() if not oracle.spared_class_is_good(values, name, argument, harmless)}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some(LOCAL))
@search(2, case=seeds)
def test_every_class_of_a_release_is_good(con: Any, algorithm: str, case: int) -> None:
    draw = random.Random(f"{algorithm} {case}")
    name, argument = REQUIRED[(case + len(algorithm)) % len(REQUIRED)]
    rows = people(draw)
    harmless = draw.choice([("none",), ("none", None), ("none", "clerk")])
    fill(con, "people", COLUMNS, rows)
    whole_is_good = not bad([(0, row[2]) for row in rows], name, argument, harmless)
    asked = policy([{name: argument}], algorithm, harmless)
    if not whole_is_good:
        with pytest.raises(InfeasibleError, match=f"{name} .* fails even in the whole table"):
            ldiv_db.run(con, asked)
        return
    result = ldiv_db.run(con, asked)
    release = published(con)
    assert not bad(release, name, argument, harmless), (name, rows)
    assert sorted(con.execute("SELECT note FROM published").fetchall()) == [(row[3],) for row in rows]
    (verdict,) = result.requirements
    assert verdict["holds"] and verdict["classes"] == len(oracle.group(release)) == result.loss.classes


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some(["cuts", "annealing"]))
@search(2, case=seeds)
def test_a_cut_keeps_shares_of_the_others(con: Any, algorithm: str, case: int) -> None:
    draw = random.Random(case)
    fill(con, "people", COLUMNS, people(draw))
    steps = {"steps": 30} if algorithm == "annealing" else {}
    for scheme in ("vioRec", "allRec"):
        name, argument = draw.choice([("frequency", 2), ("frequency", 3), REQUIRED[5]])
        ldiv_db.run(con, policy([{name: argument}], {"name": algorithm, "scheme": scheme} | steps))
        assert not bad(published(con), name, argument, ("none", None))


@pytest.mark.slow
def test_the_best_cut_of_all_leaves_harmless_rows_alone(con: Any) -> None:
    """A class of harmless rows alone is good, and its rows need no company."""
    fill(con, "people", COLUMNS, [(20 + i, "1a", "none", i) for i in range(8)])
    for algorithm in ("cuts", "topdown", "peel", "mondrian", "incognito", "tds"):
        result = ldiv_db.run(con, policy([{"frequency": 2}], algorithm, ["none"]))
        assert (result.loss.classes, result.loss.lm) == (2, 0), algorithm


@search(2, case=seeds)
def test_a_check_judges_as_defined(con: Any, case: int) -> None:
    draw = random.Random(case)
    fill(con, "people", COLUMNS, people(draw))
    rows = [(zip_, job) for zip_, job in con.execute("SELECT zip, job FROM people").fetchall()]
    required = [{name: argument} for name, argument in REQUIRED]
    (audit,) = ldiv_db.check(con, "people", ["zip"], {"job": {"harmless": ["none", None]}}, required)
    for (name, argument), verdict in zip(REQUIRED, audit.verdicts, strict=True):
        found = bad(rows, name, argument, ("none", None))
        assert (verdict.violating_classes, verdict.holds) == (len(found), not found)
        assert verdict.violating_rows == sum(key in found for key, _ in rows)
        assert verdict.classes == audit.classes == len(oracle.group(rows))


def test_auto_asks_the_others_how_frequent_they_are(con: Any) -> None:
    """Of twelve rows nine are harmless: of the others none is in more than two."""
    jobs = ["none"] * 7 + ["cook", "cook", "clerk", "clerk", "smith"]
    fill(con, "people", COLUMNS, [(20, "1a", job, i) for i, job in enumerate(jobs)])
    planned = ldiv_db.plan(con, policy([{"frequency": "auto"}], "auto", ["none"]))
    (requirement,) = planned.requirements["job"]
    assert (requirement.l, planned.algorithm.name) == (6, "auto")
    assert "topdown" in planned.feasibility.tries and "bsgi" not in planned.feasibility.tries


@pytest.mark.parametrize("algorithm", some(["bsgi", "tp", "tp_plus", "hilbert", "matching"], 1))
def test_algorithms_that_treat_values_alike_say_so(con: Any, algorithm: str) -> None:
    fill(con, "people", COLUMNS, people(random.Random(5)))
    says = f"{algorithm} protects every value alike, so none can be harmless .*algorithm: auto"
    with pytest.raises(PolicyError, match=says):
        ldiv_db.plan(con, policy([{"frequency": 2}], algorithm))


@pytest.mark.parametrize("algorithm", some(["topdown", "auto"], 1))
def test_a_series_has_harmless_values_that_may_fill_a_class(con: Any, algorithm: str) -> None:
    """Of 60 stays 45 are healthy, the others are at most half of each class, every night."""
    con.execute("CREATE TABLE stays AS SELECT i AS stay, i % 5 AS ward, if(i % 4 > 0, 'well', 'x' || i % 3) AS dx"
                " FROM range(60) t(i)")  # fmt: skip
    asked = {"source": "stays", "key": "stay", "quasi_identifiers": {"ward": {"numeric": True}}, "target": "out"}
    asked |= {"sensitive": {"dx": {"harmless": ["well"]}}, "require": [{"frequency": 2}], "algorithm": algorithm}
    for night in (1, 2):
        found = ldiv_db.run(con, asked | {"over_time": "independent"})
        assert found.figures["release"] == night and found.inference.holds
        assert all(audit.holds for audit in found.audits)
        counts = con.execute("SELECT ward, dx, count(*) FROM out GROUP BY ALL").fetchall()
        sizes = {ward: sum(rows for other, _, rows in counts if other == ward) for ward, _, _ in counts}
        assert all(2 * rows <= sizes[ward] for ward, value, rows in counts if value != "well")
        con.execute("INSERT INTO stays SELECT i, i % 5, if(i % 4 > 0, 'well', 'x' || i % 3) FROM range(60, 90) t(i)")


def test_bsgi_says_why_a_series_of_its_own_has_none(con: Any) -> None:
    con.execute("CREATE TABLE stays AS SELECT i AS stay, i % 5 AS ward, 'x' || i % 4 AS dx FROM range(60) t(i)")
    asked = {"source": "stays", "key": "stay", "quasi_identifiers": {"ward": {"numeric": True}}, "target": "out"}
    asked |= {"sensitive": {"dx": {"harmless": ["x1"]}}, "require": [{"frequency": 2}], "over_time": "independent"}
    with pytest.raises(PolicyError, match=r"bsgi protects every value alike.*algorithm: auto, topdown"):
        ldiv_db.run(con, asked | {"algorithm": "bsgi"})


def test_a_series_may_give_a_frequent_value_a_threshold_of_its_own(con: Any) -> None:
    con.execute("CREATE TABLE stays AS SELECT i AS stay, i % 5 AS ward, if(i % 2 = 0, 'a', 'x' || i % 10) AS dx"
                " FROM range(60) t(i)")  # fmt: skip
    asked = {"source": "stays", "key": "stay", "quasi_identifiers": {"ward": {"numeric": True}}, "target": "out"}
    asked |= {"sensitive": ["dx"], "over_time": "independent", "algorithm": "topdown"}
    found = ldiv_db.run(con, asked | {"require": [{"threshold": {"default": 0.3, "values": {"a": 0.5}}}]})
    assert found.figures["l"] == {"dx": 2} and found.inference.holds


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"require": [{"entropy": 2}]}, "require.0.entropy: is about all values of a class.*beside these take k"),
        ({"require": [{"unique_distinct": 2}]}, "require.0.unique_distinct: is about all values"),
        ({"require": [{"threshold": {"none": 0.2}}]}, "names 'none', harmless in job: nothing is promised of it"),
        ({"sensitive": {"job": {"harmless": []}}}, "sensitive.job.harmless: is empty"),
        ({"sensitive": {"job": {"harmless": [["none"]]}}}, "sensitive.job.harmless: names values"),
        ({"sensitive": {"job": {"harmless": ["none", "none"]}}}, "sensitive.job.harmless: names one value twice"),
        (
            {"sensitive": {"note": {"harmless": ["x"]}}, "keep": ["job"]},
            "sensitive.note.harmless: .* are not of type INTEGER",
        ),
        ({"sensitive": {"note": {"harmless": ["1", "01"]}}, "keep": ["job"]}, "names one value twice: '1', '01'"),
    ],
)
def test_what_is_wrong_with_harmless_values_is_said(con: Any, changes: dict[str, Any], says: str) -> None:
    fill(con, "people", COLUMNS, people(random.Random(6)))
    with pytest.raises(PolicyError, match=says):
        ldiv_db.plan(con, policy([{"frequency": 2}], "topdown") | changes)


def test_a_value_that_no_row_has_is_noted(con: Any) -> None:
    fill(con, "people", COLUMNS, [row for row in people(random.Random(7)) if row[2] is not None])
    planned = ldiv_db.plan(con, policy([{"k": 2}], "topdown", ["none", "nune", None]))
    assert "no row has the value NULL, 'nune', which is harmless in job" in planned.reasons


def test_numbers_are_named_as_their_column_writes_them(con: Any) -> None:
    fill(
        con, "people", {"age": "INTEGER", "pay": "DECIMAL(6,2)"}, [(20 + i, [0, 0, "9.5", 7][i % 4]) for i in range(24)]
    )
    asked = policy([{"frequency": 3}], "topdown", keep=[], sensitive={"pay": {"harmless": 0}})
    asked["quasi_identifiers"] = {"age": {"numeric": True}}
    ldiv_db.run(con, asked)
    rows = con.execute("SELECT age, CAST(pay AS VARCHAR) FROM published").fetchall()
    assert not bad(rows, "frequency", 3, ["0.00"]) and bad(rows, "frequency", 3, ["0"])


def test_several_attributes_have_harmless_values_each(con: Any) -> None:
    jobs = ["none", "none", "cook", None, "clerk"]
    rows = [(20 + i % 7, f"{i % 3 % 2 + 1}a", jobs[i % 5], [0, 0, 1, 2][i // 5 % 4]) for i in range(60)]
    fill(con, "people", COLUMNS, rows)
    sensitive = {"job": {"harmless": ["none", None]}, "note": {"harmless": ["0"]}}
    require = [{"frequency": 2}, {"distinct": 2, "sensitive": "note", "others_known": True}]
    ldiv_db.run(con, policy(require, "topdown", keep=[], sensitive=sensitive))
    released = con.execute("SELECT age, zip, job, CAST(note AS VARCHAR) FROM published").fetchall()
    assert not bad([(row[:2], row[2]) for row in released], "frequency", 2, ("none", None))
    assert not bad([(row[:2], row[3]) for row in released], "frequency", 2, ("0",))
    assert not bad([(row[:3], row[3]) for row in released], "distinct", 2, ("0",))


def gains(found: Any, name: str) -> dict[str, Any]:
    (attack,) = [attack for attack in found.attacks if attack.name == name]
    return {gain.measure: gain for gain in attack.gains}


@search(2, case=seeds)
def test_attacks_bound_what_is_told_of_the_others(con: Any, case: int) -> None:
    draw = random.Random(case)
    fill(con, "people", COLUMNS, people(draw))
    rows = [(zip_, job) for zip_, job in con.execute("SELECT zip, job FROM people").fetchall()]
    sensitive = {"job": {"harmless": ["none", None]}}
    found = ldiv_db.attack(con, "people", ["zip"], sensitive, ["frequency:2"])
    shares = {
        (key, value): Fraction(count, len(values))
        for key, values in oracle.group(rows).items()
        for value, count in Counter(values).items()
    }
    others = [share for (_, value), share in shares.items() if value not in ("none", None)]
    told = gains(found, "posterior")
    assert told["posterior"].gain == pytest.approx(float(max(shares.values()))) and told["posterior"].bound is None
    aside = told["posterior, of values that are not harmless"]
    assert (aside.gain, aside.bound) == (pytest.approx(float(max(others, default=0))), 0.5)
    assert found.holds is (not bad(rows, "frequency", 2, ("none", None)))
    certain = [1 for key, value in rows if shares[key, value] == 1 and value not in ("none", None)]
    single = gains(found, "homogeneity")["share of rows in classes of one value that is not harmless"]
    assert (single.gain, single.bound) == (pytest.approx(len(certain) / len(rows)), 0)


@pytest.mark.slow
def test_certainty_of_harmless_values_is_no_breach(con: Any) -> None:
    rows = [(20, "1a", "none", 1), (20, "1a", "none", 2), (30, "2a", "cook", 3), (30, "2a", "none", 4)]
    fill(con, "people", COLUMNS, rows)
    asked = policy([{"frequency": 2}], "topdown", ["none"], keep=["note"])
    ldiv_db.run(con, asked)
    found = ldiv_db.attack(con, "published", policy=asked, known="people", definetti="people", replay=ldiv_db.Replay())
    assert found.holds is True
    assert gains(found, "homogeneity")["share of rows in classes of one value"].gain == 0.5
    assert gains(found, "linking")["posterior"].gain == 1 and gains(found, "linking")["posterior"].holds is None
    assert {"definetti", "replay"} <= {attack.name for attack in found.attacks}
