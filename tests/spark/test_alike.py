"""A run on Spark is the embedded run: the same rows, and the same result."""

import datetime
import random
from decimal import Decimal

import pytest
from alike import assert_alike, run_both, run_random
from strategies import some
from tables import fill, random_case

import ldiv_db


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("select", ["bisect", "refine"])
def test_random_tables(spark, con, tmp_path, seed, select):
    case = random_case(random.Random(f"spark {seed} {select}"), select)
    case.place(con, tmp_path)
    assert_alike(spark, con, *run_both(spark, con, case.policy, tmp_path))


@pytest.mark.parametrize("seed", some(range(12)))
def test_random_policies(spark, tmp_path, seed):
    run_random(spark, seed, tmp_path)


REQUIRE = {
    "mondrian": [{"distinct": 2}, {"k": 4}],
    "topdown": [{"entropy": 2}],
    "peel": [{"recursive": {"c": 3, "l": 2}}],
    "cuts": [{"threshold": 0.6}],
    "incognito": [{"frequency": 2}],
    "tds": [{"threshold": 0.6}],
    "annealing": [{"frequency": 2}],
    "tp": [{"frequency": 2}],
    "tp_plus": [{"frequency": 2}],
    "auto": [{"alpha_k": {"alpha": 0.7, "k": 3}}],
}


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


TREE = {"taxonomy": {"flat": True}}
#: Of algorithms that recode all rows alike: what is asked beside columns with trees.
RECODED = {
    "cuts whole": {"algorithm": {"name": "cuts", "scheme": "none"}, "require": [{"threshold": 0.6}]},
    "cuts blanked": {"algorithm": {"name": "cuts", "scheme": "vioSA"}, "require": [{"threshold": 0.5}]},
    "cuts by class": {"algorithm": {"name": "cuts", "metric": "CM", "class": "note"}, "require": [{"threshold": 0.5}]},
    "tds": {"algorithm": {"name": "tds", "class": "note"}, "require": [{"threshold": 0.6}]},
    "tp_plus": {"algorithm": "tp_plus", "require": [{"frequency": 2}], "output": {"class_id": True}},
    "bounds": {"algorithm": "tp_plus", "require": [{"frequency": 2}], "output": {"bounds": True}},
    "NULLs": {"algorithm": "incognito", "require": [{"frequency": 2}], "nulls": "suppress"},
    "rows alone": {
        "algorithm": "incognito", "require": [{"k": 6}], "sensitive": [], "keep": ["note", "photo", "dose", "disease"],
    },
    "numbers": {
        "algorithm": "cuts", "require": [{"threshold": 0.8}], "sensitive": ["dose"],
        "keep": ["note", "photo", "disease"],
    },
    "cuts": {"algorithm": "cuts", "require": REQUIRE["cuts"], "output": {"class_id": True}},
    **{name: {"algorithm": name, "require": REQUIRE[name]} for name in ("incognito", "annealing", "tp")},
}  # fmt: skip


@pytest.mark.parametrize("algorithm", some(name for name in REQUIRE if name not in RECODED))
def test_algorithms(spark, con, tmp_path, algorithm):
    people(con, random.Random(algorithm))
    policy = {**POLICY, "algorithm": algorithm, "require": REQUIRE[algorithm], "nulls": "value"}
    assert_alike(spark, con, *run_both(spark, con, policy, tmp_path))


@pytest.mark.parametrize("name", some(RECODED))
def test_algorithms_that_recode_all_rows_alike(spark, con, tmp_path, name):
    people(con, random.Random(name))
    keys = {"age": {"taxonomy": {"ranges": [10, 30]}}, "smokes": TREE, "city": TREE}
    policy = {**POLICY, "quasi_identifiers": keys, "nulls": "value", **RECODED[name]}
    policy["identifiers"] = ["name", "height", "born", "seen", "at home"]
    embedded, found = run_both(spark, con, policy, tmp_path)
    assert found.recoding == embedded.recoding
    assert_alike(spark, con, embedded, found)


@pytest.mark.slow
def test_a_row_of_a_plan_stands_for_a_few_rows_at_most(spark, con, tmp_path, monkeypatch):
    monkeypatch.setattr("ldiv_db.publishing.counted_source._REPEATED", 2)
    people(con, random.Random(2))
    policy = {**POLICY, "algorithm": "mondrian", "require": [{"k": 20}]}
    assert_alike(spark, con, *run_both(spark, con, policy, tmp_path))


SEVERAL = [
    {"require": [{"distinct": 2, "sensitive": "disease"}, {"k": 3}]},
    {"require": [{"t_closeness": 0.6}], "sensitive": ["disease"]},
    {"require": [{"range": {"k": 3, "e": 1}}], "sensitive": ["dose"], "keep": ["note", "photo", "disease"]},
    {"require": [{"k": 5}], "sensitive": [], "keep": ["note", "photo", "disease", "dose"]},
    {"require": [{"threshold": {"default": 0.8, "HIV": 0.7}}], "output": {"class_id": True, "bounds": True}},
    {"require": [{"k": 3}], "output": {"types": "text"}},
]


@pytest.mark.parametrize("number", some(range(len(SEVERAL))))
def test_requirements_and_forms(spark, con, tmp_path, number):
    people(con, random.Random(number))
    policy = {**POLICY, "algorithm": "mondrian", **SEVERAL[number]}
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


@pytest.mark.parametrize(
    ("output", "age"),
    some(
        [
            pytest.param({"age": "mean"}, {"numeric": True}),
            pytest.param({"age": "median"}, {"numeric": True}),
            pytest.param({}, {"numeric": True, "top": 40}),
        ]
    ),
)
def test_means_and_open_ends_are_the_same(spark, con, tmp_path, output, age):
    con.execute("CREATE SCHEMA IF NOT EXISTS out")
    con.execute("CREATE TABLE source AS SELECT i * 37 % 61 AS age, 'd' || (i % 4) AS disease FROM range(40) AS r(i)")
    policy = {
        "quasi_identifiers": {"age": age}, "sensitive": ["disease"], "require": [{"frequency": 2}],
        "algorithm": "mondrian", "seed": 3, "output": output,
    }  # fmt: skip
    embedded, found = run_both(spark, con, policy, tmp_path)
    there = spark.table(found.target).collect()
    assert sorted(map(tuple, there)) == sorted(con.sql("FROM out.released").fetchall())
    assert embedded.loss.lm_mean == found.loss.lm_mean
