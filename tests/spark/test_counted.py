"""Algorithms that recode all rows alike, on messy columns: Spark counts and recodes as an embedded run does."""

import datetime
import random
from decimal import Decimal

import pytest
from alike import assert_alike, run_both, to_spark
from tables import fill

import ldiv_db

TREE, RANGES = {"taxonomy": {"flat": True}}, {"taxonomy": {"ranges": [10, 30]}}
CASES = {
    "cuts": {"algorithm": "cuts", "require": [{"threshold": 0.5}], "output": {"class_id": True}},
    "cuts whole": {"algorithm": {"name": "cuts", "scheme": "none"}, "require": [{"threshold": 0.6}]},
    "cuts blanked": {"algorithm": {"name": "cuts", "scheme": "vioSA"}, "require": [{"threshold": 0.5}]},
    "cuts by class": {
        "algorithm": {"name": "cuts", "metric": "CM", "class": "note"},
        "require": [{"threshold": 0.5}],
    },
    "incognito": {"algorithm": "incognito", "require": [{"frequency": 2}], "nulls": "suppress"},
    "tds": {
        "algorithm": {"name": "tds", "class": "note"},
        "require": [{"threshold": 0.6}],
        "output": {"class_id": True},
    },
    "annealing": {"algorithm": "annealing", "require": [{"frequency": 2}]},
    "tp": {"algorithm": "tp", "require": [{"frequency": 2}]},
    "tp_plus": {"algorithm": "tp_plus", "require": [{"frequency": 2}], "output": {"class_id": True}},
    "bounds": {"algorithm": "tp_plus", "require": [{"frequency": 2}], "output": {"bounds": True}},
}


def visits(con, seed, rows=90):
    """Many equal rows, NULLs in all columns but the sensitive one, dates, decimals, points in time."""
    draw = random.Random(seed)
    columns = {
        "Age": "TINYINT", "smokes": "BOOLEAN", "city": "VARCHAR", "born": "DATE", "note": "VARCHAR",
        "dose": "DECIMAL(5, 2)", "seen": "TIMESTAMP WITH TIME ZONE", "disease": "VARCHAR", "name": "VARCHAR",
    }  # fmt: skip
    instant = datetime.datetime(2024, 3, 10, 6, 59, tzinfo=datetime.UTC)

    def row(number):
        return (
            draw.choice([23, 24, 35, 51, None]), draw.choice([True, False, None]),
            draw.choice(["Łódź", "Łódź", "a`b", 'say "x"', None]),
            draw.choice([datetime.date(1950, 1, 31), datetime.date(1999, 12, 31)]), draw.choice([None, "", "é"]),
            draw.choice([None, Decimal("1.50"), Decimal("-2.25")]),
            instant + datetime.timedelta(minutes=37 * draw.randint(0, 2)),
            draw.choice(["flu", "flu", "HIV", "cold", "ok"]), f"p{number}",
        )  # fmt: skip

    fill(con, "source", columns, [row(number) for number in range(rows)])


POLICY = {
    "identifiers": ["name"],
    "quasi_identifiers": {"age": RANGES, "smokes": TREE, "city": TREE, "born": TREE},
    "sensitive": ["disease"],
    "keep": ["note", "dose", "seen"],
    "nulls": "value",
    "seed": 3,
}


@pytest.mark.parametrize("name", CASES)
def test_the_release_is_that_of_an_embedded_run(spark, con, tmp_path, name):
    visits(con, name)
    embedded, found = run_both(spark, con, {**POLICY, **CASES[name]}, tmp_path)
    assert found.recoding == embedded.recoding
    assert_alike(spark, con, embedded, found)


def test_sensitive_values_that_are_no_texts(spark, con, tmp_path):
    visits(con, 1)
    policy = {**POLICY, "sensitive": ["dose"], "keep": ["disease", "seen", "note"], "nulls_sensitive": "value"}
    assert_alike(spark, con, *run_both(spark, con, {**policy, **CASES["cuts"]}, tmp_path))


def test_rows_alone(spark, con, tmp_path):
    visits(con, 2)
    policy = {
        **POLICY,
        "sensitive": [],
        "keep": ["note", "dose", "seen", "disease"],
        "algorithm": "incognito",
        "require": [{"k": 6}],
    }
    assert_alike(spark, con, *run_both(spark, con, policy, tmp_path))


def test_what_cannot_be_met_is_an_error(spark, con):
    visits(con, 3)
    policy = {**POLICY, "algorithm": "tds", "require": [{"distinct": 9}], "source": to_spark(spark, con, "source")}
    with pytest.raises(ldiv_db.InfeasibleError):
        ldiv_db.run(spark, {**policy, "target": "refused"})
    assert not spark.catalog.tableExists("refused")


def test_nothing_beside_codes(spark, con, tmp_path):
    con.execute("CREATE TABLE source AS SELECT i % 5 AS age, chr((65 + i * i % 3)::INT) AS disease FROM range(60) t(i)")
    policy = {"quasi_identifiers": {"age": TREE}, "sensitive": ["disease"], "seed": 1, **CASES["cuts"]}
    assert_alike(spark, con, *run_both(spark, con, policy, tmp_path))
