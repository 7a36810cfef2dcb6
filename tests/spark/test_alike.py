"""A run on Spark is the embedded run: the same rows, and the same result."""

import datetime
import random
from decimal import Decimal

import pytest
from alike import assert_alike, run_both, run_random
from strategies import some
from tables import fill

import ldiv_db


@pytest.mark.parametrize("seed", some(range(40)))
def test_random_policies(spark, tmp_path, seed):
    run_random(spark, seed, tmp_path)


def people(con, rng, n=120):
    """A table of all types that Spark and DuckDB share, with NULLs."""
    columns = {
        "Age": "TINYINT", "height": "DECIMAL(5, 2)", "born": "DATE", "seen": "TIMESTAMP WITH TIME ZONE",
        "at home": "TIMESTAMP", "smokes": "BOOLEAN", "city": "VARCHAR", "disease": "VARCHAR", "dose": "DOUBLE",
        "note": "VARCHAR", "photo": "BLOB", "name": "VARCHAR",
    }  # fmt: skip
    day, instant = datetime.date(1950, 1, 31), datetime.datetime(2024, 3, 10, 6, 59, tzinfo=datetime.UTC)

    def row(i):
        age = rng.randint(20, 70)
        seen = instant + datetime.timedelta(minutes=37 * rng.randint(0, 9))
        return (
            age, Decimal(rng.randint(15000, 20000)) / 100, day + datetime.timedelta(days=rng.randint(0, 9000)), seen,
            seen.replace(tzinfo=None), rng.random() < 0.3, rng.choice(["Łódź", "a`b", 'say "x"', None]),
            rng.choice(["flu", "HIV", "cold", "ok"]), rng.choice([0.0, -0.0, 1.5, 2.25]),
            rng.choice([None, "", "é"]), "ab", f"p{i}",
        )  # fmt: skip

    fill(con, "source", columns, [row(i) for i in range(n)])


POLICY = {
    "identifiers": ["name"],
    "quasi_identifiers": ["age", "height", "born", "seen", "at home", "smokes", "city"],
    "sensitive": ["disease"],
    "keep": ["note", "photo", "dose"],
    "seed": 3,
}


@pytest.mark.slow
def test_a_row_of_a_plan_stands_for_a_few_rows_at_most(spark, con, tmp_path, monkeypatch):
    monkeypatch.setattr("ldiv_db.publishing.counted_source._REPEATED", 2)
    people(con, random.Random(2))
    policy = {**POLICY, "algorithm": "mondrian", "require": [{"k": 20}]}
    assert_alike(spark, con, *run_both(spark, con, policy, tmp_path))


@pytest.mark.parametrize("ansi", some(["false", "true"]))
@pytest.mark.parametrize("cases", some(["true", "false"]))
def test_settings_of_the_session_do_not_matter_and_are_left_alone(spark, con, tmp_path, ansi, cases):
    people(con, random.Random(1))
    wanted = {"spark.sql.ansi.enabled": ansi, "spark.sql.caseSensitive": cases}
    before = {name: spark.conf.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        policy = {**POLICY, "algorithm": "mondrian", "require": [{"distinct": 2}]}
        assert_alike(spark, con, *run_both(spark, con, policy, tmp_path))
        assert {name: spark.conf.get(name) for name in wanted} == wanted
        assert spark.conf.get("spark.sql.session.timeZone") == "America/New_York"
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_errors_are_those_of_the_embedded_run(spark, con, tmp_path):
    people(con, random.Random(2))
    for change in ({"require": [{"distinct": 9}]}, {"nulls": "reject", "require": [{"k": 2}]}):
        policy = {**POLICY, **change}
        raised = []
        for run in (0, 1):
            with pytest.raises(ldiv_db.LdivError) as error:
                if run:
                    run_spark(spark, con, policy)
                else:
                    ldiv_db.run(con, {**policy, "source": "source", "target": "t"})
            raised.append((type(error.value), str(error.value)))
        assert raised[0] == raised[1]


def run_spark(spark, con, policy):
    from alike import to_spark  # noqa: PLC0415

    return ldiv_db.run(spark, {**policy, "source": to_spark(spark, con, "source"), "target": "never"})


@pytest.mark.parametrize("mode", some(["together", "apart"]))
def test_people(spark, con, tmp_path, mode):
    """Most have several rows, and nobody is known of some."""
    rng = random.Random(mode)
    persons = [None if rng.random() < 0.1 else rng.randrange(40) for _ in range(80)]
    rows = [
        (who, rng.randint(20, 40), rng.choice(["a", "b", None]), rng.choice(["flu", "HIV", "ok"])) for who in persons
    ]
    fill(con, "source", {"who": "INTEGER", "age": "INTEGER", "town": "VARCHAR", "s": "VARCHAR"}, rows)
    policy = {
        "source": "source", "target": "out", "quasi_identifiers": {"age": {"numeric": True}, "town": {}},
        "sensitive": ["s"], "individual": {"column": "who", "rows": mode}, "require": [{"k": 3}],
        "algorithm": "topdown", "seed": 1,
    }  # fmt: skip
    assert_alike(spark, con, *run_both(spark, con, policy, tmp_path))
